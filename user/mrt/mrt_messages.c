/* Messages between real-time processes: the six kinds, their order, what they lend their receiver, what becomes of them when somebody ends
 * (part B, 6 to 9 and 13). */
#include "trial.h"

static int go;
/* The actor whose messages wait: it stays until they have been received. */
static int poster;

static void release(void)
{
    mrt_semup(go);
}

/* Receives until nothing comes within 50 ticks; says what. */
static void receiver(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    mrt_semdown(go, MRT_FOREVER);
    while (mrt_rcv(MRT_ANYPROC, &message, &header, 50) == 0) {
        char word[] = {(char)('0' + header.mtype), ':', (char)('a' + message.words[0]), 0};
        tell(word);
        shared->numbers[0] = header.source_pid, shared->numbers[1] = header.priority, shared->numbers[2] = header.seqno;
        shared->numbers[3] = (long)message.words[3];
        if (header.mtype == MT_RQRCV || header.mtype == MT_REQUEST) {
            message.words[0] += 10;
            mrt_reply(header.source_pid, &message);
        }
    }
    tell("none");
    mrt_wakeup(shared->pids[poster]);
}

static void asks(void)
{
    mrt_msg_t message = {{self, 2, 3, 4}};
    tell_result("asks", mrt_rqst(shared->pids[0], &message, MRT_FOREVER));
}

static void asks_and_waits(void)
{
    mrt_msg_t message = {{self}}, reply = {{0}};
    mrt_msghdr_t header;
    tell_result("both", mrt_rqrcv(shared->pids[0], &message, &reply, &header, MRT_FOREVER));
    shared->numbers[4] = (long)reply.words[0], shared->numbers[5] = header.mtype;
}

static void three_kinds(void)
{
    mrt_msg_t message = {{0}};
    EXPECT(mrt_sign(shared->pids[0], &message), 0);
    message.words[0] = 1;
    EXPECT(mrt_arqst(shared->pids[0], &message), 0);
    message.words[0] = 2;
    EXPECT(mrt_uprqst(shared->pids[0], &message, 4), 0);
    shared->numbers[6] = mrt_uprqst(shared->pids[0], &message, 0);
    shared->numbers[7] = mrt_uprqst(shared->pids[0], &message, 47);
    mrt_sleep(MRT_FOREVER);
}

static void kinds(void)
{
    poster = 3;
    start(0, 30, receiver), start(1, 20, asks), start(2, 10, asks_and_waits), start(3, 15, three_kinds);
    EXPECT(priority_of(0), 4);
    start(4, 40, release);
    end_of_scene();
    /* The signal has the receiver's own priority, 30. */
    expect_story("kinds", "1:c 6:c both ok 3:b 2:b asks ok 5:a none");
    EXPECT(shared->numbers[4], 12), EXPECT(shared->numbers[5], MT_REPLY);
    EXPECT(shared->numbers[6], E_MRT_BADPRTY), EXPECT(shared->numbers[7], E_MRT_BADPRTY);
    EXPECT(shared->numbers[0], shared->pids[3]), EXPECT(shared->numbers[1], 30);
}

static void waits_for_anybody(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    tell_result("received", mrt_rcv(MRT_ANYPROC, &message, &header, MRT_FOREVER));
    shared->numbers[0] = header.source_pid, shared->numbers[1] = header.mtype;
}

static void meets_a_receiver(void)
{
    start(0, 30, waits_for_anybody), start(1, 20, asks);
    end_of_scene();
    expect_story("a waiting receiver", "asks ok received ok");
    EXPECT(shared->numbers[0], shared->pids[1]), EXPECT(shared->numbers[1], MT_REQUEST);
}

static void gives_up(void)
{
    mrt_msg_t message = {{self}};
    tell_result("now", mrt_rqst(shared->pids[0], &message, MRT_NOWAIT));
    tell_result("soon", mrt_rqst(shared->pids[0], &message, 20));
    tell_result("both", mrt_rqrcv(shared->pids[0], &message, &message, NULL, 20));
    shared->numbers[0] = mrt_rqrcv(shared->pids[0], &message, &message, NULL, MRT_NOWAIT);
    tell_result("nothing", mrt_rcv(MRT_ANYPROC, &message, NULL, MRT_NOWAIT));
    tell_result("nothing", mrt_rcv(shared->pids[0], &message, NULL, 20));
}

static void limits(void)
{
    start(0, 30, receiver), start(1, 20, gives_up);
    usleep(200000);
    EXPECT(priority_of(0), 30);
    EXPECT(shared->numbers[0], -EINVAL);
    start(2, 40, release);
    end_of_scene();
    expect_story("limits", "now again soon timeout both timeout nothing again nothing timeout none");
}

static void floods(void)
{
    mrt_msg_t message = {{self}};
    for (int i = 0; i < 8; i++)
        EXPECT(mrt_uprqst(shared->pids[0], &message, 40 - i), 0);
    tell_result("flood", mrt_arqst(shared->pids[0], &message));
    tell_result("flood", mrt_rqst(shared->pids[0], &message, MRT_FOREVER));
    if (poster)
        mrt_sleep(MRT_FOREVER);
}

