/* quotas: two users take all that they get of what programs share, one kind after the other, and hold it.
 *
 * usage: quotas
 *
 * For each kind a line: how the first and the second user were refused, that root got one meanwhile, and that the first user got one when
 * both had ended. A kind that is not divided among users, or of which nothing is kept for root, or which is not given back, says so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* FILES: descriptors of a process; PROCESSES: of a user, enough for every table. */
enum { FIRST = 1000, SECOND = 1001, FILES = 4096, PROCESSES = 16 };

/* How many this process has taken. */
static int taken;

/* Every kind of open file that is charged as such. */
static int take_file(void)
{
    static sigset_t set;
    switch (taken % 6) {
    case 0:
        return eventfd(0, 0);
    case 1:
        return epoll_create1(0);
    case 2:
        return signalfd(-1, &set, 0);
    case 3:
        return (int)syscall(SYS_pidfd_open, getpid(), 0);
    case 4:
        return open("/etc/passwd", O_RDONLY);
    default:
        return open("/tmp", O_PATH);
    }
}

/* A file of its own for each descriptor; those of another process are others. */
static int take_file_in_use(void)
{
    char path[64];
    if (taken == 0) {
        snprintf(path, sizeof path, "/tmp/quotas/%u.files.%d", getuid(), getpid());
        if (mkdir(path, 0700) != 0 || chdir(path) != 0)
            return -1;
    }
    snprintf(path, sizeof path, "%d", taken);
    int file = open(path, O_CREAT | O_RDWR, 0600);
    /* Of a file that is open nothing is needed but that. */
    if (file >= 0)
        unlink(path);
    return file;
}

static int take_timer(void) { return timerfd_create(CLOCK_MONOTONIC, 0); }

/* Registers one more descriptor of the same file, which `make` opens. */
static int take_interest(int (*make)(void))
{
    static int epoll, file;
    struct epoll_event event = { .events = EPOLLIN };
    if (taken == 0) {
        epoll = epoll_create1(0);
        file = make();
    }
    int copy = dup(file);
    return copy < 0 ? -1 : epoll_ctl(epoll, EPOLL_CTL_ADD, copy, &event);
}

static int make_counter(void) { return eventfd(0, 0); }
static int make_terminal(void) { return open("/dev/ptmx", O_RDWR | O_NOCTTY); }
static int take_registration(void) { return take_interest(make_counter); }
static int take_registration_of_a_device(void) { return take_interest(make_terminal); }
static int take_terminal(void) { return make_terminal(); }

static int take_socket(void) { return socket(AF_UNIX, SOCK_STREAM, 0); }

static int take_pipe(void)
{
    int ends[2];
    return pipe(ends);
}

/* Sends one more descriptor, which nobody receives. */
static int take_flight(void)
{
    static int pair[2];
    _Alignas(8) char control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec piece = { control, 1 };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    for (int tries = 0; tries < 2; tries++) {
        if ((taken == 0 || tries > 0) && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
            return -1;
        *(struct cmsghdr *)control = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
        memset(CMSG_DATA((struct cmsghdr *)control), 0, sizeof(int));
        if (sendmsg(pair[0], &message, 0) == 1)
            return 0;
        if (errno != EAGAIN)
            return -1;
    }
    return -1;
}

static int take_instance(void) { return inotify_init1(0); }

/* Forty files for each instance: there are more watches than files, and enough instances. */
static int take_watch(void)
{
    static int instance;
    char path[64];
    if (taken % 40 == 0 && (instance = inotify_init1(0)) < 0)
        return -1;
    snprintf(path, sizeof path, "/tmp/quotas/%u.%d", getuid(), taken % 40);
    close(open(path, O_CREAT | O_RDWR, 0600));
    return inotify_add_watch(instance, path, IN_MODIFY);
}

static int own_file(int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/quotas/%u", getuid());
    return open(path, O_CREAT | flags, 0600);
}

static int take_lock(void)
{
    static int file;
    if (taken == 0)
        file = own_file(O_RDWR);
    struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 2 * taken, .l_len = 1 };
    return fcntl(file, taken % 2 ? F_OFD_SETLK : F_SETLK, &lock);
}

