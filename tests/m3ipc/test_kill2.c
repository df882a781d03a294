/* kill -9 of either party at each step of a request and its answer; the other one is told, and the slot is free again. */
#include "m3test.h"

enum { SERVER = 2, CLIENT = 3 };

static int step;

/* Comes to `step` and stays there. */
static void server(void)
{
    message m;
    mnx_wait4bindep(CLIENT);
    if (step == 0)
        pause();
    int got = mnx_receive(CLIENT, &m);
    if (got == 0 && step == 2)
        pause();
    if (got == 0)
        got = mnx_send(CLIENT, &m);
    printf("server -> %s\n", result(got));
}

static void client(void)
{
    message m = text_message(1, 1);
    mnx_wait4bindep(SERVER);
    if (step == 1 || step == 3)
        pause();
    printf("client -> %s\n", result(mnx_sendrec(SERVER, &m)));
}

/* Waits until the party that waits does so; the other one is at its pause, or will be without any further call. */
static void until_step(void)
{
    if (step == 0)
        until(CLIENT, RTS_SENDING);
    else if (step == 2) // The answer is waited for from the start, but only once the request is taken is it alone.
        until_exactly(CLIENT, RTS_SENDING | RTS_RECEIVING, RTS_RECEIVING);
    else
        until(SERVER, RTS_RECEIVING);
}

int main(void)
{
    begin();
    for (step = 0; step < 4; step++)
        for (int victim = SERVER; victim <= CLIENT; victim++) {
            pid_t pids[2] = {spawn(SERVER, server), spawn(CLIENT, client)};
            until_step();
            printf("step %d: %s is killed\n", step, victim == SERVER ? "server" : "client");
            kill(pids[victim - SERVER], SIGKILL);
            reap(pids[victim - SERVER]);
            until(victim, RTS_SLOT_FREE);
            int other = victim == SERVER ? CLIENT : SERVER, is_paused = victim == SERVER ? step % 2 : step % 2 == 0;
            if (is_paused)
                kill(pids[other - SERVER], SIGKILL);
            reap(pids[other - SERVER]);
            until(other, RTS_SLOT_FREE);
        }
    return 0;
}
