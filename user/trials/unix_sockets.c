/* Tries stream sockets with names and prints what it sees: the same as on Linux. usage: unix_sockets DIRECTORY
   This file is long because it tries each rule of the calls by itself, a line each.
   With a second argument two clients and a server talk, and every byte is compared: it prints "talked", whatever is killed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char *what, long result)
{
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, result);
}

static struct sockaddr_un named(const char *path)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    strncpy(name.sun_path, path, sizeof name.sun_path);
    return name;
}

static socklen_t length_of(const struct sockaddr_un *name)
{
    return offsetof(struct sockaddr_un, sun_path) + strlen(name->sun_path) + 1;
}

static int bind_to(int fd, const char *path)
{
    struct sockaddr_un name = named(path);
    return bind(fd, (void *) &name, length_of(&name));
}

static int connect_to(int fd, const char *path)
{
    struct sockaddr_un name = named(path);
    return connect(fd, (void *) &name, length_of(&name));
}

/* An abstract name, given without its NUL. */
static socklen_t abstract(struct sockaddr_un *name, const char *text)
{
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path + 1, text, strlen(text));
    return offsetof(struct sockaddr_un, sun_path) + 1 + strlen(text);
}

static void show_name(const char *what, int fd, int (*get)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_un name;
    socklen_t length = sizeof name;
    memset(&name, 0, sizeof name);
    if (get(fd, (void *) &name, &length) < 0) {
        show(what, -1);
        return;
    }
    printf("%s: family %d, %d bytes, %s%.*s\n", what, name.sun_family, (int) length, length > 2 && !name.sun_path[0] ? "@" : "",
           length > 2 ? (int) length - 3 : 0, name.sun_path + (length > 2 && !name.sun_path[0]));
}

static int stream(int flags)
{
    return socket(AF_UNIX, SOCK_STREAM | flags, 0);
}

static int ready(int fd)
{
    struct pollfd asked = { fd, POLLIN | POLLOUT | POLLRDHUP, 0 };
    poll(&asked, 1, 0);
    return asked.revents;
}

static int option(int fd, int name)
{
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &length) < 0 ? -errno : value;
}

static void making(void)
{
    show("other family", socket(43, SOCK_STREAM, 0));
    show("no family", socket(77, SOCK_STREAM, 0));
    show("no type", socket(AF_UNIX, 0, 0));
    show("a type that families lack", socket(AF_UNIX, SOCK_RDM, 0));
    show("type 12", socket(AF_UNIX, 12, 0));
    show("other protocol", socket(AF_UNIX, SOCK_STREAM, 7));
    show("unknown flag", socket(AF_UNIX, SOCK_STREAM | 0x10, 0));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, AF_UNIX);
    printf("flags %x %x\n", fcntl(fd, F_GETFD), fcntl(fd, F_GETFL));
    struct stat status;
    fstat(fd, &status);
    printf("mode %o\n", status.st_mode);
    printf("unconnected: poll %x\n", ready(fd));
    show("read", read(fd, &status, 1));
    show("recv", recv(fd, &status, 1, 0));
    show("write", write(fd, "x", 1));
    show("send", send(fd, "x", 1, 0));
    struct sockaddr_un name = named("/none");
    show("sendto", sendto(fd, "x", 1, 0, (void *) &name, length_of(&name)));
    show_name("own name", fd, getsockname);
    show_name("peer's name", fd, getpeername);
    show("accept", accept(fd, NULL, NULL));
    show("listen without name", listen(fd, 1));
    show("shut down", shutdown(fd, SHUT_RDWR));
    printf("shut down: poll %x\n", ready(fd));
    show("read", read(fd, &status, 1));
    show("send", send(fd, "x", 1, MSG_NOSIGNAL));
    close(fd);
    fd = open("/dev/null", O_RDWR);
    show("bind of a file", bind_to(fd, "x"));
    show("listen of a file", listen(fd, 1));
    show("accept of a file", accept(fd, NULL, NULL));
    show("accept of nothing", accept(99, NULL, NULL));
    close(fd);
}

