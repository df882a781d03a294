/* Random calls in batches: each batch is made by a child without privileges, in a directory of its own, and a child that gets stuck is
 * killed. Shared by chaos and plausible. */
#pragma once

#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 2000, NOBODY = 65534 };

/* Calls made so far by the present child, so that its successor does the rest. Shared memory. */
static volatile uint64_t *done;
static uint64_t random_state;

/* xorshift64*: the same calls for the same seed. */
static uint64_t random_number(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull;
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* Ends calls that wait: every 5 ms a signal interrupts. */
static void start_interruptions(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval interval = {{0, 5000}, {0, 5000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &interval, NULL);
}

/* Gives up all privileges, in a directory that others may write to. */
static void become_nobody(const char *directory)
{
    setpgid(0, 0);
    if (chdir(directory) != 0 || setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        _exit(1);
}

/* Waits for the child; one that makes no progress for a second is killed. */
static void supervise(pid_t child)
{
    uint64_t before = -1ull;
    for (;;) {
        struct timespec pause = {0, 10000000};
        for (int i = 0; i < 100; i++) {
            if (waitpid(child, NULL, WNOHANG) == child) {
                kill(-child, SIGKILL);
                return;
            }
            nanosleep(&pause, NULL);
        }
        if (*done == before) {
            kill(child, SIGKILL);
            kill(-child, SIGKILL);
        }
        before = *done;
    }
}

/* Makes so many calls, each by `call`, after `prepare` in each child. Returns the exit status of the program. */
static int run_batches(int argc, char **argv, const char *directory, void (*prepare)(void), void (*call)(void))
{
    uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    if (calls == 0) {
        fprintf(stderr, "usage: %s CALLS [SEED]\n", argv[0]);
        return 2;
    }
    done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (done == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    mkdir(directory, 0777);
    chmod(directory, 0777);

    uint64_t batches = 0;
    for (uint64_t made = 0; made < calls; batches++) {
        uint64_t batch = calls - made < BATCH ? calls - made : BATCH;
        *done = 0;
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child == 0) {
            prepare();
            become_nobody(directory);
            start_interruptions();
            random_state = seed * 1000003 + batches + 1;
            while (*done < batch) {
                ++*done;
                call();
            }
            _exit(0);
        }
        supervise(child);
        if (*done == 0) {
            fprintf(stderr, "%s: a child could not start\n", argv[0]);
            return 1;
        }
        /* The child may have overwritten the counter itself. */
        made += *done <= batch ? *done : batch;
    }
    printf("%llu calls by %llu children\n", (unsigned long long)calls, (unsigned long long)batches);
    return 0;
}
