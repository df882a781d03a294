/* wakeup is for members of the container, and for root. */
#include "m3test.h"

static void receiver(void)
{
    message m;
    SHOW(mnx_receive(ANY, &m));
}

/* Tries it as another user. */
static void other(void)
{
    if (setgid(1000) != 0 || setuid(1000) != 0)
        puts("no such ids");
    SHOW(mnx_wakeup(0, 2));
}

int main(void)
{
    begin();
    pid_t pid = spawn(2, receiver);
    until(2, RTS_RECEIVING);
    fflush(stdout);
    pid_t stranger = fork();
    if (stranger == 0) {
        other();
        exit(0);
    }
    waitpid(stranger, NULL, 0);
    pid_t member = spawn(3, other);
    reap(member);
    reap(pid);
    pid = spawn(2, receiver);
    until(2, RTS_RECEIVING);
    SHOW(mnx_wakeup(0, mnx_getep(pid)));
    reap(pid);
    return 0;
}
