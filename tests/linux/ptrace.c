/* Tracing: how it begins and ends, stops and what waits tell of them, requests and their errors, rights. The file is long because each
 * behaviour has a tracee of its own. */
#include "behaviour.h"
#include "tracing.h"

static pid_t sleeper(void) {
    int gate[2];
    char byte;
    must(pipe(gate));
    pid_t child = must(fork());
    if (child == 0) {
        write(gate[1], "", 1);
        for (;;)
            pause();
    }
    read(gate[0], &byte, 1);
    close(gate[0]);
    close(gate[1]);
    return child;
}

BEHAVIOUR("a request about a process that is not traced") {
    pid_t child = sleeper();
    show(request(PTRACE_CONT, child, 0, 0));
    show(request(PTRACE_KILL, child, 0, 0));
    show(request(PTRACE_DETACH, child, 0, 0));
    end(child);
}

BEHAVIOUR("a request about nobody") {
    show(request(PTRACE_ATTACH, 999999, 0, 0));
    show(request(PTRACE_ATTACH, -1, 0, 0));
    show(request(PTRACE_CONT, 0, 0, 0));
    show(request(PTRACE_PEEKDATA, 999999, 0, 0));
}

BEHAVIOUR("a process does not attach to itself") { show(request(PTRACE_ATTACH, getpid(), 0, 0)); }

BEHAVIOUR("PTRACE_TRACEME twice") {
    IN_CHILD {
        show(request(PTRACE_TRACEME, 0, 0, 0));
        show(request(PTRACE_TRACEME, 0, 0, 0));
    }
}

BEHAVIOUR("a process is traced by one alone") {
    pid_t child = sleeper();
    show(request(PTRACE_SEIZE, child, 0, 0));
    IN_CHILD show(request(PTRACE_ATTACH, child, 0, 0));
    end(child);
}

BEHAVIOUR("another user does not attach") {
    pid_t child = sleeper();
    AS(USER) show(request(PTRACE_ATTACH, child, 0, 0));
    end(child);
}

BEHAVIOUR("who has changed his user is not dumpable, and is not traced by others of it") {
    int gate[2];
    char byte;
    must(pipe(gate));
    pid_t child = must(fork());
    if (child == 0) {
        become(USER);
        write(gate[1], "", 1);
        for (;;)
            pause();
    }
    read(gate[0], &byte, 1);
    AS(STRANGER) show(request(PTRACE_ATTACH, child, 0, 0));
    show(request(PTRACE_ATTACH, child, 0, 0));
    show_next(child);
    end(child);
}

BEHAVIOUR("a zombie is not traced") {
    pid_t child = must(fork());
    if (child == 0)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    show(request(PTRACE_ATTACH, child, 0, 0));
}

BEHAVIOUR("PTRACE_SEIZE with an address or unknown options") {
    pid_t child = sleeper();
    show(request(PTRACE_SEIZE, child, 1, 0));
    show(request(PTRACE_SEIZE, child, 0, 1 << 30));
    end(child);
}

BEHAVIOUR("PTRACE_INTERRUPT and PTRACE_LISTEN are for who was seized") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    show(request(PTRACE_INTERRUPT, child, 0, 0));
    show(request(PTRACE_LISTEN, child, 0, 0));
    end(child);
}

BEHAVIOUR("requests to a thread that runs") {
    pid_t child = sleeper();
    must(request(PTRACE_SEIZE, child, 0, 0));
    struct user_regs_struct r;
    show(request(PTRACE_CONT, child, 0, 0));
    show(request(PTRACE_GETREGS, child, 0, (unsigned long)&r));
    show(request(PTRACE_DETACH, child, 0, 0));
    show(request(PTRACE_SETOPTIONS, child, 0, 0));
    end(child);
}

BEHAVIOUR("an unknown request, an unknown signal, unknown options") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    show(request(1234, child, 0, 0));
    show(request(PTRACE_CONT, child, 0, 65));
    show(request(PTRACE_CONT, child, 0, -1));
    show(request(PTRACE_SETOPTIONS, child, 0, 1 << 30));
    end(child);
}

BEHAVIOUR("PTRACE_PEEKUSER and POKEUSER outside of struct user") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    long word;
    show(request(PTRACE_PEEKUSER, child, 4, (unsigned long)&word));
    show(request(PTRACE_PEEKUSER, child, sizeof(struct user), (unsigned long)&word));
    show(request(PTRACE_PEEKUSER, child, -8l, (unsigned long)&word));
    show(request(PTRACE_POKEUSER, child, 4, 0));
    show(request(PTRACE_POKEUSER, child, sizeof(struct user), 0));
    show(request(PTRACE_PEEKUSER, child, 0, (unsigned long)bad()));
    end(child);
}

