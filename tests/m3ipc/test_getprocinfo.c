/* getprocinfo tells what the process in a slot does. */
#include "m3test.h"

static void sender(void)
{
    message m = text_message(1, 1);
    mnx_send(1, &m);
}

static void show(int p_nr)
{
    proc_usr_t p;
    int got = mnx_getprocinfo(0, p_nr, &p);
    printf("slot %d -> %s: endpoint %d, flags %x, from %x, to %x, sent %lu, name \"%s\"\n", p_nr, result(got), p.p_endpoint,
           p.p_rts_flags, p.p_getfrom, p.p_sendto, p.p_lclsent, p.p_name);
}

static void receiver(void)
{
    message m;
    mnx_receive(ANY, &m);
}

int main(void)
{
    message m = text_message(1, 1);
    proc_usr_t p;
    begin();
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_getprocinfo(0, NR_PROCS, &p));
    SHOW(mnx_getprocinfo(1, 0, &p));
    SHOW(mnx_getprocinfo(0, 0, NULL));
    show(9);
    show(1);
    pid_t one = spawn(2, sender), two = spawn(3, receiver);
    until(2, RTS_SENDING);
    until(3, RTS_RECEIVING);
    show(2);
    show(3);
    mnx_receive(ANY, &m);
    mnx_send(3, &m);
    reap(one);
    reap(two);
    show(1);
    return 0;
}
