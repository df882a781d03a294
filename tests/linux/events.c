/* poll, ppoll, select, pselect, epoll, eventfd. It is long because it is a list. */
#include "behaviour.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static int in, out;
static void new_pipe(void) {
    int ends[2];
    must(pipe(ends));
    in = ends[0];
    out = ends[1];
}

static long poll_one(int fd, short events, int timeout) {
    struct pollfd asked = {.fd = fd, .events = events, .revents = 0x7777};
    long result = poll(&asked, 1, timeout);
    show(result);
    if (result >= 0)
        note("%x", asked.revents);
    return result;
}

static long control(int epoll, int operation, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(epoll, operation, fd, &event);
}

/* Shows the number of events, and each: descriptor and events. */
static void show_ready(int epoll) {
    struct epoll_event events[8];
    int count = epoll_wait(epoll, events, 8, 0);
    show(count);
    for (int i = 0; i < count; i++)
        note("%d:%x", events[i].data.fd, events[i].events);
}

static long add(int fd, uint64_t value) { return write(fd, &value, sizeof value); }
static void show_count(int fd) {
    uint64_t value;
    if (read(fd, &value, sizeof value) == sizeof value)
        note("%llu", (unsigned long long)value);
    else
        show(-1);
}

BEHAVIOUR("poll with bad memory, too many descriptors, none") {
    struct pollfd asked = {.fd = 0, .events = POLLIN};
    struct rlimit few = {10, 10};
    show(poll(bad(), 1, 0));
    show(poll(bad(), 0, 0));
    setrlimit(RLIMIT_NOFILE, &few);
    show(poll(&asked, 11, 0));
}
BEHAVIOUR("poll of a bad descriptor is POLLNVAL, of a negative one nothing") {
    poll_one(99, POLLIN, 0);
    poll_one(-1, POLLIN, 0);
}
BEHAVIOUR("poll of a file is always ready") {
    make("f", "");
    poll_one(open("f", O_RDWR), POLLIN | POLLOUT | POLLPRI, 0);
    poll_one(0, POLLIN | POLLOUT, 0);
}
BEHAVIOUR("poll waits for its time-out") {
    new_pipe();
    long long before = now_ms();
    poll_one(in, POLLIN, 20);
    note("%d", now_ms() - before >= 20);
}
BEHAVIOUR("poll wakes when something comes") {
    new_pipe();
    pid_t child = fork();
    if (child == 0) {
        sleep_ms(10);
        write(out, "x", 1);
        _exit(0);
    }
    poll_one(in, POLLIN, 5000);
    wait_for(child);
}
BEHAVIOUR("poll is interrupted, whatever SA_RESTART says") {
    pid_t child = fork();
    if (child == 0) {
        handle(SIGUSR1, SA_RESTART);
        new_pipe();
        poll_one(in, POLLIN, 5000);
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    wait_for(child);
}
BEHAVIOUR("POLLHUP and POLLERR come unasked") {
    new_pipe();
    close(out);
    poll_one(in, 0, 0);
    new_pipe();
    close(in);
    poll_one(out, 0, 0);
}
BEHAVIOUR("poll of the same descriptor twice counts twice") {
    struct pollfd asked[2] = {{.fd = 0, .events = POLLIN}, {.fd = 0, .events = POLLOUT}};
    show(poll(asked, 2, 0));
    note("%x %x", asked[0].revents, asked[1].revents);
}
BEHAVIOUR("an O_PATH descriptor is POLLNVAL") { poll_one(open(".", O_PATH), POLLIN, 0); }
BEHAVIOUR("ppoll with bad times and a mask of another size") {
    struct timespec wrong = {0, 1000000000}, negative = {-1, 0};
    unsigned long mask = 0;
    show(syscall(SYS_ppoll, NULL, 0, &wrong, NULL, 8));
    show(syscall(SYS_ppoll, NULL, 0, &negative, NULL, 8));
    show(syscall(SYS_ppoll, NULL, 0, bad(), NULL, 8));
    show(syscall(SYS_ppoll, NULL, 0, &wrong, &mask, 4));
}
BEHAVIOUR("ppoll: a pending signal that its mask lets through interrupts, and the mask returns") {
    struct timespec time = {5, 0};
    sigset_t none = set_of(0), now;
    handle(SIGUSR1, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    new_pipe();
    struct pollfd asked = {.fd = in, .events = POLLIN};
    show(ppoll(&asked, 1, &time, &none));
    sigprocmask(SIG_BLOCK, NULL, &now);
    note("%d %d", handled, sigismember(&now, SIGUSR1));
}
BEHAVIOUR("ppoll that finds something ready leaves the signal pending") {
    struct timespec time = {5, 0};
    sigset_t none = set_of(0), pending;
    handle(SIGUSR1, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    struct pollfd asked = {.fd = 0, .events = POLLIN};
    show(ppoll(&asked, 1, &time, &none));
    sigpending(&pending);
    note("%d %d", handled, sigismember(&pending, SIGUSR1));
}
BEHAVIOUR("pselect and epoll_pwait that find something ready leave the signal pending, else it ends them") {
    struct timespec time = {5, 0};
    sigset_t none = set_of(0), pending;
    int fds[2], epoll = must(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    fd_set set;
    must(pipe(fds));
    must(write(fds[1], "x", 1));
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event));
    handle(SIGUSR1, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    show(pselect(fds[0] + 1, &set, NULL, NULL, &time, &none));
    show(epoll_pwait(epoll, &event, 1, 5000, &none));
    sigpending(&pending);
    note("%d %d", handled, sigismember(&pending, SIGUSR1));
    show_read(fds[0], 1);
    show(epoll_pwait(epoll, &event, 1, 0, &none));
    sigpending(&pending);
    note("%d %d", handled, sigismember(&pending, SIGUSR1));
}
BEHAVIOUR("select with bad counts, descriptors, times, memory") {
    fd_set set;
    struct timeval negative = {-1, 0}, zero = {0, 0};
    FD_ZERO(&set);
    show(select(-1, &set, NULL, NULL, &zero));
    FD_SET(9, &set);
    show(select(10, &set, NULL, NULL, &zero));
    show(select(0, NULL, NULL, NULL, &negative));
    show(select(10, bad(), NULL, NULL, &zero));
    show(syscall(SYS_select, 0, NULL, NULL, NULL, bad()));
}
BEHAVIOUR("select clears the descriptors that are not ready, and counts bits") {
    fd_set readers, writers;
    struct timeval zero = {0, 0};
    new_pipe();
    FD_ZERO(&readers);
    FD_ZERO(&writers);
    FD_SET(0, &readers);
    FD_SET(in, &readers);
    FD_SET(0, &writers);
    FD_SET(out, &writers);
    show(select(10, &readers, &writers, NULL, &zero));
    note("%d%d %d%d", FD_ISSET(0, &readers), FD_ISSET(in, &readers), FD_ISSET(0, &writers), FD_ISSET(out, &writers));
}
BEHAVIOUR("select: the end of a pipe is readable, a pipe without readers writable") {
    fd_set readers, writers;
    struct timeval zero = {0, 0};
    new_pipe();
    int end = in;
    close(out);
    new_pipe();
    close(in);
    FD_ZERO(&readers);
    FD_ZERO(&writers);
    FD_SET(end, &readers);
    FD_SET(out, &writers);
    show(select(10, &readers, &writers, NULL, &zero));
}
BEHAVIOUR("select writes back what is left of its time") {
    struct timeval time = {5, 0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(0, &set);
    show(select(1, &set, NULL, NULL, &time));
    note("%d", time.tv_sec <= 5 && time.tv_sec >= 4);
    time = (struct timeval){0, 10000};
    show(syscall(SYS_select, 0, NULL, NULL, NULL, &time));
    note("%ld %ld", (long)time.tv_sec, (long)time.tv_usec);
}
BEHAVIOUR("pselect: a pending signal that its mask lets through interrupts") {
    struct timespec time = {5, 0};
    sigset_t none = set_of(0);
    handle(SIGUSR1, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    show(pselect(0, NULL, NULL, NULL, &time, &none));
    show(handled);
}
BEHAVIOUR("epoll_create with size 0, unknown flags") {
    show(epoll_create(0));
    show(epoll_create1(77));
    show(epoll_create1(EPOLL_CLOEXEC));
    show(fcntl(3, F_GETFD));
}
BEHAVIOUR("epoll_ctl with bad descriptors") {
    int epoll = epoll_create1(0);
    make("f", "");
    show(control(99, EPOLL_CTL_ADD, 0, EPOLLIN));
    show(control(epoll, EPOLL_CTL_ADD, 99, EPOLLIN));
    show(control(0, EPOLL_CTL_ADD, epoll, EPOLLIN));
    show(control(epoll, EPOLL_CTL_ADD, epoll, EPOLLIN));
    show(control(epoll, EPOLL_CTL_ADD, open("f", O_RDONLY), EPOLLIN));
}
BEHAVIOUR("epoll_ctl: added twice, changed and removed without having been added") {
    int epoll = epoll_create1(0);
    new_pipe();
    show(control(epoll, EPOLL_CTL_MOD, in, EPOLLIN));
    show(control(epoll, EPOLL_CTL_DEL, in, 0));
    show(control(epoll, EPOLL_CTL_ADD, in, EPOLLIN));
    show(control(epoll, EPOLL_CTL_ADD, in, EPOLLIN));
    show(control(epoll, EPOLL_CTL_DEL, in, 0));
    show(control(epoll, 77, in, 0));
}
BEHAVIOUR("epoll_ctl with bad memory") {
    int epoll = epoll_create1(0);
    new_pipe();
    show(epoll_ctl(epoll, EPOLL_CTL_ADD, in, bad()));
    must(control(epoll, EPOLL_CTL_ADD, in, EPOLLIN));
    show(epoll_ctl(epoll, EPOLL_CTL_DEL, in, bad()));
}
BEHAVIOUR("epoll_wait with bad counts, descriptors, memory") {
    struct epoll_event events[2];
    int epoll = epoll_create1(0);
    show(epoll_wait(epoll, events, 0, 0));
    show(epoll_wait(epoll, events, -1, 0));
    show(epoll_wait(99, events, 1, 0));
    show(epoll_wait(0, events, 1, 0));
    show(epoll_wait(epoll, bad(), 1, 0));
    new_pipe();
    control(epoll, EPOLL_CTL_ADD, out, EPOLLOUT);
    show(epoll_wait(epoll, bad(), 1, 0));
}
BEHAVIOUR("epoll by level: ready as long as it is") {
    int epoll = epoll_create1(0);
    new_pipe();
    control(epoll, EPOLL_CTL_ADD, in, EPOLLIN);
    show_ready(epoll);
    write(out, "xy", 2);
    show_ready(epoll);
    show_read(in, 1);
    show_ready(epoll);
    show_read(in, 1);
    show_ready(epoll);
}
BEHAVIOUR("epoll by edge: once for each arrival") {
    int epoll = epoll_create1(0);
    new_pipe();
    control(epoll, EPOLL_CTL_ADD, in, EPOLLIN | EPOLLET);
    write(out, "xy", 2);
    show_ready(epoll);
    show_ready(epoll);
    show_read(in, 1);
    show_ready(epoll);
    write(out, "z", 1);
    show_ready(epoll);
}
BEHAVIOUR("EPOLLONESHOT: once until it is changed") {
    int epoll = epoll_create1(0);
    new_pipe();
    control(epoll, EPOLL_CTL_ADD, in, EPOLLIN | EPOLLONESHOT);
    write(out, "x", 1);
    show_ready(epoll);
    write(out, "y", 1);
    show_ready(epoll);
    show(control(epoll, EPOLL_CTL_MOD, in, EPOLLIN | EPOLLONESHOT));
    show_ready(epoll);
}
BEHAVIOUR("what is ready when it is added is reported, also by edge") {
    int epoll = epoll_create1(0);
    new_pipe();
    write(out, "x", 1);
    control(epoll, EPOLL_CTL_ADD, in, EPOLLIN | EPOLLET);
    show_ready(epoll);
}
BEHAVIOUR("a changed registration is reported again") {
    int epoll = epoll_create1(0);
    new_pipe();
    write(out, "x", 1);
    control(epoll, EPOLL_CTL_ADD, in, EPOLLIN | EPOLLET);
    show_ready(epoll);
    control(epoll, EPOLL_CTL_MOD, in, EPOLLIN | EPOLLET);
    show_ready(epoll);
}
BEHAVIOUR("EPOLLHUP comes unasked") {
    int epoll = epoll_create1(0);
    new_pipe();
    control(epoll, EPOLL_CTL_ADD, in, 0);
    close(out);
    show_ready(epoll);
}
BEHAVIOUR("the last close of a file ends its registration") {
    int epoll = epoll_create1(0);
    new_pipe();
    int copy = dup(in);
    control(epoll, EPOLL_CTL_ADD, in, EPOLLIN);
    write(out, "x", 1);
    close(in);
    show_ready(epoll);
    close(copy);
    show_ready(epoll);
}
BEHAVIOUR("two descriptors of one file are two registrations") {
    int epoll = epoll_create1(0);
    new_pipe();
    int copy = dup(in);
    show(control(epoll, EPOLL_CTL_ADD, in, EPOLLIN));
    show(control(epoll, EPOLL_CTL_ADD, copy, EPOLLIN));
    write(out, "x", 1);
    struct epoll_event events[4];
    show(epoll_wait(epoll, events, 4, 0));
}
BEHAVIOUR("epoll_wait takes turns when there is no room for all") {
    int epoll = epoll_create1(0), seen = 0;
    struct epoll_event event;
    for (int i = 0; i < 3; i++) {
        new_pipe();
        control(epoll, EPOLL_CTL_ADD, in, EPOLLIN);
        write(out, "x", 1);
    }
    /* Twice: after a death, turns begin anew. */
    for (int i = 0; i < 6; i++) {
        epoll_wait(epoll, &event, 1, 0);
        seen |= 1 << event.data.fd;
    }
    note("%d", __builtin_popcount(seen));
}
BEHAVIOUR("an epoll in an epoll, in poll, and in a circle") {
    int inner = epoll_create1(0), outer = epoll_create1(0);
    new_pipe();
    control(inner, EPOLL_CTL_ADD, in, EPOLLIN);
    show(control(outer, EPOLL_CTL_ADD, inner, EPOLLIN));
    show(control(inner, EPOLL_CTL_ADD, outer, EPOLLIN));
    poll_one(outer, POLLIN, 0);
    write(out, "x", 1);
    show_ready(outer);
    poll_one(outer, POLLIN, 0);
}
BEHAVIOUR("EPOLLEXCLUSIVE: not by change, not with EPOLLONESHOT, not of an epoll") {
    int epoll = epoll_create1(0);
    new_pipe();
    show(control(epoll, EPOLL_CTL_ADD, in, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT));
    show(control(epoll, EPOLL_CTL_ADD, in, EPOLLIN | EPOLLEXCLUSIVE));
    show(control(epoll, EPOLL_CTL_MOD, in, EPOLLIN));
    show(control(epoll, EPOLL_CTL_ADD, epoll_create1(0), EPOLLIN | EPOLLEXCLUSIVE));
}
BEHAVIOUR("a child shares the epoll, and its registrations") {
    int epoll = epoll_create1(0);
    new_pipe();
    IN_CHILD { show(control(epoll, EPOLL_CTL_ADD, in, EPOLLIN)); }
    write(out, "x", 1);
    show_ready(epoll);
}
BEHAVIOUR("read, write and lseek of an epoll") {
    int epoll = epoll_create1(0);
    char byte;
    show(read(epoll, &byte, 1));
    show(write(epoll, "x", 1));
    show(lseek(epoll, 0, SEEK_SET));
}
BEHAVIOUR("epoll_pwait with a mask of another size; epoll_pwait2 with bad times") {
    struct epoll_event event;
    unsigned long mask = 0;
    struct timespec wrong = {0, 1000000000};
    int epoll = epoll_create1(0);
    show(syscall(SYS_epoll_pwait, epoll, &event, 1, 0, &mask, 4));
    show(syscall(SYS_epoll_pwait2, epoll, &event, 1, &wrong, NULL, 8));
    show(syscall(SYS_epoll_pwait2, epoll, &event, 1, bad(), NULL, 8));
}
BEHAVIOUR("eventfd with unknown flags") {
    show(eventfd(0, 77));
    show(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
    show(fcntl(3, F_GETFD));
}
BEHAVIOUR("an eventfd sums what is written, and is empty when it was read") {
    int fd = eventfd(3, EFD_NONBLOCK);
    show(add(fd, 4));
    show_count(fd);
    show_count(fd);
}
BEHAVIOUR("a semaphore gives one at a time") {
    int fd = eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE);
    show_count(fd);
    show_count(fd);
    show_count(fd);
}
BEHAVIOUR("an eventfd that would overflow") {
    int fd = eventfd(0, EFD_NONBLOCK);
    show(add(fd, UINT64_MAX));
    show(add(fd, UINT64_MAX - 1));
    show(add(fd, 1));
    poll_one(fd, POLLIN | POLLOUT, 0);
    show_count(fd);
    poll_one(fd, POLLIN | POLLOUT, 0);
}
BEHAVIOUR("an eventfd read and written with too few bytes, and with bad memory") {
    char bytes[7] = {0};
    int fd = eventfd(1, EFD_NONBLOCK);
    show(read(fd, bytes, 7));
    show(write(fd, bytes, 7));
    show(write(fd, bad(), 8));
    show(lseek(fd, 5, SEEK_SET));
}
BEHAVIOUR("a waiting read of an eventfd ends with the first write") {
    int fd = eventfd(0, 0);
    pid_t child = fork();
    if (child == 0) {
        show_count(fd);
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    add(fd, 5);
    wait_for(child);
}
BEHAVIOUR("pread and pwrite of an eventfd, an epoll, a timer, a signalfd, also of nothing") {
    char bytes[8] = {0};
    sigset_t set = set_of(SIGUSR1);
    int fds[] = {eventfd(1, 0), epoll_create1(0), timerfd_create(CLOCK_MONOTONIC, 0), signalfd(-1, &set, 0)};
    for (int i = 0; i < 4; i++) {
        show(pread(fds[i], bytes, 8, 0));
        show(pwrite(fds[i], bytes, 8, 0));
        show(pread(fds[i], bytes, 0, 0));
        show(pwrite(fds[i], bytes, 0, 0));
        show(pread(fds[i], bytes, 8, -1));
    }
}

/* Waits for a byte of a pipe by an epoll of its own, and counts how often it is woken. */
static void take_a_byte(int in, uint32_t how, struct gate gate, int *wakes) {
    char byte;
    struct epoll_event event = {.events = EPOLLIN | how};
    int epoll = must(epoll_create1(0));
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, in, &event));
    open_gate(gate);
    do {
        must(epoll_wait(epoll, &event, 1, 5000));
        __atomic_add_fetch(wakes, 1, __ATOMIC_SEQ_CST);
    } while (read(in, &byte, 1) < 0);
    show_bytes(&byte, 1);
}
BEHAVIOUR("EPOLLEXCLUSIVE: of several that wait, each byte wakes one") {
    int p[2], *wakes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[3];
    must(pipe2(p, O_NONBLOCK));
    for (int i = 0; i < 3; i++) {
        struct gate gate = new_gate();
        children[i] = must(fork());
        if (children[i] == 0) {
            take_a_byte(p[0], EPOLLEXCLUSIVE, gate, wakes);
            _exit(0);
        }
        pass_gate(gate);
        wait_until_asleep(children[i]);
    }
    for (int i = 0; i < 3; i++) {
        must(write(p[1], "abc" + i, 1));
        must(waitpid(-1, NULL, 0));
    }
#ifdef DEATHS
    /* A successor wakes all: who of them finds something is woken at least. */
    *wakes = *wakes < 3 ? *wakes : 3;
#endif
    note("%d", *wakes);
}
BEHAVIOUR("EPOLLEXCLUSIVE: who waits without it is woken besides") {
    int p[2];
    pid_t children[2];
    must(pipe2(p, O_NONBLOCK));
    for (int i = 0; i < 2; i++) {
        struct gate gate = new_gate();
        children[i] = must(fork());
        if (children[i] == 0) {
            struct epoll_event event = {.events = EPOLLIN | (i == 0 ? EPOLLEXCLUSIVE : 0)};
            int epoll = must(epoll_create1(0));
            must(epoll_ctl(epoll, EPOLL_CTL_ADD, p[0], &event));
            open_gate(gate);
            _exit(epoll_wait(epoll, &event, 1, 5000) == 1 ? 4 : 5);
        }
        pass_gate(gate);
        wait_until_asleep(children[i]);
    }
    must(write(p[1], "x", 1));
    wait_for(children[0]);
    wait_for(children[1]);
}
