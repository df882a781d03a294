/* Kills one of two processes that talk, at a moment that differs each time, and has the other say what it was told and how soon.
 *
 * usage: deaths ROUNDS. Prints a line of counts and the median and worst delay, and fails when a survivor was told something else, or nothing.
 */
#define _GNU_SOURCE
#include <m3ipc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct shared {
    volatile long told_ns;
    volatile int told;
    volatile long done;
} *shared;

static long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000l + now.tv_nsec;
}

static void told(int error)
{
    shared->told = error;
    shared->told_ns = now_ns();
    exit(0);
}

static void server(void)
{
    message m;
    for (;;) {
        int got = mnx_receive(3, &m);
        if (got != 0)
            told(got);
        m.m1_i1++;
        got = mnx_send(3, &m);
        if (got != 0)
            told(got);
    }
}

static void client(void)
{
    message m;
    memset(&m, 0, sizeof m);
    for (int i = 0;; i++) {
        m.m1_i1 = i;
        int got = mnx_sendrec(2, &m);
        if (got != 0)
            told(got);
        if (m.m1_i1 != i + 1)
            told(1);
        shared->done++;
    }
}

static pid_t spawn(int p_nr, void (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        mnx_wait4bind();
        mnx_wait4bindep(2);
        mnx_wait4bindep(3);
        body();
    }
    mnx_lclbind(0, pid, p_nr);
    return pid;
}

static int ascending(const void *one, const void *other)
{
    return (*(long *)one > *(long *)other) - (*(long *)one < *(long *)other);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, wrong = 0;
    long *delays = calloc(rounds, sizeof *delays);
    VM_usr_t vm = {.vm_vmid = 0, .vm_name = "deaths"};
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mnx_drvs_init(0, NULL);
    mnx_vm_init(&vm);
    mnx_bind(0, 1);
    for (int round = 0; round < rounds; round++) {
        shared->told = 0;
        shared->done = 0;
        pid_t pids[2] = {spawn(2, server), spawn(3, client)};
        while (shared->done == 0)
            usleep(100);
        usleep(round * 37 % 2000);
        int victim = round % 2;
        long killed_ns = now_ns();
        kill(pids[victim], SIGKILL);
        waitpid(pids[victim], NULL, 0);
        waitpid(pids[!victim], NULL, 0);
        int error = shared->told, good = error == EMOLSRCDIED || error == EMOLDSTDIED || error == EMOLDEADSRCDST;
        if (!good) {
            printf("round %d: told %d\n", round, error);
            wrong++;
        }
        delays[round] = shared->told_ns - killed_ns;
        mnx_wait4unbind(2);
        mnx_wait4unbind(3);
    }
    qsort(delays, rounds, sizeof *delays, ascending);
    printf("%d deaths, %d wrong; told after %ld us (median), %ld us (worst)\n", rounds, wrong, delays[rounds / 2] / 1000,
           delays[rounds - 1] / 1000);
    return wrong != 0;
}
