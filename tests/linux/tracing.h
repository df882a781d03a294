/* What behaviours of traced processes share. */
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#define REGISTER(name) ((void *)offsetof(struct user, regs.name))

/* Shows what has happened to a child: a stop with its event, or its end. */
__attribute__((unused)) static int show_next(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, __WALL) < 0) {
        note("%s", strerrorname_np(errno));
        return status;
    }
    if (WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80))
        note("call");
    else if (WIFSTOPPED(status) && status >> 16)
        note("%s+%d", sigabbrev_np(WSTOPSIG(status)), status >> 16);
    else if (WIFSTOPPED(status))
        note("%s", sigabbrev_np(WSTOPSIG(status)));
    else
        show_status(status);
    return status;
}

/* A child that is traced and stopped, and then runs the block. */
__attribute__((unused)) static pid_t begin_traced(void) {
    pid_t child = must(fork());
    if (child == 0) {
        must(ptrace(PTRACE_TRACEME, 0, 0, 0));
        raise(SIGSTOP);
        return 0;
    }
    must(waitpid(child, NULL, 0));
    return child;
}

__attribute__((unused)) static void end(pid_t child) {
    kill(child, SIGKILL);
    while (waitpid(child, NULL, __WALL) == child)
        ;
}

__attribute__((unused)) static long request(int number, pid_t child, unsigned long address, unsigned long data) {
    return syscall(SYS_ptrace, (long)number, (long)child, address, data);
}
