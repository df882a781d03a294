/* Notifications are received before messages that have waited longer, the lowest slot's first. */
#include "m3test.h"

static void sender(void)
{
    message m = text_message(7, 0);
    mnx_send(1, &m);
}

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
    pid_t first = spawn(2, sender);
    until(2, RTS_SENDING);
    pid_t high = spawn(9, notifier);
    moment();
    pid_t low = spawn(5, notifier);
    moment();
    moment();
    for (int i = 0; i < 3; i++) {
        int got = mnx_receive(ANY, &m);
        printf("receive -> %d: source %d, %s\n", got, m.m_source, IS_NOTIFY(m.m_type) ? "notification" : "message");
    }
    reap(first);
    kill_printed(low);
    kill_printed(high);
    return 0;
}
