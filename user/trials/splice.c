/* Moves bytes between descriptors with splice, tee, vmsplice, sendfile and copy_file_range, and prints what it sees: the same as on Linux.
 * usage: splice DIRECTORY [cycle]. With `cycle` it only sends a file through pipes and a socket, over and over, and compares what arrives:
 * what dies meanwhile must neither lose nor double a byte. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 300000, ROUNDS = 30 };

static void say(const char *what, long result)
{
    if (result >= 0)
        printf("%s: %ld\n", what, result);
    else
        printf("%s: %s\n", what, strerrorname_np(errno));
}

static unsigned char pattern(long at)
{
    return at * 7 % 251 + at / 4096;
}

static int make(const char *name, long bytes, int flags)
{
    unlink(name);
    int fd = open(name, O_CREAT | O_RDWR, 0600);
    unsigned char *text = malloc(bytes + 1);
    for (long at = 0; at < bytes; at++)
        text[at] = pattern(at);
    if (fd < 0 || write(fd, text, bytes) != bytes || lseek(fd, 0, SEEK_SET) != 0)
        exit(1);
    free(text);
    if (flags) {
        close(fd);
        fd = open(name, flags);
    }
    return fd;
}

/* How far a file has the pattern, from `from` of it on. */
static long same(const char *name, long from)
{
    unsigned char text[4096];
    long at = 0, got;
    int fd = open(name, O_RDONLY);
    while ((got = read(fd, text, sizeof text)) > 0)
        for (long i = 0; i < got; i++, at++)
            if (text[i] != pattern(from + at)) {
                close(fd);
                return at;
            }
    close(fd);
    return at;
}

static void splices(void)
{
    int from = make("from", BYTES, 0), to = make("to", 0, 0), ends[2], more[2];
    loff_t at = 1000, negative = -1;
    if (pipe(ends) || pipe(more))
        exit(1);
    say("file to pipe", splice(from, 0, ends[1], 0, 5000, 0));
    say("pipe to file", splice(ends[0], 0, to, 0, 100000, SPLICE_F_MOVE | SPLICE_F_MORE));
    printf("positions %ld %ld, the same %ld\n", (long)lseek(from, 0, SEEK_CUR), (long)lseek(to, 0, SEEK_CUR), same("to", 0));
    say("at an offset", splice(from, &at, ends[1], 0, 300, 0));
    printf("offset %ld, position %ld\n", (long)at, (long)lseek(from, 0, SEEK_CUR));
    at = 1000;
    say("to an offset", splice(ends[0], 0, to, &at, 300, 0));
    printf("offset %ld, position %ld, the same %ld\n", (long)at, (long)lseek(to, 0, SEEK_CUR), same("to", 0));
    say("empty pipe", splice(ends[0], 0, to, 0, 10, SPLICE_F_NONBLOCK));
    say("at the end", splice(from, &(loff_t){BYTES}, ends[1], 0, 10, 0));
    say("no bytes, bad descriptors", splice(99, 0, 98, 0, 0, 99));
    say("unknown flag", splice(from, 0, ends[1], 0, 10, 16));
    say("bad descriptor", splice(99, 0, ends[1], 0, 10, 0));
    say("file to file", splice(from, 0, to, 0, 10, 0));
    say("offset of a pipe", splice(from, 0, ends[1], &at, 10, 0));
    say("negative offset", splice(from, &negative, ends[1], 0, 10, 0));
    say("bad memory", splice(from, (loff_t *)8, ends[1], 0, 10, 0));
    say("one pipe", splice(ends[0], 0, ends[1], 0, 10, 0));
    say("wrong end", splice(from, 0, ends[0], 0, 10, 0));
    int append = open("to", O_WRONLY | O_APPEND), null = open("/dev/null", O_RDWR);
    say("appending", splice(ends[0], 0, append, 0, 10, 0));
    say("write", write(ends[1], "0123456789", 10));
    say("tee", tee(ends[0], more[1], 4, 0));
    say("pipe to pipe", splice(ends[0], 0, more[1], 0, 6, 0));
    char text[100];
    long got = read(more[0], text, sizeof text);
    printf("%ld %.*s\n", got, (int)got, text);
    say("to /dev/null", splice(ends[0], 0, null, 0, 100, 0));
    say("from /dev/null", splice(null, 0, ends[1], 0, 100, 0));
    say("tee of a file", tee(from, more[1], 4, 0));
    say("tee to itself", tee(ends[0], ends[1], 4, 0));
    say("tee of nothing", tee(ends[0], more[1], 4, SPLICE_F_NONBLOCK));
    signal(SIGPIPE, SIG_IGN);
    close(more[0]);
    say("nobody reads", splice(from, 0, more[1], 0, 10, 0));
    close(ends[1]);
    say("nobody writes", splice(ends[0], 0, to, 0, 10, 0));
    close(ends[0]), close(more[1]), close(from), close(to), close(append), close(null);
}

static void memories(void)
{
    int ends[2], file = make("file", 10, 0);
    char text[20] = "some text", got[20] = "";
    struct iovec pieces[] = {{text, 4}, {text + 5, 4}}, room = {got, sizeof got};
    if (pipe(ends))
        exit(1);
    say("vmsplice", vmsplice(ends[1], pieces, 2, SPLICE_F_GIFT));
    say("back", vmsplice(ends[0], &room, 1, 0));
    printf("%s\n", got);
    say("nothing", vmsplice(ends[0], &room, 1, SPLICE_F_NONBLOCK));
    say("no pieces", vmsplice(ends[1], pieces, 0, 0));
    say("a file", vmsplice(file, pieces, 1, 0));
    say("unknown flag", vmsplice(ends[1], pieces, 1, 32));
    close(ends[0]), close(ends[1]), close(file);
}

