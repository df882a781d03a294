/* Page faults: the first touch of anonymous memory, and the first write after fork. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ticks.h"

enum { PAGES = 512, PAGE = 4096 };

static void touch(volatile char *memory)
{
    for (int i = 0; i < PAGES; i++)
        memory[i * PAGE] = 1;
}

int main(void)
{
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "mmap");
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
    return 0;
}
