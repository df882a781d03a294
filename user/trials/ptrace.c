/* Traces programs, and prints what it sees: the same as on Linux. usage: ptrace [calls | steps | random]
 * With `calls` it follows a child through some hundred calls, with `steps` through some thousand instructions, and says whether none was missed;
 * with `random` it makes requests of no meaning. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534
#define OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)

static void say(const char *what, long result)
{
    printf("%s: %s\n", what, result >= 0 ? "ok" : strerrorname_np(errno));
}

/* Waits for the next thing that happens to a child, or to anybody, and returns its status. */
static int next(pid_t child)
{
    int status = -1;
    if (waitpid(child, &status, __WALL) < 0)
        printf("wait: %s\n", strerrorname_np(errno));
    return status;
}

static const char *name(int signal)
{
    const char *abbreviation = sigabbrev_np(signal);
    return abbreviation ? abbreviation : "?";
}

/* Prints a status of a wait. */
static void show(const char *what, int status)
{
    static const char *const events[] = {"", "fork", "vfork", "clone", "exec", "vfork done", "exit"};
    if (WIFEXITED(status))
        printf("%s: exited with %d\n", what, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        printf("%s: killed by %s\n", what, name(WTERMSIG(status)));
    else if (status >> 16 == PTRACE_EVENT_STOP)
        printf("%s: stop by %s\n", what, name(WSTOPSIG(status)));
    else if (status >> 16)
        printf("%s: event %s\n", what, events[status >> 16]);
    else if (WSTOPSIG(status) == (SIGTRAP | 0x80))
        printf("%s: call\n", what);
    else
        printf("%s: signal %s\n", what, name(WSTOPSIG(status)));
}

/* A child that waits to be traced, and then does this. */
static pid_t traced(void (*act)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        act();
        _exit(0);
    }
    show("begins", next(child));
    say("options", ptrace(PTRACE_SETOPTIONS, child, 0, OPTIONS));
    return child;
}

static int go_on(pid_t child, int request, int signal)
{
    if (ptrace(request, child, 0, signal) < 0)
        printf("go on: %s\n", strerrorname_np(errno));
    return next(child);
}

static void wait_for_signals(void)
{
    pause();
}

static volatile long variable = 1;
static volatile int handled;

static void handler(int signal)
{
    handled = signal;
}

static void make_calls(void)
{
    long user = syscall(SYS_getuid), id = syscall(SYS_getppid);
    _exit(user == 1234 && id == -1 && errno == EPERM ? 7 : 1);
}

/* Calls: their numbers, a result that the tracer has changed, a call that it has cancelled. */
static void calls(void)
{
    pid_t child = traced(make_calls);
    struct user_regs_struct r;
    for (;;) {
        int status = go_on(child, PTRACE_SYSCALL, 0);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            show("calls", status);
            break;
        }
        struct __ptrace_syscall_info info;
        long length = ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
        ptrace(PTRACE_GETREGS, child, 0, &r);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
            printf("entry %lld of %ld bytes, rax %lld\n", (long long)info.entry.nr, length, (long long)r.rax);
            if (r.orig_rax == SYS_getppid) {
                r.orig_rax = -1;
                say("cancel", ptrace(PTRACE_SETREGS, child, 0, &r));
            }
        } else {
            printf("exit of %ld bytes, error %d\n", length, info.exit.is_error);
            if (r.orig_rax == SYS_getuid)
                say("change", ptrace(PTRACE_POKEUSER, child, offsetof(struct user, regs.rax), 1234l));
            else if ((long)r.orig_rax == -1)
                say("change", ptrace(PTRACE_POKEUSER, child, offsetof(struct user, regs.rax), -(long)EPERM));
        }
    }
}

__attribute__((noinline)) static long place(long value)
{
    variable += value;
    return variable;
}

static void use_memory(void)
{
    long sum = place(1);
    _exit(sum == 43 && variable == 43 ? 0 : 1);
}

