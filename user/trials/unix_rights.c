/* Tries open files and ids that go with messages of sockets, and prints what it sees: the same as on Linux.
   It is long because every rule of control messages has its function. usage: unix_rights DIRECTORY
   With a second argument two processes pass descriptors to each other, and use each: it prints "passed", whatever is killed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 253, ROOM = 1400 };

static void show(const char *what, long result)
{
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, result);
}

static int last_count;
static int last[MOST];
static struct ucred last_sender;

static long send_control(int fd, const char *text, const void *control, size_t bytes, int flags)
{
    struct iovec piece = { (void *) text, strlen(text) };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = (void *) control, .msg_controllen = bytes };
    return sendmsg(fd, &message, flags | MSG_NOSIGNAL);
}

static size_t put(void *control, int type, const void *data, size_t bytes)
{
    struct cmsghdr head = { .cmsg_len = CMSG_LEN(bytes), .cmsg_level = SOL_SOCKET, .cmsg_type = type };
    memset(control, 0, CMSG_SPACE(bytes));
    memcpy(control, &head, sizeof head);
    memcpy(CMSG_DATA((struct cmsghdr *) control), data, bytes);
    return CMSG_SPACE(bytes);
}

static long send_files(int fd, const char *text, const int *files, int count)
{
    _Alignas(8) char control[ROOM];
    return send_control(fd, text, control, put(control, SCM_RIGHTS, files, count * sizeof *files), 0);
}

static long send_file(int fd, const char *text, int file)
{
    return send_files(fd, text, &file, 1);
}

static long send_ids(int fd, const char *text, struct ucred ids)
{
    _Alignas(8) char control[ROOM];
    return send_control(fd, text, control, put(control, SCM_CREDENTIALS, &ids, sizeof ids), 0);
}

/* Receives with so much room for control messages. Returns the flags, or -1. */
static long take(int fd, char *text, size_t bytes, size_t room, int flags, int *told)
{
    _Alignas(8) static char control[ROOM];
    struct iovec piece = { text, bytes };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room ? control : NULL, .msg_controllen = room };
    last_count = -1;
    last_sender = (struct ucred) { 0, 0, 0 };
    long taken = recvmsg(fd, &message, flags);
    if (taken < 0)
        return taken;
    *told = message.msg_flags;
    last_count = 0;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
        if (at->cmsg_type == SCM_RIGHTS) {
            last_count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(last, CMSG_DATA(at), last_count * sizeof(int));
        } else if (at->cmsg_type == SCM_CREDENTIALS && at->cmsg_len == CMSG_LEN(sizeof last_sender)) {
            memcpy(&last_sender, CMSG_DATA(at), sizeof last_sender);
            printf("  from %s %u %u\n", last_sender.pid == getpid() ? "itself" : last_sender.pid ? "another" : "nobody",
                   last_sender.uid, last_sender.gid);
        }
    }
    printf("  control bytes %zu\n", (size_t) message.msg_controllen);
    return taken;
}

static void drop(void)
{
    for (int at = 0; at < last_count; at++)
        close(last[at]);
    last_count = 0;
}

/* Receives and shows everything. */
static void receive(const char *what, int fd, size_t room, int flags)
{
    char text[100] = { 0 };
    int told = 0;
    long bytes = take(fd, text, sizeof text - 1, room, flags, &told);
    if (bytes < 0)
        show(what, -1);
    else
        printf("%s: %ld '%s' flags %x, %d files\n", what, bytes, text, told, last_count);
}

static int is_open(int reads)
{
    struct pollfd asked = { reads, POLLIN, 0 };
    poll(&asked, 1, 0);
    return !(asked.revents & POLLHUP);
}

static const char *name_of(int kind)
{
    return kind == SOCK_STREAM ? "stream" : kind == SOCK_DGRAM ? "datagrams" : "packets";
}

