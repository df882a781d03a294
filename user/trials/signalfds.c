/* Signals that are read from descriptors: prints what it sees, the same on Linux. With an argument it sends so many signals between two
 * processes that read them from descriptors, by read, poll and epoll, and prints what has arrived: once each, whoever dies meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long result)
{
    if (result >= 0)
        printf("%s: %ld\n", what, result);
    else
        printf("%s: %s\n", what, strerrorname_np(errno));
}

static sigset_t set_of(int first, int second, int third)
{
    sigset_t set;
    sigemptyset(&set);
    int signals[] = {first, second, third};
    for (int i = 0; i < 3; i++)
        if (signals[i] != 0)
            sigaddset(&set, signals[i]);
    return set;
}

static const char *name(int signal)
{
    static char text[32];
    if (signal >= SIGRTMIN)
        sprintf(text, "RTMIN+%d", signal - SIGRTMIN);
    else
        sprintf(text, "%s", sigabbrev_np(signal));
    return text;
}

/* Reads up to `most` signals and prints them. */
static void take(const char *what, int fd, int most)
{
    struct signalfd_siginfo info[8];
    long bytes = read(fd, info, most * sizeof *info);
    say(what, bytes);
    for (long i = 0; i < bytes / (long)sizeof *info; i++) {
        const char *sender = info[i].ssi_pid == (uint32_t)getpid() ? "itself" : info[i].ssi_pid == 0 ? "nobody" : "another";
        printf("  %s code %d from %s uid %u int %d ptr %llx status %d overrun %u\n", name(info[i].ssi_signo), info[i].ssi_code,
               sender, info[i].ssi_uid, info[i].ssi_int, (unsigned long long)info[i].ssi_ptr, info[i].ssi_status,
               info[i].ssi_overrun);
    }
}

static int ready(int fd, int timeout_ms)
{
    struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT};
    int count = poll(&one, 1, timeout_ms);
    return count == 1 ? one.revents : count;
}

static void errors(void)
{
    sigset_t set = set_of(SIGUSR1, 0, 0);
    int ends[2];
    pipe(ends);
    say("flags", signalfd(-1, &set, 1));
    say("size", syscall(SYS_signalfd4, -1, &set, 4, 0));
    say("no memory", syscall(SYS_signalfd4, -1, (void *)8, 8, 0));
    say("not open", signalfd(99, &set, 0));
    say("a pipe", signalfd(ends[0], &set, 0));
    say("descriptor -2", signalfd(-2, &set, 0));
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    say("close on exec", fcntl(fd, F_GETFD));
    say("flags of it", fcntl(fd, F_GETFL));
    int plain = syscall(SYS_signalfd, -1, &set, 8);
    say("close on exec", fcntl(plain, F_GETFD));
    say("flags of it", fcntl(plain, F_GETFL));
    struct stat status;
    fstat(fd, &status);
    printf("mode %o\n", status.st_mode);
    char small[127];
    say("a small buffer", read(fd, small, sizeof small));
    say("no buffer", read(fd, small, 0));
    say("write", write(fd, small, sizeof small));
    say("pread", pread(fd, small, sizeof small, 0));
    int bytes;
    say("FIONREAD", ioctl(fd, FIONREAD, &bytes));
    take("nothing", fd, 1);
    say("ready", ready(fd, 0));
    close(fd), close(plain), close(ends[0]), close(ends[1]);
}

