/* priv_id: a process that is none of the system's may be given the privilege to notify. */
#include "m3test.h"

static void child(void)
{
    message m;
    mnx_receive(1, &m);
    int got = mnx_notify(1);
    printf("notify -> %s\n", result(got));
    mnx_receive(1, &m);
    got = mnx_notify(1);
    printf("notify -> %s\n", result(got));
}

int main(void)
{
    priv_usr_t priv;
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(100, child);
    int ep = mnx_getep(pid);
    SHOW(mnx_send(ep, &m));
    until(100, RTS_RECEIVING);
    SHOW(mnx_getpriv(0, ep, &priv));
    priv.priv_id = 40;
    SHOW(mnx_setpriv(0, ep, &priv));
    SHOW(mnx_send(ep, &m));
    reap(pid);
    return 0;
}
