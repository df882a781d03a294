/* plausible: random calls on event descriptors, local sockets, pseudo-terminals, watches, splices, contexts of asynchronous I/O, System V
 * objects and their neighbours, with arguments that make sense most of the time: whoever makes them, the system goes on.
 *
 * usage: plausible CALLS [SEED]. Each child has a pool of descriptors of all kinds, which the calls themselves fill. Ends with 0 when all
 * calls have been made: whether the system is unharmed is for others to see.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "batches.h"

enum { DESCRIPTORS = 48, BYTES = 1 << 16 };

/* What an argument means. */
enum kind { END, FD, FLAGS, SMALL, LENGTH, BUFFER, PATH, VECTOR, MESSAGE, NAME, NAME_BYTES, SET, TIME, POLLS, EVENT, PROCESS, ID, KEY, REQUEST, TYPE, CONTEXT, CONTEXT_PLACE, IOCB, IOCBS };

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
    {SYS_io_setup, {SMALL, CONTEXT_PLACE}},
    {SYS_io_submit, {CONTEXT, SMALL, IOCBS}},
    {SYS_io_getevents, {CONTEXT, SMALL, SMALL, BUFFER, TIME}},
    {SYS_io_pgetevents, {CONTEXT, SMALL, SMALL, BUFFER, TIME, BUFFER}},
    {SYS_io_cancel, {CONTEXT, IOCB, BUFFER}},
    {SYS_io_destroy, {CONTEXT}},
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

static char *buffer;

static uint64_t below(uint64_t limit)
{
    return (random_number() >> 8) % limit;
}

static void *place(void)
{
    return buffer + below(BYTES / 2 / 16) * 16;
}

static const char *path(void)
{
    static const char *paths[] = {"a", "b", "d", "d/a", "d/fifo", ".", "..", "/dev/ptmx", "/dev/pts/0", "/dev/null", "/proc/self/fd/3",
                                  "/proc/self/status", "user.a", "user.b", "socket", "/tmp/plausible/socket"};
    return paths[below(sizeof paths / sizeof *paths)];
}

static struct sockaddr_un *name(void)
{
    struct sockaddr_un *name = place();
    name->sun_family = AF_UNIX;
    snprintf(name->sun_path, 20, "%cname%u", below(2) ? 's' : 0, (unsigned)below(4));
    return name;
}

static struct iovec *vector(void)
{
    struct iovec *pieces = place();
    for (int i = 0; i < 8; i++)
        pieces[i] = (struct iovec){place(), below(5000)};
    return pieces;
}

/* With descriptors in its control data, when it is sent. */
static struct msghdr *message(void)
{
    struct msghdr *message = place();
    struct cmsghdr *control = place();
    int count = below(4);
    *control = (struct cmsghdr){CMSG_LEN(count * sizeof(int)), SOL_SOCKET, below(3) ? SCM_RIGHTS : SCM_CREDENTIALS};
    for (int i = 0; i < count; i++)
        ((int *)CMSG_DATA(control))[i] = below(DESCRIPTORS);
    *message = (struct msghdr){below(4) ? NULL : name(), 16, vector(), below(4), control, CMSG_SPACE(count * sizeof(int)), 0};
    return message;
}

static uint64_t flags(void)
{
    static const int some[] = {0, O_NONBLOCK, O_CLOEXEC, O_CREAT, O_RDWR, O_WRONLY, O_TRUNC, O_APPEND, O_TMPFILE, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC,
                               IPC_CREAT | 0600, IPC_NOWAIT, IN_ALL_EVENTS, IN_ONESHOT, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, EFD_SEMAPHORE};
    int count = sizeof some / sizeof *some;
    return some[below(count)] | some[below(count)];
}

static void *polls(void)
{
    struct pollfd *polls = place();
    for (int i = 0; i < 8; i++)
        polls[i] = (struct pollfd){below(DESCRIPTORS), below(64), 0};
    return polls;
}

static void *event(void)
{
    struct epoll_event *event = place();
    static const uint32_t kinds[] = {EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLET, EPOLLIN | EPOLLONESHOT, EPOLLIN | EPOLLEXCLUSIVE, EPOLLRDHUP};
    *event = (struct epoll_event){kinds[below(6)], {.u64 = random_number()}};
    return event;
}

/* Contexts of asynchronous I/O. */
static aio_context_t contexts[4];

