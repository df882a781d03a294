/* MINIX4RT's semaphores and messages between processes in different address spaces, in ticks. Each experiment has its own processes, which the
 * parent waits for; figures go through shared memory, because real-time processes make no other calls. */
#include <signal.h>
#include <skink/mrt.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ticks.h"

enum { ROUNDS = 1000, INTERRUPTS = 200, SOFTWARE_IRQ = SKINK_RT_TICK_IRQ + 1 };

static volatile uint64_t *shared;

static void real_time(unsigned priority)
{
    mrt_pattr_t mine = {.baseprty = priority, .watchdog = MRT_NOPROC, .mq_size = 16, .mq_flags = MQ_PRTYORDER | MQ_PRTYINHERIT};
    check(mrt_setpattr(&mine) == 0, "mrt_setpattr");
    check(mrt_set2rt() == 0, "mrt_set2rt");
}

static int semaphore(const char *name, long value, uint64_t flags)
{
    mrt_semattr_t wanted = {.value = value, .flags = flags};
    strncpy((char *)wanted.name, name, sizeof wanted.name - 1);
    int id = mrt_semalloc(&wanted);
    check(id >= 0, "mrt_semalloc");
    return id;
}

static pid_t child(void (*work)(void))
{
    pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid == 0) {
        work();
        mrt_set2nrt();
        _exit(0);
    }
    return pid;
}

static void wait_for(pid_t pid)
{
    int status;
    check(waitpid(pid, &status, 0) == pid && status == 0, "a real-time process");
}

static int one, two, mutex, full, empty;
static pid_t partner;

static void no_switch(void)
{
    real_time(3);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semdown(one, MRT_FOREVER);
        mrt_semup(one);
    }
    shared[0] = ticks() - start;
    start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semdown(mutex, MRT_FOREVER);
        mrt_semup(mutex);
    }
    shared[1] = ticks() - start;
}

static long timeout = MRT_FOREVER;
static int rounds = 10000;

static void producer(void)
{
    real_time(3);
    uint64_t start = ticks();
    for (int i = 0; i < rounds; i++) {
        mrt_semdown(empty, timeout);
        mrt_semdown(mutex, timeout);
        mrt_semup(mutex);
        mrt_semup(full);
    }
    shared[0] = ticks() - start;
}

static void consumer(void)
{
    real_time(4);
    for (int i = 0; i < rounds; i++) {
        mrt_semdown(full, timeout);
        mrt_semdown(mutex, timeout);
        mrt_semup(mutex);
        mrt_semup(empty);
    }
}

static void experiment(const char *name, long slots, int inherits, long limit)
{
    uint64_t flags = inherits ? SEM_PRTYORDER | SEM_PRTYINHERIT | SEM_MUTEX : SEM_PRTYORDER | SEM_MUTEX;
    mutex = semaphore("MUTEX", 1, flags);
    full = semaphore("FULL", 0, SEM_PRTYORDER);
    empty = semaphore("EMPTY", slots, SEM_PRTYORDER);
    timeout = limit;
    /* The better one starts by waiting for a semaphore that is free when both are there. */
    pid_t second = child(consumer);
    pid_t first = child(producer);
    wait_for(first);
    wait_for(second);
    report(name, 0, shared[0], 4 * rounds);
    mrt_semfree(mutex), mrt_semfree(full), mrt_semfree(empty);
}

/* The better one waits; the worse one notes the time and wakes it. */
static void woken(void)
{
    real_time(3);
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semdown(one, timeout);
        shared[1] += ticks() - shared[0];
    }
}

static void waker(void)
{
    real_time(4);
    for (int i = 0; i < ROUNDS; i++) {
        shared[0] = ticks();
        mrt_semup(one);
    }
}

static void ping(void)
{
    real_time(3);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semup(one);
        mrt_semdown(two, timeout);
    }
    shared[0] = ticks() - start;
}

static void pong(void)
{
    real_time(3);
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semdown(one, timeout);
        mrt_semup(two);
    }
}

/* A contended mutex: the worse one (priority 5) holds it when the better one (3) wants it. A round: the better one is woken, asks for the mutex and
 * waits, the worse one gives it up with the better one's priority, the better one takes it and gives it up, and waits to be woken. */
static void holder(void)
{
    real_time(5);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semdown(mutex, MRT_FOREVER);
        mrt_semup(one);
        mrt_semup(mutex);
    }
    shared[0] = ticks() - start;
}

