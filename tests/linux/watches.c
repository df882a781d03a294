/* The debug registers of a traced process: what they accept, and where it stops. The file is long because each behaviour has a tracee of its own. */
#include "behaviour.h"
#include "tracing.h"
#include <pthread.h>

/* Debug registers, and what DR7 says of a place: it is on; what is watched for; how many bytes. */
#define DEBUG(n) offsetof(struct user, u_debugreg[n])
#define ON(n) (1ul << (2 * (n)))
#define GLOBALLY_ON(n) (2ul << (2 * (n)))
#define FIELDS(n, access, length) (((access) | (length) << 2) << (16 + 4 * (n)))
enum access { EXECUTED, STORED, PORT, USED };
enum length { ONE, TWO, EIGHT, FOUR };
enum { FLAG_TF = 0x100, FLAG_RF = 0x10000 };

static volatile long cell[4] __attribute__((aligned(32)));
static volatile int *const half = (volatile int *)cell;
static volatile char *const byte = (volatile char *)cell;

static void set(pid_t child, int n, unsigned long value) { show(request(PTRACE_POKEUSER, child, DEBUG(n), value)); }

static unsigned long get(pid_t child, int n) {
    unsigned long word = 0;
    must(request(PTRACE_PEEKUSER, child, DEBUG(n), (unsigned long)&word));
    return word;
}

/* Watches a place of a child. */
static void watch(pid_t child, int n, const volatile void *address, enum access access, enum length length) {
    must(request(PTRACE_POKEUSER, child, DEBUG(n), (unsigned long)address));
    must(request(PTRACE_POKEUSER, child, DEBUG(7), get(child, 7) | ON(n) | FIELDS(n, (unsigned long)access, length)));
}

static unsigned long peek(pid_t child, unsigned long offset) {
    unsigned long word = 0;
    must(request(PTRACE_PEEKUSER, child, offset, (unsigned long)&word));
    return word;
}

/* Lets a child go on, and shows what it stops at: of SIGTRAP the code and DR6. */
static int go(pid_t child, int how, int signal) {
    must(request(how, child, 0, signal));
    int status = show_next(child);
    siginfo_t info = {0};
    if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && status >> 16 == 0 &&
        request(PTRACE_GETSIGINFO, child, 0, (unsigned long)&info) == 0)
        note("%d %lx", info.si_code, get(child, 6));
    return status;
}

static int go_on(pid_t child) { return go(child, PTRACE_CONT, 0); }

__attribute__((noinline)) static void called(void) { cell[3]++; }

BEHAVIOUR("debug registers at the beginning") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    for (int n = 0; n < 8; n++)
        note("%lx", get(child, n));
    end(child);
}

BEHAVIOUR("DR4 and DR5 are not set, and DR6 keeps what it is given") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    set(child, 4, 0);
    set(child, 5, 1);
    for (int n = 0; n < 3; n++) {
        unsigned long value = (unsigned long[]){0, -1ul, 0x123}[n];
        set(child, 6, value);
        note("%lx", get(child, 6));
    }
    end(child);
}

BEHAVIOUR("an address that is not a program's is not watched") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    set(child, 0, -1l);
    set(child, 1, 0x800000000000);
    set(child, 2, 0x7ffffffff000);
    set(child, 3, 0x7fffffffefff);
    note("%lx %lx", get(child, 0), get(child, 3));
    end(child);
}

BEHAVIOUR("a place is as long as it is aligned") {
    for (enum length length = ONE; length <= FOUR; length++)
        for (int offset = 0; offset < 8; offset++) {
            pid_t child = begin_traced();
            if (child == 0)
                _exit(0);
            must(request(PTRACE_POKEUSER, child, DEBUG(0), (unsigned long)cell + offset));
            set(child, 7, ON(0) | FIELDS(0, (unsigned long)STORED, length));
            end(child);
        }
}

