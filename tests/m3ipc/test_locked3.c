/* Two processes that send to each other at the same moment: exactly one call fails, a hundred times. */
#include "m3test.h"

enum { ROUNDS = 100 };

static int clash(int peer)
{
    message m = text_message(1, 1);
    int got = mnx_send(peer, &m);
    if (got == EMOLLOCKED)
        return mnx_receive(peer, &m) == 0 ? 1 : 100;
    return got == 0 ? 0 : 100;
}

static void child(void)
{
    int failed = 0;
    for (int i = 0; i < ROUNDS; i++)
        failed += clash(1);
    message m = text_message(2, failed);
    mnx_send(1, &m);
}

int main(void)
{
    message m;
    int failed = 0;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    for (int i = 0; i < ROUNDS; i++)
        failed += clash(2);
    SHOW(mnx_receive(2, &m));
    printf("%d of %d failed\n", failed + m.m1_i1, ROUNDS);
    reap(pid);
    return 0;
}
