/* seccomp's strict mode: what a thread may call then, and what it does not change. */
#include "behaviour.h"
#include "tracing.h"
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>

static long seccomp(unsigned long operation, unsigned long flags, void *arguments) {
    return syscall(SYS_seccomp, operation, flags, arguments);
}

static void become_strict(void) { must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)); }

/* exit of the C library is exit_group, which a strict thread may not call. */
static void leave(long status) { syscall(SYS_exit, status); }

/* Runs in a child that is strict, and shows how it ends. */
#define STRICT for (pid_t strict_ = fork(); strict_ == 0 ? (become_strict(), 1) : (wait_for(strict_), 0); leave(0))

BEHAVIOUR("PR_SET_SECCOMP of no mode") {
    show(prctl(PR_SET_SECCOMP, SECCOMP_MODE_DISABLED));
    show(prctl(PR_SET_SECCOMP, 3));
    show(prctl(PR_GET_SECCOMP));
}

BEHAVIOUR("seccomp with flags or arguments, or of nothing known") {
    show(seccomp(SECCOMP_SET_MODE_STRICT, 1, NULL));
    show(seccomp(SECCOMP_SET_MODE_STRICT, 0, bad()));
    show(seccomp(77, 0, NULL));
    note("%d", prctl(PR_GET_SECCOMP));
}

BEHAVIOUR("a filter that cannot be read") { show(seccomp(SECCOMP_SET_MODE_FILTER, 0, NULL)); }

BEHAVIOUR("a strict thread reads, writes and exits") {
    int there[2], back[2];
    must(pipe(there));
    must(pipe(back));
    pid_t child = must(fork());
    if (child == 0) {
        become_strict();
        char byte = 0;
        read(there[0], &byte, 1);
        byte++;
        write(back[1], &byte, 1);
        read(there[0], &byte, 1);
        leave(byte);
    }
    char byte = 'a';
    write(there[1], &byte, 1);
    show_read(back[0], 1);
    byte = 7;
    write(there[1], &byte, 1);
    wait_for(child);
}

BEHAVIOUR("seccomp begins it as prctl does") {
    IN_CHILD {
        must(seccomp(SECCOMP_SET_MODE_STRICT, 0, NULL));
        leave(4);
    }
    IN_CHILD {
        must(seccomp(SECCOMP_SET_MODE_STRICT, 0, NULL));
        getppid();
        leave(4);
    }
}

BEHAVIOUR("any other call is SIGKILL") {
    STRICT syscall(SYS_getpid);
    STRICT syscall(SYS_exit_group, 0);
    STRICT syscall(SYS_open, "/", 0);
    STRICT syscall(SYS_close, 0);
    STRICT syscall(SYS_brk, 0);
    STRICT syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    STRICT syscall(SYS_fork);
    STRICT syscall(SYS_kill, 0, 0);
    STRICT syscall(SYS_nanosleep, bad(), NULL);
    STRICT syscall(SYS_sched_yield);
    STRICT syscall(SYS_futex, bad(), FUTEX_WAKE, 1);
    STRICT syscall(SYS_clock_gettime, CLOCK_MONOTONIC, bad());
    STRICT syscall(SYS_prctl, PR_GET_SECCOMP);
    STRICT syscall(SYS_seccomp, 0, 0, 0);
    STRICT syscall(SYS_readv, -1, NULL, 0);
    STRICT syscall(SYS_pread64, -1, NULL, 0, 0);
    STRICT syscall(4000);
}

BEHAVIOUR("also after many calls that are allowed") {
    STRICT {
        for (int n = 0; n < 100; n++)
            write(-1, "", 1);
        getpid();
        syscall(SYS_getpid);
    }
}

BEHAVIOUR("SIGKILL of a forbidden call does not run handlers, and cannot be blocked") {
    handle(SIGSYS, 0);
    IN_CHILD {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        become_strict();
        syscall(SYS_getpid);
    }
}

BEHAVIOUR("calls that fail fail as before") {
    int fds[2];
    must(pipe(fds));
    IN_CHILD {
        become_strict();
        int failures[3];
        failures[0] = write(-1, "", 1) < 0 ? errno : 0;
        failures[1] = read(fds[0], bad(), 0) < 0 ? errno : 0;
        failures[2] = write(fds[1], bad(), 1) < 0 ? errno : 0;
        write(fds[1], failures, sizeof failures);
        leave(0);
    }
    int failures[3];
    read(fds[0], failures, sizeof failures);
    for (int n = 0; n < 3; n++)
        note("%s", failures[n] ? strerrorname_np(failures[n]) : "0");
}

