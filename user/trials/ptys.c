/* Tries pseudo-terminals, and prints what it sees: the same as on Linux. With an argument, a number, a program behind one answers that many
   lines and a flood of bytes goes through another, both of which are compared: it prints "passed", whatever is killed. The file is
   long because each group of calls is tried at both sides. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static void show(const char *what, long result)
{
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, result);
}

static void show_text(const char *what, const char *text, long bytes)
{
    if (bytes < 0)
        return show(what, bytes);
    printf("%s: \"", what);
    for (long i = 0; i < bytes; i++)
        if (text[i] >= ' ' && text[i] <= '~')
            putchar(text[i]);
        else
            printf("\\%03o", text[i] & 0xff);
    printf("\"\n");
}

/* Reads what is there, without waiting. */
static void take(const char *what, int fd)
{
    char text[5000];
    struct pollfd asked = {fd, POLLIN, 0};
    int flags = fcntl(fd, F_GETFL);
    poll(&asked, 1, 200);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    show_text(what, text, read(fd, text, sizeof text));
    fcntl(fd, F_SETFL, flags);
}

static void put(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) != (long)strlen(text))
        show("write", -1);
}

static void ready(const char *what, int fd)
{
    struct pollfd asked = {fd, POLLIN | POLLOUT | POLLPRI, 0};
    poll(&asked, 1, 0);
    printf("%s:%s%s%s%s%s\n", what, asked.revents & POLLIN ? " in" : "", asked.revents & POLLOUT ? " out" : "",
           asked.revents & POLLPRI ? " pri" : "", asked.revents & POLLERR ? " err" : "",
           asked.revents & POLLHUP ? " hup" : "");
}

static int slave_of(int master)
{
    unlockpt(master);
    return open(ptsname(master), O_RDWR | O_NOCTTY);
}

static void set_local(int fd, tcflag_t off, tcflag_t on)
{
    struct termios settings;
    tcgetattr(fd, &settings);
    settings.c_lflag = (settings.c_lflag & ~off) | on;
    tcsetattr(fd, TCSANOW, &settings);
}

static void make_raw(int fd)
{
    struct termios settings;
    tcgetattr(fd, &settings);
    cfmakeraw(&settings);
    tcsetattr(fd, TCSANOW, &settings);
}

static void names(void)
{
    struct stat status, other;
    int number = -1, lock = -1;
    char text[100];
    puts("names");
    int master = posix_openpt(O_RDWR | O_NOCTTY), second = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    show("master", master < 0 ? -1 : 0);
    ioctl(master, TIOCGPTN, &number);
    sprintf(text, "/dev/pts/%d", number);
    show("path", strcmp(text, ptsname(master)));
    show("another", strcmp(ptsname(second), text) != 0);
    stat("/dev/ptmx", &status);
    printf("ptmx: %d:%d %o\n", major(status.st_rdev), minor(status.st_rdev), status.st_mode);
    show("node", stat(text, &status));
    printf("node: %d %d, owner %d\n", major(status.st_rdev), (int)minor(status.st_rdev) == number, (int)status.st_uid);
    show("grantpt", grantpt(master));
    ioctl(master, TIOCGPTLCK, &lock);
    show("locked", lock);
    show("open locked", open(text, O_RDWR | O_NOCTTY));
    show("peer locked", ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY));
    show("unlockpt", unlockpt(master));
    ioctl(master, TIOCGPTLCK, &lock);
    show("locked", lock);
    int slave = open(text, O_RDWR | O_NOCTTY);
    show("open", slave < 0 ? -1 : 0);
    show("ttyname", strcmp(ttyname(slave), text));
    show("isatty", isatty(slave));
    show("master isatty", isatty(master));
    fstat(slave, &other);
    show("same node", other.st_ino == status.st_ino && other.st_dev == status.st_dev && other.st_rdev == status.st_rdev);
    fstat(master, &other);
    printf("master: %d:%d\n", major(other.st_rdev), minor(other.st_rdev));
    int peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    show("peer", peer < 0 ? -1 : strcmp(ttyname(peer), text));
    show("peer closes at exec", fcntl(peer, F_GETFD));
    show("chmod", chmod(text, 0600));
    show("chown", chown(text, 7, 8));
    stat(text, &status);
    printf("changed: %o %d %d\n", status.st_mode, (int)status.st_uid, (int)status.st_gid);
    show("slave's number", ioctl(slave, TIOCGPTN, &number));
    show("slave's lock", ioctl(slave, TIOCSPTLCK, &lock));
    show("slave's peer", ioctl(slave, TIOCGPTPEER, O_RDWR));
    show("slave's packets", ioctl(slave, TIOCPKT, &lock));
    show("no such", open("/dev/pts/4095", O_RDWR));
    show("not a number", open("/dev/pts/00", O_RDWR));
    show("make", open("/dev/pts/x", O_RDWR | O_CREAT, 0600) < 0);
    close(peer);
    close(slave);
    close(master);
    show("gone", stat(text, &status));
    close(second);
}