static void sends(void)
{
    int from = make("from", BYTES, 0), to = make("to", 0, 0), ends[2], pair[2];
    off_t at = 10;
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        exit(1);
    say("to a file", sendfile(to, from, 0, 1000));
    say("at an offset", sendfile(to, from, &at, 1000));
    printf("offset %ld, positions %ld %ld\n", (long)at, (long)lseek(from, 0, SEEK_CUR), (long)lseek(to, 0, SEEK_CUR));
    say("to a pipe", sendfile(ends[1], from, 0, 3000));
    say("to a socket", sendfile(pair[0], from, 0, 3000));
    say("bytes in it", splice(pair[1], 0, ends[1], 0, 2000, 0));
    say("out again", splice(ends[0], 0, pair[0], 0, 4000, 0));
    int append = open("to", O_WRONLY | O_APPEND), null = open("/dev/null", O_WRONLY);
    say("appending", sendfile(append, from, 0, 10));
    say("to /dev/null", sendfile(null, from, 0, 10));
    say("from a pipe", sendfile(to, ends[0], 0, 10));
    say("from what is not read", sendfile(to, append, 0, 10));
    say("to what is not written", sendfile(ends[0], from, 0, 10));
    say("bad memory", sendfile(to, from, (off_t *)8, 10));
    say("at the end", sendfile(to, from, &(off_t){BYTES}, 10));
    close(from), close(to), close(ends[0]), close(ends[1]), close(pair[0]), close(pair[1]), close(append), close(null);
}

static void copies(void)
{
    int from = make("from", BYTES, 0), to = make("to", 0, 0), ends[2], directory = open(".", O_RDONLY);
    loff_t one = 100, two = 50, negative = -1;
    struct stat status;
    if (pipe(ends))
        exit(1);
    say("all", copy_file_range(from, 0, to, 0, 1 << 20, 0));
    say("the end", copy_file_range(from, 0, to, 0, 1 << 20, 0));
    fstat(to, &status);
    printf("size %ld, the same %ld\n", (long)status.st_size, same("to", 0));
    say("overlapping", copy_file_range(to, &one, to, &two, 51, 0));
    say("within a file", copy_file_range(to, &one, to, &two, 50, 0));
    printf("offsets %ld %ld\n", (long)one, (long)two);
    say("beyond its end", copy_file_range(to, &one, from, &(loff_t){BYTES + 5000}, 100, 0));
    fstat(from, &status);
    printf("size %ld\n", (long)status.st_size);
    say("a flag", copy_file_range(from, 0, to, 0, 1, 1));
    say("a directory", copy_file_range(directory, 0, to, 0, 1, 0));
    say("a pipe", copy_file_range(ends[0], 0, to, 0, 1, 0));
    say("bad descriptor", copy_file_range(from, 0, 99, 0, 1, 0));
    say("negative offset", copy_file_range(from, &negative, to, 0, 1, 0));
    int append = open("to", O_WRONLY | O_APPEND), other = open("/dev/shm/splice.other", O_CREAT | O_RDWR, 0600);
    say("appending", copy_file_range(from, 0, append, 0, 1, 0));
    say("another file system", copy_file_range(from, &(loff_t){0}, other, 0, 1, 0));
    say("sendfile does it", sendfile(other, from, &(off_t){0}, BYTES));
    printf("the same %ld\n", same("/dev/shm/splice.other", 0));
    unlink("/dev/shm/splice.other");
    close(from), close(to), close(ends[0]), close(ends[1]), close(directory), close(append), close(other);
}

/* A file through a pipe, a second one and a socket into another file, each part by a process of its own. */
static int cycle(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        int ends[2], more[2], pair[2], last[2];
        int from = make("from", BYTES, 0), to = make("to", 0, 0);
        if (pipe(ends) || pipe(more) || pipe(last) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
            return 1;
        int path[][2] = {{from, ends[1]}, {ends[0], more[1]}, {more[0], pair[0]}, {pair[1], last[1]}};
        for (int step = 0; step < 4; step++)
            if (fork() == 0) {
                int in = path[step][0], out = path[step][1];
                for (int fd = 3; fd < 30; fd++)
                    if (fd != in && fd != out)
                        close(fd);
                long moved;
                while ((moved = splice(in, 0, out, 0, 10000 + 977 * step, 0)) > 0)
                    ;
                _exit(moved == 0 ? 0 : 1);
            }
        close(ends[0]), close(ends[1]), close(more[0]), close(more[1]), close(pair[0]), close(pair[1]), close(last[1]);
        long moved, all = 0, status, failed = 0;
        while ((moved = splice(last[0], 0, to, 0, 20000, 0)) > 0)
            all += moved;
        while (wait((int *)&status) > 0)
            failed += (int)status != 0;
        close(last[0]), close(from), close(to);
        if (moved || all != BYTES || failed || same("to", 0) != BYTES) {
            printf("round %d: %ld, %ld bytes, %ld failed, the same %ld\n", round, moved, all, failed, same("to", 0));
            return 1;
        }
    }
    printf("%d rounds\n", ROUNDS);
    return 0;
}

int main(int count, char **arguments)
{
    setvbuf(stdout, 0, _IONBF, 0);
    if (count < 2 || chdir(arguments[1]))
        return 1;
    if (count > 2)
        return cycle();
    splices();
    memories();
    sends();
    copies();
    unlink("from"), unlink("to"), unlink("file");
    return 0;
}
