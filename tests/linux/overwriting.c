/* Files that are written over again and again: everybody sees the last write, whichever way he asks, and their times are those of it. */
#include "behaviour.h"
#include <sys/sendfile.h>
#include <sys/xattr.h>

#define PAGE 4096
#define PAGES 6
#define BYTES (PAGES * PAGE + 100)

static char page[PAGE];

/* A file of six pages and a bit, of which every page has been written over a few times. */
static int file(void) {
    static char text[BYTES];
    memset(text, 'o', sizeof text);
    int fd = must(open("f", O_CREAT | O_TRUNC | O_RDWR, 0644));
    must(write(fd, text, sizeof text));
    for (int round = 0; round < 4; round++)
        for (int number = 0; number < PAGES; number++) {
            memset(page, 'a' + number + round, PAGE);
            must(pwrite(fd, page, PAGE, number * PAGE));
        }
    return fd;
}

static void write_over(int fd, int number, char mark) {
    memset(page, mark, PAGE);
    show(pwrite(fd, page, PAGE, number * PAGE));
}

/* What a descriptor reads: a letter for each run of the same byte, and how many there are. */
static void show_runs(const char *text, long bytes) {
    for (long at = 0; at < bytes;) {
        long end = at;
        while (end < bytes && text[end] == text[at]) end++;
        note("%c%ld ", text[at] ? text[at] : '0', end - at);
        at = end;
    }
}
static void show_content(int fd) {
    static char text[2 * BYTES];
    long bytes = must(pread(fd, text, sizeof text, 0));
    show_runs(text, bytes);
}
static void show_named(const char *name) {
    int fd = must(open(name, O_RDONLY));
    show_content(fd);
    close(fd);
}

