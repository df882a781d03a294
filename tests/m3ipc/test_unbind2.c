/* unbind of another process: its calls fail from then on. */
#include "m3test.h"

static void child(void)
{
    message m;
    SHOW(mnx_receive(ANY, &m));
    SHOW(mnx_receive(ANY, &m));
}

int main(void)
{
    begin();
    pid_t pid = spawn(70, child);
    until(70, RTS_RECEIVING);
    int ep = mnx_getep(pid);
    SHOW(mnx_unbind(0, ep));
    reap(pid);
    SHOW(mnx_unbind(0, ep));
    SHOW(mnx_unbind(0, ANY));
    SHOW(mnx_unbind(1, ep));
    return 0;
}