static void settings(void)
{
    struct termios old, new;
    struct winsize size = {1, 2, 3, 4};
    puts("settings");
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave = slave_of(master);
    tcgetattr(slave, &old);
    printf("initial: %o %o %o %o\n", old.c_iflag, old.c_oflag, old.c_cflag, old.c_lflag);
    for (int i = 0; i < 17; i++)
        printf("%d ", old.c_cc[i]);
    puts("");
    tcgetattr(master, &new);
    show("the master's are the slave's", memcmp(&old, &new, 17 + 17) == 0);
    new.c_cflag = (new.c_cflag & ~CSIZE) | CS5 | PARENB;
    new.c_lflag &= ~ECHO;
    show("set at the master", tcsetattr(master, TCSADRAIN, &new));
    tcgetattr(slave, &new);
    printf("now: %o %o\n", new.c_cflag, new.c_lflag);
    ioctl(slave, TIOCGWINSZ, &size);
    printf("size: %d %d %d %d\n", size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel);
    size = (struct winsize){50, 132, 5, 6};
    show("set size", ioctl(master, TIOCSWINSZ, &size));
    memset(&size, 0, sizeof size);
    ioctl(slave, TIOCGWINSZ, &size);
    printf("size: %d %d %d %d\n", size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel);
    show("drain", tcdrain(slave));
    show("break", tcsendbreak(slave, 0));
    show("modem", ioctl(slave, TIOCMGET, &size));
    show("bad memory", ioctl(slave, TCGETS, (void *)8));
    show("session", ioctl(master, TIOCGSID, &size));
    show("no ioctl", ioctl(slave, 0x54ff, 0));
    show("seek", lseek(slave, 0, SEEK_SET));
    close(slave);
    close(master);
}

static void lines(void)
{
    char text[5000];
    int count;
    puts("lines");
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave = slave_of(master);
    put(slave, "one\ntwo\t|\n");
    take("output", master);
    put(master, "hello\r");
    take("echo", master);
    take("line", slave);
    put(master, "ab\177c\025x\027new \tword\027\n");
    take("edited echo", master);
    take("edited", slave);
    put(master, "no newline\004");
    take("ended", slave);
    put(master, "\004");
    take("end of file", slave);
    put(master, "\026\003\026\004\n");
    take("literal", slave);
    take("echo", master);
    put(master, "first\nsecond\n");
    poll(&(struct pollfd){slave, POLLIN, 0}, 1, 1000);
    ioctl(slave, FIONREAD, &count);
    show("can be read", count);
    show_text("part", text, read(slave, text, 3));
    show_text("rest", text, read(slave, text, 100));
    show_text("next", text, read(slave, text, 100));
    take("nothing", slave);
    take("echoes", master);
    set_local(slave, ECHO, 0);
    memset(text, 'x', sizeof text);
    text[4200] = '\n';
    show("long line", write(master, text, 4201));
    show("its length", read(slave, text, sizeof text));
    put(master, "pending");
    ready("a line without end", slave);
    set_local(slave, ICANON, 0);
    ready("not canonical", slave);
    take("pending", slave);
    set_local(slave, 0, ICANON | ECHO);
    put(master, "gone\n");
    poll(&(struct pollfd){slave, POLLIN, 0}, 1, 1000);
    show("flush", tcflush(slave, TCIFLUSH));
    take("flushed", slave);
    take("its echo", master);
    put(slave, "gone");
    ready("written", (poll(&(struct pollfd){master, POLLIN, 0}, 1, 1000), master));
    ioctl(master, FIONREAD, &count);
    show("to be read by the master", count);
    ioctl(slave, TIOCOUTQ, &count);
    show("still to be sent", count);
    put(master, "\303\244\177\n");
    take("bytes of a character", slave);
    close(slave);
    close(master);
}

