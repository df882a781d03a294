/* A signal that is handled ends a wait with EMOLINTR; what was not sent is not received. */
#include "m3test.h"

static void handler(int signal)
{
    (void)signal;
}

static void child(void)
{
    message m = text_message(1, 1);
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    SHOW(mnx_send(1, &m));
    SHOW(mnx_receive(ANY, &m));
    SHOW(mnx_sendrec(1, &m));
}

int main(void)
{
    message m;
    int status;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    until(2, RTS_SENDING);
    // A signal that comes just before a wait does not end it.
    while (waitpid(pid, &status, WNOHANG) == 0) {
        kill(pid, SIGUSR1);
        usleep(2000);
    }
    show_output(pid);
    SHOW(mnx_receive_T(ANY, &m, TIMEOUT_NOWAIT));
    return 0;
}
