/* rcvrqst receives a request of anybody, and reply answers it without waiting. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(1, 20);
    int got = mnx_sendrec(1, &m);
    printf("sendrec -> %d: number %d\n", got, m.m1_i1);
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW(mnx_rcvrqst(&m));
    printf("source %d, number %d\n", m.m_source, m.m1_i1);
    m.m1_i1++;
    int got = mnx_reply(2, &m);
    reap(pid);
    printf("reply -> %d\n", got);
    return 0;
}
