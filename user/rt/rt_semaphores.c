/* The experiment of the paper on semaphores, and three like it. Prints lines "KIND TEST ticks pairs".
 *
 * The parent produces at priority 3, its child consumes at priority 4, 10,000 rounds; each takes and gives two semaphores a round, so four pairs
 * of down and up. The child allocates the semaphores, the parent finds them by name. TEST1 waits without limit and without inheritance, TEST2 with
 * limits that never expire, TEST3 and TEST4 are the same with inheritance, which the system's option switches.
 *
 * It departs from the published programs in two points. The parent does not sleep for ten seconds until the child waits, it looks. And the time is that
 * of the rounds alone: at this speed the way into the real-time world and out of it, which ordinary processes hold up, would be a large part.
 *
 * The published experiment never contends its mutex. So there are three more kinds: `contended`, where the slot is given while the mutex is held, so
 * that the better process is stopped by it in each round; `buffer1`, with one slot; and `chain` of three processes. */
#include "process.h"

enum { ROUNDS = 10000, SLOTS = 10, NEVER_EXPIRES = 60000, BETTER = 3, WORSE = 4, WORST = 5 };
enum { PAIRS_OF_TWO = 4, PAIRS_OF_CHAIN = 6 };
static const uint64_t MUTEX_FLAGS = SEM_PRTYORDER | SEM_PRTYINHERIT | SEM_MUTEX;

static volatile uint64_t *elapsed;
static long timeout;
static int slots, gives_inside;
static int mutex, full, empty;

static void turn(int take, int give)
{
    mrt_semdown(take, timeout);
    mrt_semdown(mutex, timeout);
    if (gives_inside) {
        mrt_semup(give);
        mrt_semup(mutex);
    } else {
        mrt_semup(mutex);
        mrt_semup(give);
    }
}

static void consume(void)
{
    mutex = semaphore("MUTEX", 1, MUTEX_FLAGS);
    empty = semaphore("EMPTY", slots, SEM_PRTYORDER);
    full = semaphore("FULL", 0, SEM_PRTYORDER);
    become_real_time(WORSE, 0);
    for (int i = 0; i < ROUNDS; i++)
        turn(full, empty);
}

static void produce(void)
{
    pid_t consumer = child(consume);
    while ((full = mrt_getsemid("FULL")) < 0)
        usleep(1000);
    mutex = mrt_getsemid("MUTEX"), empty = mrt_getsemid("EMPTY");
    until_waited_for(full);
    become_real_time(BETTER, 0);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        turn(empty, full);
    *elapsed = ticks() - start;
    mrt_set2nrt();
    wait_for(consumer);
}

/* A chain: the best waits for the mutex of the middle one, which waits for the mutex of the last one, in each round. */
static int outer, inner, go_best, go_middle;

static void be_best(void)
{
    become_real_time(BETTER, 0);
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semdown(go_best, timeout);
        mrt_semdown(outer, timeout);
        mrt_semup(outer);
    }
}

static void be_middle(void)
{
    become_real_time(WORSE, 0);
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semdown(go_middle, timeout);
        mrt_semdown(outer, timeout);
        mrt_semup(go_best);
        mrt_semdown(inner, timeout);
        mrt_semup(inner);
        mrt_semup(outer);
    }
}

static void be_last(void)
{
    until_waited_for(go_best);
    until_waited_for(go_middle);
    become_real_time(WORST, 0);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semdown(inner, timeout);
        mrt_semup(go_middle);
        mrt_semup(inner);
    }
    *elapsed = ticks() - start;
}

static void chain(void)
{
    outer = semaphore("OUTER", 1, MUTEX_FLAGS), inner = semaphore("INNER", 1, MUTEX_FLAGS);
    go_best = semaphore("BEST", 0, SEM_PRTYORDER), go_middle = semaphore("MIDDLE", 0, SEM_PRTYORDER);
    pid_t members[] = {child(be_best), child(be_middle), child(be_last)};
    for (unsigned i = 0; i < sizeof members / sizeof *members; i++)
        wait_for(members[i]);
    mrt_semfree(outer), mrt_semfree(inner), mrt_semfree(go_best), mrt_semfree(go_middle);
}

int main(void)
{
    static const struct {
        const char *name;
        int slots, gives_inside;
        void (*run)(void);
        unsigned pairs;
    } KINDS[] = {{"paper", SLOTS, 0, produce, PAIRS_OF_TWO},
                 {"buffer1", 1, 0, produce, PAIRS_OF_TWO},
                 {"contended", SLOTS, 1, produce, PAIRS_OF_TWO},
                 {"chain", 0, 0, chain, PAIRS_OF_CHAIN}};
    elapsed = shared_memory(sizeof *elapsed);
    for (unsigned kind = 0; kind < sizeof KINDS / sizeof *KINDS; kind++)
        for (int test = 1; test <= 4; test++) {
            slots = KINDS[kind].slots, gives_inside = KINDS[kind].gives_inside;
            timeout = test % 2 ? MRT_FOREVER : NEVER_EXPIRES;
            begin_real_time(test > 2 ? MRT_BPIP | MRT_PRTYMASK : MRT_PRTYMASK);
            KINDS[kind].run();
            check(mrt_RTstop() == 0, "mrt_RTstop");
            printf("%s %d %llu %u\n", KINDS[kind].name, test, (unsigned long long)*elapsed, ROUNDS * KINDS[kind].pairs);
        }
    return 0;
}
