/* Unix sockets: names, connections, datagrams, options, ends. It is long because each rule is tried by itself. */
#include "behaviour.h"
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un name_of(const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strncpy(name.sun_path, path, sizeof name.sun_path);
    return name;
}

static socklen_t length_of(const char *path) { return offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1; }

static long bind_to(int fd, const char *path) {
    struct sockaddr_un name = name_of(path);
    return bind(fd, (struct sockaddr *)&name, length_of(path));
}

static long connect_to(int fd, const char *path) {
    struct sockaddr_un name = name_of(path);
    return connect(fd, (struct sockaddr *)&name, length_of(path));
}

static int new_socket(int type) { return must(socket(AF_UNIX, type, 0)); }

static int listener(const char *path, int backlog) {
    int fd = new_socket(SOCK_STREAM);
    must(bind_to(fd, path));
    must(listen(fd, backlog));
    return fd;
}

static int a, b;
static void pair(int type) {
    int ends[2];
    must(socketpair(AF_UNIX, type, 0, ends));
    a = ends[0];
    b = ends[1];
}

static void show_poll(int fd) {
    struct pollfd asked = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    poll(&asked, 1, 0);
    note("%x", asked.revents);
}

static void show_option(int fd, int level, int option) {
    int value = -1;
    socklen_t length = sizeof value;
    if (getsockopt(fd, level, option, &value, &length) < 0)
        show(-1);
    else
        note("%d", value);
}

static void show_recv(int fd, size_t length, int flags) {
    char bytes[256];
    show_bytes(bytes, recv(fd, bytes, length, flags));
}

