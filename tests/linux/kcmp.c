/* kcmp: what two processes share. */
#include "behaviour.h"
#include <sys/epoll.h>

enum { FILES_OPEN, VM, FILES, FS, SIGHAND, IO, SYSVSEM, EPOLL_TFD };

static long compare(pid_t first, pid_t second, int type, unsigned long a, unsigned long b) {
    return syscall(SYS_kcmp, first, second, type, a, b);
}
/* Shows whether the two are the same, or the error: which of two comes first is no behaviour. */
static void same(long result) {
    if (result < 0)
        show(result);
    else
        note("%s", result == 0 ? "same" : "other");
}
static pid_t child_that_waits(unsigned long flags) {
    pid_t child = must(syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0));
    if (child == 0)
        for (;;)
            pause();
    return child;
}

BEHAVIOUR("kcmp of unknown kinds") {
    show(compare(getpid(), getpid(), 8, 0, 0));
    show(compare(getpid(), getpid(), -1, 0, 0));
}
BEHAVIOUR("kcmp of processes that are not there") {
    show(compare(0x3ffffff, getpid(), VM, 0, 0));
    show(compare(getpid(), 0x3ffffff, VM, 0, 0));
    show(compare(0, getpid(), VM, 0, 0));
    show(compare(-1, getpid(), 99, 0, 0));
}
BEHAVIOUR("kcmp of descriptors that are not open") {
    show(compare(getpid(), getpid(), FILES_OPEN, 0, 99));
    show(compare(getpid(), getpid(), FILES_OPEN, 99, 0));
    show(compare(getpid(), getpid(), FILES_OPEN, -1, 0));
}
BEHAVIOUR("kcmp of a process of another user") {
    pid_t child = must(fork_as(STRANGER));
    if (child == 0)
        for (;;)
            pause();
    AS(USER) {
        show(compare(getpid(), child, VM, 0, 0));
        show(compare(child, getpid(), FILES_OPEN, 0, 0));
        show(compare(child, getpid(), 99, 0, 0));
    }
    kill(child, SIGKILL);
}
BEHAVIOUR("kcmp of a process with itself") {
    for (int type = VM; type <= SYSVSEM; type++)
        same(compare(getpid(), getpid(), type, 0, 0));
}
BEHAVIOUR("kcmp KCMP_FILE: a copy is the same, a second open is another") {
    int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_RDONLY), copy = dup(first);
    same(compare(getpid(), getpid(), FILES_OPEN, first, first));
    same(compare(getpid(), getpid(), FILES_OPEN, first, copy));
    same(compare(getpid(), getpid(), FILES_OPEN, first, second));
}
BEHAVIOUR("kcmp KCMP_FILE orders open files") {
    int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_RDONLY);
    long there = compare(getpid(), getpid(), FILES_OPEN, first, second);
    long back = compare(getpid(), getpid(), FILES_OPEN, second, first);
    note("%ld", there + back);
}
BEHAVIOUR("kcmp KCMP_FILE: a child has the same open files") {
    int fd = open("/dev/null", O_RDONLY);
    pid_t child = child_that_waits(0);
    same(compare(getpid(), child, FILES_OPEN, fd, fd));
    kill(child, SIGKILL);
}
BEHAVIOUR("kcmp of a child made by fork") {
    pid_t child = child_that_waits(0);
    for (int type = VM; type <= SIGHAND; type++)
        same(compare(getpid(), child, type, 0, 0));
    kill(child, SIGKILL);
}
BEHAVIOUR("kcmp of a child that shares descriptors") {
    pid_t child = child_that_waits(CLONE_FILES);
    same(compare(getpid(), child, FILES, 0, 0));
    same(compare(getpid(), child, FS, 0, 0));
    kill(child, SIGKILL);
}
BEHAVIOUR("kcmp of a child that shares the directory") {
    pid_t child = child_that_waits(CLONE_FS);
    same(compare(getpid(), child, FILES, 0, 0));
    same(compare(getpid(), child, FS, 0, 0));
    kill(child, SIGKILL);
}
static pid_t observer;
static int nothing(void *unused) {
    (void)unused;
    same(compare(observer, getpid(), VM, 0, 0));
    same(compare(observer, getpid(), FILES, 0, 0));
    _exit(0);
}
BEHAVIOUR("kcmp of a child that shares memory") {
    static char stack[65536];
    observer = getpid();
    wait_for(must(clone(nothing, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL)));
}
BEHAVIOUR("kcmp KCMP_EPOLL_TFD") {
    struct {
        unsigned efd, tfd, toff;
    } slot;
    int epoll = epoll_create1(0), ends[2];
    struct epoll_event event = {.events = EPOLLIN};
    pipe(ends);
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    slot.efd = epoll, slot.tfd = ends[0], slot.toff = 0;
    same(compare(getpid(), getpid(), EPOLL_TFD, ends[0], (unsigned long)&slot));
    same(compare(getpid(), getpid(), EPOLL_TFD, ends[1], (unsigned long)&slot));
    slot.toff = 1;
    same(compare(getpid(), getpid(), EPOLL_TFD, ends[0], (unsigned long)&slot));
    slot.toff = 0, slot.tfd = ends[1];
    same(compare(getpid(), getpid(), EPOLL_TFD, ends[0], (unsigned long)&slot));
    slot.tfd = ends[0], slot.efd = ends[0];
    same(compare(getpid(), getpid(), EPOLL_TFD, ends[0], (unsigned long)&slot));
    slot.efd = 99;
    same(compare(getpid(), getpid(), EPOLL_TFD, ends[0], (unsigned long)&slot));
    same(compare(getpid(), getpid(), EPOLL_TFD, ends[0], (unsigned long)bad()));
    same(compare(getpid(), getpid(), EPOLL_TFD, 99, (unsigned long)&slot));
}
