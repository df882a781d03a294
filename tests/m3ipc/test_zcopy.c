/* A copy of no bytes succeeds, wherever they would be. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(1, 0);
    mnx_sendrec(1, &m);
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW(mnx_receive(2, &m));
    SHOW(mnx_vcopy(SELF, NULL, 2, NULL, 0));
    SHOW(mnx_vcopy(2, NULL, SELF, NULL, 0));
    SHOW(mnx_reply(2, &m));
    reap(pid);
    return 0;
}
