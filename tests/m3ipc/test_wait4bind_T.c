/* wait4bind_T fails when nobody binds the caller. */
#include "m3test.h"

int main(void)
{
    begin();
    SHOW(mnx_wait4bind_T(TIMEOUT_NOWAIT));
    SHOW(mnx_wait4bind_T(30));
    SHOW(mnx_bind(0, 3));
    SHOW(mnx_wait4bind_T(TIMEOUT_NOWAIT));
    SHOW(mnx_wait4bind_T(30));
    return 0;
}
