/* Fifty thousand rounds of send and receive between two processes. */
#include "m3test.h"

enum { ROUNDS = 50000 };

static void child(void)
{
    message m;
    for (int i = 0; i < ROUNDS; i++) {
        if (mnx_receive(1, &m) != 0 || m.m1_i1 != i)
            exit(3);
        m.m1_i1 += 1000000;
        if (mnx_send(1, &m) != 0)
            exit(4);
    }
}

int main(void)
{
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    int good = 0;
    for (int i = 0; i < ROUNDS; i++) {
        message m = text_message(1, i);
        if (mnx_send(2, &m) == 0 && mnx_receive(2, &m) == 0 && m.m1_i1 == i + 1000000 && m.m_source == 2)
            good++;
    }
    printf("%d rounds\n", good);
    reap(pid);
    return 0;
}
