/* attacker: what a user without rights can do to the system, in random order, as long as asked. The file is long because each attack is a
 * few calls of its own.
 *
 * usage: attacker USER SECONDS SEED [ATTACK]
 *
 * Becomes USER. With ATTACK, only that one. Each attack runs in a process group of its own that is killed after a moment, whether it has been refused or not.
 * Prints how often each was made. What must not suffer is watched from outside (tests/qemu/attackers.sh).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { CROWD = 100, PIECES = 1024, GIB = 1 << 30 };

static unsigned user;
static uint64_t state;

static uint64_t random_below(uint64_t end)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * 0x2545f4914f6cdd1d >> 32) % end;
}

static void rest(void)
{
    for (;;)
        pause();
}

/* Runs `act` in as many processes as may be, at most CROWD, then waits. */
static void crowd(void (*act)(void))
{
    for (int made = 0; made < CROWD; made++) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (child == 0) {
            act();
            rest();
        }
    }
    rest();
}

static void queue_signals(void)
{
    while (sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ 0 }) == 0) {}
}

static void signals(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    crowd(queue_signals);
}

static void run_timers(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1 };
    struct itimerspec often = { { 0, 1000 }, { 0, 1000 } };
    timer_t timer;
    while (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        timer_settime(timer, 0, &often, NULL);
}

static void timers(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    crowd(run_timers);
}

static int ends[2];

static void wait_for_vector(void)
{
    static char bytes[PIECES];
    static struct iovec pieces[PIECES];
    for (int at = 0; at < PIECES; at++)
        pieces[at] = (struct iovec){ bytes + at, 1 };
    (void)!readv(ends[0], pieces, PIECES);
}

static void vectors(void)
{
    if (pipe(ends) == 0)
        crowd(wait_for_vector);
}

static void wait_in_poll(void)
{
    static struct pollfd polled[PIECES];
    for (int at = 0; at < PIECES; at++)
        polled[at] = (struct pollfd){ ends[0], POLLIN, 0 };
    poll(polled, PIECES, -1);
}

static void polls(void)
{
    if (pipe(ends) == 0)
        crowd(wait_in_poll);
}

static void fill_pipes(void)
{
    static char block[65536];
    int pair[2];
    while (pipe2(pair, O_NONBLOCK) == 0)
        while (write(pair[1], block, sizeof block) > 0) {}
}

static void pipes(void) { crowd(fill_pipes); }

/* Pipes full of packets, each of which is told to the user by a signal that is queued. */
static void fill_with_packets(void)
{
    int pair[2];
    signal(SIGRTMIN, SIG_IGN);
    while (pipe2(pair, O_NONBLOCK | O_DIRECT) == 0) {
        fcntl(pair[0], F_SETOWN, getpid());
        fcntl(pair[0], F_SETSIG, SIGRTMIN);
        fcntl(pair[0], F_SETFL, O_ASYNC);
        while (write(pair[1], "x", 1) > 0) {}
    }
}

static void packets(void) { crowd(fill_with_packets); }

/* Calls that hold memory of vfs while they wait: for room in a pipe, and for data. */
static void wait_in_splice(void)
{
    static char block[65536];
    int more[2], file = open("/bin/busybox", O_RDONLY);
    if (pipe(more) == 0 && random_below(2)) {
        (void)!write(more[1], block, sizeof block);
        (void)!splice(file, 0, more[1], 0, sizeof block, 0);
    } else {
        (void)!splice(ends[0], 0, more[1], 0, 1, 0);
    }
}

static void splices(void)
{
    if (pipe(ends) == 0)
        crowd(wait_in_splice);
}

static void open_files(void)
{
    while (open("/etc/passwd", O_RDONLY) >= 0) {}
}

static void files(void) { crowd(open_files); }

