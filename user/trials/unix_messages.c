/* Tries sockets that keep the boundaries of messages, and prints what it sees: the same as on Linux. usage: unix_messages DIRECTORY
   With a second argument two processes pass messages to each other, and compare each: it prints "talked", whatever is killed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
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

/* A path, or with '@' as first letter an abstract name. */
static socklen_t named(struct sockaddr_un *name, const char *text)
{
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    strcpy(name->sun_path, text);
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + strlen(text);
    if (*text != '@')
        return length + 1;
    name->sun_path[0] = 0;
    return length;
}

static int bind_to(int fd, const char *text)
{
    struct sockaddr_un name;
    socklen_t length = named(&name, text);
    return bind(fd, (void *) &name, length);
}

static int connect_to(int fd, const char *text)
{
    struct sockaddr_un name;
    socklen_t length = named(&name, text);
    return connect(fd, (void *) &name, length);
}

static int send_to(int fd, const char *message, const char *text, int flags)
{
    struct sockaddr_un name;
    socklen_t length = named(&name, text);
    return sendto(fd, message, strlen(message), flags, (void *) &name, length);
}

static int ready(int fd)
{
    struct pollfd asked = { fd, POLLIN | POLLOUT | POLLRDHUP, 0 };
    poll(&asked, 1, 0);
    return asked.revents;
}

/* Receives by recvmsg into so many bytes, and shows everything. */
static void receive(const char *what, int fd, int room, int flags)
{
    char text[100];
    struct sockaddr_un name;
    struct iovec piece = { text, room };
    struct msghdr message = { .msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &piece, .msg_iovlen = 1 };
    memset(&name, 0, sizeof name);
    memset(text, 0, sizeof text);
    message.msg_flags = 0x1234;
    int bytes = recvmsg(fd, &message, flags);
    if (bytes < 0) {
        show(what, -1);
        return;
    }
    printf("%s: %d '%s' flags %x, name of %d bytes %s\n", what, bytes, text, message.msg_flags, message.msg_namelen,
           message.msg_namelen > 2 ? name.sun_path + !name.sun_path[0] : "");
}

static int inquire(int fd)
{
    int bytes = -1;
    return ioctl(fd, FIONREAD, &bytes) < 0 ? -errno : bytes;
}

static void pairs(const char *what, int kind)
{
    int pair[2];
    printf("pair of %s\n", what);
    show("made", socketpair(AF_UNIX, kind, 0, pair));
    printf("poll %x\n", ready(pair[0]));
    show("first", send(pair[0], "first", 5, 0));
    show("second", send(pair[0], "second message", 14, MSG_EOR));
    show("empty", send(pair[0], "", 0, 0));
    show("last", write(pair[0], "last", 4));
    printf("poll %x, inquire %d\n", ready(pair[1]), inquire(pair[1]));
    receive("peek", pair[1], 100, MSG_PEEK);
    receive("first", pair[1], 100, 0);
    receive("peek truncated", pair[1], 6, MSG_PEEK | MSG_TRUNC);
    receive("truncated", pair[1], 6, 0);
    receive("empty", pair[1], 6, 0);
    char text[10];
    show("read truncated", read(pair[1], text, 2));
    receive("nothing", pair[1], 6, MSG_DONTWAIT);
    send(pair[0], "whole length", 12, 0);
    receive("its length", pair[1], 3, MSG_TRUNC);
    send(pair[0], "abc", 3, 0);
    show("wait for all", recv(pair[1], text, 10, MSG_WAITALL));
    show("to a name", send_to(pair[0], "x", "@nobody", 0));
    static char large[300000];
    show("too large", send(pair[0], large, sizeof large, 0));
    show("shut down", shutdown(pair[0], SHUT_WR));
    printf("poll %x %x\n", ready(pair[0]), ready(pair[1]));
    show("send", send(pair[0], "x", 1, 0));
    receive("end", pair[1], 5, MSG_DONTWAIT);
    send(pair[1], "back", 4, 0);
    receive("other direction", pair[0], 5, 0);
    show("listen", listen(pair[0], 1));
    show("accept", accept(pair[0], NULL, NULL));
    shutdown(pair[0], SHUT_RD);
    show("send to one shut down", send(pair[1], "x", 1, 0));
    close(pair[0]), close(pair[1]);
    socketpair(AF_UNIX, kind, 0, pair);
    send(pair[0], "unread", 6, 0);
    close(pair[1]);
    printf("peer is closed: poll %x\n", ready(pair[0]));
    receive("receive", pair[0], 5, MSG_DONTWAIT);
    receive("receive", pair[0], 5, MSG_DONTWAIT);
    show("send", send(pair[0], "x", 1, 0));
    show("send", send(pair[0], "x", 1, 0));
    show("peer's name", getpeername(pair[0], (void *) text, &(socklen_t) { 2 }));
    close(pair[0]);
}