static int take_lease(void)
{
    int file = own_file(O_RDONLY);
    return file < 0 ? -1 : fcntl(file, F_SETLEASE, F_RDLCK);
}

static int take_owner(void)
{
    int file = open("/dev/null", O_RDWR);
    return file < 0 ? -1 : fcntl(file, F_SETOWN, getpid());
}

static int take_segment(void) { return shmget(IPC_PRIVATE, 4096, 0600); }
static int take_pages(void) { return shmget(IPC_PRIVATE, 4 << 20, 0600); }
static int take_letter_box(void) { return msgget(IPC_PRIVATE, 0600); }

static int take_letter(void)
{
    static struct { long type; char text[8000]; } letter = { .type = 1 };
    static int queue;
    if (taken % 2 == 0 && (queue = msgget(IPC_PRIVATE, 0600)) < 0)
        return -1;
    return msgsnd(queue, &letter, sizeof letter.text, IPC_NOWAIT);
}

static int take_semaphores(void) { return semget(IPC_PRIVATE, 1, 0600); }

static int take_adjustment(void)
{
    static int set;
    if (taken % 32 == 0 && (set = semget(IPC_PRIVATE, 32, 0600)) < 0)
        return -1;
    struct sembuf up = { .sem_num = taken % 32, .sem_op = 1, .sem_flg = SEM_UNDO };
    return semop(set, &up, 1);
}

static int take_message_queue(void)
{
    char name[32];
    struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = 8 };
    snprintf(name, sizeof name, "/quotas.%d.%d", getpid(), taken);
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    return queue == (mqd_t)-1 ? -1 : mq_unlink(name);
}

static int take_posix_timer(void)
{
    struct sigevent quiet = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
    timer_t timer;
    return timer_create(CLOCK_MONOTONIC, &quiet, &timer);
}

static int take_queued_signal(void)
{
    if (taken == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGRTMIN);
        sigprocmask(SIG_BLOCK, &set, NULL);
    }
    return sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 });
}

/* In a container of its own, as any user may. */
static int take_mount(void)
{
    if (taken == 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return -1;
    return mount("/tmp/quotas", "/tmp/quotas", NULL, MS_BIND, NULL);
}

/* A child of the same group, that stays in it. */
static int take_container(void)
{
    int ends[2], error = 0;
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        error = unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
        (void)!write(ends[1], &error, sizeof error);
        while (error == 0)
            pause();
        _exit(0);
    }
    (void)!read(ends[0], &error, sizeof error);
    close(ends[0]);
    close(ends[1]);
    errno = error;
    return child > 0 && error == 0 ? 0 : -1;
}

static int take_loop_device(void) { return open("/dev/loop-control", O_RDWR); }

static const struct kind {
    const char *name;
    int (*take)(void);
    /* Of its own for everybody: a user is refused at once. */
    int is_roots;
} kinds[] = {
    { "open files", take_file, 0 },
    { "files of a disk", take_file_in_use, 0 },
    { "timers", take_timer, 0 },
    { "registrations in epolls", take_registration, 0 },
    { "registrations of devices", take_registration_of_a_device, 0 },
    { "terminals", take_terminal, 0 },
    { "sockets", take_socket, 0 },
    { "pipes", take_pipe, 0 },
    { "descriptors in flight", take_flight, 0 },
    { "inotify instances", take_instance, 0 },
    { "watches", take_watch, 0 },
    { "record locks", take_lock, 0 },
    { "leases", take_lease, 0 },
    { "owners", take_owner, 0 },
    { "shared segments", take_segment, 0 },
    { "pages of shared segments", take_pages, 0 },
    { "message queues of System V", take_letter_box, 0 },
    { "bytes in these", take_letter, 0 },
    { "semaphore sets", take_semaphores, 0 },
    { "adjustments", take_adjustment, 0 },
    { "message queues", take_message_queue, 0 },
    { "POSIX timers", take_posix_timer, 0 },
    { "queued signals", take_queued_signal, 0 },
    { "mounts", take_mount, 0 },
    { "containers", take_container, 0 },
    { "loop devices", take_loop_device, 1 },
};

