/* Swaps names, punches holes and zeroes ranges, and prints what it sees: the same as on Linux. usage: file_space DIRECTORY */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define BLOCK 4096L

static void say(const char *what, int result)
{
    printf("%s: %s\n", what, result == 0 ? "ok" : strerrorname_np(errno));
}

static void put(const char *name, const char *text)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (write(fd, text, strlen(text)) < 0)
        perror(name);
    close(fd);
}

static void show(const char *name)
{
    char text[64] = "";
    int fd = open(name, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        snprintf(text, sizeof text, "%s", strerrorname_np(errno));
    close(fd);
    printf("%s has '%s'\n", name, text);
}

static int swap(const char *one, const char *other)
{
    return renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

static void names(void)
{
    char cwd[256];
    put("a", "one");
    put("b", "two");
    say("swap files", swap("a", "b"));
    show("a");
    show("b");
    say("swap with nothing", swap("a", "missing"));
    say("swap with itself", swap("a", "a"));
    mkdir("d", 0755);
    mkdir("d/inner", 0755);
    mkdir("e", 0755);
    put("d/inner/file", "deep");
    put("e/plain", "flat");
    say("swap a directory and a file elsewhere", swap("d/inner", "e/plain"));
    show("d/inner");
    show("e/plain/file");
    struct stat d, e;
    stat("d", &d);
    stat("e", &e);
    printf("links %lu %lu\n", (unsigned long)d.st_nlink, (unsigned long)e.st_nlink);
    say("swap with what is above", swap("e", "e/plain"));
    say("enter", chdir("e/plain"));
    say("swap directories", swap("../../d", "../../e"));
    getcwd(cwd, sizeof cwd);
    printf("in ...%s\n", strlen(cwd) > 8 ? cwd + strlen(cwd) - 8 : cwd);
    say("leave", chdir("../.."));
    say("swap and keep", renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE | 1));
}

static void sizes(int fd, const char *what)
{
    struct stat now;
    fstat(fd, &now);
    printf("%s: %ld bytes in %ld blocks\n", what, (long)now.st_size, (long)now.st_blocks / 8);
}

static void range(int fd, long from, long to)
{
    static char bytes[8 * BLOCK];
    long zeros = 0;
    if (pread(fd, bytes, to - from, from) != to - from)
        printf("short read\n");
    for (long i = 0; i < to - from; i++)
        zeros += bytes[i] == 0;
    printf("%ld to %ld: %ld zeros\n", from, to, zeros);
}

static void holes(void)
{
    static char x[8 * BLOCK];
    memset(x, 'x', sizeof x);
    int fd = open("space", O_CREAT | O_RDWR | O_TRUNC, 0644);
    if (write(fd, x, sizeof x) != sizeof x)
        perror("write");
    sizes(fd, "written");
    say("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BLOCK + 100, 3 * BLOCK));
    sizes(fd, "punched");
    range(fd, 0, 8 * BLOCK);
    range(fd, BLOCK, 2 * BLOCK);
    range(fd, 4 * BLOCK, 5 * BLOCK);
    say("punch without keeping the size", fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, BLOCK));
    say("punch nothing", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 0));
    say("punch behind the end", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 9 * BLOCK, BLOCK));
    char *map = mmap(NULL, 8 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    map[6 * BLOCK] = 'y';
    say("punch what is mapped", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 6 * BLOCK, BLOCK));
    printf("the mapping has %d\n", map[6 * BLOCK]);
    map[6 * BLOCK + 1] = 'z';
    range(fd, 6 * BLOCK, 7 * BLOCK);
    say("keep the size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 8 * BLOCK, BLOCK));
    struct stat now;
    fstat(fd, &now);
    printf("%ld bytes\n", (long)now.st_size);
    say("unknown", fallocate(fd, 0x8000, 0, BLOCK));
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc > 1 && chdir(argv[1]) != 0)
        return 1;
    names();
    holes();
    return 0;
}
