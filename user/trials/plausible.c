/* plausible: random calls on event descriptors, local sockets, pseudo-terminals, watches, splices, System V objects and their neighbours,
 * with arguments that make sense most of the time: whoever makes them, the system goes on.
 *
 * usage: plausible CALLS [SEED]. The calls are made by children without privileges (uid 65534), each with a pool of descriptors of all
 * kinds, which the calls themselves fill; a child that gets stuck is killed. Ends with 0 when all calls have been made.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 2000, NOBODY = 65534, DESCRIPTORS = 48, BYTES = 1 << 16 };

/* What an argument means. */
enum kind { END, FD, FLAGS, SMALL, LENGTH, BUFFER, PATH, VECTOR, MESSAGE, NAME, NAME_BYTES, SET, TIME, POLLS, EVENT, PROCESS, ID, KEY, REQUEST, TYPE };

struct call {
    long number;
    enum kind arguments[6];
};

static const struct call calls[] = {
    {SYS_eventfd2, {SMALL, FLAGS}},
    {SYS_epoll_create1, {FLAGS}},
    {SYS_epoll_ctl, {FD, SMALL, FD, EVENT}},
    {SYS_epoll_pwait, {FD, EVENT, SMALL, SMALL, SET, SMALL}},
    {SYS_poll, {POLLS, SMALL, SMALL}},
    {SYS_ppoll, {POLLS, SMALL, TIME, SET, SMALL}},
    {SYS_select, {SMALL, SET, SET, SET, TIME}},
    {SYS_signalfd4, {FD, SET, SMALL, FLAGS}},
    {SYS_timerfd_create, {SMALL, FLAGS}},
    {SYS_timerfd_settime, {FD, SMALL, TIME, BUFFER}},
    {SYS_inotify_init1, {FLAGS}},
    {SYS_inotify_add_watch, {FD, PATH, FLAGS}},
    {SYS_inotify_rm_watch, {FD, SMALL}},
    {SYS_pidfd_open, {PROCESS, FLAGS}},
    {SYS_pidfd_send_signal, {FD, SMALL, BUFFER, SMALL}},
    {SYS_pidfd_getfd, {FD, FD, SMALL}},
    {SYS_memfd_create, {PATH, SMALL}},
    {SYS_socket, {TYPE, TYPE, END}},
    {SYS_socketpair, {TYPE, TYPE, END, BUFFER}},
    {SYS_bind, {FD, NAME, NAME_BYTES}},
    {SYS_connect, {FD, NAME, NAME_BYTES}},
    {SYS_listen, {FD, SMALL}},
    {SYS_accept4, {FD, NAME, BUFFER, FLAGS}},
    {SYS_sendmsg, {FD, MESSAGE, FLAGS}},
    {SYS_recvmsg, {FD, MESSAGE, FLAGS}},
    {SYS_sendto, {FD, BUFFER, LENGTH, FLAGS, NAME, NAME_BYTES}},
    {SYS_recvfrom, {FD, BUFFER, LENGTH, FLAGS, NAME, BUFFER}},
    {SYS_shutdown, {FD, SMALL}},
    {SYS_setsockopt, {FD, SMALL, SMALL, BUFFER, SMALL}},
    {SYS_getsockopt, {FD, SMALL, SMALL, BUFFER, BUFFER}},
    {SYS_getsockname, {FD, NAME, BUFFER}},
    {SYS_pipe2, {BUFFER, FLAGS}},
    {SYS_splice, {FD, BUFFER, FD, BUFFER, LENGTH, SMALL}},
    {SYS_splice, {FD, END, FD, END, LENGTH, SMALL}},
    {SYS_tee, {FD, FD, LENGTH, SMALL}},
    {SYS_vmsplice, {FD, VECTOR, SMALL, SMALL}},
    {SYS_sendfile, {FD, FD, END, LENGTH}},
    {SYS_copy_file_range, {FD, END, FD, END, LENGTH, END}},
    {SYS_read, {FD, BUFFER, LENGTH}},
    {SYS_write, {FD, BUFFER, LENGTH}},
    {SYS_readv, {FD, VECTOR, SMALL}},
    {SYS_writev, {FD, VECTOR, SMALL}},
    {SYS_openat, {FD, PATH, FLAGS, SMALL}},
    {SYS_ioctl, {FD, REQUEST, BUFFER}},
    {SYS_fcntl, {FD, SMALL, SMALL}},
    {SYS_dup, {FD}},
    {SYS_close, {FD}},
    {SYS_setxattr, {PATH, PATH, BUFFER, SMALL, SMALL}},
    {SYS_getxattr, {PATH, PATH, BUFFER, LENGTH}},
    {SYS_fallocate, {FD, SMALL, SMALL, LENGTH}},
    {SYS_ftruncate, {FD, LENGTH}},
    {SYS_lseek, {FD, LENGTH, SMALL}},
    {SYS_unlink, {PATH}},
    {SYS_renameat2, {FD, PATH, FD, PATH, SMALL}},
    {SYS_linkat, {FD, PATH, FD, PATH, FLAGS}},
    {SYS_msgget, {KEY, FLAGS}},
    {SYS_msgsnd, {ID, BUFFER, SMALL, FLAGS}},
    {SYS_msgrcv, {ID, BUFFER, LENGTH, SMALL, FLAGS}},
    {SYS_msgctl, {ID, SMALL, BUFFER}},
    {SYS_shmget, {KEY, LENGTH, FLAGS}},
    {SYS_shmat, {ID, END, SMALL}},
    {SYS_shmctl, {ID, SMALL, BUFFER}},
    {SYS_semget, {KEY, SMALL, FLAGS}},
    {SYS_semop, {ID, BUFFER, SMALL}},
    {SYS_prctl, {SMALL, SMALL, SMALL}},
    {SYS_prlimit64, {PROCESS, SMALL, END, BUFFER}},
    {SYS_ioprio_get, {SMALL, PROCESS}},
    {SYS_membarrier, {SMALL, SMALL, SMALL}},
};