static void make_sockets(void)
{
    int pair[2];
    while (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {}
}

static void sockets(void) { crowd(make_sockets); }

/* A listening socket with connections that nobody accepts, all full, and datagrams that nobody receives. */
static void fill_sockets(void)
{
    static char block[65536];
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    socklen_t length = sizeof name.sun_family;
    int server = socket(AF_UNIX, SOCK_STREAM, 0), mailbox = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), client;
    if (bind(mailbox, (void *)&name, length) == 0 && bind(server, (void *)&name, length) == 0)
        listen(server, 4096);
    length = sizeof name;
    getsockname(mailbox, (void *)&name, &length);
    while (sendto(mailbox, block, 1000, 0, (void *)&name, length) > 0) {}
    length = sizeof name;
    getsockname(server, (void *)&name, &length);
    while ((client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0 && connect(client, (void *)&name, length) == 0)
        while (write(client, block, sizeof block) > 0) {}
}

static void listeners(void) { crowd(fill_sockets); }

/* Sends descriptors by a socket until its queue is full. */
static void send_files(int socket, const int *files, int count)
{
    _Alignas(8) char control[CMSG_SPACE(253 * sizeof(int))];
    struct iovec piece = { control, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
    struct cmsghdr *head = (void *)control;
    do {
        memset(control, 0, sizeof control);
        *head = (struct cmsghdr){ CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
        memcpy(CMSG_DATA(head), files, count * sizeof(int));
    } while (sendmsg(socket, &message, MSG_DONTWAIT) > 0);
}

/* Queues full of descriptors, of sockets that are in each other's queues, and a chain of them; all of it is left to who finds it. */
static void fill_queues(void)
{
    int pair[2], files[253], last = 0;
    struct rlimit limit = { 4096, 4096 };
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int round = 0; round < 40 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0; round++) {
        send_files(pair[0], &last, 1);
        close(last);
        last = pair[1];
    }
    while (socketpair(AF_UNIX, random_below(2) ? SOCK_STREAM : SOCK_SEQPACKET, 0, pair) == 0) {
        int count = 1 + random_below(253);
        for (int at = 0; at < count; at++)
            files[at] = pair[random_below(2)];
        send_files(pair[0], files, count);
        send_files(pair[1], files, count);
        close(pair[0]), close(pair[1]);
    }
}

static void rights(void) { crowd(fill_queues); }

/* Every counter is ready, and registered with every other epoll; then a wait for edges that do not come. */
static void fill_epolls(void)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET }, found[16];
    int epolls[8], counter;
    for (int at = 0; at < 8; at++)
        epolls[at] = epoll_create1(0);
    while ((counter = eventfd(1, 0)) >= 0)
        for (int at = 0; at < 8; at++)
            epoll_ctl(epolls[at], EPOLL_CTL_ADD, counter, &event);
    for (;;)
        epoll_wait(epolls[0], found, 16, -1);
}

static void epolls(void) { crowd(fill_epolls); }

/* Timers that expire all the time, in an epoll that is asked without end; each is set anew, or closed, at random. */
static void run_alarms(void)
{
    struct itimerspec often = { { 0, 1 }, { 0, 1 } };
    struct epoll_event event = { .events = EPOLLIN | EPOLLET }, found[16];
    int epoll = epoll_create1(0), timer;
    while ((timer = timerfd_create(random_below(2) ? CLOCK_MONOTONIC : CLOCK_REALTIME, TFD_NONBLOCK)) >= 0) {
        event.data.fd = timer;
        timerfd_settime(timer, 0, &often, NULL);
        epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
    }
    for (;;) {
        uint64_t expirations;
        for (int left = epoll_wait(epoll, found, 16, -1); left > 0; left--) {
            timer = found[left - 1].data.fd;
            (void)!read(timer, &expirations, sizeof expirations);
            if (random_below(100) == 0)
                close(timer);
        }
    }
}

static void alarms(void) { crowd(run_alarms); }

/* A terminal that is registered by as many descriptors as may be: each has a request at its driver while somebody waits. */
static void register_devices(void)
{
    struct epoll_event event = { .events = EPOLLIN }, found;
    int epoll = epoll_create1(0), terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY), copy;
    while ((copy = dup(terminal)) >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, copy, &event) == 0) {}
    epoll_wait(epoll, &found, 1, -1);
}

static void devices(void) { crowd(register_devices); }

/* Instances with watches of everything near, and events that nobody reads. */
static void fill_watches(void)
{
    char path[64];
    int instance, found = 0;
    while ((instance = inotify_init1(IN_NONBLOCK)) >= 0 && found++ < 200) {
        inotify_add_watch(instance, "/tmp", IN_ALL_EVENTS);
        inotify_add_watch(instance, "/proc/self", IN_ALL_EVENTS);
        for (int at = 0; at < 20; at++) {
            snprintf(path, sizeof path, "/tmp/attack.%u.%d", user, at);
            close(open(path, O_CREAT | O_RDWR, 0600));
            inotify_add_watch(instance, path, IN_ALL_EVENTS);
            if (rand() % 4 == 0)
                unlink(path);
        }
    }
}

