/* A directory that grows: for each number of names, ticks of making the last 200 of them, of stat of 200 scattered over it, of stat of 200 that
 * do not exist, for the first time and again, and of listing it, for a name; then of unlinking, for a name.
 * usage: directories [DIRECTORY [names...]], at least 200 names, rising */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ticks.h"

enum { SAMPLE = 200 };

static struct stat status;

static const char *name_of(int i)
{
    static char text[32];
    snprintf(text, sizeof text, "name%d", i);
    return text;
}

static void make(int i)
{
    int fd = open(name_of(i), O_CREAT | O_WRONLY | O_EXCL, 0644);
    check(fd >= 0, name_of(i));
    close(fd);
}

static void row(const char *what, int names, uint64_t start, uint64_t end, int count)
{
    char text[64];
    snprintf(text, sizeof text, "directory_%d_%s", names, what);
    report(text, start, end, count);
}

static void list(int names)
{
    DIR *open = opendir(".");
    check(open != NULL, "opendir");
    int seen = 0;
    uint64_t start = ticks();
    while (readdir(open))
        seen++;
    row("list", names, start, ticks(), names);
    check(seen == names + 2, "every name once");
    closedir(open);
}

static void measure(int names)
{
    uint64_t start = ticks();
    for (int i = names - SAMPLE; i < names; i++)
        make(i);
    row("create", names, start, ticks(), SAMPLE);
    for (int turn = 0; turn < 2; turn++) {
        start = ticks();
        for (int i = 0; i < SAMPLE; i++)
            check(stat(name_of((long)i * names / SAMPLE), &status) == 0, "stat");
    }
    row("stat", names, start, ticks(), SAMPLE);
    for (int turn = 0; turn < 2; turn++) {
        start = ticks();
        for (int i = 0; i < SAMPLE; i++)
            check(stat(name_of(-1 - i), &status) == -1 && errno == ENOENT, "stat of a missing name");
        if (turn == 0)
            row("missing_first", names, start, ticks(), SAMPLE);
    }
    row("missing", names, start, ticks(), SAMPLE);
    list(names);
}

int main(int argc, char **argv)
{
    static const int usual[] = {1000, 3000};
    int made = 0, count = argc > 2 ? argc - 2 : 2;
    check(chdir(argc > 1 ? argv[1] : "/tmp") == 0 && mkdir("grows", 0755) == 0 && chdir("grows") == 0, "grows");
    for (int i = 0; i < count; i++) {
        int names = argc > 2 ? atoi(argv[2 + i]) : usual[i];
        while (made < names - SAMPLE)
            make(made++);
        measure(names);
        made = names;
    }
    uint64_t start = ticks();
    for (int i = 0; i < made; i++)
        check(unlink(name_of(i)) == 0, "unlink");
    row("unlink", made, start, ticks(), made);
    check(chdir("..") == 0 && rmdir("grows") == 0, "rmdir");
    return 0;
}
