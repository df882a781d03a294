/* Two processes that take turns, by a futex in shared memory and by giving up the processor; a thread that is made and ends; a signal to itself. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ticks.h"

enum { ROUNDS = 1000, WARM_UP = 10, THREADS = 100 };

/* Shared by both processes: whose turn it is. */
static int *turn;

static void wait_for(int mine)
{
    int now;
    while ((now = __atomic_load_n(turn, __ATOMIC_ACQUIRE)) != mine)
        syscall(SYS_futex, turn, FUTEX_WAIT, now, 0, 0, 0);
}

static void pass_to(int other)
{
    __atomic_store_n(turn, other, __ATOMIC_RELEASE);
    syscall(SYS_futex, turn, FUTEX_WAKE, 1, 0, 0, 0);
}

static void bench_futex(void)
{
    turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(turn != MAP_FAILED, "mmap");
    if (fork() == 0) {
        for (int i = 0; i < WARM_UP + ROUNDS; i++) {
            wait_for(1);
            pass_to(0);
        }
        _exit(0);
    }
    uint64_t start = 0;
    for (int i = 0; i < WARM_UP + ROUNDS; i++) {
        if (i == WARM_UP)
            start = ticks();
        pass_to(1);
        wait_for(0);
    }
    report("futex_round_trip", start, ticks(), ROUNDS);
    wait(NULL);
}

static void bench_yield(void)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            sched_yield();
    for (int i = 0; i < WARM_UP; i++)
        sched_yield();
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        sched_yield();
    report("sched_yield_of_two", start, ticks(), ROUNDS);
    kill(child, SIGKILL);
    wait(NULL);
}

static void *end_at_once(void *argument)
{
    return argument;
}

static void bench_thread(void)
{
    uint64_t start = 0;
    pthread_t thread;
    for (int i = -WARM_UP; i < THREADS; i++) {
        if (i == 0)
            start = ticks();
        check(pthread_create(&thread, NULL, end_at_once, NULL) == 0 && pthread_join(thread, NULL) == 0, "thread");
    }
    report("thread_create_join", start, ticks(), THREADS);
}

static volatile int handled;

static void handle(int number)
{
    handled += number;
}

static void bench_signal(void)
{
    check(signal(SIGUSR1, handle) != SIG_ERR, "signal");
    pid_t self = getpid();
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(kill(self, SIGUSR1) == 0, "kill");
    report("kill_handle", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(kill(self, 0) == 0, "kill");
    report("kill_0", start, ticks(), ROUNDS);
}

static void bench_sleep(void)
{
    struct timespec none = {0};
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(nanosleep(&none, NULL) == 0, "nanosleep");
    report("nanosleep_0", start, ticks(), ROUNDS);
}

int main(void)
{
    bench_futex();
    bench_yield();
    bench_thread();
    bench_signal();
    bench_sleep();
    return 0;
}
