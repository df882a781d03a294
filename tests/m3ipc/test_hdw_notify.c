/* hdw_notify notifies in the name of the task HARDWARE, by a process that need not be bound. */
#include "m3test.h"

static void child(void)
{
    message m;
    int got = mnx_receive(ANY, &m);
    printf("receive -> %d: source %d, slot %d\n", got, m.m_source, m.m_type - NOTIFY_FROM(0));
}

int main(void)
{
    begin();
    SHOW(mnx_hdw_notify(0, 2));
    SHOW(mnx_hdw_notify(1, 2));
    pid_t pid = spawn(2, child);
    until(2, RTS_RECEIVING);
    int got = mnx_hdw_notify(0, 2);
    reap(pid);
    printf("hdw_notify -> %d\n", got);
    return 0;
}
