/* bind refuses containers and slots that are not there or in use, and a process that is bound already. */
#include "m3test.h"

static void other(void)
{
    message m;
    mnx_receive(ANY, &m);
}

int main(void)
{
    message m = text_message(1, 0);
    begin();
    SHOW(mnx_bind(-1, 1));
    SHOW(mnx_bind(NR_VMS, 1));
    SHOW(mnx_bind(1, 1));
    SHOW(mnx_bind(0, NR_PROCS));
    SHOW(mnx_bind(0, -NR_TASKS - 1));
    pid_t pid = spawn(6, other);
    SHOW(mnx_bind(0, 6));
    SHOW(mnx_bind(0, 7));
    SHOW(mnx_bind(0, 8));
    SHOW(container(1));
    SHOW(mnx_bind(1, 7));
    SHOW(mnx_send(6, &m));
    reap(pid);
    return 0;
}
