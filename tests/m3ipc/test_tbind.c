/* Threads with endpoints of their own talk with each other and with other processes. */
#include "m3test.h"

static void *thread(void *argument)
{
    message m;
    (void)argument;
    mnx_tbind(0, 11);
    mnx_receive(10, &m);
    printf("thread: source %d, number %d\n", m.m_source, m.m1_i1);
    m.m1_i1 = 2;
    mnx_send(10, &m);
    return NULL;
}

int main(void)
{
    message m = text_message(1, 1);
    pthread_t other;
    begin();
    SHOW(mnx_bind(0, 10));
    pthread_create(&other, NULL, thread, NULL);
    SHOW(mnx_wait4bindep(11));
    until(11, RTS_RECEIVING);
    mnx_sendrec(11, &m);
    pthread_join(other, NULL);
    printf("leader: source %d, number %d\n", m.m_source, m.m1_i1);
    SHOW(mnx_wait4unbind(11));
    return 0;
}
