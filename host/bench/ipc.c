/* The paper's micro-benchmarks of local messages, beside what the kernel offers, and beside two processes that do nothing but pass on one word,
 * or 64 bytes, with the library's waiting. The file is long because each mechanism has its own way to be set up, used and taken down.
 *
 *   IPC1  client send and receive, server receive and send
 *   IPC2  client sendrec, server receive and send
 *   IPC3  client notify and receive, server receive and notify
 *   ANY   as IPC2, with a server that receives from anybody
 *   COPY1  vcopy by a server from a client that waits, between buffers of the library and from other memory
 *   COPY2  the same by a third process, between two that wait
 *
 * Beside the copies memcpy into shared memory, and out of it too, process_vm_readv, and blocks that one process writes into a pipe or a Unix stream and
 * another reads: by size of the block, as in the paper's Figure 2.
 *
 * usage: ipc [RUNS [ROUNDS [PLACEMENT]]]. Placement 4: copies. RUNS runs of each, one after the other in turn. Prints a line for each run: placement, mechanism,
 * thousand messages a second of all pairs together (GB/s for copies).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <m3ipc.h>
#include <mqueue.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64, MAX_PAIRS = 4, WARM_UP = 100, NO_PROCESSOR = -1 };

enum kind { BARE, LINE, ASLEEP, IPC1, IPC2, IPC3, IPC_ANY, PIPE, FIFO, UNIX, SEQPACKET, TCP, UDP, SYSV, POSIX, EVENTFD, KINDS };
static const char *const names[] = {"futex, same waiting", "64 bytes, same waiting", "futex, sleeping", "M3-IPC IPC1", "M3-IPC IPC2", "M3-IPC IPC3",
                                    "M3-IPC IPC2, ANY",    "pipe",                   "FIFO",            "Unix stream", "Unix seqpacket",
                                    "TCP loopback",        "UDP loopback",           "SysV queue",      "POSIX queue", "eventfd"};

/* Where the two of each pair run. */
static const struct placement {
    const char *name;
    int pairs, client[MAX_PAIRS], server[MAX_PAIRS];
} placements[] = {
    {"1 processor", 1, {0}, {0}},
    {"2 processors", 1, {1}, {0}},
    {"2 pairs, each on its own", 2, {0, 1}, {0, 1}},
    {"4 pairs, unpinned", 4, {-1, -1, -1, -1}, {-1, -1, -1, -1}},
};

static int rounds = 20000;

/* A cache line: the number of the round that its words are of. */
struct line {
    _Alignas(64) atomic_int round;
    atomic_long words[7];
};

static struct pair {
    _Alignas(128) atomic_int turn;
    /* What each side has written, by turns into two. */
    _Alignas(128) struct line lines[2][2];
    _Alignas(128) atomic_int sleeps[2];
    atomic_int cpu[2];
    double seconds;
    /* Descriptors of each side, or queues: for reading, for writing. */
    int fds[2][2];
} *pairs;
static atomic_int *ready;
static int round;
static long words[BYTES / sizeof(long)] = {1};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

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
    if (processor != NO_PROCESSOR && sched_setaffinity(0, sizeof set, &set) != 0)
        fail("sched_setaffinity");
}

static int is_turn(enum kind kind, struct pair *p, int own)
{
    return kind == LINE ? atomic_load(&p->lines[!own][round % 2].round) == round : atomic_load(&p->turn) == own;
}

static void sleep_until_turn(enum kind kind, struct pair *p, int own)
{
    while (!is_turn(kind, p, own)) {
        atomic_store(&p->sleeps[own], 1);
        if (!is_turn(kind, p, own))
            syscall(SYS_futex, &p->sleeps[own], FUTEX_WAIT, 1, NULL, NULL, 0);
        atomic_store(&p->sleeps[own], 0);
    }
}

