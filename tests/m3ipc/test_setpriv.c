/* priv_trap_mask: calls that a process may not make fail with EMOLCALLDENIED. */
#include "m3test.h"

int main(void)
{
    priv_usr_t priv;
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 5));
    SHOW(mnx_getpriv(0, 5, &priv));
    priv.priv_trap_mask = TRAP_SEND | TRAP_REPLY;
    SHOW(mnx_setpriv(0, 5, &priv));
    SHOW(mnx_send(6, &m));
    SHOW(mnx_receive_T(ANY, &m, TIMEOUT_NOWAIT));
    SHOW(mnx_rcvrqst_T(&m, TIMEOUT_NOWAIT));
    SHOW(mnx_sendrec(6, &m));
    SHOW(mnx_notify(6));
    SHOW(mnx_reply(6, &m));
    SHOW(mnx_vcopy(SELF, NULL, 6, NULL, 0));
    priv.priv_trap_mask = ~0u;
    SHOW(mnx_setpriv(0, 5, &priv));
    SHOW(mnx_receive_T(ANY, &m, TIMEOUT_NOWAIT));
    priv.priv_level = PROXY_PRIV + 1;
    SHOW(mnx_setpriv(0, 5, &priv));
    SHOW(mnx_setpriv(0, 6, &priv));
    SHOW(mnx_setpriv(0, 5, NULL));
    return 0;
}
