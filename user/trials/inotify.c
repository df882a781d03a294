/* Watches files and directories, changes them, and prints the events: the same as on Linux. usage: inotify DIRECTORY [rounds]
 * With a number it makes, writes, renames and removes so many files while another process watches, and prints what that has seen. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long result)
{
    if (result >= 0)
        printf("%s: %ld\n", what, result);
    else
        printf("%s: %s\n", what, strerrorname_np(errno));
}

static const struct {
    uint32_t bit;
    const char *name;
} NAMES[] = {
    {IN_ACCESS, "ACCESS"},
    {IN_MODIFY, "MODIFY"},
    {IN_ATTRIB, "ATTRIB"},
    {IN_CLOSE_WRITE, "CLOSE_WRITE"},
    {IN_CLOSE_NOWRITE, "CLOSE_NOWRITE"},
    {IN_OPEN, "OPEN"},
    {IN_MOVED_FROM, "MOVED_FROM"},
    {IN_MOVED_TO, "MOVED_TO"},
    {IN_CREATE, "CREATE"},
    {IN_DELETE, "DELETE"},
    {IN_DELETE_SELF, "DELETE_SELF"},
    {IN_MOVE_SELF, "MOVE_SELF"},
    {IN_UNMOUNT, "UNMOUNT"},
    {IN_Q_OVERFLOW, "Q_OVERFLOW"},
    {IN_IGNORED, "IGNORED"},
    {IN_ISDIR, "ISDIR"},
};

/* Prints all events that there are now. A cookie is shown by whether it is that of the event before. */
static void show(const char *what, int fd)
{
    char buffer[4096] __attribute__((aligned(8)));
    uint32_t cookie = 0;
    printf("%s:\n", what);
    for (;;) {
        ssize_t bytes = read(fd, buffer, sizeof buffer);
        if (bytes < 0)
            break;
        for (char *at = buffer; at < buffer + bytes;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            printf("  %d", event->wd);
            for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                if (event->mask & NAMES[i].bit)
                    printf(" %s", NAMES[i].name);
            if (event->len > 0)
                printf(" %s (%u)", event->name, event->len);
            if (event->cookie != 0)
                printf(event->cookie == cookie ? " of the same move" : " a move");
            cookie = event->cookie;
            printf("\n");
            at += sizeof *event + event->len;
        }
    }
}

static int make(const char *path, const char *content)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    write(fd, content, strlen(content));
    return close(fd);
}

static void errors(void)
{
    int ends[2], fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), plain = inotify_init();
    pipe(ends);
    say("flags", inotify_init1(1));
    say("flags of it", fcntl(fd, F_GETFL));
    say("close on exec", fcntl(fd, F_GETFD));
    say("flags of it", fcntl(plain, F_GETFL));
    say("no events", inotify_add_watch(fd, ".", 0));
    say("unknown events", inotify_add_watch(fd, ".", 1 << 20));
    say("add and create", inotify_add_watch(fd, ".", IN_MASK_ADD | IN_MASK_CREATE | IN_OPEN));
    say("not open", inotify_add_watch(99, ".", IN_OPEN));
    say("a pipe", inotify_add_watch(ends[0], ".", IN_OPEN));
    say("no file", inotify_add_watch(fd, "none", IN_OPEN));
    say("no memory", inotify_add_watch(fd, (char *)8, IN_OPEN));
    say("remove nothing", inotify_rm_watch(fd, 1));
    say("remove from a pipe", inotify_rm_watch(ends[0], 1));
    char buffer[100];
    say("nothing to read", read(fd, buffer, sizeof buffer));
    say("write", write(fd, buffer, 1));
    say("lseek", lseek(fd, 0, SEEK_SET));
    int bytes = -1;
    say("FIONREAD", ioctl(fd, FIONREAD, &bytes));
    printf("%d bytes\n", bytes);
    struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT};
    say("ready", poll(&one, 1, 0));
    close(fd), close(plain), close(ends[0]), close(ends[1]);
}

static void directories(void)
{
    int fd = inotify_init1(IN_NONBLOCK);
    mkdir("d", 0755), mkdir("e", 0755);
    say("watch", inotify_add_watch(fd, "d", IN_ALL_EVENTS));
    make("d/file", "text");
    show("made", fd);
    char text[8];
    int file = open("d/file", O_RDWR);
    read(file, text, 4), read(file, text, 4);
    write(file, "more", 4), pwrite(file, "x", 1, 0);
    ftruncate(file, 1);
    fchmod(file, 0600);
    close(file);
    show("used", fd);
    chmod("d/file", 0644);
    chown("d/file", getuid(), getgid());
    truncate("d/file", 0);
    utimensat(AT_FDCWD, "d/file", NULL, 0);
    link("d/file", "d/link");
    symlink("file", "d/symlink");
    mkfifo("d/fifo", 0644);
    mkdir("d/sub", 0755);
    show("attributes and names", fd);
    rename("d/file", "d/a longer name, that needs more");
    rename("d/link", "e/link");
    rename("e/link", "d/back");
    rename("d/back", "d/fifo");
    rename("d/sub", "d/sub2");
    show("moves", fd);
    rmdir("d/sub2");
    unlink("d/fifo"), unlink("d/symlink"), unlink("d/a longer name, that needs more");
    show("removed", fd);
    rmdir("d");
    show("itself", fd);
    say("no more", inotify_rm_watch(fd, 1));
    rmdir("e");
    close(fd);
}

