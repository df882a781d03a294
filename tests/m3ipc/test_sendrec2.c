/* sendrec fails with EMOLDEADSRCDST when its peer ends, before or after it has taken the request. */
#include "m3test.h"

static void taker(void)
{
    message m;
    mnx_receive(ANY, &m);
}

static void sleeper(void)
{
    until(1, RTS_SENDING);
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, taker);
    SHOW(mnx_sendrec(2, &m));
    reap(pid);
    pid = spawn(3, sleeper);
    SHOW(mnx_sendrec(3, &m));
    reap(pid);
    SHOW(mnx_wait4unbind(3));
    SHOW(mnx_sendrec(3, &m));
    SHOW(mnx_sendrec(1, &m));
    SHOW(mnx_sendrec(ANY, &m));
    SHOW(mnx_sendrec(_ENDPOINT(2, 100), &m));
    return 0;
}
