/* A slot that is bound again has another endpoint: the old one names nobody. */
#include "m3test.h"

static void idle(void)
{
    pause();
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    for (int life = 1; life <= 3; life++) {
        pid_t pid = spawn(200, idle);
        int ep = mnx_getep(pid);
        printf("life %d: endpoint %d, generation %d, slot %d\n", life, ep, _ENDPOINT_G(ep), _ENDPOINT_P(ep));
        SHOW(mnx_send_T(_ENDPOINT(1, 200), &m, TIMEOUT_NOWAIT));
        kill(pid, SIGKILL);
        reap(pid);
        printf("ended: %d\n", mnx_wait4unbind(ep) == ep);
        SHOW(mnx_send(_ENDPOINT(1, 200), &m));
    }
    return 0;
}