static void binding(void)
{
    int fd = stream(0), other = stream(0);
    struct sockaddr_un name = named("one"), strange = { .sun_family = AF_INET };
    struct stat status;
    umask(027);
    show("bind", bind(fd, (void *) &name, length_of(&name)));
    umask(022);
    stat("one", &status);
    printf("mode %o\n", status.st_mode);
    show_name("own name", fd, getsockname);
    show("bind again", bind_to(fd, "two"));
    show("a second at the name", bind_to(other, "one"));
    show("bound, to a name in use", bind_to(fd, "one"));
    show("no folder", bind_to(other, "none/one"));
    show("through a file", bind_to(other, "one/x"));
    show("short", bind(other, (void *) &name, 1));
    show("long", bind(other, (void *) &name, sizeof name + 1));
    show("other family", bind(other, (void *) &strange, sizeof strange));
    show("no memory", bind(other, (void *) 8, 20));
    show("autobind", bind(other, (void *) &name, 2));
    socklen_t length = sizeof name;
    getsockname(other, (void *) &name, &length);
    int digits = 1;
    for (int at = 1; at < 6; at++)
        digits &= strchr("0123456789abcdef", name.sun_path[at]) != NULL;
    printf("of %d bytes, first %d, digits %d\n", (int) length, name.sun_path[0], digits);
    show("again", bind(other, (void *) &name, 2));
    show("open", open("one", O_RDWR));
    show("unlink", unlink("one"));
    int third = stream(0);
    show("the name is free", bind_to(third, "one"));
    unlink("one");
    close(third);
    third = stream(0);
    length = abstract(&name, "first name");
    show("abstract", bind(third, (void *) &name, length));
    show_name("own name", third, getsockname);
    int fourth = stream(0);
    show("abstract in use", bind(fourth, (void *) &name, length));
    show("longer abstract", bind(fourth, (void *) &name, length + 1));
    close(third);
    third = stream(0);
    show("abstract, free again", bind(third, (void *) &name, length));
    close(third);
    third = stream(0);
    memset(name.sun_path, 'p', sizeof name.sun_path);
    length = sizeof name;
    show("108 letters", bind(third, (void *) &name, sizeof name));
    struct sockaddr_storage room;
    length = sizeof room;
    show("own name", getsockname(third, (void *) &room, &length));
    printf("of %d bytes\n", (int) length);
    length = 4;
    memset(&room, 0xff, sizeof room);
    show("a part of it", getsockname(third, (void *) &room, &length));
    printf("of %d bytes, %x\n", (int) length, ((unsigned char *) &room)[4]);
    length = -1;
    show("negative", getsockname(third, (void *) &room, &length));
    char path[109];
    memset(path, 'p', 108);
    path[108] = 0;
    unlink(path);
    close(fd), close(other), close(third), close(fourth);
}

