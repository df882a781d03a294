/* The paper's micro-benchmarks of local messages, beside two processes that do nothing but wake each other by a futex with the same waiting.
 *
 *   IPC1  client send and receive, server receive and send
 *   IPC2  client sendrec, server receive and send
 *   IPC3  client notify and receive, server receive and notify
 *
 * usage: ipc [RUNS [ROUNDS]]. On one processor and on two, RUNS runs of each, interleaved; prints medians of thousand messages a second, and of
 * the ratios to the futex run just before.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <m3ipc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLIENT = 3, SERVER = 2, WARM_UP = 100 };

static int rounds = 100000, processors[2];

static struct {
    _Alignas(64) atomic_int turn;
    _Alignas(64) atomic_int sleeps[2];
    atomic_int cpu[2];
    double seconds;
} *shared;

static double now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void pin(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("sched_setaffinity");
}

/* Waits until it is `own`'s turn, as the library waits. */
static void await(int own)
{
    int cpu = sched_getcpu();
    atomic_store_explicit(&shared->cpu[own], cpu, memory_order_relaxed);
    if (atomic_load(&shared->turn) == own)
        return;
    if (atomic_load_explicit(&shared->cpu[!own], memory_order_relaxed) != cpu) {
        for (double end = now() + 15e-6; now() < end;)
            for (int i = 0; i < 16; i++) {
                __builtin_ia32_pause();
                if (atomic_load(&shared->turn) == own)
                    return;
            }
    } else
        for (int i = 0; i < 2; i++) {
            sched_yield();
            if (atomic_load(&shared->turn) == own)
                return;
        }
    while (atomic_load(&shared->turn) != own) {
        atomic_store(&shared->sleeps[own], 1);
        if (atomic_load(&shared->turn) != own)
            syscall(SYS_futex, &shared->sleeps[own], FUTEX_WAIT, 1, NULL, NULL, 0);
        atomic_store(&shared->sleeps[own], 0);
    }
}

static void pass_on(int other)
{
    atomic_store(&shared->turn, other);
    if (atomic_load(&shared->sleeps[other])) {
        atomic_store(&shared->sleeps[other], 0);
        syscall(SYS_futex, &shared->sleeps[other], FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static int round_trip(int kind, int is_client, message *m)
{
    int peer = is_client ? SERVER : CLIENT;
    switch (kind) {
    case 0:
        if (is_client) {
            pass_on(1);
            await(0);
        } else {
            await(1);
            pass_on(0);
        }
        return 0;
    case 1:
        return is_client ? mnx_send(peer, m) || mnx_receive(peer, m) : mnx_receive(peer, m) || mnx_send(peer, m);
    case 2:
        return is_client ? mnx_sendrec(peer, m) : mnx_receive(peer, m) || mnx_send(peer, m);
    default:
        return is_client ? mnx_notify(peer) || mnx_receive(peer, m) : mnx_receive(peer, m) || mnx_notify(peer);
    }
}

static void party(int kind, int is_client)
{
    message m;
    memset(&m, 0, sizeof m);
    pin(processors[is_client]);
    if (kind > 0) {
        mnx_wait4bind();
        mnx_wait4bindep(is_client ? SERVER : CLIENT);
    }
    double start = 0;
    for (int i = -WARM_UP; i < rounds; i++) {
        if (i == 0)
            start = now();
        if (round_trip(kind, is_client, &m)) {
            puts("a call failed");
            exit(1);
        }
    }
    if (is_client)
        shared->seconds = now() - start;
    exit(0);
}

/* Runs one benchmark. Returns thousand messages a second. */
static double run(int kind)
{
    pid_t pids[2];
    atomic_store(&shared->turn, 0);
    fflush(stdout);
    for (int is_client = 0; is_client < 2; is_client++) {
        pids[is_client] = fork();
        if (pids[is_client] == 0)
            party(kind, is_client);
        if (kind > 0)
            mnx_lclbind(0, pids[is_client], is_client ? CLIENT : SERVER);
    }
    for (int i = 0; i < 2; i++)
        waitpid(pids[i], NULL, 0);
    if (kind > 0) {
        mnx_wait4unbind(SERVER);
        mnx_wait4unbind(CLIENT);
    }
    return 2 * rounds / shared->seconds / 1000;
}

static int ascending(const void *one, const void *other)
{
    return (*(double *)one > *(double *)other) - (*(double *)one < *(double *)other);
}

static double median(double *values, int count)
{
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    static const char *names[] = {"futex", "IPC1", "IPC2", "IPC3"};
    int runs = argc > 1 ? atoi(argv[1]) : 11;
    if (argc > 2)
        rounds = atoi(argv[2]);
    VM_usr_t vm = {.vm_vmid = 0, .vm_name = "bench"};
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mnx_drvs_init(0, NULL);
    if (mnx_vm_init(&vm) != 0 || mnx_bind(0, 1) != 1)
        return puts("no container 0 of my own"), 1;
    for (int apart = 0; apart < 2; apart++) {
        double speed[4][99], ratio[4][99];
        processors[1] = apart;
        for (int i = 0; i < runs && i < 99; i++)
            for (int kind = 1; kind < 4; kind++) {
                speed[0][i] = run(0);
                speed[kind][i] = run(kind);
                ratio[kind][i] = speed[kind][i] / speed[0][i];
            }
        printf("%d processor%s\n  %-6s %8.0f thousand messages/s\n", apart + 1, apart ? "s" : "", names[0],
               median(speed[0], runs));
        for (int kind = 1; kind < 4; kind++)
            printf("  %-6s %8.0f   %.2f of futex\n", names[kind], median(speed[kind], runs), median(ratio[kind], runs));
    }
    mnx_vm_end(0);
    return 0;
}