static int told[2];

static void tell(int signal) {
    handled++;
    write(told[1], &(char){signal}, 1);
}

BEHAVIOUR("a handler runs and returns in a strict thread") {
    must(pipe(told));
    struct sigaction action = {.sa_handler = tell, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    int gate[2];
    must(pipe(gate));
    pid_t child = must(fork());
    if (child == 0) {
        become_strict();
        char byte;
        write(told[1], "r", 1);
        long length = read(gate[0], &byte, 1);
        if (length == 1 && byte == 'x' && handled == 2)
            leave(6);
        syscall(SYS_getpid);
    }
    show_read(told[0], 1);
    for (int n = 0; n < 2; n++) {
        wait_until_asleep(child);
        kill(child, SIGUSR1);
        char byte;
        read(told[0], &byte, 1);
        note("%d", byte == SIGUSR1);
    }
    write(gate[1], "x", 1);
    wait_for(child);
}

/* A strict child that reads from a gate, which is a pipe, and then makes a forbidden call. It waits. */
static pid_t strict_behind(int gate[2]) {
    must(pipe(gate));
    pid_t child = must(fork());
    if (child == 0) {
        become_strict();
        char byte;
        read(gate[0], &byte, 1);
        syscall(SYS_getpid);
        leave(0);
    }
    wait_until_asleep(child);
    return child;
}

/* Shows what /proc/PID/status says of seccomp. */
static void show_mode_of(const char *who) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%s/status", who);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "Seccomp", 7) == 0)
            show_bytes(line, strlen(line));
    fclose(status);
}

BEHAVIOUR("/proc/PID/status shows the mode") {
    int gate[2];
    char who[32];
    show_mode_of("self");
    pid_t child = strict_behind(gate);
    snprintf(who, sizeof who, "%d", child);
    show_mode_of(who);
    show_mode_of("self");
    write(gate[1], "x", 1);
    wait_for(child);
}

static struct gate began, released;

/* A strict thread that tells its id, and waits. */
static void *wait_strictly(void *id) {
    *(pid_t *)id = gettid();
    become_strict();
    char byte;
    write(began.fds[1], "", 1);
    read(released.fds[0], &byte, 1);
    leave(0);
    return NULL;
}

BEHAVIOUR("/proc/PID/task/TID/status shows the mode of the thread") {
    char who[32];
    pid_t id;
    pthread_t thread;
    began = new_gate();
    released = new_gate();
    must(pthread_create(&thread, NULL, wait_strictly, &id));
    pass_gate(began);
    snprintf(who, sizeof who, "self/task/%d", id);
    show_mode_of(who);
    show_mode_of("self");
    open_gate(released);
}

BEHAVIOUR("a strict process that is stopped and continued is still strict") {
    int gate[2];
    pid_t child = strict_behind(gate);
    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    kill(child, SIGCONT);
    write(gate[1], "x", 1);
    wait_for(child);
}

static void *be_strict(void *unused) {
    (void)unused;
    become_strict();
    syscall(SYS_getpid);
    return NULL;
}

BEHAVIOUR("of several threads the strict one ends, and the others go on") {
    IN_CHILD {
        pthread_t thread;
        must(pthread_create(&thread, NULL, be_strict, NULL));
        pthread_join(thread, NULL);
        note("goes on");
        note("%d", prctl(PR_GET_SECCOMP));
        exit(3);
    }
}

BEHAVIOUR("a tracer sees the call that is forbidden, and may replace it") {
    for (int replaces = 0; replaces < 2; replaces++) {
        pid_t child = begin_traced();
        if (child == 0) {
            become_strict();
            syscall(SYS_getpid, 5);
            leave(9);
        }
        for (int n = 0; n < 3; n++) {
            must(request(PTRACE_SYSCALL, child, 0, 0));
            show_next(child);
        }
        note("%d", ptrace(PTRACE_PEEKUSER, child, REGISTER(orig_rax), 0) == SYS_getpid);
        if (replaces)
            must(request(PTRACE_POKEUSER, child, (unsigned long)REGISTER(orig_rax), SYS_exit));
        must(request(PTRACE_CONT, child, 0, 0));
        show_next(child);
    }
}

BEHAVIOUR("a strict thread that a tracer has let go is still strict") {
    int gate[2];
    pid_t child = strict_behind(gate);
    must(request(PTRACE_SEIZE, child, 0, 0));
    must(request(PTRACE_INTERRUPT, child, 0, 0));
    show_next(child);
    must(request(PTRACE_DETACH, child, 0, 0));
    write(gate[1], "x", 1);
    wait_for(child);
}
