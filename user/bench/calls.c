/* The cost of single system calls: getppid, a clock read in the vDSO and by the call, a futex with inheritance that nobody waits for, one byte
 * to and from the memory devices, a poll of a pipe that is empty, a counter that is added to and read, a signal that is read, and the counter
 * seen by an epoll, alone and beside idle descriptors; sockets that are made, connected and closed; a descriptor that is sent; then messages of
 * 64 bytes there and back between two processes. */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ticks.h"

enum { ROUNDS = 1000, IDLE = 10000 };

static void bench_getppid(void)
{
    syscall(SYS_getppid);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        syscall(SYS_getppid);
    report("getppid", start, ticks(), ROUNDS);
}

/* As C libraries read it, and by the call. */
static void bench_clock(void)
{
    struct timespec now;
    check(clock_gettime(CLOCK_MONOTONIC, &now) == 0, "clock_gettime");
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(clock_gettime(CLOCK_MONOTONIC, &now) == 0, "clock_gettime");
    report("clock_gettime", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0, "clock_gettime by the call");
    report("clock_gettime_call", start, ticks(), ROUNDS);
}

/* Through the kernel, where a C library would not go without waiters. */
static void bench_pi_futex(void)
{
    static uint32_t word;
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        check(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0) == 0, "FUTEX_LOCK_PI");
        check(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0) == 0, "FUTEX_UNLOCK_PI");
    }
    report("lock_pi_unlock_pi", start, ticks(), ROUNDS);
}

static void bench_device(const char *name, const char *path, int writes)
{
    char byte = 0;
    int fd = open(path, O_RDWR);
    check(fd >= 0, path);
    check((writes ? write(fd, &byte, 1) : read(fd, &byte, 1)) == 1, path);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check((writes ? write(fd, &byte, 1) : read(fd, &byte, 1)) == 1, path);
    report(name, start, ticks(), ROUNDS);
    close(fd);
}

static void bench_poll_idle(void)
{
    int ends[2];
    check(pipe(ends) == 0, "pipe");
    struct pollfd idle = {.fd = ends[0], .events = POLLIN};
    check(poll(&idle, 1, 0) == 0, "poll");
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(poll(&idle, 1, 0) == 0, "poll");
    report("poll_idle", start, ticks(), ROUNDS);
    close(ends[0]);
    close(ends[1]);
}

static void bench_eventfd(void)
{
    uint64_t value = 1;
    int fd = eventfd(0, 0);
    check(fd >= 0, "eventfd");
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(write(fd, &value, 8) == 8 && read(fd, &value, 8) == 8, "eventfd");
    report("eventfd_write_read", start, ticks(), ROUNDS);
    close(fd);
}

/* A signal to itself, and the read that takes it. */
static void bench_signalfd(void)
{
    struct signalfd_siginfo info;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, 0);
    check(fd >= 0, "signalfd");
    pid_t self = getpid();
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(kill(self, SIGUSR1) == 0 && read(fd, &info, sizeof info) == sizeof info, "signalfd");
    report("signalfd_kill_read", start, ticks(), ROUNDS);
    close(fd);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int registered(int epoll)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fd = eventfd(0, 0);
    check(fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "registration");
    return fd;
}

/* A write, a wait that finds it, a read. */
static void bench_epoll_cycle(const char *name, int epoll, int fd)
{
    _Alignas(16) struct epoll_event event;
    uint64_t value = 1;
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        check(write(fd, &value, 8) == 8 && epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");
        check(read(fd, &value, 8) == 8, "read");
    }
    report(name, start, ticks(), ROUNDS);
}

static void bench_epoll(void)
{
    struct rlimit limit = {IDLE + 100, IDLE + 100};
    struct epoll_event event;
    int epoll = epoll_create1(0), fd = registered(epoll);
    check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(epoll_wait(epoll, &event, 1, 0) == 0, "epoll_wait");
    report("epoll_wait_empty", start, ticks(), ROUNDS);
    bench_epoll_cycle("epoll_cycle", epoll, fd);
    for (int i = 0; i < IDLE; i++)
        registered(epoll);
    bench_epoll_cycle("epoll_cycle_10000_idle", epoll, fd);
}

static void bench_making_sockets(void)
{
    int pair[2];
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        close(socket(AF_UNIX, SOCK_STREAM, 0));
    report("socket_close", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
        close(pair[0]);
        close(pair[1]);
    }
    report("socketpair_close", start, ticks(), ROUNDS);
}

/* socket, connect, accept and close of both ends, in one process, by an abstract name. */
static void bench_connecting(void)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0bench" };
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 6;
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    check(bind(server, (void *) &name, length) == 0, "bind");
    check(listen(server, 5) == 0, "listen");
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        int client = socket(AF_UNIX, SOCK_STREAM, 0);
        check(connect(client, (void *) &name, length) == 0, "connect");
        int accepted = accept(server, NULL, NULL);
        check(accepted >= 0, "accept");
        close(accepted);
        close(client);
    }
    report("connect_accept_close", start, ticks(), ROUNDS);
    close(server);
}

/* One descriptor, sent, received and closed, in one process. */
static void bench_rights(void)
{
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr head; } control;
    char byte = 0;
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control };
    int pair[2], file = open("/dev/null", O_RDONLY);
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    uint64_t start = 0;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        if (i == ROUNDS)
            start = ticks();
        control.head = (struct cmsghdr) { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
        *(int *) CMSG_DATA(&control.head) = file;
        message.msg_controllen = sizeof control;
        check(sendmsg(pair[0], &message, 0) == 1, "sendmsg");
        message.msg_controllen = sizeof control;
        check(recvmsg(pair[1], &message, 0) == 1 && message.msg_controllen == sizeof control, "recvmsg");
        close(*(int *) CMSG_DATA(&control.head));
    }
    report("rights_send_receive_close", start, ticks(), ROUNDS);
    close(pair[0]), close(pair[1]), close(file);
}

static void bench_round_trip(const char *what, int kind)
{
    char message[64] = { 0 };
    int pair[2];
    check(socketpair(AF_UNIX, kind, 0, pair) == 0, "socketpair");
    if (fork() == 0) {
        for (int i = 0; i < 2 * ROUNDS; i++) {
            read(pair[1], message, sizeof message);
            write(pair[1], message, sizeof message);
        }
        _exit(0);
    }
    uint64_t start = 0;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        if (i == ROUNDS)
            start = ticks();
        write(pair[0], message, sizeof message);
        check(read(pair[0], message, sizeof message) == sizeof message, what);
    }
    report(what, start, ticks(), ROUNDS);
    wait(NULL);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    bench_getppid();
    bench_clock();
    bench_pi_futex();
    bench_device("write_null", "/dev/null", 1);
    bench_device("read_zero", "/dev/zero", 0);
    bench_poll_idle();
    bench_eventfd();
    bench_signalfd();
    bench_epoll();
    bench_making_sockets();
    bench_connecting();
    bench_rights();
    bench_round_trip("socket_stream_64", SOCK_STREAM);
    bench_round_trip("socket_packet_64", SOCK_SEQPACKET);
    bench_round_trip("socket_datagram_64", SOCK_DGRAM);
    return 0;
}
