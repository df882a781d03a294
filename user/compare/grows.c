/* What operations cost beside so many processes, descriptors, mappings, touched mebibytes, timers or sleeping threads.
 * Prints lines "KIND: OPERATION@COUNT ticks". usage: grows KIND COUNT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../bench/ticks.h"

enum { PAGE = 4096, WARM_UP = 5, FORKS = 20, ROUNDS = 200 };

static const char *kind;
static int count;

static void measure(const char *operation, int rounds, void (*step)(void))
{
    char name[64];
    uint64_t start = 0;
    for (int i = -WARM_UP; i < rounds; i++) {
        if (i == 0)
            start = ticks();
        step();
    }
    uint64_t end = ticks();
    snprintf(name, sizeof name, "%s: %s@%d", kind, operation, count);
    report(name, start, end, rounds);
    fflush(stdout);
}

static void raise_limit(int resource)
{
    struct rlimit limit = {count + 1000, count + 1000};
    check(setrlimit(resource, &limit) == 0, "setrlimit");
}

static void *map(size_t bytes, int protection)
{
    void *memory = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "mmap");
    return memory;
}

static void fork_exit_wait(void)
{
    int status;
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0)
        _exit(0);
    check(waitpid(child, &status, 0) == child && status == 0, "wait");
}

static void open_close(void)
{
    int fd = open("/dev/null", O_WRONLY);
    check(fd >= 0 && close(fd) == 0, "/dev/null");
}

static void nothing_to_kill(void)
{
    check(kill(getpid(), 0) == 0, "kill");
}

/* Processes that sleep, whose parent sleeps too. */
static void processes(void)
{
    int ready[2];
    char byte = 0;
    check(pipe(ready) == 0, "pipe");
    pid_t parent = fork();
    if (parent == 0) {
        setpgid(0, 0);
        for (int i = 0; i < count; i++) {
            pid_t child = fork();
            check(child >= 0, "fork");
            if (child == 0)
                for (;;)
                    pause();
        }
        check(write(ready[1], &byte, 1) == 1, "write");
        for (;;)
            pause();
    }
    close(ready[1]);
    check(read(ready[0], &byte, 1) == 1, "the processes");
    measure("fork, exit and wait", FORKS, fork_exit_wait);
    measure("kill", ROUNDS, nothing_to_kill);
    measure("open and close", ROUNDS, open_close);
    kill(-parent, SIGKILL);
    wait(NULL);
    /* Its end comes when the last of them is dead. */
    check(read(ready[0], &byte, 1) == 0, "the processes");
}

static int epoll, counter;

static int registered(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fd = eventfd(0, 0);
    check(fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "registration");
    return fd;
}

