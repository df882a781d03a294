/* A notification of a process that has ended is forgotten; one that was received counts. */
#include "m3test.h"

static void notifier(void)
{
    SHOW(mnx_notify(1));
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    reap(spawn(2, notifier));
    SHOW(mnx_wait4unbind(2));
    SHOW(mnx_receive_T(ANY, &m, TIMEOUT_NOWAIT));
    return 0;
}
