/* A file of 1 MiB copied: by read and write through a buffer of 64 KiB, by copy_file_range, by sendfile, and by splice through a pipe. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "ticks.h"

enum { BYTES = 1 << 20, PIECE = 65536, ROUNDS = 4 };

static char piece[PIECE];

static ssize_t by_read_and_write(int from, int to)
{
    ssize_t got = read(from, piece, PIECE);
    return got > 0 ? write(to, piece, got) : got;
}

static ssize_t by_copy_file_range(int from, int to)
{
    return copy_file_range(from, 0, to, 0, BYTES, 0);
}

static ssize_t by_sendfile(int from, int to)
{
    return sendfile(to, from, 0, BYTES);
}

static int ends[2];

static ssize_t by_splice(int from, int to)
{
    ssize_t got = splice(from, 0, ends[1], 0, PIECE, 0);
    return got > 0 ? splice(ends[0], 0, to, 0, got, 0) : got;
}

static void copy(const char *name, ssize_t (*step)(int, int))
{
    int from = open("/tmp/copy_from", O_RDONLY), to = open("/tmp/copy_to", O_RDWR);
    uint64_t start = ticks();
    for (int round = 0; round < ROUNDS; round++) {
        ssize_t moved, all = 0;
        lseek(from, 0, SEEK_SET);
        lseek(to, 0, SEEK_SET);
        while ((moved = step(from, to)) > 0)
            all += moved;
        check(moved == 0 && all == BYTES, name);
    }
    report(name, start, ticks(), ROUNDS);
    close(from);
    close(to);
}

int main(void)
{
    int from = open("/tmp/copy_from", O_CREAT | O_RDWR, 0600), to = open("/tmp/copy_to", O_CREAT | O_RDWR, 0600);
    check(from >= 0 && to >= 0 && pipe(ends) == 0, "open");
    for (int at = 0; at < BYTES; at += PIECE)
        check(write(from, piece, PIECE) == PIECE && write(to, piece, PIECE) == PIECE, "write");
    copy("copy_1m_read_write", by_read_and_write);
    copy("copy_1m_copy_file_range", by_copy_file_range);
    copy("copy_1m_sendfile", by_sendfile);
    copy("copy_1m_splice", by_splice);
    unlink("/tmp/copy_from");
    unlink("/tmp/copy_to");
    return 0;
}