static void connecting(void)
{
    char text[100];
    int server = stream(0), client = stream(0), third = stream(SOCK_NONBLOCK);
    show("connect to nothing", connect_to(client, "server"));
    bind_to(server, "server");
    show("connect before listen", connect_to(client, "server"));
    close(open("file", O_CREAT | O_RDWR, 0600));
    show("connect to a file", connect_to(client, "file"));
    unlink("file");
    struct sockaddr_un name;
    socklen_t length = abstract(&name, "nobody");
    show("connect to no abstract name", connect(client, (void *) &name, length));
    show("connect to no name", connect(client, (void *) &name, 2));
    struct sockaddr unspecified = { .sa_family = AF_UNSPEC };
    show("connect to no family", connect(client, &unspecified, sizeof unspecified));
    show("accept before listen", accept(server, NULL, NULL));
    show("listen", listen(server, 1));
    printf("listening: poll %x, accepts %d, %d\n", ready(server), option(server, SO_ACCEPTCONN), option(client, SO_ACCEPTCONN));
    show("read", read(server, text, 1));
    show("write", send(server, text, 1, MSG_NOSIGNAL));
    show("connect of a listener", connect_to(server, "server"));
    show("peer of a listener", getpeername(server, (void *) &name, &length));
    bind_to(client, "client");
    show("connect", connect_to(client, "server"));
    printf("pending: poll %x, client %x\n", ready(server), ready(client));
    show("connect again", connect_to(client, "server"));
    show("listen when connected", listen(client, 1));
    show("send before accept", send(client, "early", 5, 0));
    show("second", connect_to(third, "server"));
    int fourth = stream(SOCK_NONBLOCK);
    show("third", connect_to(fourth, "server"));
    show("longer backlog", listen(server, 2));
    show("third once more", connect_to(fourth, "server"));
    length = sizeof name;
    memset(&name, 0, sizeof name);
    int accepted = accept4(server, (void *) &name, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    printf("accepted from %s, %d bytes\n", name.sun_path, (int) length);
    printf("flags %x %x\n", fcntl(accepted, F_GETFD), fcntl(accepted, F_GETFL));
    show_name("accepted: own name", accepted, getsockname);
    show_name("accepted: peer's name", accepted, getpeername);
    show_name("client: peer's name", client, getpeername);
    show("unknown flag", accept4(server, NULL, NULL, 1));
    show("receive", recv(accepted, text, sizeof text, 0));
    show("nothing left", recv(accepted, text, sizeof text, 0));
    show("send back", send(accepted, "back", 4, 0));
    struct sockaddr_un from;
    memset(&from, 0, sizeof from);
    length = sizeof from;
    show("receive", recvfrom(client, text, sizeof text, 0, (void *) &from, &length));
    printf("from %s, %d bytes\n", from.sun_path, (int) length);
    show("sendto when connected", sendto(client, "x", 1, 0, (void *) &from, sizeof from));
    struct ucred ids;
    length = sizeof ids;
    getsockopt(client, SOL_SOCKET, SO_PEERCRED, &ids, &length);
    printf("server is me %d %d %d\n", ids.pid == getpid(), ids.uid == geteuid(), ids.gid == getegid());
    getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &ids, &length);
    printf("client is me %d %d %d\n", ids.pid == getpid(), ids.uid == geteuid(), ids.gid == getegid());
    int plain = accept(server, NULL, NULL);
    printf("flags %x %x\n", fcntl(plain, F_GETFD), fcntl(plain, F_GETFL));
    show_name("second: peer's name", plain, getpeername);
    fcntl(server, F_SETFL, O_NONBLOCK);
    close(accept(server, NULL, NULL));
    show("fourth, whose server's end is closed", recv(fourth, text, 1, 0));
    show("nobody pending", accept(server, NULL, NULL));
    show("no memory for the name", accept(server, (void *) 8, &length));
    close(accepted), close(plain), close(third), close(fourth);
    third = stream(0), fourth = stream(0);
    connect_to(third, "server");
    send(third, "lost", 4, 0);
    close(server);
    printf("never accepted: poll %x\n", ready(third));
    show("read", recv(third, text, 1, 0));
    show("read again", recv(third, text, 1, 0));
    show("connect to a name without socket", connect_to(fourth, "server"));
    unlink("server"), unlink("client");
    close(client), close(third), close(fourth);
}

static void ending(void)
{
    char text[100];
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    send(pair[0], "unread", 6, 0);
    close(pair[1]);
    printf("unread data lost: poll %x\n", ready(pair[0]));
    show("error", option(pair[0], SO_ERROR));
    show("error, asked again", option(pair[0], SO_ERROR));
    show("receive", recv(pair[0], text, 100, 0));
    show("send", send(pair[0], "x", 1, MSG_NOSIGNAL));
    close(pair[0]);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    send(pair[0], "unread", 6, 0);
    send(pair[1], "last", 4, 0);
    close(pair[1]);
    show("receive", recv(pair[0], text, 100, 0));
    show("then the error", recv(pair[0], text, 100, 0));
    show("then the end", recv(pair[0], text, 100, 0));
    close(pair[0]);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    show("peek", (send(pair[0], "peeked", 6, 0), recv(pair[1], text, 3, MSG_PEEK)));
    show("peek all", recv(pair[1], text, 100, MSG_PEEK | MSG_DONTWAIT));
    show("receive", recv(pair[1], text, 100, MSG_DONTWAIT));
    show("peek at nothing", recv(pair[1], text, 100, MSG_PEEK | MSG_DONTWAIT));
    send(pair[0], "abc", 3, 0);
    if (!fork()) {
        usleep(50000);
        send(pair[0], "def", 3, 0);
        _exit(0);
    }
    show("wait for all", recv(pair[1], text, 6, MSG_WAITALL));
    printf("%.6s\n", text);
    wait(NULL);
    send(pair[0], "end", 3, 0);
    shutdown(pair[0], SHUT_WR);
    show("all there is", recv(pair[1], text, 6, MSG_WAITALL));
    show("flags that do nothing", recv(pair[1], text, 6, MSG_TRUNC | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC));
    show("urgent data", recv(pair[1], text, 6, MSG_OOB));
    close(pair[0]), close(pair[1]);
    signal(SIGPIPE, SIG_IGN);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    show("shut down reading", shutdown(pair[0], SHUT_RD));
    show("write to it", write(pair[1], "x", 1));
    show("read from it", read(pair[0], text, 1));
    show("how", shutdown(pair[0], 3));
    close(pair[0]), close(pair[1]);
}