/* Calls made so far by the present child, so that its successor does the rest. Shared memory. */
static volatile uint64_t *done;
static uint64_t random_state;
static char *buffer;

/* xorshift64*: the same calls for the same seed. */
static uint64_t random_number(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull >> 8;
}

static void *place(void)
{
    return buffer + random_number() % (BYTES / 2 / 16) * 16;
}

static const char *path(void)
{
    static const char *paths[] = {"a", "b", "d", "d/a", "d/fifo", ".", "..", "/dev/ptmx", "/dev/pts/0", "/dev/null", "/proc/self/fd/3",
                                  "/proc/self/status", "user.a", "user.b", "socket", "/tmp/plausible/socket"};
    return paths[random_number() % (sizeof paths / sizeof *paths)];
}

static struct sockaddr_un *name(void)
{
    struct sockaddr_un *name = place();
    name->sun_family = AF_UNIX;
    snprintf(name->sun_path, 20, "%cname%u", random_number() % 2 ? 's' : 0, (unsigned)random_number() % 4);
    return name;
}

static struct iovec *vector(void)
{
    struct iovec *pieces = place();
    for (int i = 0; i < 8; i++)
        pieces[i] = (struct iovec){place(), random_number() % 5000};
    return pieces;
}

/* With descriptors in its control data, when it is sent. */
static struct msghdr *message(void)
{
    struct msghdr *message = place();
    struct cmsghdr *control = place();
    int count = random_number() % 4;
    *control = (struct cmsghdr){CMSG_LEN(count * sizeof(int)), SOL_SOCKET, random_number() % 3 ? SCM_RIGHTS : SCM_CREDENTIALS};
    for (int i = 0; i < count; i++)
        ((int *)CMSG_DATA(control))[i] = random_number() % DESCRIPTORS;
    *message = (struct msghdr){random_number() % 4 ? NULL : name(), 16, vector(), random_number() % 4, control, CMSG_SPACE(count * sizeof(int)), 0};
    return message;
}

static uint64_t flags(void)
{
    static const int some[] = {0, O_NONBLOCK, O_CLOEXEC, O_CREAT, O_RDWR, O_WRONLY, O_TRUNC, O_APPEND, O_TMPFILE, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC,
                               IPC_CREAT | 0600, IPC_NOWAIT, IN_ALL_EVENTS, IN_ONESHOT, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, EFD_SEMAPHORE};
    int count = sizeof some / sizeof *some;
    return some[random_number() % count] | some[random_number() % count];
}

static void *polls(void)
{
    struct pollfd *polls = place();
    for (int i = 0; i < 8; i++)
        polls[i] = (struct pollfd){random_number() % DESCRIPTORS, random_number() % 64, 0};
    return polls;
}

static void *event(void)
{
    struct epoll_event *event = place();
    static const uint32_t kinds[] = {EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLET, EPOLLIN | EPOLLONESHOT, EPOLLIN | EPOLLEXCLUSIVE, EPOLLRDHUP};
    *event = (struct epoll_event){kinds[random_number() % 6], {.u64 = random_number()}};
    return event;
}

