/* bind returns the endpoint: the slot's number for system slots, one with a generation for others. */
#include "m3test.h"

static void bind_to(int p_nr)
{
    pid_t pid = fork();
    if (pid == 0) {
        printf("slot %d: endpoint %d\n", p_nr, mnx_bind(0, p_nr));
        exit(0);
    }
    reap(pid);
}

int main(void)
{
    begin();
    bind_to(-NR_TASKS);
    bind_to(-1);
    bind_to(0);
    bind_to(NR_SYS_PROCS - 1);
    bind_to(NR_SYS_PROCS);
    bind_to(NR_PROCS - 1);
    return 0;
}
