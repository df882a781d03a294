/* The life of real-time processes: sleep, wake-up, periods, deadlines, watchdogs, the modes, the end (part B, 4 to 7). */
#include "trial.h"

#include <errno.h>
#include <sys/syscall.h>

static void sleeps(void)
{
    tell_result("time", mrt_sleep(30));
    tell_result("woken", mrt_sleep(MRT_FOREVER));
}

static void wakes(void)
{
    mrt_sleep(60);
    tell_result("wake", mrt_wakeup(shared->pids[0]));
    shared->numbers[0] = mrt_wakeup(99999);
    shared->numbers[1] = mrt_wakeup(shared->pids[2]);
}

static void sleep_and_wake_up(void)
{
    shared->pids[2] = 0;
    start(0, 20, sleeps), start(1, 10, wakes);
    end_of_scene();
    expect_story("sleep", "time ok wake ok woken ok");
    EXPECT(shared->numbers[0], E_BAD_PROC);
}

/* Ten periods of 50 ticks. */
static void periodic(void)
{
    for (int i = 0; i < 10; i++)
        mrt_sleep(MRT_FOREVER);
    shared->numbers[0] = mrt_getpstat(shared->pids[0], NULL);
    tell_result("periods", mrt_set2nrt());
    mrt_pstat_t statistics;
    EXPECT(mrt_getpstat(shared->pids[0], &statistics), 0);
    shared->numbers[1] = statistics.scheds, shared->numbers[2] = statistics.mdl;
    shared->numbers[3] = statistics.minlax > 0 && statistics.minlax < 50000000;
    shared->numbers[4] = statistics.maxlat > 0;
}

static void periods(void)
{
    mrt_sstat_t before, after;
    mrt_pattr_t mine = attributes(10);
    mine.flags = P_PERIODIC, mine.period = 50, mine.limit = 3;
    EXPECT(mrt_getsstat(&before), 0);
    start_with(0, mine, periodic);
    mrt_pattr_t seen;
    mrt_pint_t internals;
    EXPECT(mrt_getpattr(shared->pids[0], &seen), 0);
    EXPECT(seen.flags, P_PERIODIC | P_REALTIME), EXPECT(seen.limit, 0), EXPECT(seen.period, 50);
    EXPECT(mrt_getpint(shared->pids[0], &internals), 0);
    EXPECT(internals.vt, 2), EXPECT(internals.priority, 10);
    end_of_scene();
    EXPECT(mrt_getsstat(&after), 0);
    EXPECT(after.ticks - before.ticks >= 500 && after.ticks - before.ticks < 600, 1);
    expect_story("periodic", "periods ok");
    EXPECT(shared->numbers[0], E_MRT_RTMODE);
    EXPECT(shared->numbers[1], 10), EXPECT(shared->numbers[2], 0), EXPECT(shared->numbers[3], 1), EXPECT(shared->numbers[4], 1);
}

/* Writes down what the kernel tells it, until it is quiet for so long. */
static long patience = 1500;

static void watches(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    while (mrt_rcv(MRT_ANYPROC, &message, &header, patience) == 0) {
        char word[] = {header.mtype == MT_KRNDLINE ? 'D' : header.mtype == MT_KRNPROC ? 'P' : header.mtype == MT_KRNWDOG ? 'W' : '?',
                       (char)('0' + message.words[1]), 0};
        tell(word);
        shared->numbers[0] = message.words[0] == (uint64_t)shared->pids[1];
    }
    tell("quiet");
}

static void works_too_long(void)
{
    mrt_sstat_t none;
    mrt_sleep(MRT_FOREVER);
    uint64_t begin = __builtin_ia32_rdtsc();
    /* Until the watchdog, which is better, has written something. */
    while (shared->length == 0 && __builtin_ia32_rdtsc() - begin < 4000000000ull) {
    }
    tell("late");
    shared->numbers[1] = mrt_getsstat(&none);
    mrt_sleep(MRT_FOREVER);
    tell("begins at once");
}

static void watchdogs(void)
{
    mrt_pattr_t mine = attributes(20);
    start(0, 5, watches);
    mine.flags = P_PERIODIC, mine.period = 50, mine.deadline = 30, mine.watchdog = shared->pids[0];
    start_with(1, mine, works_too_long);
    usleep(500000);
    end_of_scene();
    expect_story("deadline, Linux call, end", "D0 late D3 begins at once P0 quiet");
    EXPECT(shared->numbers[0], 1), EXPECT(shared->numbers[1], E_MRT_RTMODE);
}

static void hears_of_watchdog(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    tell_result("heard", mrt_rcv(MRT_ANYPROC, &message, &header, 1000));
    shared->numbers[0] = header.mtype, shared->numbers[1] = message.words[0] == (uint64_t)shared->pids[0];
    mrt_pattr_t seen;
    mrt_set2nrt();
    EXPECT(mrt_getpattr(shared->pids[1], &seen), 0);
    shared->numbers[2] = seen.watchdog;
}