static void watches(void) { crowd(fill_watches); }

/* Descriptors of all processes and of signals, which every other polls and waits for. */
static void fill_lives(void)
{
    sigset_t set;
    int epoll = epoll_create1(0), fd;
    struct epoll_event event = { .events = EPOLLIN }, found[16];
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int pid = 1; (fd = rand() % 2 ? signalfd(-1, &set, SFD_NONBLOCK) : (int)syscall(SYS_pidfd_open, pid, 0)) >= 0
         || (errno == ESRCH && pid < 30000); pid++) {
        struct signalfd_siginfo info[4];
        if (fd < 0)
            continue;
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
        (void)!read(fd, info, sizeof info);
        syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);
        kill(getpid(), SIGRTMIN + rand() % 8);
    }
    epoll_wait(epoll, found, 16, 100);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void lives(void) { crowd(fill_lives); }

static char leased[40];

static void hold_and_break(void)
{
    int file;
    while ((file = open(leased, O_RDONLY)) >= 0 && fcntl(file, F_SETLEASE, F_RDLCK) == 0) {}
    (void)!open(leased, O_WRONLY);
}

static void leases(void)
{
    snprintf(leased, sizeof leased, "/tmp/attack.%u.leased", user);
    close(open(leased, O_CREAT | O_RDWR, 0600));
    crowd(hold_and_break);
}

static int letters_to[300];

static void wait_for_letter(void)
{
    static struct { long type; char text[8192]; } letter = { .type = 1 };
    for (int at = 0; at < 300 && letters_to[at] >= 0; at++)
        while (msgsnd(letters_to[at], &letter, sizeof letter.text, IPC_NOWAIT) == 0) {}
    msgrcv(letters_to[0], &letter, sizeof letter.text, 77, 0);
}

/* The queues outlive the attack, and are removed by the next one. */
/* Opens as many terminals as it gets, fills both directions of each, and leaves requests that wait. */
static void open_terminals(void)
{
    static char text[8192];
    memset(text, 'x', sizeof text);
    for (;;) {
        int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK), unlock = 0, slave;
        if (master < 0)
            break;
        ioctl(master, TIOCSPTLCK, &unlock);
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK);
        if (slave >= 0 && random_below(4)) {
            struct termios settings;
            tcgetattr(slave, &settings);
            if (random_below(2))
                cfmakeraw(&settings);
            tcsetattr(slave, TCSANOW, &settings);
            while (write(slave, text, random_below(sizeof text)) > 0) {}
            for (int i = 0; i < 8; i++)
                write(master, random_below(2) ? text : "\n", random_below(2) ? 1 : 4000);
        }
        /* A session of its own, which ends with the master: it is hung up. */
        if (slave >= 0 && random_below(2) && fork() == 0) {
            dup2(slave, 0);
            close_range(3, ~0u, 0);
            fcntl(0, F_SETFL, O_RDWR);
            if (setsid() < 0 || ioctl(0, TIOCSCTTY, 0) < 0)
                _exit(1);
            while (read(0, text, sizeof text) > 0) {}
            _exit(0);
        }
    }
}

static void terminals(void)
{
    struct rlimit limit = { 4096, 4096 };
    setrlimit(RLIMIT_NOFILE, &limit);
    crowd(open_terminals);
}

static void letters(void)
{
    struct msqid_ds ds;
    int count = 0;
    for (int at = 0; at < 128; at++) {
        int id = msgctl(at, MSG_STAT, &ds);
        if (id >= 0 && ds.msg_perm.uid == user)
            msgctl(id, IPC_RMID, NULL);
    }
    while (count < 299 && (letters_to[count] = msgget(IPC_PRIVATE, 0600)) >= 0)
        count++;
    letters_to[count] = -1;
    crowd(wait_for_letter);
}

static void queues(void)
{
    char name[32];
    for (int at = 0; at < 300; at++) {
        snprintf(name, sizeof name, "/attack.%u.%d", user, at);
        mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
        if (queue == (mqd_t)-1)
            break;
        mq_close(queue);
    }
    for (int at = 0; at < 300; at++) {
        snprintf(name, sizeof name, "/attack.%u.%d", user, at);
        mq_unlink(name);
    }
}

/* Attaches a segment that nobody removes, and touches all of it. */
static void fill_area(void)
{
    int id = shmget(IPC_PRIVATE, 1 << 20, 0600);
    char *area = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
    if (area != (char *)-1)
        memset(area, 1, 1 << 20);
    if (random_below(2))
        shmctl(id, IPC_RMID, NULL);
    rest();
}

