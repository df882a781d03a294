/* node_down is for nodes that proxies serve. */
#include "m3test.h"

int main(void)
{
    SHOW(mnx_node_down(1));
    begin();
    SHOW(mnx_node_down(1));
    SHOW(mnx_node_down(-1));
    return 0;
}
