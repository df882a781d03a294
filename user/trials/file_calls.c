/* Looks for data and holes in files, and at what select leaves of its time-out; prints what it sees: the same as on Linux.
 * usage: file_calls DIRECTORY */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096 };

static int file;

static void seek(const char *what, off_t offset, int whence)
{
    off_t at = lseek(file, offset, whence);
    if (at < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, (long)at);
}

static void put(off_t offset, size_t bytes)
{
    char *text = malloc(bytes);
    memset(text, 'x', bytes);
    if (pwrite(file, text, bytes, offset) != (ssize_t)bytes)
        exit(1);
    free(text);
}

/* All stretches of data, as cp and tar find them. */
static void stretches(const char *what)
{
    printf("%s:", what);
    for (off_t at = 0; (at = lseek(file, at, SEEK_DATA)) >= 0;) {
        off_t end = lseek(file, at, SEEK_HOLE);
        printf(" %ld-%ld", (long)at, (long)end);
        at = end;
    }
    printf(" %s\n", strerrorname_np(errno));
}

static void holes(void)
{
    file = open("sparse", O_CREAT | O_TRUNC | O_RDWR, 0600);
    stretches("empty");
    seek("data in it", 0, SEEK_DATA);
    seek("hole in it", 0, SEEK_HOLE);
    ftruncate(file, 100 * BLOCK);
    stretches("one hole");
    seek("hole in it", 5000, SEEK_HOLE);
    put(10 * BLOCK, BLOCK), put(11 * BLOCK, 100), put(50 * BLOCK + 10, 10), put(99 * BLOCK, BLOCK);
    stretches("four writes");
    seek("in the middle of data", 10 * BLOCK + 7, SEEK_DATA);
    seek("in the middle of a hole", 12 * BLOCK + 7, SEEK_HOLE);
    seek("the position", 0, SEEK_CUR);
    seek("at the end", 100 * BLOCK, SEEK_DATA);
    seek("behind it", 100 * BLOCK + 1, SEEK_HOLE);
    seek("negative", -1, SEEK_DATA);
    put(3000000000ll, 5000), put(40000000ll, 1);
    stretches("far apart");
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10 * BLOCK, BLOCK);
    stretches("a hole more");
    ftruncate(file, 50 * BLOCK + 20);
    stretches("shorter");
    close(file);
    file = open(".", O_RDONLY);
    close(file);
    int ends[2];
    if (pipe(ends))
        exit(1);
    file = ends[0];
    seek("a pipe", 0, SEEK_DATA);
    unlink("sparse");
}

static void timeouts(void)
{
    int ends[2];
    fd_set set;
    struct timeval limit = {100, 0};
    if (pipe(ends) || write(ends[1], "x", 1) != 1)
        exit(1);
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    printf("ready: %d", select(ends[0] + 1, &set, 0, 0, &limit));
    printf(", %s\n", limit.tv_sec == 99 || (limit.tv_sec == 100 && limit.tv_usec == 0) ? "nearly all is left" : "wrong");
    read(ends[0], &(char){0}, 1);
    limit = (struct timeval){0, 100000};
    FD_SET(ends[0], &set);
    printf("not ready: %d", select(ends[0] + 1, &set, 0, 0, &limit));
    printf(", %ld %ld\n", (long)limit.tv_sec, (long)limit.tv_usec);
    limit = (struct timeval){50, 0};
    alarm(1);
    FD_SET(ends[0], &set);
    int result = select(ends[0] + 1, &set, 0, 0, &limit);
    printf("signalled: %s, %s\n", result < 0 ? strerrorname_np(errno) : "0", limit.tv_sec >= 40 && limit.tv_sec < 50 ? "less is left" : "wrong");
}

static void nothing(int signal)
{
    (void)signal;
}

int main(int count, char **arguments)
{
    struct sigaction action = {.sa_handler = nothing};
    if (count < 2 || chdir(arguments[1]))
        return 1;
    sigaction(SIGALRM, &action, 0);
    holes();
    timeouts();
    return 0;
}
