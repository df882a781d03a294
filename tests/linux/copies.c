/* Small results and arguments that go to and from the same pages again and again, while the pages change: what a call may reach is decided
 * by the memory as it is now. Each page is used by a call, then changed, then used again. */
#include "behaviour.h"

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
