/* FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI: threads that wait on a condition are moved to the mutex with inheritance that goes with it, and
   have it one after the other, by priority. Prints the same on Linux and on Skink. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4

static uint32_t condition, mutex;
static volatile int ready, order[THREADS], woken, signals;

static long futex(uint32_t *word, int operation, uint32_t value, void *limit, uint32_t *second, uint32_t third) {
    long result = syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, limit, second, third);
    return result < 0 ? -errno : result;
}

static uint32_t own(void) { return syscall(SYS_gettid); }

static void say(const char *what, long result) {
    if (result < 0) printf("%s: %s\n", what, strerror(-result));
    else printf("%s: %ld\n", what, result);
}

static void lock(void) {
    uint32_t free = 0;
    if (!__atomic_compare_exchange_n(&mutex, &free, own(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        futex(&mutex, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
}

static void unlock(void) {
    uint32_t mine = own();
    if (!__atomic_compare_exchange_n(&mutex, &mine, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        futex(&mutex, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
}

static void *wait_for_it(void *number) {
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    long result = futex(&condition, FUTEX_WAIT_REQUEUE_PI, 0, NULL, &mutex, 0);
    order[woken++] = (int)(long)number;
    if (result || (mutex & FUTEX_TID_MASK) != own()) say("not mine", result);
    unlock();
    return NULL;
}

static void start(pthread_t *thread, int priority, void *(*run)(void *)) {
    struct sched_param parameters = {priority};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &parameters);
    if (pthread_create(thread, &attributes, run, (void *)(long)priority)) printf("no thread\n");
}

static void broadcast(int held) {
    pthread_t threads[THREADS];
    ready = woken = condition = mutex = 0;
    for (int i = 0; i < THREADS; i++) start(&threads[i], 10 + 10 * (i ^ 1), wait_for_it);
    while (ready < THREADS) usleep(1000);
    usleep(50000);
    say("plain wake", futex(&condition, FUTEX_WAKE, 1, NULL, NULL, 0));
    if (held) lock();
    say("wrong value", futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, (void *)THREADS, &mutex, 7));
    say("wake two", futex(&condition, FUTEX_CMP_REQUEUE_PI, 2, (void *)THREADS, &mutex, 0));
    condition = 1;
    say("moved", futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, (void *)THREADS, &mutex, 1));
    if (held) unlock();
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) printf("%d ", order[i]);
    printf("word %x\n", mutex & FUTEX_TID_MASK);
}

static struct timespec in_50_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += 50000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void *wait_a_while(void *unused) {
    (void)unused;
    struct timespec limit = in_50_ms();
    ready = 1;
    say("moved, and too late", futex(&condition, FUTEX_WAIT_REQUEUE_PI, 0, &limit, &mutex, 0));
    return NULL;
}

static void *signalled(void *unused) {
    (void)unused;
    ready = 1;
    say("with a signal", futex(&condition, FUTEX_WAIT_REQUEUE_PI, 0, NULL, &mutex, 0));
    return NULL;
}

static void on_signal(int number) { signals += number == SIGUSR1; }

int main(void) {
    struct timespec limit = in_50_ms();
    pthread_t thread;
    setvbuf(stdout, NULL, _IOLBF, 0);
    say("same word", futex(&condition, FUTEX_WAIT_REQUEUE_PI, 0, NULL, &condition, 0));
    say("changed", futex(&condition, FUTEX_WAIT_REQUEUE_PI, 1, NULL, &mutex, 0));
    say("too late", futex(&condition, FUTEX_WAIT_REQUEUE_PI, 0, &limit, &mutex, 0));
    say("nobody", futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, &mutex, 0));
    broadcast(1);
    broadcast(0);
    ready = condition = mutex = 0;
    lock();
    start(&thread, 20, wait_a_while);
    while (!ready) usleep(1000);
    usleep(10000);
    say("moved", futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, &mutex, 0));
    pthread_join(thread, NULL);
    unlock();
    signal(SIGUSR1, on_signal);
    ready = 0;
    start(&thread, 20, signalled);
    while (!ready) usleep(1000);
    usleep(20000);
    condition = 1;
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    printf("signals %d\n", signals);
    return 0;
}
