/* receive of one process takes its notification, and leaves those of others. */
#include "m3test.h"

static void notifier(void)
{
    SHOW(mnx_notify(1));
    printed();
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t one = spawn(2, notifier);
    moment();
    pid_t other = spawn(3, notifier);
    moment();
    SHOW(mnx_receive(3, &m));
    printf("source %d\n", m.m_source);
    SHOW(mnx_receive_T(3, &m, TIMEOUT_NOWAIT));
    SHOW(mnx_receive(ANY, &m));
    printf("source %d\n", m.m_source);
    kill_printed(one);
    kill_printed(other);
    return 0;
}
