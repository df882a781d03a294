/* Messages of several senders are received in the order in which they were sent. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(1, 0);
    mnx_send(1, &m);
}

int main(void)
{
    static const int order[] = {9, 3, 7, -5, 100, 2};
    pid_t pids[6];
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    for (int i = 0; i < 6; i++) {
        pids[i] = spawn(order[i], child);
        until(order[i], RTS_SENDING);
    }
    for (int i = 0; i < 6; i++) {
        SHOW(mnx_receive(ANY, &m));
        printf("slot %d\n", _ENDPOINT_P(m.m_source));
        reap(pids[i]);
    }
    return 0;
}
