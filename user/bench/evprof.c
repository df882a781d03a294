#define _GNU_SOURCE
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>
#include "ticks.h"
#define MARK(k) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00," #k ",0x5a,0x5a,0x51")
int main(void)
{
    char buffer[64] = {0};
    int master, slave; struct termios raw;
    openpty(&master, &slave, 0, 0, 0); tcgetattr(slave, &raw); cfmakeraw(&raw); tcsetattr(slave, TCSANOW, &raw);
    for (int i = 0; i < 10; i++) { write(master, buffer, 64); read(slave, buffer, 64); write(slave, buffer, 64); read(master, buffer, 64); }
    MARK(1); for (int i = 0; i < 1000; i++) { write(master, buffer, 64); read(slave, buffer, 64); } MARK(255);
    MARK(2); for (int i = 0; i < 1000; i++) { write(slave, buffer, 64); read(master, buffer, 64);} MARK(255);
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr head; } control;
    char byte = 0;
    struct iovec piece = { &byte, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control };
    int pair[2], file = open("/dev/null", O_RDONLY);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    for (int i = 0; i < 1010; i++) {
        if (i == 10) MARK(3);
        control.head = (struct cmsghdr) { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
        *(int *) CMSG_DATA(&control.head) = file;
        message.msg_controllen = sizeof control;
        sendmsg(pair[0], &message, 0);
        message.msg_controllen = sizeof control;
        recvmsg(pair[1], &message, 0);
        close(*(int *) CMSG_DATA(&control.head));
    }
    MARK(255);
    for (int i = 0; i < 1010; i++) { if (i == 10) MARK(4); socketpair(AF_UNIX, SOCK_STREAM, 0, pair); close(pair[0]); close(pair[1]); }
    MARK(255);
    struct signalfd_siginfo info; sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR1); sigprocmask(SIG_BLOCK, &set, 0);
    int fd = signalfd(-1, &set, 0); pid_t self = getpid();
    for (int i = 0; i < 1010; i++) { if (i == 10) MARK(5); kill(self, SIGUSR1); read(fd, &info, sizeof info); }
    MARK(255);
    return 0;
}
