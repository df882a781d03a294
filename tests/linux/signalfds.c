/* Signals that are read from descriptors: signalfd, signalfd4. It is long because each rule is tried by itself. */
#include "behaviour.h"
#include "ready.h"
#include <pthread.h>
#include <sys/select.h>
#include <sys/signalfd.h>

static sigset_t set_of_three(int first, int second, int third) {
    int signals[] = {first, second, third};
    sigset_t set = set_of(0);
    for (int i = 0; i < 3; i++)
        if (signals[i] != 0)
            sigaddset(&set, signals[i]);
    return set;
}

/* Blocks up to three signals, and makes a descriptor for them. */
static int blocked_signals(int first, int second, int third, int flags) {
    sigset_t set = set_of_three(first, second, third);
    must(sigprocmask(SIG_BLOCK, &set, NULL));
    return must(signalfd(-1, &set, flags));
}

static const char *name_of(int signal) {
    static char text[32];
    if (signal >= SIGRTMIN)
        snprintf(text, sizeof text, "RTMIN+%d", signal - SIGRTMIN);
    else
        snprintf(text, sizeof text, "%s", sigabbrev_np(signal));
    return text;
}

/* Reads up to `most` signals, and shows their names, codes and values. */
static void take(int fd, int most) {
    struct signalfd_siginfo info[8];
    memset(info, 0x77, sizeof info);
    long bytes = read(fd, info, most * sizeof *info);
    if (bytes < 0)
        show(bytes);
    for (long i = 0; i < bytes / (long)sizeof *info; i++)
        note("%s:%d:%d", name_of(info[i].ssi_signo), info[i].ssi_code, info[i].ssi_int);
}

static long queue(int signal, int value) { return sigqueue(getpid(), signal, (union sigval){.sival_int = value}); }