/* Segments outlive the attack, and are removed by the next one. */
static void areas(void)
{
    struct shmid_ds ds;
    for (int at = 0; at < 256; at++) {
        int id = shmctl(at, SHM_STAT, &ds);
        if (id >= 0 && ds.shm_perm.uid == user)
            shmctl(id, IPC_RMID, NULL);
    }
    while (shmget(IPC_PRIVATE, 1ul << 24, 0600) >= 0) {}
    crowd(fill_area);
}

static void semaphores(void)
{
    int sets[300], made = 0;
    while (made < 300 && (sets[made] = semget(IPC_PRIVATE, 32, 0600)) >= 0)
        made++;
    while (made > 0)
        semctl(sets[--made], 0, IPC_RMID);
}

static void memory(void)
{
    for (;;) {
        char *piece = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece == MAP_FAILED)
            rest();
        memset(piece, 1, 1 << 20);
    }
}

/* One page, far apart: each mapping takes tables of its own. */
static void tables(void)
{
    int file = open("/etc/passwd", O_RDONLY);
    for (uint64_t at = 1; at < 16000; at++) {
        volatile char *page = mmap((void *)(at * GIB), 4096, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
        if (page == MAP_FAILED)
            break;
        (void)*page;
    }
    rest();
}

static void regions(void)
{
    for (int at = 0; at < 20000; at++)
        if (mmap(NULL, 4096, at & 1 ? PROT_READ : PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            break;
    rest();
}

static void processes(void)
{
    while (fork() >= 0) {}
    rest();
}

static uint32_t *word;

static void wait_on_word(void)
{
    syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void futexes(void)
{
    word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int made = 0; made < CROWD; made++) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                wait_on_word();
        if (child < 0)
            break;
    }
    for (;;)
        syscall(SYS_futex, word, FUTEX_WAKE, 1000000, NULL, NULL, 0);
}

static int idle(void *unused)
{
    (void)unused;
    rest();
    return 0;
}

/* Traces the threads of children that are killed, stopped or let go, and waits for none of them. */
static void trace_threads(void)
{
    enum { THREADS = 32, STACK = 4096 };
    static char stacks[THREADS][STACK] __attribute__((aligned(16)));
    const struct timespec while_they_begin = { 0, 5000000 };
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (child == 0) {
            for (int at = 0; at < THREADS; at++)
                clone(idle, stacks[at] + STACK, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, NULL);
            rest();
        }
        nanosleep(&while_they_begin, NULL);
        long options = random_below(1 << 8) | (random_below(2) ? PTRACE_O_EXITKILL : 0);
        for (pid_t tid = child; tid <= child + THREADS; tid++)
            ptrace(PTRACE_SEIZE, tid, 0, options);
        switch (random_below(3)) {
        case 0:
            kill(child, SIGKILL);
            break;
        case 1:
            for (pid_t tid = child; tid <= child + THREADS; tid++)
                ptrace(PTRACE_INTERRUPT, tid, 0, 0);
            break;
        default:
            ptrace(PTRACE_DETACH, child, 0, 0);
        }
    }
    rest();
}

static void tracees(void) { crowd(trace_threads); }

static struct timespec moment;

static void sleep_until_moment(void)
{
    for (int round = 0; round < 20; round++) {
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL);
        moment.tv_nsec = (moment.tv_nsec + 100000000) % 1000000000;
        moment.tv_sec += moment.tv_nsec < 100000000;
    }
}

static void sleepers(void)
{
    clock_gettime(CLOCK_MONOTONIC, &moment);
    moment.tv_sec++;
    crowd(sleep_until_moment);
}

static void locks(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/attack.%u", user);
    int file = open(path, O_CREAT | O_RDWR, 0600);
    for (long at = 0; at < 5000; at++) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2 * at, .l_len = 1 };
        if (fcntl(file, random_below(2) ? F_SETLK : F_OFD_SETLK, &lock) != 0)
            break;
    }
    unlink(path);
    rest();
}

static void names(void)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/attack.%u", user);
    if (mkdir(path, 0700) != 0 || chdir(path) != 0)
        return;
    for (int at = 0; at < 3000; at++) {
        snprintf(path, sizeof path, "%d", at);
        int file = open(path, O_CREAT | O_WRONLY, 0600);
        if (file < 0)
            break;
        (void)!write(file, path, sizeof path);
        close(file);
    }
    for (int at = 0; at < 3000; at++) {
        snprintf(path, sizeof path, "%d", at);
        unlink(path);
    }
    snprintf(path, sizeof path, "/dev/shm/attack.%u", user);
    rmdir(path);
}

