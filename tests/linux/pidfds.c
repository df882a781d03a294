/* Descriptors that mean a process: pidfd_open, pidfd_send_signal, pidfd_getfd, waitid(P_PIDFD), CLONE_PIDFD. It is long because each rule is
 * tried by itself. */
#include "behaviour.h"
#include "ready.h"
#include <linux/sched.h>
#include <pthread.h>
#include <sys/prctl.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static int open_pid(pid_t pid, unsigned flags) { return syscall(SYS_pidfd_open, pid, flags); }
static long send_to(int pidfd, int signal, siginfo_t *info, unsigned flags) {
    return syscall(SYS_pidfd_send_signal, pidfd, signal, info, flags);
}
static long get(int pidfd, int fd, unsigned flags) { return syscall(SYS_pidfd_getfd, pidfd, fd, flags); }

/* A child that waits until it is killed. */
static pid_t sleeper(void) {
    pid_t child = must(fork());
    if (child == 0)
        for (;;)
            pause();
    return child;
}

static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static pid_t zombie(int status) {
    siginfo_t info;
    pid_t child = must(fork());
    if (child == 0)
        _exit(status);
    must(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
    return child;
}

/* A pid that nobody has: it is above the highest. */
static pid_t nobody(void) { return 0x3ffffff; }

/* Waits by a pidfd, and shows what it learns. */
static void wait_by(int pidfd, int options) {
    siginfo_t info = {0};
    long result = waitid(P_PIDFD, pidfd, &info, options);
    show(result);
    if (result == 0)
        note("%d:%d", info.si_pid != 0 ? info.si_code : -1, info.si_status);
}

BEHAVIOUR("pidfd_open with unknown flags, of pid 0, a negative one, nobody") {
    show(open_pid(getpid(), 1));
    show(open_pid(0, 0));
    show(open_pid(-1, 0));
    show(open_pid(nobody(), 0));
}
BEHAVIOUR("pidfd_open beyond RLIMIT_NOFILE") {
    struct rlimit few = {3, 3};
    must(setrlimit(RLIMIT_NOFILE, &few));
    show(open_pid(getpid(), 0));
}
BEHAVIOUR("a pidfd closes on exec; PIDFD_NONBLOCK is O_NONBLOCK") {
    int plain = must(open_pid(getpid(), 0)), patient = must(open_pid(getpid(), O_NONBLOCK));
    note("%d %x", fcntl(plain, F_GETFD), fcntl(plain, F_GETFL));
    note("%d %x", fcntl(patient, F_GETFD), fcntl(patient, F_GETFL));
}
BEHAVIOUR("read and write of a pidfd") {
    char byte = 0;
    int fd = must(open_pid(getpid(), 0));
    show(read(fd, &byte, 1));
    show(write(fd, &byte, 1));
}
BEHAVIOUR("pidfd_send_signal by what is closed, is no pidfd, with unknown flags, unknown signals") {
    int fds[2], self = must(open_pid(getpid(), 0));
    must(pipe(fds));
    show(send_to(99, 0, NULL, 0));
    show(send_to(-1, 0, NULL, 0));
    show(send_to(fds[0], 0, NULL, 0));
    show(send_to(self, 0, NULL, 0x80));
    show(send_to(self, 65, NULL, 0));
    show(send_to(self, -1, NULL, 0));
    show(send_to(self, 0, NULL, 0));
}
BEHAVIOUR("pidfd_send_signal with a siginfo: of another signal, bad memory, codes that are the kernel's") {
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    show(send_to(fd, SIGUSR2, &info, 0));
    show(send_to(fd, SIGUSR1, bad(), 0));
    info.si_code = SI_USER;
    show(send_to(fd, SIGUSR1, &info, 0));
    info.si_code = SI_TKILL;
    show(send_to(fd, SIGUSR1, &info, 0));
    info.si_code = SI_KERNEL;
    show(send_to(fd, SIGUSR1, &info, 0));
    end(child);
}

static volatile int code, value, sender;
static void remember(int signal, siginfo_t *info, void *context) {
    (void)context;
    handled = signal;
    code = info->si_code;
    value = info->si_value.sival_int;
    sender = info->si_pid;
}
BEHAVIOUR("a signal comes as by kill, with a siginfo as that says") {
    struct sigaction action = {.sa_sigaction = remember, .sa_flags = SA_SIGINFO};
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE, .si_pid = 7};
    int fd = must(open_pid(getpid(), 0));
    must(sigaction(SIGUSR1, &action, NULL));
    show(send_to(fd, SIGUSR1, NULL, 0));
    note("%d %d %d", handled == SIGUSR1, code, sender == getpid());
    info.si_value.sival_int = 77;
    show(send_to(fd, SIGUSR1, &info, 0));
    note("%d %d %d", code, value, sender);
    /* To itself a process may send what is the kernel's. */
    info.si_code = SI_KERNEL;
    show(send_to(fd, SIGUSR1, &info, 0));
    show(code);
}
BEHAVIOUR("pidfd_send_signal kills, stops and goes on") {
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0)), status;
    show(send_to(fd, SIGSTOP, NULL, 0));
    waitpid(child, &status, WUNTRACED);
    show_status(status);
    show(send_to(fd, SIGCONT, NULL, 0));
    waitpid(child, &status, WCONTINUED);
    show_status(status);
    show(send_to(fd, SIGTERM, NULL, 0));
    wait_for(child);
}
BEHAVIOUR("pidfd_send_signal and pidfd_getfd by another user") {
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    AS(USER) {
        show(send_to(fd, 0, NULL, 0));
        show(send_to(fd, SIGTERM, NULL, 0));
        show(get(fd, 0, 0));
        succeeds(open_pid(child, 0) >= 0);
    }
    end(child);
}
BEHAVIOUR("pidfd_send_signal to a zombie, and to a process that was waited for") {
    pid_t child = zombie(3);
    int fd = must(open_pid(child, 0));
    show(send_to(fd, 0, NULL, 0));
    show(send_to(fd, SIGTERM, NULL, 0));
    wait_for(child);
    show(send_to(fd, 0, NULL, 0));
    show(send_to(fd, SIGTERM, NULL, 0));
    show(open_pid(child, 0));
}
BEHAVIOUR("a pidfd of a process that is gone reaches no later one") {
    pid_t child = zombie(0);
    int fd = must(open_pid(child, 0));
    wait_for(child);
    pid_t later = sleeper();
    show(send_to(fd, SIGKILL, NULL, 0));
    show(waitpid(later, NULL, WNOHANG));
    end(later);
}
BEHAVIOUR("a directory of /proc is a pidfd for pidfd_send_signal alone") {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)getpid());
    int fd = must(open(path, O_RDONLY | O_DIRECTORY)), other = must(open("/proc", O_RDONLY | O_DIRECTORY));
    show(send_to(fd, 0, NULL, 0));
    show(send_to(other, 0, NULL, 0));
    show(get(fd, 0, 0));
    wait_by(fd, WEXITED);
}
BEHAVIOUR("poll: ready for reading when the process has ended, and after it was waited for") {
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    show_poll(fd, 0);
    kill(child, SIGKILL);
    show_poll(fd, 5000);
    show_poll(fd, 0);
    waitpid(child, NULL, 0);
    show_poll(fd, 0);
}
BEHAVIOUR("poll of a pidfd that was opened of a zombie, and of oneself") {
    pid_t child = zombie(0);
    show_poll(must(open_pid(child, 0)), 0);
    show_poll(must(open_pid(getpid(), 0)), 0);
}
BEHAVIOUR("poll waits for the end, also of a process that is no child") {
    struct gate gate = new_gate();
    pid_t child = sleeper();
    pid_t watcher = fork();
    if (watcher == 0) {
        int fd = must(open_pid(child, 0));
        open_gate(gate);
        show_poll(fd, 5000);
        wait_by(fd, WEXITED);
        _exit(0);
    }
    pass_gate(gate);
    wait_until_asleep(watcher);
    kill(child, SIGKILL);
    wait_for(watcher);
    waitpid(child, NULL, 0);
}
BEHAVIOUR("epoll by level, by edge and EPOLLONESHOT") {
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    int level = epoll_of(fd, EPOLLIN), edge = epoll_of(fd, EPOLLIN | EPOLLET), once = epoll_of(fd, EPOLLIN | EPOLLONESHOT);
    show_epoll(level, 0);
    show_epoll(edge, 0);
    kill(child, SIGKILL);
    show_epoll(level, 5000);
    show_epoll(level, 0);
    show_epoll(edge, 5000);
    show_epoll(edge, 0);
    show_epoll(once, 5000);
    show_epoll(once, 0);
    waitpid(child, NULL, 0);
    show_epoll(level, 0);
}
BEHAVIOUR("stops do not make a pidfd ready, nor does an exec") {
    struct gate gate = new_gate();
    pid_t child = sleeper();
    int status, fd = must(open_pid(child, 0));
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    show_poll(fd, 0);
    end(child);
    child = fork();
    if (child == 0) {
        dup2(gate.fds[0], 0);
        execl("/bin/sh", "sh", "-c", "read line", NULL);
        _exit(99);
    }
    int other = must(open_pid(child, 0));
    sleep_ms(5);
    wait_until_asleep(child);
    show_poll(other, 0);
    must(write(gate.fds[1], "\n", 1));
    show_poll(other, 5000);
    wait_by(other, WEXITED);
}
static struct gate ending;
static void *end_behind_gate(void *unused) {
    pass_gate(ending);
    syscall(SYS_exit_group, 6);
    return unused;
}
BEHAVIOUR("a process with threads has ended when the last has, not when the first has") {
    ending = new_gate();
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, end_behind_gate, NULL);
        syscall(SYS_exit, 1);
    }
    int fd = must(open_pid(child, 0));
    wait_until_asleep(child);
    show_poll(fd, 0);
    wait_by(fd, WEXITED | WNOHANG);
    open_gate(ending);
    show_poll(fd, 5000);
    wait_by(fd, WEXITED);
}
BEHAVIOUR("waitid by what is closed, negative, no pidfd, without a kind of end, with unknown options") {
    siginfo_t info;
    int fds[2], self = must(open_pid(getpid(), 0));
    must(pipe(fds));
    show(waitid(P_PIDFD, 99, &info, WEXITED));
    show(waitid(P_PIDFD, -1, &info, WEXITED));
    show(waitid(P_PIDFD, fds[0], &info, WEXITED));
    show(waitid(P_PIDFD, self, &info, 0));
    show(waitid(P_PIDFD, self, &info, 0x10));
    show(waitid(P_PIDFD, self, &info, WEXITED));
}
BEHAVIOUR("waitid WNOHANG of a child that lives, WNOWAIT of one that has ended, then it is gone") {
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    wait_by(fd, WEXITED | WNOHANG);
    kill(child, SIGKILL);
    wait_by(fd, WEXITED | WNOWAIT);
    wait_by(fd, WEXITED);
    wait_by(fd, WEXITED);
    show(waitpid(child, NULL, WNOHANG));
}
BEHAVIOUR("waitid of a stopped child, and of one that goes on") {
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    kill(child, SIGSTOP);
    wait_by(fd, WSTOPPED);
    wait_by(fd, WSTOPPED | WNOHANG);
    kill(child, SIGCONT);
    wait_by(fd, WCONTINUED);
    end(child);
}
BEHAVIOUR("waitid by a pidfd with O_NONBLOCK is EAGAIN while the child lives, not when it has ended") {
    pid_t child = sleeper();
    int fd = must(open_pid(child, O_NONBLOCK));
    wait_by(fd, WEXITED);
    wait_by(fd, WEXITED | WNOHANG);
    kill(child, SIGKILL);
    show_poll(fd, 5000);
    wait_by(fd, WEXITED);
}
BEHAVIOUR("a waiting waitid ends with its child, also when another ends before") {
    pid_t first = sleeper(), second = sleeper();
    int fd = must(open_pid(second, 0));
    pid_t killer = fork();
    if (killer == 0) {
        sleep_ms(5);
        wait_until_asleep(getppid());
        kill(first, SIGKILL);
        wait_until_asleep(getppid());
        kill(second, SIGTERM);
        _exit(0);
    }
    wait_by(fd, WEXITED);
    wait_for(first);
    wait_for(killer);
}
BEHAVIOUR("a child has its parent's pidfds, and cannot wait by them") {
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    IN_CHILD {
        wait_by(fd, WEXITED | WNOHANG);
        show_poll(fd, 0);
        show(send_to(fd, SIGTERM, NULL, 0));
    }
    wait_by(fd, WEXITED);
}
BEHAVIOUR("a pidfd that was sent means the same process") {
    int ends[2];
    new_link(ends);
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    send_descriptor(ends[0], fd);
    IN_CHILD {
        int received = receive_descriptor(ends[1]);
        show_poll(received, 0);
        show(send_to(received, SIGTERM, NULL, 0));
        show_poll(received, 5000);
    }
    fd = through_a_socket(fd);
    wait_by(fd, WEXITED);
}
BEHAVIOUR("a pidfd in flight while its process ends and is waited for") {
    int ends[2];
    new_link(ends);
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    send_descriptor(ends[0], fd);
    close(fd);
    end(child);
    fd = receive_descriptor(ends[1]);
    show_poll(fd, 0);
    show(send_to(fd, 0, NULL, 0));
}
BEHAVIOUR("pidfd_getfd with unknown flags, by what is closed or no pidfd, of what is not open") {
    int fds[2], self = must(open_pid(getpid(), 0));
    must(pipe(fds));
    show(get(self, 0, 1));
    show(get(99, 0, 0));
    show(get(fds[0], 0, 0));
    show(get(self, 99, 0));
    show(get(self, -1, 0));
}
BEHAVIOUR("pidfd_getfd gives the same open file, which closes on exec") {
    make("f", "contents");
    struct gate gate = new_gate();
    int numbers[2];
    must(pipe(numbers));
    pid_t child = fork();
    if (child == 0) {
        int fd = must(open("f", O_RDONLY));
        must(lseek(fd, 3, SEEK_SET));
        must(write(numbers[1], &fd, sizeof fd));
        pass_gate(gate);
        show(lseek(fd, 0, SEEK_CUR));
        _exit(0);
    }
    int theirs, pidfd = must(open_pid(child, 0));
    must(read(numbers[0], &theirs, sizeof theirs));
    int copy = must(get(pidfd, theirs, 0));
    show(fcntl(copy, F_GETFD));
    show_read(copy, 2);
    open_gate(gate);
    wait_for(child);
    show_read(copy, 9);
}
BEHAVIOUR("pidfd_getfd of a zombie, and of a process that was waited for") {
    pid_t child = zombie(0);
    int fd = must(open_pid(child, 0));
    show(get(fd, 0, 0));
    wait_for(child);
    show(get(fd, 0, 0));
}
BEHAVIOUR("pidfd_getfd of one's own process that is not dumpable, by the superuser") {
    struct gate ready = new_gate();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_DUMPABLE, 0);
        become(USER);
        prctl(PR_SET_DUMPABLE, 0);
        open_gate(ready);
        for (;;)
            pause();
    }
    pass_gate(ready);
    int fd = must(open_pid(child, 0));
    succeeds(get(fd, 0, 0) >= 0);
    AS(USER) { show(get(fd, 0, 0)); }
    end(child);
}
BEHAVIOUR("clone3 CLONE_PIDFD gives the parent a pidfd, the child none") {
    int pidfd = -1;
    struct clone_args arguments = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    int lowest = dup(0);
    close(lowest);
    pid_t child = must(syscall(SYS_clone3, &arguments, sizeof arguments));
    if (child == 0)
        _exit(fcntl(lowest, F_GETFD) == -1 ? 9 : 8);
    note("%d %d", pidfd == lowest, fcntl(pidfd, F_GETFD));
    wait_by(pidfd, WEXITED);
}
BEHAVIOUR("clone3 CLONE_PIDFD into bad memory, or at the limit of descriptors, makes no child") {
    struct rlimit few = {3, 3};
    int pidfd = 77;
    struct clone_args arguments = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)bad(), .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        _exit(0);
    show(child > 0 ? 1 : child);
    must(setrlimit(RLIMIT_NOFILE, &few));
    arguments.pidfd = (uintptr_t)&pidfd;
    child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        _exit(0);
    show(child > 0 ? 1 : child);
    show(pidfd);
    show(waitpid(-1, NULL, WNOHANG));
}
BEHAVIOUR("clone CLONE_PIDFD stores where the parent's id would be, not both") {
    int pidfd = -1;
    show(syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, 0, &pidfd, 0, 0));
    show(syscall(SYS_clone, CLONE_PIDFD | CLONE_DETACHED | SIGCHLD, 0, &pidfd, 0, 0));
    pid_t child = must(syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0));
    if (child == 0)
        _exit(5);
    wait_by(pidfd, WEXITED);
}
BEHAVIOUR("a child without a signal at its end is waited for by pidfd with __WALL") {
    int pidfd = -1;
    struct clone_args arguments = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd};
    pid_t child = must(syscall(SYS_clone3, &arguments, sizeof arguments));
    if (child == 0)
        _exit(6);
    show_poll(pidfd, 5000);
    wait_by(pidfd, WEXITED);
    wait_by(pidfd, WEXITED | __WALL);
}
BEHAVIOUR("with SIGCHLD ignored a child leaves no zombie, and its pidfd is ready") {
    signal(SIGCHLD, SIG_IGN);
    pid_t child = sleeper();
    int fd = must(open_pid(child, 0));
    kill(child, SIGKILL);
    show_poll(fd, 5000);
    wait_by(fd, WEXITED);
}
BEHAVIOUR("two pidfds of one process, duplicates: each is ready") {
    pid_t child = sleeper();
    int first = must(open_pid(child, 0)), second = must(open_pid(child, 0)), copy = must(dup(first));
    close(first);
    kill(child, SIGKILL);
    show_poll(second, 5000);
    show_poll(copy, 5000);
    wait_by(copy, WEXITED);
    wait_by(second, WEXITED);
}
/* Shows what fdinfo has of a pidfd of a process: its number, of whom it is, and that of whom NSpid tells. */
static void show_pids(int pidfd, pid_t pid) {
    char path[64], line[128];
    int number;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Pid:\t%d", &number) == 1 || sscanf(line, "NSpid:\t%d", &number) == 1)
            note("%.3s:%s", line, number == pid ? "its" : number == -1 ? "-1" : "other");
    fclose(file);
}
BEHAVIOUR("fdinfo has the pid, as long as it is the process's, also of a zombie") {
    pid_t child = sleeper(), dead = zombie(3);
    int living = must(open_pid(child, 0)), ended = must(open_pid(dead, 0));
    show_pids(living, child);
    show_pids(ended, dead);
    end(child);
    waitpid(dead, NULL, 0);
    show_pids(living, child);
    show_pids(ended, dead);
}
BEHAVIOUR("fdinfo of a pidfd in a container of processes has the number there, in the parent both") {
    int fds[2];
    must(pipe(fds));
    must(unshare(CLONE_NEWPID));
    pid_t child = must(fork());
    if (child == 0) {
        char byte;
        read(fds[0], &byte, 1);
        _exit(0);
    }
    int pidfd = must(open_pid(child, 0));
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof line, file) != NULL) {
        int outer, inner;
        if (sscanf(line, "NSpid:\t%d\t%d", &outer, &inner) == 2)
            note("%s:%d", outer == child ? "its" : "other", inner);
    }
    fclose(file);
    write(fds[1], "x", 1);
    wait_for(child);
}
