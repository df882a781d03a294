/* The pid of a process is in its descriptor, one to one with its endpoint. */
#include "m3test.h"

int main(void)
{
    proc_usr_t p;
    begin();
    SHOW(mnx_bind(0, 90));
    SHOW(mnx_getprocinfo(0, 90, &p));
    printf("pid is %s, endpoint is %s\n", p.p_lpid == getpid() ? "right" : "wrong",
           p.p_endpoint == mnx_getep(getpid()) ? "right" : "wrong");
    return 0;
}