static void files(int kind)
{
    int pair[2], ends[2];
    char byte = 0;
    printf("files, %s\n", name_of(kind));
    socketpair(AF_UNIX, kind, 0, pair);
    pipe(ends);
    show("send", send_file(pair[0], "take", ends[1]));
    close(ends[1]);
    printf("open %d\n", is_open(ends[0]));
    receive("take", pair[1], ROOM, 0);
    show("write", write(last[0], "x", 1));
    show("read", read(ends[0], &byte, 1));
    int kept = last[0];
    int several[3] = { kept, ends[0], kept };
    show("three", send_files(pair[0], "three", several, 3));
    show("one", send_file(pair[0], "one", kept));
    show("plain", send(pair[0], "plain", 5, 0));
    close(kept);
    receive("look", pair[1], ROOM, MSG_PEEK);
    drop();
    receive("room for one", pair[1], CMSG_LEN(sizeof(int)), MSG_CMSG_CLOEXEC);
    printf("closed by exec %d\n", fcntl(last[0], F_GETFD));
    drop();
    printf("open %d\n", is_open(ends[0]));
    receive("no room", pair[1], 0, 0);
    printf("open %d\n", is_open(ends[0]));
    receive("plain", pair[1], ROOM, MSG_DONTWAIT);
    receive("nothing", pair[1], ROOM, MSG_DONTWAIT);
    send_file(pair[0], "short", ends[0]);
    receive("little room", pair[1], sizeof(struct cmsghdr), 0);
    send_file(pair[0], "read", ends[0]);
    char text[10];
    show("read", read(pair[1], text, 2));
    receive("rest", pair[1], ROOM, MSG_DONTWAIT);
    int many[MOST + 1];
    for (int at = 0; at <= MOST; at++)
        many[at] = ends[0];
    show("most", send_files(pair[0], "most", many, MOST));
    show("more", send_files(pair[0], "more", many, MOST + 1));
    receive("most", pair[1], ROOM, 0);
    drop();
    struct rlimit limit, few;
    getrlimit(RLIMIT_NOFILE, &limit);
    int next = dup(0);
    close(next);
    few = limit;
    few.rlim_cur = next + 2;
    send_files(pair[0], "few", many, 5);
    setrlimit(RLIMIT_NOFILE, &few);
    receive("few", pair[1], ROOM, 0);
    drop();
    setrlimit(RLIMIT_NOFILE, &limit);
    send_file(pair[0], "unread", ends[0]);
    close(pair[1]);
    show("to a closed one", send_file(pair[0], "x", ends[0]));
    close(pair[0]), close(ends[0]);
}

static void boundaries(void)
{
    int pair[2];
    char text[20] = { 0 };
    puts("boundaries");
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    send(pair[0], "ab", 2, 0);
    send_file(pair[0], "cd", 0);
    send_file(pair[0], "ef", 0);
    send(pair[0], "gh", 2, 0);
    send(pair[0], "ij", 2, 0);
    for (int round = 0; round < 3; round++) {
        receive("receive", pair[1], ROOM, 0);
        drop();
    }
    send_file(pair[0], "klm", 0);
    send(pair[0], "no", 2, 0);
    show("read one", read(pair[1], text, 1));
    receive("rest", pair[1], ROOM, 0);
    send(pair[0], "pq", 2, 0);
    send_file(pair[0], "rs", 0);
    send(pair[0], "tu", 2, 0);
    show("read two", read(pair[1], text, 2));
    receive("with file", pair[1], ROOM, 0);
    drop();
    show("wait for all", recv(pair[1], text, 2, MSG_WAITALL));
    send_file(pair[0], "vw", 0);
    send(pair[0], "xy", 2, 0);
    show("wait for all", recv(pair[1], text, 4, MSG_WAITALL));
    show("nothing is sent", send_file(pair[0], "", 0));
    receive("rest", pair[1], ROOM, MSG_DONTWAIT);
    receive("nothing", pair[1], ROOM, MSG_DONTWAIT);
    close(pair[0]);
    receive("end", pair[1], ROOM, 0);
    close(pair[1]);
}

