/* Pairs of local stream sockets. Prints the same on Linux and on Skink. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "show.h"

static void ready(const char *what, int socket) {
    struct pollfd interest = {socket, POLLIN | POLLOUT | POLLRDHUP, 0};
    poll(&interest, 1, 0);
    printf("%s is ready for %x\n", what, interest.revents);
}

static int option(int socket, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    if (getsockopt(socket, SOL_SOCKET, name, &value, &length) || length != sizeof value) return -1;
    return value;
}

static volatile sig_atomic_t signals;

static void on_signal(int signal) {
    (void)signal;
    signals++;
}

static void errors(void) {
    int pair[2], value;
    socklen_t length = sizeof value;
    show("family", socketpair(77, SOCK_STREAM, 0, pair));
    show("type", socketpair(AF_UNIX, 9, 0, pair));
    show("protocol", socketpair(AF_UNIX, SOCK_STREAM, 7, pair));
    show("flags", socketpair(AF_UNIX, SOCK_STREAM | 0x100, 0, pair));
    show("bad memory", syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 8));
    show("send to a file", send(1, "a", 1, 0));
    show("shut a file down", shutdown(1, SHUT_WR));
    show("option of a file", getsockopt(1, SOL_SOCKET, SO_TYPE, &value, &length));
    show("no descriptor", send(1000, "a", 1, 0));
    show("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
    printf("close on exec: %d, flags %o\n", fcntl(pair[0], F_GETFD), fcntl(pair[1], F_GETFL));
    show("nothing there", read(pair[0], &value, 4));
    show("bad address", send(pair[0], (void *)8, 4, 0));
    show("shut down nothing", shutdown(pair[0], 3));
    show("unknown option", getsockopt(pair[0], SOL_SOCKET, 999, &value, &length));
    show("seek", lseek(pair[0], 0, SEEK_CUR));
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/x"};
    show("send to another", sendto(pair[0], "a", 1, 0, (struct sockaddr *)&name, sizeof name));
    printf("type %d, domain %d, error %d\n", option(pair[0], SO_TYPE), option(pair[0], SO_DOMAIN), option(pair[0], SO_ERROR));
    length = sizeof name;
    show("name", getsockname(pair[0], (struct sockaddr *)&name, &length));
    printf("%d of %d bytes\n", name.sun_family, length);
    length = sizeof name;
    show("peer's name", getpeername(pair[0], (struct sockaddr *)&name, &length));
    struct stat stat;
    show("fstat", fstat(pair[0], &stat));
    printf("mode %o\n", stat.st_mode);
    close(pair[0]);
    close(pair[1]);
}

static void talking(void) {
    int pair[2], bytes;
    char buffer[64] = "";
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    ready("a new socket", pair[0]);
    show("write", write(pair[0], "hello ", 6));
    show("send", send(pair[0], "world", 5, 0));
    ready("its peer", pair[1]);
    ioctl(pair[1], FIONREAD, &bytes);
    printf("%d bytes wait\n", bytes);
    show("read", read(pair[1], buffer, sizeof buffer));
    puts(buffer);
    show("receive nothing", recv(pair[1], buffer, sizeof buffer, MSG_DONTWAIT));
    struct iovec pieces[2] = {{"one, ", 5}, {"two", 3}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    show("sendmsg", sendmsg(pair[1], &message, 0));
    char first[4], second[16];
    struct sockaddr_un name;
    struct iovec rooms[2] = {{first, 4}, {second, 16}};
    struct msghdr received = {.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = rooms, .msg_iovlen = 2};
    show("recvmsg", recvmsg(pair[0], &received, 0));
    printf("%.4s|%.4s, name of %d, control of %zu, flags %x\n", first, second, received.msg_namelen,
           received.msg_controllen, received.msg_flags);
    socklen_t length = sizeof name;
    show("send back", send(pair[1], "again", 5, MSG_NOSIGNAL));
    show("recvfrom", recvfrom(pair[0], buffer, sizeof buffer, 0, (struct sockaddr *)&name, &length));
    printf("name of %d\n", length);
    fflush(stdout);
    if (fork() == 0) {
        close(pair[0]);
        int sum = 0, got;
        char large[5000];
        while ((got = read(pair[1], large, sizeof large)) > 0) sum += got;
        write(pair[1], &sum, sizeof sum);
        _exit(0);
    }
    close(pair[1]);
    char large[3000] = "";
    for (int i = 0; i < 300; i++) write(pair[0], large, sizeof large);
    show("shut down", shutdown(pair[0], SHUT_WR));
    show("wait for the answer", read(pair[0], &bytes, sizeof bytes));
    printf("the child got %d\n", bytes);
    show("end", read(pair[0], &bytes, sizeof bytes));
    wait(NULL);
    ready("alone", pair[0]);
    close(pair[0]);
}

static void ending(void) {
    int pair[2];
    char byte;
    signal(SIGPIPE, on_signal);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    show("shut writing down", shutdown(pair[0], SHUT_WR));
    show("write", write(pair[0], "a", 1));
    show("send", send(pair[0], "a", 1, MSG_NOSIGNAL));
    show("peer reads", read(pair[1], &byte, 1));
    ready("it", pair[0]);
    ready("its peer", pair[1]);
    show("peer writes", write(pair[1], "b", 1));
    show("read", read(pair[0], &byte, 1));
    show("shut reading down", shutdown(pair[0], SHUT_RD));
    show("read", read(pair[0], &byte, 1));
    show("peer writes", write(pair[1], "b", 1));
    ready("it", pair[0]);
    ready("its peer", pair[1]);
    printf("%d signals\n", signals);
    close(pair[0]);
    show("alone", send(pair[1], "a", 1, MSG_NOSIGNAL));
    show("reads", read(pair[1], &byte, 1));
    printf("%d signals\n", signals);
    close(pair[1]);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    write(pair[0], "left", 4);
    close(pair[0]);
    char buffer[8];
    ready("what is left", pair[1]);
    show("read", read(pair[1], buffer, 8));
    show("end", read(pair[1], buffer, 8));
    show("write", write(pair[1], "a", 1));
    printf("%d signals\n", signals);
}

int main(void) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    errors();
    talking();
    ending();
    return 0;
}
