/* A thread of a better priority sleeps, relatively, and gets signals of a timer, while one of a worse priority never waits: ten of each long before
   that one has made ten pauses, of which there is one a second. Prints the same on Linux and on Skink. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Ten of them, in seconds. */
#define PAUSES 10.0

static volatile int over;

static void set(int priority) {
    struct sched_param parameters = {priority};
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    if (sched_setscheduler(0, SCHED_FIFO, &parameters)) printf("no priority %d\n", priority);
}

static void *spin(void *unused) {
    set(10);
    while (!over) continue;
    return unused;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(void) {
    struct itimerval timer = {.it_value = {.tv_usec = 20000}, .it_interval = {.tv_usec = 20000}};
    pthread_t thread;
    sigset_t alarms;
    int number;
    set(20);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    pthread_create(&thread, NULL, spin, NULL);
    double begin = now();
    for (int i = 0; i < 10; i++) usleep(20000);
    printf("ten sleeps in time: %d\n", now() - begin < PAUSES / 2);
    begin = now();
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 10; i++) sigwait(&alarms, &number);
    printf("ten signals in time: %d\n", now() - begin < PAUSES / 2);
    over = 1;
    pthread_join(thread, NULL);
    return 0;
}
