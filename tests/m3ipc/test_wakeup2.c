/* wakeup leaves alone who receives from one process, or sends. */
#include "m3test.h"

static void receiver(void)
{
    message m;
    SHOW(mnx_receive(1, &m));
}

static void sender(void)
{
    message m = text_message(1, 1);
    mnx_send(1, &m);
}

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    pid_t one = spawn(2, receiver), two = spawn(3, sender);
    until(2, RTS_RECEIVING);
    until(3, RTS_SENDING);
    SHOW(mnx_wakeup(0, 2));
    SHOW(mnx_wakeup(0, 3));
    SHOW(mnx_receive(3, &m));
    reap(two);
    int got = mnx_send(2, &m);
    reap(one);
    printf("send -> %d\n", got);
    return 0;
}
