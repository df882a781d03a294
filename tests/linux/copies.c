/* Small results and arguments that go to and from the same pages again and again, while the pages change: what a call may reach is decided
 * by the memory as it is now. Each page is used by a call, then changed, then used again. */
#include "behaviour.h"
#include <sys/eventfd.h>

#define PAGE 4096

static int ends[2];

static char *page_of(int rights) {
    must(pipe(ends));
    return mmap(NULL, PAGE, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A byte into the pipe from `at`, and one out of it to `at`. */
static void give(const char *at) { show(write(ends[1], at, 1)); }
static void get(char *at) { show(read(ends[0], at, 1)); }
static void refill(char byte) { must(write(ends[1], &byte, 1)); }

BEHAVIOUR("a result for a page that has become read-only") {
    char *page = page_of(PROT_READ | PROT_WRITE);
    refill('a');
    get(page);
    must(mprotect(page, PAGE, PROT_READ));
    refill('b');
    get(page);
    note("%c ", page[0]);
    must(mprotect(page, PAGE, PROT_READ | PROT_WRITE));
    get(page);
    note("%c ", page[0]);
}
BEHAVIOUR("an argument in a page that nobody may read any more") {
    char *page = page_of(PROT_READ | PROT_WRITE);
    page[0] = 'a';
    give(page);
    must(mprotect(page, PAGE, PROT_NONE));
    give(page);
    must(mprotect(page, PAGE, PROT_READ));
    give(page);
}
BEHAVIOUR("an argument in a page that is gone, and in one that came in its place") {
    char *page = page_of(PROT_READ | PROT_WRITE), got[3] = "";
    page[0] = 'a';
    give(page);
    must(munmap(page, PAGE));
    give(page);
    must(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page ? 0 : -1);
    page[0] = 'b';
    give(page);
    must(read(ends[0], got, 2));
    note("%s ", got);
}
BEHAVIOUR("a page that is mapped over without being unmapped") {
    char *page = page_of(PROT_READ | PROT_WRITE), got[3] = "";
    page[0] = 'a';
    give(page);
    must(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page ? 0 : -1);
    page[0] = 'b';
    give(page);
    must(read(ends[0], got, 2));
    note("%s ", got);
}
BEHAVIOUR("a result after fork is the caller's alone") {
    char *page = page_of(PROT_READ | PROT_WRITE);
    int ready[2];
    char byte = 0;
    must(pipe(ready));
    refill('a');
    get(page);
    pid_t child = must(fork());
    if (child == 0) {
        must(read(ready[0], &byte, 1));
        _exit(page[0]);
    }
    refill('b');
    get(page);
    must(write(ready[1], &byte, 1));
    int status;
    must(waitpid(child, &status, 0));
    note("%c %c ", page[0], WEXITSTATUS(status));
}
BEHAVIOUR("a result in a child leaves the parent's page") {
    char *page = page_of(PROT_READ | PROT_WRITE);
    refill('a');
    get(page);
    refill('b');
    pid_t child = must(fork());
    if (child == 0) {
        must(read(ends[0], page, 1));
        _exit(page[0]);
    }
    int status;
    must(waitpid(child, &status, 0));
    note("%c %c ", page[0], WEXITSTATUS(status));
}
BEHAVIOUR("a page that has moved") {
    char *page = page_of(PROT_READ | PROT_WRITE), got[3] = "";
    page[0] = 'a';
    give(page);
    char *there = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there ? 0 : -1);
    give(page);
    there[0] = 'b';
    give(there);
    must(read(ends[0], got, 2));
    note("%s ", got);
}
BEHAVIOUR("a page that was given back and is zero again") {
    char *page = page_of(PROT_READ | PROT_WRITE), got[2] = "xx";
    page[0] = 'a';
    give(page);
    must(madvise(page, PAGE, MADV_DONTNEED));
    give(page);
    must(read(ends[0], got, 2));
    note("%d %d ", got[0], got[1]);
}
BEHAVIOUR("a result for a page that has only been read") {
    char *page = page_of(PROT_READ | PROT_WRITE);
    give(page);
    get(page);
    refill('a');
    get(page);
    note("%c ", page[0]);
}
BEHAVIOUR("bytes that begin in one page and end in another") {
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), got[5] = "";
    must(pipe(ends));
    memcpy(pages + PAGE - 2, "abcd", 4);
    show(write(ends[1], pages + PAGE - 2, 2));
    show(write(ends[1], pages + PAGE - 2, 4));
    must(read(ends[0], got, 2));
    must(read(ends[0], got, 4));
    note("%s ", got);
    must(munmap(pages + PAGE, PAGE));
    show(write(ends[1], pages + PAGE - 2, 2));
    show(write(ends[1], pages + PAGE - 2, 4));
}
BEHAVIOUR("a program after another in the same process") {
    char *page = page_of(PROT_READ | PROT_WRITE);
    page[0] = 'a';
    for (int round = 0; round < 3; round++) {
        give(page);
        pid_t child = must(fork());
        if (child == 0) {
            char byte;
            must(read(ends[0], &byte, 1));
            dup2(ends[1], 1);
            execl("/bin/sh", "sh", "-c", "printf x", NULL);
            _exit(1);
        }
        must(waitpid(child, NULL, 0));
        get(page);
        note("%c ", page[0]);
    }
}