static void contender(void)
{
    real_time(3);
    for (int i = 0; i < ROUNDS; i++) {
        mrt_semdown(one, MRT_FOREVER);
        mrt_semdown(mutex, timeout);
        mrt_semup(mutex);
    }
}

static void requester(void)
{
    mrt_msg_t message = {{1, 2}};
    real_time(4);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        mrt_rqrcv(partner, &message, &message, 0, MRT_FOREVER);
    shared[0] = ticks() - start;
}

static void answerer(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    real_time(3);
    for (int i = 0; i < ROUNDS; i++) {
        mrt_rcv(MRT_ANYPROC, &message, &header, MRT_FOREVER);
        mrt_reply(header.source_pid, &message);
    }
}

/* Runs while a software interrupt without a task comes at each tick: what is missing between two looks at the counter is the timer's
 * interrupt, with the action of the virtual timer and the second stage. */
static void interrupted(void)
{
    real_time(2);
    uint64_t least = UINT64_MAX, sum = 0, last = ticks();
    for (int i = 0; i < INTERRUPTS;) {
        uint64_t now = ticks(), gap = now - last;
        last = now;
        if (gap < least)
            least = gap;
        if (gap > 2 * least)
            sum += gap - least, i++;
    }
    shared[0] = sum;
}

static void timer_interrupt(void)
{
    mrt_iattr_t each_tick = {
        .period = 1, .task = MRT_NOPROC, .watchdog = MRT_NOPROC, .priority = 1, .irqtype = SOFTIRQ | TDIRQ, .name = "each tick"};
    mrt_iattr_t unused = {.task = MRT_NOPROC, .watchdog = MRT_NOPROC};
    check(mrt_setiattr(SOFTWARE_IRQ, &each_tick) == 0, "mrt_setiattr");
    wait_for(child(interrupted));
    check(mrt_setiattr(SOFTWARE_IRQ, &unused) == 0, "mrt_setiattr");
    report("timer_interrupt", 0, shared[0], INTERRUPTS);
}

static void pair(void (*first)(void), void (*second)(void))
{
    partner = child(first);
    usleep(20000);
    pid_t other = child(second);
    wait_for(partner);
    wait_for(other);
}

int main(void)
{
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mrt_setsval(MRT_BPIP | MRT_PRTYMASK);
    check(mrt_RTstart(20, 1000) == 0, "mrt_RTstart");

    one = semaphore("one", 1, SEM_PRTYORDER);
    mutex = semaphore("mutex", 1, SEM_PRTYORDER | SEM_PRTYINHERIT | SEM_MUTEX);
    wait_for(child(no_switch));
    report("sem_down_up", 0, shared[0], ROUNDS);
    report("mutex_down_up", 0, shared[1], ROUNDS);
    mrt_semfree(one), mrt_semfree(mutex);

    experiment("test1_pair", 10, 0, MRT_FOREVER);
    experiment("test2_pair", 10, 0, 60000);
    experiment("test3_pair", 10, 1, MRT_FOREVER);
    experiment("test4_pair", 10, 1, 60000);
    experiment("test3_buffer1_pair", 1, 1, MRT_FOREVER);
    timeout = MRT_FOREVER;

    one = semaphore("one", 0, SEM_PRTYORDER);
    two = semaphore("two", 0, SEM_PRTYORDER);
    mutex = semaphore("mutex", 1, SEM_PRTYORDER | SEM_PRTYINHERIT | SEM_MUTEX);
    shared[1] = 0;
    pair(woken, waker);
    report("sem_up_to_running", 0, shared[1], ROUNDS);
    pair(pong, ping);
    report("sem_one_way", 0, shared[0], 2 * ROUNDS);
    uint64_t without = shared[0];
    timeout = 60000;
    pair(pong, ping);
    report("sem_one_way_timeout", 0, shared[0], 2 * ROUNDS);
    report("timeout_not_expired", without, shared[0], 2 * ROUNDS);
    timeout = MRT_FOREVER;
    pair(contender, holder);
    report("mutex_contended_round", 0, shared[0], ROUNDS);
    pair(answerer, requester);
    report("message_one_way", 0, shared[0], 2 * ROUNDS);
    timer_interrupt();
    check(mrt_RTstop() == 0, "mrt_RTstop");
    return 0;
}
