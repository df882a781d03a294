/* bkupbind binds a process that stands by for a remote one: the endpoint looks remote. */
#include "m3test.h"

static void standby(void)
{
    pause();
}

int main(void)
{
    message m = text_message(1, 1);
    proc_usr_t p;
    begin();
    SHOW(mnx_add_node(0, 2));
    SHOW(mnx_bind(0, 1));
    pid_t pid = fork();
    if (pid == 0)
        standby();
    SHOW(mnx_bkupbind(0, pid, 30, 2));
    SHOW(mnx_bkupbind(0, pid, 31, 2));
    SHOW(mnx_bkupbind(0, 0, 31, 2));
    SHOW(mnx_getprocinfo(0, 30, &p));
    printf("node %d, %s, %s\n", p.p_nodeid, p.p_rts_flags & RTS_REMOTE ? "remote" : "local",
           p.p_misc_flags & MIS_RMTBACKUP ? "backup" : "no backup");
    SHOW(mnx_send(30, &m));
    kill(pid, SIGKILL);
    reap(pid);
    SHOW(mnx_wait4unbind(30));
    return 0;
}
