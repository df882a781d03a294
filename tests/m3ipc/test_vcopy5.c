/* 4 MiB at alignments that differ. */
#include "m3test.h"

static char *buffer;
enum { BYTES = MAXCOPYLEN };

static void child(void)
{
    message m = text_message(1, 0);
    m.m1_p1 = buffer;
    mnx_sendrec(1, &m);
}

int main(void)
{
    static const int offsets[][2] = {{0, 0}, {0, 1}, {1, 0}, {7, 7}, {4095, 1}, {64, 4032}};
    message m;
    begin();
    buffer = mmap(NULL, BYTES + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < BYTES + 8192; i++)
        buffer[i] = (char)(i * 31 >> 3);
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW(mnx_receive(2, &m));
    char *own = mmap(NULL, BYTES + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 6; i++) {
        int got = mnx_vcopy(2, m.m1_p1 + offsets[i][0], SELF, own + offsets[i][1], BYTES);
        int good = memcmp(own + offsets[i][1], buffer + offsets[i][0], BYTES) == 0;
        printf("%d to %d -> %d, %s\n", offsets[i][0], offsets[i][1], got, good ? "right" : "wrong");
    }
    SHOW(mnx_reply(2, &m));
    reap(pid);
    return 0;
}
