/* node_up needs proxies. */
#include "m3test.h"

int main(void)
{
    begin();
    SHOW(mnx_node_up("other", 1, 0));
    SHOW(mnx_node_up("other", NR_NODES, 0));
    return 0;
}
