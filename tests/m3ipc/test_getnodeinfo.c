/* getnodeinfo tells which containers extend to a node. */
#include "m3test.h"

static void show(int nodeid)
{
    node_usr_t node;
    int got = mnx_getnodeinfo(nodeid, &node);
    printf("node %d -> %s: '%s', flags %x, containers %x\n", nodeid, result(got), node.n_name, node.n_flags, node.n_vms);
}

int main(void)
{
    node_usr_t node;
    SHOW(mnx_getnodeinfo(0, &node));
    begin();
    SHOW(container(3));
    SHOW(mnx_add_node(3, 1));
    show(0);
    show(1);
    SHOW(mnx_getnodeinfo(NR_NODES, &node));
    SHOW(mnx_getnodeinfo(0, NULL));
    return 0;
}