BEHAVIOUR("the address of a place that is watched keeps to its length") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    watch(child, 0, cell, STORED, EIGHT);
    set(child, 0, (unsigned long)cell + 4);
    set(child, 0, (unsigned long)cell + 8);
    note("%ld", get(child, 0) - (long)cell);
    set(child, 7, 0);
    set(child, 0, (unsigned long)cell + 1);
    end(child);
}

BEHAVIOUR("ports are not watched, nor more than a byte for execution") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    for (enum length length = ONE; length <= FOUR; length++) {
        set(child, 7, ON(1) | FIELDS(1, (unsigned long)PORT, length));
        set(child, 7, ON(1) | FIELDS(1, (unsigned long)EXECUTED, length));
    }
    note("%lx", get(child, 7));
    end(child);
}

BEHAVIOUR("a place that is off and was never named may be called anything") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    set(child, 7, FIELDS(2, (unsigned long)PORT, EIGHT));
    note("%lx", get(child, 7));
    set(child, 2, (unsigned long)cell);
    set(child, 7, FIELDS(2, (unsigned long)PORT, EIGHT));
    set(child, 7, 0x300 | 1ul << 32);
    note("%lx", get(child, 7));
    end(child);
}

BEHAVIOUR("what is refused changes nothing") {
    pid_t child = begin_traced();
    if (child == 0) {
        cell[0] = 1;
        _exit(0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    unsigned long before = get(child, 7);
    set(child, 7, 0xf0000 | ON(1) | FIELDS(1, (unsigned long)PORT, ONE));
    note("%d", get(child, 7) == before);
    go_on(child);
    end(child);
}

BEHAVIOUR("a store stops the program behind it") {
    pid_t child = begin_traced();
    if (child == 0) {
        cell[1] = 5;
        cell[0] = 6;
        cell[0] = 7;
        _exit(cell[0]);
    }
    watch(child, 0, cell, STORED, EIGHT);
    for (int n = 0; n < 2; n++) {
        go_on(child);
        note("%ld", ptrace(PTRACE_PEEKDATA, child, cell, 0));
        siginfo_t info;
        must(request(PTRACE_GETSIGINFO, child, 0, (unsigned long)&info));
        note("%d", info.si_addr == (void *)peek(child, offsetof(struct user, regs.rip)));
        note("%ld", (long)peek(child, offsetof(struct user, regs.orig_rax)));
    }
    go_on(child);
}

BEHAVIOUR("a store of the same value stops the program, too") {
    pid_t child = begin_traced();
    if (child == 0) {
        cell[0] = 0;
        _exit(0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
    end(child);
}

BEHAVIOUR("a load of a place that is watched for both stops the program") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(cell[0]);
    must(request(PTRACE_POKEUSER, child, DEBUG(0), (unsigned long)cell));
    set(child, 7, ON(0) | FIELDS(0, (unsigned long)USED, EIGHT));
    go_on(child);
    end(child);
}

BEHAVIOUR("four places, of each length") {
    pid_t child = begin_traced();
    if (child == 0) {
        byte[0] = 1;
        byte[7] = 1;
        half[1] = 0x10000;
        cell[0] = 0x203000000000009;
        cell[1] = 1;
        cell[2] = 1;
        _exit(0);
    }
    watch(child, 0, byte + 7, STORED, ONE);
    watch(child, 1, byte + 6, STORED, TWO);
    watch(child, 2, half + 1, STORED, FOUR);
    watch(child, 3, cell + 1, STORED, EIGHT);
    while (WIFSTOPPED(go_on(child)))
        ;
}

BEHAVIOUR("a place is on by either bit, and off by none") {
    pid_t child = begin_traced();
    if (child == 0) {
        cell[0] = 1;
        cell[1] = 1;
        cell[2] = 1;
        _exit(0);
    }
    for (int n = 0; n < 3; n++)
        must(request(PTRACE_POKEUSER, child, DEBUG(n), (unsigned long)(cell + n)));
    unsigned long fields = 0;
    for (int n = 0; n < 3; n++)
        fields |= FIELDS(n, (unsigned long)STORED, EIGHT);
    set(child, 7, fields | GLOBALLY_ON(1) | GLOBALLY_ON(2) | ON(2));
    while (WIFSTOPPED(go_on(child)))
        ;
}

BEHAVIOUR("a place that is watched no longer") {
    pid_t child = begin_traced();
    if (child == 0) {
        cell[0] = 1;
        cell[0] = 2;
        _exit(0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
    set(child, 7, 0);
    note("%d", get(child, 0) == (unsigned long)cell);
    go_on(child);
}

BEHAVIOUR("where nothing is mapped nothing happens") {
    pid_t child = begin_traced();
    if (child == 0) {
        cell[0] = 1;
        _exit(0);
    }
    set(child, 7, ON(0) | FIELDS(0, (unsigned long)STORED, ONE));
    go_on(child);
}

BEHAVIOUR("a program stops before an instruction that is watched, and then runs it") {
    pid_t child = begin_traced();
    if (child == 0) {
        called();
        called();
        _exit(cell[3]);
    }
    watch(child, 1, called, EXECUTED, ONE);
    while (WIFSTOPPED(go_on(child)))
        note("%d %ld %d", peek(child, offsetof(struct user, regs.rip)) == (unsigned long)called,
             ptrace(PTRACE_PEEKDATA, child, cell + 3, 0), (peek(child, offsetof(struct user, regs.eflags)) & FLAG_RF) != 0);
}

BEHAVIOUR("a program without RF stops at the same instruction again") {
    pid_t child = begin_traced();
    if (child == 0) {
        called();
        _exit(cell[3]);
    }
    watch(child, 0, called, EXECUTED, ONE);
    go_on(child);
    unsigned long flags = peek(child, offsetof(struct user, regs.eflags));
    must(request(PTRACE_POKEUSER, child, offsetof(struct user, regs.eflags), flags & ~FLAG_RF));
    go_on(child);
    go_on(child);
}

BEHAVIOUR("a handler whose execution is watched") {
    handle(SIGUSR1, 0);
    pid_t child = begin_traced();
    if (child == 0) {
        raise(SIGUSR1);
        _exit(handled);
    }
    watch(child, 0, handler, EXECUTED, ONE);
    go_on(child);
    go(child, PTRACE_CONT, SIGUSR1);
    note("%d", peek(child, offsetof(struct user, regs.rip)) == (unsigned long)handler);
    go_on(child);
}

BEHAVIOUR("single steps to and over a store that is watched") {
    pid_t child = begin_traced();
    if (child == 0) {
        cell[0] = 1;
        _exit(0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    siginfo_t info;
    int status, steps = 0;
    do {
        must(request(PTRACE_SINGLESTEP, child, 0, 0));
        must(waitpid(child, &status, 0));
        must(request(PTRACE_GETSIGINFO, child, 0, (unsigned long)&info));
    } while (++steps < 1000 && (get(child, 6) & 1) == 0);
    note("%d %lx", info.si_code, get(child, 6));
    must(request(PTRACE_SINGLESTEP, child, 0, 0));
    must(waitpid(child, &status, 0));
    note("%lx", get(child, 6));
    end(child);
}

BEHAVIOUR("a system call does not stop the program that it stores for") {
    int fds[2];
    must(pipe(fds));
    pid_t child = begin_traced();
    if (child == 0) {
        write(fds[1], "12345678", 8);
        read(fds[0], (void *)cell, 8);
        cell[0]++;
        _exit(byte[0]);
    }
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
    go_on(child);
}

BEHAVIOUR("nor does its tracer stop it") {
    pid_t child = begin_traced();
    if (child == 0) {
        raise(SIGUSR1);
        _exit(cell[0]);
    }
    watch(child, 0, cell, STORED, EIGHT);
    must(ptrace(PTRACE_POKEDATA, child, cell, 5));
    go_on(child);
    must(ptrace(PTRACE_POKEDATA, child, cell, 6));
    go_on(child);
}

BEHAVIOUR("calls that are followed, with a store between them") {
    pid_t child = begin_traced();
    if (child == 0) {
        syscall(SYS_getpgid, 0);
        cell[0] = 1;
        syscall(SYS_getpgid, -1);
        _exit(0);
    }
    must(request(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD));
    watch(child, 0, cell, STORED, EIGHT);
    for (int n = 0; n < 6; n++) {
        go(child, PTRACE_SYSCALL, 0);
        struct user_regs_struct r;
        must(request(PTRACE_GETREGS, child, 0, (unsigned long)&r));
        note("%lld %d %d", (long long)r.orig_rax, (r.eflags & FLAG_TF) != 0, (r.r11 & FLAG_TF) != 0);
    }
    end(child);
}

BEHAVIOUR("a program does not see that it is watched") {
    pid_t child = begin_traced();
    if (child == 0) {
        unsigned long pushed, copied;
        unsigned short word;
        __asm__ volatile("sub $128, %%rsp; pushf; popq %0; pushfw; popw %1; add $128, %%rsp" : "=r"(pushed), "=r"(word));
        __asm__ volatile("syscall; mov %%r11, %0" : "=r"(copied) : "a"(SYS_getppid) : "rcx", "r11", "memory");
        _exit((pushed & FLAG_TF) + (word & FLAG_TF) + (copied & FLAG_TF) != 0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
}

BEHAVIOUR("flags that a program saves while it is watched do not stop it later") {
    pid_t child = begin_traced();
    if (child == 0) {
        unsigned long flags;
        __asm__ volatile("sub $128, %%rsp; pushf; popq %0; add $128, %%rsp" : "=r"(flags));
        cell[0] = 1;
        __asm__ volatile("sub $128, %%rsp; pushq %0; popf; add $128, %%rsp" ::"r"(flags) : "cc");
        cell[0] = 2;
        _exit(0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
    set(child, 7, 0);
    go_on(child);
}

BEHAVIOUR("signals, and a handler that stores") {
    struct sigaction action = {.sa_handler = (void (*)(int))called};
    sigaction(SIGUSR1, &action, NULL);
    pid_t child = begin_traced();
    if (child == 0) {
        raise(SIGUSR1);
        raise(SIGURG);
        _exit(cell[3]);
    }
    watch(child, 0, cell + 3, STORED, EIGHT);
    go_on(child);
    go(child, PTRACE_CONT, SIGUSR1);
    go_on(child);
    go(child, PTRACE_CONT, SIGURG);
}

BEHAVIOUR("SIGTRAP that is ignored or blocked stops the program, and is so no longer") {
    for (int blocks = 0; blocks < 2; blocks++) {
        pid_t child = begin_traced();
        if (child == 0) {
            signal(SIGTRAP, SIG_IGN);
            if (blocks)
                block(SIGTRAP);
            cell[0] = 1;
            sigset_t set;
            sigprocmask(SIG_BLOCK, NULL, &set);
            _exit((signal(SIGTRAP, SIG_DFL) == SIG_IGN) + 2 * sigismember(&set, SIGTRAP));
        }
        watch(child, 0, cell, STORED, EIGHT);
        go_on(child);
        go_on(child);
    }
}

BEHAVIOUR("the signal of a store ends the program if it is passed on") {
    pid_t child = begin_traced();
    if (child == 0) {
        cell[0] = 1;
        _exit(0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
    go(child, PTRACE_CONT, SIGTRAP);
}

BEHAVIOUR("a failing instruction and a breakpoint in a program that is watched") {
    pid_t child = begin_traced();
    if (child == 0) {
        __asm__ volatile("int3");
        *(volatile char *)bad() = 1;
        _exit(0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
    note("%d", (peek(child, offsetof(struct user, regs.eflags)) & FLAG_TF) != 0);
    go_on(child);
    note("%d", (peek(child, offsetof(struct user, regs.eflags)) & FLAG_TF) != 0);
    go(child, PTRACE_CONT, SIGSEGV);
}

BEHAVIOUR("a child and its parent that is watched") {
    pid_t child = begin_traced();
    if (child == 0) {
        struct gate gate = new_gate();
        pid_t grandchild = fork();
        if (grandchild == 0)
            pass_gate(gate);
        cell[0] = 1;
        if (grandchild == 0)
            _exit(4);
        open_gate(gate);
        int status;
        waitpid(grandchild, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    watch(child, 0, cell, STORED, EIGHT);
    while (WIFSTOPPED(go_on(child)))
        ;
}

BEHAVIOUR("a child that is traced, too, is not watched") {
    pid_t child = begin_traced();
    if (child == 0) {
        pid_t grandchild = fork();
        cell[0] = 1;
        if (grandchild == 0)
            _exit(4);
        waitpid(grandchild, NULL, 0);
        _exit(0);
    }
    must(request(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEFORK));
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
    unsigned long message = 0;
    must(request(PTRACE_GETEVENTMSG, child, 0, (unsigned long)&message));
    show_next(message);
    note("%lx", get(message, 0));
    go_on(message);
    while (WIFSTOPPED(go_on(child)))
        ;
}

static void *store(void *where) {
    wait_until_asleep(getpid());
    *(volatile long *)where = 3;
    return NULL;
}

BEHAVIOUR("a thread is not watched that another begins which is, and waits for it") {
    pid_t child = begin_traced();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, store, (void *)cell);
        pthread_join(thread, NULL);
        cell[0] = 4;
        _exit(0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
    note("%ld", ptrace(PTRACE_PEEKDATA, child, cell, 0));
    go_on(child);
}

BEHAVIOUR("an exec ends it") {
    pid_t child = begin_traced();
    if (child == 0) {
        execl("/proc/self/exe", "watches", "no such behaviour", NULL);
        _exit(1);
    }
    must(request(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXEC));
    watch(child, 0, cell, STORED, EIGHT);
    go_on(child);
    note("%lx %lx", get(child, 0), get(child, 7));
    go_on(child);
}

BEHAVIOUR("whom a tracer sets free dies of the next store") {
    pid_t child = begin_traced();
    if (child == 0) {
        cell[0] = 1;
        _exit(0);
    }
    watch(child, 0, cell, STORED, EIGHT);
    must(request(PTRACE_DETACH, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("a program that is watched sleeps, and is interrupted") {
    pid_t child = must(fork());
    if (child == 0) {
        sleep_ms(20);
        for (;;)
            cell[1]++;
    }
    must(request(PTRACE_SEIZE, child, 0, 0));
    must(request(PTRACE_INTERRUPT, child, 0, 0));
    show_next(child);
    watch(child, 0, cell, STORED, EIGHT);
    int status;
    do {
        must(request(PTRACE_CONT, child, 0, 0));
        sleep_ms(50);
        must(request(PTRACE_INTERRUPT, child, 0, 0));
        must(waitpid(child, &status, __WALL));
    } while (WIFSTOPPED(status) && ptrace(PTRACE_PEEKDATA, child, cell + 1, 0) < 3);
    note("%s+%d", sigabbrev_np(WSTOPSIG(status)), status >> 16);
    end(child);
}

BEHAVIOUR("a string instruction stops at the store that it is watched for") {
    static char from[64] = "0123456789012345678901234567890123456789";
    pid_t child = begin_traced();
    if (child == 0) {
        const void *source = from;
        void *target = (void *)cell;
        unsigned long count = 24;
        __asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(count)::"memory");
        _exit(count);
    }
    watch(child, 0, byte + 9, STORED, ONE);
    go_on(child);
    go_on(child);
}

BEHAVIOUR("a child of a program that makes single steps does not") {
    pid_t child = begin_traced();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(4);
        int status;
        waitpid(grandchild, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    int status, steps = 0;
    do {
        must(request(PTRACE_SINGLESTEP, child, 0, 0));
        must(waitpid(child, &status, 0));
    } while (++steps < 20000 && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    if (WIFSTOPPED(status))
        go_on(child);
    else
        show_status(status);
}
