/* What is known of a file: fstat of an open file, stat of a path, of a path below directories, and of a name that does not exist; then after
 * each write, when it has to be asked for. usage: attributes [DIRECTORY] */
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
    start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(pwrite(fd, "x", 1, 0) == 1 && fstat(fd, &status) == 0, "pwrite");
    report("pwrite_fstat", start, ticks(), ROUNDS);
    check(rmdir("a/b/c") == 0 && rmdir("a/b") == 0 && rmdir("a") == 0 && unlink("file") == 0, "rmdir");
    return 0;
}
