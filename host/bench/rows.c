/* What the calls of M3-IPC cost: one binary for every back end, one line a row, `NAME VALUE`, for scripts.
 *
 * usage: rows [ROUNDS [ns]]. Values are counts of the processor's time stamp counter for one operation: in the emulator
 * with `-icount shift=0` a count is an instruction. With `ns` they are nanoseconds of CLOCK_MONOTONIC. It starts node and container itself.
 *
 *   ipc1, ipc2, ipc3     a round trip: send and receive; sendrec; notify and receive (the paper's three)
 *   notify               one way: half of ipc3
 *   copy1_B, copy2_B     vcopy of B bytes: by one of the two, by a third
 *   pairs_N              a round trip of ipc2 while N pairs have one each in progress
 *   death_CALL           from a kill to the return of a call that waits for the killed process
 */
#define _GNU_SOURCE
#include <m3ipc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { SELF_NR = 1, SERVER = 2, CLIENT = 3, WARM_UP = 16, PAIRS = 8, DEATHS = 15, MOST = 4 << 20 };

static long rounds = 1000;
static int in_ns;

/* What parent and children share: each child writes its own field. */
static struct {
    long ticks[2 * PAIRS];
    atomic_int ready;
    char *buffer[2];
} *shared;

static long now(void)
{
    if (!in_ns)
        return __rdtsc();
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

__attribute__((cold, noreturn)) static void fail(int result, const char *what)
{
    fprintf(stderr, "%s: %d\n", what, result);
    exit(1);
}

static inline void check(int result, const char *what)
{
    if (result < 0)
        fail(result, what);
}

static pid_t start(int p_nr, void (*body)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        check(mnx_wait4bind(), "wait4bind");
        body();
        exit(0);
    }
    check(mnx_lclbind(0, pid, p_nr), "lclbind");
    return pid;
}

static void end(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        exit(1);
}

static int ascending(const void *one, const void *other)
{
    return (*(long *)one > *(long *)other) - (*(long *)one < *(long *)other);
}

/* Round trips as the client, or as the server, with `peer`. Servers receive from anybody. A negative result is looked at in the end. */
typedef void half(int peer, message *m, long count);

static void send_and_receive(int peer, message *m, long count)
{
    int result = 0;
    while (count--)
        result |= mnx_send(peer, m) | mnx_receive(peer, m);
    check(result, "send and receive");
}

static void receive_and_send(int peer, message *m, long count)
{
    int result = 0;
#pragma GCC unroll 8
    while (count--)
        result |= mnx_receive(ANY, m) | mnx_send(peer, m);
    check(result, "receive and send");
}

static void send_receive(int peer, message *m, long count)
{
    int result = 0;
#pragma GCC unroll 8
    while (count--)
        result |= mnx_sendrec(peer, m);
    check(result, "sendrec");
}

static void notify_and_receive(int peer, message *m, long count)
{
    int result = 0;
    while (count--)
        result |= mnx_notify(peer) | mnx_receive(ANY, m);
    check(result, "notify and receive");
}

static void receive_and_notify(int peer, message *m, long count)
{
    int result = 0;
    while (count--)
        result |= mnx_receive(ANY, m) | mnx_notify(peer);
    check(result, "receive and notify");
}

static half *client_half, *server_half;
static int pair;

static message *page_of_a_message(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
}

static void serve(void)
{
    message *m = page_of_a_message();
    check(mnx_wait4bindep(CLIENT + 2 * pair), "wait4bindep");
    server_half(CLIENT + 2 * pair, m, WARM_UP + rounds);
    // A notification that is pending is forgotten with its sender. The client may have ended before.
    mnx_wait4unbind(CLIENT + 2 * pair);
}

static void ask(void)
{
    message *m = page_of_a_message();
    check(mnx_wait4bindep(SERVER + 2 * pair), "wait4bindep");
    client_half(SERVER + 2 * pair, m, WARM_UP);
    long begin = now();
    client_half(SERVER + 2 * pair, m, rounds);
    shared->ticks[pair] = now() - begin;
}

static void run_pairs(int count)
{
    pid_t pids[2 * PAIRS];
    for (pair = 0; pair < count; pair++) {
        pids[2 * pair] = start(SERVER + 2 * pair, serve);
        pids[2 * pair + 1] = start(CLIENT + 2 * pair, ask);
    }
    for (int i = 0; i < 2 * count; i++)
        end(pids[i]);
    pair = 0;
}

static double round_trip(half *client, half *server, int count)
{
    client_half = client;
    server_half = server;
    run_pairs(count);
    long total = 0;
    for (int i = 0; i < count; i++)
        total += shared->ticks[i];
    return (double)total / count / rounds;
}