static void options(void)
{
    int pair[2], value = 10000;
    struct ucred ids;
    socklen_t length = sizeof ids;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &ids, &length);
    printf("pair: me %d %d %d\n", ids.pid == getpid(), ids.uid == geteuid(), ids.gid == getegid());
    int fd = stream(0);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ids, &length);
    printf("unconnected: %d %d %d\n", ids.pid, ids.uid, ids.gid);
    printf("type %d, family %d, protocol %d\n", option(fd, SO_TYPE), option(fd, SO_DOMAIN), option(fd, SO_PROTOCOL));
    printf("buffers %d %d\n", option(fd, SO_SNDBUF), option(fd, SO_RCVBUF));
    show("set", setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, sizeof value));
    show("set", setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof value));
    printf("buffers %d %d\n", option(fd, SO_SNDBUF), option(fd, SO_RCVBUF));
    value = 1;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, sizeof value);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof value);
    printf("least %d %d\n", option(fd, SO_SNDBUF), option(fd, SO_RCVBUF));
    show("set", setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &value, sizeof value));
    show("set", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, sizeof value));
    printf("flags %d %d %d %d\n", option(fd, SO_PASSCRED), option(fd, SO_REUSEADDR), option(fd, SO_KEEPALIVE), option(fd, SO_BROADCAST));
    show("short", setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &value, 3));
    show("unknown", setsockopt(fd, SOL_SOCKET, 999, &value, sizeof value));
    show("unknown level", setsockopt(fd, 77, 1, &value, sizeof value));
    show("read only", setsockopt(fd, SOL_SOCKET, SO_TYPE, &value, sizeof value));
    show("unknown", option(fd, 999));
    struct timeval wait_for = { 0, 30000 }, found;
    show("timeout", setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait_for, sizeof wait_for));
    length = sizeof found;
    getsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &found, &length);
    printf("of %d bytes: %ld %ld\n", (int) length, (long) found.tv_sec, (long) found.tv_usec / 10000);
    char byte;
    show("receive", recv(pair[0], &byte, 1, 0));
    setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &wait_for, sizeof wait_for);
    static char block[65536];
    for (int round = 0; round < 100; round++)
        if (send(pair[0], block, sizeof block, 0) < 0) {
            show("send", -1);
            break;
        }
    wait_for.tv_usec = 1000000;
    show("bad time", setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait_for, sizeof wait_for));
    close(fd), close(pair[0]), close(pair[1]);
}

static void *late(void *path)
{
    usleep(50000);
    int fd = stream(0);
    connect_to(fd, path);
    write(fd, "late", 4);
    return (void *) (long) fd;
}

static void waiting(void)
{
    char text[10];
    pthread_t thread;
    void *client;
    int server = stream(0);
    bind_to(server, "server");
    listen(server, 0);
    pthread_create(&thread, NULL, late, "server");
    int accepted = accept(server, NULL, NULL);
    show("accept waited", read(accepted, text, 10));
    pthread_join(thread, &client);
    close(accepted), close((int) (long) client);
    pthread_create(&thread, NULL, late, "server");
    struct pollfd asked = { server, POLLIN, 0 };
    show("poll waited", poll(&asked, 1, -1));
    pthread_join(thread, &client);
    int second = stream(0);
    struct timeval wait_for = { 0, 30000 };
    setsockopt(second, SOL_SOCKET, SO_SNDTIMEO, &wait_for, sizeof wait_for);
    show("no room, for a time", connect_to(second, "server"));
    if (!fork()) {
        int third = stream(0);
        int result = connect_to(third, "server");
        write(third, "waited", 6);
        _exit(result);
    }
    usleep(50000);
    close(accept(server, NULL, NULL));
    accepted = accept(server, NULL, NULL);
    show("connect waited", read(accepted, text, 10));
    setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &wait_for, sizeof wait_for);
    show("accept, for a time", accept(server, NULL, NULL));
    shutdown(server, SHUT_RD);
    show("accept when shut down", accept(server, NULL, NULL));
    show("connect when shut down", connect_to(second, "server"));
    wait(NULL);
    unlink("server");
    close(server), close(accepted), close(second), close((int) (long) client);
}

