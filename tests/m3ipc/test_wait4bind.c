/* wait4bind waits until another process binds the caller. */
#include "m3test.h"

int main(void)
{
    begin();
    pid_t pid = fork();
    if (pid == 0) {
        printf("wait4bind -> %s\n", result(mnx_wait4bind()));
        printf("wait4bind -> %s\n", result(mnx_wait4bind()));
        exit(0);
    }
    moment();
    int ep = mnx_lclbind(0, pid, 100);
    reap(pid);
    printf("lclbind -> %d\n", ep);
    return 0;
}
