/* Three threads of fixed priorities and a mutex that passes them on. The lowest holds it (a) when the highest comes (b); the one between
   wants the processor too (m, e). With inheritance the lowest gives the mutex up (c) and the highest has it (d) before anything else:
   abcdmef. With an argument the mutex is robust as well. On one processor it prints the same on Linux and on Skink. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t mutex;
static sem_t middle_may_go, high_may_go;
static char steps[16];
static int count;

static void note(char step) { steps[count++] = step; }

static void *low(void *argument) {
    pthread_mutex_lock(&mutex);
    note('a');
    sem_post(&high_may_go);
    sem_post(&middle_may_go);
    note('c');
    pthread_mutex_unlock(&mutex);
    note('f');
    return argument;
}

static void *middle(void *argument) {
    sem_wait(&middle_may_go);
    note('m');
    note('e');
    return argument;
}

static void *high(void *argument) {
    sem_wait(&high_may_go);
    note('b');
    note(pthread_mutex_lock(&mutex) ? '?' : 'd');
    pthread_mutex_unlock(&mutex);
    return argument;
}

static pthread_t start(void *(*run)(void *), int priority) {
    struct sched_param parameters = {priority};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &parameters);
    if (pthread_create(&thread, &attributes, run, NULL) != 0) printf("no thread of priority %d\n", priority);
    return thread;
}

int main(int argc, char **argv) {
    struct sched_param parameters = {50};
    pthread_mutexattr_t attributes;
    (void)argv;
    printf("set %d\n", sched_setscheduler(0, SCHED_FIFO, &parameters));
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    if (argc > 1) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_t threads[] = {start(high, 7), start(middle, 6), start(low, 5)};
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("%s\n", steps);
    int first = pthread_mutex_lock(&mutex);
    printf("again %d %d\n", first, pthread_mutex_trylock(&mutex));
    return 0;
}