/* Waits until it is `own`'s turn, as the library waits. */
static void await(enum kind kind, struct pair *p, int own)
{
    if (is_turn(kind, p, own))
        return;
    int cpu = sched_getcpu();
    if (atomic_load_explicit(&p->cpu[own], memory_order_relaxed) != cpu)
        atomic_store_explicit(&p->cpu[own], cpu, memory_order_relaxed);
    if (atomic_load_explicit(&p->cpu[!own], memory_order_relaxed) != cpu) {
        double end = 0, time;
        do {
            for (int i = 0; i < 16; i++) {
                __builtin_ia32_pause();
                if (is_turn(kind, p, own))
                    return;
            }
            time = now();
            end = end ? end : time + 15e-6;
        } while (time < end);
    } else
        for (int i = 0; i < 2; i++) {
            sched_yield();
            if (is_turn(kind, p, own))
                return;
        }
    sleep_until_turn(kind, p, own);
}

static void pass_on(enum kind kind, struct pair *p, int other)
{
    if (kind == LINE) {
        struct line *line = &p->lines[!other][round % 2];
        for (int i = 0; i < 7; i++)
            atomic_store_explicit(&line->words[i], words[i], memory_order_relaxed);
        atomic_store_explicit(&line->round, round, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
    } else
        atomic_store(&p->turn, other);
    if (atomic_load(&p->sleeps[other])) {
        atomic_store(&p->sleeps[other], 0);
        syscall(SYS_futex, &p->sleeps[other], FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

/* Passes the turn on and waits for its return, or the other way round. */
static void take_turns(enum kind kind, struct pair *p, int is_client)
{
    round++;
    if (is_client)
        pass_on(kind, p, 0);
    kind == ASLEEP ? sleep_until_turn(kind, p, is_client) : await(kind, p, is_client);
    for (int i = 0; kind == LINE && i < 7; i++)
        words[i] = atomic_load_explicit(&p->lines[!is_client][round % 2].words[i], memory_order_relaxed);
    if (!is_client)
        pass_on(kind, p, 1);
}

static int put(enum kind kind, int fd)
{
    if (kind == SYSV)
        return msgsnd(fd, words, BYTES - sizeof(long), 0);
    if (kind == POSIX)
        return mq_send(fd, (char *)words, BYTES, 0);
    return write(fd, words, kind == EVENTFD ? 8 : BYTES) < 0;
}

static int get(enum kind kind, int fd)
{
    if (kind == SYSV)
        return msgrcv(fd, words, BYTES - sizeof(long), 0, 0) < 0;
    if (kind == POSIX)
        return mq_receive(fd, (char *)words, BYTES, NULL) < 0;
    for (int left = kind == EVENTFD ? 8 : BYTES; left > 0;) {
        int got = read(fd, words, left);
        if (got <= 0)
            return 1;
        left -= got;
    }
    return 0;
}

static int round_trip(enum kind kind, struct pair *p, int is_client, int peer, message *m)
{
    int *fds = p->fds[is_client];
    switch (kind) {
    case BARE:
    case LINE:
    case ASLEEP:
        take_turns(kind, p, is_client);
        return 0;
    case IPC1:
        return is_client ? mnx_send(peer, m) || mnx_receive(peer, m) : mnx_receive(peer, m) || mnx_send(peer, m);
    case IPC2:
        return is_client ? mnx_sendrec(peer, m) : mnx_receive(peer, m) || mnx_send(peer, m);
    case IPC_ANY:
        return is_client ? mnx_sendrec(peer, m) : mnx_receive(ANY, m) || mnx_send(m->m_source, m);
    case IPC3:
        return is_client ? mnx_notify(peer) || mnx_receive(peer, m) : mnx_receive(peer, m) || mnx_notify(peer);
    default:
        return is_client ? put(kind, fds[1]) || get(kind, fds[0]) : get(kind, fds[0]) || put(kind, fds[1]);
    }
}

/* Connects two sockets of the Internet by the loopback. */
static void loopback(int type, int fds[2])
{
    struct sockaddr_in address[2] = {0};
    int one = 1, sockets[2];
    for (int i = 0; i < 2; i++) {
        socklen_t size = sizeof address[i];
        address[i].sin_family = AF_INET;
        address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        sockets[i] = socket(AF_INET, type, 0);
        if (sockets[i] < 0 || bind(sockets[i], (void *)&address[i], size) || getsockname(sockets[i], (void *)&address[i], &size))
            fail("socket");
    }
    if (type == SOCK_STREAM && listen(sockets[1], 1))
        fail("listen");
    if (connect(sockets[0], (void *)&address[1], sizeof address[1]))
        fail("connect");
    fds[0] = sockets[0];
    if (type == SOCK_STREAM) {
        fds[1] = accept(sockets[1], NULL, NULL);
        close(sockets[1]);
        setsockopt(fds[0], IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, sizeof one);
        setsockopt(fds[1], IPPROTO_TCP, 1, &one, sizeof one);
    } else {
        fds[1] = sockets[1];
        if (connect(sockets[1], (void *)&address[0], sizeof address[0]))
            fail("connect");
    }
}

static int open_queue(enum kind kind)
{
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = BYTES};
    if (kind == SYSV)
        return msgget(IPC_PRIVATE, 0600);
    mqd_t queue = mq_open("/m3ipc-bench", O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
    mq_unlink("/m3ipc-bench");
    return queue;
}

static int open_fifo(void)
{
    if (mkfifo("m3ipc-bench.fifo", 0600))
        fail("mkfifo");
    int fd = open("m3ipc-bench.fifo", O_RDWR);
    unlink("m3ipc-bench.fifo");
    return fd;
}

static void open_pair(enum kind kind, struct pair *p)
{
    int fds[2] = {-1, -1};
    for (int way = 0; way < 2; way++) {
        int *reads = &p->fds[way][0], *writes = &p->fds[!way][1];
        switch (kind) {
        case PIPE:
            if (pipe(fds))
                fail("pipe");
            *reads = fds[0], *writes = fds[1];
            break;
        case FIFO:
            *reads = *writes = open_fifo();
            break;
        case EVENTFD:
            *reads = *writes = eventfd(0, 0);
            break;
        case SYSV:
        case POSIX:
            *reads = *writes = open_queue(kind);
            break;
        case UNIX:
        case SEQPACKET:
            if (way == 0 && socketpair(AF_UNIX, kind == UNIX ? SOCK_STREAM : SOCK_SEQPACKET, 0, fds))
                fail("socketpair");
            p->fds[way][0] = p->fds[way][1] = fds[way];
            break;
        case TCP:
        case UDP:
            if (way == 0)
                loopback(kind == TCP ? SOCK_STREAM : SOCK_DGRAM, fds);
            p->fds[way][0] = p->fds[way][1] = fds[way];
            break;
        default:
            return;
        }
        if (p->fds[0][0] < 0)
            fail(names[kind]);
    }
}

static void close_pair(enum kind kind, struct pair *p)
{
    if (kind <= IPC_ANY && kind >= BARE)
        return;
    for (int side = 0; side < 2; side++)
        if (kind == SYSV)
            msgctl(p->fds[side][0], IPC_RMID, NULL);
        else {
            close(p->fds[side][0]);
            if (kind == PIPE)
                close(p->fds[side][1]);
        }
}

static int is_m3(enum kind kind)
{
    return kind >= IPC1 && kind <= IPC_ANY;
}

/* What needs the kernel for each message is slower by far. */
static int rounds_of(enum kind kind)
{
    return kind <= LINE || is_m3(kind) ? rounds : rounds / 10;
}

static void party(enum kind kind, const struct placement *where, int pair, int is_client)
{
    int peer = 2 + 2 * pair + !is_client;
    struct pair *p = &pairs[pair];
    message m;
    memset(&m, 0, sizeof m);
    pin(is_client ? where->client[pair] : where->server[pair]);
    if (is_m3(kind)) {
        mnx_wait4bind();
        mnx_wait4bindep(peer);
    }
    atomic_fetch_add(ready, 1);
    while (atomic_load(ready) < 2 * where->pairs)
        sched_yield();
    double start = 0;
    for (int i = -WARM_UP; i < rounds_of(kind); i++) {
        if (i == 0)
            start = now();
        if (round_trip(kind, p, is_client, peer, &m)) {
            fprintf(stderr, "%s: a call failed: %s\n", names[kind], strerror(errno));
            exit(1);
        }
    }
    if (is_client)
        p->seconds = now() - start;
    exit(0);
}

/* Runs one benchmark. Returns thousand messages a second. */
static double run(enum kind kind, const struct placement *where)
{
    pid_t pids[2 * MAX_PAIRS];
    double slowest = 0;
    atomic_store(ready, 0);
    for (int i = 0; i < 2 * where->pairs; i++) {
        int pair = i / 2, is_client = i % 2;
        if (!is_client) {
            memset(&pairs[pair], 0, sizeof pairs[pair]);
            atomic_store(&pairs[pair].turn, 1);
            open_pair(kind, &pairs[pair]);
        }
        fflush(stdout);
        pids[i] = fork();
        if (pids[i] == 0)
            party(kind, where, pair, is_client);
        if (is_m3(kind))
            mnx_lclbind(0, pids[i], 2 + 2 * pair + is_client);
    }
    for (int i = 0; i < 2 * where->pairs; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        if (status != 0)
            exit(1);
        if (is_m3(kind))
            mnx_wait4unbind(2 + i);
    }
    for (int i = 0; i < where->pairs; i++) {
        close_pair(kind, &pairs[i]);
        slowest = pairs[i].seconds > slowest ? pairs[i].seconds : slowest;
    }
    return 2.0 * rounds_of(kind) * where->pairs / slowest / 1000;
}

/* As the placement of the command line. */
enum { COPIES = 4 };
enum { LARGE = 1 << 20, COPIED = 64 << 20, MOST_COPIES = 100000, WARM_COPIES = 4 };

/* The paper's sizes, and one more. */
static const struct {
    int bytes;
    const char *name;
} sizes[] = {{36, "36 B"},       {512, "512 B"},      {1 << 10, "1 KiB"},  {2 << 10, "2 KiB"},  {4 << 10, "4 KiB"},
             {8 << 10, "8 KiB"}, {16 << 10, "16 KiB"}, {32 << 10, "32 KiB"}, {64 << 10, "64 KiB"}, {LARGE, "1 MiB"}};

/* What copies. The first is the ceiling: one copy into memory that others have mapped. */
enum way { MEMCPY, COPY1_BUFFERS, COPY1, COPY2_BUFFERS, COPY2, READV, BY_SHARED, BY_PIPE, BY_UNIX, WAYS };
static const char *const ways[] = {"memcpy into shared memory",    "COPY1, buffers", "COPY1, any memory", "COPY2, buffers", "COPY2, any memory",
                                   "process_vm_readv", "memcpy into and out of shared memory", "pipe", "Unix stream"};

static int is_of_buffers(enum way way)
{
    return way == COPY1_BUFFERS || way == COPY2_BUFFERS;
}

static char *block(enum way way)
{
    void *block = NULL;
    if (is_of_buffers(way) ? mnx_alloc(&block, LARGE) != 0 : !(block = malloc(LARGE)))
        fail("block");
    memset(block, 1, LARGE);
    return block;
}

/* Waits, with a block, until the other one has copied it. */
static void wait_with_block(enum way way)
{
    message m;
    mnx_wait4bind();
    m.m1_p1 = block(way);
    mnx_sendrec(1, &m);
    exit(0);
}

/* Who waits with a block: a member, bound to this slot. */
struct waiting {
    pid_t pid;
    int p_nr;
    char *block;
};

static struct waiting start_waiting(enum way way, int p_nr)
{
    message m;
    fflush(stdout);
    struct waiting it = {.pid = fork(), .p_nr = p_nr};
    if (it.pid == 0)
        wait_with_block(way);
    mnx_lclbind(0, it.pid, p_nr);
    mnx_receive(p_nr, &m);
    it.block = m.m1_p1;
    return it;
}

static void end_waiting(struct waiting *it)
{
    message m = {0};
    mnx_send(it->p_nr, &m);
    waitpid(it->pid, NULL, 0);
    mnx_wait4unbind(it->p_nr);
}

/* Copies from a process that waits: by the one that gets it, by a third one between two that wait, or by the kernel's call. Returns seconds. */
static double copy_from_waiting(enum way way, int bytes, int times)
{
    int is_second = way == COPY2 || way == COPY2_BUFFERS;
    struct waiting source = start_waiting(way, 2), target;
    char *own = block(way);
    if (is_second)
        target = start_waiting(way, 3);
    struct iovec here = {own, bytes}, there = {source.block, bytes};
    double start = 0;
    // The first copy between two buffers asks the broker for one of them, and maps it.
    for (int i = -WARM_COPIES; i < times; i++) {
        if (i == 0)
            start = now();
        long got = way == READV ? process_vm_readv(source.pid, &here, 1, &there, 1, 0)
                                : mnx_vcopy(2, source.block, is_second ? 3 : SELF, is_second ? target.block : own, bytes);
        if (got != bytes)
            fail(ways[way]);
    }
    double seconds = now() - start;
    end_waiting(&source);
    if (is_second)
        end_waiting(&target);
    if (is_of_buffers(way))
        mnx_free(own);
    else
        free(own);
    return seconds;
}

/* Copies into memory that all share, and out of it again. */
static double copy_by_shared(enum way way, int bytes, int times, char *shared)
{
    char *own = block(way), *other = block(way);
    double start = 0;
    for (int i = -WARM_COPIES; i < times; i++) {
        if (i == 0)
            start = now();
        memcpy(shared, own, bytes);
        if (way == BY_SHARED)
            memcpy(other, shared, bytes);
        // Or the compiler leaves out what nobody reads.
        __asm__ volatile("" : : "r"(shared), "r"(other) : "memory");
    }
    double seconds = now() - start;
    free(own);
    free(other);
    return seconds;
}

static void write_all(int fd, const char *block, int bytes)
{
    for (int done = 0, got; done < bytes; done += got)
        if ((got = write(fd, block + done, bytes - done)) <= 0)
            exit(1);
}

/* Reads blocks that another process writes. */
static double copy_by_stream(enum way way, int bytes, int times)
{
    int fds[2];
    char *own = block(way);
    if (way == BY_PIPE ? pipe(fds) : socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
        fail(ways[way]);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        for (int i = 0; i < times; i++)
            write_all(fds[1], own, bytes);
        exit(0);
    }
    close(fds[1]);
    double start = now();
    for (int i = 0; i < times; i++)
        for (int done = 0, got; done < bytes; done += got)
            if ((got = read(fds[0], own + done, bytes - done)) <= 0)
                fail(ways[way]);
    double seconds = now() - start;
    close(fds[0]);
    waitpid(pid, NULL, 0);
    free(own);
    return seconds;
}

/* Copies a block again and again. Returns GB/s. */
static double copy(enum way way, int bytes, char *shared)
{
    int times = COPIED / bytes < MOST_COPIES ? COPIED / bytes : MOST_COPIES;
    double seconds = way == MEMCPY || way == BY_SHARED  ? copy_by_shared(way, bytes, times, shared)
                     : way == BY_PIPE || way == BY_UNIX ? copy_by_stream(way, bytes, times)
                                                        : copy_from_waiting(way, bytes, times);
    return (double)bytes * times / seconds / 1e9;
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 11, only = argc > 3 ? atoi(argv[3]) : -1;
    if (argc > 2)
        rounds = atoi(argv[2]);
    VM_usr_t vm = {.vm_vmid = 0, .vm_name = "bench"};
    pairs = mmap(NULL, sizeof *pairs * MAX_PAIRS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mnx_drvs_init(0, NULL);
    if (mnx_vm_init(&vm) != 0 || mnx_bind(0, 1) != 1)
        return fputs("no container 0 of my own\n", stderr), 1;
    for (int i = 0; i < runs; i++) {
        for (int at = 0; at < 4 && only < COPIES; at++)
            for (int kind = 0; kind < KINDS; kind++)
                if (only < 0 || only == at)
                    printf("%s\t%s\t%.3f\n", placements[at].name, names[kind], run(kind, &placements[at]));
        if (only >= 0 && only != COPIES)
            continue;
        for (unsigned at = 0; at < sizeof sizes / sizeof *sizes; at++)
            for (enum way way = MEMCPY; way < WAYS; way++)
                printf("copies of %s\t%s\t%.3f\n", sizes[at].name, ways[way], copy(way, sizes[at].bytes, shared));
    }
    mnx_vm_end(0);
    return 0;
}
