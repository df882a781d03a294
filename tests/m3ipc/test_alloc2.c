/* vcopy between buffers of the library: by the caller and by a third process, at many alignments and lengths, and beyond their ends. */
#include "m3test.h"

enum { BYTES = 3 * 4096, GUARD = 'g' };

static char mark(int at)
{
    return (char)(at * 7 + at / 256);
}

/* Allocates a buffer, shows it to process 1, and waits until all is done. */
static void child(void)
{
    message m = text_message(1, 0);
    void *buffer;
    SHOW(mnx_alloc(&buffer, BYTES));
    for (int i = 0; i < BYTES; i++)
        ((char *)buffer)[i] = mark(i);
    m.m1_p1 = buffer;
    SHOW(mnx_sendrec(1, &m));
    SHOW(mnx_free(buffer));
}

int main(void)
{
    static const int offsets[] = {0, 1, 7, 8, 63, 64, 4095, 4096, 5000}, lengths[] = {0, 1, 2, 63, 64, 65, 4096, 7000};
    static char plain[BYTES];
    enum { OFFSETS = sizeof offsets / sizeof *offsets, LENGTHS = sizeof lengths / sizeof *lengths };
    char *theirs[2];
    void *buffer;
    message m;
    int copies = 0, wrong = 0;
    pid_t pids[2];
    begin();
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_alloc(&buffer, BYTES));
    char *own = buffer;
    for (int i = 0; i < 2; i++) {
        pids[i] = spawn(2 + i, child);
        SHOW(mnx_receive(2 + i, &m));
        theirs[i] = m.m1_p1;
    }
    for (int i = 0; i < OFFSETS * OFFSETS * LENGTHS; i++) {
        int from = offsets[i % OFFSETS], to = offsets[i / OFFSETS % OFFSETS], bytes = lengths[i / OFFSETS / OFFSETS];
        memset(own, GUARD, BYTES);
        copies += mnx_vcopy(2, theirs[0] + from, SELF, own + to, bytes) == bytes;
        for (int at = 0; at < BYTES; at++)
            wrong += own[at] != (at >= to && at < to + bytes ? mark(at - to + from) : GUARD);
    }
    printf("%d copies, %d wrong\n", copies, wrong);

    /* Back by the other one: from the caller, to the third, and from there into other memory. */
    memset(own, GUARD, BYTES);
    SHOW(mnx_vcopy(SELF, own, 2, theirs[0], 5000));
    SHOW(mnx_vcopy(2, theirs[0] + 1, 3, theirs[1], BYTES - 1));
    SHOW(mnx_vcopy(3, theirs[1], SELF, plain, BYTES));
    for (int at = 0; at < BYTES - 1; at++)
        wrong += plain[at] != (at + 1 < 5000 ? GUARD : mark(at + 1));
    printf("%d wrong\n", wrong);

    /* Beyond an end there is nothing. */
    SHOW(mnx_vcopy(2, theirs[0] + 1, SELF, own, BYTES));
    SHOW(mnx_vcopy(2, theirs[0] - 1, SELF, own, 1));
    SHOW(mnx_vcopy(2, theirs[0] + BYTES, SELF, own, 1));
    SHOW(mnx_vcopy(SELF, own, 2, theirs[0] + BYTES - 1, 2));
    SHOW(mnx_vcopy(SELF, own + BYTES - 1, 2, theirs[0], 2));
    SHOW(mnx_vcopy(2, theirs[0], SELF, own - 1, 2));
    SHOW(mnx_vcopy(2, theirs[0], 3, theirs[1] + 1, BYTES));
    SHOW(mnx_vcopy(2, theirs[0], SELF, own, MAXCOPYLEN + 1));
    SHOW(mnx_vcopy(2, theirs[0], SELF, own, -1));
    SHOW(mnx_vcopy(2, theirs[0], 2, theirs[0], 1));

    /* One that was freed is not there any more. */
    SHOW(mnx_vcopy(2, theirs[0], SELF, own, BYTES));
    SHOW(mnx_free(own));
    SHOW(mnx_vcopy(2, theirs[0], SELF, own, BYTES));
    SHOW(mnx_vcopy(2, theirs[0], SELF, plain, BYTES));

    /* One that runs is not copied from, nor one that has ended. */
    SHOW(mnx_alloc(&buffer, BYTES));
    SHOW(mnx_vcopy(2, theirs[0], SELF, buffer, BYTES));
    SHOW(mnx_send(2, &m));
    reap(pids[0]);
    mnx_wait4unbind(2);
    SHOW(mnx_vcopy(2, theirs[0], SELF, buffer, BYTES));
    SHOW(mnx_vcopy(3, theirs[1], SELF, buffer, BYTES));
    SHOW(mnx_send(3, &m));
    reap(pids[1]);
    return 0;
}
