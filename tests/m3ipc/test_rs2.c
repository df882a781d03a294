/* reply fails with EMOLPROCSTS unless the other waits for the caller. */
#include "m3test.h"

static void stopped(void)
{
    kill(getpid(), SIGSTOP);
}

static void waits_for_other(void)
{
    message m;
    SHOW(mnx_receive(2, &m));
}

static void sends(void)
{
    message m = text_message(1, 1);
    mnx_send(1, &m);
}

int main(void)
{
    message m = text_message(1, 1);
    int status;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t one = spawn(2, stopped);
    waitpid(one, &status, WUNTRACED);
    SHOW(mnx_reply(2, &m));
    pid_t two = spawn(3, waits_for_other), three = spawn(4, sends);
    until(3, RTS_RECEIVING);
    until(4, RTS_SENDING);
    SHOW(mnx_reply(3, &m));
    SHOW(mnx_reply(4, &m));
    SHOW(mnx_reply(1, &m));
    SHOW(mnx_reply(5, &m));
    SHOW(mnx_receive(4, &m));
    kill(one, SIGKILL);
    reap(one);
    reap(two);
    reap(three);
    return 0;
}
