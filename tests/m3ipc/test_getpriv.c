/* getpriv tells the rights of a process: a new one may do everything. */
#include "m3test.h"

int main(void)
{
    priv_usr_t priv;
    begin();
    SHOW(mnx_bind(0, 5));
    SHOW(mnx_getpriv(0, 5, &priv));
    printf("id %d, level %d, traps %x, to itself %lu\n", priv.priv_id, priv.priv_level, priv.priv_trap_mask,
           PRIV_SLOT_TEST(priv.priv_ipc_to, 5));
    SHOW(mnx_getpriv(0, 6, &priv));
    SHOW(mnx_getpriv(1, 5, &priv));
    SHOW(mnx_getpriv(0, ANY, &priv));
    SHOW(mnx_getpriv(0, 5, NULL));
    return 0;
}