static void raw(void)
{
    char text[100];
    struct termios settings;
    puts("raw");
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave = slave_of(master);
    make_raw(slave);
    put(master, "a\r\n\003\004");
    take("input", slave);
    put(slave, "b\n");
    take("output", master);
    take("no echo", master);
    tcgetattr(slave, &settings);
    settings.c_cc[VMIN] = 0;
    settings.c_cc[VTIME] = 1;
    tcsetattr(slave, TCSANOW, &settings);
    show("time", read(slave, text, 10));
    settings.c_cc[VTIME] = 0;
    tcsetattr(slave, TCSANOW, &settings);
    show("neither", read(slave, text, 10));
    settings.c_cc[VMIN] = 4;
    tcsetattr(slave, TCSANOW, &settings);
    pid_t child = fork();
    if (child == 0) {
        usleep(50000);
        put(master, "12");
        usleep(50000);
        put(master, "3456");
        _exit(0);
    }
    show_text("at least four", text, read(slave, text, 10));
    waitpid(child, NULL, 0);
    settings.c_cc[VMIN] = 1;
    settings.c_iflag |= IXON;
    tcsetattr(slave, TCSANOW, &settings);
    put(slave, "before");
    put(master, "\023");
    ready("stopped", slave);
    fcntl(slave, F_SETFL, O_RDWR | O_NONBLOCK);
    show("write", write(slave, "x", 1));
    take("written before", master);
    put(master, "\021");
    ready("started", slave);
    put(slave, "after");
    take("then", master);
    close(slave);
    close(master);
}

static void ends(void)
{
    char text[100];
    struct epoll_event event = {.events = EPOLLIN};
    puts("ends");
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK);
    ready("never opened", master);
    show("read", read(master, text, 10));
    int slave = slave_of(master), epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, master, &event);
    show("nothing", epoll_wait(epoll, &event, 1, 0));
    put(slave, "last words");
    show("something", epoll_wait(epoll, &event, 1, 1000));
    ready("master", master);
    close(slave);
    ready("slave closed", master);
    show_text("read", text, read(master, text, 100));
    show("read again", read(master, text, 100));
    ready("slave closed, all read", master);
    show("hang-up by epoll", epoll_wait(epoll, &event, 1, 1000) == 1 ? event.events : -1);
    slave = slave_of(master);
    ready("opened again", master);
    show("read", read(master, text, 100));
    put(slave, "back");
    take("back", master);
    close(epoll);
    close(master);
    ready("master closed", slave);
    show("read", read(slave, text, 100));
    show("write", write(slave, "x", 1));
    show("settings", tcgetattr(slave, &(struct termios){0}));
    show("group", ioctl(slave, TIOCSPGRP, text));
    close(slave);
}

