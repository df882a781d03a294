/* read, write and their relatives, lseek, offsets, O_APPEND, sparse files, truncate. It is long because it is a list. */
#include "behaviour.h"
#include <sys/inotify.h>
#include <sys/socket.h>

static int file(const char *text, int flags) {
    make("f", text);
    return must(open("f", flags));
}

BEHAVIOUR("read of a bad descriptor") {
    char byte;
    show(read(-1, &byte, 1));
    show(read(3, &byte, 1));
}
BEHAVIOUR("write to a bad descriptor") {
    show(write(-1, "", 1));
    show(write(3, "", 1));
}
BEHAVIOUR("read of a directory") {
    char byte;
    show(read(open(".", O_RDONLY), &byte, 1));
}
BEHAVIOUR("read into bad memory") { show(read(file("text", O_RDONLY), bad(), 4)); }
BEHAVIOUR("read into memory that may only be read") { show(read(file("text", O_RDONLY), read_only(), 4)); }
BEHAVIOUR("write from bad memory") {
    int fd = file("", O_RDWR);
    show(write(fd, bad(), 4));
    show(size_of(fd));
}
BEHAVIOUR("read of nothing into bad memory") { show(read(file("text", O_RDONLY), bad(), 0)); }
BEHAVIOUR("read at the end of the file into bad memory") { show(read(file("", O_RDONLY), bad(), 4)); }
BEHAVIOUR("read into memory that ends early is short") {
    int fd = file("0123456789", O_RDONLY);
    show(read(fd, edge(4), 10) > 0 ? 1 : -1);
}
BEHAVIOUR("read of length 0 leaves the offset") {
    int fd = file("text", O_RDONLY);
    char byte;
    show(read(fd, &byte, 0));
    show(lseek(fd, 0, SEEK_CUR));
}
BEHAVIOUR("write of length 0 leaves the file") {
    int fd = file("text", O_WRONLY);
    lseek(fd, 10, SEEK_SET);
    show(write(fd, "", 0));
    show(size_of(fd));
}
BEHAVIOUR("read goes on where the last one ended, and ends with 0") {
    int fd = file("abcdef", O_RDONLY);
    show_read(fd, 4);
    show_read(fd, 4);
    show_read(fd, 4);
}
BEHAVIOUR("read beyond the end of the file") {
    int fd = file("text", O_RDONLY);
    show(lseek(fd, 100, SEEK_SET));
    show_read(fd, 4);
}
BEHAVIOUR("write beyond the end leaves zeros between") {
    int fd = file("ab", O_RDWR);
    lseek(fd, 5, SEEK_SET);
    show(write(fd, "z", 1));
    show_file("f");
}
BEHAVIOUR("write replaces what is there, and no more") {
    int fd = file("abcdef", O_RDWR);
    lseek(fd, 2, SEEK_SET);
    write(fd, "XY", 2);
    show_file("f");
}
BEHAVIOUR("a length above SSIZE_MAX") {
    char byte;
    show(syscall(SYS_read, file("text", O_RDONLY), &byte, (size_t)-1));
}
BEHAVIOUR("lseek of a bad descriptor, a bad whence, a negative result") {
    int fd = file("text", O_RDONLY);
    show(lseek(9, 0, SEEK_SET));
    show(lseek(fd, 0, 99));
    show(lseek(fd, -1, SEEK_SET));
    show(lseek(fd, -5, SEEK_END));
    show(lseek(fd, 0, SEEK_CUR));
}
BEHAVIOUR("lseek overflow") {
    int fd = file("text", O_RDONLY);
    lseek(fd, 10, SEEK_SET);
    show(lseek(fd, INT64_MAX, SEEK_CUR));
}
BEHAVIOUR("lseek SEEK_SET, SEEK_CUR, SEEK_END") {
    int fd = file("0123456789", O_RDONLY);
    show(lseek(fd, 3, SEEK_SET));
    show(lseek(fd, 4, SEEK_CUR));
    show(lseek(fd, -1, SEEK_END));
    show(lseek(fd, 5, SEEK_END));
    show_read(fd, 1);
}
BEHAVIOUR("lseek of a pipe") {
    int p[2];
    pipe(p);
    show(lseek(p[0], 0, SEEK_SET));
    show(lseek(p[0], 0, 99));
}
BEHAVIOUR("lseek of /dev/null") { show(lseek(open("/dev/null", O_RDWR), 100, SEEK_SET)); }
BEHAVIOUR("lseek SEEK_DATA and SEEK_HOLE at and beyond the end") {
    int fd = file("text", O_RDONLY);
    show(lseek(fd, 0, SEEK_DATA));
    show(lseek(fd, 0, SEEK_HOLE));
    show(lseek(fd, 4, SEEK_DATA));
    show(lseek(fd, 4, SEEK_HOLE));
    show(lseek(fd, -1, SEEK_DATA));
}
BEHAVIOUR("lseek SEEK_HOLE finds a hole of many blocks") {
    int fd = file("text", O_RDWR);
    pwrite(fd, "end", 3, 1 << 20);
    show(lseek(fd, 0, SEEK_HOLE));
    show(lseek(fd, 65536, SEEK_DATA));
    show(lseek(fd, 1 << 20, SEEK_HOLE));
}
BEHAVIOUR("a sparse file takes few blocks and reads as zeros") {
    int fd = file("", O_RDWR);
    struct stat at;
    show(pwrite(fd, "end", 3, 1 << 20));
    fstat(fd, &at);
    note("%ld %d", (long)at.st_size, at.st_blocks < 100);
    char bytes[4] = "xxxx";
    show(pread(fd, bytes, 4, 4096));
    note("%d%d%d%d", bytes[0], bytes[1], bytes[2], bytes[3]);
}
BEHAVIOUR("O_APPEND writes at the end wherever the offset is") {
    int fd = file("abc", O_RDWR | O_APPEND);
    lseek(fd, 0, SEEK_SET);
    show(write(fd, "d", 1));
    show(lseek(fd, 0, SEEK_CUR));
    show_file("f");
}
BEHAVIOUR("O_APPEND reads at the offset") {
    int fd = file("abc", O_RDWR | O_APPEND);
    show_read(fd, 2);
    write(fd, "d", 1);
    show_read(fd, 2);
}
BEHAVIOUR("pwrite on O_APPEND appends, against POSIX") {
    int fd = file("abc", O_RDWR | O_APPEND);
    show(pwrite(fd, "X", 1, 0));
    show_file("f");
}
BEHAVIOUR("two who append do not overwrite each other") {
    int one = file("", O_WRONLY | O_APPEND), two = open("f", O_WRONLY | O_APPEND);
    write(one, "a", 1);
    write(two, "b", 1);
    write(one, "c", 1);
    show_file("f");
}
BEHAVIOUR("O_APPEND set by fcntl") {
    int fd = file("abc", O_WRONLY);
    show(fcntl(fd, F_SETFL, O_APPEND));
    write(fd, "d", 1);
    show_file("f");
}
BEHAVIOUR("two opens have two offsets, two descriptors of one open share it") {
    int one = file("abcdef", O_RDONLY), two = open("f", O_RDONLY), copy = dup(one);
    show_read(one, 2);
    show_read(two, 2);
    show_read(copy, 2);
}
BEHAVIOUR("a child shares the offset") {
    int fd = file("abcdef", O_RDONLY);
    IN_CHILD { show_read(fd, 2); }
    show_read(fd, 2);
}
BEHAVIOUR("pread and pwrite leave the offset") {
    int fd = file("abcdef", O_RDWR);
    char bytes[2];
    lseek(fd, 1, SEEK_SET);
    show(pread(fd, bytes, 2, 3));
    show_bytes(bytes, 2);
    show(pwrite(fd, "XY", 2, 4));
    show(lseek(fd, 0, SEEK_CUR));
    show_file("f");
}
BEHAVIOUR("pread and pwrite at a negative offset") {
    int fd = file("abc", O_RDWR);
    char byte;
    show(pread(fd, &byte, 1, -1));
    show(pwrite(fd, "", 1, -1));
}
BEHAVIOUR("pread and pwrite of a pipe") {
    int p[2];
    char byte;
    pipe(p);
    show(pread(p[0], &byte, 1, 0));
    show(pwrite(p[1], "", 1, 0));
}
BEHAVIOUR("pread of a directory") {
    char byte;
    show(pread(open(".", O_RDONLY), &byte, 1, 0));
}
BEHAVIOUR("write beyond the largest offset") {
    int fd = file("", O_RDWR);
    show(pwrite(fd, "xy", 2, INT64_MAX - 1));
}
BEHAVIOUR("readv fills one piece after another") {
    char a[3] = "..", b[10] = ".........";
    struct iovec pieces[3] = {{a, 2}, {NULL, 0}, {b, 9}};
    show(readv(file("abcdef", O_RDONLY), pieces, 3));
    note("%s %s", a, b);
}
BEHAVIOUR("writev writes one piece after another") {
    struct iovec pieces[3] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    show(writev(file("", O_WRONLY), pieces, 3));
    show_file("f");
}
BEHAVIOUR("readv with a negative count, too many pieces, none") {
    static struct iovec pieces[1025];
    int fd = file("abc", O_RDONLY);
    show(readv(fd, pieces, -1));
    show(readv(fd, pieces, 1025));
    show(readv(fd, pieces, 1024));
    show(readv(fd, pieces, 0));
}
BEHAVIOUR("readv with lengths that overflow") {
    char byte;
    struct iovec negative = {&byte, (size_t)-1};
    show(readv(file("abc", O_RDONLY), &negative, 1));
}
BEHAVIOUR("readv with the list in bad memory") {
    int fd = file("abc", O_RDONLY);
    show(readv(fd, bad(), 1));
    show(readv(fd, bad(), 0));
}
BEHAVIOUR("readv with bad memory in the second piece stops there") {
    char a[2];
    struct iovec pieces[2] = {{a, 2}, {bad(), 2}};
    int fd = file("abcdef", O_RDONLY);
    show(readv(fd, pieces, 2));
    show(lseek(fd, 0, SEEK_CUR));
}
BEHAVIOUR("writev with bad memory in the second piece stops there") {
    struct iovec pieces[2] = {{"ab", 2}, {bad(), 2}};
    show(writev(file("", O_WRONLY), pieces, 2));
    show_file("f");
}
BEHAVIOUR("preadv and pwritev leave the offset") {
    char a[2], b[2];
    struct iovec pieces[2] = {{a, 2}, {b, 2}};
    int fd = file("abcdef", O_RDWR);
    show(preadv(fd, pieces, 2, 1));
    show_bytes(b, 2);
    show(pwritev(fd, pieces, 2, 6));
    show(lseek(fd, 0, SEEK_CUR));
    show_file("f");
    show(preadv(fd, pieces, 2, -1));
}
BEHAVIOUR("preadv2 and pwritev2: negative offsets, descriptors of the wrong kind") {
    struct iovec piece = {"x", 1};
    int ends[2], fd = open("f", O_RDWR | O_CREAT, 0644);
    pipe(ends);
    show(pwritev2(fd, &piece, 1, -2, 0));
    show(preadv2(fd, &piece, 1, -2, 0));
    show(pwritev2(ends[1], &piece, 1, 0, 0));
    show(pwritev2(ends[0], &piece, 1, -1, 0));
    show(preadv2(99, &piece, 1, -1, RWF_HIPRI));
}
BEHAVIOUR("pwritev2 RWF_APPEND writes at the end, wherever the offset") {
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    struct iovec piece = {"xy", 2};
    write(fd, "text", 4);
    lseek(fd, 1, SEEK_SET);
    show(pwritev2(fd, &piece, 1, 0, RWF_APPEND));
    show(lseek(fd, 0, SEEK_CUR));
    show_file("f");
    show(pwritev2(fd, &piece, 1, -1, RWF_APPEND));
    show(lseek(fd, 0, SEEK_CUR));
    show_file("f");
    note("%d", !!(fcntl(fd, F_GETFL) & O_APPEND));
}
BEHAVIOUR("pwritev2 RWF_APPEND|RWF_SYNC of nothing, at a limit") {
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    struct iovec piece = {"xyz", 3}, nothing = {NULL, 0};
    write(fd, "text", 4);
    show(pwritev2(fd, &nothing, 1, 0, RWF_APPEND | RWF_SYNC));
    struct rlimit limit = {6, 6};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
    show(pwritev2(fd, &piece, 1, 0, RWF_APPEND));
    show(pwritev2(fd, &piece, 1, 0, RWF_APPEND));
    show_file("f");
}
BEHAVIOUR("pwritev2 RWF_DSYNC and RWF_SYNC") {
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    struct iovec piece = {"xy", 2};
    show(pwritev2(fd, &piece, 1, 1, RWF_DSYNC));
    show(pwritev2(fd, &piece, 1, 3, RWF_SYNC));
    show_file("f");
    note("%d", !!(fcntl(fd, F_GETFL) & (O_SYNC | O_DSYNC)));
}
BEHAVIOUR("preadv2 with flags of writes") {
    char text[4] = "";
    struct iovec piece = {text, 4};
    int fd = open("f", O_RDWR | O_CREAT, 0644);
    write(fd, "text", 4);
    show(preadv2(fd, &piece, 1, 0, RWF_SYNC | RWF_DSYNC | RWF_HIPRI));
    show_bytes(text, 4);
}
BEHAVIOUR("RWF_NOWAIT of a pipe without data, with data, without room") {
    static char bytes[4096];
    char text[4];
    struct iovec piece = {text, 4}, page = {bytes, sizeof bytes};
    int ends[2], pages = 0;
    pipe(ends);
    show(preadv2(ends[0], &piece, 1, -1, RWF_NOWAIT));
    write(ends[1], "text", 4);
    show(preadv2(ends[0], &piece, 1, -1, RWF_NOWAIT));
    while (pwritev2(ends[1], &page, 1, -1, RWF_NOWAIT) > 0)
        pages++;
    note("%d %s", pages, strerrorname_np(errno));
    note("%d", !!(fcntl(ends[1], F_GETFL) & O_NONBLOCK));
    close(ends[1]);
    while (pages-- > 0)
        preadv2(ends[0], &page, 1, -1, RWF_NOWAIT);
    show(preadv2(ends[0], &piece, 1, -1, RWF_NOWAIT));
}
BEHAVIOUR("RWF_NOWAIT of sockets") {
    char text[4];
    struct iovec piece = {text, 4};
    for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
        int ends[2];
        must(socketpair(AF_UNIX, type, 0, ends));
        show(preadv2(ends[0], &piece, 1, -1, RWF_NOWAIT));
        show(pwritev2(ends[1], &(struct iovec){"text", 4}, 1, -1, RWF_NOWAIT));
        show(preadv2(ends[0], &piece, 1, -1, RWF_NOWAIT));
    }
}
BEHAVIOUR("preadv2 with offset -1 uses the offset; unknown flags") {
    char a[2];
    struct iovec piece = {a, 2};
    int fd = file("abcdef", O_RDWR);
    show(preadv2(fd, &piece, 1, -1, 0));
    show(lseek(fd, 0, SEEK_CUR));
    show(preadv2(fd, &piece, 1, 0, 1 << 30));
}
BEHAVIOUR("truncate shortens, and lengthens with zeros") {
    int fd = file("abcdef", O_RDWR);
    show(ftruncate(fd, 3));
    show_file("f");
    show(truncate("f", 5));
    show_file("f");
}
BEHAVIOUR("what truncate has removed does not come back") {
    int fd = file("secret", O_RDWR);
    ftruncate(fd, 1);
    ftruncate(fd, 6);
    show_file("f");
}
BEHAVIOUR("ftruncate leaves the offset") {
    int fd = file("abcdef", O_RDWR);
    lseek(fd, 6, SEEK_SET);
    ftruncate(fd, 2);
    show(lseek(fd, 0, SEEK_CUR));
    write(fd, "X", 1);
    show_file("f");
}
BEHAVIOUR("truncate to a negative length") {
    int fd = file("abc", O_RDWR);
    show(truncate("f", -1));
    show(ftruncate(fd, -1));
}
BEHAVIOUR("ftruncate of a descriptor that is not open for writing") { show(ftruncate(file("abc", O_RDONLY), 0)); }
BEHAVIOUR("ftruncate of a bad descriptor, a pipe, a directory") {
    int p[2];
    pipe(p);
    show(ftruncate(9, 0));
    show(ftruncate(p[1], 0));
    show(ftruncate(open(".", O_RDONLY), 0));
}
BEHAVIOUR("truncate of a directory, of nothing, by bad memory") {
    show(truncate(".", 0));
    show(truncate("none", 0));
    show(truncate("", 0));
    show(truncate(bad(), 0));
}
BEHAVIOUR("truncate of a device and of a FIFO") {
    mkfifo("p", 0600);
    show(truncate("/dev/null", 0));
    show(truncate("p", 0));
}
BEHAVIOUR("truncate by a user who may not write") {
    make("f", "abc");
    AS(USER) { show(truncate("f", 0)); }
}
BEHAVIOUR("truncate follows symbolic links") {
    make("f", "abc");
    symlink("f", "l");
    show(truncate("l", 1));
    show_file("f");
}
BEHAVIOUR("RLIMIT_FSIZE cuts a write short, then SIGXFSZ") {
    struct rlimit limit = {5, 5};
    int fd = file("", O_RDWR);
    handle(SIGXFSZ, 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    show(write(fd, "0123456789", 10));
    note("signals %d", handled);
    show(write(fd, "x", 1));
    note("signals %d", handled);
    show(ftruncate(fd, 6));
    note("signals %d", handled);
}
BEHAVIOUR("SIGXFSZ kills who has no handler") {
    IN_CHILD {
        struct rlimit limit = {0, 0};
        int fd = file("", O_RDWR);
        setrlimit(RLIMIT_FSIZE, &limit);
        write(fd, "x", 1);
    }
}
BEHAVIOUR("fallocate makes the file longer") {
    int fd = file("abc", O_RDWR);
    show(fallocate(fd, 0, 0, 100));
    show(size_of(fd));
    show(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 200));
    show(size_of(fd));
}
BEHAVIOUR("fallocate with bad ranges") {
    int fd = file("abc", O_RDWR);
    show(fallocate(fd, 0, -1, 10));
    show(fallocate(fd, 0, 0, 0));
    show(fallocate(fd, 0, 0, -5));
    show(fallocate(fd, 0, INT64_MAX, 10));
}
BEHAVIOUR("fallocate of what is not a file, or not open for writing") {
    int p[2];
    pipe(p);
    show(fallocate(9, 0, 0, 1));
    show(fallocate(file("abc", O_RDONLY), 0, 0, 1));
    show(fallocate(p[1], 0, 0, 1));
    show(fallocate(open("/dev/null", O_RDWR), 0, 0, 1));
}
BEHAVIOUR("fallocate FALLOC_FL_PUNCH_HOLE needs FALLOC_FL_KEEP_SIZE") {
    int fd = file("abcdef", O_RDWR);
    show(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 1));
    show(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 2));
    show_file("f");
}
BEHAVIOUR("fallocate FALLOC_FL_ZERO_RANGE") {
    int fd = file("abcdef", O_RDWR);
    show(fallocate(fd, FALLOC_FL_ZERO_RANGE, 4, 4));
    show_file("f");
}
BEHAVIOUR("fsync, fdatasync and syncfs of bad descriptors and pipes") {
    int p[2];
    pipe(p);
    show(fsync(9));
    show(fdatasync(9));
    show(syncfs(9));
    show(fsync(p[0]));
    show(fdatasync(p[1]));
}
BEHAVIOUR("fsync of a file that is open for reading, and of a directory") {
    show(fsync(file("abc", O_RDONLY)));
    show(fsync(open(".", O_RDONLY)));
}
BEHAVIOUR("sync_file_range with bad flags and ranges") {
    int fd = file("abc", O_RDWR);
    show(sync_file_range(fd, 0, 0, 0));
    show(sync_file_range(fd, -1, 10, 0));
    show(sync_file_range(fd, 0, -1, 0));
    show(sync_file_range(fd, 0, 10, 64));
    show(sync_file_range(9, 0, 10, 0));
}
BEHAVIOUR("posix_fadvise returns its errors") {
    int p[2], fd = file("abc", O_RDONLY);
    pipe(p);
    note("%s", strerrorname_np(posix_fadvise(fd, 0, 0, 77)));
    note("%s", strerrorname_np(posix_fadvise(9, 0, 0, POSIX_FADV_NORMAL)));
    note("%s", strerrorname_np(posix_fadvise(p[0], 0, 0, POSIX_FADV_NORMAL)));
    note("%s", strerrorname_np(posix_fadvise(fd, 0, -1, POSIX_FADV_NORMAL)));
    note("%d", posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
}
BEHAVIOUR("readahead of bad descriptors and pipes") {
    int p[2];
    pipe(p);
    show(readahead(9, 0, 1));
    show(readahead(p[0], 0, 1));
    show(readahead(file("abc", O_WRONLY), 0, 1));
    show(readahead(open("f", O_RDONLY), 0, 1));
}
BEHAVIOUR("/dev/null swallows and has nothing, /dev/zero has zeros") {
    char bytes[3] = "xy";
    int null = open("/dev/null", O_RDWR);
    show(write(null, "text", 4));
    show(read(null, bytes, 2));
    show(read(open("/dev/zero", O_RDONLY), bytes, 2));
    note("%d%d", bytes[0], bytes[1]);
}
BEHAVIOUR("/dev/zero clears as much as there is memory, however it lies") {
    enum { PAGE = 4096, PAGES = 40 };
    int zero = must(open("/dev/zero", O_RDONLY));
    char *memory = mmap(0, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory + PAGES * PAGE, PAGE);
    size_t lengths[] = {1, 100, PAGE, PAGE + 1, 3 * PAGE, 17 * PAGE, 40 * PAGE, 300 * PAGE};
    for (int at = 0; at < 2; at++)
        for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            size_t start = (at ? 38 : 3) * PAGE - 50;
            memset(memory, 'x', PAGES * PAGE);
            long got = read(zero, memory + start, lengths[i]);
            show(got);
            int other = 0;
            for (size_t byte = 0; byte < PAGES * PAGE; byte++)
                other += (memory[byte] != 0) != (byte < start || byte >= start + (got < 0 ? 0 : got));
            note("%d", other);
        }
}
BEHAVIOUR("/dev/full is always full") {
    int full = open("/dev/full", O_RDWR);
    show(write(full, "text", 4));
    show_read(full, 2);
}
BEHAVIOUR("write clears the set-id bits of an executable file, by a user") {
    make_mode("f", "abc", 0644);
    chown("f", USER, USER);
    chmod("f", 06777);
    AS(USER) { write(open("f", O_WRONLY), "x", 1); }
    show_mode("f");
}
BEHAVIOUR("write by root leaves the set-id bits") {
    int fd = file("abc", O_WRONLY);
    chmod("f", 06777);
    write(fd, "x", 1);
    show_mode("f");
}
BEHAVIOUR("truncate by a user clears the set-id bits") {
    make_mode("f", "abc", 0644);
    chown("f", USER, USER);
    chmod("f", 04777);
    AS(USER) { show(truncate("f", 1)); }
    show_mode("f");
}

