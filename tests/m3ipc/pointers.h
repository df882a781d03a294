/* Pointers that lead nowhere, or where nothing may be written, and what calls say to them. */
#ifndef POINTERS_H
#define POINTERS_H

#include "m3test.h"

enum { PAGE = 4096 };

static struct {
    const char *name;
    void *place;
} bad[] = {{"null", NULL}, {"unmapped", NULL}, {"protected", NULL}, {"half unmapped", NULL}, {"low", (void *)8},
           {"not an address", (void *)0x800000000000}, {"the kernel's", (void *)0xffffffff80000000}, {"the last", (void *)-4}};
enum { BADS = sizeof bad / sizeof *bad };

/* A page that may only be read, with a message of type 7 at its beginning. */
static char *read_only;

static inline char *page(int protection)
{
    return mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static inline void make_pointers(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    // Nothing is mapped near this address.
    bad[1].place = (void *)0x500000000000;
    bad[2].place = pages + PAGE;
    bad[3].place = pages + PAGE - 4;
    read_only = page(PROT_READ | PROT_WRITE);
    ((message *)read_only)->m_type = 7;
    mprotect(read_only, PAGE, PROT_READ);
}

/* Shows what a call says to each bad pointer, which it calls `p`; to all the same, if it is right. */
#define SHOW_BAD(call) \
    do { \
        int all = 0, different = 0; \
        for (int i = 0; i < BADS; i++) { \
            void *p = bad[i].place; \
            int told = call; \
            if (i > 0 && told != all) { \
                printf("%s, %s -> %s\n", #call, bad[i].name, result(told)); \
                different = 1; \
            } \
            all = i > 0 ? all : told; \
        } \
        printf("%s -> %s%s\n", #call, result(all), different ? ", null" : ""); \
    } while (0)

#endif
