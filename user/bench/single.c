/* Calls that a monolithic kernel answers at once: reads and writes of a file that is cached, and calls of a process about itself.
 * usage: single [DIRECTORY] */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ticks.h"

enum { ROUNDS = 1000, PAGE = 4096, PAGES = 16 };

static char buffer[PAGES * PAGE] __attribute__((aligned(PAGE)));

/* Reads `bytes` bytes to `to` again and again, always at the same place. */
static void bench_read(const char *name, int fd, char *to, ssize_t bytes)
{
    for (int i = 0; i < 3; i++)
        check(pread(fd, to, bytes, 0) == bytes, name);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(pread(fd, to, bytes, 0) == bytes, name);
    report(name, start, ticks(), ROUNDS);
}

static void bench_file(int fd)
{
    check(write(fd, buffer, sizeof buffer) == sizeof buffer, "write");
    bench_read("pread_1", fd, buffer, 1);
    bench_read("pread_4k", fd, buffer, PAGE);
    bench_read("pread_4k_unaligned", fd, buffer + 100, PAGE);
    bench_read("pread_64k", fd, buffer, sizeof buffer);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(pwrite(fd, buffer, PAGE, 0) == PAGE, "pwrite");
    report("pwrite_4k", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(pwrite(fd, buffer, PAGE, 0) == PAGE && pread(fd, buffer, PAGE, 0) == PAGE, "pwrite and pread");
    report("pwrite_pread_4k", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(lseek(fd, i, SEEK_SET) == i, "lseek");
    report("lseek", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(fcntl(fd, F_GETFL) >= 0, "fcntl");
    report("fcntl_getfl", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(close(dup(fd)) == 0, "dup");
    report("dup_close", start, ticks(), ROUNDS);
    check(fsync(fd) == 0, "fsync");
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(fsync(fd) == 0, "fsync");
    report("fsync_clean", start, ticks(), ROUNDS);
}

static void bench_process(void)
{
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(syscall(SYS_getpid) > 0, "getpid");
    report("getpid", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        umask(022);
    report("umask", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        syscall(SYS_getuid);
    report("getuid", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(syscall(SYS_brk, 0) > 0, "brk");
    report("brk_0", start, ticks(), ROUNDS);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(sigprocmask(i & 1 ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL) == 0, "sigprocmask");
    report("sigprocmask", start, ticks(), ROUNDS);
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(sigaction(SIGUSR1, &ignored, NULL) == 0, "sigaction");
    report("sigaction", start, ticks(), ROUNDS);
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : "/tmp";
    check(chdir(directory) == 0, directory);
    int fd = open("single", O_CREAT | O_TRUNC | O_RDWR, 0644);
    check(fd >= 0, "single");
    bench_file(fd);
    bench_process();
    check(unlink("single") == 0, "single");
    return 0;
}
