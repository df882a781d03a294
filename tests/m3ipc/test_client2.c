/* A notification does not end a sendrec: it stays pending. */
#include "m3test.h"

static void server(void)
{
    message m;
    mnx_receive(1, &m);
    SHOW(mnx_notify(1));
    m.m1_i1 = 5;
    mnx_send(1, &m);
    printed();
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, server);
    SHOW(mnx_sendrec(2, &m));
    printf("number %d\n", m.m1_i1);
    SHOW(mnx_receive(ANY, &m));
    printf("%s of %d\n", IS_NOTIFY(m.m_type) ? "notification" : "message", m.m_source);
    kill_printed(pid);
    return 0;
}