/* What a process has come to. */
struct report {
    int taken, error;
};

static void become(unsigned user)
{
    struct rlimit limit = { FILES, FILES };
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0)
        _exit(1);
}

/* Starts a process of a user that takes up to `most`, reports, and holds them until its group is killed. */
static struct report start(const struct kind *kind, unsigned user, pid_t *group, int most)
{
    struct report report = { 0, 0 };
    int ends[2];
    if (pipe(ends) != 0)
        return (struct report){ 0, errno };
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, *group);
        close(ends[0]);
        if (user != 0)
            become(user);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (taken = 0; taken < most && kind->take() >= 0; taken++) {}
        report = (struct report){ taken, taken < most ? errno : 0 };
        (void)!write(ends[1], &report, sizeof report);
        for (;;)
            pause();
    }
    if (*group == 0)
        *group = child;
    setpgid(child, *group);
    close(ends[1]);
    (void)!read(ends[0], &report, sizeof report);
    close(ends[0]);
    return report;
}

/* A user takes all that he gets. */
static struct report take_all(const struct kind *kind, unsigned user, pid_t *group)
{
    struct report all = { 0, 0 };
    for (int process = 0; process < PROCESSES; process++) {
        struct report one = start(kind, user, group, INT32_MAX);
        all.taken += one.taken;
        all.error = one.error;
        /* One that is refused at once is not by a limit of its own. */
        if (one.taken == 0)
            return all;
    }
    all.error = 0;
    return all;
}

static void end_group(pid_t group)
{
    kill(-group, SIGKILL);
    while (waitpid(-group, NULL, 0) > 0) {}
}

/* What outlives who made it. */
static void remove_objects(void)
{
    struct shmid_ds segment;
    struct msqid_ds queue;
    struct semid_ds set;
    for (int at = 0; at < 1024; at++) {
        int id = shmctl(at, SHM_STAT, &segment);
        if (id >= 0)
            shmctl(id, IPC_RMID, NULL);
        if ((id = msgctl(at, MSG_STAT, &queue)) >= 0)
            msgctl(id, IPC_RMID, NULL);
        if ((id = semctl(at, 0, SEM_STAT, &set)) >= 0)
            semctl(id, 0, IPC_RMID);
    }
}

static const char *or_no(int holds, const char *text) { return holds ? text : "NO"; }

static void try_kind(const struct kind *kind)
{
    pid_t groups[4] = { 0 };
    struct report first = take_all(kind, FIRST, &groups[0]), second = take_all(kind, SECOND, &groups[1]);
    struct report root = start(kind, 0, &groups[2], 1);
    for (int at = 0; at < 3; at++)
        end_group(groups[at]);
    remove_objects();
    struct report again = start(kind, FIRST, &groups[3], 1);
    end_group(groups[3]);
    remove_objects();
    fprintf(stderr, "%s: %d, %d\n", kind->name, first.taken, second.taken);
    printf("%s: %s", kind->name, first.error ? strerrorname_np(first.error) : "NO LIMIT");
    if (second.error != first.error)
        printf(", %s", second.error ? strerrorname_np(second.error) : "NO LIMIT");
    printf("; another user: %s", kind->is_roots ? "none" : or_no(second.taken > 0, "some"));
    printf("; root: %s", or_no(root.taken == 1, "one"));
    printf("; given back: %s\n", kind->is_roots ? "none" : or_no(again.taken == 1, "yes"));
    fflush(stdout);
}

int main(int count, char **words)
{
    mkdir("/tmp/quotas", 0777);
    chmod("/tmp/quotas", 0777);
    for (unsigned at = 0; at < sizeof kinds / sizeof *kinds; at++)
        if (count < 2 || strcmp(words[1], kinds[at].name) == 0)
            try_kind(&kinds[at]);
    return 0;
}
