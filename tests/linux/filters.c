/* Filters of seccomp: what they may be, and what they do with calls. */
#include "filters.h"
#include <linux/audit.h>
#include <pthread.h>
#include <ucontext.h>

/* Shows whether a program of these instructions is one. */
#define TRY(...) IN_CHILD { show(ADD(0, __VA_ARGS__)); }

BEHAVIOUR("without a program, or one that cannot be read") {
    struct sock_fprog none = {0, NULL}, nowhere = {1, bad()}, long_one = {4097, bad()};
    show(seccomp(SECCOMP_SET_MODE_FILTER, 0, NULL));
    show(seccomp(SECCOMP_SET_MODE_FILTER, 0, bad()));
    show(seccomp(SECCOMP_SET_MODE_FILTER, 0, &none));
    show(seccomp(SECCOMP_SET_MODE_FILTER, 0, &nowhere));
    show(seccomp(SECCOMP_SET_MODE_FILTER, 0, &long_one));
    show(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
    show(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &none));
    note("%d", prctl(PR_GET_SECCOMP));
}

BEHAVIOUR("flags that there are not") {
    show(ADD(1 << 10, ALLOW));
    show(ADD(SECCOMP_FILTER_FLAG_TSYNC | 1 << 20, ALLOW));
    note("%d", prctl(PR_GET_SECCOMP));
}

BEHAVIOUR("instructions that a filter may not have") {
    TRY(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), ALLOW);
    TRY(BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), ALLOW);
    TRY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), ALLOW);
    TRY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), ALLOW);
    TRY(BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), ALLOW);
    TRY(BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3), ALLOW);
    TRY(BPF_STMT(BPF_RET | BPF_X, 0));
    TRY(BPF_STMT(0xffff, 0), ALLOW);
}

BEHAVIOUR("programs that are none") {
    TRY(LOAD(nr));
    TRY(BPF_STMT(BPF_JMP | BPF_JA, 1), ALLOW);
    TRY(BPF_STMT(BPF_JMP | BPF_JA, -1), ALLOW);
    TRY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), ALLOW);
    TRY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), ALLOW);
    TRY(BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), ALLOW);
    TRY(BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), ALLOW);
    TRY(BPF_STMT(BPF_LD | BPF_MEM, 3), ALLOW);
    TRY(BPF_STMT(BPF_ST, 16), ALLOW);
    TRY(BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_LD | BPF_MEM, 3), ALLOW);
}

BEHAVIOUR("of a user it takes the promise to get no new rights") {
    AS(USER) {
        struct sock_fprog unreadable = {1, bad()};
        show(ADD(0, ALLOW));
        show(seccomp(SECCOMP_SET_MODE_FILTER, 0, &unreadable));
        show(ADD(0, LOAD(nr)));
        must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        show(ADD(0, LOAD(nr)));
        show(ADD(0, ALLOW));
        note("%d", prctl(PR_GET_SECCOMP));
    }
}

BEHAVIOUR("which actions there are") {
    const unsigned actions[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO,
                                SECCOMP_RET_TRACE, SECCOMP_RET_LOG, SECCOMP_RET_ALLOW, 0x12340000, SECCOMP_RET_ALLOW | 1};
    for (unsigned n = 0; n < sizeof actions / sizeof actions[0]; n++)
        show(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &actions[n]));
    show(seccomp(SECCOMP_GET_ACTION_AVAIL, 1, &actions[0]));
    show(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, bad()));
}

BEHAVIOUR("a call fails with the error that the filter says, and is not made") {
    IN_CHILD {
        umask(027);
        ADD_FOR(umask, ERROR(EXDEV));
        show(syscall(SYS_umask, 0));
        show(getppid() > 1);
        note("%d", prctl(PR_GET_SECCOMP));
    }
}

