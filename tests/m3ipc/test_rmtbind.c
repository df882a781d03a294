/* rmtbind gives a process of another node its endpoint here; without proxies nothing reaches it. */
#include "m3test.h"

int main(void)
{
    message m = text_message(1, 1);
    proc_usr_t p;
    begin();
    SHOW(mnx_add_node(0, 3));
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_rmtbind(0, "remote", 20, 3));
    SHOW(mnx_rmtbind(0, "remote", _ENDPOINT(4, 120), 3));
    SHOW(mnx_getprocinfo(0, 120, &p));
    printf("%s: endpoint %d, node %d, pid %d, %s\n", p.p_name, p.p_endpoint, p.p_nodeid, p.p_lpid,
           p.p_rts_flags & RTS_REMOTE ? "remote" : "local");
    SHOW(mnx_send(20, &m));
    SHOW(mnx_notify(20));
    SHOW(mnx_unbind(0, 20));
    SHOW(mnx_send(20, &m));
    return 0;
}
