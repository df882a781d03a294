/* A message that is not there cannot be sent: the call fails with EMOLFAULT, and nobody hears of it. One that may only be read can. */
#include "pointers.h"

static void child(void)
{
    message m;
    while (mnx_receive(1, &m) == 0 && m.m_type != 8)
        printf("received type %d\n", m.m_type);
}

int main(void)
{
    message m = text_message(8, 0);
    make_pointers();
    setvbuf(stdout, NULL, _IOLBF, 0);
    SHOW_BAD(mnx_send(2, p));
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW_BAD(mnx_send(2, p));
    SHOW_BAD(mnx_send_T(2, p, 1000));
    SHOW_BAD(mnx_send(3, p));
    for (int i = 0; i < 4; i++)
        SHOW(mnx_send(2, (message *)read_only));
    SHOW(mnx_send_T(2, (message *)read_only, 1000));
    until(2, RTS_RECEIVING);
    SHOW_BAD(mnx_reply(2, p));
    SHOW_BAD(mnx_reply_T(2, p, 1000));
    SHOW(mnx_reply(2, (message *)read_only));
    SHOW_BAD(mnx_send(2, p));
    SHOW(mnx_send(2, &m));
    reap(pid);
    return 0;
}
