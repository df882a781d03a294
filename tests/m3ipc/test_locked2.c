/* A circle of four processes, of which one receives from another: the last call fails with EMOLLOCKED. */
#include "m3test.h"

static void to_third(void)
{
    message m = text_message(1, 1);
    mnx_wait4bindep(3);
    SHOW(mnx_send(3, &m));
}

static void from_fourth(void)
{
    message m;
    mnx_wait4bindep(4);
    SHOW(mnx_receive(4, &m));
}

static void asks_first(void)
{
    message m = text_message(1, 1);
    SHOW(mnx_sendrec(1, &m));
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t second = spawn(2, to_third), third = spawn(3, from_fourth), fourth = spawn(4, asks_first);
    until(2, RTS_SENDING);
    until(3, RTS_RECEIVING);
    until(4, RTS_SENDING);
    SHOW(mnx_send(2, &m));
    SHOW(mnx_receive(2, &m));
    SHOW(mnx_receive(4, &m));
    SHOW(mnx_reply(4, &m));
    reap(fourth);
    reap(third);
    reap(second);
    return 0;
}
