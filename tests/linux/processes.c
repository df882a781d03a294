/* fork, clone, exec, wait, exit, sessions and process groups. It is long because each rule is tried by itself. */
#include "behaviour.h"
#include <linux/sched.h>
#include <sys/prctl.h>

static pid_t child_that_exits(int status) {
    pid_t child = must(fork());
    if (child == 0)
        _exit(status);
    return child;
}

static pid_t child_that_waits(void) {
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

/* This program again, as another: with the arguments it is started with by exec_self, see the constructor. */
static void exec_self(const char *what, char *const environment[]) {
    char *words[] = {"again", (char *)what, NULL};
    execve("/proc/self/exe", words, environment);
    note("%s", strerrorname_np(errno));
}

/* What the program is asked for after exec_self; it shows by its exit status. */
__attribute__((constructor)) static void again(int count, char **words, char **environment) {
    if (count < 2 || strcmp(words[0], "again") != 0)
        return;
    struct sigaction action;
    sigset_t mask;
    if (strcmp(words[1], "descriptor 7") == 0)
        _exit(fcntl(7, F_GETFD) == -1 ? 1 : 2);
    if (strcmp(words[1], "handler") == 0) {
        sigaction(SIGUSR1, NULL, &action);
        int ignored = action.sa_handler == SIG_IGN;
        sigaction(SIGUSR2, NULL, &action);
        _exit(ignored * 10 + (action.sa_handler == SIG_DFL));
    }
    if (strcmp(words[1], "mask") == 0) {
        sigprocmask(SIG_BLOCK, NULL, &mask);
        sigset_t pending;
        sigpending(&pending);
        _exit(sigismember(&mask, SIGUSR1) * 10 + sigismember(&pending, SIGUSR1));
    }
    if (strcmp(words[1], "alarm") == 0)
        _exit(alarm(0) > 0);
    if (strcmp(words[1], "environment") == 0)
        _exit(environment[0] == NULL ? 0 : environment[0][0]);
    if (strcmp(words[1], "umask") == 0)
        _exit(umask(0));
    if (strcmp(words[1], "ids") == 0) {
        uid_t real, effective, saved;
        getresuid(&real, &effective, &saved);
        _exit((real != 0) * 100 + (effective != 0) * 10 + (saved != 0));
    }
    if (strcmp(words[1], "niceness") == 0)
        _exit(getpriority(PRIO_PROCESS, 0));
    if (strcmp(words[1], "alternate stack") == 0) {
        stack_t stack;
        sigaltstack(NULL, &stack);
        _exit(stack.ss_flags);
    }
    _exit(99);
}

BEHAVIOUR("fork returns 0 in the child, and the child's id in the parent") {
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        _exit(getppid() == parent ? 5 : 6);
    note("%d", child > 0);
    wait_for(child);
}
BEHAVIOUR("a child has a copy of the memory") {
    volatile int value = 1;
    IN_CHILD { value = 2; }
    show(value);
}
BEHAVIOUR("vfork shares the memory, and the parent waits until the child ends") {
    volatile int value = 1;
    pid_t child = vfork();
    if (child == 0) {
        value = 2;
        _exit(0);
    }
    show(value);
    wait_for(child);
}
BEHAVIOUR("shared memory is shared with children") {
    int *value = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    IN_CHILD { *value = 7; }
    show(*value);
}
BEHAVIOUR("fork beyond RLIMIT_NPROC") {
    AS(STRANGER) {
        struct rlimit few = {1, 1};
        setrlimit(RLIMIT_NPROC, &few);
        show(fork());
    }
}
BEHAVIOUR("a child has no alarm of its parent") {
    alarm(100);
    IN_CHILD { show(alarm(0)); }
    note("%d", alarm(0) > 90);
}
BEHAVIOUR("exit status has eight bits") {
    wait_for(child_that_exits(0x1234));
    wait_for(child_that_exits(-1));
}
BEHAVIOUR("wait without children") {
    int status;
    show(wait(&status));
    show(waitpid(-1, &status, WNOHANG));
    show(waitpid(getppid(), &status, 0));
    show(waitpid(1, &status, 0));
}
BEHAVIOUR("waitpid with unknown options, with bad memory, with INT_MIN") {
    pid_t child = child_that_exits(3);
    show(waitpid(child, NULL, 0x100));
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    show(syscall(SYS_wait4, child, bad(), 0, NULL));
    show(waitpid(child, NULL, 0));
    show(waitpid(INT_MIN, NULL, 0));
}
BEHAVIOUR("waitpid WNOHANG of a child that lives") {
    pid_t child = child_that_waits();
    show(waitpid(child, NULL, WNOHANG));
    end(child);
}
BEHAVIOUR("waitpid for a group") {
    pid_t child = child_that_exits(4);
    int status;
    note("%d", waitpid(0, &status, 0) == child);
    child = fork();
    if (child == 0) {
        setpgid(0, 0);
        _exit(5);
    }
    setpgid(child, child);
    show(waitpid(0, &status, WNOHANG));
    note("%d", waitpid(-child, &status, 0) == child);
    show_status(status);
}
BEHAVIOUR("waitpid for a grandchild") {
    struct gate gate = new_gate();
    pid_t *grandchild = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        *grandchild = child_that_exits(1);
        open_gate(gate);
        wait(NULL);
        _exit(0);
    }
    pass_gate(gate);
    show(waitpid(*grandchild, NULL, 0));
    wait_for(child);
}
BEHAVIOUR("wait reaps once") {
    pid_t child = child_that_exits(0);
    note("%d", waitpid(child, NULL, 0) == child);
    show(waitpid(child, NULL, 0));
}
BEHAVIOUR("waitid with bad types, bad options, no options") {
    siginfo_t info;
    show(waitid(77, 1, &info, WEXITED));
    show(waitid(P_ALL, 0, &info, 0));
    show(waitid(P_ALL, 0, &info, WEXITED | 0x100));
    show(waitid(P_PID, 0, &info, WEXITED));
    show(waitid(P_PID, -1, &info, WEXITED));
    show(waitid(P_PGID, -1, &info, WEXITED));
    show(waitid(P_ALL, 0, &info, WEXITED));
}
BEHAVIOUR("waitid WNOWAIT leaves the zombie") {
    siginfo_t info;
    pid_t child = child_that_exits(9);
    show(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
    note("%d %d %d %d", info.si_signo, info.si_code, info.si_status, info.si_pid == child);
    show(waitid(P_PID, child, &info, WEXITED));
    show(waitid(P_PID, child, &info, WEXITED));
}
BEHAVIOUR("waitid WNOHANG of a child that lives clears si_signo and si_pid") {
    siginfo_t info;
    memset(&info, 0xff, sizeof info);
    pid_t child = child_that_waits();
    show(waitid(P_PID, child, &info, WEXITED | WNOHANG));
    note("%d %d", info.si_signo, info.si_pid);
    end(child);
}
BEHAVIOUR("waitid with bad memory") {
    show(waitid(P_PID, child_that_exits(0), bad(), WEXITED));
    show(waitid(P_PID, child_that_exits(0), NULL, WEXITED));
}
BEHAVIOUR("waitid WSTOPPED and WCONTINUED tell each change once") {
    siginfo_t info;
    pid_t child = child_that_waits();
    kill(child, SIGSTOP);
    show(waitid(P_PID, child, &info, WSTOPPED));
    note("%d %d", info.si_code, info.si_status);
    info.si_pid = 0;
    show(waitid(P_PID, child, &info, WSTOPPED | WNOHANG));
    show(info.si_pid);
    kill(child, SIGCONT);
    show(waitid(P_PID, child, &info, WCONTINUED));
    note("%d %d", info.si_code, info.si_status);
    end(child);
}
BEHAVIOUR("wait4 with bad memory for the usage") {
    pid_t child = child_that_exits(0);
    show(syscall(SYS_wait4, child, NULL, 0, bad()));
}
BEHAVIOUR("an orphan gets another parent") {
    struct gate gate = new_gate(), done = new_gate();
    pid_t parent = fork();
    if (parent == 0) {
        pid_t me = getpid();
        if (fork() == 0) {
            pass_gate(gate);
            note("%d", getppid() != me);
            open_gate(done);
            _exit(0);
        }
        _exit(0);
    }
    wait_for(parent);
    open_gate(gate);
    pass_gate(done);
}
BEHAVIOUR("a subreaper gets the orphans below it") {
    must(prctl(PR_SET_CHILD_SUBREAPER, 1));
    pid_t parent = fork();
    if (parent == 0) {
        if (fork() == 0) {
            sleep_ms(10);
            _exit(8);
        }
        _exit(0);
    }
    wait_for(parent);
    int status;
    note("%d", wait(&status) > 0);
    show_status(status);
}
BEHAVIOUR("PR_SET_PDEATHSIG kills a child when its parent ends") {
    int p[2];
    pipe(p);
    pid_t parent = fork();
    if (parent == 0) {
        struct gate ready = new_gate();
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            open_gate(ready);
            for (;;)
                pause();
        }
        pass_gate(ready);
        _exit(0);
    }
    close(p[1]);
    wait_for(parent);
    /* The end of the pipe is the end of the child. */
    show_read(p[0], 1);
}
BEHAVIOUR("execve of nothing, a directory, a file without permission, through a file") {
    char *words[] = {"x", NULL};
    make("f", "text");
    show(execve("none", words, NULL));
    show(execve(".", words, NULL));
    show(execve("f", words, NULL));
    show(execve("f/x", words, NULL));
    show(execve("", words, NULL));
}
BEHAVIOUR("execve by bad memory") {
    char *words[] = {"x", bad(), NULL};
    show(execve(bad(), words, NULL));
    show(execve("/proc/self/exe", words, NULL));
    show(execve("/proc/self/exe", bad(), NULL));
    show(execve("/proc/self/exe", NULL, bad()));
}
BEHAVIOUR("execve of what is no program") {
    char *words[] = {"x", NULL};
    make_mode("empty", "", 0755);
    make_mode("text", "no program", 0755);
    make_mode("elf", "\177ELF", 0755);
    show(execve("empty", words, NULL));
    show(execve("text", words, NULL));
    show(execve("elf", words, NULL));
}
BEHAVIOUR("execve of a script") {
    char *words[] = {"script", NULL};
    make_mode("script", "#!/bin/sh\nexit 21\n", 0755);
    IN_CHILD { execve("./script", words, NULL); }
}
BEHAVIOUR("a script's interpreter gets one argument, the script's path, and the rest") {
    char *words[] = {"ignored", "one", "two", NULL};
    make_mode("inner", "#!/bin/sh -e\nfalse\nexit 3\n", 0755);
    make_mode("count", "#!/bin/sh\nexit $#\n", 0755);
    IN_CHILD { execve("./inner", words, NULL); }
    IN_CHILD { execve("./count", words, NULL); }
}
BEHAVIOUR("a script whose interpreter is missing, or no program, or nothing") {
    char *words[] = {"x", NULL};
    make_mode("missing", "#!/none\n", 0755);
    make_mode("nothing", "#!\n", 0755);
    make_mode("directory", "#!/\n", 0755);
    show(execve("missing", words, NULL));
    show(execve("nothing", words, NULL));
    show(execve("directory", words, NULL));
}
BEHAVIOUR("execve by root needs one execute bit, by a user his own") {
    char *words[] = {"x", NULL};
    make_mode("f", "#!/bin/sh\nexit 4\n", 0010);
    AS(USER) { show(execve("./f", words, NULL)); }
    chmod("f", 0755);
    AS(USER) { execve("./f", words, NULL); }
    chmod("f", 0644);
    show(execve("./f", words, NULL));
}
BEHAVIOUR("execve with too long arguments") {
    static char word[200000], *words[] = {"x", word, NULL};
    memset(word, 'x', sizeof word - 1);
    show(execve("/proc/self/exe", words, NULL));
}
BEHAVIOUR("execve closes descriptors marked close-on-exec") {
    dup3(0, 7, O_CLOEXEC);
    IN_CHILD { exec_self("descriptor 7", NULL); }
    fcntl(7, F_SETFD, 0);
    IN_CHILD { exec_self("descriptor 7", NULL); }
}
BEHAVIOUR("execve that fails leaves descriptors open") {
    char *words[] = {"x", NULL};
    dup3(0, 7, O_CLOEXEC);
    show(execve("none", words, NULL));
    show(fcntl(7, F_GETFD));
}
BEHAVIOUR("execve resets handlers, and leaves ignored signals ignored") {
    signal(SIGUSR1, SIG_IGN);
    handle(SIGUSR2, 0);
    IN_CHILD { exec_self("handler", NULL); }
}
BEHAVIOUR("execve keeps the mask and pending signals") {
    block(SIGUSR1);
    IN_CHILD {
        raise(SIGUSR1);
        exec_self("mask", NULL);
    }
}
BEHAVIOUR("execve keeps the alarm and the umask, replaces the environment") {
    char *environment[] = {"A=1", NULL};
    umask(027);
    IN_CHILD {
        alarm(100);
        exec_self("alarm", NULL);
    }
    IN_CHILD { exec_self("umask", NULL); }
    IN_CHILD { exec_self("environment", environment); }
    IN_CHILD { exec_self("environment", NULL); }
}
BEHAVIOUR("execve drops the alternate stack") {
    static char memory[16384];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
    IN_CHILD { exec_self("alternate stack", NULL); }
}
BEHAVIOUR("execve sets the saved id to the effective one") {
    IN_CHILD {
        setresuid(USER, USER, 0);
        exec_self("ids", NULL);
    }
    IN_CHILD {
        setresuid(USER, 0, USER);
        exec_self("ids", NULL);
    }
}
BEHAVIOUR("execve without arguments: there is one, which is empty") {
    char *words[] = {NULL};
    make_mode("f", "#!/bin/sh\nexit $#\n", 0755);
    IN_CHILD {
        execve("./f", words, NULL);
        note("%s", strerrorname_np(errno));
    }
}
BEHAVIOUR("execveat relative to a directory, and with unknown flags") {
    char *words[] = {"f", NULL}, *none[] = {NULL};
    mkdir("d", 0755);
    make_mode("d/f", "#!/bin/sh\nexit 6\n", 0755);
    int d = open("d", O_RDONLY);
    show(syscall(SYS_execveat, d, "f", words, none, 0x4));
    show(syscall(SYS_execveat, 99, "f", words, none, 0));
    IN_CHILD {
        syscall(SYS_execveat, d, "f", words, none, 0);
        note("%s", strerrorname_np(errno));
    }
}
BEHAVIOUR("execveat AT_EMPTY_PATH runs an open program") {
    char *words[] = {"again", "umask", NULL}, *none[] = {NULL};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    umask(5);
    IN_CHILD {
        syscall(SYS_execveat, fd, "", words, none, AT_EMPTY_PATH);
        note("%s", strerrorname_np(errno));
    }
}
BEHAVIOUR("execveat AT_SYMLINK_NOFOLLOW of a link") {
    char *words[] = {"x", NULL}, *none[] = {NULL};
    symlink("/proc/self/exe", "l");
    show(syscall(SYS_execveat, AT_FDCWD, "l", words, none, AT_SYMLINK_NOFOLLOW));
}
BEHAVIOUR("clone with flags that need others") {
    show(syscall(SYS_clone, CLONE_THREAD | SIGCHLD, NULL, NULL, NULL, NULL));
    show(syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, NULL, NULL, NULL, NULL));
    show(syscall(SYS_clone, CLONE_FS | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL));
}
BEHAVIOUR("clone CLONE_FS shares the directory, CLONE_FILES the descriptors") {
    mkdir("d", 0755);
    make("d/f", "text");
    pid_t child = syscall(SYS_clone, CLONE_FS | CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        chdir("d");
        dup2(0, 9);
        umask(011);
        _exit(0);
    }
    wait_for(child);
    show_file("f");
    show(fcntl(9, F_GETFD));
    note("%o", umask(0));
}
BEHAVIOUR("clone CLONE_PARENT makes a sibling") {
    pid_t *sibling = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        *sibling = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
        if (*sibling == 0)
            _exit(11);
        show(waitpid(-1, NULL, 0));
        _exit(0);
    }
    wait_for(child);
    int status;
    while (waitpid(-1, &status, 0) > 0)
        show_status(status);
}
BEHAVIOUR("clone without a signal at the end: only __WALL and __WCLONE wait for it") {
    pid_t child = syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
    if (child == 0)
        _exit(12);
    show(waitpid(child, NULL, 0));
    int status;
    note("%d", waitpid(child, &status, __WCLONE) == child);
    show_status(status);
}
/* Shows the error; a child that is made nevertheless ends at once. */
static void show_clone3(struct clone_args *arguments, size_t size) {
    long child = syscall(SYS_clone3, arguments, size);
    if (child == 0)
        _exit(0);
    show(child > 0 ? 1 : child);
}
BEHAVIOUR("clone3 with sizes and flags that are not known") {
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    show_clone3(&arguments, 8);
    show_clone3(bad(), sizeof arguments);
    arguments.flags = 1ULL << 40;
    show_clone3(&arguments, sizeof arguments);
    arguments = (struct clone_args){.exit_signal = 99};
    show_clone3(&arguments, sizeof arguments);
    arguments = (struct clone_args){.exit_signal = SIGCHLD, .stack = 4096};
    show_clone3(&arguments, sizeof arguments);
}
BEHAVIOUR("clone3 with more than is known: zeros are right, anything else is E2BIG") {
    struct {
        struct clone_args known;
        char more[64];
    } arguments = {.known.exit_signal = SIGCHLD};
    show_clone3(&arguments.known, sizeof arguments.known + 1);
    show_clone3(&arguments.known, sizeof arguments);
    arguments.more[63] = 1;
    show_clone3(&arguments.known, sizeof arguments);
    show_clone3(&arguments.known, sizeof arguments - 1);
    show_clone3(&arguments.known, 4097);
    /* The end of the memory, and what is behind it. */
    char *end = edge(sizeof arguments);
    arguments.more[63] = 0;
    memcpy(end, &arguments, sizeof arguments);
    show_clone3((struct clone_args *)end, sizeof arguments);
    show_clone3((struct clone_args *)end, sizeof arguments + 8);
}
BEHAVIOUR("clone3 makes a child") {
    pid_t stored = 0;
    struct clone_args arguments = {.flags = CLONE_PARENT_SETTID, .exit_signal = SIGCHLD, .parent_tid = (uint64_t)&stored};
    pid_t child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        _exit(13);
    note("%d", stored == child);
    wait_for(child);
}
BEHAVIOUR("setsid by the leader of a group") { show(setsid()); }
BEHAVIOUR("setsid makes a session and a group") {
    IN_CHILD {
        show(setsid() == getpid());
        note("%d %d", getsid(0) == getpid(), getpgrp() == getpid());
        show(setsid());
    }
}
BEHAVIOUR("getsid and getpgid of nobody") {
    show(getsid(0x3ffffff));
    show(getpgid(0x3ffffff));
    show(getsid(-1));
    show(getpgid(-1));
}
BEHAVIOUR("setpgid of nobody, negative, into a group that does not exist") {
    show(setpgid(0x3ffffff, 0));
    show(setpgid(-1, 0));
    show(setpgid(0, -1));
    IN_CHILD { show(setpgid(0, 0x3ffffff)); }
}
BEHAVIOUR("setpgid of a child before and after its exec") {
    pid_t child = child_that_waits();
    show(setpgid(child, child));
    note("%d", getpgid(child) == child);
    show(setpgid(child, getpgrp()));
    end(child);
    struct gate gate = new_gate();
    child = fork();
    if (child == 0) {
        char *words[] = {"sh", "-c", "read x", NULL};
        dup2(gate.fds[0], 0);
        execve("/bin/sh", words, NULL);
    }
    sleep_ms(30);
    wait_until_asleep(child);
    show(setpgid(child, child));
    end(child);
}
BEHAVIOUR("setpgid of the leader of a session") {
    IN_CHILD {
        setsid();
        show(setpgid(0, 0));
        pid_t child = child_that_waits();
        show(setpgid(child, child));
        end(child);
    }
}
BEHAVIOUR("setpgid of a process of another session, and of a parent") {
    struct gate ready = new_gate();
    pid_t child = fork();
    if (child == 0) {
        setsid();
        open_gate(ready);
        for (;;)
            pause();
    }
    pass_gate(ready);
    show(setpgid(child, getpgrp()));
    end(child);
    IN_CHILD { show(setpgid(getppid(), 0)); }
}
BEHAVIOUR("an orphaned group that has a stopped member gets SIGHUP and SIGCONT") {
    int p[2];
    pipe(p);
    pid_t leader = fork();
    if (leader == 0) {
        setpgid(0, 0);
        pid_t member = fork();
        if (member == 0) {
            handle(SIGHUP, 0);
            raise(SIGSTOP);
            note("continued, %d SIGHUP", handled);
            _exit(0);
        }
        waitpid(member, NULL, WUNTRACED);
        _exit(0);
    }
    close(p[1]);
    wait_for(leader);
    show_read(p[0], 1);
}
