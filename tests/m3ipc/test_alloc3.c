/* Buffers of the library that are allocated, copied from and freed again and again: a copy is always from the one that is there now. */
#include "m3test.h"

enum { ROUNDS = 200, BYTES = 20000 };

static void child(void)
{
    message m = text_message(1, 0);
    void *buffers[2];
    int failed = mnx_alloc(&buffers[1], BYTES) != 0;
    for (int i = 0; i < ROUNDS; i++) {
        failed += mnx_alloc(&buffers[i % 2], BYTES) != 0;
        memset(buffers[i % 2], i, BYTES);
        m.m1_p1 = buffers[i % 2];
        failed += mnx_sendrec(1, &m) != 0;
        failed += mnx_free(buffers[!(i % 2)]) != 0;
    }
    printf("%d failed\n", failed);
}

int main(void)
{
    void *buffer;
    message m;
    int failed = 0, wrong = 0;
    begin();
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_alloc(&buffer, BYTES));
    pid_t pid = spawn(2, child);
    for (int i = 0; i < ROUNDS; i++) {
        failed += mnx_receive(2, &m) != 0;
        for (int times = 0; times < 3; times++)
            failed += mnx_vcopy(2, m.m1_p1, SELF, buffer, BYTES) != BYTES;
        for (int at = 0; at < BYTES; at++)
            wrong += ((char *)buffer)[at] != (char)i;
        failed += mnx_send(2, &m) != 0;
    }
    reap(pid);
    printf("%d failed, %d wrong\n", failed, wrong);
    return 0;
}
