/* Sets leases, has them broken, and prints what it sees: the same as on Linux. usage: leases DIRECTORY [wait]
 * Started by the superuser, it goes on as another user. With `wait` it only has a lease broken by force, which takes 45 seconds. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534
#define BREAK_SECONDS 45

static void say(const char *what, long result)
{
    printf("%s: %s\n", what, result >= 0 ? "ok" : strerrorname_np(errno));
}

static void lease(const char *what, int fd, int kind)
{
    static const char *const names[] = {"F_RDLCK", "F_WRLCK", "F_UNLCK"};
    long set = fcntl(fd, F_SETLEASE, kind);
    printf("%s: %s %s, ", what, names[kind], set == 0 ? "ok" : strerrorname_np(errno));
    printf("now %s\n", names[fcntl(fd, F_GETLEASE)]);
}

/* Opens the file for a moment. */
static void try_open(const char *what, int flags)
{
    int fd = open("file", flags | O_NONBLOCK);
    say(what, fd);
    if (fd >= 0)
        close(fd);
}

static int make(const char *name)
{
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0666);
    fchmod(fd, 0666);
    return close(fd);
}

static sigset_t signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN + 1);
    return set;
}

/* Takes the next signal, waiting for it if there must be one, and prints what it tells. */
static void told(const char *what, int must)
{
    siginfo_t info;
    sigset_t set = signals();
    struct timespec none = {0, 0};
    int got = must ? sigwaitinfo(&set, &info) : sigtimedwait(&set, &info, &none);
    if (got < 0)
        printf("%s: no signal\n", what);
    else if (info.si_code == SI_KERNEL)
        printf("%s: %s from the kernel\n", what, strsignal(got));
    else
        printf("%s: %s, code %d, descriptor %d, band %lx\n", what, got == SIGRTMIN + 1 ? "real-time" : strsignal(got),
               info.si_code, info.si_fd, (long)info.si_band);
}

/* A child that does `act`, and ends with its errno. */
static pid_t child(long (*act)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    _exit(act() < 0 ? errno : 0);
}

static void waits(pid_t pid)
{
    printf("the other %s\n", waitpid(pid, NULL, WNOHANG) == 0 ? "waits" : "has ended");
}

static void ended(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    int error = WEXITSTATUS(status);
    printf("the other has ended: %s\n", !WIFEXITED(status) ? "killed" : error ? strerrorname_np(error) : "ok");
}

static long open_to_read(void)
{
    return open("file", O_RDONLY);
}

static long open_to_write(void)
{
    return open("file", O_WRONLY);
}

static long shorten(void)
{
    return truncate("file", 0);
}

static void handler(int signal)
{
    (void)signal;
}

/* Opens the file for writing, and is interrupted by an alarm. */
static long open_with_alarm(void)
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    struct timespec soon = {0, 100000000};
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &(struct itimerspec){.it_value = soon, .it_interval = soon}, NULL);
    return open("file", O_WRONLY);
}

static void rights(int foreign)
{
    int pipes[2], directory = open(".", O_RDONLY), place = open("file", O_PATH);
    lease("a foreign file", foreign, F_RDLCK);
    lease("a directory", directory, F_RDLCK);
    say("a pipe", pipe(pipes) | fcntl(pipes[0], F_SETLEASE, F_RDLCK));
    say("O_PATH", fcntl(place, F_SETLEASE, F_RDLCK));
    say("no lease", fcntl(foreign, F_SETLEASE, 3));
    for (int i = 0; i < 2; i++)
        close(pipes[i]);
    close(directory);
    close(place);
}

static void conflicts(void)
{
    int reads = open("file", O_RDONLY), other = open("file", O_RDONLY);
    lease("none yet", reads, F_UNLCK);
    lease("two readers", reads, F_RDLCK);
    lease("two readers", reads, F_WRLCK);
    lease("the other, too", other, F_RDLCK);
    close(other);
    lease("one reader", reads, F_WRLCK);
    lease("removed", reads, F_UNLCK);
    int writes = open("file", O_WRONLY);
    lease("a reader and a writer", reads, F_RDLCK);
    close(reads);
    lease("a writer", writes, F_RDLCK);
    lease("a writer", writes, F_WRLCK);
    close(writes);
    int both = open("file", O_RDWR);
    lease("a reader that writes", both, F_WRLCK);
    lease("a reader that writes", both, F_RDLCK);
    say("its own ftruncate", ftruncate(both, 0));
    close(both);
}

