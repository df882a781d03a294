/* What it costs that nothing synced is lost in a power cut: ticks for one file that is made, extended or replaced so that it
 * survives, and for one hundred files that one sync writes. usage: synced [DIRECTORY [rounds]] */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ticks.h"

static char data[4096];

static const char *path(const char *directory, const char *name, int i)
{
    static char text[2][256];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof text[turn], "%s/%s%d", directory, name, i);
    return text[turn];
}

/* Writes a block and ends it with fsync, if wanted. */
static void put(const char *name, int flags, int is_synced)
{
    int fd = open(name, O_WRONLY | flags, 0644);
    check(fd >= 0, "open");
    check(write(fd, data, sizeof data) == sizeof data, "write");
    check(!is_synced || fsync(fd) == 0, "fsync");
    close(fd);
}

static void sync_directory(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY);
    check(fd >= 0, "open directory");
    check(fsync(fd) == 0, "fsync directory");
    close(fd);
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : "/tmp";
    int rounds = argc > 2 ? atoi(argv[2]) : 50;
    memset(data, 'x', sizeof data);
    sync();

    uint64_t start = ticks();
    for (int i = 0; i < rounds; i++) {
        put(path(directory, "kept", i), O_CREAT | O_EXCL, 1);
        sync_directory(directory);
    }
    report("sync_create", start, ticks(), rounds);

    start = ticks();
    for (int i = 0; i < rounds; i++)
        put(path(directory, "kept", i), O_APPEND, 1);
    report("sync_append", start, ticks(), rounds);

    start = ticks();
    for (int i = 0; i < rounds; i++) {
        put(path(directory, "new", i), O_CREAT | O_EXCL, 1);
        check(rename(path(directory, "new", i), path(directory, "kept", i)) == 0, "rename");
        sync_directory(directory);
    }
    report("sync_replace", start, ticks(), rounds);

    start = ticks();
    for (int i = 0; i < 100; i++)
        put(path(directory, "many", i), O_CREAT | O_EXCL, 0);
    sync();
    report("sync_hundred", start, ticks(), 100);

    start = ticks();
    for (int i = 0; i < 100; i++)
        check(unlink(path(directory, "many", i)) == 0, "unlink");
    sync();
    report("sync_unlink_hundred", start, ticks(), 100);
    return 0;
}