/* What another user may: the directory and the node decide. */
static void permissions(void)
{
    int server = stream(0);
    umask(0);
    bind_to(server, "server");
    umask(022);
    listen(server, 10);
    chmod("server", 0555);
    mkdir("closed", 0700);
    mkdir("unwritable", 0755);
    fflush(stdout);
    if (!fork()) {
        if (getuid() == 0 && (setgid(65534) || setuid(65534)))
            _exit(1);
        int fd = stream(0);
        chmod("server", 0);
        show("connect without write permission", connect_to(fd, "server"));
        show("connect without search permission", connect_to(fd, "closed/server"));
        show("bind without write permission", bind_to(fd, "unwritable/server"));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    rmdir("closed"), rmdir("unwritable");
    unlink("server");
    close(server);
}

enum { CLIENTS = 2, CONNECTIONS = 8, PIECES = 6, PIECE_BYTES = 100 };

static void expect(int true, const char *what)
{
    if (!true) {
        printf("%s: %s\n", what, strerrorname_np(errno));
        exit(1);
    }
}

static unsigned char letter(int client, int connection, int at)
{
    return client * 101 + connection * 7 + at;
}

static void talk_as_client(int client)
{
    unsigned char piece[PIECE_BYTES], answer[2];
    for (int connection = 0; connection < CONNECTIONS; connection++) {
        int fd = stream(0), sum = 0;
        expect(connect_to(fd, "talk") == 0, "connect");
        for (int number = 0; number < PIECES; number++) {
            for (int at = 0; at < PIECE_BYTES; at++)
                sum += piece[at] = letter(client, connection, number * PIECE_BYTES + at);
            expect(send(fd, piece, PIECE_BYTES, 0) == PIECE_BYTES, "send");
        }
        expect(recv(fd, answer, 2, MSG_WAITALL) == 2 && answer[0] == (sum & 0xff) && answer[1] == (sum >> 8 & 0xff), "answer");
        expect(recv(fd, answer, 1, 0) == 0, "end");
        close(fd);
    }
    exit(0);
}

static int talk(void)
{
    static unsigned char text[PIECES * PIECE_BYTES];
    int server = stream(0), status, good = 1;
    unlink("talk");
    expect(bind_to(server, "talk") == 0, "bind");
    expect(listen(server, 0) == 0, "listen");
    for (int client = 0; client < CLIENTS; client++)
        if (!fork())
            talk_as_client(client);
    for (int connection = 0; connection < CLIENTS * CONNECTIONS; connection++) {
        int fd = accept(server, NULL, NULL), sum = 0;
        expect(fd >= 0, "accept");
        expect(recv(fd, text, sizeof text, MSG_WAITALL) == sizeof text, "receive");
        for (unsigned at = 0; at < sizeof text; at++) {
            expect(text[at] == (unsigned char) (text[0] + at), "bytes");
            sum += text[at];
        }
        unsigned char answer[2] = { sum, sum >> 8 };
        expect(write(fd, answer, 1) == 1 && write(fd, answer + 1, 1) == 1, "write");
        close(fd);
    }
    for (int client = 0; client < CLIENTS; client++) {
        wait(&status);
        good &= status == 0;
    }
    expect(good, "clients");
    puts("talked");
    return 0;
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 2 || chdir(arguments[1]))
        return 1;
    if (count > 2)
        return talk();
    making();
    binding();
    connecting();
    ending();
    options();
    waiting();
    if (getuid() == 0)
        permissions();
    return 0;
}
