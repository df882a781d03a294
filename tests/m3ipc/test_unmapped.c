/* Memory that is taken away and given back while it is copied: a copy is whole or fails, and both parties live on. */
#include "m3test.h"

enum { BYTES = 1 << 20, COPIES = 200 };

static char *block;
static volatile int is_done;

/* Maps the upper half anew. It is never unmapped: what the library maps meanwhile could be placed there. */
static void map_half(int protection)
{
    mmap(block + BYTES / 2, BYTES / 2, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    usleep(50);
}

static void *change(void *unused)
{
    while (!is_done) {
        map_half(PROT_NONE);
        map_half(PROT_READ | PROT_WRITE);
    }
    return unused;
}

static void child(void)
{
    pthread_t thread;
    message m = text_message(1, 0);
    m.m1_p1 = block;
    pthread_create(&thread, NULL, change, NULL);
    int got = mnx_sendrec(1, &m);
    is_done = 1;
    pthread_join(thread, NULL);
    printf("sendrec -> %s\n", result(got));
}

int main(void)
{
    int whole = 0, failed = 0, other = 0;
    message m;
    begin();
    block = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SHOW(mnx_bind(0, 1));
    pid_t pid = spawn(2, child);
    SHOW(mnx_receive(2, &m));
    for (int i = 0; i < COPIES; i++) {
        int got = i % 2 ? mnx_vcopy(2, m.m1_p1, SELF, own, BYTES) : mnx_vcopy(SELF, own, 2, m.m1_p1, BYTES);
        whole += got == BYTES;
        failed += got == EMOLADDRNOTAVAIL;
        other += got != BYTES && got != EMOLADDRNOTAVAIL;
    }
    printf("%d copies, %d with another result\n", whole + failed + other, other);
    SHOW(mnx_vcopy(2, m.m1_p1, SELF, own, BYTES / 2));
    SHOW(mnx_reply(2, &m));
    reap(pid);
    return 0;
}
