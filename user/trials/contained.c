/* contained: what a container with limits lets its processes do, from inside. Each word prints a line, or several.
 *
 * usage: contained memory MIB | processes | threads | descriptors | pipes | escapes PID | hog KIND
 *
 * The limits are looked for at their edge, by all the ways by which a program could have more: children, threads, exec, shared memory,
 * System V segments, descriptors in flight. `escapes` tries what root could do outside; PID is a process there. `hog` never ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, PAGE = 4096, MOST = 4096 };

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* Touches memory page by page in a child until the child dies of that, or has it all. Returns the whole MiB that it had. */
static int touched(int kind, int mib)
{
    volatile int *pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        die("mmap");
    *pages = 0;
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        char *at = MAP_FAILED;
        int segment = -1;
        if (kind == 's') {
            segment = shmget(IPC_PRIVATE, (size_t)mib * MIB, 0600);
            if (segment < 0)
                _exit(2);
            at = shmat(segment, NULL, 0);
            shmctl(segment, IPC_RMID, NULL);
        } else {
            int sharing = kind == 'm' ? MAP_SHARED : MAP_PRIVATE;
            at = mmap(NULL, (size_t)mib * MIB, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
        }
        if (at == MAP_FAILED)
            _exit(2);
        for (int page = 0; page < mib * (MIB / PAGE); page++) {
            at[(size_t)page * PAGE] = 1;
            *pages = page + 1;
            /* Half of it by a grandchild, who has its own copies then. */
            if (kind == 'f' && page == mib * (MIB / PAGE) / 2) {
                pid_t other = fork();
                if (other == 0)
                    continue;
                waitpid(other, NULL, 0);
                _exit(0);
            }
        }
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    int had = *pages / (MIB / PAGE);
    munmap((void *)pages, PAGE);
    return had;
}

static void memory(int mib)
{
    const char *names[] = { "private", "shared", "segment", "forked" };
    const char kinds[] = "pmsf";
    for (int i = 0; i < 4; i++) {
        int fits = touched(kinds[i], mib / 2 - 1), most = touched(kinds[i], mib * 2);
        printf("memory %s: %s, %s\n", names[i], fits == mib / 2 - 1 ? "half fits" : "half does not fit",
               most < mib ? "more than all does not" : "more than all does");
    }
    void *at = mmap(NULL, (size_t)mib * 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("memory populated at once: %s\n", madvise(at, (size_t)mib * 2 * MIB, 23) ? strerror(errno) : "all");
    munmap(at, (size_t)mib * 2 * MIB);
    printf("memfd_create: %s\n", syscall(SYS_memfd_create, "x", 0) < 0 ? strerror(errno) : "made");
    printf("tmpfs: %s\n", mount("none", "/tmp", "tmpfs", 0, NULL) ? strerror(errno) : "mounted");
}

static int fork_until_refused(void)
{
    int made = 0;
    for (pid_t child; (child = fork()) >= 0; made++)
        if (child == 0)
            pause(), _exit(0);
    printf("fork: %s after %d\n", strerror(errno), made);
    return made;
}

static void processes(void)
{
    signal(SIGCHLD, SIG_DFL);
    int first = fork_until_refused();
    printf("vfork: %s\n", vfork() < 0 ? strerror(errno) : (_exit(0), ""));
    int flags = CLONE_NEWUSER | CLONE_NEWUTS | SIGCHLD;
    printf("clone of a container: %s\n", syscall(SYS_clone, flags, 0, 0, 0, 0) < 0 ? strerror(errno) : "made");
    kill(-1, SIGKILL);
    while (wait(NULL) > 0)
        ;
    int second = fork_until_refused();
    printf("as many again: %s\n", first == second ? "yes" : "no");
    kill(-1, SIGKILL);
    while (wait(NULL) > 0)
        ;
}

static void *wait_for_ever(void *nothing)
{
    pause();
    return nothing;
}

static void threads(void)
{
    int made = 0, error;
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 16384);
    while (!(error = pthread_create(&thread, &attr, wait_for_ever, NULL)))
        made++;
    printf("pthread_create: %s after %d\n", strerror(error), made);
}

/* Sends a descriptor through a socket, and closes it here. */
static int send_away(int socket, int file)
{
    char byte = 0;
    struct iovec data = { &byte, 1 };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) };
    memcpy(CMSG_DATA(header), &file, sizeof file);
    int sent = sendmsg(socket, &message, 0) == 1;
    close(file);
    return sent;
}

static int open_until_refused(const char *what, int socket)
{
    int opened = 0, file;
    while (opened < MOST && (file = open("/proc/self/exe", O_RDONLY)) >= 0 && (socket < 0 || send_away(socket, file)))
        opened++;
    printf("%s: %s after %d\n", what, strerror(errno), opened);
    return opened;
}

static void descriptors(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        die("socketpair");
    int opened = open_until_refused("open", -1);
    /* A child has the same open files, and none of its own. */
    pid_t child = fork();
    if (child == 0) {
        printf("open by a child: %s\n", open("/", O_RDONLY) < 0 ? strerror(errno) : "opened");
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    syscall(SYS_close_range, ends[1] + 1, ~0u, 0);
    /* What is in flight counts. */
    int sent = open_until_refused("open and send", ends[0]);
    printf("in flight as many as open: %s\n", sent == opened ? "yes" : "no");
    close(ends[0]), close(ends[1]);
}

static void pipes(void)
{
    int made = 0, ends[2];
    while (made < MOST && pipe(ends) == 0)
        made++;
    printf("pipe: %s after %d\n", strerror(errno), made);
    printf("socketpair: %s\n", socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ? strerror(errno) : "made");
}

static void tried(const char *what, long result)
{
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "done");
    fflush(stdout);
}

