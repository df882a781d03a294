/* vm_init refuses numbers beyond their limits, and names that are none. */
#include "m3test.h"

int main(void)
{
    VM_usr_t good = {.vm_vmid = 1, .vm_name = "good"}, vm = good;
    begin();
    vm.vm_vmid = -1;
    SHOW(mnx_vm_init(&vm));
    vm.vm_vmid = NR_VMS;
    SHOW(mnx_vm_init(&vm));
    vm = good;
    vm.vm_nr_procs = NR_PROCS + 1;
    SHOW(mnx_vm_init(&vm));
    vm = good;
    vm.vm_nr_tasks = -1;
    SHOW(mnx_vm_init(&vm));
    vm = good;
    vm.vm_name[0] = 0;
    SHOW(mnx_vm_init(&vm));
    memset(vm.vm_name, 'x', sizeof vm.vm_name);
    SHOW(mnx_vm_init(&vm));
    SHOW(mnx_vm_init(&good));
    return 0;
}
