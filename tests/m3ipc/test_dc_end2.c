/* vm_end ends the processes of the container with SIGPIPE, whatever they wait for. */
#include "m3test.h"

static void receiver(void)
{
    message m;
    mnx_receive(ANY, &m);
    pause();
}

static void sleeper(void)
{
    pause();
}

int main(void)
{
    begin();
    pid_t one = spawn(4, receiver), two = spawn(5, sleeper);
    until(4, RTS_RECEIVING);
    SHOW(mnx_vm_end(0));
    reap(one);
    reap(two);
    return 0;
}
