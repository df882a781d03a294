/* exit unbinds: who waits for the process is told. */
#include "m3test.h"

static void child(void)
{
    until(1, RTS_RECEIVING);
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW(mnx_receive(2, &m));
    reap(pid);
    SHOW(mnx_receive(2, &m));
    return 0;
}
