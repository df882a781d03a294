/* Two that ask each other in turn: each request is the answer to the one before. */
#include "m3test.h"

enum { ROUNDS = 5 };

static void ask(int peer, int kind)
{
    message m;
    for (int i = 0; i < ROUNDS; i++) {
        m = text_message(kind + i, 1);
        SHOW(mnx_sendrec(peer, &m));
        printf("type %d\n", m.m_type);
    }
}

static void asked(void)
{
    message m;
    SHOW(mnx_receive(1, &m));
    ask(1, 20);
}

int main(void)
{
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, asked);
    ask(2, 10);
    message m = text_message(0, 1);
    SHOW(mnx_send(2, &m));
    reap(pid);
    return 0;
}
