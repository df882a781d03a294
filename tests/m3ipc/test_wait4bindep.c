/* wait4bindep waits until an endpoint is bound. */
#include "m3test.h"

static void child(void)
{
    SHOW(mnx_wait4bindep(1));
}

int main(void)
{
    begin();
    SHOW(mnx_wait4bindep(1));
    pid_t pid = spawn(2, child);
    moment();
    int ep = mnx_bind(0, 1);
    reap(pid);
    printf("bind -> %d\n", ep);
    SHOW(mnx_wait4bindep(1));
    SHOW(mnx_wait4bindep_T(5, TIMEOUT_NOWAIT));
    SHOW(mnx_wait4bindep_T(5, 20));
    SHOW(mnx_wait4bindep(ANY));
    SHOW(mnx_wait4bindep(NR_PROCS));
    return 0;
}
