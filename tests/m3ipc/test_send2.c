/* send refuses peers that are nobody, the caller, not bound, or of another generation. */
#include "m3test.h"

int main(void)
{
    message m = text_message(1, 0);
    SHOW(mnx_send(1, &m));
    begin();
    SHOW(mnx_send(1, &m));
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_send(1, &m));
    SHOW(mnx_send(ANY, &m));
    SHOW(mnx_send(NONE, &m));
    SHOW(mnx_send(SELF, &m));
    SHOW(mnx_send(2, &m));
    SHOW(mnx_send(100, &m));
    SHOW(mnx_send(_ENDPOINT(1, 100), &m));
    SHOW(mnx_send(NR_PROCS, &m));
    SHOW(mnx_send(-NR_TASKS - 1, &m));
    SHOW(mnx_send(0x7fffffff, &m));
    SHOW(mnx_send(2, NULL));
    return 0;
}
