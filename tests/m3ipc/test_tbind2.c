/* A thread can be bound only after its group leader, in the same container, and once. */
#include "m3test.h"

static void *thread(void *argument)
{
    (void)argument;
    SHOW(mnx_tbind(1, 12));
    SHOW(mnx_tbind(0, 10));
    SHOW(mnx_tbind(0, NR_PROCS));
    SHOW(mnx_tbind(0, 12));
    SHOW(mnx_tbind(0, 13));
    return NULL;
}

int main(void)
{
    proc_usr_t p;
    pthread_t other;
    begin();
    SHOW(container(1));
    SHOW(mnx_tbind(0, 10));
    SHOW(mnx_bind(0, 10));
    SHOW(mnx_tbind(0, 11));
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    SHOW(mnx_getprocinfo(0, 10, &p));
    printf("leader %d, %s\n", p.p_leader, p.p_misc_flags & MIS_GRPLEADER ? "leads" : "does not lead");
    return 0;
}
