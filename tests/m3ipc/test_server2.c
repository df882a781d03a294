/* A server that ends while a client waits for it, and its successor in the same system slot: the endpoint is the same. */
#include "m3test.h"

static void server(void)
{
    message m;
    for (int i = 0; i < 2; i++) {
        mnx_receive(ANY, &m);
        m.m1_i1++;
        if (i == 0)
            mnx_send(m.m_source, &m);
    }
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    for (int life = 0; life < 2; life++) {
        pid_t pid = spawn(5, server);
        SHOW(mnx_sendrec(5, &m));
        printf("number %d\n", m.m1_i1);
        SHOW(mnx_sendrec(5, &m));
        reap(pid);
    }
    return 0;
}