static void row(const char *name, double value)
{
    printf("%-16s %12.0f\n", name, value);
}

/* Copies. The partner waits in a sendrec meanwhile; who asks takes the request, and answers when it is done. */

static char *block(void)
{
    char *block = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    memset(block, 1, MOST);
    return block;
}

static void partner(void)
{
    message m = {.m_type = 1};
    m.m1_p1 = block();
    check(mnx_sendrec(SELF_NR, &m), "sendrec");
}

static double copies(int from, void *source, int to, void *target, int bytes)
{
    long count = bytes >= 65536 ? 8 : 200;
    check(mnx_vcopy(from, source, to, target, bytes), "vcopy");
    long begin = now();
    for (long i = 0; i < count; i++)
        check(mnx_vcopy(from, source, to, target, bytes), "vcopy");
    return (double)(now() - begin) / count;
}

static void copy_rows(void)
{
    static const int sizes[] = {36, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 1 << 20, MOST};
    char *own = block(), *theirs[2], name[32];
    pid_t pids[2] = {start(SERVER, partner), start(CLIENT, partner)};
    message m;
    for (int i = 0; i < 2; i++) {
        check(mnx_receive(SERVER + i, &m), "receive");
        theirs[i] = m.m1_p1;
    }
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(name, sizeof name, "copy1_%d", sizes[i]);
        row(name, copies(SELF, own, SERVER, theirs[0], sizes[i]));
        snprintf(name, sizeof name, "copy2_%d", sizes[i]);
        row(name, copies(SERVER, theirs[0], CLIENT, theirs[1], sizes[i]));
    }
    for (int i = 0; i < 2; i++) {
        check(mnx_reply(SERVER + i, &m), "reply");
        end(pids[i]);
    }
    munmap(own, MOST);
}

/* Deaths. */

static int (*fatal_call)(int peer, message *m);

static void wait_for_death(void)
{
    message m = {.m_type = 1};
    atomic_fetch_add(&shared->ready, 1);
    int result = fatal_call(SERVER, &m);
    shared->ticks[0] = now();
    if (result != EMOLDEADSRCDST && result != EMOLSRCDIED && result != EMOLDSTDIED)
        check(-1, "a death was not told");
}

static void sleep_for_ever(void)
{
    atomic_fetch_add(&shared->ready, 1);
    for (;;)
        pause();
}

static void until_waiting(int p_nr, unsigned flags)
{
    proc_usr_t proc;
    while (mnx_getprocinfo(0, p_nr, &proc) == 0 && !(proc.p_rts_flags & flags))
        usleep(500);
}

static void death_row(const char *name, int (*call)(int, message *))
{
    long ticks[DEATHS];
    fatal_call = call;
    for (int i = 0; i < DEATHS; i++) {
        atomic_store(&shared->ready, 0);
        pid_t server = start(SERVER, sleep_for_ever), client = start(CLIENT, wait_for_death);
        while (atomic_load(&shared->ready) < 2)
            usleep(500);
        until_waiting(CLIENT, RTS_SENDING | RTS_RECEIVING);
        long begin = now();
        kill(server, SIGKILL);
        end(client);
        waitpid(server, NULL, 0);
        ticks[i] = shared->ticks[0] - begin;
    }
    qsort(ticks, DEATHS, sizeof *ticks, ascending);
    row(name, ticks[DEATHS / 2]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = atol(argv[1]);
    in_ns = argc > 2 && !strcmp(argv[2], "ns");
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    VM_usr_t vm = {.vm_vmid = 0, .vm_name = "rows"};
    mnx_drvs_init(0, NULL);
    check(mnx_vm_init(&vm), "vm_init");
    check(mnx_bind(0, SELF_NR), "bind");

    row("ipc1", round_trip(send_and_receive, receive_and_send, 1));
    row("ipc2", round_trip(send_receive, receive_and_send, 1));
    double ipc3 = round_trip(notify_and_receive, receive_and_notify, 1);
    row("ipc3", ipc3);
    row("notify", ipc3 / 2);
    for (int count = 2; count <= PAIRS; count *= 2) {
        char name[32];
        snprintf(name, sizeof name, "pairs_%d", count);
        row(name, round_trip(send_receive, receive_and_send, count));
    }
    copy_rows();
    death_row("death_send", mnx_send);
    death_row("death_receive", mnx_receive);
    death_row("death_sendrec", mnx_sendrec);
    mnx_vm_end(0);
    return 0;
}
