/* receive_T fails with EMOLAGAIN at once, or with EMOLTIMEDOUT when its limit has passed. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(1, 1);
    mnx_send(1, &m);
}

int main(void)
{
    message m;
    struct timespec before, after;
    begin();
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_receive_T(ANY, &m, TIMEOUT_NOWAIT));
    clock_gettime(CLOCK_MONOTONIC, &before);
    SHOW(mnx_receive_T(ANY, &m, 50));
    clock_gettime(CLOCK_MONOTONIC, &after);
    long ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    printf("after %s\n", ms >= 49 ? "at least 49 ms" : "less");
    pid_t pid = spawn(2, child);
    SHOW(mnx_receive_T(2, &m, 10000));
    reap(pid);
    return 0;
}
