/* Signals for input and output: O_ASYNC, FIOASYNC, F_SETOWN, F_SETSIG, on pipes, sockets and terminals. */
#include "behaviour.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

/* Waits for a signal, and shows its number and what it says; "none" when there is none within `ms`. */
static void show_signal_within(int signal, long ms) {
    sigset_t set = set_of(signal);
    struct timespec limit = {ms / 1000, ms % 1000 * 1000000};
    siginfo_t info = {0};
    if (sigtimedwait(&set, &info, &limit) < 0) {
        note("none");
        return;
    }
    if (info.si_code == SI_KERNEL)
        note("plain");
    else if (info.si_code == SI_SIGIO)
        note("SI_SIGIO fd %d band %lx", info.si_fd, info.si_band);
    else
        note("code %d fd %d band %lx", info.si_code, info.si_fd, info.si_band);
}
static void show_signal(int signal) { show_signal_within(signal, 5000); }
static void show_none(int signal) { show_signal_within(signal, 50); }

/* This process is told of what happens to the descriptor, by the signal, or with 0 by a plain SIGIO. */
static void tell(int fd, int signal) {
    block(signal != 0 ? signal : SIGIO);
    must(fcntl(fd, F_SETOWN, getpid()));
    must(fcntl(fd, F_SETSIG, signal));
    must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
}

static int in, out;
static void new_pipe(int flags) {
    int ends[2];
    must(pipe2(ends, flags));
    in = ends[0];
    out = ends[1];
}
static void new_pair(int type) {
    int ends[2];
    must(socketpair(AF_UNIX, type, 0, ends));
    in = ends[0];
    out = ends[1];
}
static int slave;
static int new_terminal(void) {
    int number, master = must(open("/dev/ptmx", O_RDWR | O_NOCTTY));
    char path[32];
    must(ioctl(master, TIOCSPTLCK, &(int){0}));
    must(ioctl(master, TIOCGPTN, &number));
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    slave = must(open(path, O_RDWR | O_NOCTTY));
    return master;
}

