/* Who waits to send to a process that is unbound is told. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(1, 1);
    SHOW(mnx_send(3, &m));
}

int main(void)
{
    begin();
    SHOW(mnx_bind(0, 3));
    pid_t pid = spawn(4, child);
    until(4, RTS_SENDING);
    SHOW(mnx_unbind(0, SELF));
    reap(pid);
    return 0;
}