/* Files with as many attributes as may be, and what is written there is read meanwhile. */
static void attributes(void)
{
    static char path[64], name[32], value[4096], list[65536];
    for (int at = 0; at < 100; at++) {
        snprintf(path, sizeof path, "/tmp/attack.%u.attributes.%d", user, at);
        close(open(path, O_CREAT | O_RDWR, 0600));
        for (int number = 0; number < 200; number++) {
            snprintf(name, sizeof name, "user.%d", number);
            if (setxattr(path, name, value, random_below(random_below(4) ? 30 : sizeof value), 0) != 0)
                break;
        }
        (void)!listxattr(path, list, sizeof list);
    }
    for (int at = 0; at < 100; at++) {
        snprintf(path, sizeof path, "/tmp/attack.%u.attributes.%d", user, at);
        unlink(path);
    }
}

/* Any call but those that end or stop the caller for good. */
static void calls(void)
{
    static char buffer[8192];
    alarm(1);
    for (int at = 0; at < 3000; at++) {
        long number = (long)random_below(460);
        if (number == SYS_pause || number == SYS_rt_sigsuspend || number == SYS_kill || number == SYS_vfork)
            continue;
        uint64_t words[6];
        for (int word = 0; word < 6; word++)
            words[word] = random_below(3) ? random_below(1u << random_below(31)) : (uint64_t)buffer;
        syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    }
}

static const struct attack {
    const char *name;
    void (*act)(void);
} attacks[] = {
    { "signals", signals },     { "timers", timers },   { "vectors", vectors },     { "polls", polls },   { "pipes", pipes },
    { "packets", packets },
    { "files", files },         { "sockets", sockets }, { "queues", queues },       { "semaphores", semaphores },
    { "memory", memory },       { "tables", tables },   { "regions", regions },     { "processes", processes },
    { "futexes", futexes },     { "sleepers", sleepers }, { "locks", locks },       { "names", names },   { "calls", calls },
    { "watches", watches },     { "lives", lives },
    { "listeners", listeners }, { "epolls", epolls },   { "leases", leases },       { "letters", letters },
    { "areas", areas },         { "splices", splices },
    { "rights", rights },       { "terminals", terminals }, { "tracees", tracees }, { "alarms", alarms },
    { "devices", devices },     { "attributes", attributes },
};
enum { ATTACKS = sizeof attacks / sizeof *attacks };

/* Makes an attack in a group of its own, for at most two seconds. Returns whether it began. */
static int make(const struct attack *attack, uint64_t seed)
{
    pid_t group = fork();
    if (group < 0)
        return 0;
    if (group == 0) {
        setpgid(0, 0);
        state = seed | 1;
        attack->act();
        _exit(0);
    }
    setpgid(group, group);
    struct timespec moment = { .tv_nsec = 50000000 };
    for (int waited = 0; waited < 40 && waitpid(group, NULL, WNOHANG) == 0; waited++)
        nanosleep(&moment, NULL);
    /* The children of its children may be making more of them; a group lasts until its last zombie is gone. */
    while (kill(-group, SIGKILL) == 0) {
        nanosleep(&moment, NULL);
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
    return 1;
}

int main(int count, char **words)
{
    if (count != 4 && count != 5) {
        fprintf(stderr, "usage: attacker USER SECONDS SEED [ATTACK]\n");
        return 2;
    }
    user = (unsigned)atoi(words[1]);
    time_t end = time(NULL) + atoi(words[2]);
    state = strtoull(words[3], NULL, 10) * 0x9e3779b97f4a7c15 | 1;
    if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0) {
        perror("attacker");
        return 1;
    }
    unsigned made[ATTACKS] = { 0 };
    while (time(NULL) < end) {
        uint64_t at = random_below(ATTACKS);
        if (count == 5 && strcmp(attacks[at].name, words[4]) != 0)
            continue;
        made[at] += (unsigned)make(&attacks[at], random_below(UINT32_MAX));
    }
    for (int at = 0; at < ATTACKS; at++)
        fprintf(stderr, "%s %u%s", attacks[at].name, made[at], at + 1 < ATTACKS ? ", " : "\n");
    return 0;
}
