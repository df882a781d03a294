/* Processes of different containers cannot reach each other, with the same endpoints. */
#include "m3test.h"

static void other(void)
{
    message m = text_message(2, 2);
    SHOW(mnx_send_T(1, &m, TIMEOUT_NOWAIT));
    SHOW(mnx_send_T(3, &m, TIMEOUT_NOWAIT));
}

int main(void)
{
    begin();
    SHOW(container(1));
    SHOW(mnx_bind(0, 1));
    reap(spawn_in(1, 2, other));
    return 0;
}
