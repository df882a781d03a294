/* Who has filters of seccomp: children, threads, programs that are executed; and what a tracer has to do with them. */
#include "filters.h"
#include "tracing.h"
#include <pthread.h>

BEHAVIOUR("children and threads have it, and so has a program that is executed") {
    IN_CHILD {
        ADD_FOR(umask, ERROR(EXDEV));
        IN_CHILD {
            show(syscall(SYS_umask, 0));
            ADD_FOR(umask, ERROR(ERANGE));
            show(syscall(SYS_umask, 0));
        }
        show(syscall(SYS_umask, 0));
        pid_t child = vfork();
        if (child == 0)
            _exit(syscall(SYS_umask, 0) == -1 && errno == EXDEV ? 5 : 6);
        wait_for(child);
        char *const command[] = {"sh", "-c", "umask 2>/dev/null; exit 9", NULL};
        if (fork() == 0)
            execv("/bin/sh", command);
        wait(NULL);
    }
}

BEHAVIOUR("a forked child of a filter that forbids to fork") {
    IN_CHILD {
        pid_t child = fork();
        if (child == 0) {
            ADD(0, LOAD(nr), FOR(clone, ERROR(EPERM)), FOR(fork, ERROR(EPERM)), FOR(vfork, ERROR(EPERM)), ALLOW);
            show(fork());
            _exit(0);
        }
        wait_for(child);
        IN_CHILD note("forks");
    }
}

/* Shows what /proc/PID/status says of seccomp. */
static void show_filters(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "Seccomp", 7) == 0)
            show_bytes(line, strlen(line));
    fclose(status);
}

BEHAVIOUR("/proc/PID/status shows mode and number") {
    show_filters();
    IN_CHILD {
        must(ADD(0, ALLOW));
        must(ADD(0, ALLOW));
        show_filters();
        IN_CHILD show_filters();
    }
    show_filters();
}

BEHAVIOUR("strict is not to be had any more") {
    IN_CHILD {
        must(ADD(0, ALLOW));
        show(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
        show(seccomp(SECCOMP_SET_MODE_STRICT, 0, NULL));
        show(prctl(PR_GET_SECCOMP));
    }
}

BEHAVIOUR("a filter may forbid filters") {
    IN_CHILD {
        ADD(0, LOAD(nr), FOR(seccomp, ERROR(ERANGE)), FOR(prctl, ERROR(EDOM)), ALLOW);
        show(ADD(0, ALLOW));
        show(prctl(PR_GET_SECCOMP));
    }
}

BEHAVIOUR("a call that waits is filtered before it waits, and results come back") {
    int fds[2];
    must(pipe(fds));
    IN_CHILD {
        must(ADD(0, ALLOW));
        pid_t child = fork();
        if (child == 0) {
            char byte;
            handle(SIGUSR1, SA_RESTART);
            show(read(fds[0], &byte, 1));
            note("%c handled %d", byte, handled);
            _exit(0);
        }
        wait_until_asleep(child);
        kill(child, SIGUSR1);
        wait_until_asleep(child);
        write(fds[1], "x", 1);
        wait_for(child);
    }
}

static struct gate began, released;

/* A thread that has come to `open_gate(began)`. */
static pthread_t start(void *(*thread)(void *), void *argument) {
    pthread_t id;
    began = new_gate();
    released = new_gate();
    must(pthread_create(&id, NULL, thread, argument));
    pass_gate(began);
    return id;
}

/* Lets it go on from `pass_gate(released)`, to its end. */
static void let_end(pthread_t id) {
    open_gate(released);
    pthread_join(id, NULL);
}

static void *wait_and_call(void *result) {
    open_gate(began);
    pass_gate(released);
    *(long *)result = syscall(SYS_umask, 0) == -1 ? errno : 0;
    return NULL;
}

BEHAVIOUR("TSYNC gives it to all threads, also to those that wait") {
    IN_CHILD {
        long result = 0;
        pthread_t thread = start(wait_and_call, &result);
        sleep_ms(20);
        show(ADD(SECCOMP_FILTER_FLAG_TSYNC, LOAD(nr), FOR(umask, ERROR(EXDEV)), ALLOW));
        let_end(thread);
        note("%s", strerrorname_np(result));
        show(syscall(SYS_umask, 0));
    }
}

BEHAVIOUR("without TSYNC the others are as before") {
    IN_CHILD {
        long result = 0;
        pthread_t thread = start(wait_and_call, &result);
        ADD_FOR(umask, ERROR(EXDEV));
        let_end(thread);
        note("%ld", result);
    }
}

static pid_t stranger;

static void *have_another(void *unused) {
    (void)unused;
    stranger = gettid();
    must(ADD(0, ALLOW));
    open_gate(began);
    pass_gate(released);
    return NULL;
}

BEHAVIOUR("TSYNC with a thread that has another filter tells which") {
    IN_CHILD {
        pthread_t thread = start(have_another, NULL);
        note("%d", ADD(SECCOMP_FILTER_FLAG_TSYNC, ALLOW) == stranger);
        show(ADD(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, ALLOW));
        note("%d", prctl(PR_GET_SECCOMP));
        let_end(thread);
    }
}

/* A traced child that is followed to the filter's stop, with this request; it then calls umask(5). */
static pid_t traced_at_filter(void) {
    pid_t child = begin_traced();
    if (child == 0) {
        umask(027);
        ADD_FOR(umask, SECCOMP_RET_TRACE | 99);
        show(syscall(SYS_umask, 5));
        _exit(0);
    }
    must(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESECCOMP));
    must(ptrace(PTRACE_CONT, child, 0, 0));
    return child;
}

