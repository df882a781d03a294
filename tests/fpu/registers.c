/* Programs keep their vector registers while a page that they store to comes in, and others run: each broadcasts a value in a register and
   stores it to new memory. Prints how often something else was stored. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
    for (int p = 0; p < 4; p++) {
        if (fork() != 0) continue;
        int bad = 0;
        unsigned last = 0;
        for (int i = 0; i < 40; i++) {
            unsigned char *at = mmap(NULL, 64 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            madvise(at, 64 << 12, MADV_RANDOM);
            for (int page = 63; page >= 0; page--) {
                unsigned v = (i * 64 + page + p * 50) % 251 + 1;
                unsigned char *to = at + page * 4096;
                __asm__ volatile("movd %1,%%xmm0\n punpcklbw %%xmm0,%%xmm0\n punpcklwd %%xmm0,%%xmm0\n pshufd $0,%%xmm0,%%xmm0\n movups %%xmm0,(%0)" :: "r"(to), "m"(v) : "xmm0", "memory");
                if (*to != v && bad++ < 3) printf("%d: %d for %d, before %d\n", p, *to, v, last);
                last = v;
            }
            munmap(at, 64 << 12);
        }
        printf("%d: %d wrong\n", p, bad);
        fflush(stdout);
        _exit(0);
    }
    while (wait(NULL) > 0) {}
    return 0;
}
