/* send_T fails with EMOLAGAIN at once, or with EMOLTIMEDOUT when its limit has passed; the message is not received later. */
#include "m3test.h"

static void child(void)
{
    message m;
    SHOW(mnx_receive_T(1, &m, 0));
    kill(getpid(), SIGSTOP);
    SHOW(mnx_receive(1, &m));
    printf("number %d\n", m.m1_i1);
}

int main(void)
{
    message m = text_message(1, 1);
    int status;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    waitpid(pid, &status, WUNTRACED);
    SHOW(mnx_send_T(2, &m, TIMEOUT_NOWAIT));
    m = text_message(1, 2);
    SHOW(mnx_send_T(2, &m, 30));
    kill(pid, SIGCONT);
    m = text_message(1, 3);
    SHOW(mnx_send_T(2, &m, TIMEOUT_FOREVER));
    reap(pid);
    return 0;
}
