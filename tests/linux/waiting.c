/* Several processes in the same waiting call on the same object: they wait, do not wake each other, and everybody else goes on. */
#include "behaviour.h"
#include <mqueue.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

enum { WAITING = 4, BYTES = 30000 };
static int from, to, other;
static char bytes[1 << 20];

/* Starts the call in several processes, and shows how many have ended by themselves while this one made other calls. */
static void crowd(void (*call)(void)) {
    pid_t children[WAITING];
    int ended = 0;
    for (int i = 0; i < WAITING; i++) {
        children[i] = must(fork());
        if (children[i] == 0) {
            call();
            _exit(0);
        }
        wait_until_asleep(children[i]);
    }
    for (int i = 0; i < 20; i++) {
        struct stat state;
        must(stat("/", &state));
        close(must(open("/dev/null", O_RDONLY)));
    }
    for (int i = 0; i < WAITING; i++)
        ended += waitpid(children[i], NULL, WNOHANG) > 0;
    show(ended);
    for (int i = 0; i < WAITING; i++)
        kill(children[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    struct stat state;
    show(stat("/", &state));
}

static void set_nonblocking(int fd, int nonblocking) {
    int flags = must(fcntl(fd, F_GETFL));
    must(fcntl(fd, F_SETFL, nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}
/* Writes until there is no room. */
static void fill(int fd) {
    set_nonblocking(fd, 1);
    while (write(fd, bytes, sizeof bytes / 64) > 0)
        ;
    while (write(fd, bytes, 1) > 0)
        ;
    set_nonblocking(fd, 0);
}
/* A pipe: written to through `to`, read through `from`. */
static void new_pipe(int flags) {
    int ends[2];
    must(pipe2(ends, flags));
    from = ends[0];
    to = ends[1];
}
static void full_pipe(void) {
    new_pipe(0);
    fill(to);
}
static void sockets(int type) {
    int ends[2];
    must(socketpair(AF_UNIX, type, 0, ends));
    to = ends[0];
    from = ends[1];
}
static void full_sockets(int type) {
    sockets(type);
    while (send(to, bytes, BYTES, MSG_DONTWAIT) > 0)
        ;
    while (send(to, bytes, 1, MSG_DONTWAIT) > 0)
        ;
}
static void limit_time(int fd, int option) {
    struct timeval time = {1000, 0};
    must(setsockopt(fd, SOL_SOCKET, option, &time, sizeof time));
}

static void read_byte(void) { must(read(from, bytes, 1)); }
static void write_byte(void) { must(write(to, bytes, 1)); }
static void write_page(void) { must(write(to, bytes, 4096)); }
BEHAVIOUR("reads of an empty pipe, writes to a full one, packets to a full one") {
    new_pipe(0);
    crowd(read_byte);
    full_pipe();
    crowd(write_byte);
    crowd(write_page);
    new_pipe(O_DIRECT);
    fill(to);
    crowd(write_page);
}

static void splice_in(void) { must(splice(other, NULL, to, NULL, BYTES, 0)); }
static void tee_in(void) { must(tee(other, to, BYTES, 0)); }
static void vmsplice_in(void) {
    struct iovec part = {bytes, BYTES};
    must(vmsplice(to, &part, 1, 0));
}
static void sendfile_in(void) { must(sendfile(to, other, NULL, BYTES)); }
BEHAVIOUR("splice, tee and vmsplice into a full pipe, from a file and from a pipe with something in it; splice from an empty one") {
    full_pipe();
    int full = to;
    new_pipe(0);
    must(write(to, bytes, 1000));
    other = from;
    to = full;
    crowd(splice_in);
    crowd(tee_in);
    crowd(vmsplice_in);
    make("f", "some text");
    other = must(open("f", O_RDONLY));
    crowd(splice_in);
    crowd(sendfile_in);
    new_pipe(0);
    other = from;
    int empty = to;
    to = must(open("g", O_CREAT | O_WRONLY, 0600));
    crowd(splice_in);
    close(empty);
}
static void sendfile_to(void) {
    off_t at = 0;
    must(sendfile(to, other, &at, BYTES));
}
BEHAVIOUR("sendfile into a full socket") {
    full_sockets(SOCK_STREAM);
    make("f", "some text");
    other = must(open("f", O_RDONLY));
    crowd(sendfile_to);
}

static void send_some(void) { must(send(to, bytes, BYTES, 0)); }
static void send_two(void) {
    struct iovec part = {bytes, BYTES};
    struct mmsghdr two[2] = {{.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}}};
    must(sendmmsg(to, two, 2, 0));
}
static void receive_some(void) { must(recv(from, bytes, BYTES, 0)); }
static void peek(void) { must(recv(from, bytes, BYTES, MSG_PEEK)); }
static void receive_all(void) { must(recv(from, bytes, BYTES, MSG_WAITALL)); }
static void receive_two(void) {
    struct iovec part = {bytes, BYTES};
    struct mmsghdr two[2] = {{.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}}};
    must(recvmmsg(from, two, 2, 0, NULL));
}
static const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
BEHAVIOUR("sends into a full socket: one message, several, with a time limit") {
    for (int i = 0; i < 3; i++) {
        full_sockets(kinds[i]);
        crowd(send_some);
        crowd(send_two);
        limit_time(to, SO_SNDTIMEO);
        crowd(send_some);
        crowd(send_two);
    }
}
BEHAVIOUR("receives from an empty socket: one message, several, looking only, all that is wanted, with a time limit") {
    for (int i = 0; i < 3; i++) {
        sockets(kinds[i]);
        crowd(receive_some);
        crowd(receive_two);
        crowd(peek);
        limit_time(from, SO_RCVTIMEO);
        crowd(receive_some);
        crowd(peek);
    }
    sockets(SOCK_STREAM);
    must(send(to, bytes, 10, 0));
    crowd(receive_all);
}

static struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0waiting crowd"};
static void connect_one(void) {
    int fd = must(socket(AF_UNIX, SOCK_STREAM, 0));
    must(connect(fd, (struct sockaddr *)&name, sizeof name));
    pause();
}
static void accept_one(void) { must(accept(from, NULL, NULL)); }
BEHAVIOUR("accept without connections, connect with a full backlog") {
    from = must(socket(AF_UNIX, SOCK_STREAM, 0));
    must(bind(from, (struct sockaddr *)&name, sizeof name));
    must(listen(from, 0));
    crowd(accept_one);
    crowd(connect_one);
}

static void wait_readable(void) {
    struct pollfd asked[2] = {{.fd = from, .events = POLLIN}, {.fd = to, .events = POLLOUT}};
    must(poll(asked, 2, -1));
}
static void wait_events(void) {
    struct epoll_event event;
    must(epoll_wait(other, &event, 1, -1));
}
BEHAVIOUR("poll of an empty and a full pipe; epolls of them, one inside the other") {
    full_pipe();
    int full = to;
    new_pipe(0);
    int empty = to;
    to = full;
    crowd(wait_readable);
    struct epoll_event event = {.events = EPOLLIN};
    int inner = must(epoll_create1(0));
    must(epoll_ctl(inner, EPOLL_CTL_ADD, from, &event));
    other = inner;
    crowd(wait_events);
    other = must(epoll_create1(0));
    must(epoll_ctl(other, EPOLL_CTL_ADD, inner, &event));
    crowd(wait_events);
    close(empty);
}

static void write_counter(void) { must(eventfd_write(to, 2)); }
static void read_counter(void) {
    eventfd_t value;
    must(eventfd_read(from, &value));
}
static void read_much(void) { must(read(from, bytes, 4096)); }
BEHAVIOUR("counters that are zero or full, timers, signalfds and inotify with nothing to tell") {
    from = must(eventfd(0, EFD_SEMAPHORE));
    crowd(read_counter);
    to = must(eventfd(0, 0));
    must(eventfd_write(to, 0xfffffffffffffffe));
    crowd(write_counter);
    from = must(timerfd_create(CLOCK_MONOTONIC, 0));
    crowd(read_counter);
    sigset_t set = set_of(SIGUSR1);
    must(sigprocmask(SIG_BLOCK, &set, NULL));
    from = must(signalfd(-1, &set, 0));
    crowd(read_much);
    from = must(inotify_init1(0));
    must(inotify_add_watch(from, ".", IN_CREATE));
    crowd(read_much);
}

static void put_message(void) { must(mq_send((mqd_t)to, bytes, 8, 0)); }
static void put_in_time(void) {
    struct timespec until = {time(NULL) + 1000, 0};
    must(mq_timedsend((mqd_t)to, bytes, 8, 0, &until));
}
static void take_message(void) { must(mq_receive((mqd_t)from, bytes, 8, NULL)); }
BEHAVIOUR("messages to a full queue and from an empty one") {
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
    to = from = must(mq_open("/waiting", O_CREAT | O_RDWR, 0600, &attributes));
    mq_unlink("/waiting");
    crowd(take_message);
    must(mq_send((mqd_t)to, bytes, 8, 0));
    must(mq_send((mqd_t)to, bytes, 8, 0));
    crowd(put_message);
    crowd(put_in_time);
}

static void open_to_read(void) { must(open("fifo", O_RDONLY)); }
static void open_to_write(void) { must(open("fifo", O_WRONLY)); }
BEHAVIOUR("opens of a FIFO that wait for the other side") {
    must(mkfifo("fifo", 0600));
    crowd(open_to_read);
    crowd(open_to_write);
}

static void lock_file(void) { must(flock(must(open("f", O_RDWR)), LOCK_EX)); }
static void lock_record(void) {
    struct flock lock = {.l_type = F_WRLCK};
    must(fcntl(must(open("f", O_RDWR)), F_SETLKW, &lock));
}
BEHAVIOUR("locks that another process has") {
    make("f", "");
    int fd = must(open("f", O_RDWR));
    must(flock(fd, LOCK_EX));
    crowd(lock_file);
    struct flock lock = {.l_type = F_WRLCK};
    must(fcntl(fd, F_SETLK, &lock));
    crowd(lock_record);
}

static void read_terminal(void) { must(read(from, bytes, 10)); }
BEHAVIOUR("reads of a pseudo-terminal without input, writes to one that nobody reads") {
    from = must(posix_openpt(O_RDWR | O_NOCTTY));
    must(grantpt(from));
    must(unlockpt(from));
    to = must(open(ptsname(from), O_RDWR | O_NOCTTY));
    crowd(read_terminal);
    fill(to);
    crowd(write_page);
}

static struct {
    long type;
    char text[8192];
} letter = {1, {0}};
static void receive_letter(void) { must(msgrcv(from, &letter, sizeof letter.text, 0, 0)); }
static void receive_other_letter(void) { must(msgrcv(from, &letter, sizeof letter.text, 2, 0)); }
static void send_letter(void) { must(msgsnd(to, &letter, sizeof letter.text, 0)); }
BEHAVIOUR("System V's messages: to a full queue, from an empty one, of a type that is not there") {
    to = from = must(msgget(IPC_PRIVATE, 0600));
    crowd(receive_letter);
    while (msgsnd(to, &letter, sizeof letter.text, IPC_NOWAIT) == 0)
        ;
    crowd(send_letter);
    crowd(receive_other_letter);
    must(msgctl(to, IPC_RMID, NULL));
}

static void change_semaphores(int first, int second) {
    struct sembuf changes[] = {{0, first, 0}, {1, second, 0}};
    must(semop(to, changes, 2));
}
static void take_both(void) { change_semaphores(-1, -1); }
static void await_zero(void) { change_semaphores(0, 1); }
static void take_in_time_both(void) {
    struct sembuf changes[] = {{0, -1, SEM_UNDO}, {1, -1, SEM_UNDO}};
    struct timespec time = {1000, 0};
    must(semtimedop(to, changes, 2, &time));
}
BEHAVIOUR("System V's semaphores: one of two is zero, or not") {
    to = must(semget(IPC_PRIVATE, 2, 0600));
    must(semctl(to, 0, SETVAL, 1));
    crowd(take_both);
    crowd(take_in_time_both);
    crowd(await_zero);
    show(semctl(to, 0, GETVAL));
    show(semctl(to, 1, GETVAL));
    must(semctl(to, 0, IPC_RMID));
}

static void await_child(void) {
    if (must(fork()) == 0) {
        must(prctl(PR_SET_PDEATHSIG, SIGKILL));
        for (;;)
            pause();
    }
    must(wait(NULL));
}
static void await_signal(void) {
    sigset_t set;
    sigfillset(&set);
    struct timespec time = {1000, 0};
    must(sigtimedwait(&set, NULL, &time));
}
static void await_time(void) { sleep(1000); }
BEHAVIOUR("waits for children, for signals and for time") {
    crowd(await_child);
    crowd(await_signal);
    crowd(await_time);
}
