/* A second notification of the same source fails with EMOLOVERRUN while the first is pending. */
#include "m3test.h"

static void child(void)
{
    message m;
    int got = 0;
    kill(getpid(), SIGSTOP);
    while (mnx_receive_T(ANY, &m, TIMEOUT_NOWAIT) == 0)
        got++;
    printf("%d received\n", got);
    kill(getpid(), SIGSTOP);
    printf("receive -> %s\n", result(mnx_receive(1, &m)));
}

int main(void)
{
    int status;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    waitpid(pid, &status, WUNTRACED);
    SHOW(mnx_notify(2));
    SHOW(mnx_notify(2));
    kill(pid, SIGCONT);
    waitpid(pid, &status, WUNTRACED);
    SHOW(mnx_notify(2));
    kill(pid, SIGCONT);
    reap(pid);
    return 0;
}
