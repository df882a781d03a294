/* receive waits until somebody sends. */
#include "m3test.h"

static void child(void)
{
    message m = text_message(5, 6);
    until(1, RTS_RECEIVING);
    SHOW(mnx_send(1, &m));
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    int got = mnx_receive(ANY, &m);
    reap(pid);
    printf("receive -> %d: source %d, type %d, number %d\n", got, m.m_source, m.m_type, m.m1_i1);
    return 0;
}
