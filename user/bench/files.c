/* The file test of "Examining the Viability of MINIX 3": make files of 4 KiB, read each of them several times, remove them;
 * ticks for one file or one read. usage: files [DIRECTORY [files [reads]]] */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ticks.h"

static char data[4096];

static const char *path(const char *directory, int i)
{
    static char text[256];
    snprintf(text, sizeof text, "%s/file%d", directory, i);
    return text;
}

static void create(const char *name)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    check(fd >= 0, "create");
    check(write(fd, data, sizeof data) == sizeof data, "write");
    close(fd);
}

static void read_back(const char *name)
{
    int fd = open(name, O_RDONLY);
    check(fd >= 0, "open");
    check(read(fd, data, sizeof data) == sizeof data, "read");
    close(fd);
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : "/tmp";
    int files = argc > 2 ? atoi(argv[2]) : 100;
    int reads = argc > 3 ? atoi(argv[3]) : 100;
    memset(data, 'x', sizeof data);

    uint64_t start = ticks();
    for (int i = 0; i < files; i++)
        create(path(directory, i));
    report("file_create_write", start, ticks(), files);

    start = ticks();
    for (int round = 0; round < reads; round++)
        for (int i = 0; i < files; i++)
            read_back(path(directory, i));
    report("file_open_read_close", start, ticks(), (uint64_t)files * reads);

    start = ticks();
    for (int i = 0; i < files; i++)
        check(unlink(path(directory, i)) == 0, "unlink");
    report("file_unlink", start, ticks(), files);
    return 0;
}
