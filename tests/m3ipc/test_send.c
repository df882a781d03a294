/* send waits until the receiver takes the message; the receiver learns who sent it. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(42, 7);
    m.m_source = 99;
    SHOW(mnx_send(1, &m));
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    until(2, RTS_SENDING);
    SHOW(mnx_receive(ANY, &m));
    printf("source %d, type %d, number %d\n", m.m_source, m.m_type, m.m1_i1);
    reap(pid);
    return 0;
}
