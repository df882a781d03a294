/* vm_end frees a container, whose number may be used again. */
#include "m3test.h"

int main(void)
{
    VM_usr_t vm;
    begin();
    SHOW(mnx_vm_end(1));
    SHOW(mnx_vm_end(NR_VMS));
    SHOW(mnx_vm_end(0));
    SHOW(mnx_vm_end(0));
    SHOW(mnx_getvminfo(0, &vm));
    SHOW(container(0));
    return 0;
}
