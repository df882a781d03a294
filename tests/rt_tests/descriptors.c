// Descriptors in numbers: the ring of "Examining the Viability of MINIX 3" as it is written there, every process with all ends of all
// pipes; one process with 1,048,576 descriptors; what a descriptor costs fork; and the limits on descriptors and on the size of files.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

enum { PROCESSES = 200, LAPS = 3, MILLION = 1 << 20, TICKS_OF_A_DESCRIPTOR = 130 };

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            printf("line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
            exit(1); \
        } \
    } while (0)

static void limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit new = {soft, hard};
    CHECK(setrlimit(resource, &new) == 0);
}

static void ring(void)
{
    static int ends[PROCESSES][2];
    for (int i = 0; i < PROCESSES; i++)
        CHECK(pipe(ends[i]) == 0);
    for (int i = 1; i < PROCESSES; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            long sum;
            for (int lap = 0; lap < LAPS; lap++) {
                CHECK(read(ends[i - 1][0], &sum, sizeof sum) == sizeof sum);
                sum++;
                CHECK(write(ends[i][1], &sum, sizeof sum) == sizeof sum);
            }
            _exit(0);
        }
    }
    long sum = 0;
    for (int lap = 0; lap < LAPS; lap++) {
        CHECK(write(ends[0][1], &sum, sizeof sum) == sizeof sum);
        CHECK(read(ends[PROCESSES - 1][0], &sum, sizeof sum) == sizeof sum);
    }
    while (wait(NULL) > 0) {}
    printf("ring of %d with %d descriptors each: %ld\n", PROCESSES, 2 * PROCESSES + 3, sum);
    for (int i = 0; i < PROCESSES; i++)
        close(ends[i][0]), close(ends[i][1]);
}

static uint64_t ticks_of_forks(void)
{
    enum { ROUNDS = 20 };
    uint64_t start = __rdtsc();
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
    return (__rdtsc() - start) / ROUNDS;
}

static void cost_of_fork(void)
{
    enum { FURTHER = 4000 };
    limit(RLIMIT_NOFILE, 8192, MILLION);
    ticks_of_forks();
    uint64_t without = ticks_of_forks();
    for (int i = 0; i < FURTHER; i++)
        CHECK(dup(0) >= 0);
    ticks_of_forks();
    uint64_t each = (ticks_of_forks() - without) / FURTHER;
    if (each <= TICKS_OF_A_DESCRIPTOR)
        puts("a descriptor costs fork little");
    else
        printf("a descriptor costs fork %lu ticks\n", (unsigned long)each);
    fprintf(stderr, "a descriptor costs fork %lu ticks\n", (unsigned long)each);
    close_range(3, ~0u, 0);
}

static void a_million(void)
{
    limit(RLIMIT_NOFILE, MILLION, MILLION);
    // One in each of vfs's blocks of 16.
    for (int number = 15; number < MILLION; number += 16)
        CHECK(dup2(0, number) == number);
    CHECK(fcntl(0, F_DUPFD, MILLION - 1) == -1 && errno == EMFILE);
    pid_t child = fork();
    if (child == 0)
        _exit(fcntl(MILLION - 1, F_GETFD));
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(close_range(3, ~0u, 0) == 0);
    CHECK(dup(0) == 3 && close(3) == 0);
    printf("descriptors up to %d\n", MILLION - 1);
}

static void limits_of_descriptors(void)
{
    struct rlimit beyond = {MILLION, MILLION + 1};
    CHECK(setrlimit(RLIMIT_NOFILE, &beyond) == -1 && errno == EPERM);
    limit(RLIMIT_NOFILE, 10, 20);
    int count = 0;
    while (dup(0) >= 0)
        count++;
    CHECK(count == 7 && errno == EMFILE);
    CHECK(dup2(0, 10) == -1 && errno == EBADF);
    CHECK(fcntl(0, F_DUPFD, 10) == -1 && errno == EINVAL);
    CHECK(open("/", O_RDONLY) == -1 && errno == EMFILE);
    if (fork() == 0) {
        CHECK(setuid(1000) == 0);
        struct rlimit more = {20, 21};
        CHECK(setrlimit(RLIMIT_NOFILE, &more) == -1 && errno == EPERM);
        limit(RLIMIT_NOFILE, 20, 20);
        CHECK(dup(0) == 10);
        char *arguments[] = {"sh", "-c", "exec 9</ && ! exec 20</", NULL};
        execv("/bin/sh", arguments);
        _exit(1);
    }
    int status = 1;
    wait(&status);
    printf("limits are inherited: %d\n", status != 0 && !WIFSIGNALED(status) ? 0 : status);
    close_range(3, ~0u, 0);
    limit(RLIMIT_NOFILE, 1024, MILLION);
}

static volatile int signals;

static void count_signal(int signal)
{
    signals += signal == SIGXFSZ;
}

static void size_of_files(const char *path)
{
    char bytes[1000] = {0};
    int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
    CHECK(file >= 0);
    signal(SIGXFSZ, count_signal);
    signals = 0;
    limit(RLIMIT_FSIZE, 100, RLIM_INFINITY);
    CHECK(write(file, bytes, sizeof bytes) == 100);
    CHECK(write(file, bytes, 1) == -1 && errno == EFBIG && signals == 1);
    CHECK(pwrite(file, bytes, 1, 100) == -1 && errno == EFBIG && signals == 2);
    CHECK(ftruncate(file, 101) == -1 && errno == EFBIG && signals == 3);
    CHECK(truncate(path, 101) == -1 && errno == EFBIG && signals == 4);
    CHECK(fallocate(file, 0, 0, 101) == -1 && errno == EFBIG && signals == 5);
    CHECK(lseek(file, 0, SEEK_END) == 100);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(write(file, bytes, 1) == -1 && errno == EFBIG);
    signal(SIGXFSZ, SIG_DFL);
    if (fork() == 0) {
        limit(RLIMIT_CORE, 0, 0);
        write(file, bytes, 1);
        _exit(0);
    }
    int status = 0;
    wait(&status);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    limit(RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY);
    CHECK(write(file, bytes, sizeof bytes) == sizeof bytes);
    close(file);
    unlink(path);
    printf("%s: up to the limit\n", path);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    ring();
    cost_of_fork();
    a_million();
    limits_of_descriptors();
    size_of_files("/tmp/file");
    size_of_files("/dev/shm/file");
}
