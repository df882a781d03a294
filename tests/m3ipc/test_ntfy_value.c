/* ntfy_value gives the notification a value. */
#include "m3test.h"

static void child(void)
{
    message m;
    int got = mnx_receive(ANY, &m);
    printf("receive -> %d: source %d, value %llu\n", got, m.m_source, m.m9_ull1);
}

int main(void)
{
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    int got = mnx_ntfy_value(2, 4711);
    reap(pid);
    printf("ntfy_value -> %d\n", got);
    return 0;
}
