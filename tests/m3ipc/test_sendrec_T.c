/* sendrec_T ends when its limit has passed, in the sending half and in the receiving half. */
#include "m3test.h"

static void child(void)
{
    message m;
    int status = mnx_receive(ANY, &m);
    until(1, RTS_SLOT_FREE);
    exit(status);
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    until(2, RTS_RECEIVING);
    SHOW(mnx_sendrec_T(2, &m, 30));
    SHOW(mnx_sendrec_T(2, &m, 30));
    SHOW(mnx_sendrec_T(2, &m, TIMEOUT_NOWAIT));
    SHOW(mnx_unbind(0, SELF));
    reap(pid);
    return 0;
}
