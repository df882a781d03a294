/* A server and ten clients that ask it at the same time. */
#include "m3test.h"

static void client(void)
{
    for (int i = 0; i < 100; i++) {
        message m = text_message(1, i);
        if (mnx_sendrec(0, &m) != 0 || m.m1_i1 != -i || m.m_source != 0)
            exit(3);
    }
}

int main(void)
{
    pid_t pids[10];
    int served = 0;
    begin();
    SHOW(mnx_bind(0, 0));
    for (int i = 0; i < 10; i++)
        pids[i] = spawn(60 + i, client);
    while (served < 1000) {
        message m;
        if (mnx_receive(ANY, &m) != 0)
            break;
        m.m1_i1 = -m.m1_i1;
        if (mnx_send(m.m_source, &m) != 0)
            break;
        served++;
    }
    printf("%d served\n", served);
    for (int i = 0; i < 10; i++)
        reap(pids[i]);
    return 0;
}