static void flood(void)
{
    poster = 1;
    start(0, 45, receiver), start(1, 20, floods);
    mrt_pint_t internals;
    mrt_mqstat_t statistics;
    EXPECT(mrt_getpint(shared->pids[0], &internals), 0);
    EXPECT(internals.priority, 33);
    EXPECT(mrt_getmqstat((int)internals.mqid, &statistics), 0);
    EXPECT(statistics.enqueued, 8), EXPECT(statistics.maxinq, 8), EXPECT(statistics.delivered, 0);
    EXPECT(mrt_clrmqstat((int)internals.mqid), 0);
    EXPECT(mrt_getmqstat((int)internals.mqid, &statistics), 0);
    EXPECT(statistics.enqueued, 0);
    start(2, 46, release);
    end_of_scene();
    expect_story("a flood", "flood full flood full 1:b 1:b 1:b 1:b 1:b 1:b 1:b 1:b none");
    EXPECT(mrt_getmqstat((int)internals.mqid, &statistics), E_MRT_FREEMSGQ);
}

/* The messages of a process that has ended are neither received nor do they donate. */
static void flood_of_one_that_ends(void)
{
    poster = 0;
    start(0, 45, receiver), start(1, 20, floods);
    waitpid(shared->pids[1], NULL, 0);
    EXPECT(priority_of(0), 45);
    start(2, 46, release);
    end_of_scene();
    expect_story("a flood of one that ends", "flood full flood full none");
}

/* 0 holds a mutex and waits for go; 1, a server, waits for the mutex; 2 asks the server: all run with 2's priority. */
static int mutex;

static void holds(void)
{
    mrt_semdown(mutex, MRT_FOREVER);
    mrt_semdown(go, MRT_FOREVER);
    mrt_semup(mutex);
}

static void serves(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    mrt_semdown(mutex, MRT_FOREVER);
    mrt_semup(mutex);
    mrt_rcv(MRT_ANYPROC, &message, &header, MRT_FOREVER);
    shared->numbers[0] = header.priority;
    mrt_reply(header.source_pid, &message);
    tell("served");
}

static void asks_server(void)
{
    mrt_msg_t message = {{0}};
    tell_result("asked", mrt_rqrcv(shared->pids[1], &message, &message, NULL, MRT_FOREVER));
}

static void chain(void)
{
    mutex = semaphore("mutex", 1, SEM_MUTEX | SEM_PRTYORDER | SEM_PRTYINHERIT, 0);
    start(0, 40, holds), start(1, 30, serves), start(2, 10, asks_server);
    EXPECT(priority_of(1), 10), EXPECT(priority_of(0), 10);
    start(3, 45, release);
    end_of_scene();
    expect_story("a chain through a server", "asked ok served");
    EXPECT(mrt_semfree(mutex), 0);
}

static void ends(void)
{
    mrt_semdown(go, MRT_FOREVER);
}


static void awaits_zero(void)
{
    mrt_msg_t message;
    tell_result("from", mrt_rcv(shared->pids[0], &message, NULL, MRT_FOREVER));
}

static void endings(void)
{
    start(0, 30, ends), start(1, 20, asks), start(2, 10, awaits_zero), start(3, 40, release);
    end_of_scene();
    expect_story("a receiver that ends", "from exiting asks exiting");
    shared->pids[1] = 0;
    start(0, 30, waits_for_anybody);
    start(1, 20, ends);
    mrt_msg_t message = {{0}};
    EXPECT(mrt_rqst(shared->pids[1], &message, MRT_FOREVER), E_MRT_BADPTYPE);
    EXPECT(kill(shared->pids[0], SIGKILL), 0);
    start(2, 40, release);
    end_of_scene();
    expect_story("nothing", "");
}

static void wrong_partners(void)
{
    mrt_msg_t message = {{0}};
    shared->numbers[0] = mrt_arqst(99999, &message);
    shared->numbers[1] = mrt_arqst(shared->pids[self], &message);
    shared->numbers[2] = mrt_arqst(0, &message);
    shared->numbers[3] = mrt_rcv(99999, &message, NULL, MRT_FOREVER);
    shared->numbers[4] = mrt_arqst(shared->pids[1], &message);
}

int main(void)
{
    begin_trials();
    EXPECT(mrt_setsval(MRT_BPIP), 0);
    EXPECT(mrt_RTstart(20, 1000), 0);
    go = semaphore("go", 0, SEM_PRTYORDER, 0);
    kinds();
    meets_a_receiver();
    limits();
    flood();
    flood_of_one_that_ends();
    chain();
    endings();
    shared->pids[1] = 0;
    mrt_pattr_t ordinary = attributes(5);
    EXPECT(mrt_setpattr(&ordinary), 0);
    shared->pids[1] = getpid();
    start(0, 20, wrong_partners);
    end_of_scene();
    EXPECT(shared->numbers[0], E_BAD_PROC), EXPECT(shared->numbers[1], E_BAD_DEST), EXPECT(shared->numbers[2], E_BAD_PROC);
    EXPECT(shared->numbers[3], E_BAD_PROC), EXPECT(shared->numbers[4], E_MRT_BADPTYPE);
    mrt_sstat_t statistics;
    EXPECT(mrt_getsstat(&statistics), 0);
    EXPECT(statistics.messages > 10, 1);
    EXPECT(mrt_RTstop(), 0);
    return end_trials("messages");
}
