/* Counters (eventfd) and epolls. Prints the same on Linux and on Skink. With the argument "cycle" it passes 2,000 tokens between two
 * processes by epolls over counters, pipes and timers, and prints what has arrived: once each, whoever dies meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "show.h"

#define MOST (UINT64_MAX - 1)

static long add(int fd, uint64_t value) { return write(fd, &value, sizeof value); }

static long long take(int fd) {
    uint64_t value;
    return read(fd, &value, sizeof value) == 8 ? (long long)value : -1;
}

static int control(int epoll, int operation, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.u64 = 0x100000000 + fd};
    return epoll_ctl(epoll, operation, fd, &event);
}

/* What is ready now, by descriptor. */
static void ready(const char *what, int epoll, int timeout_ms) {
    struct epoll_event events[16];
    int count = epoll_wait(epoll, events, 16, timeout_ms);
    printf("%s:", what);
    if (count < 0)
        printf(" %s", strerrorname_np(errno));
    for (int fd = 0; fd < 64; fd++)
        for (int i = 0; i < count; i++)
            if (events[i].data.u64 == 0x100000000 + (uint64_t)fd)
                printf(" %d=%x", fd, events[i].events);
    printf("\n");
}

static void counters(void) {
    char small[8];
    show("flags", eventfd(0, 2));
    int fd = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC), posts = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    printf("close on exec: %d, flags %o\n", fcntl(fd, F_GETFD), fcntl(fd, F_GETFL));
    show("add 4", add(fd, 4));
    printf("read %lld\n", take(fd));
    show("read nothing", take(fd));
    printf("posts %lld %lld", take(posts), take(posts));
    printf(" %lld\n", take(posts));
    show("read too little", read(fd, small, 7));
    show("write too little", write(fd, small, 7));
    show("add too much", add(fd, UINT64_MAX));
    show("fill", add(fd, MOST));
    show("add to a full one", add(fd, 1));
    show("add nothing to a full one", add(fd, 0));
    show("bad memory", syscall(SYS_write, fd, 8, 8));
    show("seek", lseek(fd, 100, SEEK_SET));
    show("pread", pread(fd, small, sizeof small, 0));
    struct pollfd asked = {.fd = fd, .events = POLLIN | POLLOUT};
    poll(&asked, 1, 0);
    printf("full: %x", asked.revents);
    take(fd);
    poll(&asked, 1, 0);
    printf(", empty: %x\n", asked.revents);
    close(fd);
    close(posts);
}

static void waits(void) {
    int there = eventfd(0, 0), back = eventfd(0, 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 1; i <= 100; i++)
            if (take(there) != i || add(back, i) != 8)
                _exit(1);
        take(there);
        _exit(add(back, MOST) == 8 && add(back, 5) == 8 ? 0 : 1);
    }
    for (int i = 1; i <= 100; i++)
        if (add(there, i) != 8 || take(back) != i)
            printf("round %d\n", i);
    add(there, 1);
    printf("full: %d,", take(back) == (long long)MOST);
    printf(" then %lld\n", take(back));
    int status;
    waitpid(child, &status, 0);
    printf("child: %d\n", status);
    close(there);
    close(back);
}

