/* Descriptors that mean a process: prints what it sees, the same on Linux. With an argument it makes so many children by CLONE_PIDFD one after
 * the other, waits for each by its descriptor in an epoll, and prints how many ended as they should. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#define NOBODY 65534

static void say(const char *what, long result)
{
    if (result >= 0)
        printf("%s: %ld\n", what, result);
    else
        printf("%s: %s\n", what, strerrorname_np(errno));
}

static int open_pid(pid_t pid, unsigned flags)
{
    return syscall(SYS_pidfd_open, pid, flags);
}

static long send_to(int pidfd, int signal, siginfo_t *info, unsigned flags)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signal, info, flags);
}

static long get(int pidfd, int descriptor, unsigned flags)
{
    return syscall(SYS_pidfd_getfd, pidfd, descriptor, flags);
}

static int ready(int descriptor, int timeout_ms)
{
    struct pollfd one = {.fd = descriptor, .events = POLLIN | POLLOUT};
    int count = poll(&one, 1, timeout_ms);
    return count == 1 ? one.revents : count;
}

/* A child that waits until it is killed. */
static pid_t sleeper(void)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    return child;
}

static long clone_with(uint64_t flags, int *pidfd, int signal)
{
    struct clone_args arguments = {.flags = flags, .pidfd = (uintptr_t)pidfd, .exit_signal = signal};
    return syscall(SYS_clone3, &arguments, sizeof arguments);
}

static void errors(void)
{
    int pipe_ends[2], own = open_pid(getpid(), 0);
    pipe(pipe_ends);
    say("flags", open_pid(getpid(), 1));
    say("pid 0", open_pid(0, 0));
    say("pid -1", open_pid(-1, 0));
    say("no process", open_pid(4000000, 0));
    say("close on exec", fcntl(own, F_GETFD));
    say("flags of it", fcntl(own, F_GETFL));
    int patient = open_pid(getpid(), O_NONBLOCK);
    say("flags of one that does not block", fcntl(patient, F_GETFL));
    char byte;
    say("read", read(own, &byte, 1));
    say("write", write(own, "x", 1));
    say("ready", ready(own, 0));
    say("send to a pipe", send_to(pipe_ends[0], 0, NULL, 0));
    say("send to nothing", send_to(99, 0, NULL, 0));
    say("send with strange flags", send_to(own, 0, NULL, 0x80));
    say("send signal 65", send_to(own, 65, NULL, 0));
    say("send nothing", send_to(own, 0, NULL, 0));
    say("get with flags", get(own, 0, 1));
    say("get by a pipe", get(pipe_ends[0], 0, 0));
    say("get what is not open", get(own, 99, 0));
    siginfo_t info;
    say("wait for a pipe", waitid(P_PIDFD, pipe_ends[0], &info, WEXITED));
    say("wait for itself", waitid(P_PIDFD, own, &info, WEXITED));
    say("wait for -1", waitid(P_PIDFD, -1, &info, WEXITED));
    close(own), close(patient), close(pipe_ends[0]), close(pipe_ends[1]);
}

static void ends(void)
{
    pid_t child = sleeper();
    int pidfd = open_pid(child, 0), impatient = open_pid(child, O_NONBLOCK);
    siginfo_t info = {};
    say("it lives", ready(pidfd, 0));
    say("wait that may not block", waitid(P_PIDFD, impatient, &info, WEXITED));
    memset(&info, 1, sizeof info);
    say("wait with WNOHANG", waitid(P_PIDFD, pidfd, &info, WEXITED | WNOHANG));
    printf("pid %d\n", info.si_pid);
    say("stop", send_to(pidfd, SIGSTOP, NULL, 0));
    say("wait for the stop", waitid(P_PIDFD, pidfd, &info, WSTOPPED));
    printf("code %d status %d own %d\n", info.si_code, info.si_status, info.si_pid == child);
    say("kill", send_to(pidfd, SIGKILL, NULL, 0));
    say("it has ended", ready(pidfd, -1));
    say("signal to a zombie", send_to(pidfd, 0, NULL, 0));
    say("get of a zombie", get(pidfd, 0, 0));
    int late = open_pid(child, 0);
    say("opened as a zombie", ready(late, 0));
    say("wait", waitid(P_PIDFD, pidfd, &info, WEXITED));
    printf("code %d status %d own %d\n", info.si_code, info.si_status, info.si_pid == child);
    say("signal when it is gone", send_to(pidfd, SIGTERM, NULL, 0));
    say("get when it is gone", get(pidfd, 0, 0));
    say("wait again", waitid(P_PIDFD, pidfd, &info, WEXITED));
    say("readable still", ready(pidfd, 0) & POLLIN);
    say("its pid", open_pid(child, 0));
    close(pidfd), close(impatient), close(late);
}

static volatile int handled, value;

static void handle(int signal, siginfo_t *info, void *context)
{
    (void)context;
    handled = signal;
    value = info->si_value.sival_int;
}

