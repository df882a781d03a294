/* vm_init starts a container once. */
#include "m3test.h"

int main(void)
{
    VM_usr_t vm = {.vm_vmid = 7, .vm_name = "seven"};
    SHOW(mnx_vm_init(&vm));
    SHOW(mnx_drvs_init(0, NULL));
    SHOW(mnx_vm_init(&vm));
    SHOW(mnx_vm_init(&vm));
    SHOW(mnx_vm_init(NULL));
    memset(&vm, 0, sizeof vm);
    SHOW(mnx_getvminfo(7, &vm));
    printf("%s: %d processes, %d tasks, %d system processes, nodes %x\n", vm.vm_name, vm.vm_nr_procs, vm.vm_nr_tasks,
           vm.vm_nr_sysprocs, vm.vm_nodes);
    return 0;
}
