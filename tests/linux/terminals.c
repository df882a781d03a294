/* Pseudo-terminals: both sides, lines, modes, sizes, hang-up, edges, and who is in the background. It is long because each rule is tried by itself. */
#include "behaviour.h"
#include "ready.h"
#include <termios.h>

static int master, slave;
static char path[32];
static void new_terminal(void) {
    int number;
    master = must(open("/dev/ptmx", O_RDWR | O_NOCTTY));
    must(ioctl(master, TIOCSPTLCK, &(int){0}));
    must(ioctl(master, TIOCGPTN, &number));
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    slave = must(open(path, O_RDWR | O_NOCTTY));
}
static void change(tcflag_t input, tcflag_t output, tcflag_t local) {
    struct termios modes;
    must(tcgetattr(slave, &modes));
    modes.c_iflag &= ~input;
    modes.c_oflag &= ~output;
    modes.c_lflag &= ~local;
    must(tcsetattr(slave, TCSANOW, &modes));
}
static short ready(int fd) {
    struct pollfd asked = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI};
    poll(&asked, 1, 0);
    return asked.revents;
}

/* Reads, and shows the bytes by their numbers. */
static void show_codes(int fd, size_t length) {
    unsigned char bytes[8];
    ssize_t count = read(fd, bytes, length);
    show(count);
    for (ssize_t i = 0; i < count; i++)
        note("%02x", bytes[i]);
}

/* What the other side has written is here a moment later. */
static short await(int fd, short events) {
    struct pollfd asked = {.fd = fd, .events = events};
    poll(&asked, 1, 5000);
    return asked.revents & events;
}

BEHAVIOUR("a slave that is locked, a slave that is not there") {
    int number, fd = must(open("/dev/ptmx", O_RDWR | O_NOCTTY));
    must(ioctl(fd, TIOCGPTN, &number));
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    show(open(path, O_RDWR | O_NOCTTY));
    show(open("/dev/pts/9999", O_RDWR | O_NOCTTY));
}
BEHAVIOUR("ioctls of the master on a slave, of terminals on a file") {
    new_terminal();
    make("f", "");
    int number, fd = open("f", O_RDONLY);
    show(ioctl(slave, TIOCGPTN, &number));
    show(ioctl(fd, TCGETS, bad()));
    show(ioctl(slave, TCGETS, bad()));
    show(ioctl(slave, 0x54ff, 0));
}
BEHAVIOUR("TIOCGWINSZ and TIOCSWINSZ, also with bad memory") {
    struct winsize size = {24, 80, 0, 0}, seen = {0};
    new_terminal();
    show(ioctl(slave, TIOCGWINSZ, &seen));
    note("%d %d", seen.ws_row, seen.ws_col);
    show(ioctl(master, TIOCSWINSZ, &size));
    show(ioctl(slave, TIOCGWINSZ, &seen));
    note("%d %d", seen.ws_row, seen.ws_col);
    show(ioctl(slave, TIOCSWINSZ, bad()));
}
BEHAVIOUR("a line comes when it is whole, and is echoed") {
    new_terminal();
    write(master, "li", 2);
    note("%x", ready(slave) & POLLIN);
    write(master, "ne\n", 3);
    note("%x", await(slave, POLLIN));
    show_read(slave, 100);
    show_read(master, 100);
}
BEHAVIOUR("a read takes one line, a short read a part of it") {
    new_terminal();
    write(master, "one\ntwo\n", 8);
    await(slave, POLLIN);
    show_read(slave, 2);
    show_read(slave, 100);
    show_read(slave, 100);
}
BEHAVIOUR("erase, kill, end of file in lines") {
    new_terminal();
    write(master, "ab\177c\n", 5);
    show_read(slave, 100);
    write(master, "ab\025cd\n", 6);
    show_read(slave, 100);
    write(master, "ef\004", 3);
    show_read(slave, 100);
    write(master, "\004", 1);
    show_read(slave, 100);
}
BEHAVIOUR("without ICANON bytes come as they are written") {
    new_terminal();
    change(ICRNL, 0, ICANON | ECHO);
    write(master, "a\r\177", 3);
    for (int i = 0; i < 3; i++)
        show_codes(slave, 1);
}
BEHAVIOUR("output of a new line gets a return, without OPOST not") {
    new_terminal();
    write(slave, "a\n", 2);
    show_codes(master, 8);
    change(0, OPOST, 0);
    write(slave, "a\n", 2);
    show_codes(master, 8);
}
BEHAVIOUR("O_NONBLOCK on both sides") {
    new_terminal();
    fcntl(slave, F_SETFL, O_RDWR | O_NONBLOCK);
    fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK);
    show_read(slave, 1);
    show_read(master, 1);
}
BEHAVIOUR("TCFLSH and FIONREAD") {
    int bytes;
    new_terminal();
    write(master, "line\n", 5);
    await(slave, POLLIN);
    ioctl(slave, FIONREAD, &bytes);
    note("%d", bytes);
    show(ioctl(slave, TCFLSH, TCIFLUSH));
    ioctl(slave, FIONREAD, &bytes);
    note("%d", bytes);
    show(ioctl(slave, TCFLSH, 9));
}
BEHAVIOUR("the master reads EIO when the slave is closed, what was written comes before") {
    new_terminal();
    change(0, OPOST, 0);
    write(slave, "last", 4);
    close(slave);
    show_read(master, 100);
    show_read(master, 100);
    note("%x", ready(master) & POLLHUP);
    slave = must(open(path, O_RDWR | O_NOCTTY));
    note("%x", ready(master) & POLLHUP);
}
BEHAVIOUR("the slave is hung up when the master is closed") {
    new_terminal();
    close(master);
    show_read(slave, 1);
    show(write(slave, "x", 1));
    note("%x", ready(slave) & POLLHUP);
    show(open(path, O_RDWR | O_NOCTTY));
}
BEHAVIOUR("packet mode: data, a flush") {
    new_terminal();
    change(0, OPOST, 0);
    show(ioctl(master, TIOCPKT, &(int){1}));
    write(slave, "text", 4);
    show_read(master, 100);
    ioctl(slave, TCFLSH, TCIFLUSH);
    note("%x", await(master, POLLPRI));
    char kind = 0;
    show(read(master, &kind, 1));
    note("%d", kind);
}
/* Shows all events that an epoll has now, or when its time is over. */
static void show_events(int epoll, int timeout) {
    struct epoll_event event = {0};
    long count = must(epoll_wait(epoll, &event, 1, timeout));
    note("%x", count == 0 ? 0 : event.events);
}

