/* replbind binds a local replica under a given endpoint. */
#include "m3test.h"

static void replica(void)
{
    message m;
    mnx_wait4bind();
    SHOW(mnx_receive(ANY, &m));
    exit(0);
}

int main(void)
{
    message m = text_message(1, 1);
    proc_usr_t p;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = fork();
    if (pid == 0)
        replica();
    SHOW(mnx_replbind(0, pid, _ENDPOINT(9, 140)));
    SHOW(mnx_getprocinfo(0, 140, &p));
    printf("endpoint %d, %s\n", p.p_endpoint, p.p_misc_flags & MIS_REPLICATED ? "replica" : "no replica");
    int got = mnx_send(_ENDPOINT(9, 140), &m);
    reap(pid);
    printf("send -> %d\n", got);
    return 0;
}