static void errors(void) {
    int epoll = epoll_create1(EPOLL_CLOEXEC), fd = eventfd(1, 0), file = open("/etc/passwd", O_RDONLY), dir = open("/", O_RDONLY);
    struct epoll_event event = {.events = EPOLLIN};
    show("create 0", epoll_create(0));
    show("create flags", epoll_create1(1));
    show("file", control(epoll, EPOLL_CTL_ADD, file, EPOLLIN));
    show("directory", control(epoll, EPOLL_CTL_ADD, dir, EPOLLIN));
    show("no descriptor", control(epoll, EPOLL_CTL_ADD, 99, EPOLLIN));
    show("no epoll", control(fd, EPOLL_CTL_ADD, epoll, EPOLLIN));
    show("not open", control(98, EPOLL_CTL_ADD, fd, EPOLLIN));
    show("itself", control(epoll, EPOLL_CTL_ADD, epoll, EPOLLIN));
    show("modify none", control(epoll, EPOLL_CTL_MOD, fd, EPOLLIN));
    show("delete none", epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL));
    show("operation", control(epoll, 9, fd, EPOLLIN));
    show("bad memory", syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, 8));
    show("exclusive for one report", control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT));
    show("exclusive", control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLEXCLUSIVE));
    show("modify exclusive", control(epoll, EPOLL_CTL_MOD, fd, EPOLLIN));
    show("delete", control(epoll, EPOLL_CTL_DEL, fd, 0));
    show("add", control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLWAKEUP));
    show("add again", control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN));
    show("no events", epoll_wait(epoll, &event, 0, 0));
    show("too many events", syscall(SYS_epoll_wait, epoll, &event, 178956971, 0));
    show("wait for no epoll", epoll_wait(fd, &event, 1, 0));
    show("wait, not open", epoll_wait(98, &event, 1, 0));
    show("wait, bad memory", syscall(SYS_epoll_wait, epoll, 8, 1, 0));
    show("mask of another size", syscall(SYS_epoll_pwait, epoll, &event, 1, 0, &event, 4));
    ready("still there", epoll, 0);
    close(fd);
    ready("closed", epoll, 0);
    show("read", read(epoll, &event, sizeof event));
    show("write", write(epoll, &event, sizeof event));
    printf("flags %o, close on exec %d\n", fcntl(epoll, F_GETFL), fcntl(epoll, F_GETFD));
    close(epoll);
    close(file);
    close(dir);
}

static void levels_and_edges(void) {
    int epoll = epoll_create(1), ends[2], pair[2], fd = eventfd(0, EFD_NONBLOCK);
    char buffer[70000] = "";
    pipe2(ends, O_NONBLOCK);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    printf("descriptors %d %d %d %d %d %d\n", epoll, ends[0], ends[1], pair[0], pair[1], fd);
    control(epoll, EPOLL_CTL_ADD, ends[0], EPOLLIN);
    control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET);
    ready("nothing", epoll, 0);
    write(ends[1], "abc", 3);
    add(fd, 1);
    ready("both", epoll, 0);
    ready("level", epoll, 0);
    add(fd, 1);
    ready("another edge", epoll, 0);
    read(ends[0], buffer, 2);
    ready("some left", epoll, 0);
    control(epoll, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLET);
    ready("modified", epoll, 0);
    ready("once", epoll, 0);
    control(epoll, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT);
    ready("one report", epoll, 0);
    write(ends[1], "d", 1);
    ready("no more", epoll, 0);
    control(epoll, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT);
    ready("until modified", epoll, 0);
    control(epoll, EPOLL_CTL_DEL, ends[0], 0);
    control(epoll, EPOLL_CTL_ADD, ends[1], EPOLLOUT | EPOLLET);
    ready("room", epoll, 0);
    while (write(ends[1], buffer, 4096) > 0)
        ;
    ready("full", epoll, 0);
    read(ends[0], buffer, sizeof buffer);
    ready("room again", epoll, 0);
    close(ends[0]);
    ready("no reader", epoll, 0);
    control(epoll, EPOLL_CTL_ADD, pair[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    ready("socket", epoll, 0);
    write(pair[1], "x", 1);
    ready("data", epoll, 0);
    shutdown(pair[1], SHUT_WR);
    ready("shut down", epoll, 0);
    close(pair[1]);
    ready("closed", epoll, 0);
    close(epoll);
    close(ends[1]);
    close(pair[0]);
    close(fd);
}

static void copies(void) {
    int epoll = epoll_create1(0), fd = eventfd(1, 0), copy = dup(fd);
    control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
    show("copy", control(epoll, EPOLL_CTL_ADD, copy, EPOLLIN));
    ready("both", epoll, 0);
    close(fd);
    ready("one closed", epoll, 0);
    close(copy);
    ready("both closed", epoll, 0);
    fd = eventfd(0, 0);
    control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
    pid_t child = fork();
    if (child == 0)
        _exit(add(fd, 1) != 8);
    ready("from a child", epoll, -1);
    waitpid(child, NULL, 0);
    close(fd);
    close(epoll);
}

static void nested(void) {
    int outer = epoll_create1(0), inner = epoll_create1(0), fd = eventfd(0, EFD_NONBLOCK);
    show("inner", control(outer, EPOLL_CTL_ADD, inner, EPOLLIN | EPOLLET));
    show("circle", control(inner, EPOLL_CTL_ADD, outer, EPOLLIN));
    control(inner, EPOLL_CTL_ADD, fd, EPOLLIN);
    ready("nothing", outer, 0);
    add(fd, 1);
    ready("outer", outer, 0);
    ready("outer once", outer, 0);
    ready("inner", inner, 0);
    struct pollfd asked = {.fd = inner, .events = POLLIN};
    printf("poll %d", poll(&asked, 1, 0));
    take(fd);
    printf(", read %d\n", poll(&asked, 1, 0));
    close(outer);
    close(inner);
    close(fd);
}

static void nothing(int signal) { (void)signal; }

static void times(void) {
    int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec soon = {.it_value.tv_nsec = 20000000};
    struct timespec wait = {.tv_nsec = 10000000}, wrong = {.tv_nsec = -1};
    struct epoll_event event;
    control(epoll, EPOLL_CTL_ADD, timer, EPOLLIN);
    printf("time-out %d\n", epoll_wait(epoll, &event, 1, 10));
    show("pwait2", syscall(SYS_epoll_pwait2, epoll, &event, 1, &wait, NULL, 0));
    show("wrong time", syscall(SYS_epoll_pwait2, epoll, &event, 1, &wrong, NULL, 0));
    timerfd_settime(timer, 0, &soon, NULL);
    ready("timer", epoll, -1);
    ready("not read", epoll, 0);
    take(timer);
    ready("read", epoll, 0);
    signal(SIGALRM, nothing);
    ualarm(20000, 0);
    ready("signal", epoll, -1);
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGALRM);
    show("pwait", epoll_pwait(epoll, &event, 1, -1, &none));
    close(epoll);
    close(timer);
}

