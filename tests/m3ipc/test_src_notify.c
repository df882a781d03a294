/* src_notify notifies in the name of another process. */
#include "m3test.h"

static void child(void)
{
    message m;
    int got = mnx_receive(ANY, &m);
    printf("receive -> %d: source %d\n", got, m.m_source);
    kill(getpid(), SIGSTOP);
    got = mnx_receive(ANY, &m);
    printf("receive -> %d: source %d\n", got, m.m_source);
}

static void third(void)
{
    pause();
}

int main(void)
{
    int status;
    begin();
    SHOW(mnx_src_notify(3, 2));
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_src_notify(3, 2));
    pid_t other = spawn(3, third), pid = spawn(2, child);
    until(2, RTS_RECEIVING);
    int got = mnx_src_notify(3, 2);
    waitpid(pid, &status, WUNTRACED);
    printf("src_notify -> %d\n", got);
    SHOW(mnx_src_notify(3, 2));
    SHOW(mnx_src_notify(3, 2));
    SHOW(mnx_src_notify(2, 2));
    SHOW(mnx_src_notify(NR_PROCS, 2));
    kill(pid, SIGCONT);
    reap(pid);
    kill(other, SIGKILL);
    reap(other);
    return 0;
}