/* Where a context's id is to go: mostly where there is none, or where one is forgotten. */
static aio_context_t *context_place(void)
{
    aio_context_t *place = &contexts[below(4)];
    if (below(4))
        *place = 0;
    return place;
}

static struct iocb *iocb(void)
{
    struct iocb *iocb = place();
    static const uint16_t operations[] = {IOCB_CMD_PREAD, IOCB_CMD_PWRITE, IOCB_CMD_FSYNC, IOCB_CMD_PREADV, IOCB_CMD_PWRITEV, IOCB_CMD_POLL};
    *iocb = (struct iocb){.aio_data = random_number(), .aio_lio_opcode = operations[below(6)], .aio_fildes = below(DESCRIPTORS)};
    int is_sync = iocb->aio_lio_opcode == IOCB_CMD_FSYNC, has_vector = iocb->aio_lio_opcode >= IOCB_CMD_PREADV;
    if (!is_sync) {
        iocb->aio_buf = (uint64_t)(has_vector ? (void *)vector() : place());
        iocb->aio_nbytes = has_vector ? below(9) : below(5000);
        iocb->aio_offset = below(9000);
    }
    iocb->aio_flags = below(4) ? 0 : IOCB_FLAG_RESFD;
    iocb->aio_resfd = below(DESCRIPTORS);
    return iocb;
}

static struct iocb **iocbs(void)
{
    struct iocb **requests = place();
    for (int i = 0; i < 8; i++)
        requests[i] = iocb();
    return requests;
}

static uint64_t argument(enum kind kind)
{
    static const unsigned long requests[] = {FIONREAD, FIONBIO, TCGETS, TCSETS, TIOCGWINSZ, TIOCSWINSZ, TIOCGPTN, TIOCSPTLCK, TIOCPKT, TIOCSCTTY,
                                             TIOCGPGRP, TIOCSPGRP, TIOCNOTTY, TIOCSTI, TCFLSH, TIOCVHANGUP, FIOASYNC};
    if (below(64) == 0)
        return random_number();
    switch (kind) {
    case FD: return below(32) ? below(DESCRIPTORS) : (uint64_t)AT_FDCWD;
    case FLAGS: return flags();
    case SMALL: return below(32) ? below(16) : below(2048);
    case LENGTH: return below(4) ? below(9000) : below(BYTES);
    case BUFFER: return (uint64_t)place();
    case PATH: return (uint64_t)path();
    case VECTOR: return (uint64_t)vector();
    case MESSAGE: return (uint64_t)message();
    case NAME: return (uint64_t)name();
    case NAME_BYTES: return offsetof(struct sockaddr_un, sun_path) + below(12);
    case SET: memset(buffer, random_number(), 16); return (uint64_t)buffer;
    case TIME: *(struct timespec *)buffer = (struct timespec){0, below(100000)}; return (uint64_t)buffer;
    case POLLS: return (uint64_t)polls();
    case EVENT: return (uint64_t)event();
    case PROCESS: return below(4) ? (uint64_t)getpid() : below(64);
    case ID: return below(8) ? below(8) : below(1 << 20);
    case KEY: return below(6);
    /* AF_UNIX is one of them. */
    case TYPE: return (const int[]){SOCK_STREAM, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET | SOCK_NONBLOCK}[below(4)];
    case REQUEST: return requests[below(sizeof requests / sizeof *requests)];
    case CONTEXT: return contexts[below(4)];
    case CONTEXT_PLACE: return (uint64_t)context_place();
    case IOCB: return (uint64_t)iocb();
    case IOCBS: return (uint64_t)iocbs();
    case END: break;
    }
    return 0;
}

static void prepare(void)
{
    struct rlimit descriptors = {DESCRIPTORS, DESCRIPTORS};
    setrlimit(RLIMIT_NOFILE, &descriptors);
    mkdir("/tmp/plausible/d", 0777);
    chmod("/tmp/plausible/d", 0777);
    mkfifo("/tmp/plausible/d/fifo", 0666);
    buffer = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void make_call(void)
{
    const struct call *call = &calls[below(sizeof calls / sizeof *calls)];
    uint64_t a[6];
    for (int i = 0; i < 6; i++)
        a[i] = argument(call->arguments[i]);
    syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int main(int argc, char **argv)
{
    return run_batches(argc, argv, "/tmp/plausible", prepare, make_call);
}
