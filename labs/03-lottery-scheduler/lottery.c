/* A lottery scheduler in user space: `lottery TICKETS TICKETS` prints how far each of two processes has counted in 3 s.
 * `draw` is yours to write. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 2, QUANTA = 300, QUANTUM_NS = 10 * 1000 * 1000, SCHEDULER = 50, WINNER = 10 };

/* The process that holds the ticket drawn by `number`, any number of 31 bits. */
static int draw(const unsigned tickets[PROCESSES], unsigned number)
{
    (void)tickets;
    (void)number;
    return 0;
}

static void schedule(pid_t pid, int priority)
{
    struct sched_param parameters = {.sched_priority = priority};
    if (sched_setscheduler(pid, priority ? SCHED_FIFO : SCHED_OTHER, &parameters) != 0) {
        perror("sched_setscheduler");
        exit(1);
    }
}

int main(int count, char **arguments)
{
    if (count != 1 + PROCESSES)
        return 2;
    unsigned tickets[PROCESSES];
    volatile unsigned long *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[PROCESSES];
    schedule(0, SCHEDULER);
    for (int i = 0; i < PROCESSES; i++) {
        tickets[i] = strtoul(arguments[1 + i], NULL, 10);
        pids[i] = fork();
        if (pids[i] == 0) {
            schedule(0, 0);
            for (;;)
                counts[i]++;
        }
    }
    srandom(1);
    int winner = -1;
    for (int quantum = 0; quantum < QUANTA; quantum++) {
        int next = draw(tickets, random());
        if (next != winner) {
            if (winner >= 0)
                schedule(pids[winner], 0);
            schedule(pids[next], WINNER);
            winner = next;
        }
        nanosleep(&(struct timespec){.tv_nsec = QUANTUM_NS}, NULL);
    }
    for (int i = 0; i < PROCESSES; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < PROCESSES; i++)
        waitpid(pids[i], NULL, 0);
    printf("%lu %lu\n", counts[0], counts[1]);
    return 0;
}
