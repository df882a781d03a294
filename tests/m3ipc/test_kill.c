/* Death by a signal unbinds: the sender, the receiver and the asker who wait are told. */
#include "m3test.h"

static void victim(void)
{
    pause();
}

static void sender(void)
{
    message m = text_message(1, 1);
    int got = mnx_send(2, &m);
    until(4, RTS_SLOT_FREE);
    printf("send -> %s\n", result(got));
}

static void receiver(void)
{
    message m;
    printf("receive -> %s\n", result(mnx_receive(2, &m)));
}

static void asker(void)
{
    message m = text_message(1, 1);
    int got = mnx_sendrec(2, &m);
    until(3, RTS_SLOT_FREE);
    printf("sendrec -> %s\n", result(got));
}

int main(void)
{
    begin();
    pid_t pid = spawn(2, victim), one = spawn(3, sender), two = spawn(4, receiver), three = spawn(5, asker);
    until(3, RTS_SENDING);
    until(4, RTS_RECEIVING);
    until(5, RTS_SENDING);
    kill(pid, SIGKILL);
    reap(two);
    reap(one);
    reap(three);
    reap(pid);
    return 0;
}
