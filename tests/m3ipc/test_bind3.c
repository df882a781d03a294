/* lclbind binds another process by its pid. */
#include "m3test.h"

static void child(void)
{
    SHOW(mnx_getep(getpid()));
}

int main(void)
{
    begin();
    SHOW(mnx_lclbind(0, 0, 5));
    SHOW(mnx_lclbind(0, -1, 5));
    SHOW(mnx_lclbind(0, 0x7ffffff0, 5));
    SHOW(mnx_lclbind(0, getpid(), NR_PROCS));
    SHOW(mnx_lclbind(1, getpid(), 5));
    SHOW(mnx_lclbind(0, getpid(), 5));
    SHOW(mnx_getep(getpid()));
    reap(spawn(100, child));
    return 0;
}
