/* wakeup ends a receive of anybody. */
#include "m3test.h"

static void child(void)
{
    message m;
    SHOW(mnx_receive(ANY, &m));
    SHOW(mnx_receive_T(1, &m, 200));
}

int main(void)
{
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    until(2, RTS_RECEIVING);
    SHOW(mnx_wakeup(0, 1));
    SHOW(mnx_wakeup(0, 3));
    SHOW(mnx_wakeup(1, 2));
    int got = mnx_wakeup(0, 2);
    reap(pid);
    printf("wakeup -> %d\n", got);
    return 0;
}