static void packets(void)
{
    int on = 1, off = 0, number = -1;
    puts("packets");
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave = slave_of(master);
    show("on", ioctl(master, TIOCPKT, &on));
    ioctl(master, TIOCGPKT, &number);
    show("is on", number);
    put(slave, "data\n");
    take("data", master);
    tcflush(slave, TCIFLUSH);
    ready("flushed", master);
    take("flush", master);
    tcflow(slave, TCOOFF);
    take("stop", master);
    tcflow(slave, TCOON);
    take("start", master);
    struct termios settings;
    tcgetattr(slave, &settings);
    settings.c_iflag &= ~IXON;
    tcsetattr(slave, TCSANOW, &settings);
    take("no flow control", master);
    settings.c_iflag |= IXON;
    tcsetattr(slave, TCSANOW, &settings);
    put(slave, "x");
    take("flow control", master);
    take("data", master);
    ready("nothing", master);
    ioctl(master, TIOCPKT, &off);
    put(slave, "plain");
    take("off", master);
    close(slave);
    close(master);
}

static volatile sig_atomic_t seen;

static void on_signal(int number)
{
    seen = number;
}

/* In a session on the slave: prints through a pipe what it sees. */
static void in_session(const char *path, int report)
{
    char text[100];
    struct sigaction action = {.sa_handler = on_signal};
    int signals[] = {SIGWINCH, SIGINT, SIGTSTP, SIGQUIT};
    for (int i = 0; i < 4; i++)
        sigaction(signals[i], &action, NULL);
    signal(SIGHUP, SIG_IGN);
    setsid();
    dup2(report, 1);
    show("no terminal", open("/dev/tty", O_RDWR));
    int without = open(path, O_RDWR | O_NOCTTY);
    show("O_NOCTTY", open("/dev/tty", O_RDWR));
    int slave = open(path, O_RDWR), tty = open("/dev/tty", O_RDWR);
    show("controlling", tty < 0 ? -1 : 0);
    show("session", tcgetsid(tty) == getpid());
    show("group", tcgetpgrp(slave) == getpid());
    show("again", ioctl(slave, TIOCSCTTY, 0));
    put(tty, "hello\n");
    fflush(stdout);
    for (int i = 0; i < 4; i++) {
        while (!seen)
            read(slave, text, sizeof text);
        show("signal", seen);
        fflush(stdout);
        seen = 0;
        put(slave, "next\n");
    }
    show_text("line", text, read(tty, text, sizeof text));
    int other = posix_openpt(O_RDWR | O_NOCTTY), second = slave_of(other);
    show("second terminal", ioctl(second, TIOCSCTTY, 0));
    close(second);
    second = open(ptsname(other), O_RDWR);
    show("not by opening", tcgetsid(second));
    show("give up", ioctl(slave, TIOCNOTTY));
    show("without", open("/dev/tty", O_RDWR));
    show("take", ioctl(slave, TIOCSCTTY, 0));
    fflush(stdout);
    close(without);
    close(tty);
    signal(SIGHUP, on_signal);
    int last = open("/dev/tty", O_RDWR);
    put(last, "ready\n");
    while (seen != SIGHUP)
        usleep(1000);
    show("hung up", seen);
    show("write", write(last, "x", 1));
    show("read", read(last, text, 10));
    show("no terminal", open("/dev/tty", O_RDWR));
    fflush(stdout);
    _exit(7);
}

static void expect(int master, const char *word)
{
    char text[1000];
    size_t bytes = 0;
    long more;
    memset(text, 0, sizeof text);
    while (!strstr(text, word) && bytes < sizeof text - 1 && (more = read(master, text + bytes, sizeof text - 1 - bytes)) > 0)
        bytes += more;
    if (!strstr(text, word))
        show_text(word, text, bytes);
}

static void sessions(void)
{
    int report[2], status = 0;
    struct winsize size = {30, 90, 0, 0};
    char text[4000];
    long bytes = 0, more;
    puts("sessions");
    fflush(stdout);
    pipe(report);
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    unlockpt(master);
    pid_t child = fork();
    if (child == 0) {
        char path[30];
        ptsname_r(master, path, sizeof path);
        close(master);
        in_session(path, report[1]);
    }
    close(report[1]);
    expect(master, "hello\r\n");
    ioctl(master, TIOCSWINSZ, &size);
    expect(master, "next\r\n");
    put(master, "\003");
    expect(master, "next\r\n");
    put(master, "\032");
    expect(master, "next\r\n");
    show("signal by ioctl", ioctl(master, TIOCSIG, SIGQUIT));
    show("no such signal", ioctl(master, TIOCSIG, SIGKILL));
    expect(master, "next\r\n");
    show("group at the master", tcgetpgrp(master) == child);
    put(master, "typed\n");
    expect(master, "ready\r\n");
    close(master);
    while ((more = read(report[0], text + bytes, sizeof text - bytes)) > 0)
        bytes += more;
    fwrite(text, 1, bytes, stdout);
    waitpid(child, &status, 0);
    show("status", WEXITSTATUS(status));
}