BEHAVIOUR("a tracer is asked, and may let the call be made") {
    pid_t child = traced_at_filter();
    show_next(child);
    unsigned long message = 0;
    must(ptrace(PTRACE_GETEVENTMSG, child, 0, &message));
    note("%lu", message);
    note("%d", ptrace(PTRACE_PEEKUSER, child, REGISTER(orig_rax), 0) == SYS_umask);
    note("%ld", ptrace(PTRACE_PEEKUSER, child, REGISTER(rax), 0));
    must(ptrace(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("a tracer may take a call away and give its result") {
    pid_t child = traced_at_filter();
    show_next(child);
    must(ptrace(PTRACE_POKEUSER, child, REGISTER(orig_rax), -1));
    must(ptrace(PTRACE_POKEUSER, child, REGISTER(rax), 1234));
    must(ptrace(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("a tracer may put another call in its place") {
    pid_t child = traced_at_filter();
    show_next(child);
    must(ptrace(PTRACE_POKEUSER, child, REGISTER(orig_rax), SYS_lseek));
    must(ptrace(PTRACE_POKEUSER, child, REGISTER(rdi), -1));
    must(ptrace(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("from a filter's stop to the end of the call") {
    pid_t child = traced_at_filter();
    show_next(child);
    must(ptrace(PTRACE_SYSCALL, child, 0, 0));
    show_next(child);
    note("%lo", ptrace(PTRACE_PEEKUSER, child, REGISTER(rax), 0));
    must(ptrace(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("a traced call that fails by a filter has its stops") {
    pid_t child = begin_traced();
    if (child == 0) {
        ADD_FOR(umask, ERROR(EXDEV));
        raise(SIGSTOP);
        syscall(SYS_umask, 5);
        _exit(0);
    }
    must(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD));
    must(ptrace(PTRACE_CONT, child, 0, 0));
    show_next(child);
    for (int n = 0; n < 4; n++) {
        must(ptrace(PTRACE_SYSCALL, child, 0, 0));
        show_next(child);
        note("%ld", ptrace(PTRACE_PEEKUSER, child, REGISTER(rax), 0));
    }
    end(child);
}

BEHAVIOUR("PTRACE_GET_SYSCALL_INFO at a filter's stop") {
    struct __ptrace_syscall_info info;
    memset(&info, 0, sizeof info);
    pid_t child = traced_at_filter();
    show_next(child);
    note("%ld", request(PTRACE_GET_SYSCALL_INFO, child, sizeof info, (unsigned long)&info));
    note("op %d call %d first %d data %u", info.op, (int)info.seccomp.nr, (int)info.seccomp.args[0], info.seccomp.ret_data);
    end(child);
}