static void malformed(void)
{
    int pair[2];
    _Alignas(8) char control[ROOM];
    int bad[2] = { 0, 99 };
    puts("malformed");
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    show("bad descriptor", send_files(pair[0], "x", bad, 2));
    show("negative", send_file(pair[0], "x", -1));
    show("none", send_files(pair[0], "x", bad, 0));
    size_t bytes = put(control, 77, bad, sizeof bad);
    show("unknown type", send_control(pair[0], "x", control, bytes, 0));
    ((struct cmsghdr *) control)->cmsg_level = 99;
    show("other level", send_control(pair[0], "x", control, bytes, 0));
    put(control, SCM_RIGHTS, bad, 4);
    ((struct cmsghdr *) control)->cmsg_len = 15;
    show("too short", send_control(pair[0], "x", control, 24, 0));
    ((struct cmsghdr *) control)->cmsg_len = 25;
    show("too long", send_control(pair[0], "x", control, 24, 0));
    show("less than a head", send_control(pair[0], "x", control, 15, 0));
    bytes = put(control, SCM_RIGHTS, bad, 4);
    bytes += put(control + bytes, SCM_RIGHTS, bad, 4);
    show("two", send_control(pair[0], "x", control, bytes, 0));
    show("bad address", send_control(pair[0], "x", (void *) 8, 24, 0));
    receive("receive", pair[1], ROOM, 0);
    drop();
    int lone = socket(AF_UNIX, SOCK_STREAM, 0);
    show("not connected", send_file(lone, "x", 0));
    show("not connected, bad", send_file(lone, "x", 99));
    close(lone), close(pair[0]), close(pair[1]);
}

static void senders(int kind)
{
    int pair[2], on = 1, off = 0, status;
    printf("senders, %s\n", name_of(kind));
    socketpair(AF_UNIX, kind, 0, pair);
    send(pair[0], "plain", 5, 0);
    receive("nobody asks", pair[1], ROOM, 0);
    send(pair[0], "before", 6, 0);
    show("ask", setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    send(pair[0], "after", 5, 0);
    receive("before", pair[1], ROOM, 0);
    receive("after", pair[1], ROOM, 0);
    if (!fork()) {
        send(pair[0], "child", 5, 0);
        _exit(0);
    }
    wait(&status);
    send(pair[0], "parent", 6, 0);
    receive("child", pair[1], ROOM, 0);
    receive("parent", pair[1], ROOM, 0);
    send_file(pair[0], "file", 0);
    receive("file", pair[1], ROOM, 0);
    drop();
    send_file(pair[0], "file", 0);
    receive("room for ids", pair[1], CMSG_SPACE(sizeof(struct ucred)), 0);
    send(pair[0], "x", 1, 0);
    receive("less room", pair[1], 20, 0);
    send(pair[0], "x", 1, 0);
    receive("no room", pair[1], 0, 0);
    struct ucred own = { getpid(), getuid(), getgid() }, other = own;
    show("own ids", send_ids(pair[0], "own", own));
    receive("own", pair[1], ROOM, 0);
    other.uid = 12345, other.gid = 54321;
    show("other ids", send_ids(pair[0], "other", other));
    receive("other", pair[1], ROOM, 0);
    other.pid = 4000000;
    show("no process", send_ids(pair[0], "x", other));
    if (!fork()) {
        setgroups(0, NULL), setgid(1000), setuid(1000);
        own = (struct ucred) { getpid(), 1000, 1000 };
        show("own", send_ids(pair[0], "own", own));
        own.uid = 0;
        show("another's uid", send_ids(pair[0], "x", own));
        own.uid = 1000, own.gid = 0;
        show("another's gid", send_ids(pair[0], "x", own));
        own.gid = 1000, own.pid = getppid();
        show("another's pid", send_ids(pair[0], "x", own));
        _exit(0);
    }
    wait(&status);
    receive("user", pair[1], ROOM, 0);
    setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &off, sizeof off);
    send_ids(pair[0], "unasked", own);
    receive("unasked", pair[1], ROOM, 0);
    setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    send(pair[0], "told", 4, 0);
    setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    receive("told", pair[1], ROOM, 0);
    close(pair[0]);
    if (kind != SOCK_DGRAM)
        receive("end", pair[1], ROOM, 0);
    close(pair[1]);
}