/* Memory and registers: data, a breakpoint in code, steps. */
static void memory(void)
{
    pid_t child = traced(use_memory);
    errno = 0;
    printf("variable %ld\n", ptrace(PTRACE_PEEKDATA, child, &variable, 0));
    say("poke", ptrace(PTRACE_POKEDATA, child, &variable, 42));
    long code = ptrace(PTRACE_PEEKTEXT, child, (void *)place, 0);
    say("breakpoint", ptrace(PTRACE_POKETEXT, child, (void *)place, (code & ~0xffl) | 0xcc));
    show("breakpoint", go_on(child, PTRACE_CONT, 0));
    siginfo_t info;
    say("info", ptrace(PTRACE_GETSIGINFO, child, 0, &info));
    printf("code %d, own code %s\n", info.si_code, *(unsigned char *)place == 0xcc ? "changed" : "as it was");
    struct user_regs_struct r;
    ptrace(PTRACE_GETREGS, child, 0, &r);
    printf("behind the breakpoint: %d, argument %lld\n", r.rip == (uintptr_t)place + 1, (long long)r.rdi);
    r.rip = (uintptr_t)place;
    say("back", ptrace(PTRACE_SETREGS, child, 0, &r));
    say("mend", ptrace(PTRACE_POKETEXT, child, (void *)place, code));
    int moved = 0;
    for (int n = 0; n < 3; n++) {
        uintptr_t before = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), 0);
        int status = go_on(child, PTRACE_SINGLESTEP, 0);
        uintptr_t after = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), 0);
        moved += WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && before != after;
    }
    ptrace(PTRACE_GETREGS, child, 0, &r);
    printf("steps %d, trap flag %d\n", moved, (int)(r.eflags >> 8 & 1));
    struct iovec vector = {&r, sizeof r};
    say("regset", ptrace(PTRACE_GETREGSET, child, 1, &vector));
    printf("%zu bytes\n", vector.iov_len);
    struct user_fpregs_struct f;
    say("fpu", ptrace(PTRACE_GETFPREGS, child, 0, &f));
    say("set fpu", ptrace(PTRACE_SETFPREGS, child, 0, &f));
    long seen = 0;
    struct iovec here = {&seen, sizeof seen}, there = {(void *)&variable, sizeof seen};
    long bytes = process_vm_readv(child, &here, 1, &there, 1, 0);
    printf("read %ld, %ld\n", bytes, seen);
    say("bad address", ptrace(PTRACE_PEEKDATA, child, 8, 0));
    say("bad offset", ptrace(PTRACE_PEEKUSER, child, 4, 0));
    say("bad request", ptrace(77, child, 0, 0));
    say("bad options", ptrace(PTRACE_SETOPTIONS, child, 0, 1 << 30));
    show("ends", go_on(child, PTRACE_CONT, 0));
}

static void take_signals(void)
{
    signal(SIGUSR1, handler);
    signal(SIGUSR2, handler);
    raise(SIGUSR1);
    int first = handled;
    raise(SIGUSR1);
    raise(SIGCHLD);
    _exit(first == 0 && handled == SIGUSR2 ? 0 : 1);
}

/* Signals: one is suppressed, one replaced, one that is ignored is seen. */
static void signals(void)
{
    pid_t child = traced(take_signals);
    show("first", go_on(child, PTRACE_CONT, 0));
    show("second", go_on(child, PTRACE_CONT, 0));
    sigset_t mask;
    say("mask", ptrace(PTRACE_GETSIGMASK, child, 8, &mask));
    show("third", go_on(child, PTRACE_CONT, SIGUSR2));
    show("ends", go_on(child, PTRACE_CONT, 0));
    child = traced(wait_for_signals);
    ptrace(PTRACE_CONT, child, 0, 0);
    kill(child, SIGTERM);
    show("fatal", next(child));
    show("ends", go_on(child, PTRACE_CONT, SIGTERM));
    child = traced(wait_for_signals);
    ptrace(PTRACE_CONT, child, 0, 0);
    kill(child, SIGKILL);
    show("killed", next(child));
}

