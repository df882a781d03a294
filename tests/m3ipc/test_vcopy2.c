/* vcopy from a process that waits to the caller. */
#include "m3test.h"

static char buffer[5000];

static void child(void)
{
    message m = text_message(1, 0);
    memset(buffer, 'c', sizeof buffer);
    m.m1_p1 = buffer;
    mnx_sendrec(1, &m);
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW(mnx_receive(2, &m));
    SHOW(mnx_vcopy(2, m.m1_p1, 1, buffer + 1, 4998));
    printf("%d %c %c %d\n", buffer[0], buffer[1], buffer[4998], buffer[4999]);
    SHOW(mnx_reply(2, &m));
    reap(pid);
    return 0;
}
