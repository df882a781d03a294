/* rcvrqst takes no notification: it stays pending for receive. */
#include "m3test.h"

static void notifier(void)
{
    message m = text_message(6, 0);
    SHOW(mnx_notify(1));
    SHOW(mnx_send(1, &m));
    printed();
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, notifier);
    until(2, RTS_SENDING);
    SHOW(mnx_rcvrqst_T(&m, TIMEOUT_NOWAIT));
    printf("type %d\n", m.m_type);
    moment();
    SHOW(mnx_rcvrqst_T(&m, TIMEOUT_NOWAIT));
    SHOW(mnx_rcvrqst_T(&m, 20));
    SHOW(mnx_receive(ANY, &m));
    printf("%s\n", IS_NOTIFY(m.m_type) ? "notification" : "message");
    kill_printed(pid);
    return 0;
}