static void many(void)
{
    enum { MANY = 300 };
    int masters[MANY], count = 0, highest = 0, number;
    puts("many");
    while (count < MANY && (masters[count] = posix_openpt(O_RDWR | O_NOCTTY)) >= 0) {
        ioctl(masters[count++], TIOCGPTN, &number);
        highest = number > highest ? number : highest;
    }
    show("made", count);
    struct stat status;
    char path[30];
    sprintf(path, "/dev/pts/%d", highest);
    stat(path, &status);
    show("device", status.st_rdev == makedev(136, highest));
    int slave = slave_of(masters[count - 1]);
    put(slave, "last");
    take("last", masters[count - 1]);
    close(slave);
    while (count > 0)
        close(masters[--count]);
}

/* Reads a whole line. */
static long read_line(int fd, char *line)
{
    long bytes = 0;
    while (read(fd, line + bytes, 1) == 1)
        if (line[bytes++] == '\n')
            break;
    line[bytes] = 0;
    return bytes;
}

static void fail(const char *what)
{
    printf("%s\n", what);
    exit(1);
}

/* A program on a slave answers lines, and a flood of bytes goes through another pair in both directions. */
static void pass(int rounds)
{
    int master, flood;
    char line[100], expected[100];
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child == 0) {
        while (fgets(line, sizeof line, stdin)) {
            printf("got %s", line);
            fflush(stdout);
        }
        _exit(0);
    }
    pid_t source = forkpty(&flood, NULL, NULL, NULL);
    if (source == 0) {
        make_raw(0);
        write(1, "!", 1);
        for (int i = 0; i < rounds * 100; i++) {
            unsigned char byte;
            if (read(0, &byte, 1) != 1 || byte != (unsigned char)(i * 7))
                _exit(3);
            byte = i * 11;
            if (write(1, &byte, 1) != 1)
                _exit(4);
        }
        _exit(0);
    }
    char first;
    if (read(flood, &first, 1) != 1 || first != '!')
        fail("the other side does not begin");
    unsigned written = 0, got = 0;
    for (int i = 0; i < rounds; i++) {
        sprintf(expected, "line %d", i);
        dprintf(master, "%s\n", expected);
        strcat(expected, "\r\n");
        read_line(master, line);
        if (strcmp(line, expected))
            fail("the echo differs");
        sprintf(expected, "got line %d\r\n", i);
        read_line(master, line);
        if (strcmp(line, expected))
            fail("the answer differs");
        unsigned char bytes[100];
        for (int j = 0; j < 100; j++)
            bytes[j] = written++ * 7;
        if (write(flood, bytes, 100) != 100)
            fail("the flood stops");
        for (int j = 0; j < 100; j++, got++)
            if (read(flood, bytes, 1) != 1 || bytes[0] != (unsigned char)(got * 11))
                fail("a byte of the flood differs");
    }
    int status;
    if (waitpid(source, &status, 0) != source || status)
        fail("the other side of the flood has failed");
    if (read(flood, line, 1) != -1 || errno != EIO)
        fail("no end of the flood");
    close(master);
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGHUP)
        fail("no hang-up");
    puts("passed");
}

int main(int count, char **arguments)
{
    signal(SIGALRM, SIG_DFL);
    if (count > 1) {
        pass(atoi(arguments[1]));
        return 0;
    }
    alarm(60);
    void (*all[])(void) = {names, settings, lines, raw, ends, packets, sessions, many};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        all[i]();
        fflush(stdout);
    }
    return 0;
}
