/* Makes the kernel use page tables: `page_tables PROCESSES MAPPINGS [unmap]`. Each process maps the same page of a file so many times, 1 GiB apart, and
 * reads each, until memory has ended for it. With "unmap" it unmaps each page after that. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_BYTES 4096L
#define GIB (1L << 30)

static void map(int file, long mappings, int unmaps)
{
    for (long i = 1; i <= mappings; i++) {
        volatile char *page = mmap((void *)(i * GIB), PAGE_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
        if (page == MAP_FAILED)
            break;
        (void)*page;
        if (unmaps)
            munmap((void *)page, PAGE_BYTES);
    }
    /* All of them have their tables at the same time. */
    sleep(2);
}

int main(int argc, char **argv)
{
    int processes = argc > 2 ? atoi(argv[1]) : 1, ended = 0;
    int file = open("/tmp/page", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, PAGE_BYTES) != 0)
        return 1;
    for (int i = 0; i < processes; i++) {
        if (fork() == 0) {
            map(file, argc > 2 ? atol(argv[2]) : 1000, argc > 3);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ended++;
    return ended == processes ? 0 : 1;
}