static void signals(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    int own = open_pid(getpid(), 0);
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    info.si_value.sival_int = 77;
    say("with a siginfo", send_to(own, SIGUSR1, &info, 0));
    printf("handled %d value %d\n", handled == SIGUSR1, value);
    say("of another signal", send_to(own, SIGUSR2, &info, 0));
    say("without memory", send_to(own, SIGUSR1, (siginfo_t *)8, 0));
    pid_t child = sleeper();
    int pidfd = open_pid(child, 0);
    info.si_code = SI_USER;
    say("as the kernel", send_to(pidfd, SIGUSR1, &info, 0));
    pid_t stranger = fork();
    if (stranger == 0) {
        setgid(NOBODY), setuid(NOBODY);
        say("as another user", send_to(pidfd, SIGTERM, NULL, 0));
        say("get as another user", get(pidfd, 0, 0));
        fflush(stdout);
        _exit(0);
    }
    waitpid(stranger, NULL, 0);
    send_to(pidfd, SIGKILL, NULL, 0);
    waitpid(child, NULL, 0);
    close(own), close(pidfd);
}

static void copies(void)
{
    int to_child[2], to_parent[2];
    pipe(to_child), pipe(to_parent);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        int secret[2];
        pipe(secret);
        write(to_parent[1], &secret[1], sizeof secret[1]);
        read(secret[0], &byte, 1);
        write(to_parent[1], &byte, 1);
        prctl(PR_SET_DUMPABLE, 0);
        write(to_parent[1], "d", 1);
        read(to_child[0], &byte, 1);
        _exit(byte);
    }
    int theirs, pidfd = open_pid(child, 0);
    read(to_parent[0], &theirs, sizeof theirs);
    int copy = get(pidfd, theirs, 0);
    say("close on exec", fcntl(copy, F_GETFD));
    say("written into another's pipe", write(copy, "s", 1));
    char byte = 0;
    read(to_parent[0], &byte, 1);
    printf("it has read %c\n", byte);
    close(copy);
    write(to_child[1], "x", 1);
    int status;
    waitpid(child, &status, 0);
    printf("status %c\n", WEXITSTATUS(status));
    close(pidfd);
}

static void clones(void)
{
    int pidfd = -1, lowest = dup(0);
    close(lowest);
    long child = clone_with(CLONE_PIDFD, &pidfd, SIGCHLD);
    if (child == 0)
        _exit(fcntl(lowest, F_GETFD) == -1 ? 9 : 8);
    say("the lowest descriptor", pidfd - lowest);
    say("close on exec", fcntl(pidfd, F_GETFD));
    siginfo_t info;
    say("wait", waitid(P_PIDFD, pidfd, &info, WEXITED));
    printf("the child %d, status %d (9: it has none itself)\n", info.si_pid == child, info.si_status);
    close(pidfd);
    say("nowhere to tell", clone_with(CLONE_PIDFD, (int *)8, SIGCHLD));
    say("no null pointer", clone_with(CLONE_PIDFD, NULL, SIGCHLD));
    say("nobody is left", waitpid(-1, NULL, WNOHANG));
    say("with CLONE_PARENT_SETTID", syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, 0, &pidfd, 0, 0));
    child = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
    if (child == 0)
        _exit(5);
    say("ready", ready(pidfd, -1));
    waitid(P_PIDFD, pidfd, &info, WEXITED);
    printf("status %d\n", info.si_status);
    close(pidfd);
}

/* One thread of the child ends after the other: it is not ready before the last one. */
static int other_thread(void *argument)
{
    (void)argument;
    usleep(20000);
    syscall(SYS_exit_group, 6);
    return 0;
}

static void threads(void)
{
    pid_t child = fork();
    if (child == 0) {
        static char stack[16384];
        clone(other_thread, stack + sizeof stack, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, NULL);
        syscall(SYS_exit, 1);
    }
    int pidfd = open_pid(child, 0);
    siginfo_t info;
    say("ready", ready(pidfd, -1));
    say("wait", waitid(P_PIDFD, pidfd, &info, WEXITED | WNOHANG));
    printf("status %d\n", info.si_status);
    close(pidfd);
}

static int many(int rounds)
{
    int epoll = epoll_create1(0), good = 0;
    for (int round = 0; round < rounds; round++) {
        int pidfd = -1;
        long child = clone_with(CLONE_PIDFD, &pidfd, SIGCHLD);
        if (child == 0) {
            if (round % 2 == 0)
                for (;;)
                    pause();
            _exit(round % 100);
        }
        struct epoll_event event = {.events = EPOLLIN, .data.fd = pidfd};
        siginfo_t info = {};
        epoll_ctl(epoll, EPOLL_CTL_ADD, pidfd, &event);
        if (round % 2 == 0)
            send_to(pidfd, SIGTERM, NULL, 0);
        if (epoll_wait(epoll, &event, 1, -1) != 1 || event.data.fd != pidfd)
            printf("round %d: no event\n", round);
        if (waitid(P_PIDFD, pidfd, &info, WEXITED) != 0 || info.si_pid != child)
            printf("round %d: waited for %d\n", round, info.si_pid);
        good += info.si_status == (round % 2 == 0 ? SIGTERM : round % 100);
        close(pidfd);
    }
    printf("%d of %d\n", good, rounds);
    say("the next descriptor", dup(0));
    return 0;
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count > 1)
        return many(atoi(arguments[1]));
    errors();
    ends();
    signals();
    copies();
    clones();
    threads();
    return 0;
}