BEHAVIOUR("an error of 0 is a result of 0, and one beyond all the last there is") {
    IN_CHILD {
        ADD_FOR(getppid, ERROR(0));
        ADD_FOR(umask, ERROR(0xffff));
        show(syscall(SYS_getppid));
        long result;
        __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_umask), "D"(0) : "rcx", "r11", "memory");
        note("%ld", result);
    }
}

BEHAVIOUR("calls of all kinds can be refused") {
    IN_CHILD {
        ADD(0, LOAD(nr), FOR(getpid, ERROR(1)), FOR(sched_yield, ERROR(2)), FOR(read, ERROR(3)), FOR(brk, ERROR(4)),
            FOR(fork, ERROR(5)), FOR(execve, ERROR(7)), FOR(futex, ERROR(8)), FOR(nanosleep, ERROR(9)),
            FOR(rt_sigprocmask, ERROR(10)), FOR(mmap, ERROR(11)), FOR(clock_nanosleep, ERROR(12)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4000, 0, 1), RETURN(ERROR(13)), ALLOW);
        show(syscall(SYS_getpid));
        show(syscall(SYS_sched_yield));
        show(syscall(SYS_read, -1, NULL, 0));
        show(syscall(SYS_brk, 0));
        show(syscall(SYS_fork));
        show(syscall(SYS_execve, NULL, NULL, NULL));
        show(syscall(SYS_futex, NULL, 0, 0));
        show(syscall(SYS_nanosleep, NULL, NULL));
        show(syscall(SYS_rt_sigprocmask, 0, NULL, NULL, 8));
        show(syscall(SYS_mmap, NULL, 0, 0, 0, 0, 0));
        show(syscall(SYS_clock_nanosleep, 0, 0, NULL, NULL));
        show(syscall(4000));
        show(syscall(3999));
    }
}

BEHAVIOUR("the arguments of a call can be looked at") {
    IN_CHILD {
        must(ADD(0, LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_lseek, 0, 3), LOAD(args[1]),
                 BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 100, 0, 1), RETURN(ERROR(EDOM)), ALLOW));
        must(ADD(0, LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_lseek, 0, 3),
                 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + 4),
                 BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 0, 1), RETURN(ERROR(ERANGE)), ALLOW));
        int fd = must(open("/dev/null", O_RDONLY));
        show(lseek(fd, 100, SEEK_SET) >= 0);
        show(lseek(fd, 101, SEEK_SET));
        show(lseek(fd, 1L << 34 | 100, SEEK_SET));
        show(lseek(fd, 1L << 33 | 100, SEEK_SET) >= 0);
    }
}

BEHAVIOUR("a filter sees the architecture and where the call is from") {
    IN_CHILD {
        must(ADD(0, LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0), RETURN(ERROR(EDOM)),
                 LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_umask, 0, 3), LOAD(instruction_pointer),
                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), RETURN(ERROR(ERANGE)), ALLOW));
        show(syscall(SYS_umask, 0));
    }
}

BEHAVIOUR("calculations") {
    IN_CHILD {
        /* The error is ((args[0] * 3 - 2) / 2 & 0xff) ^ 1, by scratch memory and X. */
        must(ADD(0, LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_umask, 1, 0), ALLOW, LOAD(args[0]),
                 BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 3), BPF_STMT(BPF_ST, 7), BPF_STMT(BPF_LDX | BPF_IMM, 2),
                 BPF_STMT(BPF_LD | BPF_MEM, 7), BPF_STMT(BPF_ALU | BPF_SUB | BPF_X, 0), BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
                 BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff), BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 1),
                 BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO), BPF_STMT(BPF_RET | BPF_A, 0)));
        show(syscall(SYS_umask, 4));
        show(syscall(SYS_umask, 10));
    }
}

BEHAVIOUR("a division by zero is the end") {
    IN_CHILD {
        ADD(0, LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_umask, 1, 0), ALLOW, LOAD(args[0]), BPF_STMT(BPF_MISC | BPF_TAX, 0),
            BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), ALLOW);
        show(syscall(SYS_umask, 5) >= 0);
        syscall(SYS_umask, 0);
    }
}

