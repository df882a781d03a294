/* notify is for system processes; one that is none may be notified only while it waits. */
#include "m3test.h"

static void user(void)
{
    message m;
    SHOW(mnx_notify(1));
    kill(getpid(), SIGSTOP);
    SHOW(mnx_receive(ANY, &m));
}

int main(void)
{
    int status;
    begin();
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_notify(1));
    SHOW(mnx_notify(ANY));
    SHOW(mnx_notify(2));
    SHOW(mnx_notify(NR_PROCS));
    pid_t pid = spawn(NR_SYS_PROCS, user);
    waitpid(pid, &status, WUNTRACED);
    int ep = mnx_getep(pid);
    SHOW(mnx_notify(ep));
    kill(pid, SIGCONT);
    until(NR_SYS_PROCS, RTS_RECEIVING);
    int got = mnx_notify(ep);
    reap(pid);
    printf("notify -> %d\n", got);
    return 0;
}
