/* Signals: sending, masks, queues and their order, actions, alternate stacks, waiting for them. It is long because each rule is tried by itself. */
#include "behaviour.h"
#include <setjmp.h>
#include <sys/prctl.h>

/* The kernel's structure: the C library's sigaction refuses some things by itself. */
struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/* Volatile: the compiler believes that raise() and kill() call nothing in this file. */
static volatile int order[64], arrived;
static volatile siginfo_t last;

static void record(int signal, siginfo_t *info, void *context) {
    (void)context;
    last = *info;
    if (arrived < 64)
        order[arrived++] = signal;
}

static void catch(int signal, int flags) {
    struct sigaction action = {.sa_sigaction = record, .sa_flags = SA_SIGINFO | flags};
    must(sigaction(signal, &action, NULL));
}

static void show_arrived(void) {
    for (int i = 0; i < arrived; i++)
        if (order[i] < 32)
            note("%s", sigabbrev_np(order[i]));
        else
            note("RT+%d", order[i] - SIGRTMIN);
}

static int pending(int signal) {
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, signal);
}

static void unblock_all(void) {
    sigset_t none = set_of(0);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static long queue(pid_t process, int signal, int value) {
    return sigqueue(process, signal, (union sigval){.sival_int = value});
}

static volatile char *touched;
static sigjmp_buf back;
static void jump(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    last = *info;
    siglongjmp(back, 1);
}

/* Shows si_signo and si_code of the fault that the function makes, and whether si_addr is what it has touched. */
static void show_fault(int signal, void (*fault)(void)) {
    struct sigaction action = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO};
    sigaction(signal, &action, NULL);
    if (sigsetjmp(back, 1) == 0) {
        fault();
        note("no fault");
        return;
    }
    note("%s %d %d", sigabbrev_np(last.si_signo), last.si_code, touched == NULL || last.si_addr == touched);
}

static void read_touched(void) { (void)*touched; }
static void write_touched(void) { *touched = 1; }
static void divide(void) {
    volatile int zero = 0;
    volatile int result = 7 / zero;
    (void)result;
}
static void undefined(void) { __builtin_trap(); }

