/* priv_ipc_to: a process may send to these slots only. */
#include "m3test.h"

static void child(void)
{
    message m;
    SHOW(mnx_receive(ANY, &m));
}

int main(void)
{
    priv_usr_t priv;
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 5));
    SHOW(mnx_getpriv(0, 5, &priv));
    memset(priv.priv_ipc_to, 0, sizeof priv.priv_ipc_to);
    PRIV_SLOT_SET(priv.priv_ipc_to, 7);
    SHOW(mnx_setpriv(0, 5, &priv));
    pid_t one = spawn(6, child), two = spawn(7, child);
    SHOW(mnx_send(6, &m));
    SHOW(mnx_notify(6));
    SHOW(mnx_reply(6, &m));
    int got = mnx_send(7, &m);
    reap(two);
    printf("send to 7 -> %d\n", got);
    kill(one, SIGKILL);
    reap(one);
    return 0;
}