BEHAVIOUR("signalfd with unknown flags, another size of the set, bad memory") {
    sigset_t set = set_of(SIGUSR1);
    show(signalfd(-1, &set, 1));
    show(syscall(SYS_signalfd4, -1, &set, 4, 0));
    show(syscall(SYS_signalfd4, -1, &set, 16, 0));
    show(syscall(SYS_signalfd4, -1, bad(), 8, 0));
    show(syscall(SYS_signalfd, -1, bad(), 8));
}
BEHAVIOUR("signalfd of a descriptor that is closed, negative, none of its kind") {
    sigset_t set = set_of(SIGUSR1);
    int fds[2];
    must(pipe(fds));
    show(signalfd(99, &set, 0));
    show(signalfd(-2, &set, 0));
    show(signalfd(fds[0], &set, 0));
    show(signalfd(0, &set, 0));
}
BEHAVIOUR("signalfd beyond RLIMIT_NOFILE") {
    struct rlimit few = {3, 3};
    sigset_t set = set_of(SIGUSR1);
    must(setrlimit(RLIMIT_NOFILE, &few));
    show(signalfd(-1, &set, 0));
}
BEHAVIOUR("SFD_CLOEXEC and SFD_NONBLOCK set the flags of a new descriptor, not of an old one") {
    sigset_t set = set_of(SIGUSR1);
    int plain = must(signalfd(-1, &set, 0)), both = must(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    note("%d %x", fcntl(plain, F_GETFD), fcntl(plain, F_GETFL));
    note("%d %x", fcntl(both, F_GETFD), fcntl(both, F_GETFL));
    show(signalfd(plain, &set, SFD_CLOEXEC | SFD_NONBLOCK) == plain);
    note("%d %x", fcntl(plain, F_GETFD), fcntl(plain, F_GETFL));
}
BEHAVIOUR("a read with too small a buffer, of nothing; write, pread, pwrite") {
    char bytes[256] = {0};
    int fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    raise(SIGUSR1);
    show(read(fd, bytes, 127));
    show(read(fd, bytes, 0));
    show(write(fd, bytes, 128));
    show(pread(fd, bytes, 128, 0));
    show(pwrite(fd, bytes, 128, 0));
    take(fd, 1);
}
BEHAVIOUR("a read into bad memory loses the signal") {
    int fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    raise(SIGUSR1);
    show(syscall(SYS_read, fd, bad(), 128));
    take(fd, 1);
}
BEHAVIOUR("without signals a read is EAGAIN with O_NONBLOCK, also when fcntl has set it") {
    int fd = blocked_signals(SIGUSR1, 0, 0, 0);
    must(fcntl(fd, F_SETFL, O_NONBLOCK));
    take(fd, 1);
    int ready = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    take(ready, 1);
}
BEHAVIOUR("a read gives whole signals, as many as there is room for") {
    char bytes[1024];
    int fd = blocked_signals(SIGRTMIN, 0, 0, SFD_NONBLOCK);
    for (int i = 0; i < 5; i++)
        queue(SIGRTMIN, i);
    show(read(fd, bytes, 128 * 2 + 127));
    take(fd, 1);
    show(read(fd, bytes, sizeof bytes));
    show(read(fd, bytes, sizeof bytes));
}
BEHAVIOUR("a signal that is not blocked goes to its handler alone") {
    sigset_t set = set_of(SIGUSR1);
    int fd = must(signalfd(-1, &set, SFD_NONBLOCK));
    handle(SIGUSR1, 0);
    raise(SIGUSR1);
    show(handled);
    take(fd, 1);
}
BEHAVIOUR("a blocked signal is read, though it is ignored, or by default") {
    int fd = blocked_signals(SIGUSR1, SIGCHLD, SIGWINCH, SFD_NONBLOCK);
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    raise(SIGCHLD);
    raise(SIGWINCH);
    take(fd, 8);
}
BEHAVIOUR("an ignored signal that is not blocked is never pending; ignoring drops what is") {
    sigset_t set = set_of_three(SIGUSR1, SIGUSR2, 0);
    int fd = must(signalfd(-1, &set, SFD_NONBLOCK));
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    take(fd, 1);
    block(SIGUSR2);
    raise(SIGUSR2);
    signal(SIGUSR2, SIG_IGN);
    take(fd, 1);
}
BEHAVIOUR("standard signals coalesce and the first one's data stays, real-time signals queue") {
    int fd = blocked_signals(SIGUSR1, SIGRTMIN + 1, 0, SFD_NONBLOCK);
    queue(SIGUSR1, 1);
    queue(SIGUSR1, 2);
    kill(getpid(), SIGUSR1);
    queue(SIGRTMIN + 1, 3);
    queue(SIGRTMIN + 1, 4);
    queue(SIGRTMIN + 1, 3);
    take(fd, 8);
    take(fd, 8);
}
BEHAVIOUR("the order: lower numbers first, equal ones as they came") {
    int fd = blocked_signals(SIGRTMIN + 2, SIGRTMIN + 1, SIGTERM, SFD_NONBLOCK);
    block(SIGHUP);
    sigset_t set = set_of_three(SIGRTMIN + 2, SIGRTMIN + 1, SIGTERM);
    sigaddset(&set, SIGHUP);
    must(signalfd(fd, &set, 0));
    queue(SIGRTMIN + 2, 1);
    queue(SIGTERM, 2);
    queue(SIGRTMIN + 1, 3);
    queue(SIGRTMIN + 2, 4);
    queue(SIGHUP, 5);
    take(fd, 8);
}
BEHAVIOUR("signals of a thread are read before those of its process") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    kill(getpid(), SIGUSR1);
    raise(SIGUSR2);
    take(fd, 1);
    take(fd, 1);
}
BEHAVIOUR("who has sent it: kill, tgkill, sigqueue, by another user") {
    struct signalfd_siginfo info;
    int fd = blocked_signals(SIGRTMIN, 0, 0, SFD_NONBLOCK);
    pid_t self = getpid();
    setresuid(USER, USER, 0);
    for (int how = 0; how < 3; how++) {
        pid_t child = fork();
        if (child == 0) {
            if (how == 0)
                kill(self, SIGRTMIN);
            else if (how == 1)
                syscall(SYS_tgkill, self, self, SIGRTMIN);
            else
                sigqueue(self, SIGRTMIN, (union sigval){.sival_ptr = (void *)0x123456789a});
            _exit(0);
        }
        wait_for(child);
        show(read(fd, &info, sizeof info));
        note("%d:%d:%u:%d:%llx", info.ssi_code, info.ssi_pid == (uint32_t)child, info.ssi_uid, info.ssi_int,
             (unsigned long long)info.ssi_ptr);
    }
}
BEHAVIOUR("SIGCHLD says how a child ended, was stopped, went on") {
    struct signalfd_siginfo info;
    int fd = blocked_signals(SIGCHLD, 0, 0, 0);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    static const int signals[] = {SIGSTOP, SIGCONT, SIGKILL};
    for (int i = 0; i < 3; i++) {
        must(kill(child, signals[i]));
        show(read(fd, &info, sizeof info));
        note("%d:%d:%d", info.ssi_code, info.ssi_status, info.ssi_pid == (uint32_t)child);
    }
    waitpid(child, NULL, 0);
    child = fork();
    if (child == 0)
        _exit(7);
    show(read(fd, &info, sizeof info));
    note("%d:%d:%d", info.ssi_code, info.ssi_status, info.ssi_pid == (uint32_t)child);
}
BEHAVIOUR("a timer's signal has its value, an alarm none") {
    int fd = blocked_signals(SIGRTMIN, SIGALRM, 0, 0);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 99};
    struct itimerspec once = {.it_value.tv_nsec = 1000000};
    struct itimerval soon = {.it_value.tv_usec = 1000};
    timer_t timer;
    must(timer_create(CLOCK_MONOTONIC, &event, &timer));
    must(timer_settime(timer, 0, &once, NULL));
    take(fd, 1);
    must(setitimer(ITIMER_REAL, &soon, NULL));
    take(fd, 1);
}
BEHAVIOUR("another set for a descriptor: what was pending of the old one stays pending") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    sigset_t first = set_of(SIGUSR1), second = set_of(SIGUSR2), none = set_of(0);
    raise(SIGUSR1);
    show(signalfd(fd, &second, 0) == fd);
    take(fd, 1);
    show(signalfd(fd, &none, 0) == fd);
    take(fd, 1);
    show(signalfd(fd, &first, 0) == fd);
    take(fd, 1);
}
BEHAVIOUR("SIGKILL and SIGSTOP in the set are left out without an error") {
    sigset_t set;
    sigfillset(&set);
    int fd = must(signalfd(-1, &set, SFD_NONBLOCK));
    take(fd, 1);
    pid_t child = fork();
    if (child == 0)
        take(must(signalfd(-1, &set, 0)), 1);
    sleep_ms(5);
    wait_until_asleep(child);
    must(kill(child, SIGKILL));
    wait_for(child);
}
BEHAVIOUR("of two descriptors of one set, one reads a signal") {
    int first = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK), second = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    raise(SIGUSR1);
    show_poll(first, 0);
    show_poll(second, 0);
    take(second, 1);
    show_poll(first, 0);
    take(first, 1);
}
BEHAVIOUR("sigtimedwait and a handler take what a descriptor would read") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    sigset_t set = set_of(SIGUSR1);
    struct timespec at_once = {0, 0};
    handle(SIGUSR2, 0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    show_poll(fd, 0);
    show(sigtimedwait(&set, NULL, &at_once) == SIGUSR1);
    set = set_of(SIGUSR2);
    must(sigprocmask(SIG_UNBLOCK, &set, NULL));
    show(handled);
    show_poll(fd, 0);
    take(fd, 1);
}
BEHAVIOUR("what a descriptor has read is no longer pending") {
    int fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    sigset_t set = set_of(SIGUSR1), pending;
    handle(SIGUSR1, 0);
    raise(SIGUSR1);
    take(fd, 1);
    must(sigpending(&pending));
    note("%d", sigismember(&pending, SIGUSR1));
    must(sigprocmask(SIG_UNBLOCK, &set, NULL));
    show(handled);
}
BEHAVIOUR("poll: never ready for writing, for reading while a signal is pending") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    show_poll(fd, 0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    show_poll(fd, 0);
    take(fd, 1);
    show_poll(fd, 0);
    take(fd, 1);
    show_poll(fd, 0);
}
BEHAVIOUR("poll and select wait for a signal from another process") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    pid_t child = fork();
    if (child == 0) {
        show_poll(fd, 5000);
        take(fd, 1);
        fd_set set;
        struct timeval time = {5, 0};
        FD_ZERO(&set);
        FD_SET(fd, &set);
        show(select(fd + 1, &set, NULL, NULL, &time));
        take(fd, 1);
        _exit(0);
    }
    sleep_ms(10);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    sleep_ms(10);
    wait_until_asleep(child);
    kill(child, SIGUSR2);
    wait_for(child);
}
BEHAVIOUR("epoll by level, and EPOLLONESHOT") {
    int fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    int level = epoll_of(fd, EPOLLIN | EPOLLOUT), once = epoll_of(fd, EPOLLIN | EPOLLONESHOT);
    show_epoll(level, 0);
    raise(SIGUSR1);
    show_epoll(level, 0);
    show_epoll(level, 0);
    show_epoll(once, 0);
    show_epoll(once, 0);
    take(fd, 1);
    show_epoll(level, 0);
}
BEHAVIOUR("EPOLLET: each signal that is queued is an edge, one that is pending already is none") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, SIGRTMIN, SFD_NONBLOCK);
    int epoll = epoll_of(fd, EPOLLIN | EPOLLET);
    int signals[] = {SIGUSR1, SIGUSR2, SIGUSR1, SIGRTMIN, SIGRTMIN};
    show_epoll(epoll, 0);
    for (int i = 0; i < 5; i++) {
        queue(signals[i], i);
        show_epoll(epoll, 0);
        show_epoll(epoll, 0);
    }
}
BEHAVIOUR("EPOLLET: what is pending when it is added or changed is told, a read is no edge") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    raise(SIGUSR1);
    raise(SIGUSR2);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int epoll = epoll_of(fd, EPOLLIN | EPOLLET);
    show_epoll(epoll, 0);
    must(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event));
    show_epoll(epoll, 0);
    show_epoll(epoll, 0);
    take(fd, 1);
    show_epoll(epoll, 0);
    raise(SIGUSR1);
    show_epoll(epoll, 0);
    take(fd, 2);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET: any signal is an edge while one of the set is pending") {
    int fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    sigset_t other = set_of(SIGUSR2);
    must(sigprocmask(SIG_BLOCK, &other, NULL));
    handle(SIGHUP, 0);
    int epoll = epoll_of(fd, EPOLLIN | EPOLLET);
    raise(SIGHUP);
    show_epoll(epoll, 0);
    raise(SIGUSR1);
    show_epoll(epoll, 0);
    raise(SIGUSR2);
    show_epoll(epoll, 0);
    raise(SIGUSR2);
    show_epoll(epoll, 0);
    raise(SIGHUP);
    show_epoll(epoll, 0);
    raise(SIGCHLD);
    show_epoll(epoll, 0);
    show(handled);
}
BEHAVIOUR("EPOLLET: signals that come while nobody looks are one edge") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    int epoll = epoll_of(fd, EPOLLIN | EPOLLET);
    show_epoll(epoll, 1);
    raise(SIGUSR1);
    raise(SIGUSR2);
    show_epoll(epoll, 0);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET: another set tells of what is pending of it") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    sigset_t second = set_of(SIGUSR2), third = set_of(SIGHUP);
    int epoll = epoll_of(fd, EPOLLIN | EPOLLET);
    raise(SIGUSR1);
    raise(SIGUSR2);
    show_epoll(epoll, 0);
    must(signalfd(fd, &second, 0));
    show_epoll(epoll, 0);
    must(signalfd(fd, &third, 0));
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET: each of two epolls has each edge, and with EPOLLONESHOT the first") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    int first = epoll_of(fd, EPOLLIN | EPOLLET), second = epoll_of(fd, EPOLLIN | EPOLLET);
    int once = epoll_of(fd, EPOLLIN | EPOLLET | EPOLLONESHOT);
    for (int i = 0; i < 2; i++) {
        raise(i == 0 ? SIGUSR1 : SIGUSR2);
        show_epoll(first, 0);
        show_epoll(first, 0);
        show_epoll(second, 0);
        show_epoll(second, 0);
        show_epoll(once, 0);
    }
}
BEHAVIOUR("EPOLLET: who waits is woken by a signal that comes behind another") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    struct gate first = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        int epoll = epoll_of(fd, EPOLLIN | EPOLLET);
        raise(SIGUSR1);
        show_epoll(epoll, 5000);
        open_gate(first);
        show_epoll(epoll, 5000);
        take(fd, 2);
        _exit(0);
    }
    pass_gate(first);
    wait_until_asleep(child);
    kill(child, SIGUSR2);
    wait_for(child);
}
BEHAVIOUR("a waiting epoll tells of a signal from another process") {
    int fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    pid_t child = fork();
    if (child == 0) {
        show_epoll(epoll_of(fd, EPOLLIN), 5000);
        take(fd, 1);
        _exit(0);
    }
    sleep_ms(10);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    wait_for(child);
}
BEHAVIOUR("a waiting read ends with a signal from another process") {
    int fd = blocked_signals(SIGUSR1, SIGRTMIN, 0, 0);
    pid_t child = fork();
    if (child == 0) {
        take(fd, 8);
        take(fd, 8);
        _exit(0);
    }
    sleep_ms(10);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    sleep_ms(10);
    wait_until_asleep(child);
    sigqueue(child, SIGRTMIN, (union sigval){.sival_int = 5});
    wait_for(child);
}
BEHAVIOUR("a waiting read is interrupted by a handler, and goes on with SA_RESTART") {
    int fd = blocked_signals(SIGUSR1, 0, 0, 0);
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        pid_t child = fork();
        if (child == 0) {
            handle(SIGUSR2, flags);
            take(fd, 1);
            show(handled);
            _exit(0);
        }
        sleep_ms(10);
        wait_until_asleep(child);
        kill(child, SIGUSR2);
        sleep_ms(10);
        wait_until_asleep(child);
        kill(child, SIGUSR1);
        wait_for(child);
    }
}
BEHAVIOUR("a child reads its own signals, its parent the parent's") {
    int fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    queue(SIGUSR1, 1);
    IN_CHILD {
        take(fd, 1);
        show_poll(fd, 0);
        queue(SIGUSR1, 2);
        take(fd, 1);
    }
    take(fd, 1);
}
BEHAVIOUR("a child that changes the set changes it for its parent") {
    int fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    sigset_t set = set_of(SIGUSR2);
    raise(SIGUSR1);
    IN_CHILD { must(signalfd(fd, &set, 0)); }
    take(fd, 1);
    raise(SIGUSR2);
    take(fd, 1);
}
BEHAVIOUR("a descriptor that was sent reads the signals of the receiver") {
    int ends[2], fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    new_link(ends);
    queue(SIGUSR1, 1);
    send_descriptor(ends[0], fd);
    IN_CHILD {
        int received = receive_descriptor(ends[1]);
        take(received, 1);
        queue(SIGUSR1, 2);
        show_poll(received, 0);
        take(received, 1);
    }
    fd = through_a_socket(fd);
    take(fd, 1);
}
BEHAVIOUR("a duplicate reads on when the first is closed") {
    int fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK), copy = must(dup(fd));
    raise(SIGUSR1);
    close(fd);
    take(copy, 1);
}
BEHAVIOUR("an exec closes a descriptor with SFD_CLOEXEC, and no other") {
    int fd = blocked_signals(SIGUSR1, 0, 0, 0), closing = blocked_signals(SIGUSR1, 0, 0, SFD_CLOEXEC);
    char command[128];
    snprintf(command, sizeof command, "test -e /proc/self/fd/%d && ! test -e /proc/self/fd/%d && exit 4", fd, closing);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(99);
    }
    wait_for(child);
}

