/* getdrvsinfo returns the node's number. */
#include "m3test.h"

int main(void)
{
    drvs_usr_t d;
    SHOW(mnx_getdrvsinfo(&d));
    SHOW(mnx_drvs_init(9, NULL));
    SHOW(mnx_getdrvsinfo(NULL));
    SHOW(mnx_getdrvsinfo(&d));
    return 0;
}
