/* drvs_end ends the node with its containers; then it can start again. */
#include "m3test.h"

int main(void)
{
    VM_usr_t vm;
    SHOW(mnx_drvs_end());
    begin();
    SHOW(mnx_bind(0, 5));
    SHOW(mnx_drvs_end());
    SHOW(mnx_getvminfo(0, &vm));
    SHOW(mnx_notify(1));
    SHOW(mnx_drvs_end());
    SHOW(mnx_drvs_init(1, NULL));
    SHOW(mnx_getvminfo(0, &vm));
    return 0;
}