static void kinds(const char *directory)
{
    int pair[2], ends[2], status;
    char text[30] = { 0 };
    puts("kinds of files");
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    pipe(ends);
    int file = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0600), other = open("shared", O_RDWR);
    int counter = eventfd(3, 0), epoll = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = 77 };
    epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event);
    write(file, "content", 7);
    flock(file, LOCK_EX);
    int folder = open(".", O_PATH), all[] = { file, counter, epoll, folder, pair[0] };
    show("send", send_files(pair[0], "kinds", all, 5));
    close(file), close(counter), close(epoll), close(folder);
    show("locked", flock(other, LOCK_EX | LOCK_NB));
    if (!fork()) {
        receive("kinds", pair[1], ROOM, 0);
        show("position", lseek(last[0], 0, SEEK_CUR));
        show("ready", epoll_wait(last[2], &event, 1, 0));
        printf("data %u\n", event.data.u32);
        uint64_t value = 0;
        read(last[1], &value, sizeof value);
        printf("counter %d\n", (int) value);
        show("in the folder", openat(last[3], "shared", O_RDONLY) >= 0 ? 0 : -1);
        show("by the socket", send(last[4], "hello", 5, 0));
        lseek(last[0], 3, SEEK_SET);
        _exit(0);
    }
    wait(&status);
    show("unlocked", flock(other, LOCK_EX | LOCK_NB));
    show("hello", recv(pair[1], text, sizeof text, 0));
    close(other), close(pair[0]), close(pair[1]), close(ends[0]), close(ends[1]);
    unlink("shared");
    (void) directory;
}

/* Waits until the pipe has no writer any more: sockets that nobody can receive are closed a while after. */
static void ends(const char *what, int reads)
{
    struct pollfd asked = { reads, POLLIN, 0 };
    int result = -1;
    for (int round = 0; round < 200 && result < 0; round++) {
        /* What makes Linux look. */
        close(socket(AF_UNIX, SOCK_STREAM, 0));
        result = poll(&asked, 1, 50) == 1 ? 0 : -1;
    }
    printf("%s: %s\n", what, result ? "still open" : "closed");
    close(reads);
}

static void cycles(int kind)
{
    int a[2], b[2], c[2], pipes[2];
    printf("cycles, %s\n", name_of(kind));
    socketpair(AF_UNIX, kind, 0, a), pipe(pipes);
    int both[] = { a[1], pipes[1] };
    send_files(a[0], "itself", both, 2);
    close(a[1]), close(pipes[1]);
    if (kind == SOCK_DGRAM)
        close(a[0]);
    ends("itself", pipes[0]);
    close(a[0]);
    socketpair(AF_UNIX, kind, 0, a), socketpair(AF_UNIX, kind, 0, b), socketpair(AF_UNIX, kind, 0, c), pipe(pipes);
    int first[] = { b[1], pipes[1] };
    send_files(a[0], "to a", first, 2);
    send_file(b[0], "to b", a[1]);
    send_file(c[0], "to c", b[1]);
    for (int at = 0; at < 2; at++)
        close(a[at]), close(b[at]);
    close(pipes[1]);
    usleep(100000);
    printf("held by the third: open %d\n", is_open(pipes[0]));
    receive("third", c[1], ROOM, 0);
    int second = last[0];
    receive("second", second, ROOM, 0);
    int again = last[0];
    receive("first", again, ROOM, 0);
    close(second), close(again);
    printf("open %d\n", is_open(pipes[0]));
    drop();
    ends("after that", pipes[0]);
    close(c[0]), close(c[1]);
}

static void limits(void)
{
    int pair[2], status, many[20];
    puts("limits");
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    fflush(stdout);
    if (!fork()) {
        setgroups(0, NULL), setgid(1000), setuid(1000);
        struct rlimit limit = { 20, 20 };
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int at = 0; at < 20; at++)
            many[at] = 0;
        show("20", send_files(pair[0], "x", many, 20));
        show("21", send_files(pair[0], "x", many, 1));
        show("22", send_files(pair[0], "x", many, 1));
        show("none", send_files(pair[0], "x", many, 0));
        show("packets", send(pair[0], "y", 1, 0));
        _exit(0);
    }
    wait(&status);
    receive("receive", pair[1], ROOM, 0);
    drop();
    if (!fork()) {
        setgroups(0, NULL), setgid(1000), setuid(1000);
        show("again", send_files(pair[0], "x", many, 1) < 0 ? errno == EBADF ? 0 : -1 : 0);
        _exit(0);
    }
    wait(&status);
    close(pair[0]), close(pair[1]);
}

