/* receive of one process leaves the messages of others where they are. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(1, getppid() == 0);
    mnx_send(1, &m);
    pause();
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t one = spawn(2, child);
    until(2, RTS_SENDING);
    pid_t other = spawn(3, child);
    until(3, RTS_SENDING);
    SHOW(mnx_receive(3, &m));
    printf("source %d\n", m.m_source);
    SHOW(mnx_receive_T(3, &m, TIMEOUT_NOWAIT));
    SHOW(mnx_receive(2, &m));
    printf("source %d\n", m.m_source);
    kill(one, SIGKILL);
    reap(one);
    kill(other, SIGKILL);
    reap(other);
    return 0;
}