static int shared_fd;
static void *take_in_thread(void *most) {
    take(shared_fd, (long)most);
    return NULL;
}
BEHAVIOUR("a signal of one thread is read by that thread alone, one of the process by any") {
    pthread_t thread;
    shared_fd = blocked_signals(SIGUSR1, SIGUSR2, 0, SFD_NONBLOCK);
    pthread_kill(pthread_self(), SIGUSR1);
    pthread_create(&thread, NULL, take_in_thread, (void *)1);
    pthread_join(thread, NULL);
    kill(getpid(), SIGUSR2);
    pthread_create(&thread, NULL, take_in_thread, (void *)1);
    pthread_join(thread, NULL);
    take(shared_fd, 8);
}
BEHAVIOUR("readv gives whole signals") {
    struct signalfd_siginfo infos[2];
    int fd = blocked_signals(SIGRTMIN, 0, 0, SFD_NONBLOCK);
    struct iovec parts[1] = {{infos, sizeof infos}};
    queue(SIGRTMIN, 1);
    queue(SIGRTMIN, 2);
    queue(SIGRTMIN, 3);
    show(readv(fd, parts, 1));
    note("%d %d", infos[0].ssi_int, infos[1].ssi_int);
    take(fd, 1);
}
BEHAVIOUR("FIONREAD and ftruncate of a signalfd") {
    int bytes = 7, fd = blocked_signals(SIGUSR1, 0, 0, SFD_NONBLOCK);
    raise(SIGUSR1);
    show(ioctl(fd, FIONREAD, &bytes));
    show(ftruncate(fd, 0));
    take(fd, 1);
}
/* Shows the line of a descriptor's fdinfo that begins with a word. */
static void show_fdinfo(int fd, const char *word) {
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, strlen(word)) == 0)
            note("%.*s", (int)strcspn(line, "\n"), line);
    fclose(file);
}
BEHAVIOUR("fdinfo has the set, without SIGKILL and SIGSTOP, and the new one when it is changed") {
    sigset_t all, two = set_of_three(SIGHUP, SIGRTMAX, 0);
    sigfillset(&all);
    int fd = must(signalfd(-1, &all, 0));
    show_fdinfo(fd, "sigmask");
    must(signalfd(fd, &two, 0));
    show_fdinfo(fd, "sigmask");
    show_fdinfo(fd, "pos");
    show_fdinfo(through_a_socket(fd), "sigmask");
}
