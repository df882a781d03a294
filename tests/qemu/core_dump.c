/* Dies of a signal in one of three threads, each in a function of its own: the core dump is looked at on the host. usage: crashing SIGNAL */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sem_t ready;
static int signal_number;
char *kept;
volatile double number = 2.5;

__attribute__((noinline)) static void sleep_in_the_first(void)
{
    sem_post(&ready);
    for (;;)
        pause();
}

__attribute__((noinline)) static void wait_in_the_second(sem_t *never)
{
    sem_post(&ready);
    sem_wait(never);
}

__attribute__((noinline)) static void crash_here(int depth)
{
    if (depth > 0)
        crash_here(depth - 1);
    else if (signal_number == SIGSEGV)
        *(volatile int *)16 = 1;
    else
        raise(signal_number);
    number += 1;
}

static void *first(void *unused)
{
    sleep_in_the_first();
    return unused;
}

static void *second(void *unused)
{
    static sem_t never;
    wait_in_the_second(&never);
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    signal_number = count > 1 ? atoi(arguments[1]) : SIGSEGV;
    kept = malloc(300000);
    memset(kept, 'k', 100000);
    strcpy(kept, "found in the core");
    sem_init(&ready, 0, 0);
    pthread_create(&thread, NULL, first, NULL);
    pthread_create(&thread, NULL, second, NULL);
    sem_wait(&ready), sem_wait(&ready);
    crash_here(3);
    return 0;
}