BEHAVIOUR("kill with a bad signal") {
    show(kill(getpid(), 65));
    show(kill(getpid(), -1));
}
BEHAVIOUR("kill with signal 0 asks whether the process exists") {
    show(kill(getpid(), 0));
    show(kill(0x3ffffff, 0));
    show(kill(-0x3ffffff, 0));
    show(kill(INT_MIN, 0));
}
BEHAVIOUR("kill of a zombie succeeds") {
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    show(kill(child, 0));
    show(kill(child, SIGKILL));
    wait_for(child);
    show(kill(child, 0));
}
BEHAVIOUR("kill by another user") {
    pid_t target = getpid();
    AS(USER) {
        show(kill(target, 0));
        show(kill(target, SIGTERM));
        show(kill(target, SIGCONT));
        show(kill(getpid(), 0));
    }
}
BEHAVIOUR("kill by a user whose real id is the target's saved id") {
    struct gate gate = new_gate(), ready = new_gate();
    pid_t target = fork();
    if (target == 0) {
        setresuid(STRANGER, STRANGER, USER);
        open_gate(ready);
        pass_gate(gate);
        _exit(0);
    }
    pass_gate(ready);
    AS(USER) { show(kill(target, 0)); }
    open_gate(gate);
    wait_for(target);
}
BEHAVIOUR("kill of the own group reaches every member") {
    struct gate ready = new_gate();
    pid_t child = fork();
    if (child == 0) {
        catch(SIGUSR1, 0);
        open_gate(ready);
        while (arrived == 0)
            pause();
        show_arrived();
        _exit(0);
    }
    catch(SIGUSR1, 0);
    pass_gate(ready);
    long sent = kill(0, SIGUSR1);
    wait_for(child);
    show(sent);
    show_arrived();
}
BEHAVIOUR("tgkill and tkill with bad numbers") {
    show(syscall(SYS_tgkill, getpid(), getpid(), 65));
    show(syscall(SYS_tgkill, getpid(), 0x3ffffff, 0));
    show(syscall(SYS_tgkill, 1, getpid(), 0));
    show(syscall(SYS_tgkill, -1, getpid(), 0));
    show(syscall(SYS_tkill, 0, 0));
    show(syscall(SYS_tkill, -1, 0));
    show(syscall(SYS_tkill, getpid(), 0));
}
BEHAVIOUR("sigaction of bad signals, and of SIGKILL and SIGSTOP") {
    struct kernel_action action = {.handler = SIG_IGN};
    show(syscall(SYS_rt_sigaction, 0, &action, NULL, 8));
    show(syscall(SYS_rt_sigaction, 65, &action, NULL, 8));
    show(syscall(SYS_rt_sigaction, -1, &action, NULL, 8));
    show(syscall(SYS_rt_sigaction, SIGKILL, &action, NULL, 8));
    show(syscall(SYS_rt_sigaction, SIGSTOP, &action, NULL, 8));
    show(syscall(SYS_rt_sigaction, SIGKILL, NULL, &action, 8));
}
BEHAVIOUR("sigaction with bad memory and a set of another size") {
    struct kernel_action action;
    show(syscall(SYS_rt_sigaction, SIGUSR1, bad(), NULL, 8));
    show(syscall(SYS_rt_sigaction, SIGUSR1, NULL, bad(), 8));
    show(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, 4));
    show(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, 128));
}
BEHAVIOUR("sigaction returns the action before") {
    struct sigaction old;
    catch(SIGUSR1, SA_RESTART | SA_NODEFER);
    show(sigaction(SIGUSR1, NULL, &old));
    note("%d %x", old.sa_sigaction == record, old.sa_flags & ~0x04000000);
    show(sigaction(SIGUSR2, NULL, &old));
    note("%d", old.sa_handler == SIG_DFL);
}
BEHAVIOUR("the mask of a handler never has SIGKILL and SIGSTOP") {
    struct sigaction action = {.sa_handler = handler}, old;
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &old);
    note("%d %d %d", sigismember(&old.sa_mask, SIGKILL), sigismember(&old.sa_mask, SIGSTOP), sigismember(&old.sa_mask, SIGTERM));
}
BEHAVIOUR("sigprocmask with a bad how, bad memory and a set of another size") {
    unsigned long set = 0;
    show(syscall(SYS_rt_sigprocmask, 9, &set, NULL, 8));
    show(syscall(SYS_rt_sigprocmask, 9, NULL, &set, 8));
    show(syscall(SYS_rt_sigprocmask, SIG_BLOCK, bad(), NULL, 8));
    show(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, bad(), 8));
    show(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 16));
}
BEHAVIOUR("SIGKILL and SIGSTOP cannot be blocked") {
    unsigned long all = ~0UL, now = 0;
    show(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8));
    show(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &now, 8));
    note("%lx", ~now);
}
BEHAVIOUR("SIG_BLOCK, SIG_UNBLOCK and SIG_SETMASK") {
    sigset_t one = set_of(SIGUSR1), two = set_of(SIGUSR2), now;
    sigprocmask(SIG_BLOCK, &one, NULL);
    sigprocmask(SIG_BLOCK, &two, &now);
    note("%d%d", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2));
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    sigprocmask(SIG_SETMASK, &one, &now);
    note("%d%d", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2));
}
BEHAVIOUR("a blocked signal stays pending until it is unblocked") {
    catch(SIGUSR1, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    note("pending %d, arrived %d", pending(SIGUSR1), arrived);
    unblock_all();
    note("pending %d, arrived %d", pending(SIGUSR1), arrived);
}
BEHAVIOUR("an ordinary signal is pending once") {
    catch(SIGUSR1, 0);
    block(SIGUSR1);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    queue(getpid(), SIGUSR1, 5);
    unblock_all();
    show(arrived);
}
BEHAVIOUR("a signal for the thread and the same one for the process are pending both") {
    catch(SIGUSR1, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    unblock_all();
    show(arrived);
}
BEHAVIOUR("real-time signals queue, in order, with their values") {
    catch(SIGRTMIN, 0);
    block(SIGRTMIN);
    for (int value = 1; value <= 3; value++)
        queue(getpid(), SIGRTMIN, value);
    unblock_all();
    show(arrived);
    note("%d", last.si_value.sival_int);
}
BEHAVIOUR("of several pending signals handlers of higher numbers run first") {
    /* All are delivered at once: the frame of the last one delivered is on top. */
    for (int i = 0; i < 3; i++) {
        catch(SIGRTMIN + i, 0);
        block(SIGRTMIN + i);
    }
    for (int i = 0; i < 3; i++)
        raise(SIGRTMIN + i);
    unblock_all();
    show_arrived();
}
BEHAVIOUR("sigtimedwait takes the lowest number first") {
    sigset_t set = set_of(SIGRTMIN + 1);
    siginfo_t info;
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGRTMIN + 1);
    queue(getpid(), SIGRTMIN, 7);
    kill(getpid(), SIGUSR2);
    struct timespec zero = {0, 0};
    show(sigtimedwait(&set, &info, &zero));
    show(sigtimedwait(&set, &info, &zero));
    show(info.si_value.sival_int);
    show(sigtimedwait(&set, &info, &zero));
    show(sigtimedwait(&set, &info, &zero));
}
BEHAVIOUR("sigtimedwait with bad times, bad memory, a set of another size") {
    unsigned long set = 1UL << (SIGUSR1 - 1);
    struct timespec wrong = {0, 1000000000}, negative = {-1, 0};
    show(syscall(SYS_rt_sigtimedwait, &set, NULL, &wrong, 8));
    show(syscall(SYS_rt_sigtimedwait, &set, NULL, &negative, 8));
    show(syscall(SYS_rt_sigtimedwait, bad(), NULL, NULL, 8));
    show(syscall(SYS_rt_sigtimedwait, &set, NULL, bad(), 8));
    show(syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 4));
}
BEHAVIOUR("sigtimedwait is interrupted by another signal") {
    sigset_t set = set_of(SIGUSR1);
    struct timespec second = {5, 0};
    pid_t child = fork();
    if (child == 0) {
        catch(SIGUSR2, SA_RESTART);
        show(sigtimedwait(&set, NULL, &second));
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    kill(child, SIGUSR2);
    wait_for(child);
}
BEHAVIOUR("siginfo of kill, raise, sigqueue and a child's end") {
    catch(SIGUSR1, 0);
    catch(SIGCHLD, 0);
    kill(getpid(), SIGUSR1);
    note("%d %d %d", last.si_code, last.si_pid == getpid(), (int)last.si_uid);
    raise(SIGUSR1);
    note("%d", last.si_code);
    queue(getpid(), SIGUSR1, 42);
    note("%d %d", last.si_code, last.si_value.sival_int);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    wait_for(child);
    note("%d %d %d", last.si_code, last.si_status, last.si_pid == child);
}
BEHAVIOUR("siginfo of a child that was killed, stopped and continued") {
    siginfo_t info;
    block(SIGCHLD);
    sigset_t set = set_of(SIGCHLD);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    kill(child, SIGSTOP);
    sigwaitinfo(&set, &info);
    note("%d %d", info.si_code, info.si_status);
    kill(child, SIGCONT);
    sigwaitinfo(&set, &info);
    note("%d %d", info.si_code, info.si_status);
    kill(child, SIGKILL);
    sigwaitinfo(&set, &info);
    note("%d %d", info.si_code, info.si_status);
    waitpid(child, NULL, 0);
}
BEHAVIOUR("sigqueue with codes that only the kernel may use") {
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_USER};
    pid_t parent = getpid();
    IN_CHILD {
        show(syscall(SYS_rt_sigqueueinfo, parent, 0, &info));
        info.si_code = SI_TKILL;
        show(syscall(SYS_rt_sigqueueinfo, parent, 0, &info));
        info.si_code = SI_QUEUE;
        show(syscall(SYS_rt_sigqueueinfo, parent, 0, &info));
        show(syscall(SYS_rt_sigqueueinfo, parent, 0, bad()));
        show(syscall(SYS_rt_sigqueueinfo, 0x3ffffff, 0, &info));
    }
}
BEHAVIOUR("sigqueue beyond RLIMIT_SIGPENDING") {
    AS(STRANGER) {
        struct rlimit few = {3, 3};
        setrlimit(RLIMIT_SIGPENDING, &few);
        block(SIGRTMIN);
        long sent = 0;
        while (sent < 10 && queue(getpid(), SIGRTMIN, 0) == 0)
            sent++;
        note("%ld %s", sent, strerrorname_np(errno));
    }
}
BEHAVIOUR("sigpending with a set that is too big, and with bad memory") {
    unsigned long set;
    show(syscall(SYS_rt_sigpending, &set, 16));
    show(syscall(SYS_rt_sigpending, bad(), 8));
    show(syscall(SYS_rt_sigpending, &set, 8));
}
BEHAVIOUR("an ignored signal is not pending, even when it is blocked first") {
    signal(SIGUSR1, SIG_IGN);
    block(SIGUSR1);
    raise(SIGUSR1);
    show(pending(SIGUSR1));
}
BEHAVIOUR("setting SIG_IGN drops what is pending") {
    catch(SIGUSR1, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_IGN);
    show(pending(SIGUSR1));
    catch(SIGUSR1, 0);
    unblock_all();
    show(arrived);
}
BEHAVIOUR("SIGCONT drops pending stops, a stop drops a pending SIGCONT") {
    block(SIGTSTP);
    block(SIGCONT);
    raise(SIGTSTP);
    note("%d", pending(SIGTSTP));
    raise(SIGCONT);
    note("%d %d", pending(SIGTSTP), pending(SIGCONT));
    raise(SIGTSTP);
    note("%d %d", pending(SIGTSTP), pending(SIGCONT));
}
BEHAVIOUR("default actions: which signals kill, which do nothing") {
    static const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,    SIGFPE,  SIGKILL, SIGUSR1, SIGSEGV,
                                  SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGCHLD, SIGCONT, SIGURG,    SIGXCPU, SIGXFSZ, SIGVTALRM,
                                  SIGPROF, SIGWINCH, SIGIO,  SIGPWR,  SIGSYS,  SIGSTKFLT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            kill(getpid(), signals[i]);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != signals[i])
            note("%s does nothing", sigabbrev_np(signals[i]));
    }
}
/* How a child ends by a signal with this limit of core dumps, and whether it has left one. */
static void show_core(int signal, rlim_t limit, int dumpable) {
    struct rlimit core = {limit, limit};
    int status;
    pid_t child = fork();
    if (child == 0) {
        must(setrlimit(RLIMIT_CORE, &core));
        prctl(PR_SET_DUMPABLE, dumpable);
        if (signal == SIGSEGV)
            *(volatile int *)bad() = 1;
        raise(signal);
        _exit(0);
    }
    waitpid(child, &status, 0);
    note("%s:%d", sigabbrev_np(WTERMSIG(status)), !!WCOREDUMP(status));
}
BEHAVIOUR("WCOREDUMP: the signals that dump core, with a limit of 512 KiB") {
    static const int signals[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS,
                                  SIGHUP,  SIGINT, SIGKILL, SIGTERM, SIGUSR1, SIGPIPE, SIGALRM, SIGVTALRM, SIGIO};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        show_core(signals[i], 512 * 1024, 1);
}
BEHAVIOUR("WCOREDUMP: limits of nothing, less than a page, a page; of a process that is not dumpable") {
    show_core(SIGQUIT, 0, 1);
    show_core(SIGQUIT, 4095, 1);
    show_core(SIGQUIT, 4096, 1);
    show_core(SIGSEGV, RLIM_INFINITY, 1);
    show_core(SIGSEGV, RLIM_INFINITY, 0);
}
BEHAVIOUR("WCOREDUMP: the siginfo of SIGCHLD and waitid say CLD_DUMPED") {
    struct rlimit core = {1 << 20, 1 << 20};
    must(setrlimit(RLIMIT_CORE, &core));
    for (int dumpable = 1; dumpable >= 0; dumpable--) {
        siginfo_t info = {0};
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_DUMPABLE, dumpable);
            raise(SIGABRT);
            _exit(0);
        }
        must(waitid(P_PID, child, &info, WEXITED));
        note("%d:%d", info.si_code, info.si_status);
    }
}
BEHAVIOUR("a real-time signal kills") {
    IN_CHILD { raise(SIGRTMIN + 3); }
}
BEHAVIOUR("SIGSTOP stops, SIGCONT continues") {
    int status;
    struct gate gate = new_gate();
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        pass_gate(gate);
        _exit(3);
    }
    waitpid(child, &status, WUNTRACED);
    show_status(status);
    kill(child, SIGCONT);
    waitpid(child, &status, WCONTINUED);
    show_status(status);
    open_gate(gate);
    waitpid(child, &status, 0);
    show_status(status);
}
BEHAVIOUR("SIGKILL ends a stopped process") {
    int status;
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(3);
    }
    waitpid(child, &status, WUNTRACED);
    kill(child, SIGTERM);
    show(waitpid(child, &status, WNOHANG));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    show_status(status);
}
static void raise_once(int signal) {
    note("(");
    if (handled++ == 0)
        raise(signal);
    note(")");
}
BEHAVIOUR("a handler's own signal waits until the handler returns") {
    struct sigaction action = {.sa_handler = raise_once};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}
