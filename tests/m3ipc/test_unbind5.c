/* Who waits for the answer of a process that is unbound is told, whether it has taken the request or not. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(1, 1);
    SHOW(mnx_sendrec(3, &m));
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 3));
    pid_t pid = spawn(4, child);
    until(4, RTS_SENDING);
    SHOW(mnx_unbind(0, SELF));
    reap(pid);
    SHOW(mnx_bind(0, 3));
    pid = spawn(4, child);
    SHOW(mnx_receive(4, &m));
    SHOW(mnx_unbind(0, SELF));
    reap(pid);
    return 0;
}
