/* priv_ipc_from: a message that the receiver may not take is refused when it is sent. */
#include "m3test.h"

static void child(void)
{
    message m;
    SHOW(mnx_receive(5, &m));
    SHOW(mnx_receive(9, &m));
}

static void idle(void)
{
    pause();
}

int main(void)
{
    priv_usr_t priv;
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 5));
    pid_t idler = spawn(9, idle), pid = fork();
    if (pid == 0) {
        mnx_wait4bind();
        kill(getpid(), SIGSTOP);
        child();
        exit(0);
    }
    int status;
    SHOW(mnx_lclbind(0, pid, 6));
    waitpid(pid, &status, WUNTRACED);
    SHOW(mnx_getpriv(0, 6, &priv));
    memset(priv.priv_ipc_from, 0, sizeof priv.priv_ipc_from);
    PRIV_SLOT_SET(priv.priv_ipc_from, 9);
    SHOW(mnx_setpriv(0, 6, &priv));
    SHOW(mnx_send(6, &m));
    SHOW(mnx_notify(6));
    PRIV_SLOT_CLEAR(priv.priv_ipc_from, 9);
    PRIV_SLOT_SET(priv.priv_ipc_from, 5);
    SHOW(mnx_setpriv(0, 6, &priv));
    kill(pid, SIGCONT);
    int got = mnx_send(6, &m);
    reap(pid);
    printf("send -> %d\n", got);
    kill(idler, SIGKILL);
    reap(idler);
    return 0;
}
