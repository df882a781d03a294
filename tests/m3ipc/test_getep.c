/* getep returns the endpoint of a process. */
#include "m3test.h"

int main(void)
{
    begin();
    SHOW(mnx_getep(getpid()));
    SHOW(mnx_bind(0, 130));
    SHOW(mnx_getep(getpid()));
    SHOW(mnx_getep(0));
    SHOW(mnx_getep(-5));
    SHOW(mnx_getep(0x7ffffff0));
    return 0;
}
