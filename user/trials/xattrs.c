/* Sets, reads, lists and removes extended attributes, and prints what it sees: the same as on Linux. usage: xattrs DIRECTORY [cycle]
 * Started by the superuser; a child becomes another user. With `cycle` it only changes attributes of one file over and over, and compares. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { NOBODY = 65534, ROUNDS = 300 };

static char value[70000];
static void *volatile bad = (void *)8;

static void say(const char *what, long result)
{
    if (result >= 0)
        printf("%s: %ld\n", what, result);
    else
        printf("%s: %s\n", what, strerrorname_np(errno));
}

static int by_name(const void *one, const void *two)
{
    return strcmp(*(const char *const *)one, *(const char *const *)two);
}

/* The names of those namespaces that every Linux has, sorted. */
static void list(const char *what, const char *path)
{
    static char names[4096];
    char *sorted[100];
    int count = 0;
    long bytes = llistxattr(path, names, sizeof names);
    printf("%s:", what);
    if (bytes < 0)
        printf(" %s", strerrorname_np(errno));
    for (long at = 0; at < bytes; at += strlen(names + at) + 1)
        if (strcmp(names + at, "security.selinux") != 0)
            sorted[count++] = names + at;
    qsort(sorted, count, sizeof *sorted, by_name);
    for (int at = 0; at < count; at++)
        printf(" %s", sorted[at]);
    printf("\n");
}

static void get(const char *what, const char *path, const char *name)
{
    long bytes = lgetxattr(path, name, value, sizeof value);
    if (bytes >= 0)
        printf("%s: %.*s\n", what, (int)bytes, value);
    else
        printf("%s: %s\n", what, strerrorname_np(errno));
}

static void forms(void)
{
    int fd = open("file", O_CREAT | O_RDWR, 0644), path = open("file", O_PATH);
    symlink("file", "link");
    say("set", setxattr("file", "user.one", "first", 5, 0));
    say("set again", setxattr("file", "user.one", "second value", 12, 0));
    get("get", "file", "user.one");
    say("create what exists", setxattr("file", "user.one", "x", 1, XATTR_CREATE));
    say("replace what does not", setxattr("file", "user.two", "x", 1, XATTR_REPLACE));
    say("both, exists", setxattr("file", "user.one", "x", 1, XATTR_CREATE | XATTR_REPLACE));
    say("both, does not", setxattr("file", "user.two", "x", 1, XATTR_CREATE | XATTR_REPLACE));
    say("unknown flag", setxattr("file", "user.one", "x", 1, 4));
    say("create", fsetxattr(fd, "user.two", "", 0, XATTR_CREATE));
    say("replace", setxattr("link", "user.two", "by link", 7, XATTR_REPLACE));
    get("get", "file", "user.two");
    list("list", "file");
    say("size of the list", listxattr("file", 0, 0));
    say("too little room for it", flistxattr(fd, value, 10));
    say("size of a value", fgetxattr(fd, "user.one", 0, 0));
    say("too little room", getxattr("link", "user.one", value, 11));
    say("just enough", getxattr("link", "user.one", value, 12));
    say("missing", getxattr("file", "user.none", value, 100));
    say("remove", removexattr("link", "user.one"));
    say("remove again", fremovexattr(fd, "user.one"));
    list("list", "file");
    say("O_PATH", fgetxattr(path, "user.two", value, 100));
    say("bad descriptor", fsetxattr(99, "user.two", "", 0, 0));
    say("no file", setxattr("none", "user.two", "", 0, 0));
    say("no name", setxattr("file", "", "", 0, 0));
    say("nothing behind the prefix", setxattr("file", "user.", "", 0, 0));
    say("no prefix", setxattr("file", "name", "", 0, 0));
    say("unknown prefix", getxattr("file", "other.name", value, 100));
    memset(value, 'n', 300);
    memcpy(value, "user.", 5);
    value[255] = 0;
    say("longest name", setxattr("file", value, "x", 1, 0));
    say("its removal", removexattr("file", value));
    value[255] = 'n', value[256] = 0;
    say("too long a name", setxattr("file", value, "x", 1, 0));
    say("too large a value", setxattr("file", "user.large", value, 65537, 0));
    say("bad memory", setxattr("file", "user.bad", bad, 10, 0));
    say("bad name", setxattr("file", bad, "x", 1, 0));
    close(fd), close(path);
}