static void ends_soon(void)
{
    mrt_sleep(100);
}

static void watchdog_that_ends(void)
{
    mrt_pattr_t mine = attributes(20);
    start(0, 5, ends_soon);
    mine.watchdog = shared->pids[0];
    start_with(1, mine, hears_of_watchdog);
    end_of_scene();
    expect_story("a watchdog that ends", "heard ok");
    EXPECT(shared->numbers[0], MT_KRNWDOG), EXPECT(shared->numbers[1], 1), EXPECT(shared->numbers[2], MRT_NOPROC);
}

static void loops(void)
{
    for (volatile int i = 0;; i++) {
    }
}

static void looping(void)
{
    mrt_pattr_t mine = attributes(20);
    patience = 4000;
    start(0, 5, watches);
    mine.watchdog = shared->pids[0];
    pid_t pid = fork();
    if (pid == 0) {
        shared->pids[1] = getpid();
        mrt_setpattr(&mine);
        mrt_set2rt();
        loops();
    }
    while (shared->length == 0)
        usleep(10000);
    mrt_pattr_t seen;
    EXPECT(mrt_getpattr(pid, &seen), 0);
    EXPECT(seen.flags, 0);
    EXPECT(kill(pid, SIGKILL), 0);
    end_of_scene();
    expect_story("a process that loops for ever", "D4 P0 quiet");
}

static volatile int signals;

static void count(int number)
{
    signals += number == SIGUSR1;
}

static void sleeps_with_handler(void)
{
    signal(SIGUSR1, count);
    tell_result("sleep", mrt_sleep(MRT_FOREVER));
    shared->numbers[0] = signals;
    shared->numbers[1] = mrt_sleep(1);
}

/* The call is made before it is real-time: the handler is set by an ordinary process. */
static void a_signal(void)
{
    signal(SIGUSR1, count);
    start(0, 20, sleeps_with_handler);
    EXPECT(kill(shared->pids[0], SIGUSR1), 0);
    end_of_scene();
    expect_story("a signal makes it ordinary", "sleep exiting");
    EXPECT(shared->numbers[0], 1), EXPECT(shared->numbers[1], E_MRT_BADPTYPE);
}

static void limited(void)
{
    for (int i = 0; i < 5; i++)
        shared->numbers[i] = mrt_sleep(5);
}

static void limit_of_schedulings(void)
{
    mrt_pattr_t mine = attributes(20);
    mine.limit = 3;
    start_with(0, mine, limited);
    end_of_scene();
    EXPECT(shared->numbers[2], 0), EXPECT(shared->numbers[3], 0), EXPECT(shared->numbers[4], E_MRT_BADPTYPE);
}

static void sleeps_for_ever(void)
{
    mrt_sleep(MRT_FOREVER);
}

/* Fills a pool with processes; gives how many became real-time and what the first that did not was told. */
static void fill(mrt_pattr_t mine, int most, int wanted_count, int wanted_error)
{
    enum { SLOTS = 200 };
    pid_t pids[SLOTS];
    int count = 0;
    shared->numbers[0] = 0, shared->numbers[1] = 0;
    for (; count < most; count++) {
        long before = shared->numbers[0];
        pids[count] = fork();
        if (pids[count] == 0) {
            int result = mrt_setpattr(&mine);
            result = result ? result : mrt_set2rt();
            shared->numbers[result ? 1 : 0] += result ? result : 1;
            if (result == 0)
                sleeps_for_ever();
            _exit(0);
        }
        while (shared->numbers[0] == before && shared->numbers[1] == 0)
            usleep(1000);
        if (shared->numbers[1])
            break;
    }
    EXPECT(shared->numbers[0], wanted_count), EXPECT(shared->numbers[1], wanted_error);
    for (int i = 0; i <= count && i < most; i++)
        kill(pids[i], SIGKILL);
    end_of_scene();
}

int main(void)
{
    begin_trials();
    EXPECT(mrt_setsval(MRT_BPIP), 0);
    EXPECT(mrt_RTstart(20, 1000), 0);
    sleep_and_wake_up();
    periods();
    watchdogs();
    watchdog_that_ends();
    looping();
    a_signal();
    limit_of_schedulings();
    mrt_pattr_t mine = attributes(20);
    fill(mine, 190, SKINK_RT_QUEUES, E_MRT_NOMSGQ);
    mine.flags = P_PERIODIC, mine.period = 10000;
    fill(mine, 190, (SKINK_RT_TIMERS - 1) / 2, E_MRT_NOVTIMER);
    EXPECT(mrt_RTstop(), 0);
    return end_trials("processes");
}
