/* Buffers of the library where a broker makes them: how many a user gets, who may map them, and what becomes of them when processes and the broker's worker die.
 *
 * usage: buffers fill SLOT        allocates buffers of 4 MiB until one is refused
 *        buffers take SLOT        binds to SLOT, and copies from the buffer of each who asks, until one asks no more
 *        buffers show SLOT TO     has TO copy from its buffer
 *        buffers last SLOT TO     says that there is nobody else
 *        buffers exec SLOT TO     the same as show, and once more as a new program that has no buffer
 *        buffers steady SECONDS   copies from processes that come and are killed
 */
#define _GNU_SOURCE
#include <m3ipc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1 << 20, MIB_LEFT = 64, LAST = 9 };

static void fail(const char *what, int result)
{
    printf("%s -> %d\n", what, result);
    exit(1);
}

static void check(const char *what, int result)
{
    if (result < 0)
        fail(what, result);
}

static void fill(int slot)
{
    void *buffer;
    int count = 0, result;
    check("bind", mnx_bind(0, slot));
    while ((result = mnx_alloc(&buffer, MAXCOPYLEN)) == 0)
        count++;
    printf("%d buffers, then %d\n", count, result);
}

static char *filled(char with)
{
    void *buffer;
    check("alloc", mnx_alloc(&buffer, BYTES));
    return memset(buffer, with, BYTES);
}

static void take(int slot)
{
    message m;
    check("bind", mnx_bind(0, slot));
    char *own = filled(0);
    for (;;) {
        check("receive", mnx_receive(ANY, &m));
        if (m.m_type == LAST)
            break;
        own[0] = 0;
        m.m1_i1 = mnx_vcopy(m.m_source, m.m1_p1, SELF, own, BYTES);
        m.m1_i2 = own[0];
        check("send", mnx_send(m.m_source, &m));
    }
    check("send", mnx_send(m.m_source, &m));
}

static void ask_for_copy(int to, char *block, int type)
{
    message m = {.m_type = type};
    m.m1_p1 = block;
    check("sendrec", mnx_sendrec(to, &m));
    if (type != LAST)
        printf("vcopy -> %d, %d\n", m.m1_i1, m.m1_i2);
}

/* Whether the buffer's address means nothing now. */
static int is_free(char *block)
{
    unsigned char present;
    return mincore(block, 1, &present) != 0;
}

static void exec_itself(char **words, char *block)
{
    char address[32];
    snprintf(address, sizeof address, "%lu", (unsigned long)(uintptr_t)block);
    fflush(stdout);
    execl("/proc/self/exe", words[0], "again", words[2], words[3], address, NULL);
    fail("exec", -1);
}

static long shared_mib(void)
{
    char line[200];
    long kib = 0;
    FILE *info = fopen("/proc/meminfo", "r");
    while (info && fgets(line, sizeof line, info))
        sscanf(line, "Shmem: %ld", &kib);
    fclose(info);
    return kib >> 10;
}

/* Allocates and frees buffers, and shows one that is filled with a number. */
static void owner(int number)
{
    check("wait4bind", mnx_wait4bind());
    char *blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = filled(i == 1 ? number : 0);
    check("free", mnx_free(blocks[0]));
    ask_for_copy(1, blocks[1], 1);
    // What it has to say is for others to say.
    _exit(0);
}

static void steady(int seconds)
{
    time_t end = time(NULL) + seconds;
    long before = shared_mib(), most = before;
    int rounds = 0, wrong = 0;
    message m;
    check("bind", mnx_bind(0, 1));
    char *own = filled(0);
    for (; time(NULL) < end; rounds++) {
        int number = rounds % 100 + 1, is_killed = rounds % 3 != 0;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            owner(number);
        check("lclbind", mnx_lclbind(0, pid, 2 + rounds % 2));
        check("receive", mnx_receive(ANY, &m));
        for (int i = 0; i < 3; i++) {
            memset(own, 0, BYTES);
            check("vcopy", mnx_vcopy(m.m_source, m.m1_p1, SELF, own, BYTES));
            wrong += own[0] != number || memcmp(own, own + 1, BYTES - 1) != 0;
        }
        if (is_killed)
            kill(pid, SIGKILL);
        else
            m.m1_i1 = BYTES, m.m1_i2 = number, check("send", mnx_send(m.m_source, &m));
        waitpid(pid, NULL, 0);
        check("wait4unbind", mnx_wait4unbind(m.m_source));
        most = shared_mib() > most ? shared_mib() : most;
    }
    printf("%s rounds, %d wrong, %s\n", rounds > 50 ? "many" : "few", wrong, shared_mib() - before < MIB_LEFT ? "nothing left" : "memory left");
}

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    const char *what = words[1];
    int number = atoi(words[2]), to = count > 3 ? atoi(words[3]) : 0;
    if (!strcmp(what, "fill"))
        fill(number);
    else if (!strcmp(what, "take"))
        take(number);
    else if (!strcmp(what, "steady"))
        steady(number);
    else if (!strcmp(what, "again")) {
        char *block = (char *)(uintptr_t)strtoul(words[4], NULL, 10);
        if (!is_free(block))
            fail("the new program has something there", -1);
        ask_for_copy(to, block, 1);
    } else {
        check("bind", mnx_bind(0, number));
        if (!strcmp(what, "last"))
            return ask_for_copy(to, NULL, LAST), 0;
        char *block = filled('A');
        ask_for_copy(to, block, 1);
        if (!strcmp(what, "exec"))
            exec_itself(words, block);
    }
    return 0;
}