static void files(void)
{
    int fd = inotify_init1(IN_NONBLOCK);
    make("file", "text"), make("other", "text");
    say("watch", inotify_add_watch(fd, "file", IN_ALL_EVENTS));
    say("the same", inotify_add_watch(fd, "file", IN_MASK_ADD | IN_ALL_EVENTS));
    say("not again", inotify_add_watch(fd, "file", IN_MASK_CREATE | IN_OPEN));
    say("only directories", inotify_add_watch(fd, "file", IN_ONLYDIR | IN_OPEN));
    int open_file = open("file", O_RDONLY);
    rename("file", "moved");
    show("moved", fd);
    unlink("moved");
    show("unlinked, and open", fd);
    close(open_file);
    show("closed", fd);
    make("file", "text");
    say("watch", inotify_add_watch(fd, "file", IN_DELETE_SELF | IN_ATTRIB));
    rename("other", "file");
    show("replaced", fd);
    say("watch once", inotify_add_watch(fd, "file", IN_OPEN | IN_ONESHOT));
    close(open("file", O_RDONLY)), close(open("file", O_RDONLY));
    show("once", fd);
    int watch = inotify_add_watch(fd, "file", IN_CLOSE_NOWRITE);
    say("watch", watch);
    say("changed", inotify_add_watch(fd, "file", IN_OPEN));
    close(open("file", O_RDONLY));
    say("removed", inotify_rm_watch(fd, watch));
    close(open("file", O_RDONLY));
    show("changed and removed", fd);
    symlink("file", "symlink");
    say("a link itself", inotify_add_watch(fd, "symlink", IN_DONT_FOLLOW | IN_DELETE_SELF));
    unlink("symlink");
    show("a link", fd);
    unlink("file");
    close(fd);
}

static void reads(void)
{
    int fd = inotify_init(), bytes;
    char buffer[256];
    mkdir("d", 0755);
    inotify_add_watch(fd, "d", IN_CREATE | IN_EXCL_UNLINK | IN_MODIFY);
    make("d/a", ""), make("d/b", ""), make("d/a name with some letters", "");
    ioctl(fd, FIONREAD, &bytes);
    printf("%d bytes\n", bytes);
    say("too small", read(fd, buffer, 31));
    say("one", read(fd, buffer, 40));
    say("the next", read(fd, buffer, 79));
    say("the last", read(fd, buffer, sizeof buffer));
    int file = open("d/a", O_WRONLY);
    write(file, "x", 1), write(file, "y", 1);
    unlink("d/a");
    write(file, "unseen", 6);
    close(file);
    ioctl(fd, FIONREAD, &bytes);
    printf("%d bytes\n", bytes);
    say("read", read(fd, buffer, sizeof buffer));
    pid_t child = fork();
    if (child == 0) {
        usleep(20000);
        make("d/c", "");
        _exit(0);
    }
    struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT};
    say("poll", poll(&one, 1, -1));
    printf("%x\n", one.revents);
    say("read", read(fd, buffer, sizeof buffer));
    waitpid(child, NULL, 0);
    child = fork();
    if (child == 0) {
        usleep(20000);
        make("d/e", "");
        _exit(0);
    }
    say("a read waits", read(fd, buffer, sizeof buffer));
    waitpid(child, NULL, 0);
    unlink("d/b"), unlink("d/c"), unlink("d/e"), unlink("d/a name with some letters"), rmdir("d");
    close(fd);
}

/* Makes files, and has a child tell which of them it has seen being written, moved and removed. */
static int many(int rounds)
{
    int fd = inotify_init(), done[2], counts[3] = {0}, lost = 0;
    pipe(done);
    mkdir("many", 0755);
    inotify_add_watch(fd, "many", IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE);
    pid_t child = fork();
    if (child == 0) {
        char name[64], other[64];
        for (int i = 0; i < rounds; i++) {
            sprintf(name, "many/%d", i), sprintf(other, "many/to%d", i);
            make(name, "text");
            rename(name, other);
            unlink(other);
        }
        make("many/end", "");
        _exit(0);
    }
    for (int ended = 0; !ended;) {
        char buffer[4096] __attribute__((aligned(8)));
        ssize_t bytes = read(fd, buffer, sizeof buffer);
        for (char *at = buffer; at < buffer + bytes;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            ended |= event->len > 0 && strcmp(event->name, "end") == 0;
            lost += (event->mask & IN_Q_OVERFLOW) != 0;
            counts[0] += !ended && (event->mask & IN_CLOSE_WRITE) != 0;
            counts[1] += (event->mask & IN_MOVED_TO) != 0;
            counts[2] += (event->mask & IN_DELETE) != 0;
            at += sizeof *event + event->len;
        }
    }
    waitpid(child, NULL, 0);
    unlink("many/end"), rmdir("many");
    /* Lost events are told; what is not lost is told once. */
    int whole = counts[0] == rounds && counts[1] == rounds && counts[2] == rounds;
    if (whole || (lost > 0 && counts[0] <= rounds && counts[1] <= rounds && counts[2] <= rounds))
        printf("%d files seen or told to be lost\n", rounds);
    else
        printf("%d %d %d of %d, %d times lost\n", counts[0], counts[1], counts[2], rounds, lost);
    return 0;
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 2 || chdir(arguments[1]) != 0)
        return 2;
    if (count > 2)
        return many(atoi(arguments[2]));
    errors();
    directories();
    files();
    reads();
    return 0;
}
