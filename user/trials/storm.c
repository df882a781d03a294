/* storm: what a user can do to the process manager with signals and timers.
 * usage: storm signals|timers PROCESSES
 * `signals`: each process queues signals to itself until it is refused. `timers`: each runs as many interval timers of 1 us as it gets, at
 * most 200, whose signal it blocks. When all have begun, it tells how many signals or timers there are, and they wait to be killed. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TIMERS = 200 };

static unsigned queue_signals(void)
{
    unsigned queued = 0;
    while (sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ 0 }) == 0)
        queued++;
    return errno == EAGAIN ? queued : 0;
}

static unsigned run_timers(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1 };
    struct itimerspec often = { { 0, 1000 }, { 0, 1000 } };
    unsigned made = 0;
    timer_t timer;
    while (made < TIMERS && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
        timer_settime(timer, 0, &often, NULL);
        made++;
    }
    return made;
}

int main(int argc, char **argv)
{
    int timers = argc == 3 && strcmp(argv[1], "timers") == 0;
    int processes = argc == 3 ? atoi(argv[2]) : 0;
    int ready[2];
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    if (pipe(ready) != 0)
        return 1;
    for (int i = 0; i < processes; i++) {
        if (fork() != 0)
            continue;
        unsigned count = timers ? run_timers() : queue_signals();
        if (write(ready[1], &count, sizeof count) != sizeof count)
            return 1;
        for (;;)
            pause();
    }
    unsigned sum = 0, count;
    for (int i = 0; i < processes && read(ready[0], &count, sizeof count) == sizeof count; i++)
        sum += count;
    printf("%s: %u\n", argv[1], sum);
    fflush(stdout);
    for (;;)
        pause();
}