BEHAVIOUR("EPOLLET of a slave: each line is an edge, a part of one is none") {
    new_terminal();
    int epoll = epoll_of(slave, EPOLLIN | EPOLLET);
    write(master, "on", 2);
    show_epoll(epoll, 0);
    write(master, "e\n", 2);
    show_epoll(epoll, 5000);
    show_epoll(epoll, 0);
    write(master, "two\n", 4);
    show_epoll(epoll, 5000);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET of a slave: without ICANON each piece is an edge") {
    new_terminal();
    change(0, 0, ICANON | ECHO);
    int epoll = epoll_of(slave, EPOLLIN | EPOLLET);
    for (int i = 0; i < 3; i++) {
        write(master, "xy", 2);
        show_epoll(epoll, 5000);
        show_epoll(epoll, 0);
    }
}
BEHAVIOUR("EPOLLET of a slave: a read is no edge, whatever it leaves") {
    new_terminal();
    write(master, "one\ntwo\n", 8);
    await(slave, POLLIN);
    int epoll = epoll_of(slave, EPOLLIN | EPOLLET);
    show_epoll(epoll, 5000);
    show_read(slave, 100);
    show_epoll(epoll, 0);
    show_read(slave, 2);
    show_epoll(epoll, 0);
    show_read(slave, 100);
    write(master, "three\n", 6);
    show_epoll(epoll, 5000);
}
BEHAVIOUR("EPOLLET of a slave: end of file, and input after it was flushed") {
    new_terminal();
    int epoll = epoll_of(slave, EPOLLIN | EPOLLET);
    write(master, "\004", 1);
    show_epoll(epoll, 5000);
    show_epoll(epoll, 0);
    ioctl(slave, TCFLSH, TCIFLUSH);
    show_epoll(epoll, 0);
    write(master, "new\n", 4);
    show_epoll(epoll, 5000);
    show_read(slave, 100);
}
BEHAVIOUR("EPOLLET of a slave: an edge of input tells of room, too") {
    new_terminal();
    change(0, 0, ECHO);
    int epoll = epoll_of(slave, EPOLLIN | EPOLLOUT | EPOLLET);
    show_epoll(epoll, 0);
    show_epoll(epoll, 0);
    write(master, "line\n", 5);
    show_epoll(epoll, 5000);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET of a slave: a write, and a read of the master, are edges for room") {
    new_terminal();
    int epoll = epoll_of(slave, EPOLLIN | EPOLLOUT | EPOLLET);
    show_epoll(epoll, 0);
    write(slave, "text", 4);
    show_epoll(epoll, 0);
    await(master, POLLIN);
    show_read(master, 4);
    show_epoll(epoll, 5000);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET of a master: each output is an edge, a read none") {
    new_terminal();
    int epoll = epoll_of(master, EPOLLIN | EPOLLET);
    write(slave, "one", 3);
    show_epoll(epoll, 5000);
    show_epoll(epoll, 0);
    write(slave, "two", 3);
    show_epoll(epoll, 5000);
    show_read(master, 2);
    show_epoll(epoll, 0);
    write(slave, "three", 5);
    show_epoll(epoll, 5000);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET of a master: a write, and a read of the slave, are edges for room") {
    new_terminal();
    change(0, 0, ECHO);
    int epoll = epoll_of(master, EPOLLOUT | EPOLLET);
    show_epoll(epoll, 0);
    write(master, "one\ntwo\n", 8);
    await(slave, POLLIN);
    show_epoll(epoll, 0);
    show_read(slave, 100);
    show_epoll(epoll, 5000);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET: the ends of both sides are edges") {
    new_terminal();
    int ours = epoll_of(master, EPOLLIN | EPOLLET);
    close(slave);
    show_events(ours, 5000);
    show_events(ours, 0);
    slave = must(open(path, O_RDWR | O_NOCTTY));
    int others = epoll_of(slave, EPOLLIN | EPOLLET);
    show_events(others, 0);
    close(master);
    show_events(others, 5000);
    show_events(others, 0);
}
BEHAVIOUR("EPOLLET of a slave: an echo is no edge, settings are one") {
    new_terminal();
    int epoll = epoll_of(slave, EPOLLIN | EPOLLOUT | EPOLLET);
    show_epoll(epoll, 0);
    write(master, "x", 1);
    await(master, POLLIN);
    show_epoll(epoll, 0);
    change(0, 0, ECHO);
    show_epoll(epoll, 0);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET: lines that come while nobody looks are one edge") {
    new_terminal();
    int epoll = epoll_of(slave, EPOLLIN | EPOLLET);
    show_epoll(epoll, 1);
    write(master, "one\n", 4);
    await(slave, POLLIN);
    write(master, "two\n", 4);
    int unread = 0;
    while (unread < 8)
        must(ioctl(slave, FIONREAD, &unread));
    show_epoll(epoll, 5000);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET: packets of the master's other kind are edges") {
    new_terminal();
    must(ioctl(master, TIOCPKT, &(int){1}));
    int epoll = epoll_of(master, EPOLLIN | EPOLLPRI | EPOLLET);
    ioctl(slave, TCFLSH, TCIFLUSH);
    show_events(epoll, 5000);
    show_events(epoll, 0);
    ioctl(slave, TCFLSH, TCIFLUSH);
    show_events(epoll, 5000);
}
BEHAVIOUR("EPOLLET: of two epolls and two descriptors each has each edge") {
    new_terminal();
    int copy = must(open(path, O_RDWR | O_NOCTTY));
    int epolls[] = {epoll_of(slave, EPOLLIN | EPOLLET), epoll_of(slave, EPOLLIN | EPOLLET), epoll_of(copy, EPOLLIN | EPOLLET)};
    for (int line = 0; line < 2; line++) {
        write(master, "x\n", 2);
        for (int i = 0; i < 3; i++) {
            show_epoll(epolls[i], 5000);
            show_epoll(epolls[i], 0);
        }
    }
}
BEHAVIOUR("EPOLLET with EPOLLONESHOT: one edge until it is changed, which tells of what is there") {
    new_terminal();
    int epoll = epoll_of(slave, EPOLLIN | EPOLLET | EPOLLONESHOT);
    write(master, "one\n", 4);
    show_epoll(epoll, 5000);
    write(master, "two\n", 4);
    show_epoll(epoll, 10);
    struct epoll_event again = {.events = EPOLLIN | EPOLLET | EPOLLONESHOT};
    must(epoll_ctl(epoll, EPOLL_CTL_MOD, slave, &again));
    show_epoll(epoll, 0);
    show_epoll(epoll, 0);
}
BEHAVIOUR("EPOLLET: who waits is woken by a line that comes behind another") {
    new_terminal();
    struct gate first = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        int epoll = epoll_of(slave, EPOLLIN | EPOLLET);
        show_epoll(epoll, 5000);
        open_gate(first);
        show_epoll(epoll, 5000);
        show_read(slave, 100);
        _exit(0);
    }
    write(master, "one\n", 4);
    pass_gate(first);
    wait_until_asleep(child);
    write(master, "two\n", 4);
    wait_for(child);
}
BEHAVIOUR("a session takes a terminal, Ctrl-C reaches its group") {
    new_terminal();
    struct gate ready_gate = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        close(master);
        must(setsid());
        show(ioctl(slave, TIOCSCTTY, 0));
        show(tcgetpgrp(slave) == getpid());
        open_gate(ready_gate);
        for (;;)
            pause();
    }
    pass_gate(ready_gate);
    write(master, "\003", 1);
    wait_for(child);
}
BEHAVIOUR("a session without its terminal's master gets SIGHUP") {
    new_terminal();
    struct gate ready_gate = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        close(master);
        must(setsid());
        must(ioctl(slave, TIOCSCTTY, 0));
        open_gate(ready_gate);
        for (;;)
            pause();
    }
    pass_gate(ready_gate);
    close(slave);
    close(master);
    wait_for(child);
}

