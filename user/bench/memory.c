/* Page faults: the first touch of anonymous memory, and the first write after fork; memory that is mapped and unmapped, touched or not; and
 * pages whose protection changes and changes back. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ticks.h"

enum { PAGES = 512, PAGE = 4096, ROUNDS = 200, SMALL = 16 };

static void touch(volatile char *memory)
{
    for (int i = 0; i < PAGES; i++)
        memory[i * PAGE] = 1;
}

static char *map(int pages)
{
    char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "mmap");
    return memory;
}

static void bench_map(void)
{
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(munmap(map(SMALL), SMALL * PAGE) == 0, "munmap");
    report("mmap_munmap_64k", start, ticks(), ROUNDS);
    start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        volatile char *memory = map(SMALL);
        for (int page = 0; page < SMALL; page++)
            memory[page * PAGE] = 1;
        check(munmap((void *)memory, SMALL * PAGE) == 0, "munmap");
    }
    report("mmap_touch_munmap_64k", start, ticks(), ROUNDS);
}

static void bench_protect(char *memory)
{
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++) {
        check(mprotect(memory, SMALL * PAGE, PROT_READ) == 0, "mprotect");
        check(mprotect(memory, SMALL * PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    }
    report("mprotect_there_and_back", start, ticks(), ROUNDS);
}

int main(void)
{
    char *memory = map(PAGES);
    uint64_t start = ticks();
    touch(memory);
    report("anonymous_fault", start, ticks(), PAGES);
    fflush(stdout);

    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        start = ticks();
        touch(memory);
        report("copy_on_write_fault", start, ticks(), PAGES);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    bench_map();
    bench_protect(memory);
    return 0;
}
