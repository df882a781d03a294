/* Private mappings of files that are truncated, and grow. */
#include "behaviour.h"

#define PAGE 4096L

/* Whether the page of the address can be read: asked of the kernel, which returns EFAULT. */
static int readable(const void *address) {
    int p[2], can;
    pipe(p);
    can = write(p[1], address, 1) == 1;
    close(p[0]);
    close(p[1]);
    return can;
}

/* Each kind of file that can be mapped: on the disk, in memory, without a name. */
static int file_of_kind(int kind) {
    int fd = must(kind == 0 ? open("f", O_CREAT | O_RDWR | O_TRUNC, 0666)
                  : kind == 1 ? open("/dev/shm/behaviour.f", O_CREAT | O_RDWR | O_TRUNC, 0666) : memfd_create("f", 0));
    if (kind == 1)
        must(unlink("/dev/shm/behaviour.f"));
    return fd;
}
#define EACH_KIND(fd) for (int kind_ = 0, fd; kind_ < 3 && (fd = file_of_kind(kind_)) >= 0; kind_++)
static int written(int fd, long bytes) {
    must(ftruncate(fd, bytes));
    for (long at = 0; at < bytes; at += PAGE)
        must(pwrite(fd, "file", 4, at));
    return fd;
}
static volatile char *private(int fd, long count) {
    void *at = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    must(at == MAP_FAILED ? -1 : 0);
    return at;
}
/* The first byte of each page; '-' where there is none. */
static void show_pages(volatile char *at, long count) {
    char text[16] = "";
    for (long page = 0; page < count; page++)
        text[page] = !readable((char *)at + page * PAGE) ? '-' : at[page * PAGE] == 0 ? '.' : at[page * PAGE];
    note("%s", text);
}

BEHAVIOUR("truncation takes private copies beyond the new end, and leaves the others") {
    EACH_KIND(fd) {
        volatile char *at = private(written(fd, 3 * PAGE), 3);
        at[0] = at[PAGE + 50] = at[2 * PAGE] = 'P';
        must(ftruncate(fd, PAGE + 10));
        show_pages(at, 3);
        note("%c", at[PAGE + 50]);
        IN_CHILD { at[2 * PAGE] = 1; }
    }
}
BEHAVIOUR("a file that grows again is zeros where a private mapping was truncated") {
    EACH_KIND(fd) {
        volatile char *at = private(written(fd, 3 * PAGE), 3);
        at[0] = at[2 * PAGE] = 'P';
        must(ftruncate(fd, PAGE));
        must(ftruncate(fd, 3 * PAGE));
        show_pages(at, 3);
        at[PAGE] = 'Q';
        show_pages(at, 3);
    }
}
BEHAVIOUR("a private mapping beyond the end of a file is zeros when the file grows") {
    EACH_KIND(fd) {
        volatile char *at = private(written(fd, PAGE), 4);
        show_pages(at, 4);
        must(ftruncate(fd, 2 * PAGE + 1));
        show_pages(at, 4);
        at[PAGE] = at[2 * PAGE + 5] = 'P';
        show_pages(at, 4);
        show_read(fd, 3);
    }
}
BEHAVIOUR("truncation within a page of a private mapping clears the rest of it, if it is no copy") {
    EACH_KIND(fd) {
        must(pwrite(written(fd, PAGE), "tail", 4, 100));
        volatile char *copy = private(fd, 1), *shown = private(fd, 1);
        copy[0] = 'P';
        must(ftruncate(fd, 102));
        show_bytes((char *)copy + 100, 4);
        show_bytes((char *)shown + 100, 4);
    }
}
BEHAVIOUR("O_TRUNC takes all of a private mapping, also when its descriptor is closed") {
    int fd = written(file_of_kind(0), 2 * PAGE);
    volatile char *at = private(fd, 2);
    at[PAGE] = 'P';
    close(fd);
    close(must(open("f", O_WRONLY | O_TRUNC)));
    show_pages(at, 2);
    make("g", "");
    must(rename("g", "f"));
    must(truncate("f", 2 * PAGE));
    show_pages(at, 2);
}
BEHAVIOUR("a child's private copies go with truncation too, and what may not be read") {
    EACH_KIND(fd) {
        volatile char *at = private(written(fd, 2 * PAGE), 2);
        struct gate ready = new_gate(), truncated = new_gate();
        at[PAGE] = 'P';
        pid_t child = fork();
        if (child == 0) {
            at[PAGE] = 'C';
            mprotect((char *)at, 2 * PAGE, PROT_NONE);
            open_gate(ready);
            pass_gate(truncated);
            mprotect((char *)at, 2 * PAGE, PROT_READ);
            show_pages(at, 2);
            _exit(0);
        }
        pass_gate(ready);
        must(ftruncate(fd, PAGE));
        must(ftruncate(fd, 2 * PAGE));
        open_gate(truncated);
        wait_for(child);
        show_pages(at, 2);
    }
}
BEHAVIOUR("a hole that is punched leaves private copies, and a new file those of the old one") {
    EACH_KIND(fd) {
        volatile char *at = private(written(fd, 2 * PAGE), 2);
        at[0] = at[PAGE] = 'P';
        must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
        show_pages(at, 2);
        unlink("f");
        close(fd);
        make("f", "new");
        must(truncate("f", 0));
        show_pages(at, 2);
    }
}