BEHAVIOUR("memory that is not mapped, in either process") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    long word;
    show(request(PTRACE_PEEKDATA, child, (unsigned long)bad(), (unsigned long)&word));
    show(request(PTRACE_PEEKDATA, child, (unsigned long)&word, (unsigned long)bad()));
    show(request(PTRACE_POKEDATA, child, (unsigned long)bad(), 0));
    show(request(PTRACE_GETREGS, child, 0, (unsigned long)bad()));
    show(request(PTRACE_SETREGS, child, 0, (unsigned long)bad()));
    show(request(PTRACE_GETSIGINFO, child, 0, (unsigned long)bad()));
    show(request(PTRACE_GETEVENTMSG, child, 0, (unsigned long)bad()));
    end(child);
}

BEHAVIOUR("a word across the end of the memory") {
    char *address = edge(4);
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    long word;
    show(request(PTRACE_PEEKDATA, child, (unsigned long)address, (unsigned long)&word));
    show(request(PTRACE_PEEKDATA, child, (unsigned long)address - 4, (unsigned long)&word));
    end(child);
}

BEHAVIOUR("a page that may only be read is poked, and the tracer's stays as it was") {
    volatile long *page = read_only();
    pid_t child = begin_traced();
    if (child == 0)
        _exit(*page == 77);
    show(request(PTRACE_POKEDATA, child, (unsigned long)page, 77));
    note("%ld", *page);
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("a page that is shared is not poked where it may only be read") {
    volatile long *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = begin_traced();
    if (child == 0)
        _exit(*page == 77);
    show(request(PTRACE_POKEDATA, child, (unsigned long)page, 77));
    end(child);
}

BEHAVIOUR("a page that is poked keeps its rights") {
    volatile long *page = read_only();
    pid_t child = begin_traced();
    if (child == 0) {
        *page = 1;
        _exit(0);
    }
    must(request(PTRACE_POKEDATA, child, (unsigned long)page, 77));
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    end(child);
}

BEHAVIOUR("registers that no program may have") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    struct user_regs_struct r;
    must(request(PTRACE_GETREGS, child, 0, (unsigned long)&r));
    show(request(PTRACE_POKEUSER, child, (unsigned long)REGISTER(fs_base), -1l));
    show(request(PTRACE_POKEUSER, child, (unsigned long)REGISTER(eflags), -1l));
    long flags = ptrace(PTRACE_PEEKUSER, child, REGISTER(eflags), 0);
    note("%d", (int)(flags >> 12 & 3));
    end(child);
}

BEHAVIOUR("a set of registers of an unknown kind, or with room for a part") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    struct user_regs_struct r;
    struct iovec vector = {&r, sizeof r};
    show(request(PTRACE_GETREGSET, child, 99, (unsigned long)&vector));
    vector.iov_len = 16;
    show(request(PTRACE_GETREGSET, child, 1, (unsigned long)&vector));
    note("%zu", vector.iov_len);
    vector.iov_len = 4096;
    vector.iov_base = malloc(4096);
    show(request(PTRACE_GETREGSET, child, 2, (unsigned long)&vector));
    note("%zu", vector.iov_len);
    end(child);
}

BEHAVIOUR("a signal is told before it acts, also one that is ignored") {
    pid_t child = begin_traced();
    if (child == 0) {
        signal(SIGUSR1, SIG_IGN);
        raise(SIGUSR1);
        raise(SIGURG);
        raise(SIGTERM);
        _exit(3);
    }
    for (int n = 0; n < 4; n++) {
        must(request(PTRACE_CONT, child, 0, 0));
        show_next(child);
    }
}

BEHAVIOUR("a signal that is blocked is told when it no longer is") {
    pid_t child = begin_traced();
    if (child == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGUSR1);
        raise(SIGUSR2);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        _exit(3);
    }
    for (int n = 0; n < 3; n++) {
        must(request(PTRACE_CONT, child, 0, 0));
        show_next(child);
    }
}

BEHAVIOUR("PTRACE_CONT with another signal") {
    handle(SIGUSR2, 0);
    pid_t child = begin_traced();
    if (child == 0) {
        raise(SIGUSR1);
        _exit(handled);
    }
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    must(request(PTRACE_CONT, child, 0, SIGUSR2));
    show_next(child);
}