static void connections(void)
{
    int server = socket(AF_UNIX, SOCK_SEQPACKET, 0), client = socket(AF_UNIX, SOCK_SEQPACKET, 0), other = socket(AF_UNIX, SOCK_STREAM, 0);
    char text[10];
    printf("unconnected: poll %x\n", ready(client));
    show("send", send(client, "x", 1, 0));
    show("receive", recv(client, text, 1, 0));
    bind_to(server, "server"), bind_to(client, "client");
    listen(server, 5);
    show("other type", connect_to(other, "server"));
    show("connect", connect_to(client, "server"));
    show("send", send(client, "early", 5, 0));
    show("to a name", send_to(client, "named", "server", 0));
    int accepted = accept(server, NULL, NULL);
    receive("receive", accepted, 10, 0);
    receive("receive", accepted, 10, MSG_DONTWAIT);
    send(accepted, "answer", 6, 0);
    receive("receive", client, 10, 0);
    close(server), close(client), close(other), close(accepted);
    unlink("server"), unlink("client");
}

static void datagrams(void)
{
    char text[10];
    int one = socket(AF_UNIX, SOCK_DGRAM, 0), two = socket(AF_UNIX, SOCK_DGRAM, 0), three = socket(AF_UNIX, SOCK_RAW, 0);
    int kind;
    getsockopt(three, SOL_SOCKET, SO_TYPE, &kind, &(socklen_t) { 4 });
    printf("raw: type %d\n", kind);
    printf("unbound: poll %x\n", ready(one));
    show("send to nobody", send(one, "x", 1, 0));
    show("write to nobody", write(one, "x", 1));
    show("send to no name", send_to(one, "x", "none", 0));
    show("receive", recv(one, text, 1, MSG_DONTWAIT));
    show("listen", listen(one, 1));
    show("accept", accept(one, NULL, NULL));
    bind_to(one, "one");
    bind_to(two, "@two");
    show("send", send_to(one, "from one", "@two", 0));
    show("send", send_to(three, "from three", "@two", 0));
    printf("poll %x, inquire %d\n", ready(two), inquire(two));
    receive("receive", two, 50, 0);
    receive("receive", two, 50, 0);
    show("connect", connect_to(one, "@two"));
    show("send", send(one, "connected", 9, 0));
    receive("receive", two, 50, 0);
    show("a third to the connected one", send_to(three, "x", "one", 0));
    show("its peer to the connected one", send_to(two, "back", "one", 0));
    receive("receive", one, 50, 0);
    show("to another name", send_to(one, "other", "one", 0));
    struct sockaddr nobody = { .sa_family = AF_UNSPEC };
    show("disconnect", connect(one, &nobody, sizeof nobody));
    show("send", send(one, "x", 1, 0));
    show("reconnect", connect_to(one, "@two"));
    close(two);
    show("to a closed one", send(one, "x", 1, 0));
    show("again", send(one, "x", 1, 0));
    int stream = socket(AF_UNIX, SOCK_STREAM, 0);
    bind_to(stream, "stream");
    listen(stream, 1);
    show("to a stream", send_to(three, "x", "stream", 0));
    show("connect to a stream", connect_to(three, "stream"));
    show("to itself", send_to(one, "self", "one", 0));
    receive("receive", one, 50, 0);
    close(one), close(three), close(stream);
    unlink("one"), unlink("stream");
}

