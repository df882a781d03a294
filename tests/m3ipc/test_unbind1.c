/* unbind frees the caller's slot, which it may then bind again. */
#include "m3test.h"

int main(void)
{
    message m = text_message(1, 0);
    begin();
    int ep = mnx_bind(0, 100);
    printf("endpoint %d\n", ep);
    SHOW(mnx_unbind(0, ep));
    SHOW(mnx_unbind(0, ep));
    SHOW(mnx_send(1, &m));
    SHOW(mnx_getep(getpid()));
    SHOW(mnx_bind(0, 100));
    SHOW(mnx_unbind(0, ep));
    SHOW(mnx_unbind(0, SELF));
    SHOW(mnx_unbind(0, SELF));
    return 0;
}