/* Calls of processes in the background: each acts in a group of its own, in a session of its own, whose terminal is `slave`. */

static pid_t leader;
static long set_at(int how) {
    struct termios modes;
    must(tcgetattr(slave, &modes));
    modes.c_lflag ^= ECHO;
    return tcsetattr(slave, how, &modes);
}
static long set_now(void) { return set_at(TCSANOW); }
static long set_drained(void) { return set_at(TCSADRAIN); }
static long set_flushed(void) { return set_at(TCSAFLUSH); }
static long set_from_bad_memory(void) { return ioctl(slave, TCSETS, bad()); }
static long send_break(void) { return ioctl(slave, TCSBRK, 0); }
static long send_long_break(void) { return ioctl(slave, TCSBRKP, 1); }
static long begin_break(void) { return ioctl(slave, TIOCSBRK, 0); }
static long end_break(void) { return ioctl(slave, TIOCCBRK, 0); }
static long drain(void) { return ioctl(slave, TCSBRK, 1); }
static long stop_output(void) { return ioctl(slave, TCXONC, TCOON); }
static long flush_queues(void) { return ioctl(slave, TCFLSH, TCIOFLUSH); }
static long take_foreground(void) { return tcsetpgrp(slave, getpgrp()); }
static long set_size(void) { return ioctl(slave, TIOCSWINSZ, &(struct winsize){1, 2, 3, 4}); }
static long write_line(void) { return write(slave, "x", 1); }
static long read_line(void) {
    char byte;
    return read(slave, &byte, 1);
}

