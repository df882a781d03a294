/* vcopy between two others that wait. */
#include "m3test.h"

static char buffer[100];

static void source(void)
{
    message m = text_message(1, 0);
    strcpy(buffer, "from the source");
    m.m1_p1 = buffer;
    mnx_sendrec(1, &m);
}

static void target(void)
{
    message m = text_message(1, 0);
    m.m1_p1 = buffer;
    mnx_sendrec(1, &m);
    printf("%s\n", buffer);
}

int main(void)
{
    message from, to;
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t one = spawn(2, source), other = spawn(3, target);
    SHOW(mnx_receive(2, &from));
    SHOW(mnx_receive(3, &to));
    SHOW(mnx_vcopy(2, from.m1_p1, 3, to.m1_p1, 16));
    SHOW(mnx_reply(3, &to));
    reap(other);
    SHOW(mnx_reply(2, &from));
    reap(one);
    return 0;
}