static void epoll_cycle(void)
{
    struct epoll_event event;
    uint64_t value = 1;
    check(write(counter, &value, 8) == 8 && epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");
    check(read(counter, &value, 8) == 8, "read");
}

static void fstat_last(void)
{
    struct stat status;
    check(fstat(counter, &status) == 0, "fstat");
}

/* Descriptors, which an epoll watches. */
static void descriptors(void)
{
    raise_limit(RLIMIT_NOFILE);
    epoll = epoll_create1(0);
    check(epoll >= 0, "epoll_create1");
    for (int i = 0; i < count; i++)
        counter = registered();
    measure("open and close", ROUNDS, open_close);
    measure("fstat", ROUNDS, fstat_last);
    measure("counter, epoll_wait", ROUNDS, epoll_cycle);
    measure("fork, exit and wait", FORKS, fork_exit_wait);
}

static void map_unmap(void)
{
    check(munmap(map(16 * PAGE, PROT_READ | PROT_WRITE), 16 * PAGE) == 0, "munmap");
}

/* Where the next fault will be, far from the one before. */
static volatile char *untouched;

static void fault(void)
{
    *untouched = 1;
    untouched += 64 * PAGE;
}

static void protect(void)
{
    check(mprotect((char *)untouched, PAGE, PROT_READ) == 0, "mprotect");
    check(mprotect((char *)untouched, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

/* Mappings with a page between them where nothing is. */
static void holes(void)
{
    char *memory = map((size_t)count * 2 * PAGE, PROT_READ | PROT_WRITE);
    for (int i = 0; i < count; i++)
        check(munmap(memory + 2 * i * PAGE, PAGE) == 0, "munmap");
    measure("mmap and munmap", ROUNDS, map_unmap);
}

/* Mappings that cannot be joined. */
static void mappings(void)
{
    for (int i = 0; i < count; i++)
        map(PAGE, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE);
    measure("mmap and munmap", ROUNDS, map_unmap);
    untouched = map((size_t)(ROUNDS + WARM_UP + 1) * 64 * PAGE, PROT_READ | PROT_WRITE);
    measure("page fault", ROUNDS, fault);
    measure("mprotect there and back", ROUNDS, protect);
    measure("fork, exit and wait", FORKS, fork_exit_wait);
}

static void mebibytes(void)
{
    size_t bytes = (size_t)count << 20;
    volatile char *memory = map(bytes, PROT_READ | PROT_WRITE);
    for (size_t at = 0; at < bytes; at += PAGE)
        memory[at] = 1;
    measure("fork, exit and wait", FORKS, fork_exit_wait);
}

static timer_t timer;

static void set_timer(void)
{
    struct itimerspec hour = {.it_value.tv_sec = 3600};
    check(timer_settime(timer, 0, &hour, NULL) == 0, "timer_settime");
}

static void set_interval(void)
{
    struct itimerval hour = {.it_value.tv_sec = 3600};
    check(setitimer(ITIMER_REAL, &hour, NULL) == 0, "setitimer");
}

static void make_timer(void)
{
    timer_t another;
    struct sigevent signal = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    check(timer_create(CLOCK_MONOTONIC, &signal, &another) == 0 && timer_delete(another) == 0, "timer_create");
}

static void sleep_shortly(void)
{
    struct timespec time = {.tv_nsec = 1000};
    check(nanosleep(&time, NULL) == 0, "nanosleep");
}

/* Timers that expire some time from now. */
static void timers(void)
{
    struct sigevent signal = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    raise_limit(RLIMIT_SIGPENDING);
    for (int i = 0; i < count; i++) {
        struct itimerspec later = {.it_value.tv_sec = 1000 + i};
        check(timer_create(CLOCK_MONOTONIC, &signal, &timer) == 0, "timer_create");
        check(timer_settime(timer, 0, &later, NULL) == 0, "timer_settime");
    }
    measure("timer_settime", ROUNDS, set_timer);
    measure("timer_create and timer_delete", ROUNDS, make_timer);
    measure("setitimer", ROUNDS, set_interval);
    measure("nanosleep of 1 µs", ROUNDS, sleep_shortly);
}

static int turn;

static void futex_wait(int *word, int value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, 0, 0, 0);
}

static void *sleeper(void *word)
{
    for (;;)
        futex_wait(word, 0);
    return NULL;
}

static void pass_on(int from, int to)
{
    int now;
    while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != from)
        futex_wait(&turn, now);
    __atomic_store_n(&turn, to, __ATOMIC_RELEASE);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static void *partner(void *none)
{
    for (;;)
        pass_on(1, 0);
    return none;
}

static void futex_round_trip(void)
{
    pass_on(0, 1);
    int now;
    while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != 0)
        futex_wait(&turn, now);
}

static void *end_at_once(void *argument)
{
    return argument;
}

static pthread_attr_t small_stack;

static pthread_t start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    check(pthread_create(&thread, &small_stack, run, argument) == 0, "pthread_create");
    return thread;
}

static void create_join(void)
{
    check(pthread_join(start(end_at_once, NULL), NULL) == 0, "pthread_join");
}

static void yield(void)
{
    sched_yield();
}

/* Threads that sleep, each on a word of its own. */
static void threads(void)
{
    int *words = calloc(count, sizeof *words);
    check(words != NULL, "calloc");
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 32 << 10);
    for (int i = 0; i < count; i++)
        start(sleeper, &words[i]);
    start(partner, NULL);
    /* All of them sleep when they have had their turns. */
    for (int i = 0; i < 100; i++)
        sched_yield();
    measure("futex round trip of two", ROUNDS, futex_round_trip);
    measure("sched_yield", ROUNDS, yield);
    measure("thread, create and join", FORKS, create_join);
    measure("fork, exit and wait", FORKS, fork_exit_wait);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } kinds[] = {
        {"processes", processes}, {"descriptors", descriptors}, {"mappings", mappings}, {"holes", holes},
        {"mebibytes", mebibytes}, {"timers", timers},           {"threads", threads},
    };
    check(argc == 3 && (count = atoi(argv[2])) > 0, "usage: grows KIND COUNT");
    kind = argv[1];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i].name) == 0) {
            kinds[i].run();
            exit(0);
        }
    check(0, kind);
}
