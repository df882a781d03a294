/* Calls on names: opening and closing a file and a device, access, rename, a directory made and removed, and a file made, written and removed.
 * usage: names [DIRECTORY] */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ticks.h"

enum { ROUNDS = 1000, PAGE = 4096 };

static char page[PAGE];

static void open_close(const char *path)
{
    int fd = open(path, O_RDONLY);
    check(fd >= 0 && close(fd) == 0, path);
}

static void bench_open_close(const char *name, const char *path)
{
    open_close(path);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        open_close(path);
    report(name, start, ticks(), ROUNDS);
}

static void bench_access(void)
{
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(access("file", R_OK) == 0, "access");
    report("access", start, ticks(), ROUNDS);
}

static void bench_rename(void)
{
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(rename(i & 1 ? "other" : "file", i & 1 ? "file" : "other") == 0, "rename");
    report("rename", start, ticks(), ROUNDS);
}

static void bench_mkdir(void)
{
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(mkdir("directory", 0755) == 0 && rmdir("directory") == 0, "mkdir");
    report("mkdir_rmdir", start, ticks(), ROUNDS);
}

static void bench_whole_life(void)
{
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        int fd = open("short", O_CREAT | O_WRONLY | O_TRUNC, 0644);
        check(fd >= 0 && write(fd, page, PAGE) == PAGE && close(fd) == 0 && unlink("short") == 0, "short");
    }
    report("create_write_close_unlink", start, ticks(), ROUNDS);
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : "/tmp";
    check(chdir(directory) == 0, directory);
    int fd = open("file", O_CREAT | O_WRONLY, 0644);
    check(fd >= 0 && close(fd) == 0, "file");
    bench_open_close("open_close", "file");
    bench_open_close("open_close_null", "/dev/null");
    bench_access();
    bench_rename();
    bench_mkdir();
    bench_whole_life();
    check(unlink("file") == 0, "file");
    return 0;
}