static uint64_t argument(enum kind kind)
{
    static const unsigned long requests[] = {FIONREAD, FIONBIO, TCGETS, TCSETS, TIOCGWINSZ, TIOCSWINSZ, TIOCGPTN, TIOCSPTLCK, TIOCPKT, TIOCSCTTY,
                                             TIOCGPGRP, TIOCSPGRP, TIOCNOTTY, TIOCSTI, TCFLSH, TIOCVHANGUP, FIOASYNC};
    if (random_number() % 64 == 0)
        return random_number();
    switch (kind) {
    case FD: return random_number() % 32 ? random_number() % DESCRIPTORS : (uint64_t)AT_FDCWD;
    case FLAGS: return flags();
    case SMALL: return random_number() % 32 ? random_number() % 16 : random_number() % 2048;
    case LENGTH: return random_number() % 4 ? random_number() % 9000 : random_number() % BYTES;
    case BUFFER: return (uint64_t)place();
    case PATH: return (uint64_t)path();
    case VECTOR: return (uint64_t)vector();
    case MESSAGE: return (uint64_t)message();
    case NAME: return (uint64_t)name();
    case NAME_BYTES: return offsetof(struct sockaddr_un, sun_path) + random_number() % 12;
    case SET: memset(buffer, random_number(), 16); return (uint64_t)buffer;
    case TIME: *(struct timespec *)buffer = (struct timespec){0, random_number() % 100000}; return (uint64_t)buffer;
    case POLLS: return (uint64_t)polls();
    case EVENT: return (uint64_t)event();
    case PROCESS: return random_number() % 4 ? (uint64_t)getpid() : random_number() % 64;
    case ID: return random_number() % 8 ? random_number() % 8 : random_number() % (1 << 20);
    case KEY: return random_number() % 6;
    /* AF_UNIX is one of them. */
    case TYPE: return (const int[]){SOCK_STREAM, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET | SOCK_NONBLOCK}[random_number() % 4];
    case REQUEST: return requests[random_number() % (sizeof requests / sizeof *requests)];
    case END: break;
    }
    return 0;
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* Ends calls that wait: every 5 ms a signal interrupts. */
static void start_interruptions(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval interval = {{0, 5000}, {0, 5000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &interval, NULL);
}

static void run_batch(uint64_t seed, uint64_t count)
{
    struct rlimit descriptors = {DESCRIPTORS, DESCRIPTORS};
    setpgid(0, 0);
    setrlimit(RLIMIT_NOFILE, &descriptors);
    if (chdir("/tmp/plausible") != 0 || setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        _exit(1);
    mkdir("d", 0700);
    mkfifo("d/fifo", 0600);
    buffer = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    start_interruptions();
    random_state = seed;
    while (*done < count) {
        const struct call *call = &calls[random_number() % (sizeof calls / sizeof *calls)];
        uint64_t a[6];
        for (int i = 0; i < 6; i++)
            a[i] = argument(call->arguments[i]);
        ++*done;
        syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    _exit(0);
}

/* Waits for the child; one that makes no progress for a second is killed. */
static void supervise(pid_t child)
{
    uint64_t before = -1ull;
    for (;;) {
        struct timespec pause = {0, 10000000};
        for (int i = 0; i < 100; i++) {
            if (waitpid(child, NULL, WNOHANG) == child) {
                kill(-child, SIGKILL);
                return;
            }
            nanosleep(&pause, NULL);
        }
        if (*done == before)
            kill(child, SIGKILL);
        before = *done;
    }
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    if (count == 0) {
        fprintf(stderr, "usage: plausible CALLS [SEED]\n");
        return 2;
    }
    done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mkdir("/tmp/plausible", 0777);
    chmod("/tmp/plausible", 0777);
    for (uint64_t made = 0; made < count;) {
        uint64_t batch = count - made < BATCH ? count - made : BATCH;
        *done = 0;
        pid_t child = fork();
        if (child == 0)
            run_batch(seed ^ (made + 1) * 0x9e3779b97f4a7c15ull, batch);
        if (child < 0) {
            fprintf(stderr, "plausible: a child could not start: %s\n", strerror(errno));
            return 1;
        }
        supervise(child);
        if (*done == 0) {
            fprintf(stderr, "plausible: a child could not begin\n");
            return 1;
        }
        made += *done;
    }
    return 0;
}
