/* How many boxes a user gets from a broker: members of which each sends to all that come after it.
 *
 * usage: boxes FIRST COUNT    binds so many processes to slots of system processes from FIRST on, and prints how many boxes they have got and how many were refused;
 *                             they stay until standard input ends
 */
#include <m3ipc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What all processes count. */
static struct {
    atomic_int bound, done, made, refused, strange;
} *shared;

static void wait_for(atomic_int *counter, int count)
{
    while (atomic_load(counter) < count)
        usleep(1000);
}

static void send_to_later_ones(int own, int first, int count)
{
    message m = {.m_type = 1};
    if (mnx_bind(0, own) != own)
        atomic_fetch_add(&shared->strange, 1);
    atomic_fetch_add(&shared->bound, 1);
    wait_for(&shared->bound, count);
    for (int peer = own + 1; peer < first + count; peer++) {
        int got = mnx_send_T(peer, &m, 0);
        atomic_fetch_add(got == EMOLAGAIN ? &shared->made : got == EMOLNOMEM ? &shared->refused : &shared->strange, 1);
    }
    atomic_fetch_add(&shared->done, 1);
    pause();
}

int main(int words, char **word)
{
    if (words < 3)
        return 2;
    int first = atoi(word[1]), count = atoi(word[2]);
    char byte;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *pids = calloc(count, sizeof *pids);
    for (int i = 0; i < count; i++)
        if ((pids[i] = fork()) == 0)
            send_to_later_ones(first + i, first, count);
    wait_for(&shared->done, count);
    printf("%d boxes, %d refused, %d strange\n", shared->made, shared->refused, shared->strange);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    for (int i = 0; i < count; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    return 0;
}
