/* Sixty processes in a ring pass a token ten times around. */
#include "m3test.h"

enum { COUNT = 60, ROUNDS = 10 };

static int own;

static void member(void)
{
    message m;
    int next = own + 1 < COUNT ? own + 1 : 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (mnx_receive(ANY, &m) != 0)
            exit(3);
        m.m1_i1++;
        if (mnx_send(next, &m) != 0)
            exit(4);
    }
}

int main(void)
{
    pid_t pids[COUNT];
    message m = text_message(1, 0);
    begin();
    for (own = 1; own < COUNT; own++)
        pids[own] = spawn(own, member);
    SHOW(mnx_bind(0, 0));
    for (int i = 0; i < ROUNDS; i++)
        if (mnx_send(1, &m) != 0 || mnx_receive(COUNT - 1, &m) != 0)
            puts("the token is lost");
    printf("passed on %d times\n", m.m1_i1);
    for (int i = 1; i < COUNT; i++)
        reap(pids[i]);
    return 0;
}
