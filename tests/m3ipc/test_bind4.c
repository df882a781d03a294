/* A process that has ended is not bound, though its parent has not waited for it. */
#include "m3test.h"

int main(void)
{
    siginfo_t info;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
    SHOW(mnx_lclbind(0, pid, 100));
    waitpid(pid, NULL, 0);
    SHOW(mnx_lclbind(0, pid, 100));
    return 0;
}
