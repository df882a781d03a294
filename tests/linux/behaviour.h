/* What each program here is written with: a program is a list of behaviours of Linux,
 *
 *     BEHAVIOUR("rmdir of a directory with entries") {
 *         mkdir("d", 0755);
 *         make("d/file", "");
 *         show(rmdir("d"));
 *     }
 *
 * and prints a line for each: its name, and what the behaviour showed, here "rmdir of a directory with entries -> ENOTEMPTY".
 * A behaviour runs in a process of its own, in an empty directory that everybody may write, as root, with umask 022, with the descriptors
 * 0 to 2 alone, which are /dev/null, and for at most ten seconds. It shows results, names of errors and what it has read back; never
 * addresses, process ids or times. With a word as its argument, a program runs the behaviours whose name has that word in it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct behaviour {
    const char *name;
    void (*run)(void);
};

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
/* Begins a behaviour; its body follows. The linker puts all of them into one table, in the order of the file. */
#define BEHAVIOUR(title)                                                                                       \
    static void JOIN(behaviour_, __LINE__)(void);                                                              \
    static const struct behaviour JOIN(entry_, __LINE__)                                                       \
        __attribute__((used, aligned(sizeof(void *)), section("behaviours"))) = {title, JOIN(behaviour_, __LINE__)}; \
    static void JOIN(behaviour_, __LINE__)(void)

extern const struct behaviour __start_behaviours[], __stop_behaviours[];

#define SHOWN_BYTES 65536
#define LIMIT_SECONDS 10
/* Users without rights, of whom the first is usually "the other user". */
#define USER 1000
#define STRANGER 1001

/* What the behaviour has shown so far: shared with its children. */
static struct shown {
    size_t length;
    /* Whether the system has told that it has lost something, as it may when a service dies. */
    int lost;
    char text[SHOWN_BYTES];
} *shown;

/* Notes that events were lost, and the system has said so: without deaths a behaviour shows it like everything else. */
__attribute__((unused)) static void events_lost(void) { shown->lost = 1; }

/* Shows a word, as printf does. */
__attribute__((unused, format(printf, 1, 2))) static void note(const char *format, ...) {
    char word[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(word, sizeof word, format, arguments);
    va_end(arguments);
    shown->length += snprintf(shown->text + shown->length, SHOWN_BYTES - 4200 - shown->length, " %s", word);
}

/* Shows the result of a call: its value, or the name of its error. */
__attribute__((unused)) static void show(long result) {
    if (result == -1)
        note("%s", errno == 0 ? "-1" : strerrorname_np(errno));
    else
        note("%ld", result);
}

/* Shows whether a call has succeeded, for results like addresses. */
__attribute__((unused)) static int succeeds(int succeeded) {
    note("%s", succeeded ? "ok" : strerrorname_np(errno));
    return succeeded;
}

/* Shows the result of mmap and its relatives. */
__attribute__((unused)) static void *show_address(void *address) {
    succeeds(address != MAP_FAILED);
    return address;
}

/* Prepares: the behaviour has no sense when this fails. */
__attribute__((unused)) static long must_(long result, const char *what) {
    if (result == -1) {
        note("(%s: %s)", what, strerrorname_np(errno));
        _exit(0);
    }
    return result;
}
#define must(call) must_((long)(call), #call)

/* Shows how a process ended. */
__attribute__((unused)) static void show_status(int status) {
    if (WIFEXITED(status))
        note("exit %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status) && WTERMSIG(status) >= 32)
        note("SIGRTMIN+%d", WTERMSIG(status) - SIGRTMIN);
    else if (WIFSIGNALED(status))
        note("SIG%s", sigabbrev_np(WTERMSIG(status)));
    else if (WIFSTOPPED(status))
        note("stopped by SIG%s", sigabbrev_np(WSTOPSIG(status)));
    else if (WIFCONTINUED(status))
        note("continued");
}

/* Waits for a child, and shows how it ended unless it called _exit(0). */
__attribute__((unused)) static void wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        show_status(status);
}

__attribute__((unused)) static void become(uid_t user) {
    must(setgroups(0, NULL));
    must(setresgid(user, user, user));
    must(setresuid(user, user, user));
}

__attribute__((unused)) static pid_t fork_as(uid_t user) {
    pid_t child = must(fork());
    if (child == 0 && user != 0)
        become(user);
    return child;
}

/* IN_CHILD { ... } and AS(user) { ... } run the block in a child, and wait for its end. */
#define AS(user) for (pid_t child_ = fork_as(user); child_ == 0 || (wait_for(child_), 0); _exit(0))
#define IN_CHILD AS(0)

/* Makes a file with that text. */
__attribute__((unused)) static void make_mode(const char *path, const char *text, mode_t mode) {
    int fd = must(open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, mode));
    must(write(fd, text, strlen(text)));
    must(fchmod(fd, mode));
    close(fd);
}

__attribute__((unused)) static void make(const char *path, const char *text) { make_mode(path, text, 0644); }

/* Shows what a file has in it, in quotes; bytes 0 as '.'. */
__attribute__((unused)) static void show_bytes(const char *bytes, ssize_t length) {
    char text[512];
    if (length < 0) {
        note("%s", strerrorname_np(errno));
        return;
    }
    if (length > 500)
        length = 500;
    for (ssize_t i = 0; i < length; i++)
        text[i] = bytes[i] == 0 ? '.' : bytes[i] == '\n' ? '/' : bytes[i];
    note("'%.*s'", (int)length, text);
}

__attribute__((unused)) static void show_file(const char *path) {
    char text[512];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    show_bytes(text, fd < 0 ? -1 : read(fd, text, sizeof text));
    if (fd >= 0)
        close(fd);
}

