/* notify does not wait: it is received at once or at the next receive, with its source as type. */
#include "m3test.h"

static void child(void)
{
    message m;
    for (int i = 0; i < 2; i++) {
        int got = mnx_receive(ANY, &m);
        printf("receive -> %d: source %d, slot %d, value %llu, time %s\n", got, m.m_source,
               m.m_type - NOTIFY_FROM(0), m.m9_ull1, m.m9_ull2 > 0 ? "set" : "missing");
        kill(getpid(), SIGSTOP);
    }
}

int main(void)
{
    int status;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    until(2, RTS_RECEIVING);
    int got = mnx_notify(2);
    waitpid(pid, &status, WUNTRACED);
    printf("notify -> %d\n", got);
    SHOW(mnx_notify(2));
    kill(pid, SIGCONT);
    waitpid(pid, &status, WUNTRACED);
    kill(pid, SIGCONT);
    reap(pid);
    return 0;
}
