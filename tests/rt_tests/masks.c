// Waits as make's job server does: SIGCHLD is blocked but during pselect, whose end by it must not be lost. The same with ppoll; and what
// becomes of splice, which grep tries before it reads.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 60, AT_ONCE = 3 };

static volatile sig_atomic_t ended;

static void child_ended(int signal)
{
    (void)signal;
    ended++;
}

static int wait_masked(int round, const sigset_t *mask)
{
    struct timespec limit = {20, 0};
    return round % 2 ? pselect(0, 0, 0, 0, &limit, mask) : ppoll(0, 0, &limit, mask);
}

static void start_job(int number)
{
    if (fork() == 0) {
        usleep(number % 4 * 3000);
        _exit(0);
    }
}

int main(void)
{
    sigset_t child, empty, now;
    sigemptyset(&empty);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, 0);
    signal(SIGCHLD, child_ended);
    int started = 0, reaped = 0, interrupted = 0;
    while (reaped < JOBS) {
        while (started < JOBS && started - reaped < AT_ONCE)
            start_job(started++);
        pid_t job;
        while ((job = waitpid(-1, 0, WNOHANG)) > 0)
            reaped++;
        if (reaped < started && job == 0) {
            if (wait_masked(started, &empty) != -1 || errno != EINTR) {
                printf("a wait did not end by a signal\n");
                return 1;
            }
            interrupted++;
        }
    }
    sigprocmask(SIG_SETMASK, 0, &now);
    printf("%d jobs, mask %s, signals %s\n", reaped, sigismember(&now, SIGCHLD) ? "kept" : "lost",
           interrupted > 0 && ended > 0 ? "seen" : "missed");
    int ends[2];
    if (pipe(ends) || write(ends[1], "x", 1) != 1)
        return 1;
    struct pollfd ready = {ends[0], POLLIN, 0};
    struct timespec limit = {5, 0};
    printf("ready: %d\n", ppoll(&ready, 1, &limit, &empty));
    limit.tv_sec = 0;
    raise(SIGCHLD);
    printf("pending, no wait: %s\n", pselect(0, 0, 0, 0, &limit, &empty) == -1 && errno == EINTR ? "EINTR" : "0");
    int file = open("/tmp/masks", O_WRONLY | O_CREAT | O_APPEND, 0600);
    printf("splice: %s\n", splice(ends[0], 0, file, 0, 1, 0) == -1 && errno == EINVAL ? "EINVAL" : "done");
}
