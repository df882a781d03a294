/* Timers behind descriptors. Prints the same on Linux and on Skink. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "show.h"

static struct itimerspec every(long first_ms, long interval_ms) {
    return (struct itimerspec){
        .it_value = {first_ms / 1000, first_ms % 1000 * 1000000},
        .it_interval = {interval_ms / 1000, interval_ms % 1000 * 1000000},
    };
}

static int64_t now_ms(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static long expired(int timer) {
    uint64_t count;
    ssize_t bytes = read(timer, &count, sizeof count);
    return bytes < 0 ? -1 : bytes != 8 ? -2 : (long)count;
}

static void errors(void) {
    struct itimerspec spec = every(10, 0), wrong = every(10, 0), negative = every(10, 0);
    wrong.it_interval.tv_nsec = 1000000000;
    negative.it_value.tv_sec = -1;
    char small[4];
    show("clock", timerfd_create(77, 0));
    show("processor's clock", timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
    show("flags", timerfd_create(CLOCK_MONOTONIC, 1));
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    printf("close on exec: %d, flags %o\n", fcntl(timer, F_GETFD), fcntl(timer, F_GETFL));
    show("not set", expired(timer));
    show("set with flags", timerfd_settime(timer, 8, &spec, NULL));
    show("set to nonsense", timerfd_settime(timer, 0, &wrong, NULL));
    show("set to the past", timerfd_settime(timer, 0, &negative, NULL));
    show("set from bad memory", syscall(SYS_timerfd_settime, timer, 0, 8, NULL));
    show("no descriptor", timerfd_settime(1000, 0, &spec, NULL));
    show("no timer", timerfd_settime(1, 0, &spec, NULL));
    show("get no timer", timerfd_gettime(1, &spec));
    show("get to bad memory", syscall(SYS_timerfd_gettime, timer, 8));
    show("read too little", read(timer, small, sizeof small));
    show("write", write(timer, "12345678", 8));
    struct stat stat;
    show("fstat", fstat(timer, &stat));
    printf("mode %o\n", stat.st_mode);
    close(timer);
}

static void once(clockid_t clock, const char *name) {
    struct itimerspec spec = every(50, 0), old;
    int timer = timerfd_create(clock, 0);
    int64_t start = now_ms(CLOCK_MONOTONIC);
    printf("%s: ", name);
    show("set", timerfd_settime(timer, 0, &spec, NULL));
    timerfd_gettime(timer, &spec);
    printf("left: %d\n", spec.it_value.tv_sec == 0 && spec.it_value.tv_nsec > 0 && spec.it_value.tv_nsec <= 50000000);
    show("expired", expired(timer));
    printf("after its time: %d\n", now_ms(CLOCK_MONOTONIC) - start >= 49);
    timerfd_gettime(timer, &spec);
    printf("left: %ld\n", spec.it_value.tv_sec + spec.it_value.tv_nsec);

    int64_t at = now_ms(clock) + 60;
    spec = every(at, 0);
    show("absolute", timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL));
    show("expired", expired(timer));
    printf("in time: %d\n", now_ms(clock) >= at);
    spec = every(1000, 0);
    show("absolute in the past", timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL));
    show("expired", expired(timer));
    spec = every(100000, 7000);
    timerfd_settime(timer, 0, &spec, NULL);
    spec = every(0, 0);
    show("disarmed", timerfd_settime(timer, 0, &spec, &old));
    printf("was: %d, every %ld\n", old.it_value.tv_sec > 90, old.it_interval.tv_sec);
    close(timer);
}

static void periodic(void) {
    struct itimerspec spec = every(30, 20);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct pollfd poll_timer = {timer, POLLIN | POLLOUT, 0};
    timerfd_settime(timer, 0, &spec, NULL);
    show("poll at once", poll(&poll_timer, 1, 0));
    show("read at once", expired(timer));
    show("poll", poll(&poll_timer, 1, 60000));
    printf("ready for %x\n", poll_timer.revents);
    usleep(100000);
    printf("expired more than thrice: %d\n", expired(timer) > 3);
    fcntl(timer, F_SETFL, 0);
    long sum = 0;
    for (int i = 0; i < 10; i++) sum += expired(timer) > 0;
    printf("%ld reads\n", sum);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(timer, &set);
    struct timeval long_time = {60, 0};
    show("select", select(timer + 1, &set, NULL, NULL, &long_time));
    timerfd_gettime(timer, &spec);
    printf("every %ld\n", spec.it_interval.tv_nsec);

    int other = timerfd_create(CLOCK_MONOTONIC, 0);
    spec = every(1, 0);
    timerfd_settime(other, 0, &spec, NULL);
    spec = every(60000, 0);
    timerfd_settime(timer, 0, &spec, NULL);
    struct pollfd both[2] = {{timer, POLLIN, 0}, {other, POLLIN, 0}};
    show("poll two", poll(both, 2, -1));
    printf("ready for %x and %x\n", both[0].revents, both[1].revents);
    show("poll in vain", poll(both, 1, 30));

    fflush(stdout);
    if (fork() == 0) {
        usleep(50000);
        spec = every(1, 0);
        timerfd_settime(timer, 0, &spec, NULL);
        _exit(0);
    }
    show("set by a child while a read waits", expired(timer));
    wait(NULL);
    fflush(stdout);
    spec = every(50, 0);
    timerfd_settime(timer, 0, &spec, NULL);
    if (fork() == 0) _exit(expired(timer) != 1);
    int status;
    wait(&status);
    printf("read by a child: %d\n", status);
}

static void on_alarm(int signal) {
    (void)signal;
}

static void interrupted(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    alarm(1);
    show("read with a signal", expired(timer));
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerspec spec = every(1300, 0);
    timerfd_settime(timer, 0, &spec, NULL);
    alarm(1);
    show("restarted", expired(timer));
}

/* A hundred expirations, whatever happens to the server. */
static void counting(void) {
    struct itimerspec spec = every(20, 20);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    int64_t before_start = now_ms(CLOCK_MONOTONIC);
    timerfd_settime(timer, 0, &spec, NULL);
    int64_t after_start = now_ms(CLOCK_MONOTONIC);
    long sum = 0;
    int early = 0, lost = 0;
    while (sum < 100) {
        int64_t asked = now_ms(CLOCK_MONOTONIC);
        sum += expired(timer);
        /* A read counts all that expired before it, and nothing that expires after it; the stamps are whole milliseconds. */
        lost |= sum * 20 + 21 < asked - after_start;
        early |= sum * 20 - 1 > now_ms(CLOCK_MONOTONIC) - before_start;
    }
    printf("neither early nor lost: %d\n", !early && !lost);
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (count > 1 && !strcmp(arguments[1], "count")) {
        counting();
        return 0;
    }
    errors();
    once(CLOCK_MONOTONIC, "monotonic");
    once(CLOCK_REALTIME, "real time");
    once(CLOCK_BOOTTIME, "since boot");
    periodic();
    interrupted();
    counting();
    return 0;
}
