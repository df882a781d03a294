/* What behaviours of descriptors that become ready share: poll and epoll of one descriptor, and descriptors in flight. Include after
 * behaviour.h. */
#include <sys/epoll.h>
#include <sys/socket.h>

/* Shows what of POLLIN and POLLOUT a descriptor is ready for; nothing else of what poll tells. */
__attribute__((unused)) static void show_poll(int fd, int timeout) {
    struct pollfd asked = {.fd = fd, .events = POLLIN | POLLOUT};
    long result = poll(&asked, 1, timeout);
    if (result < 0)
        show(result);
    else
        note("%s%s", asked.revents & POLLIN ? "in" : "-", asked.revents & POLLOUT ? "out" : "-");
}

/* An epoll that a descriptor is registered with. */
__attribute__((unused)) static int epoll_of(int fd, uint32_t events) {
    struct epoll_event event = {.events = events};
    int epoll = must(epoll_create1(EPOLL_CLOEXEC));
    must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    return epoll;
}

/* Shows the events that an epoll of one descriptor has now, or when its time is over. */
__attribute__((unused)) static void show_epoll(int epoll, int timeout) {
    struct epoll_event event = {0};
    long result = epoll_wait(epoll, &event, 1, timeout);
    if (result < 0)
        show(result);
    else
        note("%x", event.events & (EPOLLIN | EPOLLOUT));
}

/* A pair of sockets that descriptors are sent by, from the first to the second. */
__attribute__((unused)) static void new_link(int ends[2]) { must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)); }

union descriptor_message {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr head;
};

__attribute__((unused)) static void send_descriptor(int link, int fd) {
    struct iovec byte = {"x", 1};
    union descriptor_message control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    must(sendmsg(link, &message, 0));
}

__attribute__((unused)) static int receive_descriptor(int link) {
    char byte;
    int fd;
    struct iovec room = {&byte, 1};
    union descriptor_message control = {0};
    struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    must(recvmsg(link, &message, 0));
    memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
    return fd;
}

/* Puts a descriptor into flight, closes it, and receives it again. */
__attribute__((unused)) static int through_a_socket(int fd) {
    int ends[2];
    new_link(ends);
    send_descriptor(ends[0], fd);
    close(fd);
    fd = receive_descriptor(ends[1]);
    close(ends[0]);
    close(ends[1]);
    return fd;
}
