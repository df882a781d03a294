/* getvminfo tells name, nodes and how many processes are bound. */
#include "m3test.h"

int main(void)
{
    VM_usr_t vm;
    begin();
    SHOW(mnx_getvminfo(-1, &vm));
    SHOW(mnx_getvminfo(NR_VMS, &vm));
    SHOW(mnx_getvminfo(1, &vm));
    SHOW(mnx_getvminfo(0, NULL));
    SHOW(mnx_getvminfo(0, &vm));
    printf("%s: number %d, flags %d, nodes %x, %d bound\n", vm.vm_name, vm.vm_vmid, vm.vm_flags, vm.vm_nodes, vm.vm_bound);
    SHOW(mnx_bind(0, 0));
    SHOW(mnx_getvminfo(0, &vm));
    printf("%d bound\n", vm.vm_bound);
    return 0;
}
