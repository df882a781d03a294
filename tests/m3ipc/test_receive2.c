/* receive refuses sources that are nobody, the caller, not bound, or of another generation. */
#include "m3test.h"

int main(void)
{
    message m;
    SHOW(mnx_receive(ANY, &m));
    begin();
    SHOW(mnx_receive(ANY, &m));
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_receive(1, &m));
    SHOW(mnx_receive(NONE, &m));
    SHOW(mnx_receive(SELF, &m));
    SHOW(mnx_receive(2, &m));
    SHOW(mnx_receive(_ENDPOINT(1, 100), &m));
    SHOW(mnx_receive(NR_PROCS, &m));
    SHOW(mnx_receive(ANY, NULL));
    return 0;
}
