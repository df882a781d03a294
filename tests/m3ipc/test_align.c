/* 4 MiB at many alignments of source and target, and a few bytes at every one within a cache line and around the end of a page. */
#include "m3test.h"

enum { BYTES = MAXCOPYLEN, ROOM = BYTES + 8192 };

static char *theirs;

static void child(void)
{
    message m = text_message(1, 0);
    m.m1_p1 = theirs;
    mnx_sendrec(1, &m);
}

/* 200 bytes: whole lines and parts of two more; from and to the end of a page they lie in two. */
static void small(char *source, char *target)
{
    enum { LINE = 64, PAGE = 4096, SMALL = 200 };
    for (int from = 0; from < LINE; from++)
        for (int to = 0; to < LINE; to++) {
            int page = (from + to) % 2 * (PAGE - LINE);
            char *one = source + page + from, *other = target + PAGE + (PAGE - LINE - page) + to;
            other[-1] = other[SMALL] = 'y';
            memset(other, 0, SMALL);
            if (mnx_vcopy(2, one, SELF, other, SMALL) != SMALL || memcmp(other, theirs + (one - source), SMALL) != 0 || other[-1] != 'y' ||
                other[SMALL] != 'y')
                printf("from %d to %d: wrong\n", from, to);
        }
}

int main(void)
{
    static const int offsets[] = {0, 1, 2, 7, 8, 15, 63, 64, 511, 2048, 4088, 4095};
    enum { COUNT = sizeof offsets / sizeof *offsets };
    message m;
    int wrong = 0, copies = 0;
    begin();
    theirs = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < ROOM / 8; i++)
        ((unsigned long *)theirs)[i] = i * 0x9e3779b97f4a7c15;
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW(mnx_receive(2, &m));
    char *own = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    small(m.m1_p1, own);
    for (int i = 0; i < COUNT; i++)
        for (int pass = 0; pass < 2; pass++) {
            char *source = m.m1_p1 + offsets[pass ? 0 : i], *target = own + offsets[pass ? i : COUNT - 1 - i];
            target[BYTES] = 'z';
            int copied = mnx_vcopy(2, source, SELF, target, BYTES);
            if (copied == BYTES)
                copies++;
            else
                printf("from %d to %d: %d\n", offsets[pass ? 0 : i], offsets[pass ? i : COUNT - 1 - i], copied);
            wrong += memcmp(target, theirs + (source - m.m1_p1), BYTES) != 0 || target[BYTES] != 'z';
        }
    printf("%d copies, %d wrong\n", copies, wrong);
    SHOW(mnx_reply(2, &m));
    reap(pid);
    return 0;
}