BEHAVIOUR("FIOASYNC with bad memory") {
    new_pipe(0);
    show(ioctl(in, FIOASYNC, bad()));
    note("%d", fcntl(in, F_GETFL) & O_ASYNC);
}
BEHAVIOUR("FIOASYNC of a file, a directory, an eventfd") {
    make("f", "");
    int on = 1, file = open("f", O_RDONLY);
    show(ioctl(file, FIOASYNC, &on));
    note("%d", fcntl(file, F_GETFL) & O_ASYNC);
    show(ioctl(open(".", O_RDONLY), FIOASYNC, &on));
    show(ioctl(syscall(SYS_eventfd2, 0, 0), FIOASYNC, &on));
    on = 0;
    show(ioctl(file, FIOASYNC, &on));
}
BEHAVIOUR("F_SETFL O_ASYNC of a file, an eventfd is ignored") {
    make("f", "");
    int file = open("f", O_RDONLY), eventfd = syscall(SYS_eventfd2, 0, 0);
    show(fcntl(file, F_SETFL, O_ASYNC | O_APPEND));
    note("%d %d", !!(fcntl(file, F_GETFL) & O_ASYNC), !!(fcntl(file, F_GETFL) & O_APPEND));
    show(fcntl(eventfd, F_SETFL, O_ASYNC));
    note("%d", !!(fcntl(eventfd, F_GETFL) & O_ASYNC));
}
BEHAVIOUR("FIOASYNC sets and clears the flag of a pipe") {
    int on = 1;
    new_pipe(0);
    show(ioctl(in, FIOASYNC, &on));
    note("%d", !!(fcntl(in, F_GETFL) & O_ASYNC));
    on = 0;
    show(ioctl(in, FIOASYNC, &on));
    note("%d", !!(fcntl(in, F_GETFL) & O_ASYNC));
}
BEHAVIOUR("a pipe without owner tells nobody") {
    new_pipe(0);
    block(SIGIO);
    must(fcntl(in, F_SETFL, O_ASYNC));
    write(out, "x", 1);
    show_none(SIGIO);
}
BEHAVIOUR("an owner without O_ASYNC is not told") {
    new_pipe(0);
    block(SIGIO);
    must(fcntl(in, F_SETOWN, getpid()));
    write(out, "x", 1);
    show_none(SIGIO);
}
BEHAVIOUR("a pipe tells of data by SIGIO") {
    new_pipe(0);
    tell(in, 0);
    write(out, "x", 1);
    show_signal(SIGIO);
    show_none(SIGIO);
}
BEHAVIOUR("each write to a pipe is told, though data was there") {
    new_pipe(0);
    tell(in, 0);
    for (int i = 0; i < 3; i++) {
        write(out, "x", 1);
        show_signal(SIGIO);
    }
    show_read(in, 9);
}
BEHAVIOUR("a chosen signal says which descriptor and what") {
    new_pipe(0);
    tell(in, SIGRTMIN + 3);
    write(out, "x", 1);
    show_signal(SIGRTMIN + 3);
}
BEHAVIOUR("signals that are queued are told for each write") {
    new_pipe(0);
    tell(in, SIGRTMIN + 3);
    for (int i = 0; i < 3; i++)
        write(out, "x", 1);
    for (int i = 0; i < 3; i++)
        show_signal(SIGRTMIN + 3);
    show_none(SIGRTMIN + 3);
}
static volatile sig_atomic_t told;
static void count_told(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    told += info->si_fd == in;
}
BEHAVIOUR("signals that are queued run their handler once for each write") {
    struct sigaction action = {.sa_sigaction = count_told, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t set = set_of(SIGRTMIN + 3);
    new_pipe(0);
    must(sigaction(SIGRTMIN + 3, &action, NULL));
    tell(in, SIGRTMIN + 3);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    for (int i = 0; i < 5; i++)
        write(out, "x", 1);
    for (int tries = 0; tries < 500 && told < 5; tries++)
        sleep_ms(10);
    sleep_ms(50);
    note("%d", told);
}
BEHAVIOUR("F_SETSIG SIGIO says which descriptor and what") {
    new_pipe(0);
    tell(in, SIGIO);
    write(out, "x", 1);
    show_signal(SIGIO);
}
BEHAVIOUR("F_SETSIG of a signal that has codes of its own") {
    new_pipe(0);
    tell(in, SIGCHLD);
    write(out, "x", 1);
    show_signal(SIGCHLD);
}
BEHAVIOUR("the descriptor told is the one by which O_ASYNC was set") {
    new_pipe(0);
    int copy = dup(in);
    tell(copy, SIGRTMIN);
    note("%d", !!(fcntl(in, F_GETFL) & O_ASYNC));
    write(out, "x", 1);
    show_signal(SIGRTMIN);
    note("%d", copy);
    close(copy);
    write(out, "x", 1);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("the last close of a writing end is told") {
    new_pipe(0);
    tell(in, SIGRTMIN);
    close(out);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("a pipe tells its writer of a read") {
    new_pipe(O_NONBLOCK);
    static char bytes[4096];
    while (write(out, bytes, sizeof bytes) > 0)
        ;
    tell(out, SIGRTMIN);
    read(in, bytes, sizeof bytes);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("the last close of a reading end is told to the writer") {
    new_pipe(0);
    tell(out, SIGRTMIN);
    close(in);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("nothing is told after O_ASYNC is cleared") {
    new_pipe(0);
    tell(in, 0);
    must(fcntl(in, F_SETFL, 0));
    write(out, "x", 1);
    show_none(SIGIO);
    must(fcntl(in, F_SETFL, O_ASYNC));
    write(out, "x", 1);
    show_signal(SIGIO);
}
BEHAVIOUR("nothing is told to owner 0") {
    new_pipe(0);
    tell(in, 0);
    must(fcntl(in, F_SETOWN, 0));
    write(out, "x", 1);
    show_none(SIGIO);
}
BEHAVIOUR("both ends of a pipe have owners of their own") {
    new_pipe(0);
    tell(in, SIGRTMIN);
    tell(out, SIGRTMIN + 1);
    write(out, "x", 1);
    show_signal(SIGRTMIN);
    show_none(SIGRTMIN + 1);
}
BEHAVIOUR("a child is told, its parent not") {
    new_pipe(0);
    struct gate ready = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        tell(in, SIGRTMIN);
        open_gate(ready);
        show_signal(SIGRTMIN);
        _exit(0);
    }
    block(SIGRTMIN);
    pass_gate(ready);
    write(out, "x", 1);
    wait_for(child);
    show_none(SIGRTMIN);
}
BEHAVIOUR("a group is told") {
    new_pipe(0);
    block(SIGIO);
    must(fcntl(in, F_SETOWN, -getpgrp()));
    must(fcntl(in, F_SETFL, O_ASYNC));
    struct gate ready = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        open_gate(ready);
        show_signal(SIGIO);
        _exit(0);
    }
    pass_gate(ready);
    write(out, "x", 1);
    wait_for(child);
    show_signal(SIGIO);
}
BEHAVIOUR("a process of another user is not told by one without rights") {
    struct gate ready = new_gate(), told = new_gate();
    pid_t child = must(fork_as(STRANGER));
    if (child == 0) {
        block(SIGIO);
        open_gate(ready);
        pass_gate(told);
        show_none(SIGIO);
        _exit(0);
    }
    pass_gate(ready);
    AS(USER) {
        new_pipe(0);
        show(fcntl(in, F_SETOWN, child));
        must(fcntl(in, F_SETFL, O_ASYNC));
        write(out, "x", 1);
    }
    open_gate(told);
    wait_for(child);
}
BEHAVIOUR("a handler interrupts a read that waits elsewhere") {
    struct gate other = new_gate();
    char byte;
    new_pipe(0);
    handle(SIGIO, 0);
    must(fcntl(in, F_SETOWN, getpid()));
    must(fcntl(in, F_SETFL, O_ASYNC));
    pid_t parent = getpid(), child = must(fork());
    if (child == 0) {
        wait_until_asleep(parent);
        write(out, "x", 1);
        _exit(0);
    }
    show(read(other.fds[0], &byte, 1));
    note("%d", handled);
    wait_for(child);
}
BEHAVIOUR("a FIFO tells of data") {
    mkfifo("p", 0600);
    in = must(open("p", O_RDONLY | O_NONBLOCK));
    out = must(open("p", O_WRONLY));
    tell(in, SIGRTMIN);
    write(out, "x", 1);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("a stream socket tells of data and of the end") {
    new_pair(SOCK_STREAM);
    tell(in, SIGRTMIN);
    write(out, "x", 1);
    show_signal(SIGRTMIN);
    show_read(in, 9);
    close(out);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("a socket of messages tells of each") {
    new_pair(SOCK_SEQPACKET);
    tell(in, SIGRTMIN);
    write(out, "x", 1);
    show_signal(SIGRTMIN);
    write(out, "y", 1);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("a datagram socket tells of each") {
    new_pair(SOCK_DGRAM);
    tell(in, SIGRTMIN);
    write(out, "x", 1);
    show_signal(SIGRTMIN);
    write(out, "y", 1);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("a listening socket tells of a connection") {
    struct sockaddr_un name = {AF_UNIX, "s"};
    int listener = must(socket(AF_UNIX, SOCK_STREAM, 0)), client = must(socket(AF_UNIX, SOCK_STREAM, 0));
    must(bind(listener, (struct sockaddr *)&name, sizeof name));
    must(listen(listener, 5));
    tell(listener, SIGRTMIN);
    must(connect(client, (struct sockaddr *)&name, sizeof name));
    show_signal(SIGRTMIN);
    int server = must(accept(listener, NULL, NULL));
    note("%d", !!(fcntl(server, F_GETFL) & O_ASYNC));
}
BEHAVIOUR("what a socket sends is not told to itself") {
    new_pair(SOCK_STREAM);
    tell(out, SIGRTMIN);
    write(out, "x", 1);
    show_none(SIGRTMIN);
}
BEHAVIOUR("SIOCSPGRP, FIOSETOWN, SIOCGPGRP, FIOGETOWN of a socket") {
    int pid = getpid(), group = -getpgrp(), found = 7;
    new_pair(SOCK_STREAM);
    show(ioctl(in, FIOGETOWN, &found));
    note("%d", found);
    show(ioctl(in, FIOSETOWN, &pid));
    show(ioctl(in, SIOCGPGRP, &found));
    note("%d %d", found == pid, fcntl(in, F_GETOWN) == pid);
    show(ioctl(in, SIOCSPGRP, &group));
    show(ioctl(in, FIOGETOWN, &found));
    note("%d", found == group);
    show(ioctl(in, FIOSETOWN, bad()));
}
BEHAVIOUR("FIOSETOWN of a pipe and a file") {
    int pid = getpid();
    make("f", "");
    new_pipe(0);
    show(ioctl(in, FIOSETOWN, &pid));
    show(ioctl(open("f", O_RDONLY), FIOSETOWN, &pid));
}
BEHAVIOUR("a terminal tells of a line") {
    int master = new_terminal();
    tell(slave, SIGRTMIN);
    write(master, "line\n", 5);
    show_signal(SIGRTMIN);
    show_read(slave, 9);
    write(master, "more\n", 5);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("the master of a terminal tells of output") {
    int master = new_terminal();
    tell(master, SIGRTMIN);
    write(slave, "text", 4);
    show_signal(SIGRTMIN);
    show_read(master, 9);
    write(slave, "text", 4);
    show_signal(SIGRTMIN);
}
BEHAVIOUR("O_ASYNC of a terminal makes the caller its owner") {
    new_terminal();
    show(fcntl(slave, F_GETOWN));
    must(fcntl(slave, F_SETFL, O_RDWR | O_ASYNC));
    note("%d", fcntl(slave, F_GETOWN) == getpid());
}
BEHAVIOUR("O_ASYNC of a terminal keeps the owner that it has") {
    new_terminal();
    must(fcntl(slave, F_SETOWN, -getpgrp()));
    must(fcntl(slave, F_SETFL, O_RDWR | O_ASYNC));
    note("%d", fcntl(slave, F_GETOWN) == -getpgrp());
}
BEHAVIOUR("inotify tells of an event") {
    int fd = must(syscall(SYS_inotify_init1, 0));
    must(syscall(SYS_inotify_add_watch, fd, ".", 0x100));
    tell(fd, SIGRTMIN);
    make("f", "");
    show_signal(SIGRTMIN);
}
BEHAVIOUR("a descriptor that was sent tells its owner, who set it before") {
    new_pair(SOCK_STREAM);
    int link = in, peer = out;
    new_pipe(0);
    tell(in, SIGRTMIN);
    struct iovec byte = {"x", 1};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &in, sizeof(int));
    struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    must(sendmsg(link, &message, 0));
    close(in);
    write(out, "x", 1);
    show_signal(SIGRTMIN);
    close(peer);
}
