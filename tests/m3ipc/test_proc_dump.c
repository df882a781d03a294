/* proc_dump writes to the back end's log. */
#include "m3test.h"

int main(void)
{
    begin();
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_proc_dump(0));
    SHOW(mnx_proc_dump(1));
    return 0;
}