/* Runs `body` as the leader of a session that has the terminal. */
static void in_session(void (*body)(void)) {
    new_terminal();
    leader = must(fork());
    if (leader == 0) {
        leader = must(setsid());
        must(ioctl(slave, TIOCSCTTY, 0));
        signal(SIGTTOU, SIG_IGN);
        body();
        _exit(0);
    }
    waitpid(leader, NULL, 0);
}
/* Shows what becomes of `act`: how it stops, and when it was brought to the foreground then, its end and its result. */
static void act_behind(long (*act)(void), void (*before)(void)) {
    pid_t child = must(fork());
    int status;
    if (child == 0) {
        setpgid(0, 0);
        signal(SIGTTOU, SIG_DFL);
        if (before)
            before();
        show(act());
        _exit(0);
    }
    setpgid(child, child);
    must(waitpid(child, &status, WUNTRACED));
    if (WIFSTOPPED(status)) {
        note("%s", WSTOPSIG(status) == SIGTTOU ? "SIGTTOU" : WSTOPSIG(status) == SIGTTIN ? "SIGTTIN" : "?");
        must(tcsetpgrp(slave, child));
        kill(child, SIGCONT);
        must(waitpid(child, &status, 0));
        must(tcsetpgrp(slave, leader));
    }
}
static void ignore_it(void) { signal(SIGTTOU, SIG_IGN); }
static void block_it(void) { block(SIGTTOU); }
static void handle_it(void) { handle(SIGTTOU, 0); }
static void act_as_handled(long (*const acts[])(void), void (*before)(void)) {
    for (int i = 0; acts[i]; i++) {
        act_behind(acts[i], before);
        if (tcgetpgrp(slave) != leader) {
            note("fg");
            tcsetpgrp(slave, leader);
        }
    }
}