BEHAVIOUR("PTRACE_CONT with a fatal signal") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    must(request(PTRACE_CONT, child, 0, SIGTERM));
    show_next(child);
    child = begin_traced();
    if (child == 0) {
        raise(SIGUSR1);
        _exit(0);
    }
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    must(request(PTRACE_CONT, child, 0, SIGHUP));
    show_next(child);
}

BEHAVIOUR("PTRACE_GETSIGINFO and SETSIGINFO") {
    pid_t child = begin_traced();
    if (child == 0) {
        sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 5});
        _exit(0);
    }
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    siginfo_t info;
    show(request(PTRACE_GETSIGINFO, child, 0, (unsigned long)&info));
    note("%d %d %d", info.si_signo == SIGUSR1, info.si_code == SI_QUEUE, info.si_value.sival_int);
    info.si_value.sival_int = 6;
    show(request(PTRACE_SETSIGINFO, child, 0, (unsigned long)&info));
    show(request(PTRACE_GETSIGINFO, child, 0, (unsigned long)&info));
    note("%d", info.si_value.sival_int);
    end(child);
}

BEHAVIOUR("PTRACE_GETSIGINFO in a stop of the group of who was attached to") {
    pid_t child = begin_traced();
    if (child == 0) {
        raise(SIGTSTP);
        _exit(0);
    }
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    must(request(PTRACE_CONT, child, 0, SIGSTOP));
    show_next(child);
    siginfo_t info;
    show(request(PTRACE_GETSIGINFO, child, 0, (unsigned long)&info));
    end(child);
}

