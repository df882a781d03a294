/* POSIX threads, semaphores, timers and scheduling by glibc: prints the same on Linux and on Skink. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static long count, turn;
static __thread long own = 7;

static void *add(void *argument) {
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutex);
        count++;
        pthread_mutex_unlock(&mutex);
        pthread_rwlock_rdlock(&lock);
        pthread_rwlock_unlock(&lock);
    }
    own += (long)argument;
    return (void *)own;
}

static void play(long mine) {
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != mine) pthread_cond_wait(&condition, &mutex);
        turn = 1 - mine;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
    }
}

static void *pong(void *argument) {
    (void)argument;
    play(1);
    return NULL;
}

static void *take(void *argument) {
    (void)argument;
    for (int i = 0; i < 100; i++) sem_wait(&semaphore);
    return (void *)55;
}

static void clean(void *text) { printf("%s\n", (char *)text); }

static void *sleep_long(void *argument) {
    (void)argument;
    pthread_cleanup_push(clean, "cleanup");
    for (;;) sleep(100);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *lock_and_end(void *robust) {
    pthread_mutex_lock(robust);
    return NULL;
}

static void time_limits(void) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += 20000000;
    if (limit.tv_nsec >= 1000000000) limit.tv_nsec -= 1000000000, limit.tv_sec++;
    sem_timedwait(&semaphore, &limit);
    printf("timed: %s\n", strerror(errno));
    pthread_mutex_lock(&mutex);
    printf("cond: %s\n", strerror(pthread_cond_timedwait(&condition, &mutex, &limit)));
    pthread_mutex_unlock(&mutex);
}

static void robust_mutex(void) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t robust;
    pthread_t thread;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_create(&thread, NULL, lock_and_end, &robust);
    pthread_join(thread, NULL);
    printf("owner died: %s\n", strerror(pthread_mutex_lock(&robust)));
    pthread_mutex_consistent(&robust);
    pthread_mutex_unlock(&robust);
}

static void scheduling(void) {
    struct sched_param parameters = {5};
    struct timespec turn_length;
    int policy;
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
    pthread_getschedparam(pthread_self(), &policy, &parameters);
    printf("policy %d priority %d\n", policy, parameters.sched_priority);
    pthread_setschedparam(pthread_self(), SCHED_RR, &parameters);
    sched_rr_get_interval(0, &turn_length);
    printf("interval %ld.%09ld\n", (long)turn_length.tv_sec, turn_length.tv_nsec);
    parameters.sched_priority = 0;
    pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameters);
}

static void timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 9};
    struct itimerspec every_ms = {{0, 1000000}, {0, 1000000}};
    sigset_t set;
    timer_t id;
    int signals = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &id);
    timer_settime(id, 0, &every_ms, NULL);
    while (signals < 5) {
        siginfo_t info;
        if (sigwaitinfo(&set, &info) != SIGRTMIN || info.si_value.sival_int != 9 || info.si_code != SI_TIMER) return;
        signals++;
    }
    timer_delete(id);
    printf("timer %d signals\n", signals);
}

int main(void) {
    pthread_t threads[8];
    void *result;
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_barrier_init(&barrier, NULL, 8);
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], NULL, add, (void *)i);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], &result), printf("%ld ", (long)result);
    printf("n=%ld\n", count);
    pthread_create(&threads[0], NULL, pong, NULL);
    play(0);
    pthread_join(threads[0], NULL);
    printf("pong turn=%ld\n", turn);
    sem_init(&semaphore, 0, 0);
    pthread_create(&threads[0], NULL, take, NULL);
    for (int i = 0; i < 100; i++) sem_post(&semaphore);
    pthread_join(threads[0], &result);
    printf("sem %ld\n", (long)result);
    time_limits();
    pthread_create(&threads[0], NULL, sleep_long, NULL);
    usleep(10000);
    pthread_cancel(threads[0]);
    pthread_join(threads[0], &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
    robust_mutex();
    scheduling();
    timer();
    return 0;
}
