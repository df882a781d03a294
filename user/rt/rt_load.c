/* Loads that any user can make and that keep the kernel busy for long: `rt_load LOAD [COUNT]`. `mrt_bound rt_load ...` measures what they cost a
 * real-time process. */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 16384, SETTLE_US = 200000, MIB = 1 << 20, LARGE_MIB = 150, PER_GROUP = 20, MESSAGES = 20, MESSAGE_BYTES = 100 };

static int count;
static atomic_int started, futexes[2];
static struct timespec until;

static void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static long futex(atomic_int *word, int operation, long value, long second_value, atomic_int *second)
{
    return syscall(SYS_futex, word, operation, value, second_value, second, 0);
}

static pthread_t *start_threads(void *(*work)(void *))
{
    pthread_attr_t attributes;
    pthread_t *threads = calloc(count, sizeof *threads);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int i = 0; i < count; i++)
        check(pthread_create(&threads[i], &attributes, work, NULL) == 0, "pthread_create");
    while (started < count)
        usleep(1000);
    usleep(SETTLE_US);
    return threads;
}

static void join_threads(pthread_t *threads)
{
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void *sleep_until(void *ignored)
{
    started++;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    return ignored;
}

/* All threads sleep until the same time. */
static void sleepers(void)
{
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 3;
    join_threads(start_threads(sleep_until));
}

static void *wait_for_futex(void *ignored)
{
    started++;
    while (futexes[0] == 0)
        futex(&futexes[0], FUTEX_WAIT_PRIVATE, 0, 0, NULL);
    return ignored;
}

static void wake(void)
{
    pthread_t *threads = start_threads(wait_for_futex);
    futexes[0] = 1;
    check(futex(&futexes[0], FUTEX_WAKE_PRIVATE, INT_MAX, 0, NULL) == count, "not all were woken");
    join_threads(threads);
}

static void requeue(void)
{
    pthread_t *threads = start_threads(wait_for_futex);
    futexes[0] = 1;
    check(futex(&futexes[0], FUTEX_REQUEUE_PRIVATE, 0, INT_MAX, &futexes[1]) == 0, "some were woken");
    check(futex(&futexes[1], FUTEX_WAKE_PRIVATE, INT_MAX, 0, NULL) == count, "not all were moved");
    join_threads(threads);
}

static void *wait_for_ever(void *ignored)
{
    started++;
    pause();
    return ignored;
}

static void threads_exit(void)
{
    start_threads(wait_for_ever);
    exit(0);
}

static void threads_killed(void)
{
    pid_t child = fork();
    if (child == 0) {
        start_threads(wait_for_ever);
        pause();
    }
    sleep(2);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void begin_children(void (*work)(void))
{
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        check(child >= 0, "fork");
        if (child == 0) {
            work();
            _exit(0);
        }
    }
}

static void end_children(void)
{
    while (wait(NULL) > 0) {
    }
}

static void nap(void)
{
    usleep(SETTLE_US);
}

static void forks(void)
{
    begin_children(nap);
    end_children();
}

static void wait_for_signal(void)
{
    pause();
}

static void group(void)
{
    setpgid(0, 0);
    begin_children(wait_for_signal);
    usleep(SETTLE_US);
    signal(SIGTERM, SIG_IGN);
    check(kill(0, SIGTERM) == 0, "kill");
    end_children();
}

static void fork_large(void)
{
    char *memory = mmap(NULL, (size_t)LARGE_MIB * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "mmap");
    memset(memory, 1, (size_t)LARGE_MIB * MIB);
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        check(child >= 0, "fork");
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
}

/* Groups of senders and receivers, each sender to each receiver, as in hackbench. */
static void messages(void)
{
    char message[MESSAGE_BYTES] = {0};
    for (int i = 0; i < count; i++) {
        int ends[PER_GROUP][2];
        for (int member = 0; member < PER_GROUP; member++)
            check(pipe(ends[member]) == 0, "pipe");
        for (int member = 0; member < PER_GROUP; member++) {
            if (fork() == 0) {
                for (size_t got = 0; got < PER_GROUP * MESSAGES * sizeof message;)
                    got += read(ends[member][0], message, sizeof message);
                _exit(0);
            }
            if (fork() == 0) {
                for (int round = 0; round < MESSAGES; round++)
                    for (int to = 0; to < PER_GROUP; to++)
                        check(write(ends[to][1], message, sizeof message) == sizeof message, "write");
                _exit(0);
            }
        }
        for (int member = 0; member < PER_GROUP; member++)
            close(ends[member][0]), close(ends[member][1]);
    }
    end_children();
}

static const struct {
    const char *name;
    void (*make)(void);
    int count;
} LOADS[] = {
    {"sleepers", sleepers, 900}, {"wake", wake, 900},   {"requeue", requeue, 900}, {"exit", threads_exit, 500}, {"killed", threads_killed, 500},
    {"forks", forks, 200},       {"group", group, 400}, {"large", fork_large, 3},  {"messages", messages, 3},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof LOADS / sizeof *LOADS; i++)
        if (strcmp(argv[1], LOADS[i].name) == 0) {
            count = argc > 2 ? atoi(argv[2]) : LOADS[i].count;
            LOADS[i].make();
            return 0;
        }
    fprintf(stderr, "usage: rt_load sleepers|wake|requeue|exit|killed|forks|group|large|messages [COUNT]\n");
    return 2;
}