static void breaks(void)
{
    int fd = open("file", O_RDONLY);
    fcntl(fd, F_SETSIG, SIGUSR1);
    lease("mine", fd, F_WRLCK);
    try_open("read", O_RDONLY);
    told("read", 0);
    try_open("read again", O_RDONLY);
    told("read again", 0);
    lease("keep it", fd, F_WRLCK);
    try_open("write", O_WRONLY);
    told("write", 0);
    lease("downgraded", fd, F_RDLCK);
    try_open("read", O_RDONLY);
    lease("removed", fd, F_UNLCK);
    printf("signal %d, owner %d\n", fcntl(fd, F_GETSIG), fcntl(fd, F_GETOWN));
    int copy = dup(fd);
    fcntl(fd, F_SETSIG, SIGRTMIN + 1);
    lease("by a duplicate", copy, F_WRLCK);
    say("chmod, rename", chmod("file", 0644) | rename("file", "name") | rename("name", "file"));
    told("chmod, rename", 0);
    try_open("empty", O_WRONLY | O_TRUNC);
    told("empty", 0);
    close(fd);
    try_open("write", O_WRONLY);
    close(copy);
    try_open("write", O_WRONLY);
    fd = open("file", O_RDONLY);
    lease("without a signal", fd, F_RDLCK);
    try_open("write", O_WRONLY);
    told("write", 0);
    close(fd);
}

static void blocks(void)
{
    int fd = open("file", O_RDONLY);
    lease("mine", fd, F_WRLCK);
    pid_t other = child(open_to_read);
    told("the other reads", 1);
    waits(other);
    lease("not now", fd, F_WRLCK);
    lease("downgraded", fd, F_RDLCK);
    ended(other);
    other = child(open_to_write);
    told("the other writes", 1);
    waits(other);
    lease("not now", fd, F_RDLCK);
    lease("removed", fd, F_UNLCK);
    ended(other);
    lease("mine", fd, F_RDLCK);
    other = child(shorten);
    told("the other truncates", 1);
    waits(other);
    lease("not now", fd, F_RDLCK);
    close(fd);
    ended(other);
    fd = open("file", O_RDONLY);
    lease("mine", fd, F_RDLCK);
    other = child(open_with_alarm);
    told("the other is interrupted", 1);
    ended(other);
    lease("still mine", fd, F_RDLCK);
    close(fd);
}

static void owners(void)
{
    int fd = open("file", O_RDONLY);
    struct f_owner_ex owner = {F_OWNER_PID, 0};
    printf("owner %d, signal %d\n", fcntl(fd, F_GETOWN), fcntl(fd, F_GETSIG));
    say("nobody", fcntl(fd, F_SETOWN, 0x7ffffffe));
    say("unknown", fcntl(fd, F_SETOWN_EX, &(struct f_owner_ex){7, getpid()}));
    say("signal 65", fcntl(fd, F_SETSIG, 65));
    say("my group", fcntl(fd, F_SETOWN, -getpgrp()));
    say("who is it", fcntl(fd, F_GETOWN_EX, &owner));
    printf("type %d, %s\n", owner.type, owner.pid == getpgrp() ? "my group" : "another");
    say("my thread", fcntl(fd, F_SETOWN_EX, &(struct f_owner_ex){F_OWNER_TID, gettid()}));
    lease("mine", fd, F_RDLCK);
    say("who is it", fcntl(fd, F_GETOWN_EX, &owner));
    printf("type %d, %s\n", owner.type, owner.pid == gettid() ? "my thread" : "another");
    try_open("write", O_WRONLY);
    told("write", 0);
    lease("removed", fd, F_UNLCK);
    lease("mine", fd, F_RDLCK);
    say("who is it", fcntl(fd, F_GETOWN_EX, &owner));
    printf("type %d, %s\n", owner.type, owner.pid == getpid() ? "me" : "another");
    say("process 1", fcntl(fd, F_SETOWN, 1));
    try_open("write", O_WRONLY);
    told("write", 0);
    close(fd);
}

/* Does nothing while another wants to write. Silent if that one gets the file by force, in time. */
static void force(void)
{
    int fd = open("file", O_RDONLY);
    siginfo_t info;
    sigset_t set = signals();
    struct timespec before, after;
    int refused = fcntl(fd, F_SETLEASE, F_WRLCK);
    clock_gettime(CLOCK_MONOTONIC, &before);
    pid_t other = child(open_to_write);
    sigwaitinfo(&set, &info);
    int status = -1;
    waitpid(other, &status, 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    long seconds = after.tv_sec - before.tv_sec;
    int is_held = fcntl(fd, F_GETLEASE) != F_UNLCK;
    if (refused || status || is_held || seconds < BREAK_SECONDS - 1 || seconds > BREAK_SECONDS + 15)
        printf("refused %d, status %d, held %d, after %ld seconds\n", refused, status, is_held, seconds);
    close(fd);
}

int main(int argc, char **argv)
{
    sigset_t set = signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (argc < 2 || chdir(argv[1]) != 0)
        return 1;
    make("foreign");
    int foreign = open("foreign", O_RDONLY);
    if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
        return 1;
    make("file");
    if (argc > 2) {
        force();
        return 0;
    }
    rights(foreign);
    conflicts();
    breaks();
    blocks();
    owners();
    return 0;
}
