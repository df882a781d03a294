/* Makes files without a name and gives them one, seals files in memory, and executes what is sealed, over and over, and compares: for deaths of
 * vfs and of file systems meanwhile. usage: nameless DIRECTORY ROUNDS; prints nothing but what is wrong, and how many rounds it made. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 9000, STATUS = 7 };

static char content[BYTES], seen[BYTES + 1];

static void check(int holds, const char *what, int round)
{
    if (holds)
        return;
    printf("round %d: %s: %s\n", round, what, strerrorname_np(errno));
    exit(1);
}

/* A file gets its name when it is whole. */
static void name_a_file(int round)
{
    char link[64];
    int fd = open(".", O_TMPFILE | O_RDWR, 0600);
    check(fd >= 0, "O_TMPFILE", round);
    memset(content, 'a' + round % 26, BYTES);
    check(write(fd, content, BYTES) == BYTES, "write", round);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    check(linkat(AT_FDCWD, link, AT_FDCWD, "name", AT_SYMLINK_FOLLOW) == 0, "linkat", round);
    close(fd);
    fd = open("name", O_RDONLY);
    check(read(fd, seen, sizeof seen) == BYTES && memcmp(seen, content, BYTES) == 0, "content", round);
    close(fd);
    check(unlink("name") == 0, "unlink", round);
    /* One that ends without. */
    fd = open(".", O_TMPFILE | O_WRONLY | O_EXCL, 0600);
    check(fd >= 0 && write(fd, content, BYTES) == BYTES, "second file", round);
    close(fd);
}

static int copy_all(int from, int to)
{
    char piece[16384];
    ssize_t bytes;
    while ((bytes = read(from, piece, sizeof piece)) > 0)
        if (write(to, piece, bytes) != bytes)
            return 0;
    return bytes == 0;
}

/* This program, executed from a sealed file in memory. */
static void seal_and_execute(int round)
{
    char *words[] = {"again", NULL}, *none[] = {NULL};
    int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("copy", MFD_ALLOW_SEALING), status = 0;
    check(copy_all(from, to), "copy", round);
    check(fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) == 0, "F_ADD_SEALS", round);
    check(pwrite(to, "x", 1, 0) < 0 && errno == EPERM, "write to a sealed file", round);
    check(ftruncate(to, 1) < 0 && errno == EPERM, "ftruncate of a sealed file", round);
    close(from);
    check(open("/proc/self/exe", O_WRONLY) < 0 && errno == ETXTBSY, "writing the own program", round);
    pid_t child = fork();
    if (child == 0) {
        fexecve(to, words, none);
        _exit(1);
    }
    check(waitpid(child, &status, 0) == child, "waitpid", round);
    check(WIFEXITED(status) && WEXITSTATUS(status) == STATUS, "status", round);
    close(to);
}

int main(int count, char **words)
{
    if (strcmp(words[0], "again") == 0)
        return open("/proc/self/exe", O_WRONLY) < 0 && errno == ETXTBSY ? STATUS : 1;
    if (count != 3 || chdir(words[1]) < 0)
        return 2;
    int rounds = atoi(words[2]);
    for (int round = 0; round < rounds; round++) {
        name_a_file(round);
        seal_and_execute(round);
    }
    printf("%d rounds\n", rounds);
    return 0;
}