/* Reads up to `length` bytes and shows them. */
__attribute__((unused)) static void show_read(int fd, size_t length) {
    char text[512];
    show_bytes(text, read(fd, text, length < sizeof text ? length : sizeof text));
}

__attribute__((unused)) static void show_mode(const char *path) {
    struct stat at;
    if (lstat(path, &at) < 0)
        note("%s", strerrorname_np(errno));
    else
        note("%o", at.st_mode);
}

__attribute__((unused)) static long size_of(int fd) {
    struct stat at;
    return fstat(fd, &at) < 0 ? -1 : at.st_size;
}

/* An address that nothing is mapped at, which the compiler does not know. */
__attribute__((unused)) static void *bad(void) {
    static void *volatile address = (void *)8;
    return address;
}

/* The last `length` bytes before a page that nothing is mapped at. */
__attribute__((unused)) static char *edge(size_t length) {
    char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(munmap(pages + 2 * 4096, 4096));
    return pages + 2 * 4096 - length;
}

/* A page that may only be read. */
__attribute__((unused)) static void *read_only(void) {
    return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

__attribute__((unused)) static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&time, &time) < 0 && errno == EINTR)
        ;
}

__attribute__((unused)) static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Counts a signal's handler's calls. */
static volatile sig_atomic_t handled;
__attribute__((unused)) static void handler(int signal) {
    (void)signal;
    handled++;
}

__attribute__((unused)) static void handle(int signal, int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    must(sigaction(signal, &action, NULL));
}

__attribute__((unused)) static sigset_t set_of(int signal) {
    sigset_t set;
    sigemptyset(&set);
    if (signal != 0)
        sigaddset(&set, signal);
    return set;
}

__attribute__((unused)) static void block(int signal) {
    sigset_t set = set_of(signal);
    must(sigprocmask(SIG_BLOCK, &set, NULL));
}

/* A barrier between parent and child: the child tells, the parent waits, or the other way round. */
struct gate {
    int fds[2];
};
__attribute__((unused)) static struct gate new_gate(void) {
    struct gate gate;
    must(pipe2(gate.fds, O_CLOEXEC));
    return gate;
}
__attribute__((unused)) static void open_gate(struct gate gate) { must(write(gate.fds[1], "", 1)); }
__attribute__((unused)) static void pass_gate(struct gate gate) {
    char byte;
    while (read(gate.fds[0], &byte, 1) < 0 && errno == EINTR)
        ;
}

/* Waits until who has this file in /proc, a process or a thread, does nothing but wait. */
__attribute__((unused)) static void wait_until_stat_says_asleep(const char *path) {
    char text[512];
    for (int tries = 0, asleep = 0; tries < 2000 && asleep < 2; tries++) {
        int fd = must(open(path, O_RDONLY));
        ssize_t length = read(fd, text, sizeof text - 1);
        close(fd);
        text[length < 0 ? 0 : length] = 0;
        const char *state = strrchr(text, ')');
        asleep = state != NULL && strchr("STZ", state[2]) != NULL ? asleep + 1 : 0;
        sleep_ms(2);
    }
}

/* Waits until the process does nothing but wait: so it has reached the call that is to be interrupted. */
__attribute__((unused)) static void wait_until_asleep(pid_t process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    wait_until_stat_says_asleep(path);
}

static int remove_one(const char *path, const struct stat *at, int type, struct FTW *walk) {
    (void)at, (void)type, (void)walk;
    return remove(path);
}

static void prepare(void) {
    struct rlimit files = {1024, 4096}, core;
    for (int number = 1; number <= SIGRTMAX; number++)
        signal(number, SIG_DFL);
    sigset_t none = set_of(0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(022);
    setgroups(0, NULL);
    setrlimit(RLIMIT_NOFILE, &files);
    /* No core dumps; a behaviour that wants them raises this limit. */
    getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &core);
    close_range(0, ~0U, 0);
    for (int fd = 0; fd < 3; fd++)
        open("/dev/null", O_RDWR);
}

#ifdef DEATHS
static void before_behaviour(void);
#else
static void before_behaviour(void) {}
#endif

/* Runs one behaviour in the directory `at`, and returns how its process ended, or -1 when it took too long. */
static int run(const struct behaviour *behaviour, const char *at) {
    struct timespec limit = {LIMIT_SECONDS, 0};
    sigset_t child_ended = set_of(SIGCHLD);
    int status = -1;
    mkdir(at, 0777);
    chmod(at, 0777);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        prepare();
        must(chdir(at));
        before_behaviour();
        behaviour->run();
        _exit(0);
    }
    setpgid(child, child);
    do {
        if (waitpid(child, &status, WNOHANG) == child)
            break;
        status = -1;
    } while (sigtimedwait(&child_ended, NULL, &limit) >= 0);
    kill(-child, SIGKILL);
    if (status == -1)
        waitpid(child, NULL, 0);
    nftw(at, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}

/* Runs one behaviour, and leaves what it has shown in `shown`. */
static void try_once(const struct behaviour *behaviour) {
    char at[64];
    snprintf(at, sizeof at, "/tmp/behaviour.%d", (int)getpid());
    memset(shown, 0, sizeof *shown);
    int status = run(behaviour, at);
    if (status == -1)
        note("(took too long)");
    else if (status != 0)
        show_status(status);
}

static void begin(void) {
    sigset_t child_ended = set_of(SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ended, NULL);
    shown = mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

#ifdef DEATHS
#include "deaths.h"
#else
int main(int count, char **words) {
    begin();
    for (const struct behaviour *each = __start_behaviours; each < __stop_behaviours; each++) {
        if (count > 1 && strstr(each->name, words[1]) == NULL)
            continue;
        try_once(each);
        printf("%s ->%s\n", each->name, shown->text);
        fflush(stdout);
    }
    return 0;
}
#endif