static void namespaces(void)
{
    mkdir("sticky", 0777), mkfifo("fifo", 0666), mkdir("dir", 0777), close(open("theirs", O_CREAT | O_RDWR, 0600));
    chmod("sticky", 01777), chmod("dir", 0777), chmod("file", 0644);
    say("trusted", setxattr("file", "trusted.one", "root's", 6, 0));
    say("security", setxattr("file", "security.one", "everybody's", 11, 0));
    say("directory", setxattr("dir", "user.one", "dir", 3, 0));
    say("link, user", lsetxattr("link", "user.one", "x", 1, 0));
    say("link, trusted", lsetxattr("link", "trusted.one", "of the link", 11, 0));
    get("link", "link", "trusted.one");
    get("link, user", "link", "user.one");
    say("fifo, user", setxattr("fifo", "user.one", "x", 1, 0));
    get("fifo, user", "fifo", "user.one");
    say("fifo, trusted", setxattr("fifo", "trusted.one", "x", 1, 0));
    list("of root", "file");
    setxattr("theirs", "user.one", "x", 1, 0);
    fflush(stdout);
    if (fork() == 0) {
        if (setgid(NOBODY) || setuid(NOBODY))
            _exit(1);
        list("of others", "file");
        get("user", "file", "user.two");
        get("trusted", "file", "trusted.one");
        get("security", "file", "security.one");
        get("not readable", "theirs", "user.one");
        list("list needs no right", "theirs");
        say("not writable", setxattr("file", "user.two", "x", 1, 0));
        say("remove", removexattr("file", "user.two"));
        say("set trusted", setxattr("file", "trusted.two", "x", 1, 0));
        say("remove trusted", removexattr("file", "trusted.one"));
        say("set security", setxattr("file", "security.two", "x", 1, 0));
        say("sticky directory", setxattr("sticky", "user.one", "x", 1, 0));
        say("directory", setxattr("dir", "user.two", "x", 1, 0));
        say("not there", setxattr("sticky/none", "user.one", "x", 1, 0));
        fflush(stdout);
        _exit(0);
    }
    wait(0);
    list("directory", "dir");
}

static void stays(void)
{
    struct stat before, after;
    stat("file", &before);
    rename("file", "moved"), link("moved", "second");
    get("moved", "moved", "user.two");
    get("second name", "second", "user.two");
    truncate("moved", 100), truncate("moved", 0), chmod("moved", 0600);
    get("truncated", "moved", "user.two");
    unlink("moved");
    get("one name less", "second", "user.two");
    stat("second", &after);
    printf("modified %s\n", before.st_mtime <= after.st_mtime ? "later" : "earlier");
    unlink("second"), close(open("second", O_CREAT | O_RDWR, 0600));
    list("a new file", "second");
    for (int at = 0; at < 20; at++) {
        char name[30];
        snprintf(name, sizeof name, "user.number%d", at);
        memset(value, 'a' + at, 100);
        if (setxattr("second", name, value, 30 + at, 0))
            say(name, -1);
    }
    int right = 0;
    for (int at = 0; at < 20; at++) {
        char name[30];
        snprintf(name, sizeof name, "user.number%d", at);
        right += getxattr("second", name, value, 100) == 30 + at && value[0] == 'a' + at && value[29 + at] == 'a' + at;
    }
    printf("%d of 20\n", right);
    /* What one block cannot hold; ext4 keeps more elsewhere. */
    memset(value, 'x', sizeof value);
    long result = setxattr("second", "user.large", value, 5000, 0);
    printf("large: %s\n", result == 0 || errno == ENOSPC ? "as expected" : strerrorname_np(errno));
    get("the others are there", "second", "user.number3");
}

static int cycle(void)
{
    close(open("file", O_CREAT | O_RDWR, 0644));
    for (int round = 0; round < ROUNDS; round++) {
        char text[100], got[100];
        int bytes = snprintf(text, sizeof text, "round %d", round);
        if (setxattr("file", "user.round", text, bytes, round ? XATTR_REPLACE : XATTR_CREATE) ||
            setxattr("file", "user.short", text, bytes, XATTR_CREATE) ||
            getxattr("file", "user.round", got, sizeof got) != bytes || memcmp(text, got, bytes) ||
            removexattr("file", "user.short") || getxattr("file", "user.short", got, sizeof got) != -1) {
            printf("round %d: %s\n", round, strerrorname_np(errno));
            return 1;
        }
    }
    removexattr("file", "user.round");
    unlink("file");
    printf("%d rounds\n", ROUNDS);
    return 0;
}

int main(int count, char **arguments)
{
    if (count < 2 || chdir(arguments[1]))
        return 1;
    if (count > 2)
        return cycle();
    forms();
    namespaces();
    stays();
    unlink("second"), unlink("link"), unlink("fifo"), unlink("theirs"), rmdir("dir"), rmdir("sticky");
    return 0;
}