/* What calls with a position, and lseek, do with a descriptor. */
static void show_positioned(int fd) {
    char byte = 0;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    note("|");
    show(pread(fd, &byte, 1, 0));
    show(pwrite(fd, &byte, 1, 0));
    show(preadv(fd, &one, 1, 0));
    show(pwritev(fd, &one, 1, 0));
    show(preadv2(fd, &one, 1, 0, 0));
    show(pwritev2(fd, &one, 1, 0, 0));
    show(lseek(fd, 0, SEEK_CUR));
}
/* The same when none of them may be done: with their own position, preadv2 and pwritev2 are as readv and writev. */
static void show_refused(int reader, int writer) {
    char byte = 0;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    show_positioned(reader);
    show(pwritev2(reader, &one, 1, -1, 0));
    show_positioned(writer);
    show(preadv2(writer, &one, 1, -1, 0));
}
BEHAVIOUR("calls with positions of pipes and FIFOs, by the wrong end too") {
    int p[2];
    must(pipe(p));
    show_refused(p[0], p[1]);
    must(mkfifo("fifo", 0600));
    int both = must(open("fifo", O_RDWR));
    show_refused(must(open("fifo", O_RDONLY)), must(open("fifo", O_WRONLY)));
    show_positioned(both);
}
BEHAVIOUR("calls with positions of inotify and sockets") {
    int pair[2];
    show_positioned(must(inotify_init()));
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    show_positioned(pair[0]);
}
BEHAVIOUR("calls with positions of terminals and memory devices, as they are not opened") {
    int master = must(posix_openpt(O_RDWR | O_NOCTTY));
    must(unlockpt(master));
    show_refused(must(open(ptsname(master), O_RDONLY | O_NOCTTY)), must(open(ptsname(master), O_WRONLY | O_NOCTTY)));
    show_refused(must(open("/dev/null", O_RDONLY)), must(open("/dev/null", O_WRONLY)));
    show_refused(must(open("/dev/zero", O_RDONLY)), must(open("/dev/zero", O_WRONLY)));
}
BEHAVIOUR("calls with positions of files and directories, as they are not opened, and by O_PATH") {
    make("f", "text");
    show_refused(must(open("f", O_RDONLY)), must(open("f", O_WRONLY)));
    show_positioned(must(open(".", O_RDONLY)));
    show_positioned(must(open("f", O_PATH)));
    must(mkfifo("fifo", 0600));
    show_positioned(must(open("fifo", O_PATH)));
}
BEHAVIOUR("a bad vector, or a negative position, of a bad descriptor, the wrong end, a pipe") {
    int p[2];
    must(pipe(p));
    int fds[] = {99, p[0], p[1]};
    for (int i = 0; i < 3; i++) {
        note("|");
        show(syscall(SYS_readv, fds[i], bad(), 1));
        show(syscall(SYS_writev, fds[i], bad(), 1));
        show(syscall(SYS_preadv, fds[i], bad(), 1, 0, 0));
        show(syscall(SYS_pwritev, fds[i], bad(), 1, 0, 0));
        show(syscall(SYS_preadv, fds[i], bad(), 1, -1L, 0));
        show(syscall(SYS_pwrite64, fds[i], bad(), 1, -1L));
        show(syscall(SYS_preadv2, fds[i], bad(), 1, -1L, 0, 0x8000));
        show(syscall(SYS_preadv2, fds[i], bad(), 1, -2L, 0, 0x8000));
    }
}