static void changes_behind(void) {
    static long (*const acts[])(void) = {set_now, set_drained, set_flushed, set_from_bad_memory, NULL};
    act_as_handled(acts, NULL);
}
BEHAVIOUR("tcsetattr of a process in the background stops it") { in_session(changes_behind); }
static void commands_behind(void) {
    static long (*const acts[])(void) = {send_break, send_long_break, begin_break,     end_break, drain,
                                         stop_output, flush_queues,   take_foreground, NULL};
    act_as_handled(acts, NULL);
}
BEHAVIOUR("breaks, flow, flushes, tcsetpgrp of a process in the background stop it") { in_session(commands_behind); }
static void questions_behind(void) {
    int number;
    struct termios modes;
    struct winsize size;
    pid_t child = must(fork());
    if (child == 0) {
        setpgid(0, 0);
        signal(SIGTTOU, SIG_DFL);
        show(tcgetattr(slave, &modes));
        show(ioctl(slave, TIOCGWINSZ, &size));
        show(ioctl(slave, FIONREAD, &number));
        show(ioctl(slave, TIOCOUTQ, &number));
        note("%d", tcgetpgrp(slave) == leader);
        note("%d", tcgetsid(slave) == leader);
        show(set_size());
        _exit(0);
    }
    must(waitpid(child, &number, WUNTRACED));
    note("%d", WIFSTOPPED(number));
}
BEHAVIOUR("questions and the window's size from the background") { in_session(questions_behind); }
static long (*const several[])(void) = {set_now, set_flushed, drain, flush_queues, take_foreground, set_from_bad_memory, NULL};
static void ignoring(void) { act_as_handled(several, ignore_it); }
BEHAVIOUR("a process in the background that ignores SIGTTOU changes what it wants") { in_session(ignoring); }
static void blocking(void) { act_as_handled(several, block_it); }
BEHAVIOUR("a process in the background that blocks SIGTTOU changes what it wants") { in_session(blocking); }
static void handling(void) { act_as_handled(several, handle_it); }
BEHAVIOUR("a process in the background that handles SIGTTOU is interrupted") { in_session(handling); }

/* In a group that has lost its last tie to its session. */
static void orphaned(void) {
    struct gate done = new_gate();
    pid_t child = must(fork());
    if (child == 0) {
        setpgid(0, 0);
        signal(SIGTTOU, SIG_DFL);
        pid_t parent = getpid();
        if (fork() == 0) {
            while (getppid() == parent)
                sleep_ms(1);
            for (int i = 0; several[i]; i++)
                show(several[i]());
            show(read_line());
            open_gate(done);
        }
        _exit(0);
    }
    must(waitpid(child, NULL, 0));
    pass_gate(done);
}
BEHAVIOUR("a process in the background whose group is orphaned") { in_session(orphaned); }
static void writes_behind(void) {
    struct termios modes;
    must(tcgetattr(slave, &modes));
    modes.c_lflag |= TOSTOP;
    must(tcsetattr(slave, TCSANOW, &modes));
    act_behind(write_line, NULL);
    act_behind(write_line, ignore_it);
    act_behind(write_line, block_it);
    act_behind(write_line, handle_it);
    modes.c_lflag &= ~TOSTOP;
    must(tcsetattr(slave, TCSANOW, &modes));
    act_behind(write_line, NULL);
}
BEHAVIOUR("writes from the background with TOSTOP: stopped, ignored, blocked, handled, and without it") {
    in_session(writes_behind);
}
