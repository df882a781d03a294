/* wait4unbind waits until a process has ended. */
#include "m3test.h"

static void child(void)
{
    moment();
}

int main(void)
{
    begin();
    SHOW(mnx_wait4unbind(5));
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_wait4unbind(5));
    pid_t pid = spawn(100, child);
    int ep = mnx_getep(pid);
    SHOW(mnx_wait4unbind_T(ep, TIMEOUT_NOWAIT));
    SHOW(mnx_wait4unbind(ep));
    reap(pid);
    SHOW(mnx_wait4unbind_T(1, 20));
    return 0;
}
