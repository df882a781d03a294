/* dup, fcntl, close-on-exec, ioctl of all descriptors; record locks, locks of open files, flock, leases. */
#include "behaviour.h"
#include <sys/file.h>

static struct flock range(short type, off_t start, off_t length) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

static long lock(int fd, int command, short type, off_t start, off_t length) {
    struct flock lock = range(type, start, length);
    return fcntl(fd, command, &lock);
}

/* Shows who would keep this process from locking: the type and the range. */
static void show_lock(int fd, int command, short type, off_t start, off_t length) {
    struct flock lock = range(type, start, length);
    if (fcntl(fd, command, &lock) < 0)
        note("%s", strerrorname_np(errno));
    else if (lock.l_type == F_UNLCK)
        note("free");
    else
        note("%s %ld+%ld", lock.l_type == F_WRLCK ? "write" : "read", (long)lock.l_start, (long)lock.l_len);
}

static int file(void) {
    make("f", "0123456789");
    return must(open("f", O_RDWR));
}

BEHAVIOUR("dup of a bad descriptor") {
    show(dup(-1));
    show(dup(99));
}
BEHAVIOUR("dup takes the lowest free descriptor, without close-on-exec") {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(1);
    show(dup(fd));
    show(fcntl(1, F_GETFD));
}
BEHAVIOUR("dup beyond RLIMIT_NOFILE") {
    struct rlimit few = {3, 3};
    setrlimit(RLIMIT_NOFILE, &few);
    show(dup(0));
    show(fcntl(0, F_DUPFD, 0));
    show(dup2(0, 3));
    show(dup2(0, 2));
}
BEHAVIOUR("dup2 closes what was there") {
    make("f", "text");
    int one = open("/dev/null", O_RDONLY), two = open("f", O_RDONLY);
    show(dup2(two, one));
    show_read(one, 9);
}
BEHAVIOUR("dup2 to itself does nothing, and keeps close-on-exec") {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    show(dup2(fd, fd));
    show(fcntl(fd, F_GETFD));
    show(dup2(99, 99));
}
BEHAVIOUR("dup2 of a bad descriptor leaves the target open") {
    int fd = open("/dev/null", O_RDONLY);
    show(dup2(99, fd));
    show(fcntl(fd, F_GETFD));
}
BEHAVIOUR("dup2 to a negative descriptor") {
    show(dup2(0, -1));
    show(dup2(0, 1 << 30));
}
BEHAVIOUR("dup3 to itself, with unknown flags, with O_CLOEXEC") {
    show(dup3(0, 0, 0));
    show(dup3(0, 5, O_APPEND));
    show(dup3(0, 5, O_CLOEXEC));
    show(fcntl(5, F_GETFD));
}
BEHAVIOUR("fcntl F_DUPFD takes the lowest from the one given") {
    show(fcntl(0, F_DUPFD, 10));
    show(fcntl(0, F_DUPFD, 10));
    show(fcntl(0, F_DUPFD, -1));
    show(fcntl(0, F_DUPFD, 1 << 20));
    show(fcntl(0, F_DUPFD_CLOEXEC, 20));
    show(fcntl(20, F_GETFD));
}
BEHAVIOUR("fcntl with an unknown command, and with a bad descriptor") {
    show(fcntl(0, 9999));
    show(fcntl(99, F_GETFD));
    show(fcntl(99, 9999));
}
BEHAVIOUR("fcntl F_SETFD keeps one bit") {
    show(fcntl(0, F_SETFD, 0xff));
    show(fcntl(0, F_GETFD));
    show(fcntl(0, F_SETFD, 2));
    show(fcntl(0, F_GETFD));
}
BEHAVIOUR("close-on-exec belongs to the descriptor, not to the file") {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), copy = dup(fd);
    show(fcntl(fd, F_GETFD));
    show(fcntl(copy, F_GETFD));
}
BEHAVIOUR("status flags belong to the file: duplicates share them, another open does not") {
    int fd = file(), copy = dup(fd), other = open("f", O_RDWR);
    show(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK));
    note("%o %o", fcntl(copy, F_GETFL) & 06000, fcntl(other, F_GETFL) & 06000);
}
BEHAVIOUR("fcntl F_SETFL cannot change the access mode, O_CREAT or O_TRUNC") {
    make("f", "text");
    int fd = open("f", O_RDONLY);
    show(fcntl(fd, F_SETFL, O_WRONLY | O_CREAT | O_TRUNC | O_EXCL));
    note("%o", fcntl(fd, F_GETFL) & ~0100000);
    show_file("f");
}
BEHAVIOUR("fcntl F_SETFL O_NOATIME of another user's file") {
    make_mode("f", "", 0644);
    AS(USER) { show(fcntl(open("f", O_RDONLY), F_SETFL, O_NOATIME)); }
}
BEHAVIOUR("fcntl of an O_PATH descriptor") {
    int fd = open(".", O_PATH);
    show(fcntl(fd, F_SETFL, O_NONBLOCK));
    show(fcntl(fd, F_GETFD));
    show(lock(fd, F_SETLK, F_RDLCK, 0, 0));
    show(flock(fd, LOCK_SH));
}
BEHAVIOUR("ioctl FIOCLEX, FIONCLEX, FIONBIO") {
    int on = 1;
    show(ioctl(0, FIOCLEX));
    show(fcntl(0, F_GETFD));
    show(ioctl(0, FIONCLEX));
    show(fcntl(0, F_GETFD));
    show(ioctl(0, FIONBIO, &on));
    note("%o", fcntl(0, F_GETFL) & O_NONBLOCK);
    show(ioctl(0, FIONBIO, bad()));
}
BEHAVIOUR("ioctl of a bad descriptor, and an unknown request") {
    show(ioctl(99, FIONREAD, bad()));
    show(ioctl(file(), 0xdeadbeef, 0));
    show(ioctl(file(), TCGETS, bad()));
}
BEHAVIOUR("ioctl FIONREAD of a file is what is left of it") {
    int fd = file(), left = -1;
    lseek(fd, 4, SEEK_SET);
    show(ioctl(fd, FIONREAD, &left));
    note("%d", left);
    show(ioctl(fd, FIONREAD, bad()));
}
BEHAVIOUR("a child has copies of the descriptors: closing is private, flags are shared") {
    int fd = file();
    IN_CHILD {
        fcntl(fd, F_SETFL, O_APPEND);
        close(fd);
    }
    note("%o", fcntl(fd, F_GETFL) & O_APPEND);
}
BEHAVIOUR("fcntl locks of a bad descriptor, by bad memory, of a bad type and whence") {
    struct flock wrong = range(7, 0, 0);
    int fd = file();
    show(lock(99, F_SETLK, F_WRLCK, 0, 0));
    show(fcntl(fd, F_SETLK, bad()));
    show(fcntl(fd, F_SETLK, &wrong));
    wrong = range(F_WRLCK, 0, 0);
    wrong.l_whence = 9;
    show(fcntl(fd, F_SETLK, &wrong));
}
BEHAVIOUR("fcntl locks before the start and beyond the largest offset") {
    int fd = file();
    show(lock(fd, F_SETLK, F_WRLCK, -1, 1));
    show(lock(fd, F_SETLK, F_WRLCK, 0, -1));
    show(lock(fd, F_SETLK, F_WRLCK, 5, -5));
    show(lock(fd, F_SETLK, F_WRLCK, INT64_MAX, 2));
    show(lock(fd, F_SETLK, F_WRLCK, INT64_MAX, 1));
}
BEHAVIOUR("a read lock needs a descriptor for reading, a write lock one for writing") {
    make("f", "");
    show(lock(open("f", O_RDONLY), F_SETLK, F_WRLCK, 0, 0));
    show(lock(open("f", O_WRONLY), F_SETLK, F_RDLCK, 0, 0));
}
BEHAVIOUR("F_GETLK shows the lock of another process, its own never") {
    int fd = file();
    lock(fd, F_SETLK, F_WRLCK, 2, 3);
    show_lock(fd, F_GETLK, F_WRLCK, 0, 0);
    IN_CHILD {
        struct flock other = range(F_WRLCK, 0, 0);
        show_lock(fd, F_GETLK, F_WRLCK, 0, 0);
        show_lock(fd, F_GETLK, F_WRLCK, 0, 2);
        show_lock(fd, F_GETLK, F_RDLCK, 4, 1);
        fcntl(fd, F_GETLK, &other);
        note("%d", other.l_pid == getppid());
    }
}
BEHAVIOUR("F_SETLK of a range that another process has locked") {
    int fd = file();
    lock(fd, F_SETLK, F_RDLCK, 0, 5);
    IN_CHILD {
        show(lock(fd, F_SETLK, F_WRLCK, 4, 4));
        show(lock(fd, F_SETLK, F_WRLCK, 5, 4));
        show(lock(fd, F_SETLK, F_RDLCK, 0, 5));
    }
}
BEHAVIOUR("unlocking the middle splits a lock, locking it again joins it") {
    int fd = file();
    lock(fd, F_SETLK, F_WRLCK, 0, 10);
    lock(fd, F_SETLK, F_UNLCK, 4, 2);
    IN_CHILD {
        show_lock(fd, F_GETLK, F_WRLCK, 0, 0);
        show_lock(fd, F_GETLK, F_WRLCK, 5, 0);
    }
    lock(fd, F_SETLK, F_WRLCK, 4, 2);
    IN_CHILD { show_lock(fd, F_GETLK, F_WRLCK, 0, 0); }
}
BEHAVIOUR("a lock of length 0 reaches to the end, wherever that will be") {
    int fd = file();
    lock(fd, F_SETLK, F_WRLCK, 5, 0);
    IN_CHILD {
        show(lock(fd, F_SETLK, F_WRLCK, 1000000, 1));
        show(lock(fd, F_SETLK, F_WRLCK, 0, 5));
    }
}
BEHAVIOUR("a lock with l_whence SEEK_CUR and SEEK_END") {
    int fd = file();
    lseek(fd, 3, SEEK_SET);
    struct flock from_here = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = 1, .l_len = 1};
    struct flock from_end = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -1, .l_len = 1};
    show(fcntl(fd, F_SETLK, &from_here));
    show(fcntl(fd, F_SETLK, &from_end));
    IN_CHILD {
        show_lock(fd, F_GETLK, F_WRLCK, 0, 0);
        show_lock(fd, F_GETLK, F_WRLCK, 5, 0);
    }
}
BEHAVIOUR("a write lock becomes a read lock in place") {
    int fd = file();
    lock(fd, F_SETLK, F_WRLCK, 0, 10);
    lock(fd, F_SETLK, F_RDLCK, 0, 5);
    IN_CHILD {
        show(lock(fd, F_SETLK, F_RDLCK, 0, 5));
        show(lock(fd, F_SETLK, F_RDLCK, 5, 5));
    }
}
BEHAVIOUR("closing any descriptor of a file ends the process's locks on it") {
    int fd = file(), other = open("f", O_RDONLY);
    lock(fd, F_SETLK, F_WRLCK, 0, 0);
    close(other);
    IN_CHILD { show_lock(fd, F_GETLK, F_WRLCK, 0, 0); }
}
BEHAVIOUR("locks end with the process, and are not inherited") {
    int fd = file();
    IN_CHILD {
        lock(fd, F_SETLK, F_WRLCK, 0, 0);
        IN_CHILD { show(lock(fd, F_SETLK, F_WRLCK, 0, 0)); }
    }
    show(lock(fd, F_SETLK, F_WRLCK, 0, 0));
}
BEHAVIOUR("locks do not hinder reading and writing") {
    int fd = file();
    lock(fd, F_SETLK, F_WRLCK, 0, 0);
    IN_CHILD { show(write(fd, "X", 1)); }
}
BEHAVIOUR("F_SETLKW waits until the lock is free") {
    int fd = file();
    struct gate locked = new_gate();
    pid_t child = fork();
    if (child == 0) {
        lock(fd, F_SETLK, F_WRLCK, 0, 0);
        open_gate(locked);
        sleep_ms(20);
        note("unlock");
        _exit(0);
    }
    pass_gate(locked);
    show(lock(fd, F_SETLKW, F_WRLCK, 0, 0));
    wait_for(child);
}
BEHAVIOUR("F_SETLKW is interrupted by a signal with a handler") {
    int fd = file();
    lock(fd, F_SETLK, F_WRLCK, 0, 0);
    pid_t child = fork();
    if (child == 0) {
        handle(SIGUSR1, 0);
        show(lock(fd, F_SETLKW, F_WRLCK, 0, 0));
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    wait_for(child);
}
BEHAVIOUR("F_SETLKW that would wait for ever for each other") {
    int fd = file();
    struct gate gate = new_gate();
    lock(fd, F_SETLK, F_WRLCK, 0, 1);
    pid_t child = fork();
    if (child == 0) {
        lock(fd, F_SETLK, F_WRLCK, 1, 1);
        open_gate(gate);
        show(lock(fd, F_SETLKW, F_WRLCK, 0, 1));
        _exit(0);
    }
    pass_gate(gate);
    sleep_ms(20);
    wait_until_asleep(child);
    show(lock(fd, F_SETLKW, F_WRLCK, 1, 1));
    lock(fd, F_SETLK, F_UNLCK, 0, 0);
    wait_for(child);
}
BEHAVIOUR("locks of an open file belong to it, not to the process") {
    int fd = file(), other = open("f", O_RDWR);
    show(lock(fd, F_OFD_SETLK, F_WRLCK, 0, 5));
    show(lock(other, F_OFD_SETLK, F_WRLCK, 0, 5));
    show_lock(other, F_OFD_GETLK, F_WRLCK, 0, 0);
    IN_CHILD { show(lock(fd, F_OFD_SETLK, F_WRLCK, 0, 5)); }
    close(open("f", O_RDONLY));
    show(lock(other, F_OFD_SETLK, F_WRLCK, 0, 5));
}
BEHAVIOUR("locks of an open file end with its last descriptor") {
    int fd = file(), copy = dup(fd), other = open("f", O_RDWR);
    lock(fd, F_OFD_SETLK, F_WRLCK, 0, 0);
    close(fd);
    show(lock(other, F_OFD_SETLK, F_WRLCK, 0, 0));
    close(copy);
    show(lock(other, F_OFD_SETLK, F_WRLCK, 0, 0));
}
BEHAVIOUR("locks of an open file conflict with the process's own record locks, and have no process") {
    int fd = file(), other = open("f", O_RDWR);
    struct flock asked = range(F_WRLCK, 0, 0);
    lock(fd, F_OFD_SETLK, F_WRLCK, 0, 0);
    show(lock(other, F_SETLK, F_WRLCK, 0, 0));
    show(fcntl(other, F_GETLK, &asked));
    show(asked.l_pid == -1);
}
BEHAVIOUR("F_OFD_SETLK wants l_pid 0") {
    struct flock lock = range(F_WRLCK, 0, 0);
    lock.l_pid = 1;
    show(fcntl(file(), F_OFD_SETLK, &lock));
}
BEHAVIOUR("flock of a bad descriptor, with bad operations") {
    int fd = file();
    show(flock(99, LOCK_SH));
    show(flock(fd, 0));
    show(flock(fd, 77));
    show(flock(fd, LOCK_SH | LOCK_EX));
    show(flock(fd, LOCK_NB));
}
BEHAVIOUR("flock: one exclusive or many shared") {
    int one = file(), two = open("f", O_RDONLY), three = open("f", O_RDONLY);
    show(flock(one, LOCK_SH));
    show(flock(two, LOCK_SH | LOCK_NB));
    show(flock(three, LOCK_EX | LOCK_NB));
    flock(one, LOCK_UN);
    flock(two, LOCK_UN);
    show(flock(three, LOCK_EX | LOCK_NB));
    show(flock(one, LOCK_SH | LOCK_NB));
}
BEHAVIOUR("flock needs no access mode: also a descriptor for reading may lock exclusively") {
    make("f", "");
    show(flock(open("f", O_RDONLY), LOCK_EX));
}
BEHAVIOUR("flock belongs to the open file: children and duplicates share it") {
    int fd = file(), copy = dup(fd), other = open("f", O_RDWR);
    flock(fd, LOCK_EX);
    show(flock(copy, LOCK_EX | LOCK_NB));
    IN_CHILD { flock(fd, LOCK_UN); }
    show(flock(other, LOCK_EX | LOCK_NB));
}
BEHAVIOUR("flock ends with the last descriptor") {
    int fd = file(), copy = dup(fd), other = open("f", O_RDWR);
    flock(fd, LOCK_EX);
    close(fd);
    show(flock(other, LOCK_EX | LOCK_NB));
    close(copy);
    show(flock(other, LOCK_EX | LOCK_NB));
}
BEHAVIOUR("flock and record locks do not see each other") {
    int fd = file(), other = open("f", O_RDWR);
    flock(fd, LOCK_EX);
    IN_CHILD { show(lock(other, F_SETLK, F_WRLCK, 0, 0)); }
}
BEHAVIOUR("flock that fails to become exclusive has lost the shared lock") {
    int one = file(), two = open("f", O_RDONLY), three = open("f", O_RDONLY);
    flock(one, LOCK_SH);
    flock(two, LOCK_SH);
    show(flock(one, LOCK_EX | LOCK_NB));
    flock(two, LOCK_UN);
    show(flock(three, LOCK_EX | LOCK_NB));
}
BEHAVIOUR("F_SETLEASE of a file that is open otherwise") {
    int fd = file(), reader = open("f", O_RDONLY);
    show(fcntl(reader, F_SETLEASE, F_RDLCK));
    close(fd);
    show(fcntl(reader, F_SETLEASE, F_RDLCK));
    show(fcntl(reader, F_GETLEASE));
    show(fcntl(reader, F_SETLEASE, F_UNLCK));
    show(fcntl(reader, F_GETLEASE));
}
BEHAVIOUR("F_SETLEASE of bad types, of what is no file, of another's file") {
    int p[2];
    pipe(p);
    make_mode("f", "", 0666);
    show(fcntl(open("f", O_RDONLY), F_SETLEASE, 99));
    show(fcntl(p[0], F_SETLEASE, F_RDLCK));
    show(fcntl(open(".", O_RDONLY), F_SETLEASE, F_RDLCK));
    AS(USER) { show(fcntl(open("f", O_RDONLY), F_SETLEASE, F_RDLCK)); }
}
BEHAVIOUR("a lease is broken by an open for writing, and its holder gets SIGIO") {
    make("f", "");
    int fd = open("f", O_RDONLY);
    handle(SIGIO, 0);
    show(fcntl(fd, F_SETLEASE, F_RDLCK));
    show(open("f", O_WRONLY | O_NONBLOCK));
#ifdef DEATHS
    /* The successor of a pm that died over the signal sends it after the call. */
    for (int i = 0; i < 1000 && !handled; i++)
        usleep(1000);
#endif
    note("signals %d", handled);
    show(fcntl(fd, F_GETLEASE));
    show(fcntl(fd, F_SETLEASE, F_UNLCK));
    show(open("f", O_WRONLY | O_NONBLOCK));
}
BEHAVIOUR("F_SETOWN and F_GETOWN: processes and groups") {
    int p[2];
    pipe(p);
    show(fcntl(p[0], F_GETOWN));
    show(fcntl(p[0], F_SETOWN, getpid()));
    note("%d", fcntl(p[0], F_GETOWN) == getpid());
    show(fcntl(p[0], F_SETOWN, -getpgrp()));
    note("%d", fcntl(p[0], F_GETOWN) == -getpgrp());
    show(fcntl(p[0], F_SETOWN, 0x3ffffff));
}
BEHAVIOUR("F_SETSIG takes signals alone") {
    int p[2];
    pipe(p);
    show(fcntl(p[0], F_SETSIG, SIGUSR1));
    show(fcntl(p[0], F_GETSIG));
    show(fcntl(p[0], F_SETSIG, 65));
    show(fcntl(p[0], F_SETSIG, -1));
    show(fcntl(p[0], F_SETSIG, 0));
}
