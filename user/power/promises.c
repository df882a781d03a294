/* Carries out a script of file operations, one a line, and keeps a record of the promises that the system has made. `./skink test power`
 * writes the script (tools/xtask/src/power/script.rs) and reads the record out of what has reached the disk.
 *
 * Line n makes a promise if it is a sync of some kind; when the call has returned, block n of the file `marks` gets the text
 * "SKINK-MARK n". It is not synced: the disk gets it with the first thing after the promise. usage: promises SCRIPT */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARK_BYTES = 1024, MAX_BYTES = 1 << 20 };

static unsigned line_number;
static int marks;

static void check(int ok, const char *what)
{
    if (ok)
        return;
    printf("line %u: %s: %s\n", line_number, what, strerror(errno));
    exit(1);
}

static void mark(void)
{
    char text[MARK_BYTES] = { 0 };
    snprintf(text, sizeof text, "SKINK-MARK %u\n", line_number);
    check(pwrite(marks, text, sizeof text, (off_t)line_number * MARK_BYTES) == sizeof text, "mark");
}

/* Writes what version `version` of a file has at `offset`; script.rs computes the same bytes, none of which is 0. */
static void fill(const char *path, int flags, unsigned offset, unsigned length, unsigned version)
{
    static unsigned char data[MAX_BYTES];
    check(length <= sizeof data, "length");
    for (unsigned i = 0; i < length; i++)
        data[i] = ((version * 2654435761u ^ (offset + i) * 2654435769u) >> 13) | 1;
    int file = open(path, O_WRONLY | flags, 0644);
    check(file >= 0, "open");
    check(pwrite(file, data, length, offset) == (ssize_t)length, "write");
    close(file);
}

static void sync_file(const char *path, int flags, int (*act)(int))
{
    int file = open(path, O_RDONLY | flags);
    check(file >= 0, "open");
    check(act(file) == 0, "sync");
    close(file);
    mark();
}

static void carry_out(const char *operation, const char *first, const char *second, unsigned offset, unsigned length, unsigned version)
{
    if (!strcmp(operation, "create"))
        fill(first, O_CREAT | O_EXCL, offset, length, version);
    else if (!strcmp(operation, "rewrite"))
        fill(first, O_TRUNC, offset, length, version);
    else if (!strcmp(operation, "write"))
        fill(first, 0, offset, length, version);
    else if (!strcmp(operation, "osync"))
        fill(first, O_SYNC, offset, length, version), mark();
    else if (!strcmp(operation, "truncate"))
        check(truncate(first, length) == 0, "truncate");
    else if (!strcmp(operation, "rename"))
        check(rename(first, second) == 0, "rename");
    else if (!strcmp(operation, "link"))
        check(link(first, second) == 0, "link");
    else if (!strcmp(operation, "unlink"))
        check(unlink(first) == 0, "unlink");
    else if (!strcmp(operation, "mkdir"))
        check(mkdir(first, 0755) == 0, "mkdir");
    else if (!strcmp(operation, "rmdir"))
        check(rmdir(first) == 0, "rmdir");
    else if (!strcmp(operation, "fsync"))
        sync_file(first, 0, fsync);
    else if (!strcmp(operation, "fdatasync"))
        sync_file(first, 0, fdatasync);
    else if (!strcmp(operation, "syncdir"))
        sync_file(first, O_DIRECTORY, fsync);
    else if (!strcmp(operation, "sync"))
        sync(), mark();
    else
        check(0, operation);
}

int main(int count, char **arguments)
{
    check(count == 2, "usage: promises SCRIPT");
    FILE *script = fopen(arguments[1], "r");
    check(script != NULL, "script");
    marks = open("marks", O_WRONLY);
    check(marks >= 0, "marks");
    char operation[16], first[64], second[64];
    unsigned offset, length, version;
    while (fscanf(script, "%15s %63s %63s %u %u %u", operation, first, second, &offset, &length, &version) == 6) {
        line_number++;
        carry_out(operation, first, second, offset, length, version);
    }
    printf("%u lines\n", line_number);
    return 0;
}
