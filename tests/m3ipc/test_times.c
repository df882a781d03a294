/* The times of notifications ascend. */
#include "m3test.h"

static void child(void)
{
    message m;
    unsigned long long last = 0;
    for (int i = 0; i < 10; i++) {
        if (mnx_receive(1, &m) != 0 || m.m9_ull2 <= last)
            exit(3);
        last = m.m9_ull2;
        mnx_send(1, &m);
    }
}

int main(void)
{
    message m;
    int good = 0;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    for (int i = 0; i < 10; i++)
        good += mnx_notify(2) == 0 && mnx_receive(2, &m) == 0;
    printf("%d notifications\n", good);
    reap(pid);
    return 0;
}
