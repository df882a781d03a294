/* What messages between two members of a container cost that do not use M3-IPC's library, but the primitives of lib/c: in registers, and in memory by
 * vector 33. `./skink bench m3ipc_ticks` runs it; a line a row, as host/bench/rows.c prints them: a name, and ticks of a round trip.
 *
 *   registers_replyrec   sendrec; the server answers and receives the next request by one replyrec
 *   registers            sendrec; the server receives, and sends the answer
 *   memory               the same by vector 33
 *
 * Each of the two looks at every result, and the server at who has asked. Neighbour: native_messages.c, which tests the two forms. */
#define _GNU_SOURCE
#include <skink.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

enum { DRVS_INIT = 1, VM_INIT = 4, VM_END = 5, BIND = 8, LOCAL_BIND = 10, WAIT_FOR_BIND = 14 };
enum { CONTAINER = 0, SERVER = 1, CLIENT = 2, WARM_UP = 16, ROUNDS = 1000 };

/* VM_usr_t of m3ipc.h. */
struct container {
    int number, flags, limits[8];
    char name[16];
    char more[80];
};

static long *ticks;

static long m3ipc(long call, long a, long b, long c)
{
    return syscall(SKINK_M3IPC_SYSTEM_CALL, call, a, b, c);
}

static endpoint_t thread_of(int member)
{
    return (endpoint_t)syscall(SKINK_M3IPC_SYSTEM_CALL, SKINK_M3IPC_OWN_RESOLVE, member);
}

/* Messages go by the primitives from now on, not by m3ipc. */
static void use_primitives(void)
{
    syscall(SKINK_M3IPC_SYSTEM_CALL, SKINK_M3IPC_OWN_MODE, 0);
}

static void check(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static void ask(int (*sendrec_by)(endpoint_t, message *), int rounds)
{
    endpoint_t server = thread_of(SERVER);
    message m = {.label = 7};
    int wrong = 0;
    for (int i = 0; i < rounds; i++) {
        m.words[0] = i;
        wrong |= sendrec_by(server, &m) != OK || m.words[0] != (unsigned)i + 1;
    }
    check(!wrong, "sendrec failed");
}

static void by_receive_and_send(int (*receive_by)(endpoint_t, message *), int (*send_by)(endpoint_t, const message *))
{
    endpoint_t client = thread_of(CLIENT);
    int wrong = 0;
    for (int i = 0; i < WARM_UP + ROUNDS; i++) {
        message m;
        wrong |= receive_by(ANY, &m) != OK || m.source != client;
        m.words[0]++;
        wrong |= send_by(m.source, &m) != OK;
    }
    check(!wrong, "receive or send failed");
}

static void answer_by_replyrec(void)
{
    endpoint_t client = thread_of(CLIENT);
    message m;
    int wrong = receive(ANY, &m) != OK;
    for (int i = 1; i < WARM_UP + ROUNDS; i++) {
        m.words[0]++;
        wrong |= replyrec(m.source, &m, ANY) != OK || m.source != client;
    }
    m.words[0]++;
    check(!wrong && send(m.source, &m) == OK, "replyrec failed");
}

static void answer(void)
{
    by_receive_and_send(receive, send);
}

static void answer33(void)
{
    by_receive_and_send(receive33, send33);
}

static void row(const char *name, int (*sendrec_by)(endpoint_t, message *), void (*serve)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        m3ipc(WAIT_FOR_BIND, -1, 0, 0);
        use_primitives();
        ask(sendrec_by, WARM_UP);
        long begin = __rdtsc();
        ask(sendrec_by, ROUNDS);
        *ticks = __rdtsc() - begin;
        exit(0);
    }
    check(m3ipc(LOCAL_BIND, CONTAINER, pid, CLIENT) == CLIENT, "no client");
    serve();
    waitpid(pid, &status, 0);
    check(status == 0, "the client failed");
    printf("%-20s %8ld\n", name, *ticks / ROUNDS);
    fflush(stdout);
}

int main(void)
{
    struct container container = {.number = CONTAINER, .name = "registers"};
    ticks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    m3ipc(DRVS_INIT, 0, 0, 0);
    check(m3ipc(VM_INIT, (long)&container, 0, 0) == 0 && m3ipc(BIND, CONTAINER, SERVER, 0) == SERVER, "no container");
    use_primitives();
    row("registers_replyrec", sendrec, answer_by_replyrec);
    row("registers", sendrec, answer);
    row("memory", sendrec33, answer33);
    m3ipc(VM_END, CONTAINER, 0, 0);
    return 0;
}
