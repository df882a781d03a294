/* A client that does nothing else while it waits: a message of another process does not end its sendrec. */
#include "m3test.h"

static void server(void)
{
    message m;
    mnx_receive(1, &m);
    until(3, RTS_SENDING);
    m.m1_i1 = 77;
    mnx_send(1, &m);
}

static void intruder(void)
{
    message m = text_message(1, 13);
    mnx_send(1, &m);
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t one = spawn(2, server), other = spawn(3, intruder);
    SHOW(mnx_sendrec(2, &m));
    printf("source %d, number %d\n", m.m_source, m.m1_i1);
    SHOW(mnx_receive(ANY, &m));
    printf("source %d, number %d\n", m.m_source, m.m1_i1);
    reap(one);
    reap(other);
    return 0;
}