BEHAVIOUR("socket of unknown families, types, protocols") {
    show(socket(99, SOCK_STREAM, 0));
    show(socket(-1, SOCK_STREAM, 0));
    show(socket(AF_UNIX, 77, 0));
    show(socket(AF_UNIX, SOCK_STREAM, 77));
    show(socket(AF_UNIX, SOCK_STREAM | 0x100000, 0));
}
BEHAVIOUR("socket flags, and the protocol 1, which is the family's number") {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 1);
    show(fcntl(fd, F_GETFD));
    note("%o", fcntl(fd, F_GETFL));
}
BEHAVIOUR("socketpair with bad memory, families, types") {
    int ends[2];
    show(socketpair(AF_UNIX, SOCK_STREAM, 0, bad()));
    show(socketpair(AF_UNIX, 77, 0, ends));
    show(socketpair(99, SOCK_STREAM, 0, ends));
    show(open("/dev/null", O_RDONLY));
}
BEHAVIOUR("calls of sockets on what is none") {
    struct sockaddr_un name = name_of("s");
    socklen_t length = sizeof name;
    show(bind(0, (void *)&name, length));
    show(listen(0, 1));
    show(accept(0, NULL, NULL));
    show(connect(0, (void *)&name, length));
    show(send(0, "x", 1, 0));
    show(recv(0, &name, 1, 0));
    show(shutdown(0, SHUT_RD));
    show(getsockname(0, (void *)&name, &length));
    show(getsockopt(0, SOL_SOCKET, SO_TYPE, &name, &length));
    show(listen(99, 1));
}
BEHAVIOUR("bind makes a socket in the file system, with the umask") {
    umask(027);
    show(bind_to(new_socket(SOCK_STREAM), "s"));
    show_mode("s");
}
BEHAVIOUR("bind to an existing name, twice, to nowhere") {
    int fd = new_socket(SOCK_STREAM);
    make("f", "");
    show(bind_to(fd, "f"));
    show(bind_to(fd, "none/s"));
    show(bind_to(fd, "s"));
    show(bind_to(fd, "t"));
    show(bind_to(new_socket(SOCK_STREAM), "s"));
}
BEHAVIOUR("bind with bad lengths, another family, bad memory") {
    struct sockaddr_un name = name_of("s");
    int fd = new_socket(SOCK_STREAM);
    show(bind(fd, (void *)&name, 1));
    show(bind(fd, (void *)&name, 200));
    show(bind(fd, bad(), sizeof name));
    name.sun_family = 77;
    show(bind(fd, (void *)&name, sizeof name));
}
BEHAVIOUR("bind in a directory that may not be written") {
    mkdir("d", 0755);
    AS(USER) { show(bind_to(new_socket(SOCK_STREAM), "d/s")); }
}
BEHAVIOUR("bind of the length of a family alone takes a name by itself") {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t length = sizeof name;
    int fd = new_socket(SOCK_STREAM);
    show(bind(fd, (void *)&name, sizeof name.sun_family));
    show(getsockname(fd, (void *)&name, &length));
    note("%d %d", (int)length, name.sun_path[0]);
}
BEHAVIOUR("abstract names have zeros and lengths, and end with the socket") {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0behaviour"};
    int fd = new_socket(SOCK_STREAM);
    show(bind(fd, (void *)&name, 12));
    show(bind(new_socket(SOCK_STREAM), (void *)&name, 12));
    show(bind(new_socket(SOCK_STREAM), (void *)&name, 11));
    close(fd);
    show(bind(new_socket(SOCK_STREAM), (void *)&name, 12));
}
BEHAVIOUR("listen of a socket without a name, of a datagram socket, of a connected one") {
    show(listen(new_socket(SOCK_STREAM), 1));
    show(listen(new_socket(SOCK_DGRAM), 1));
    pair(SOCK_STREAM);
    show(listen(a, 1));
}
BEHAVIOUR("connect to nothing, to a file, to a socket that nobody has, to one that does not listen") {
    int fd = new_socket(SOCK_STREAM), other = new_socket(SOCK_STREAM);
    make("f", "");
    show(connect_to(fd, "none"));
    show(connect_to(fd, "f"));
    bind_to(other, "s");
    show(connect_to(fd, "s"));
    close(other);
    show(connect_to(fd, "s"));
}
BEHAVIOUR("connect without permission to write the socket") {
    listener("s", 5);
    chmod("s", 0644);
    AS(USER) { show(connect_to(new_socket(SOCK_STREAM), "s")); }
}
BEHAVIOUR("connect to a socket of another type") {
    listener("s", 5);
    show(connect_to(new_socket(SOCK_DGRAM), "s"));
    show(connect_to(new_socket(SOCK_SEQPACKET), "s"));
}
BEHAVIOUR("connect twice, and of a listening socket") {
    int server = listener("s", 5), fd = new_socket(SOCK_STREAM);
    show(connect_to(fd, "s"));
    show(connect_to(fd, "s"));
    show(connect_to(server, "s"));
}
BEHAVIOUR("connect without waiting to a socket whose queue is full") {
    int server = listener("s", 0);
    for (int i = 0; i < 3; i++)
        show(connect_to(new_socket(SOCK_STREAM | SOCK_NONBLOCK), "s"));
    show(accept(server, NULL, NULL) >= 0);
    show(connect_to(new_socket(SOCK_STREAM | SOCK_NONBLOCK), "s"));
}
BEHAVIOUR("what is sent before accept arrives") {
    int server = listener("s", 5), fd = new_socket(SOCK_STREAM);
    connect_to(fd, "s");
    write(fd, "early", 5);
    close(fd);
    int peer = accept(server, NULL, NULL);
    show_read(peer, 9);
    show_read(peer, 9);
}
BEHAVIOUR("accept of a socket that does not listen, without a connection, with unknown flags") {
    int server = listener("s", 5);
    show(accept(new_socket(SOCK_STREAM), NULL, NULL));
    show(accept4(server, NULL, NULL, 77));
    fcntl(server, F_SETFL, O_NONBLOCK);
    show(accept(server, NULL, NULL));
}
BEHAVIOUR("accept4 flags; an accepted socket does not inherit O_NONBLOCK") {
    int server = listener("s", 5);
    fcntl(server, F_SETFL, O_NONBLOCK);
    connect_to(new_socket(SOCK_STREAM), "s");
    connect_to(new_socket(SOCK_STREAM), "s");
    note("%o", fcntl(accept(server, NULL, NULL), F_GETFL));
    int fd = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    note("%o", fcntl(fd, F_GETFL));
    show(fcntl(fd, F_GETFD));
}
BEHAVIOUR("accept tells the client's name") {
    struct sockaddr_un name;
    socklen_t length = sizeof name;
    int server = listener("s", 5), fd = new_socket(SOCK_STREAM);
    bind_to(fd, "client");
    connect_to(fd, "s");
    show(accept(server, (void *)&name, &length) >= 0);
    note("%d %s", (int)length, name.sun_path);
    connect_to(new_socket(SOCK_STREAM), "s");
    length = sizeof name;
    show(accept(server, (void *)&name, &length) >= 0);
    show(length);
}
BEHAVIOUR("getsockname and getpeername") {
    struct sockaddr_un name;
    socklen_t length = sizeof name;
    int fd = new_socket(SOCK_STREAM);
    show(getpeername(fd, (void *)&name, &length));
    show(getsockname(fd, (void *)&name, &length));
    show(length);
    listener("s", 5);
    connect_to(fd, "s");
    length = 4;
    show(getpeername(fd, (void *)&name, &length));
    show(length);
    length = -1;
    show(getpeername(fd, (void *)&name, &length));
    show(getsockname(fd, (void *)&name, bad()));
    length = sizeof name;
    show(getsockname(fd, bad(), &length));
}
BEHAVIOUR("a stream mixes pieces, a seqpacket keeps them") {
    pair(SOCK_STREAM);
    write(a, "ab", 2);
    write(a, "cd", 2);
    show_read(b, 9);
    pair(SOCK_SEQPACKET);
    write(a, "ab", 2);
    write(a, "cd", 2);
    show_read(b, 9);
    show_read(b, 1);
    show_recv(b, 9, MSG_DONTWAIT);
}
BEHAVIOUR("MSG_TRUNC tells the length of a datagram, MSG_PEEK leaves it") {
    char bytes[4];
    pair(SOCK_DGRAM);
    send(a, "datagram", 8, 0);
    show(recv(b, bytes, 4, MSG_TRUNC | MSG_PEEK));
    show(recv(b, bytes, 4, 0));
    show(recv(b, bytes, 4, MSG_DONTWAIT));
}
BEHAVIOUR("an empty datagram arrives, an empty piece of a stream does not") {
    char byte;
    pair(SOCK_DGRAM);
    show(send(a, "", 0, 0));
    show(recv(b, &byte, 1, MSG_DONTWAIT));
    show(recv(b, &byte, 1, MSG_DONTWAIT));
    pair(SOCK_STREAM);
    show(send(a, "", 0, 0));
    show(recv(b, &byte, 1, MSG_DONTWAIT));
}
BEHAVIOUR("MSG_WAITALL waits for all, and ends at the end") {
    pair(SOCK_STREAM);
    IN_CHILD {
        write(a, "ab", 2);
        sleep_ms(10);
        write(a, "cd", 2);
    }
    show_recv(b, 4, MSG_WAITALL);
    write(a, "e", 1);
    close(a);
    show_recv(b, 4, MSG_WAITALL);
}
BEHAVIOUR("send and recv of a socket that is not connected") {
    char byte;
    int stream = new_socket(SOCK_STREAM), datagram = new_socket(SOCK_DGRAM);
    show(send(stream, "x", 1, MSG_NOSIGNAL));
    show(recv(stream, &byte, 1, MSG_DONTWAIT));
    show(send(datagram, "x", 1, 0));
    show(recv(datagram, &byte, 1, MSG_DONTWAIT));
    show(write(stream, "x", 1));
}
BEHAVIOUR("send to a peer that is gone: EPIPE and SIGPIPE, or MSG_NOSIGNAL") {
    pair(SOCK_STREAM);
    close(b);
    handle(SIGPIPE, 0);
    show(send(a, "x", 1, MSG_NOSIGNAL));
    show(handled);
    show(send(a, "x", 1, 0));
    show(handled);
}
BEHAVIOUR("a datagram to a peer that is gone") {
    pair(SOCK_DGRAM);
    close(b);
    show(send(a, "x", 1, 0));
}
BEHAVIOUR("a peer that closes with bytes unread: ECONNRESET after what it sent") {
    pair(SOCK_STREAM);
    write(a, "x", 1);
    write(b, "yz", 2);
    close(b);
    show_read(a, 1);
    show_read(a, 9);
    show_read(a, 9);
}
BEHAVIOUR("shutdown with a bad how, of a socket that is not connected") {
    pair(SOCK_STREAM);
    show(shutdown(a, 9));
    show(shutdown(new_socket(SOCK_STREAM), SHUT_RD));
    show(shutdown(99, SHUT_RD));
}
BEHAVIOUR("shutdown SHUT_WR: the peer reads the end, and can still send") {
    pair(SOCK_STREAM);
    write(a, "last", 4);
    show(shutdown(a, SHUT_WR));
    show(send(a, "x", 1, MSG_NOSIGNAL));
    show_read(b, 9);
    show_read(b, 9);
    show(write(b, "back", 4));
    show_read(a, 9);
}
BEHAVIOUR("shutdown SHUT_RD: reads end, the peer cannot send") {
    pair(SOCK_STREAM);
    show(shutdown(a, SHUT_RD));
    show_read(a, 1);
    show(send(b, "x", 1, MSG_NOSIGNAL));
}
BEHAVIOUR("poll of sockets: new, connected, with bytes, shut down, gone") {
    show_poll(new_socket(SOCK_STREAM));
    show_poll(new_socket(SOCK_DGRAM));
    pair(SOCK_STREAM);
    show_poll(a);
    write(b, "x", 1);
    show_poll(a);
    shutdown(b, SHUT_WR);
    show_poll(a);
    close(b);
    show_poll(a);
}
BEHAVIOUR("poll of a listening socket") {
    int server = listener("s", 5);
    show_poll(server);
    connect_to(new_socket(SOCK_STREAM), "s");
    show_poll(server);
}
BEHAVIOUR("sendto a name, recvfrom tells the sender's") {
    struct sockaddr_un to = name_of("receiver"), from;
    socklen_t length = sizeof from;
    char bytes[9] = "";
    int sender = new_socket(SOCK_DGRAM), receiver = new_socket(SOCK_DGRAM);
    bind_to(sender, "sender");
    bind_to(receiver, "receiver");
    show(sendto(sender, "text", 4, 0, (void *)&to, length_of("receiver")));
    show(recvfrom(receiver, bytes, 9, 0, (void *)&from, &length));
    note("%s %s %d", bytes, from.sun_path, (int)length);
}
BEHAVIOUR("sendto nothing, to a name that nobody has, of a stream, of another type") {
    struct sockaddr_un to = name_of("s");
    int datagram = new_socket(SOCK_DGRAM);
    show(sendto(datagram, "x", 1, 0, (void *)&to, length_of("s")));
    int server = listener("s", 5);
    show(sendto(datagram, "x", 1, 0, (void *)&to, length_of("s")));
    close(server);
    show(sendto(datagram, "x", 1, 0, (void *)&to, length_of("s")));
    pair(SOCK_STREAM);
    show(sendto(a, "x", 1, 0, (void *)&to, length_of("s")));
    show(sendto(new_socket(SOCK_STREAM), "x", 1, MSG_NOSIGNAL, (void *)&to, length_of("s")));
}
BEHAVIOUR("a connected datagram socket hears its peer alone") {
    struct sockaddr_un to = name_of("one");
    int one = new_socket(SOCK_DGRAM), two = new_socket(SOCK_DGRAM), three = new_socket(SOCK_DGRAM);
    bind_to(one, "one");
    bind_to(two, "two");
    show(connect_to(one, "two"));
    show(sendto(three, "x", 1, 0, (void *)&to, length_of("one")));
    show(sendto(two, "y", 1, 0, (void *)&to, length_of("one")));
    show_recv(one, 9, MSG_DONTWAIT);
}
BEHAVIOUR("sendmsg and recvmsg of pieces") {
    char one[2], two[9];
    struct iovec to[2] = {{"ab", 2}, {"cde", 3}}, into[2] = {{one, 2}, {two, 9}};
    struct msghdr message = {.msg_iov = to, .msg_iovlen = 2};
    pair(SOCK_SEQPACKET);
    show(sendmsg(a, &message, 0));
    message = (struct msghdr){.msg_iov = into, .msg_iovlen = 2, .msg_flags = 0x77};
    show(recvmsg(b, &message, 0));
    show_bytes(one, 2);
    show_bytes(two, 3);
    note("%x", message.msg_flags & ~MSG_EOR);
}
BEHAVIOUR("recvmsg tells that a message was cut") {
    char byte;
    struct iovec into = {&byte, 1};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1};
    pair(SOCK_DGRAM);
    write(a, "text", 4);
    show(recvmsg(b, &message, 0));
    note("%x", message.msg_flags);
}
BEHAVIOUR("sendmsg and recvmsg with bad memory, too many pieces") {
    char byte;
    struct iovec into = {&byte, 1};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1025};
    pair(SOCK_STREAM);
    show(sendmsg(a, bad(), 0));
    show(recvmsg(b, bad(), 0));
    show(sendmsg(a, &message, 0));
    message = (struct msghdr){.msg_iov = bad(), .msg_iovlen = 1};
    show(sendmsg(a, &message, 0));
}
BEHAVIOUR("a message may have as many bytes as the sender's buffer, but for 32") {
    static char bytes[300000], into[300000];
    int kinds[] = {SOCK_DGRAM, SOCK_SEQPACKET}, size;
    for (int i = 0; i < 2; i++) {
        pair(kinds[i]);
        socklen_t length = sizeof size;
        getsockopt(a, SOL_SOCKET, SO_SNDBUF, &size, &length);
        show(size);
        memset(bytes, 'a' + i, sizeof bytes);
        show(send(a, bytes, (size_t)size - 31, MSG_DONTWAIT));
        show(send(a, bytes, (size_t)size - 32, MSG_DONTWAIT));
        show(recv(b, into, sizeof into, 0));
        note("%d", memcmp(bytes, into, (size_t)size - 32));
        size = 1000;
        must(setsockopt(a, SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
        show(send(a, bytes, 4608 - 31, MSG_DONTWAIT));
        show(send(a, bytes, 4608 - 32, MSG_DONTWAIT));
        show(recv(b, into, sizeof into, 0));
        close(a);
        close(b);
    }
}
// Children that wait to send so many bytes with a descriptor each, into a socket that is full; then all is read.
static void note_waiting_senders(int type, size_t bytes) {
    static char text[100000], into[100000];
    enum { SENDERS = 4 };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {text, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    pair(type);
    memcpy(CMSG_DATA(&control.head), &a, sizeof a);
    while (send(a, text, bytes, MSG_DONTWAIT) > 0)
        ;
    for (int i = 0; i < SENDERS; i++) {
        pid_t child = must(fork());
        if (child == 0)
            _exit(sendmsg(a, &message, 0) == (ssize_t)bytes ? 0 : 1);
        wait_until_asleep(child);
    }
    int failed = 0, status;
    for (int left = SENDERS; left > 0;) {
        recv(b, into, sizeof into, MSG_DONTWAIT);
        if (waitpid(-1, &status, WNOHANG) > 0) {
            failed += status != 0;
            left--;
        }
    }
    show(failed);
    close(a);
    close(b);
}
BEHAVIOUR("several processes wait to send descriptors into a full socket, and all of them come to it") {
    note_waiting_senders(SOCK_STREAM, 30000);
    note_waiting_senders(SOCK_SEQPACKET, 30000);
    note_waiting_senders(SOCK_DGRAM, 30000);
}
BEHAVIOUR("a message that is too long for a datagram or a seqpacket") {
    static char bytes[1 << 20];
    pair(SOCK_DGRAM);
    show(send(a, bytes, sizeof bytes, MSG_DONTWAIT));
    pair(SOCK_SEQPACKET);
    show(send(a, bytes, sizeof bytes, MSG_DONTWAIT));
}
BEHAVIOUR("a stream whose buffer is full") {
    static char bytes[4096];
    pair(SOCK_STREAM);
    fcntl(a, F_SETFL, O_NONBLOCK);
    while (write(a, bytes, sizeof bytes) > 0)
        ;
    show(-1);
    show_poll(a);
}
BEHAVIOUR("SO_TYPE, SO_DOMAIN, SO_PROTOCOL, SO_ACCEPTCONN, SO_ERROR") {
    int server = listener("s", 5);
    show_option(server, SOL_SOCKET, SO_TYPE);
    show_option(server, SOL_SOCKET, SO_DOMAIN);
    show_option(server, SOL_SOCKET, SO_PROTOCOL);
    show_option(server, SOL_SOCKET, SO_ACCEPTCONN);
    show_option(new_socket(SOCK_DGRAM), SOL_SOCKET, SO_ACCEPTCONN);
    show_option(server, SOL_SOCKET, SO_ERROR);
}
BEHAVIOUR("getsockopt and setsockopt of unknown levels, options, with bad memory and lengths") {
    int value = 1;
    socklen_t length = sizeof value;
    pair(SOCK_STREAM);
    show_option(a, 77, SO_TYPE);
    show_option(a, SOL_SOCKET, 7777);
    show(setsockopt(a, SOL_SOCKET, 7777, &value, sizeof value));
    show(setsockopt(a, SOL_SOCKET, SO_TYPE, &value, sizeof value));
    show(setsockopt(a, SOL_SOCKET, SO_PASSCRED, &value, 1));
    show(setsockopt(a, SOL_SOCKET, SO_PASSCRED, bad(), sizeof value));
    show(getsockopt(a, SOL_SOCKET, SO_TYPE, &value, bad()));
    show(getsockopt(a, SOL_SOCKET, SO_TYPE, bad(), &length));
    length = -1;
    show(getsockopt(a, SOL_SOCKET, SO_TYPE, &value, &length));
    length = 1;
    show(getsockopt(a, SOL_SOCKET, SO_TYPE, &value, &length));
    show(length);
}
BEHAVIOUR("SO_RCVTIMEO ends a wait") {
    struct timeval time = {0, 20000}, wrong = {0, 1000000};
    char byte;
    pair(SOCK_STREAM);
    show(setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &wrong, sizeof wrong));
    show(setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    show(recv(a, &byte, 1, 0));
}
BEHAVIOUR("SO_PEERCRED of a pair and of a connection") {
    struct ucred who;
    socklen_t length = sizeof who;
    pair(SOCK_STREAM);
    show(getsockopt(a, SOL_SOCKET, SO_PEERCRED, &who, &length));
    note("%d %d", who.pid == getpid(), (int)who.uid);
    int server = listener("s", 5);
    chmod("s", 0777);
    pid_t child = fork();
    if (child == 0) {
        become(USER);
        int fd = new_socket(SOCK_STREAM);
        connect_to(fd, "s");
        show_read(fd, 1);
        _exit(0);
    }
    int peer = accept(server, NULL, NULL);
    show(getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &length));
    note("%d %d %d", who.pid == child, (int)who.uid, (int)who.gid);
    close(peer);
    wait_for(child);
}
BEHAVIOUR("sockets have no offset") {
    pair(SOCK_STREAM);
    char byte;
    show(lseek(a, 0, SEEK_SET));
    show(pread(a, &byte, 1, 0));
    show(ftruncate(a, 0));
    show(fsync(a));
}
BEHAVIOUR("fstat of a socket; FIONREAD counts what can be read") {
    struct stat at;
    int count = -1;
    pair(SOCK_STREAM);
    fstat(a, &at);
    note("%o", at.st_mode);
    write(b, "text", 4);
    show(ioctl(a, FIONREAD, &count));
    show(count);
}
BEHAVIOUR("sendmmsg and recvmmsg of datagrams") {
    char bytes[2][4];
    struct iovec pieces[2] = {{"ab", 2}, {"cde", 3}}, into[2] = {{bytes[0], 4}, {bytes[1], 4}};
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &pieces[0], .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &pieces[1], .msg_iovlen = 1}}};
    pair(SOCK_DGRAM);
    show(sendmmsg(a, messages, 2, 0));
    note("%u %u", messages[0].msg_len, messages[1].msg_len);
    messages[0].msg_hdr.msg_iov = &into[0];
    messages[1].msg_hdr.msg_iov = &into[1];
    show(recvmmsg(b, messages, 2, MSG_DONTWAIT, NULL));
    show_bytes(bytes[1], messages[1].msg_len);
    show(recvmmsg(b, messages, 2, MSG_DONTWAIT, NULL));
}
BEHAVIOUR("MSG_OOB to a datagram socket, and unknown flags") {
    pair(SOCK_DGRAM);
    show(send(a, "x", 1, MSG_OOB));
    show(send(a, "x", 1, 0x800000));
    show_recv(b, 1, MSG_DONTWAIT);
}
BEHAVIOUR("SCM_RIGHTS hands over a descriptor, with the offset of the open file") {
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte;
    struct iovec piece = {"x", 1}, into = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    make("f", "abcdef");
    int fd = open("f", O_RDONLY);
    show_read(fd, 2);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &fd, sizeof fd);
    pair(SOCK_STREAM);
    show(sendmsg(a, &message, 0));
    message.msg_iov = &into;
    show(recvmsg(b, &message, MSG_DONTWAIT));
    int got;
    memcpy(&got, CMSG_DATA(control), sizeof got);
    show_read(got, 2);
}
BEHAVIOUR("a child uses the socket of its parent") {
    pair(SOCK_STREAM);
    IN_CHILD { write(a, "child", 5); }
    close(a);
    show_read(b, 9);
    show_read(b, 9);
}

