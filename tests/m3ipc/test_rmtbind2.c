/* rmtbind refuses nodes that are not of the container, this one, slots in use, and what is no endpoint. */
#include "m3test.h"

int main(void)
{
    begin();
    SHOW(mnx_rmtbind(0, "remote", 20, 3));
    SHOW(mnx_rmtbind(0, "remote", 20, 0));
    SHOW(mnx_rmtbind(0, "remote", 20, NR_NODES));
    SHOW(mnx_add_node(0, 3));
    SHOW(mnx_rmtbind(0, "remote", ANY, 3));
    SHOW(mnx_rmtbind(0, "remote", NR_PROCS, 3));
    SHOW(mnx_rmtbind(0, "", 20, 3));
    SHOW(mnx_rmtbind(0, "a name that is too long", 20, 3));
    SHOW(mnx_rmtbind(0, NULL, 20, 3));
    SHOW(mnx_rmtbind(1, "remote", 20, 3));
    SHOW(mnx_rmtbind(0, "remote", 20, 3));
    SHOW(mnx_rmtbind(0, "remote", 20, 3));
    SHOW(mnx_bind(0, 20));
    return 0;
}