enum { ROUNDS = 2000 };

/* Both sides wait in an epoll; tokens go by a counter one way and by a pipe back. A timer adds an event now and then. */
static int serve(int counter, int out, int rounds) {
    int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), ticks = 0;
    struct itimerspec often = {.it_value.tv_nsec = 1000000, .it_interval.tv_nsec = 1000000};
    control(epoll, EPOLL_CTL_ADD, counter, EPOLLIN | EPOLLET);
    control(epoll, EPOLL_CTL_ADD, timer, EPOLLIN | EPOLLONESHOT);
    timerfd_settime(timer, 0, &often, NULL);
    for (uint32_t sum = 0; sum < (uint32_t)rounds;) {
        struct epoll_event event;
        if (epoll_wait(epoll, &event, 1, -1) != 1)
            return 2;
        if (event.data.u64 == 0x100000000 + (uint64_t)timer) {
            ticks += take(timer) > 0;
            if (control(epoll, EPOLL_CTL_MOD, timer, EPOLLIN | EPOLLONESHOT) != 0)
                return 3;
            continue;
        }
        long long got = take(counter);
        if (got > 0) {
            sum += got;
            if (write(out, &sum, sizeof sum) != sizeof sum)
                return 4;
        }
    }
    return ticks > 0 ? 0 : 5;
}

static int cycle(void) {
    int counter = eventfd(0, EFD_NONBLOCK), ends[2], epoll = epoll_create1(0);
    pipe(ends);
    pid_t child = fork();
    if (child == 0)
        _exit(serve(counter, ends[1], ROUNDS));
    control(epoll, EPOLL_CTL_ADD, ends[0], EPOLLIN);
    uint32_t seen = 0;
    for (uint32_t sent = 1; sent <= ROUNDS; sent++) {
        struct epoll_event event;
        if (add(counter, 1) != 8 || epoll_wait(epoll, &event, 1, -1) != 1 || read(ends[0], &seen, 4) != 4 || seen != sent) {
            printf("sent %u, seen %u: %s\n", sent, seen, strerror(errno));
            return 1;
        }
    }
    int status;
    waitpid(child, &status, 0);
    printf("%u tokens, child %d\n", seen, WEXITSTATUS(status));
    return 0;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "cycle") == 0)
        return cycle();
    counters();
    waits();
    errors();
    levels_and_edges();
    copies();
    nested();
    times();
    return 0;
}
