/* A container may have fewer slots than the node allows. */
#include "m3test.h"

int main(void)
{
    VM_usr_t vm = {.vm_vmid = 1, .vm_name = "small", .vm_nr_procs = 10, .vm_nr_tasks = 2, .vm_nr_sysprocs = 4};
    begin();
    SHOW(mnx_vm_init(&vm));
    SHOW(mnx_bind(1, 10));
    SHOW(mnx_bind(1, -3));
    SHOW(mnx_bind(1, 9));
    return 0;
}