static void reads(void)
{
    sigset_t set = set_of(SIGUSR1, SIGRTMIN + 2, SIGCHLD);
    sigaddset(&set, SIGKILL), sigaddset(&set, SIGSTOP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    union sigval value = {.sival_int = 5};
    sigqueue(getpid(), SIGRTMIN + 2, value);
    value.sival_int = 6;
    sigqueue(getpid(), SIGRTMIN + 2, value);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    raise(SIGRTMIN + 2);
    say("ready", ready(fd, 0));
    take("two", fd, 2);
    take("and the rest", fd, 8);
    take("no more", fd, 8);
    say("ready", ready(fd, 0));
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    say("a child", ready(fd, -1));
    take("a child", fd, 8);
    waitpid(child, NULL, 0);
    raise(SIGUSR1);
    say("bad memory", syscall(SYS_read, fd, (void *)8, 128));
    take("it is gone", fd, 8);
    raise(SIGUSR1);
    struct timespec none = {0};
    siginfo_t info;
    say("sigtimedwait takes it", sigtimedwait(&set, &info, &none) == SIGUSR1);
    take("gone", fd, 8);
    say("ready", ready(fd, 0));
    close(fd);
}

static void masks(void)
{
    sigset_t first = set_of(SIGUSR1, 0, 0), second = set_of(SIGUSR2, 0, 0), both = set_of(SIGUSR1, SIGUSR2, 0);
    sigprocmask(SIG_BLOCK, &both, NULL);
    int fd = signalfd(-1, &first, SFD_NONBLOCK);
    raise(SIGUSR2);
    take("not of its set", fd, 1);
    say("another set", signalfd(fd, &second, 0) == fd);
    say("ready", ready(fd, 0));
    take("of its set", fd, 1);
    pid_t child = fork();
    if (child == 0) {
        take("a child has no signals", fd, 1);
        raise(SIGUSR2);
        take("but its own", fd, 1);
        fflush(stdout);
        _exit(0);
    }
    raise(SIGUSR2);
    waitpid(child, NULL, 0);
    take("mine", fd, 8);
    close(fd);
}

static int shared;
static volatile int handled;

static void handle(int signal)
{
    handled = signal;
}

static void *reader(void *argument)
{
    take(argument, shared, 1);
    return NULL;
}

static void *sender(void *argument)
{
    usleep(20000);
    if (argument != NULL)
        pthread_kill(*(pthread_t *)argument, SIGHUP);
    usleep(20000);
    kill(getpid(), SIGUSR1);
    return NULL;
}

static void waits(void)
{
    sigset_t set = set_of(SIGUSR1, SIGUSR2, 0);
    pthread_t thread, self = pthread_self();
    shared = signalfd(-1, &set, 0);
    pthread_create(&thread, NULL, sender, NULL);
    take("a read waits", shared, 4);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, reader, "another thread waits");
    usleep(20000);
    kill(getpid(), SIGUSR2);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, reader, "its own signal");
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGHUP, &action, NULL);
    pthread_create(&thread, NULL, sender, &self);
    take("a handler", shared, 4);
    printf("handled %d\n", handled == SIGHUP);
    pthread_join(thread, NULL);
    handled = 0;
    action.sa_flags = SA_RESTART;
    sigaction(SIGHUP, &action, NULL);
    take("what came", shared, 4);
    pthread_create(&thread, NULL, sender, &self);
    take("repeated", shared, 4);
    printf("handled %d\n", handled == SIGHUP);
    pthread_join(thread, NULL);
    struct itimerval soon = {.it_value.tv_usec = 10000};
    sigset_t alarms = set_of(SIGALRM, 0, 0);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    signalfd(shared, &alarms, 0);
    setitimer(ITIMER_REAL, &soon, NULL);
    take("an alarm", shared, 1);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM, .sigev_value.sival_int = 99};
    struct itimerspec once = {.it_value.tv_nsec = 1000000};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &once, NULL);
    say("a timer", ready(shared, -1));
    take("a timer", shared, 1);
    timer_delete(timer);
    close(shared);
}

static int wait_for(int epoll, int timeout_ms)
{
    struct epoll_event event;
    int count = epoll_wait(epoll, &event, 1, timeout_ms);
    return count == 1 ? (int)event.events : count;
}

static void epolls(void)
{
    sigset_t set = set_of(SIGUSR1, SIGUSR2, 0);
    int fd = signalfd(-1, &set, SFD_NONBLOCK), epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    say("registered", epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    say("nothing", wait_for(epoll, 0));
    raise(SIGUSR1);
    say("a signal", wait_for(epoll, -1));
    say("it is still there", wait_for(epoll, -1));
    take("read", fd, 1);
    say("nothing", wait_for(epoll, 0));
    pthread_t thread;
    pthread_create(&thread, NULL, sender, NULL);
    say("waited for", wait_for(epoll, -1));
    pthread_join(thread, NULL);
    take("read", fd, 1);
    event.events = EPOLLIN | EPOLLONESHOT;
    epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
    raise(SIGUSR2);
    say("once", wait_for(epoll, -1));
    say("and not again", wait_for(epoll, 0));
    take("read", fd, 1);
    int outer = epoll_create1(0);
    event.events = EPOLLIN;
    epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
    epoll_ctl(outer, EPOLL_CTL_ADD, epoll, &event);
    pthread_create(&thread, NULL, sender, NULL);
    say("nested", wait_for(outer, -1));
    pthread_join(thread, NULL);
    take("read", fd, 1);
    close(fd), close(epoll), close(outer);
}

/* Gets signals by read, poll and epoll in turn, and answers each. */
static int serve(int rounds, pid_t to)
{
    sigset_t set = set_of(SIGRTMIN, SIGRTMIN + 1, 0);
    int fd = signalfd(-1, &set, 0), epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    for (int round = 0; round < rounds; round++) {
        struct signalfd_siginfo info;
        if (round % 3 == 1 && ready(fd, -1) != POLLIN)
            return 2;
        if (round % 3 == 2 && wait_for(epoll, -1) != EPOLLIN)
            return 3;
        if (read(fd, &info, sizeof info) != sizeof info)
            return 4;
        if (info.ssi_int != round) {
            printf("round %d has %d\n", round, info.ssi_int);
            return 5;
        }
        union sigval value = {.sival_int = round};
        if (sigqueue(to, SIGRTMIN + 1, value) != 0)
            return 6;
    }
    return 0;
}

static int exchange(int rounds)
{
    sigset_t set = set_of(SIGRTMIN, SIGRTMIN + 1, 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        _exit(serve(rounds, parent));
    union sigval value = {.sival_int = 0};
    sigqueue(child, SIGRTMIN, value);
    int own = 0, status;
    int fd = signalfd(-1, &set, 0);
    for (int round = 0; round < rounds; round++) {
        struct signalfd_siginfo info;
        if (read(fd, &info, sizeof info) != sizeof info || info.ssi_int != round)
            break;
        own++;
        value.sival_int = round + 1;
        if (round + 1 < rounds)
            sigqueue(child, SIGRTMIN, value);
    }
    waitpid(child, &status, 0);
    printf("%d of %d, child %d\n", own, rounds, WEXITSTATUS(status));
    return 0;
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count > 1)
        return exchange(atoi(arguments[1]));
    errors();
    reads();
    masks();
    waits();
    epolls();
    return 0;
}
