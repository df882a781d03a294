/* Two members of a container of M3-IPC that exchange messages without its library: by the primitives of lib/c in their two forms, registers
 * and vector 33, and mixed. Then what ends a native receive and what does not: signals with a handler, without one, SIGSTOP, a death.
 *
 * m3ipc.h is not included: it has MINIX's names too, for other endpoints. */
#define _GNU_SOURCE
#include <signal.h>
#include <skink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DRVS_INIT = 1, VM_INIT = 4, VM_END = 5, BIND = 8, LOCAL_BIND = 10, WAIT_FOR_BIND = 14 };
enum { CONTAINER = 0, PARENT = 1, CHILD = 2, LABEL = 7 };

/* VM_usr_t of m3ipc.h. */
struct container {
    int number, flags, limits[8];
    char name[16];
    char more[80];
};

static long m3ipc(long call, long a, long b, long c)
{
    return syscall(SKINK_M3IPC_SYSTEM_CALL, call, a, b, c);
}

/* The kernel's endpoint of a member. */
static endpoint_t thread_of(int member)
{
    return (endpoint_t)syscall(SKINK_M3IPC_SYSTEM_CALL, SKINK_M3IPC_OWN_RESOLVE, member);
}

static const char *name_of(long result)
{
    switch (-result) {
    case OK:
        return "OK";
    case ECALLDENIED:
        return "ECALLDENIED";
    case EDEADSRCDST:
        return "EDEADSRCDST";
    default:
        return strerrorname_np(-result);
    }
}

static void show(const char *what, long result)
{
    printf("%s -> %s\n", what, name_of(result));
}

/* Forks a member that runs `body`, and binds it. */
static pid_t member(void (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        m3ipc(WAIT_FOR_BIND, -1, 0, 0);
        syscall(SKINK_M3IPC_SYSTEM_CALL, SKINK_M3IPC_OWN_MODE, 0);
        body();
        exit(0);
    }
    m3ipc(LOCAL_BIND, CONTAINER, pid, CHILD);
    return pid;
}

static void reap(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        printf("child ended by signal %d\n", WTERMSIG(status));
}

/* Waits until a process sleeps: until its state in /proc is this one. */
static void until_state(pid_t pid, char state)
{
    char path[32], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (;;) {
        FILE *file = fopen(path, "r");
        if (file && fgets(line, sizeof line, file) && strrchr(line, ')')[2] == state) {
            fclose(file);
            return;
        }
        if (file)
            fclose(file);
        usleep(1000);
    }
}

/* Each form of a request, one after the other; the answer is to be the request's words, plus one. */
static void ask(void)
{
    endpoint_t parent = thread_of(PARENT);
    for (int i = 0; i < 4; i++) {
        message m = {.label = LABEL + i, .words = {10 * i, 1, 2, 3, 4, 5, 6}};
        int result = i % 2 ? sendrec33(parent, &m) : sendrec(parent, &m);
        printf("request %d -> %d: label %d, words %d to %d\n", i, result, (int)m.label, (int)m.words[0], (int)m.words[6]);
    }
}

static void answer(void)
{
    for (int i = 0; i < 4; i++) {
        message m;
        int got = i / 2 ? receive33(ANY, &m) : receive(ANY, &m);
        if (got != OK || m.label != (unsigned)(LABEL + i) || m.source != thread_of(CHILD))
            printf("request %d came wrong: %d\n", i, got);
        for (int word = 0; word < 7; word++)
            m.words[word]++;
        m.label = 100 + i;
        if ((i % 2 ? send(m.source, &m) : send33(m.source, &m)) != OK)
            printf("answer %d failed\n", i);
    }
}

/* Signals that a child has handled; both see it. */
static volatile int *handled;

static void on_signal(int number)
{
    printf("signal %d\n", number);
    ++*handled;
}

/* Sends a signal to a process that sleeps, and waits until it sleeps again. */
static void interrupt(pid_t pid)
{
    int before = *handled;
    until_state(pid, 'S');
    kill(pid, SIGUSR1);
    while (*handled == before)
        usleep(1000);
    until_state(pid, 'S');
}

static void receive_twice(void)
{
    message m = {0};
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGUSR2, SIG_IGN);
    show("receive", receive(ANY, &m));
    show("receive33", receive33(ANY, &m));
    show("receive", receive(ANY, &m));
    printf("word %d\n", (int)m.words[0]);
}

static void receive_for_ever(void)
{
    message m;
    receive(ANY, &m);
}

static void ask_for_ever(void)
{
    message m = {.label = LABEL};
    sendrec(thread_of(PARENT), &m);
}

/* A request of whoever is about to die; then nobody is there. */
static void ask_the_dead(void)
{
    message m;
    pid_t pid = member(ask_for_ever);
    show("receive", receive(ANY, &m));
    kill(pid, SIGKILL);
    reap(pid);
    show("answer to the dead", send(m.source, &m));
    show("request to the dead", sendrec(m.source, &m));
}

static void misuse(void)
{
    message m = {.label = LABEL};
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    show("send to pm", send(SKINK_ENDPOINT_PM, &m));
    show("send33 to vfs", send33(SKINK_ENDPOINT_VFS, &m));
    show("notify rs", notify(SKINK_ENDPOINT_RS));
    show("send to nobody", send(thread_of(CHILD + 40), &m));
    show("send33 from nowhere", send33(thread_of(PARENT), (message *)0x1000));
    show("send33 from the kernel", send33(thread_of(PARENT), (message *)0xffff800000000000));
    munmap(page, 4096);
    show("sendrec33 from unmapped memory", sendrec33(thread_of(PARENT), (message *)page));
    show("a kernel call", kernel_call(SKINK_SYS_SHUTDOWN, (const uint64_t[6]){0}, NULL));
}

int main(void)
{
    struct container container = {.number = CONTAINER, .name = "native"};
    message m = {.label = LABEL, .words = {42}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    handled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    m3ipc(DRVS_INIT, 0, 0, 0);
    if (m3ipc(VM_INIT, (long)&container, 0, 0) != 0 || m3ipc(BIND, CONTAINER, PARENT, 0) != PARENT) {
        puts("no container");
        return 1;
    }
    syscall(SKINK_M3IPC_SYSTEM_CALL, SKINK_M3IPC_OWN_MODE, 0);

    pid_t pid = member(ask);
    answer();
    reap(pid);

    pid = member(receive_twice);
    until_state(pid, 'S');
    kill(pid, SIGUSR2);
    interrupt(pid);
    interrupt(pid);
    kill(pid, SIGSTOP);
    until_state(pid, 'T');
    kill(pid, SIGCONT);
    int sent = send(thread_of(CHILD), &m);
    // Either of the two may go on first.
    reap(pid);
    show("send", sent);

    pid = member(receive_for_ever);
    until_state(pid, 'S');
    kill(pid, SIGTERM);
    reap(pid);

    ask_the_dead();
    reap(member(misuse));
    m3ipc(VM_END, CONTAINER, 0, 0);
    return 0;
}