static void *thread(void *argument)
{
    return argument;
}

static void multiply(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    waitpid(child, NULL, 0);
    child = vfork();
    if (child == 0)
        _exit(4);
    waitpid(child, NULL, 0);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    execl("/proc/self/exe", "ptrace", "nothing", NULL);
    _exit(1);
}

/* Children, threads and programs of a child: which events there are, without the order among different ones. */
static void events(void)
{
    pid_t child = traced(multiply);
    int events[8] = {0}, stops = 0, ends = 0, codes = 0;
    ptrace(PTRACE_SETOPTIONS, child, 0,
           OPTIONS | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC
               | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXIT);
    ptrace(PTRACE_CONT, child, 0, 0);
    for (;;) {
        int status, signal = 0;
        pid_t who = waitpid(-1, &status, __WALL);
        if (who < 0)
            break;
        if (!WIFSTOPPED(status)) {
            ends++;
            codes += WEXITSTATUS(status);
            continue;
        }
        unsigned long message = 0;
        ptrace(PTRACE_GETEVENTMSG, who, 0, &message);
        if (status >> 16 == PTRACE_EVENT_EXEC && message != (unsigned long)child)
            printf("a wrong thread has executed\n");
        if (status >> 16)
            events[status >> 16 & 7]++;
        else if (WSTOPSIG(status) == SIGSTOP)
            stops++;
        else if (WSTOPSIG(status) != SIGCHLD)
            signal = WSTOPSIG(status);
        ptrace(PTRACE_CONT, who, 0, signal);
    }
    printf("fork %d vfork %d clone %d exec %d vfork done %d exit %d\n", events[1], events[2], events[3], events[4],
           events[5], events[6]);
    printf("stops %d ends %d codes %d\n", stops, ends, codes);
}

static void sleep_a_while(void)
{
    struct timespec time = {0, 300000000};
    _exit(nanosleep(&time, NULL) == 0 ? 0 : 1);
}

static pid_t started(void (*act)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        act();
        _exit(0);
    }
    usleep(50000);
    return child;
}

/* Attaching to one that sleeps, which does not notice; `PTRACE_SEIZE`, and stops of the group. */
static void attaching(void)
{
    pid_t child = started(sleep_a_while);
    say("attach", ptrace(PTRACE_ATTACH, child, 0, 0));
    show("attached", next(child));
    say("attach again", ptrace(PTRACE_ATTACH, child, 0, 0));
    say("detach", ptrace(PTRACE_DETACH, child, 0, 0));
    say("of a stranger", ptrace(PTRACE_CONT, child, 0, 0));
    show("ends", next(child));

    child = started(wait_for_signals);
    say("seize", ptrace(PTRACE_SEIZE, child, 0, OPTIONS));
    say("interrupt", ptrace(PTRACE_INTERRUPT, child, 0, 0));
    show("interrupted", next(child));
    ptrace(PTRACE_CONT, child, 0, 0);
    kill(child, SIGSTOP);
    show("stopping", next(child));
    show("stopped", go_on(child, PTRACE_CONT, SIGSTOP));
    say("listen", ptrace(PTRACE_LISTEN, child, 0, 0));
    kill(child, SIGCONT);
    show("continued", next(child));
    show("signal", go_on(child, PTRACE_CONT, 0));
    say("detach", ptrace(PTRACE_DETACH, child, 0, SIGTERM));
    show("ends", next(child));

    child = started(wait_for_signals);
    pid_t tracer = fork();
    if (tracer == 0) {
        ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_EXITKILL);
        _exit(0);
    }
    waitpid(tracer, NULL, 0);
    show("tracer gone", next(child));

    child = started(wait_for_signals);
    tracer = fork();
    if (tracer == 0) {
        ptrace(PTRACE_ATTACH, child, 0, 0);
        waitpid(child, NULL, __WALL);
        kill(child, SIGKILL);
        _exit(WIFSIGNALED(next(child)) ? 0 : 1);
    }
    show("tracer", next(tracer));
    show("killed while traced by another", next(child));
}

