/* Ids that a program asks for again and again are the same each time, until they change: then the first question after the change has
 * the new answer. By the system calls themselves, since a C library may remember answers of its own. */
#include "behaviour.h"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

/* The answer to each of three questions, if they agree. */
static long ask(long number) {
    long first = syscall(number), second = syscall(number), third = syscall(number);
    return first == second && second == third ? first : -1;
}

static void show_users(void) {
    long real = ask(SYS_getuid), effective = ask(SYS_geteuid);
    long group = ask(SYS_getgid), effective_group = ask(SYS_getegid);
    note("%ld %ld %ld %ld", real, effective, group, effective_group);
}

/* Waits for the child to say something, or lets it go on. */
static void await(int fd) {
    char byte;
    must(read(fd, &byte, 1));
}
static void tell(int fd) { must(write(fd, "x", 1)); }

BEHAVIOUR("a process has the same ids however often it asks") {
    note("%d %d %d", ask(SYS_getpid) == getpid(), ask(SYS_gettid) == getpid(), ask(SYS_getppid) == getppid());
    note("%d", ask(SYS_getpgrp) == getpgid(0));
    show_users();
}

BEHAVIOUR("a child has ids of its own") {
    pid_t parent = ask(SYS_getpid), own_parent = ask(SYS_getppid), group = ask(SYS_getpgrp);
    IN_CHILD {
        note("%d %d", ask(SYS_getpid) == parent, ask(SYS_gettid) == ask(SYS_getpid));
        note("%d %d %d", ask(SYS_getppid) == parent, ask(SYS_getppid) == own_parent, ask(SYS_getpgrp) == group);
    }
}

static void *show_thread(void *main) {
    note("%d %d", ask(SYS_getpid) == *(pid_t *)main, ask(SYS_gettid) == *(pid_t *)main);
    return NULL;
}

BEHAVIOUR("a thread has its process's id, and one of its own") {
    pid_t main = ask(SYS_getpid);
    pthread_t thread;
    note("%d", ask(SYS_gettid) == main);
    must(-pthread_create(&thread, NULL, show_thread, &main));
    pthread_join(thread, NULL);
}

BEHAVIOUR("an orphan learns its new parent") {
    int ends[2], out[2];
    must(pipe(ends));
    must(pipe(out));
    must(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    pid_t parent = fork();
    if (parent == 0) {
        pid_t self = getpid();
        if (fork() == 0) {
            char answer = ask(SYS_getppid) == self;
            write(out[1], &answer, 1);
            await(ends[0]);
            answer = ask(SYS_getppid) == self;
            write(out[1], &answer, 1);
            _exit(0);
        }
        pause();
    }
    char before, after;
    must(read(out[0], &before, 1));
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    tell(ends[1]);
    must(read(out[0], &after, 1));
    note("%d %d", before, after);
    wait(NULL);
}

BEHAVIOUR("setsid and setpgid change the group") {
    IN_CHILD {
        note("%d", ask(SYS_getpgrp) == getpid());
        show(setpgid(0, 0));
        note("%d", ask(SYS_getpgrp) == getpid());
        show(setpgid(0, getppid()));
        note("%d", ask(SYS_getpgrp) == getpid());
    }
    IN_CHILD {
        note("%d", ask(SYS_getpgrp) == getpid());
        must(setsid());
        note("%d", ask(SYS_getpgrp) == getpid());
    }
}

BEHAVIOUR("a parent changes the group of its child") {
    int ends[2], out[2];
    must(pipe(ends));
    must(pipe(out));
    pid_t child = fork();
    if (child == 0) {
        for (int n = 0; n < 2; n++) {
            char answer = ask(SYS_getpgrp) == getpid();
            write(out[1], &answer, 1);
            await(ends[0]);
        }
        _exit(0);
    }
    char before, after;
    must(read(out[0], &before, 1));
    must(setpgid(child, child));
    tell(ends[1]);
    must(read(out[0], &after, 1));
    tell(ends[1]);
    note("%d %d", before, after);
    wait(NULL);
}

BEHAVIOUR("each call that sets ids is seen at once") {
    static const struct { long number, a, b, c; } calls[] = {
        {SYS_setresgid, 5, 6, 0}, {SYS_setregid, 7, 5, 0}, {SYS_setgid, 8, 0, 0},  {SYS_setfsgid, 9, 0, 0},
        {SYS_setresuid, 5, 0, 0}, {SYS_setreuid, 0, 6, 0}, {SYS_setreuid, 6, 0, 0}, {SYS_setuid, 7, 0, 0},
    };
    IN_CHILD {
        show_users();
        for (size_t n = 0; n < sizeof calls / sizeof *calls; n++) {
            syscall(calls[n].number, calls[n].a, calls[n].b, calls[n].c);
            show_users();
        }
    }
}

static void put(const char *path, const char *text) {
    int fd = must(open(path, O_WRONLY));
    must(write(fd, text, strlen(text)));
    close(fd);
}

BEHAVIOUR("a namespace of users has other ids, and those of its map once that is there") {
    AS(USER) {
        char text[32];
        show_users();
        must(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
        must(unshare(CLONE_NEWUSER));
        show_users();
        put("/proc/self/setgroups", "deny");
        snprintf(text, sizeof text, "7 %d 1", USER);
        put("/proc/self/uid_map", text);
        show_users();
        put("/proc/self/gid_map", text);
        show_users();
    }
}

BEHAVIOUR("the first process of a namespace of processes") {
    pid_t child = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        note("%ld %ld %ld", ask(SYS_getpid), ask(SYS_gettid), ask(SYS_getppid));
        if (fork() == 0) {
            note("%ld %ld", ask(SYS_getpid), ask(SYS_getppid));
            _exit(0);
        }
        wait(NULL);
        _exit(0);
    }
    wait_for(child);
}

/* This program again: shows whether it has its process's id, and an effective user that its file gave it. */
__attribute__((constructor)) static void again(int count, char **words) {
    if (count == 1 && strcmp(words[0], "again") == 0)
        _exit((ask(SYS_gettid) == ask(SYS_getpid)) * 10 + (ask(SYS_geteuid) == USER));
}

static void *exec_again(void *none) {
    ask(SYS_gettid);
    execl("/proc/self/exe", "again", NULL);
    return none;
}

BEHAVIOUR("a thread that executes a program has its process's id") {
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exec_again, NULL);
        for (;;)
            pause();
    }
    int status;
    waitpid(child, &status, 0);
    note("%d", WEXITSTATUS(status));
}

BEHAVIOUR("a traced program's questions are seen, however often it has asked before") {
    pid_t child = fork();
    int status;
    if (child == 0) {
        ask(SYS_getpid);
        must(ptrace(PTRACE_TRACEME, 0, 0, 0));
        raise(SIGSTOP);
        for (int n = 0; n < 3; n++)
            syscall(SYS_getpid);
        _exit(0);
    }
    waitpid(child, &status, 0);
    must(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD));
    int stops = 0;
    for (;;) {
        must(ptrace(PTRACE_SYSCALL, child, 0, 0));
        waitpid(child, &status, 0);
        if (!WIFSTOPPED(status))
            break;
        stops += WSTOPSIG(status) == (SIGTRAP | 0x80);
    }
    /* Three calls that stop twice, and exit_group, behind the return of the call that raised the signal. */
    note("%d", stops);
}