/* Sends until there is no room. */
static void fill(int fd) {
    char bytes[1024] = {0};
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) >= 0)
        ;
    if (errno != EAGAIN)
        show(-1);
}
static void drain(int fd) {
    char bytes[1024];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) >= 0)
        ;
}
/* A datagram socket with a name, and one that is connected to it. */
static int server, client;
static void new_client(void) {
    server = new_socket(SOCK_DGRAM);
    must(bind_to(server, "server"));
    client = new_socket(SOCK_DGRAM);
    must(connect_to(client, "server"));
}
static void show_epoll_out(int epoll) {
    struct epoll_event event = {0};
    if (epoll_wait(epoll, &event, 1, 0) < 0)
        show(-1);
    note("%x", event.events);
}
static int epoll_out(int fd, uint32_t how) {
    struct epoll_event event = {.events = EPOLLOUT | how};
    int epoll = must(epoll_create1(0));
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    return epoll;
}
BEHAVIOUR("a datagram socket of a pair is ready for sending while its peer has room") {
    pair(SOCK_DGRAM);
    show_poll(a);
    fill(a);
    show_poll(a);
    show_poll(b);
    drain(b);
    show_poll(a);
}
BEHAVIOUR("a datagram socket that is connected is ready for sending while its peer has room") {
    new_client();
    int other = new_socket(SOCK_DGRAM);
    show_poll(client);
    fill(client);
    show_poll(client);
    show_poll(other);
    drain(server);
    show_poll(client);
}
BEHAVIOUR("poll waits until the peer of a datagram socket has room") {
    new_client();
    fill(client);
    pid_t child = fork();
    if (child == 0) {
        struct pollfd asked = {.fd = client, .events = POLLOUT};
        show(poll(&asked, 1, 5000));
        note("%x", asked.revents);
        _exit(0);
    }
    sleep_ms(10);
    wait_until_asleep(child);
    drain(server);
    wait_for(child);
}
BEHAVIOUR("epoll of a datagram socket whose peer gets full and empty, by level and by edge") {
    new_client();
    int level = epoll_out(client, 0), edge = epoll_out(client, EPOLLET);
    show_epoll_out(level);
    show_epoll_out(edge);
    fill(client);
    show_epoll_out(level);
    drain(server);
    show_epoll_out(level);
    show_epoll_out(edge);
    show_epoll_out(edge);
}
BEHAVIOUR("a datagram socket that is connected to a full one after it was registered") {
    new_client();
    fill(client);
    int late = new_socket(SOCK_DGRAM), epoll = epoll_out(late, 0);
    show_epoll_out(epoll);
    must(connect_to(late, "server"));
    show_epoll_out(epoll);
    drain(server);
    show_epoll_out(epoll);
}
BEHAVIOUR("a datagram socket is ready for sending when its full peer is closed or deaf") {
    new_client();
    fill(client);
    shutdown(server, SHUT_RD);
    show_poll(client);
    show(send(client, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
    close(server);
    show_poll(client);
    show(send(client, "x", 1, MSG_DONTWAIT));
}