BEHAVIOUR("PTRACE_GETSIGMASK and SETSIGMASK") {
    pid_t child = begin_traced();
    if (child == 0) {
        sigset_t set;
        sigprocmask(SIG_BLOCK, NULL, &set);
        _exit(sigismember(&set, SIGUSR1) + 2 * sigismember(&set, SIGKILL));
    }
    unsigned long mask = 1;
    show(request(PTRACE_GETSIGMASK, child, 4, (unsigned long)&mask));
    show(request(PTRACE_GETSIGMASK, child, 8, (unsigned long)&mask));
    note("%lx", mask);
    mask = 1ul << (SIGUSR1 - 1) | 1ul << (SIGKILL - 1);
    show(request(PTRACE_SETSIGMASK, child, 8, (unsigned long)&mask));
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("a call stops twice, with and without TRACESYSGOOD") {
    for (int good = 0; good < 2; good++) {
        pid_t child = begin_traced();
        if (child == 0) {
            syscall(SYS_getppid);
            _exit(0);
        }
        must(request(PTRACE_SETOPTIONS, child, 0, good ? PTRACE_O_TRACESYSGOOD : 0));
        for (int n = 0; n < 4; n++) {
            must(request(PTRACE_SYSCALL, child, 0, 0));
            show_next(child);
        }
        end(child);
    }
}

BEHAVIOUR("registers before a call and behind it") {
    pid_t child = begin_traced();
    if (child == 0) {
        syscall(SYS_lseek, -1, 7, 8);
        _exit(0);
    }
    struct user_regs_struct r;
    for (int n = 0; n < 2; n++) {
        must(request(PTRACE_SYSCALL, child, 0, 0));
        waitpid(child, NULL, 0);
        must(request(PTRACE_GETREGS, child, 0, (unsigned long)&r));
        note("%lld %lld (%lld %lld %lld)", (long long)r.orig_rax, (long long)r.rax, (long long)(int)r.rdi, (long long)r.rsi,
             (long long)r.rdx);
    }
    end(child);
}

BEHAVIOUR("a call is replaced by another, with other arguments") {
    int fds[2];
    must(pipe(fds));
    pid_t child = begin_traced();
    if (child == 0) {
        char byte = 'x';
        syscall(SYS_getppid, fds[1], &byte, 1);
        _exit(0);
    }
    must(request(PTRACE_SYSCALL, child, 0, 0));
    waitpid(child, NULL, 0);
    must(request(PTRACE_POKEUSER, child, (unsigned long)REGISTER(orig_rax), SYS_write));
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    show_read(fds[0], 4);
}

BEHAVIOUR("a wait that a signal interrupts is seen to be made again") {
    int fds[2];
    must(pipe(fds));
    pid_t child = begin_traced();
    if (child == 0) {
        char byte;
        read(fds[0], &byte, 1);
        _exit(byte);
    }
    struct user_regs_struct r;
    must(request(PTRACE_SYSCALL, child, 0, 0));
    show_next(child);
    must(request(PTRACE_SYSCALL, child, 0, 0));
    sleep_ms(50);
    kill(child, SIGUSR1);
    show_next(child);
    must(request(PTRACE_GETREGS, child, 0, (unsigned long)&r));
    note("%lld", (long long)r.rax);
    must(request(PTRACE_SYSCALL, child, 0, 0));
    show_next(child);
    must(request(PTRACE_SYSCALL, child, 0, 0));
    show_next(child);
    must(request(PTRACE_GETREGS, child, 0, (unsigned long)&r));
    note("%d", r.orig_rax == SYS_read);
    write(fds[1], "\7", 1);
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("what pause and nanosleep return to a tracer when a signal comes") {
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        pid_t child = begin_traced();
        if (child == 0) {
            struct timespec time = {100, 0};
            if (sleeps)
                syscall(SYS_nanosleep, &time, NULL);
            else
                syscall(SYS_pause);
            _exit(0);
        }
        struct user_regs_struct r;
        must(request(PTRACE_SYSCALL, child, 0, 0));
        waitpid(child, NULL, 0);
        must(request(PTRACE_SYSCALL, child, 0, 0));
        sleep_ms(50);
        kill(child, SIGUSR1);
        show_next(child);
        must(request(PTRACE_GETREGS, child, 0, (unsigned long)&r));
        note("%lld", (long long)r.rax);
        must(request(PTRACE_SYSCALL, child, 0, 0));
        show_next(child);
        must(request(PTRACE_SYSCALL, child, 0, 0));
        show_next(child);
        must(request(PTRACE_GETREGS, child, 0, (unsigned long)&r));
        note("%lld", (long long)r.orig_rax);
        end(child);
    }
}

BEHAVIOUR("a step over a call, and into a handler") {
    handle(SIGUSR1, 0);
    pid_t child = begin_traced();
    if (child == 0) {
        raise(SIGUSR1);
        _exit(0);
    }
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    must(request(PTRACE_SINGLESTEP, child, 0, SIGUSR1));
    show_next(child);
    long at = ptrace(PTRACE_PEEKUSER, child, REGISTER(rip), 0);
    note("%s", at == (long)handler ? "at the handler" : "elsewhere");
    must(request(PTRACE_SINGLESTEP, child, 0, 0));
    show_next(child);
    end(child);
}

BEHAVIOUR("an exec is SIGTRAP, or an event") {
    for (int asked = 0; asked < 2; asked++) {
        pid_t child = begin_traced();
        if (child == 0) {
            execl("/proc/self/exe", "ptrace", "no such behaviour", NULL);
            _exit(1);
        }
        must(request(PTRACE_SETOPTIONS, child, 0, asked ? PTRACE_O_TRACEEXEC : 0));
        must(request(PTRACE_CONT, child, 0, 0));
        show_next(child);
        unsigned long message = 0;
        must(request(PTRACE_GETEVENTMSG, child, 0, (unsigned long)&message));
        note("%d", message == (unsigned long)child);
        end(child);
    }
}

BEHAVIOUR("a fork is an event, and the child is traced") {
    pid_t child = begin_traced();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(4);
        waitpid(grandchild, NULL, 0);
        _exit(0);
    }
    must(request(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEFORK));
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    unsigned long message = 0;
    must(request(PTRACE_GETEVENTMSG, child, 0, (unsigned long)&message));
    show_next(message);
    must(request(PTRACE_CONT, child, 0, 0));
    must(request(PTRACE_CONT, message, 0, 0));
    show_next(message);
    show_next(child);
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("a vfork is an event at its beginning and its end") {
    pid_t child = begin_traced();
    if (child == 0) {
        if (vfork() == 0)
            _exit(4);
        _exit(0);
    }
    must(request(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE));
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    unsigned long message = 0;
    must(request(PTRACE_GETEVENTMSG, child, 0, (unsigned long)&message));
    show_next(message);
    must(request(PTRACE_CONT, child, 0, 0));
    must(request(PTRACE_CONT, message, 0, 0));
    show_next(message);
    int status = show_next(child);
    if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGCHLD) {
        must(request(PTRACE_CONT, child, 0, 0));
        show_next(child);
    }
    end(child);
}

