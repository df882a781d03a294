/* Three threads, one mutex: how long does the most urgent one wait for it? Prints milliseconds: waited, computed by medium. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOW = 10, MEDIUM = 20, HIGH = 30, WORK = 10 * 1000 * 1000, MEDIUM_MS = 400 };

static pthread_mutex_t mutex;
static volatile long sink;
static long waited_ms, computed_ms;

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static pthread_t start(int priority, void *(*work)(void *))
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct sched_param parameters = {.sched_priority = priority};
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &parameters);
    if (pthread_create(&thread, &attributes, work, NULL) != 0) {
        perror("pthread_create");
        exit(1);
    }
    return thread;
}

static void *high(void *argument)
{
    long began = now_ms();
    pthread_mutex_lock(&mutex);
    waited_ms = now_ms() - began;
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void *medium(void *argument)
{
    long began = now_ms();
    while (now_ms() - began < MEDIUM_MS)
        sink++;
    computed_ms = now_ms() - began;
    return argument;
}

/* Holds the mutex; meanwhile the two others become ready, first the urgent one, which blocks. */
static void *low(void *argument)
{
    pthread_mutex_lock(&mutex);
    pthread_t urgent = start(HIGH, high);
    pthread_t other = start(MEDIUM, medium);
    for (long i = 0; i < WORK; i++)
        sink++;
    pthread_mutex_unlock(&mutex);
    pthread_join(urgent, NULL);
    pthread_join(other, NULL);
    return argument;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutex_init(&mutex, &attributes);
    pthread_join(start(LOW, low), NULL);
    printf("%ld %ld\n", waited_ms, computed_ms);
    return 0;
}