static void many(void)
{
    int pair[2];
    struct mmsghdr messages[4];
    struct iovec pieces[4];
    static char texts[4][10];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    memset(messages, 0, sizeof messages);
    for (int at = 0; at < 4; at++) {
        sprintf(texts[at], "%.*s", at + 1, "abcd");
        pieces[at] = (struct iovec) { texts[at], at + 1 };
        messages[at].msg_hdr.msg_iov = &pieces[at];
        messages[at].msg_hdr.msg_iovlen = 1;
    }
    show("sent", sendmmsg(pair[0], messages, 3, 0));
    printf("%u %u %u %u\n", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len, messages[3].msg_len);
    for (int at = 0; at < 4; at++)
        pieces[at].iov_len = 10, messages[at].msg_len = 99, memset(texts[at], 0, 10);
    show("received", recvmmsg(pair[1], messages, 4, MSG_DONTWAIT, NULL));
    printf("%u %u %u %u %s %s %s\n", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len, messages[3].msg_len, texts[0], texts[1], texts[2]);
    show("nothing", recvmmsg(pair[1], messages, 4, MSG_DONTWAIT, NULL));
    send(pair[0], "one", 3, 0);
    show("wait for one", recvmmsg(pair[1], messages, 4, MSG_WAITFORONE, NULL));
    struct timespec limit = { 0, 1000 };
    send(pair[0], "one", 3, 0);
    show("none", sendmmsg(pair[0], messages, 0, 0));
    (void) limit;
    close(pair[0]), close(pair[1]);
}

static void waiting(int kind)
{
    char text[100];
    int pair[2];
    socketpair(AF_UNIX, kind, 0, pair);
    if (!fork()) {
        usleep(50000);
        send(pair[0], "late", 4, 0);
        int sent = 0;
        static char large[5000];
        while (sent < 100)
            sent += send(pair[0], large, sizeof large, 0) == sizeof large;
        _exit(0);
    }
    show("receive waited", recv(pair[1], text, sizeof text, 0));
    usleep(50000);
    int bytes = 0;
    for (int round = 0; round < 100; round++)
        bytes += recv(pair[1], text, sizeof text, MSG_TRUNC);
    printf("%d bytes\n", bytes);
    wait(NULL);
    close(pair[0]), close(pair[1]);
}

static void expect(int true, const char *what)
{
    if (!true) {
        printf("%s: %s\n", what, strerrorname_np(errno));
        exit(1);
    }
}

/* Receives message number `number`, whose length and content follow from it. */
static void expect_message(int fd, int number)
{
    unsigned char text[4000];
    int length = number * 37 % 3000 + 1;
    expect(recv(fd, text, sizeof text, 0) == length, "length");
    for (int at = 0; at < length; at++)
        expect(text[at] == (unsigned char) (number + at), "content");
}

static void send_message(int fd, int number)
{
    unsigned char text[3000];
    int length = number * 37 % 3000 + 1;
    for (int at = 0; at < length; at++)
        text[at] = number + at;
    expect(send(fd, text, length, 0) == length, "send");
}

static void talk(int kind)
{
    enum { ROUNDS = 30, BURST = 3 };
    int pair[2], status;
    expect(socketpair(AF_UNIX, kind, 0, pair) == 0, "socketpair");
    if (!fork()) {
        for (int number = 0; number < ROUNDS * BURST; number++) {
            expect_message(pair[1], number);
            if (number % BURST == BURST - 1)
                send_message(pair[1], number);
        }
        exit(0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int number = round * BURST; number < (round + 1) * BURST; number++)
            send_message(pair[0], number);
        expect_message(pair[0], (round + 1) * BURST - 1);
    }
    wait(&status);
    expect(status == 0, "the other side");
    close(pair[0]), close(pair[1]);
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 2 || chdir(arguments[1]))
        return 1;
    if (count > 2) {
        talk(SOCK_SEQPACKET);
        talk(SOCK_DGRAM);
        puts("talked");
        return 0;
    }
    signal(SIGPIPE, SIG_DFL);
    pairs("packets", SOCK_SEQPACKET);
    pairs("datagrams", SOCK_DGRAM);
    connections();
    datagrams();
    many();
    waiting(SOCK_SEQPACKET);
    waiting(SOCK_DGRAM);
    return 0;
}