BEHAVIOUR("of several filters the strictest decides, of equals the newest") {
    IN_CHILD {
        ADD_FOR(umask, ERROR(EPERM));
        show(syscall(SYS_umask, 0));
        ADD_FOR(umask, SECCOMP_RET_ALLOW);
        show(syscall(SYS_umask, 0));
        ADD_FOR(umask, ERROR(EXDEV));
        show(syscall(SYS_umask, 0));
        ADD_FOR(umask, SECCOMP_RET_TRACE);
        show(syscall(SYS_umask, 0));
        ADD_FOR(umask, SECCOMP_RET_KILL_PROCESS);
        syscall(SYS_umask, 0);
    }
}

BEHAVIOUR("killed") {
    const unsigned actions[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, 0x12340000};
    for (unsigned n = 0; n < 3; n++)
        IN_CHILD {
            signal(SIGSYS, SIG_IGN);
            ADD_FOR(umask, actions[n]);
            syscall(SYS_umask, 0);
            note("lives");
        }
}

static void *call_umask(void *unused) {
    (void)unused;
    syscall(SYS_umask, 0);
    return NULL;
}

BEHAVIOUR("of several threads one is killed, or the process") {
    const unsigned actions[] = {SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_PROCESS};
    for (unsigned n = 0; n < 2; n++)
        IN_CHILD {
            ADD_FOR(umask, actions[n]);
            pthread_t thread;
            must(pthread_create(&thread, NULL, call_umask, NULL));
            pthread_join(thread, NULL);
            note("goes on");
            exit(3);
        }
}

static void show_trap(int signal, siginfo_t *info, void *context) {
    const ucontext_t *at = context;
    const greg_t *registers = at->uc_mcontext.gregs;
    note("SIG%s code %d errno %d call %d arch %x", sigabbrev_np(signal), info->si_code, info->si_errno, info->si_syscall, info->si_arch);
    note("rax %lld rdi %lld", registers[REG_RAX], registers[REG_RDI]);
    note("%d", info->si_call_addr == (void *)registers[REG_RIP]);
}

BEHAVIOUR("SIGSYS tells of the call, and a handler may give it a result") {
    IN_CHILD {
        struct sigaction action = {.sa_sigaction = show_trap, .sa_flags = SA_SIGINFO};
        must(sigaction(SIGSYS, &action, NULL));
        ADD_FOR(umask, SECCOMP_RET_TRAP | 77);
        show(syscall(SYS_umask, 5));
    }
}

BEHAVIOUR("SIGSYS that is blocked, ignored or not handled is the end") {
    for (int how = 0; how < 3; how++)
        IN_CHILD {
            if (how == 0) {
                handle(SIGSYS, 0);
                block(SIGSYS);
            } else if (how == 1) {
                signal(SIGSYS, SIG_IGN);
            }
            ADD_FOR(umask, SECCOMP_RET_TRAP);
            syscall(SYS_umask, 0);
            note("lives");
        }
}

BEHAVIOUR("without a tracer a call that is left to it does not exist") {
    IN_CHILD {
        ADD_FOR(umask, SECCOMP_RET_TRACE | 5);
        ADD_FOR(getppid, SECCOMP_RET_LOG);
        show(syscall(SYS_umask, 0));
        show(getppid() > 1);
    }
}

BEHAVIOUR("too many instructions for one thread") {
    IN_CHILD {
        static struct sock_filter instructions[4096];
        for (int n = 0; n < 4096; n++)
            instructions[n] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
        show(add(0, instructions, 4096));
        long last = 0;
        for (int n = 0; n < 20 && last == 0; n++)
            last = add(0, instructions, 4096);
        show(last);
        show(getppid() > 1);
    }
}
