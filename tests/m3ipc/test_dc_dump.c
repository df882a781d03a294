/* vm_dump writes to the back end's log. */
#include "m3test.h"

int main(void)
{
    begin();
    SHOW(mnx_vm_dump(0));
    SHOW(mnx_vm_dump(1));
    SHOW(mnx_vm_dump(-1));
    return 0;
}