static void note_blocked(int signal) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    note("%d%d", sigismember(&now, signal), sigismember(&now, SIGTERM));
}
BEHAVIOUR("in a handler its signal and sa_mask are blocked, afterwards not") {
    struct sigaction action = {.sa_handler = note_blocked, .sa_mask = set_of(SIGTERM)};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    note_blocked(SIGUSR1);
}
BEHAVIOUR("SA_NODEFER leaves the signal unblocked in its handler") {
    struct sigaction action = {.sa_handler = raise_once, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}
BEHAVIOUR("SA_RESETHAND handles once") {
    catch(SIGUSR1, SA_RESETHAND);
    raise(SIGUSR1);
    show(arrived);
    IN_CHILD { raise(SIGUSR1); }
}
BEHAVIOUR("a fault that is blocked or ignored kills all the same") {
    IN_CHILD {
        block(SIGSEGV);
        touched = bad();
        read_touched();
    }
    IN_CHILD {
        signal(SIGSEGV, SIG_IGN);
        touched = bad();
        read_touched();
    }
}
BEHAVIOUR("siginfo of a fault: not mapped") {
    touched = bad();
    show_fault(SIGSEGV, read_touched);
}
BEHAVIOUR("siginfo of a fault: no right") {
    touched = read_only();
    show_fault(SIGSEGV, write_touched);
}
BEHAVIOUR("siginfo of a division by zero and of an undefined instruction") {
    show_fault(SIGFPE, divide);
    show_fault(SIGILL, undefined);
}
BEHAVIOUR("sigaltstack with a stack that is too small, bad flags, bad memory") {
    static char memory[16384];
    stack_t small = {.ss_sp = memory, .ss_size = 1000}, wrong = {.ss_sp = memory, .ss_size = sizeof memory, .ss_flags = 0x77};
    show(sigaltstack(&small, NULL));
    show(sigaltstack(&wrong, NULL));
    show(sigaltstack(bad(), NULL));
    show(sigaltstack(NULL, bad()));
}
BEHAVIOUR("sigaltstack returns the stack before") {
    static char memory[16384];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory}, old;
    show(sigaltstack(&stack, &old));
    note("%x", old.ss_flags);
    show(sigaltstack(NULL, &old));
    note("%d %ld %x", old.ss_sp == memory, (long)old.ss_size, old.ss_flags);
    stack.ss_flags = SS_DISABLE;
    show(sigaltstack(&stack, NULL));
    sigaltstack(NULL, &old);
    note("%x", old.ss_flags);
}
static char other_stack[32768];
static void on_stack(int signal) {
    char here;
    stack_t now, change = {.ss_flags = SS_DISABLE};
    (void)signal;
    sigaltstack(NULL, &now);
    note("%d %x", &here >= other_stack && &here < other_stack + sizeof other_stack, now.ss_flags);
    show(sigaltstack(&change, NULL));
}
BEHAVIOUR("SA_ONSTACK runs the handler on the other stack, which cannot change meanwhile") {
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction action = {.sa_handler = on_stack, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    action.sa_flags = 0;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}
BEHAVIOUR("an overflow of the stack is handled on the other stack") {
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction action = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    if (sigsetjmp(back, 1) == 0) {
        /* Far below the stack, where it cannot grow to. */
        char *here = (char *)&action;
        *(volatile char *)(here - (64L << 20)) = 1;
    }
    note("%s", sigabbrev_np(last.si_signo));
}
BEHAVIOUR("sigsuspend waits with another mask, and restores the mask") {
    sigset_t none = set_of(0), now;
    catch(SIGUSR1, 0);
    block(SIGUSR1);
    raise(SIGUSR1);
    show(sigsuspend(&none));
    sigprocmask(SIG_BLOCK, NULL, &now);
    note("%d %d", arrived, sigismember(&now, SIGUSR1));
    show(syscall(SYS_rt_sigsuspend, bad(), 8));
    show(syscall(SYS_rt_sigsuspend, &none, 4));
}
BEHAVIOUR("pause returns after a handler") {
    struct itimerval soon = {.it_value = {0, 10000}};
    catch(SIGALRM, SA_RESTART);
    setitimer(ITIMER_REAL, &soon, NULL);
    show(pause());
    show_arrived();
}
BEHAVIOUR("a child inherits handlers and the mask, but no pending signals") {
    catch(SIGUSR1, 0);
    block(SIGUSR2);
    catch(SIGUSR2, 0);
    raise(SIGUSR2);
    IN_CHILD {
        note("%d", pending(SIGUSR2));
        raise(SIGUSR1);
        show_arrived();
        sigset_t now;
        sigprocmask(SIG_BLOCK, NULL, &now);
        note("%d", sigismember(&now, SIGUSR2));
    }
}
BEHAVIOUR("write to a closed pipe: the signal goes to the thread that wrote") {
    int p[2];
    pipe(p);
    close(p[0]);
    catch(SIGPIPE, 0);
    show(write(p[1], "x", 1));
    note("%d %d", arrived, last.si_code);
}
BEHAVIOUR("SIGCHLD ignored: children leave no zombie") {
    signal(SIGCHLD, SIG_IGN);
    if (fork() == 0)
        _exit(0);
    show(waitpid(-1, NULL, 0));
}
BEHAVIOUR("SA_NOCLDWAIT: children leave no zombie, and there is a SIGCHLD all the same") {
    catch(SIGCHLD, SA_NOCLDWAIT);
    if (fork() == 0)
        _exit(0);
    while (waitpid(-1, NULL, 0) >= 0 || errno == EINTR)
        ;
    show(-1);
    note("%d", arrived);
}
BEHAVIOUR("SA_NOCLDSTOP: no SIGCHLD for stops") {
    catch(SIGCHLD, SA_NOCLDSTOP);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    int status;
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    note("%d", arrived);
    kill(child, SIGKILL);
    wait_for(child);
    note("%d", arrived);
}
BEHAVIOUR("a sleep is interrupted, whatever SA_RESTART says, and tells what is left") {
    pid_t child = fork();
    if (child == 0) {
        struct timespec time = {5, 0}, left = {0, 0};
        catch(SIGUSR1, SA_RESTART);
        show(nanosleep(&time, &left));
        note("%d", left.tv_sec >= 3 && left.tv_sec < 5);
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    wait_for(child);
}
BEHAVIOUR("an ignored signal does not interrupt a sleep") {
    pid_t child = fork();
    if (child == 0) {
        struct timespec time = {0, 100000000};
        signal(SIGUSR1, SIG_IGN);
        show(nanosleep(&time, NULL));
        _exit(0);
    }
    sleep_ms(20);
    kill(child, SIGUSR1);
    kill(child, SIGWINCH);
    wait_for(child);
}
BEHAVIOUR("a stop and SIGCONT do not interrupt a read") {
    int p[2];
    pipe(p);
    pid_t child = fork();
    if (child == 0) {
        show_read(p[0], 1);
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    kill(child, SIGCONT);
    sleep_ms(20);
    write(p[1], "x", 1);
    wait_for(child);
}