static void options(void)
{
    int pair[2], status;
    struct ucred peer;
    gid_t groups[10] = { 0 };
    socklen_t length = sizeof peer;
    puts("options");
    if (!fork()) {
        setgroups(3, (gid_t[]) { 7, 8, 9 });
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        show("peer", getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &peer, &length));
        printf("%d %u %u\n", peer.pid == getpid(), peer.uid, peer.gid);
        length = sizeof groups;
        show("groups", getsockopt(pair[0], SOL_SOCKET, SO_PEERGROUPS, groups, &length));
        printf("%u bytes: %u %u %u\n", length, groups[0], groups[1], groups[2]);
        length = 8;
        show("too few", getsockopt(pair[0], SOL_SOCKET, SO_PEERGROUPS, groups, &length));
        printf("%u bytes\n", length);
        int lone = socket(AF_UNIX, SOCK_STREAM, 0);
        length = sizeof groups;
        show("no peer", getsockopt(lone, SOL_SOCKET, SO_PEERGROUPS, groups, &length));
        length = sizeof groups;
        show("security", getsockopt(pair[0], SOL_SOCKET, SO_PEERSEC, groups, &length));
        int on = 1, value = 9;
        length = sizeof value;
        show("pass security", setsockopt(pair[0], SOL_SOCKET, SO_PASSSEC, &on, sizeof on));
        show("passes it", getsockopt(pair[0], SOL_SOCKET, SO_PASSSEC, &value, &length));
        printf("%d\n", value);
        write(pair[0], "abc", 3);
        show("inquire", ioctl(pair[1], FIONREAD, &value));
        printf("%d\n", value);
        show("unsent", ioctl(pair[1], TIOCOUTQ, &value));
        printf("%d\n", value);
        struct linger linger = { 1, 2 };
        show("linger", setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
        _exit(0);
    }
    wait(&status);
}

static void expect(int true, const char *what)
{
    if (!true) {
        printf("%s: %s\n", what, strerrorname_np(errno));
        exit(1);
    }
}

/* Sends a pipe's reading end, whose content says which one it is, and receives one back. */
static void pass(int kind)
{
    enum { ROUNDS = 40 };
    int pair[2], status;
    expect(socketpair(AF_UNIX, kind, 0, pair) == 0, "socketpair");
    for (int side = 0; side < 2; side++) {
        if (fork())
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            int ends[2], number = round * 2 + side, told;
            char text[10];
            expect(pipe(ends) == 0 && write(ends[1], &number, sizeof number) == sizeof number, "pipe");
            close(ends[1]);
            expect(send_file(pair[side], "pass", ends[0]) == 4, "send");
            close(ends[0]);
            struct iovec piece = { text, 4 };
            _Alignas(8) char control[CMSG_SPACE(sizeof(int))];
            struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
            expect(recvmsg(pair[side], &message, 0) == 4, "receive");
            expect(message.msg_controllen > 0 && message.msg_flags == 0, "control message");
            int file = *(int *) CMSG_DATA((struct cmsghdr *) control);
            expect(read(file, &told, sizeof told) == sizeof told && told == round * 2 + !side, "the right pipe");
            expect(read(file, &told, sizeof told) == 0, "its end");
            close(file);
        }
        int next = dup(0);
        expect(next == pair[1] + 1, "no descriptor is left");
        exit(0);
    }
    for (int side = 0; side < 2; side++) {
        wait(&status);
        expect(status == 0, "a side");
    }
    close(pair[0]), close(pair[1]);
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 2 || chdir(arguments[1]))
        return 1;
    if (count > 2) {
        pass(SOCK_STREAM);
        pass(SOCK_SEQPACKET);
        pass(SOCK_DGRAM);
        puts("passed");
        return 0;
    }
    int all[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };
    for (int at = 0; at < 3; at++)
        files(all[at]);
    boundaries();
    malformed();
    for (int at = 0; at < 3; at++)
        senders(all[at]);
    kinds(arguments[1]);
    for (int at = 0; at < 3; at++)
        cycles(all[at]);
    limits();
    options();
    return 0;
}
