/* sendrec sends a request and receives the answer in the same message. */
#include "m3test.h"

static void child(void)
{
    message m;
    SHOW(mnx_receive(ANY, &m));
    m.m1_i1 *= 2;
    m.m_type = 8;
    SHOW(mnx_send(m.m_source, &m));
}

int main(void)
{
    message m = text_message(7, 21);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    int got = mnx_sendrec(2, &m);
    reap(pid);
    printf("sendrec -> %d: source %d, type %d, number %d\n", got, m.m_source, m.m_type, m.m1_i1);
    return 0;
}
