/* del_node takes a node out of a container, unless it is this one or somebody runs there. */
#include "m3test.h"

int main(void)
{
    begin();
    SHOW(mnx_del_node(0, 5));
    SHOW(mnx_add_node(0, 5));
    SHOW(mnx_rmtbind(0, "remote", 20, 5));
    SHOW(mnx_del_node(0, 5));
    SHOW(mnx_unbind(0, 20));
    SHOW(mnx_del_node(0, 5));
    SHOW(mnx_del_node(0, 0));
    SHOW(mnx_del_node(0, NR_NODES));
    SHOW(mnx_del_node(1, 5));
    return 0;
}
