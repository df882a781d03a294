/* add_node extends a container to a node. */
#include "m3test.h"

int main(void)
{
    VM_usr_t vm;
    begin();
    SHOW(mnx_add_node(0, 5));
    SHOW(mnx_add_node(0, 5));
    SHOW(mnx_add_node(0, 0));
    SHOW(mnx_add_node(0, NR_NODES));
    SHOW(mnx_add_node(0, -1));
    SHOW(mnx_add_node(1, 5));
    SHOW(mnx_getvminfo(0, &vm));
    printf("%d nodes, %x\n", vm.vm_nr_nodes, vm.vm_nodes);
    return 0;
}
