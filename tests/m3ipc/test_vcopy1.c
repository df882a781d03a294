/* vcopy from the caller to a process that waits for it. */
#include "m3test.h"

static char buffer[10000];

static void child(void)
{
    message m = text_message(1, 0);
    m.m1_p1 = buffer;
    mnx_sendrec(1, &m);
    int good = 1;
    for (int i = 0; i < 10000; i++)
        good &= buffer[i] == (char)(i * 7);
    puts(good ? "all bytes are right" : "bytes are wrong");
}

int main(void)
{
    message m;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW(mnx_receive(2, &m));
    for (int i = 0; i < 10000; i++)
        buffer[i] = (char)(i * 7);
    SHOW(mnx_vcopy(SELF, buffer, 2, m.m1_p1, 10000));
    SHOW(mnx_send(2, &m));
    reap(pid);
    return 0;
}
