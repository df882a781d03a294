/* What is known of a file: fstat of an open file, stat of a path, of a path below directories, and of a name that does not exist; then after
 * each write, when it has to be asked for. Then what changes attributes of a file by a path of four components, a stat after it, and unlink of
 * names in that directory that do not exist, each another one. usage: attributes [DIRECTORY] */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ticks.h"

enum { ROUNDS = 1000 };

static struct stat status;

static void bench_stat(const char *name, const char *path)
{
    check(stat(path, &status) == 0, path);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(stat(path, &status) == 0, path);
    report(name, start, ticks(), ROUNDS);
}

static void bench_missing(const char *path)
{
    check(stat(path, &status) == -1 && errno == ENOENT, path);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(stat(path, &status) == -1, path);
    report("stat_missing", start, ticks(), ROUNDS);
}

static void bench_changes(const char *path)
{
    static const struct timespec times[2] = {{1, 2}, {3, 4}};
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(chmod(path, 0600 + i % 2) == 0, "chmod");
    report("chmod_below_3", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(chown(path, i % 2, 0) == 0, "chown");
    report("chown_below_3", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(utimensat(AT_FDCWD, path, times, 0) == 0, "utimensat");
    report("utimensat_below_3", start, ticks(), ROUNDS);
    check(stat(path, &status) == 0, path);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(chmod(path, 0600 + i % 2) == 0 && stat(path, &status) == 0, "chmod");
    report("chmod_stat_below_3", start, ticks(), ROUNDS);
}

static void bench_unlink_missing(const char *directory)
{
    char path[64];
    char *number = stpcpy(stpcpy(path, directory), "/none");
    number[3] = 0;
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        number[0] = '0' + i / 100, number[1] = '0' + i / 10 % 10, number[2] = '0' + i % 10;
        check(unlink(path) == -1 && errno == ENOENT, path);
    }
    report("unlink_missing_below_3", start, ticks(), ROUNDS);
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : "/tmp";
    check(chdir(directory) == 0, directory);
    int fd = open("file", O_CREAT | O_RDWR, 0644);
    check(fd >= 0, "file");
    check(write(fd, "x", 1) == 1 && fstat(fd, &status) == 0, "file");
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(fstat(fd, &status) == 0, "fstat");
    report("fstat", start, ticks(), ROUNDS);
    bench_stat("stat", "file");
    check(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 && mkdir("a/b/c", 0755) == 0, "mkdir");
    bench_stat("stat_below_3", "a/b/c/../../../file");
    bench_missing("none");
    check(close(open("a/b/c/file", O_CREAT | O_WRONLY, 0644)) == 0, "a/b/c/file");
    bench_changes("a/b/c/file");
    bench_unlink_missing("a/b/c");
    check(unlink("a/b/c/file") == 0, "a/b/c/file");
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(pwrite(fd, "x", 1, 0) == 1 && fstat(fd, &status) == 0, "pwrite");
    report("pwrite_fstat", start, ticks(), ROUNDS);
    check(rmdir("a/b/c") == 0 && rmdir("a/b") == 0 && rmdir("a") == 0 && unlink("file") == 0, "rmdir");
    return 0;
}