BEHAVIOUR("a write from bad memory leaves the page") {
    int fd = file();
    show(pwrite(fd, bad(), PAGE, PAGE));
    show_content(fd);
}
BEHAVIOUR("a write over beyond RLIMIT_FSIZE") {
    int fd = file();
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 2 * PAGE, 2 * PAGE });
    write_over(fd, 1, 'x');
    write_over(fd, 2, 'x');
    show(pwrite(fd, page, PAGE, 2 * PAGE - 10));
    show_content(fd);
}
BEHAVIOUR("a write through a descriptor for reading") {
    file();
    int fd = must(open("f", O_RDONLY));
    write_over(fd, 1, 'x');
}
BEHAVIOUR("pages, parts of pages, across pages, the end") {
    int fd = file();
    write_over(fd, 2, 'x');
    show(pwrite(fd, "12", 2, 2 * PAGE + 10));
    show(pwrite(fd, "34", 2, 3 * PAGE - 1));
    show(pwrite(fd, page, 100, PAGES * PAGE));
    show(pwrite(fd, "5", 1, BYTES - 1));
    show(pwrite(fd, "67", 2, BYTES - 1));
    show_content(fd);
}
BEHAVIOUR("write and read move the offset") {
    int fd = file();
    memset(page, 'x', PAGE);
    lseek(fd, PAGE, SEEK_SET);
    show(write(fd, page, PAGE));
    show(write(fd, page, 10));
    show(lseek(fd, 0, SEEK_CUR));
    show(read(fd, page, 5));
    show(lseek(fd, 0, SEEK_CUR));
    show_content(fd);
}
BEHAVIOUR("another open file of it reads what was written") {
    int fd = file(), other = must(open("f", O_RDWR));
    write_over(fd, 1, 'x');
    show_content(other);
    write_over(other, 1, 'y');
    show_content(fd);
}
BEHAVIOUR("another process reads what was written, and what it writes is read") {
    int fd = file();
    write_over(fd, 1, 'x');
    IN_CHILD {
        show_named("f");
        write_over(must(open("f", O_RDWR)), 2, 'y');
    }
    show_content(fd);
}
BEHAVIOUR("O_APPEND between writes over") {
    int fd = file(), appends = must(open("f", O_WRONLY | O_APPEND));
    write_over(fd, 1, 'x');
    show(write(appends, "end", 3));
    write_over(fd, 1, 'y');
    show_content(fd);
}
BEHAVIOUR("O_DSYNC between writes over") {
    int fd = file(), synced = must(open("f", O_WRONLY | O_DSYNC));
    write_over(fd, 1, 'x');
    write_over(synced, 1, 'y');
    write_over(fd, 2, 'z');
    show_content(fd);
}
BEHAVIOUR("fsync, fdatasync, sync_file_range, syncfs, sync") {
    int fd = file();
    write_over(fd, 0, '1');
    show(fsync(fd));
    write_over(fd, 1, '2');
    show(fdatasync(fd));
    write_over(fd, 2, '3');
    show(sync_file_range(fd, 0, BYTES, SYNC_FILE_RANGE_WRITE));
    write_over(fd, 3, '4');
    show(syncfs(fd));
    write_over(fd, 4, '5');
    sync();
    show_content(fd);
}
BEHAVIOUR("truncate within what was written, and before it") {
    int fd = file();
    write_over(fd, 3, 'x');
    show(ftruncate(fd, 3 * PAGE + 10));
    show_content(fd);
    write_over(fd, 2, 'y');
    show(ftruncate(fd, PAGE));
    show(ftruncate(fd, 4 * PAGE));
    show_content(fd);
}
BEHAVIOUR("open with O_TRUNC") {
    int fd = file();
    write_over(fd, 3, 'x');
    must(open("f", O_WRONLY | O_TRUNC));
    show(size_of(fd));
    write_over(fd, 1, 'y');
    show_content(fd);
}
BEHAVIOUR("punched holes and zeroed ranges") {
    int fd = file();
    write_over(fd, 1, 'x');
    show(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE + 10, 20));
    write_over(fd, 2, 'y');
    show(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * PAGE, PAGE));
    show_content(fd);
    write_over(fd, 2, 'z');
    show(lseek(fd, 0, SEEK_HOLE));
    show_content(fd);
}
BEHAVIOUR("a file with holes") {
    int fd = must(open("f", O_CREAT | O_RDWR, 0644));
    show(ftruncate(fd, BYTES));
    for (int round = 0; round < 4; round++) write_over(fd, 2, 'a' + round);
    show(lseek(fd, 0, SEEK_DATA));
    show(lseek(fd, 2 * PAGE, SEEK_HOLE));
    write_over(fd, 4, 'x');
    show_content(fd);
}
BEHAVIOUR("copy_file_range from it and to it") {
    int fd = file(), other = must(open("g", O_CREAT | O_RDWR, 0644));
    write_over(fd, 1, 'x');
    show(copy_file_range(fd, &(off_t){ 0 }, other, NULL, BYTES, 0));
    show_content(other);
    write_over(fd, 1, 'y');
    write_over(fd, 4, 'z');
    show(copy_file_range(other, &(off_t){ PAGE }, fd, &(off_t){ 4 * PAGE - 10 }, 20, 0));
    show_content(fd);
}
BEHAVIOUR("sendfile from it, and to it") {
    int fd = file(), other = must(open("g", O_CREAT | O_RDWR, 0644));
    write_over(fd, 1, 'x');
    show(sendfile(other, fd, &(off_t){ 0 }, BYTES));
    show_content(other);
    write_over(fd, 2, 'y');
    lseek(fd, 2 * PAGE + 5, SEEK_SET);
    show(sendfile(fd, other, &(off_t){ 0 }, 10));
    show_content(fd);
}
BEHAVIOUR("a private mapping made after it") {
    int fd = file();
    write_over(fd, 1, 'x');
    char *mapped = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    show_runs(mapped, BYTES);
}
BEHAVIOUR("a shared mapping sees later writes, and they see its stores") {
    int fd = file();
    write_over(fd, 1, 'x');
    char *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    write_over(fd, 2, 'y');
    show_runs(mapped, BYTES);
    mapped[PAGE] = '!';
    show_content(fd);
    write_over(fd, 1, 'z');
    note("%c ", mapped[PAGE]);
    munmap(mapped, BYTES);
    write_over(fd, 1, 'w');
    show_content(fd);
}
BEHAVIOUR("links, names and what they replace") {
    int fd = file();
    write_over(fd, 1, 'x');
    show(link("f", "g"));
    show_named("g");
    write_over(fd, 2, 'y');
    make("h", "old");
    show(rename("f", "h"));
    show_named("h");
    write_over(fd, 3, 'z');
    show(unlink("g"));
    show(unlink("h"));
    write_over(fd, 4, 'w');
    show_content(fd);
    show(open("h", O_RDONLY));
}
BEHAVIOUR("renameat2 RENAME_EXCHANGE of two of them") {
    int fd = file();
    show(rename("f", "g"));
    int other = file();
    write_over(fd, 1, 'x');
    write_over(other, 1, 'y');
    show(renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_EXCHANGE));
    show_named("f");
    show_named("g");
}
BEHAVIOUR("a program is what was written last") {
    static char program[] = "#!/bin/sh\nexit 3\n";
    int fd = must(open("f", O_CREAT | O_WRONLY, 0755));
    for (int code = '3'; code < '8'; code++) {
        program[sizeof program - 3] = code;
        must(pwrite(fd, program, sizeof program - 1, 0));
    }
    close(fd);
    int status = system("./f");
    note("%d ", WEXITSTATUS(status));
}
BEHAVIOUR("the times are those of the last write, also when it has been written back") {
    struct stat before, after, synced;
    int fd = file();
    fstat(fd, &before);
    usleep(20000);
    write_over(fd, 1, 'x');
    fstat(fd, &after);
    note("%d ", after.st_mtim.tv_sec != before.st_mtim.tv_sec || after.st_mtim.tv_nsec != before.st_mtim.tv_nsec);
    usleep(20000);
    show(fsync(fd));
    fstat(fd, &synced);
    note("%d ", !memcmp(&after.st_mtim, &synced.st_mtim, sizeof after.st_mtim));
    note("%d ", !memcmp(&after.st_ctim, &synced.st_ctim, sizeof after.st_ctim));
    note("%d ", !memcmp(&after.st_mtim, &synced.st_ctim, sizeof after.st_mtim));
}
BEHAVIOUR("utimensat after a write is what counts") {
    struct stat status;
    int fd = file();
    write_over(fd, 1, 'x');
    show(futimens(fd, (struct timespec[]){ { 11, 0 }, { 22, 0 } }));
    show(fsync(fd));
    fstat(fd, &status);
    note("%ld %ld", (long)status.st_atime, (long)status.st_mtime);
}
BEHAVIOUR("chmod, chown and set-id bits between writes") {
    int fd = file();
    write_over(fd, 1, 'x');
    show(fchmod(fd, 06755));
    show(fchown(fd, USER, USER));
    show(fchmod(fd, 06755));
    AS(USER) {
        int own = must(open("f", O_WRONLY));
        for (int round = 0; round < 3; round++) write_over(own, 2, 'a' + round);
    }
    show_mode("f");
    show_content(fd);
}
BEHAVIOUR("extended attributes between writes") {
    int fd = file();
    write_over(fd, 1, 'x');
    show(fsetxattr(fd, "user.a", "1", 1, 0));
    write_over(fd, 1, 'y');
    show(fgetxattr(fd, "user.a", page, 10));
    show_content(fd);
}