BEHAVIOUR("an exit is an event, with the status") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(9);
    must(request(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXIT));
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    unsigned long message = 0;
    must(request(PTRACE_GETEVENTMSG, child, 0, (unsigned long)&message));
    note("%lx", message);
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("a death by a signal is an event") {
    pid_t child = begin_traced();
    if (child == 0) {
        raise(SIGTERM);
        _exit(9);
    }
    must(request(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXIT));
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    must(request(PTRACE_CONT, child, 0, SIGTERM));
    show_next(child);
    unsigned long message = 0;
    must(request(PTRACE_GETEVENTMSG, child, 0, (unsigned long)&message));
    note("%lx", message);
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("waitid tells of a stop as trapped") {
    pid_t child = begin_traced();
    if (child == 0) {
        raise(SIGUSR1);
        _exit(0);
    }
    must(request(PTRACE_CONT, child, 0, 0));
    siginfo_t info;
    show(waitid(P_PID, child, &info, WEXITED | WSTOPPED | WNOWAIT));
    show(waitid(P_PID, child, &info, WEXITED | WSTOPPED));
    note("%d %d", info.si_code == CLD_TRAPPED, info.si_status);
    show(waitpid(child, NULL, WNOHANG));
    end(child);
}

BEHAVIOUR("a tracer is told by SIGCHLD, unless it has asked not to be") {
    for (int quiet = 0; quiet < 2; quiet++) {
        handled = 0;
        handle(SIGCHLD, quiet ? SA_NOCLDSTOP : 0);
        pid_t child = begin_traced();
        if (child == 0)
            _exit(0);
        note("%d", (int)handled);
        end(child);
    }
}

BEHAVIOUR("the group of who is seized stops, listens, and is continued") {
    pid_t child = sleeper();
    must(request(PTRACE_SEIZE, child, 0, 0));
    kill(child, SIGSTOP);
    show_next(child);
    must(request(PTRACE_CONT, child, 0, SIGSTOP));
    show_next(child);
    show(request(PTRACE_LISTEN, child, 0, 0));
    show(request(PTRACE_CONT, child, 0, 0));
    kill(child, SIGCONT);
    show_next(child);
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
    end(child);
}

BEHAVIOUR("who is attached to in a stopped group") {
    pid_t child = sleeper();
    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    show(request(PTRACE_SEIZE, child, 0, 0));
    show_next(child);
    show(request(PTRACE_DETACH, child, 0, 0));
    kill(child, SIGCONT);
    kill(child, SIGTERM);
    show_next(child);
}

BEHAVIOUR("SIGKILL ends who is stopped") {
    pid_t child = begin_traced();
    if (child == 0)
        _exit(0);
    kill(child, SIGKILL);
    show_next(child);
    child = begin_traced();
    if (child == 0)
        _exit(0);
    show(request(PTRACE_KILL, child, 0, 0));
    show_next(child);
}

BEHAVIOUR("the end of a tracer sets free whom it traces, or ends it") {
    for (int kills = 0; kills < 2; kills++) {
        pid_t child = sleeper();
        IN_CHILD {
            must(request(PTRACE_SEIZE, child, 0, kills ? PTRACE_O_EXITKILL : 0));
            must(request(PTRACE_INTERRUPT, child, 0, 0));
            waitpid(child, NULL, __WALL);
        }
        if (!kills)
            kill(child, SIGTERM);
        show_next(child);
    }
}

BEHAVIOUR("a tracer waits for a stranger's end before its parent does") {
    pid_t child = sleeper();
    IN_CHILD {
        must(request(PTRACE_SEIZE, child, 0, 0));
        kill(child, SIGTERM);
        show_next(child);
        must(request(PTRACE_CONT, child, 0, SIGTERM));
        siginfo_t info;
        must(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
        show_next(child);
        show_next(child);
    }
    show_next(child);
}

BEHAVIOUR("process_vm_readv and writev") {
    static volatile long value = 5;
    pid_t child = begin_traced();
    if (child == 0)
        _exit(value);
    long here = 0;
    struct iovec local = {&here, sizeof here}, remote = {(void *)&value, sizeof value};
    show(process_vm_readv(child, &local, 1, &remote, 1, 0));
    note("%ld", here);
    here = 6;
    show(process_vm_writev(child, &local, 1, &remote, 1, 0));
    show(process_vm_readv(child, &local, 1, &remote, 1, 1));
    show(process_vm_readv(999999, &local, 1, &remote, 1, 0));
    struct iovec nowhere = {bad(), 8};
    show(process_vm_readv(child, &local, 1, &nowhere, 1, 0));
    show(process_vm_writev(child, &local, 1, &nowhere, 1, 0));
    show(process_vm_readv(child, &local, 1, &remote, 2000, 0));
    AS(USER) show(process_vm_readv(child, &local, 1, &remote, 1, 0));
    must(request(PTRACE_CONT, child, 0, 0));
    show_next(child);
}
