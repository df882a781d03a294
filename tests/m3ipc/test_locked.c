/* Two processes that would wait for each other: the second one's call fails with EMOLLOCKED. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(1, 1);
    SHOW(mnx_send(1, &m));
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    until(2, RTS_SENDING);
    SHOW(mnx_send(2, &m));
    SHOW(mnx_sendrec(2, &m));
    SHOW(mnx_send_T(2, &m, TIMEOUT_NOWAIT));
    SHOW(mnx_receive(2, &m));
    reap(pid);
    return 0;
}