/* Arguments of eight bytes, which a call may have with it: a count for a counter, and a set of signals. */

static int counter(void) { return must(eventfd(0, EFD_NONBLOCK)); }

/* Adds the word at `at` to a counter, and shows what is in it then. */
static void add(int fd, const void *at) {
    uint64_t count = 0;
    show(syscall(SYS_write, fd, at, 8));
    show(read(fd, &count, 8));
    note("%lu ", (unsigned long)count);
}

/* Blocks the set at `at`, and shows whether SIGUSR1 is blocked then. */
static void set_mask(const void *at) {
    uint64_t now = 0;
    show(syscall(SYS_rt_sigprocmask, SIG_SETMASK, at, NULL, 8));
    must(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &now, 8));
    note("%lx ", (unsigned long)now);
}

BEHAVIOUR("a word in two pages, and in one whose neighbour is gone") {
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = counter();
    uint64_t word = 1UL << 40 | 0x200;
    for (int before = 1; before <= 8; before++) {
        memcpy(pages + PAGE - before, &word, 8);
        add(fd, pages + PAGE - before);
        set_mask(pages + PAGE - before);
    }
    must(mprotect(pages + PAGE, PAGE, PROT_NONE));
    add(fd, pages + PAGE - 8);
    set_mask(pages + PAGE - 8);
    add(fd, pages + PAGE - 7);
    set_mask(pages + PAGE - 7);
    must(munmap(pages + PAGE, PAGE));
    add(fd, pages + PAGE - 1);
    set_mask(pages + PAGE - 1);
    add(fd, pages + PAGE);
    set_mask(pages + PAGE);
}
BEHAVIOUR("a word in a page that was never touched, of memory and of a file") {
    int fd = counter(), file = must(open("file", O_RDWR | O_CREAT, 0600));
    uint64_t word = 0x200;
    must(pwrite(file, &word, 8, PAGE + 16));
    char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    add(fd, page);
    set_mask(page + 24);
    char *mapped = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
    add(fd, mapped + PAGE + 16);
    mapped = mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, file, 0);
    set_mask(mapped + PAGE + 16);
    add(fd, mapped + 2 * PAGE);
    set_mask(mapped + 2 * PAGE);
}
BEHAVIOUR("a word in a page that changes between calls") {
    uint64_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = counter();
    page[0] = 0x200;
    add(fd, page);
    set_mask(page);
    must(mprotect(page, PAGE, PROT_NONE));
    add(fd, page);
    set_mask(page);
    must(mprotect(page, PAGE, PROT_READ));
    add(fd, page);
    set_mask(page);
    pid_t child = must(fork());
    if (child == 0) {
        must(mprotect(page, PAGE, PROT_READ | PROT_WRITE));
        page[0] = 0x800;
        add(fd, page);
        set_mask(page);
        _exit(0);
    }
    must(waitpid(child, NULL, 0));
    add(fd, page);
    set_mask(page);
    must(mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page ? 0 : -1);
    add(fd, page);
    set_mask(page);
}
BEHAVIOUR("a word at addresses that no program has, with another in the register after the arguments") {
    const uint64_t addresses[] = {0,          1,          0x7ffffffffff9, 0x7fffffffffff, 1UL << 47,
                                  -1UL << 47, UINT64_MAX - 7, UINT64_MAX};
    int fd = counter();
    uint64_t count;
    for (size_t at = 0; at < sizeof addresses / sizeof *addresses; at++) {
        show(syscall(SYS_write, fd, addresses[at], 8, 7, 8, 9));
        if (at > 0)
            show(syscall(SYS_rt_sigprocmask, SIG_SETMASK, addresses[at], NULL, 8, 8, 0x200));
    }
    show(read(fd, &count, 8));
    set_mask(NULL);
}
BEHAVIOUR("what is wrong with a call that has a word: descriptor, way, size, value") {
    int fd = counter(), file = must(open("file", O_RDONLY | O_CREAT, 0600));
    uint64_t word = 0x200, all = UINT64_MAX;
    show(write(-1, &word, 8));
    show(write(file, &word, 8));
    show(write(fd, &all, 8));
    show(write(fd, &word, 7));
    show(read(fd, &all, 8));
    note("%lx ", (unsigned long)all);
    show(syscall(SYS_rt_sigprocmask, 3, &word, NULL, 8));
    show(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &word, NULL, 4));
    show(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &word, NULL, 16));
    show(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &word, 8, 8));
    set_mask(NULL);
}
BEHAVIOUR("a word written to what takes any bytes") {
    int file = must(open("file", O_RDWR | O_CREAT, 0600)), null = must(open("/dev/null", O_WRONLY));
    char got[17] = "";
    must(pipe(ends));
    show(write(file, "12345678", 8));
    show(write(file, "abcdefgh", 8));
    show(pread(file, got, 16, 0));
    note("%s ", got);
    show(write(ends[1], "87654321", 8));
    show(read(ends[0], got, 16));
    note("%.8s ", got);
    show(write(null, "87654321", 8));
    show(syscall(SYS_write, file, 8, 8));
    show(syscall(SYS_write, ends[1], 8, 8));
}
BEHAVIOUR("a write to a full counter has the word that was there when it was made") {
    int fd = must(eventfd(0, 0));
    uint64_t word = UINT64_MAX - 1, count = 0;
    show(write(fd, &word, 8));
    pid_t child = must(fork());
    if (child == 0) {
        word = 5;
        show(write(fd, &word, 8));
        _exit(0);
    }
    wait_until_asleep(child);
    must(read(fd, &count, 8));
    must(waitpid(child, NULL, 0));
    must(read(fd, &count, 8));
    note("%lu ", (unsigned long)count);
}
BEHAVIOUR("the registers of a call that has a word with it") {
    uint64_t word = 3;
    long result = SYS_write, fd = counter();
    register uint64_t r8 __asm__("r8") = 0x1111, r9 __asm__("r9") = 0x2222, r10 __asm__("r10") = 0x3333;
    __asm__ volatile("syscall"
                     : "+a"(result), "+r"(r8), "+r"(r9), "+r"(r10)
                     : "D"(fd), "S"(&word), "d"(8L)
                     : "rcx", "r11", "memory");
    unsigned long after[] = {r8, r9, r10};
    show(result);
    note("%lx %lx %lx ", after[0], after[1], after[2]);
}