static void escapes(int outside)
{
    struct timespec now = { 1, 0 };
    struct sched_param best = { 50 };
    struct rlimit limit = { 99, 99 };
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0outside" };
    char path[64];
    tried("kill", kill(outside, SIGKILL));
    tried("ptrace", ptrace(PTRACE_ATTACH, outside, 0, 0));
    tried("pidfd_open", syscall(SYS_pidfd_open, outside, 0));
    tried("setns by a pidfd of oneself", syscall(SYS_setns, syscall(SYS_pidfd_open, getpid(), 0), CLONE_NEWNS) < 0 ? -1 : access("/outside", F_OK));
    tried("prlimit", prlimit(outside, RLIMIT_NOFILE, &limit, NULL));
    tried("process_vm_readv", syscall(SYS_process_vm_readv, outside, NULL, 0, NULL, 0, 0));
    snprintf(path, sizeof path, "/proc/%d/root", outside);
    tried("its /proc", access(path, F_OK));
    tried("/proc/1/root/outside", access("/proc/1/root/outside", F_OK));
    int file = open("/bin/sh", O_RDONLY);
    tried("F_SETOWN", fcntl(file, F_SETOWN, outside));
    int here = open("/", O_RDONLY);
    mkdir("/jail", 0755);
    tried("chroot out of a chroot", chroot("/jail") || fchdir(here) || chdir("../../../..") ? -1 : access("outside", F_OK));
    tried("chroot back", fchdir(here) || chroot("."));
    tried("mount of a disk", mount("/dev/vda", "/tmp", "ext2", 0, NULL));
    tried("mount of devices", mount("none", "/tmp", "devtmpfs", 0, NULL));
    tried("mknod of a disk", mknod("/disk", S_IFBLK | 0600, 0xfe00));
    tried("mknod of memory", mknod("/mem", S_IFCHR | 0600, 0x101));
    tried("a setting", open("/proc/sys/kernel/pid_max", O_WRONLY));
    tried("umount of /proc", umount("/proc"));
    tried("reboot", reboot(RB_AUTOBOOT));
    tried("clock_settime", clock_settime(CLOCK_REALTIME, &now));
    tried("settimeofday", settimeofday(&(struct timeval){ 1, 0 }, NULL));
    tried("sched_setscheduler", sched_setscheduler(0, SCHED_FIFO, &best));
    tried("setrlimit", setrlimit(RLIMIT_RTPRIO, &limit));
    tried("nice", setpriority(PRIO_PROCESS, 0, -20));
    tried("a message to rs", syscall(1024, 3L, 0x6d76, 0, 0, 0));
    tried("a container", syscall(1028, 4L, 0, 0, 0, 0));
    tried("init_module", syscall(SYS_init_module, 0, 0, 0));
    int socket_ = socket(AF_UNIX, SOCK_STREAM, 0);
    tried("an abstract name", connect(socket_, (void *)&name, sizeof(sa_family_t) + 8));
    tried("setuid to who does not exist", setuid(1000));
    tried("unshare of users", unshare(CLONE_NEWUSER) ? -1 : kill(outside, SIGKILL));
}

/* Writes two large files over and over, each of which is on the disk before the next one is begun, and reads them. */
static void hog_files(void)
{
    static char bytes[64 << 10];
    for (unsigned i = 0;; i++) {
        const char *name = i % 2 ? "/tmp/large1" : "/tmp/large2";
        int file = open(name, O_CREAT | O_RDWR, 0600);
        if (file < 0)
            continue;
        for (int written = 0; written < 4 * MIB; written += sizeof bytes)
            if (write(file, bytes, sizeof bytes) != sizeof bytes) {
                unlink(name);
                break;
            }
        fsync(file);
        lseek(file, 0, SEEK_SET);
        while (read(file, bytes, sizeof bytes) > 0)
            ;
        close(file);
    }
}

/* Works as hard as it can, with all that the container has, and beyond. */
static void hog(const char *kind)
{
    if (!strcmp(kind, "large"))
        hog_files();
    if (!strcmp(kind, "processor"))
        for (;;)
            ;
    if (!strcmp(kind, "forks"))
        for (;;) {
            if (fork() == 0 && fork() == 0)
                _exit(0);
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        }
    if (!strcmp(kind, "memory"))
        for (;;) {
            if (fork() == 0) {
                for (;;)
                    memset(malloc(MIB), 1, MIB);
            }
            wait(NULL);
        }
    if (!strcmp(kind, "files"))
        for (unsigned i = 0;; i++) {
            char name[32];
            snprintf(name, sizeof name, "/tmp/%u", i % 64);
            int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
            if (file >= 0 && write(file, name, sizeof name) < 0)
                unlink(name);
            close(file);
        }
}

int main(int count, char **words)
{
    const char *word = count > 1 ? words[1] : "";
    int number = count > 2 ? atoi(words[2]) : 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!strcmp(word, "memory"))
        memory(number);
    else if (!strcmp(word, "processes"))
        processes();
    else if (!strcmp(word, "threads"))
        threads();
    else if (!strcmp(word, "descriptors"))
        descriptors();
    else if (!strcmp(word, "pipes"))
        pipes();
    else if (!strcmp(word, "escapes"))
        escapes(number);
    else if (!strcmp(word, "hog"))
        hog(words[2]);
    return 0;
}