static void rights(void)
{
    pid_t child = started(wait_for_signals);
    pid_t other = fork();
    if (other == 0) {
        if (setgid(NOBODY) || setuid(NOBODY))
            _exit(1);
        say("of another user", ptrace(PTRACE_ATTACH, child, 0, 0));
        say("nobody", ptrace(PTRACE_ATTACH, 999999, 0, 0));
        say("itself", ptrace(PTRACE_ATTACH, getpid(), 0, 0));
        fflush(stdout);
        _exit(0);
    }
    waitpid(other, NULL, 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

#define MANY 200

static void make_many_calls(void)
{
    for (int n = 0; n < MANY; n++)
        if (syscall(SYS_getppid) != getppid() || write(1, "", 0) != 0 || sched_yield() != 0)
            _exit(1);
}

/* Follows many calls: none may be missed, whoever dies meanwhile. */
static void many_calls(void)
{
    pid_t child = traced(make_many_calls);
    long entries = 0, exits = 0;
    for (;;) {
        int status = go_on(child, PTRACE_SYSCALL, 0);
        if (!WIFSTOPPED(status)) {
            printf("entries %ld exits %ld status %d\n", entries, exits, status);
            return;
        }
        struct __ptrace_syscall_info info;
        ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
        *(info.op == PTRACE_SYSCALL_INFO_ENTRY ? &entries : &exits) += 1;
    }
}

static void compute(void)
{
    for (int n = 0; n < 300; n++)
        variable += n;
    raise(SIGUSR1);
}

static void many_steps(void)
{
    pid_t child = traced(compute);
    long steps = 0;
    int status;
    for (;;) {
        status = go_on(child, PTRACE_SINGLESTEP, 0);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
            break;
        steps++;
    }
    printf("variable %ld, many steps %d\n", ptrace(PTRACE_PEEKDATA, child, &variable, 0), steps > 900);
    show("steps", status);
    show("ends", go_on(child, PTRACE_CONT, 0));
}

/* Requests of no meaning: the tracer and the system live on. */
static void random_requests(void)
{
    static const int requests[] = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 15, 24, 0x4200, 0x4201, 0x4202, 0x4203,
                                   0x4204, 0x4205, 0x4207, 0x4208, 0x420a, 0x420b, 0x420e, 30, 31, 0x420c};
    srand(7);
    pid_t child = 0;
    for (int n = 0; n < 3000; n++) {
        if (child == 0) {
            child = fork();
            if (child == 0) {
                ptrace(PTRACE_TRACEME, 0, 0, 0);
                raise(SIGSTOP);
                for (;;)
                    place(getppid());
            }
        }
        static char buffer[4096];
        uintptr_t values[] = {0, 8, rand(), (uintptr_t)buffer, (uintptr_t)&variable, (uintptr_t)place, -8l, 512,
                              (uintptr_t)rand() << 40};
        int request = requests[rand() % (sizeof requests / sizeof *requests)];
        /* What a request writes goes into the buffer or nowhere. */
        static const int harmless[] = {0, 1, 3, 6, 7};
        ptrace(request, child, values[rand() % 9], values[harmless[rand() % 5]]);
        int status;
        if (waitpid(child, &status, WNOHANG | __WALL) == child && !WIFSTOPPED(status))
            child = 0;
        if (n % 100 == 99 && child) {
            kill(child, SIGKILL);
            while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status))
                ;
            child = 0;
        }
    }
    printf("random requests are over\n");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "nothing") == 0)
        return 5;
    if (strcmp(what, "calls") == 0)
        many_calls();
    else if (strcmp(what, "steps") == 0)
        many_steps();
    else if (strcmp(what, "random") == 0)
        random_requests();
    else {
        calls();
        memory();
        signals();
        events();
        attaching();
        rights();
    }
    return 0;
}
