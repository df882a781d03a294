/* A child is not bound, and its calls do not disturb its parent's. */
#include "m3test.h"

static void partner(void)
{
    message m;
    for (int i = 0; i < 2; i++) {
        mnx_receive(1, &m);
        mnx_send(1, &m);
    }
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, partner);
    SHOW(mnx_sendrec(2, &m));
    pid_t child = fork();
    if (child == 0) {
        SHOW(mnx_send(2, &m));
        SHOW(mnx_receive(ANY, &m));
        SHOW(mnx_getep(getpid()));
        exit(0);
    }
    reap(child);
    SHOW(mnx_sendrec(2, &m));
    reap(pid);
    return 0;
}
