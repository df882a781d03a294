/* neighbours: what a container keeps of its throughput while the processes of another one do M3-IPC as much as they can: of ordinary work, and of M3-IPC of its own.
 *
 * For Skink, as root (`./skink bench m3ipc_neighbours`). The rows are percent of what the same work did alone in the same time, not ticks. The
 * hogs may have 10 % of the processor, and a container of M3-IPC for themselves. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <m3ipc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

enum { WINDOW = 200000000, SETTLE_US = 200000, COMPUTED = 20000, HOGS = 4, BLOCK = 1 << 20, HOG_VM = 0, OWN_VM = 1, FIRST = 40 };

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static pid_t container(const char *const *words)
{
    pid_t child = fork();
    if (child == 0) {
        execv("/bin/container", (char *const *)words);
        _exit(126);
    }
    return child;
}

static int run(const char *const *words)
{
    int status;
    pid_t child = container(words);
    check(waitpid(child, &status, 0) == child, "wait");
    return status;
}

static void copy(const char *from, const char *to)
{
    static char bytes[65536];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    check(in >= 0 && out >= 0, to);
    for (ssize_t got; (got = read(in, bytes, sizeof bytes)) > 0;)
        check(write(out, bytes, got) == got, "write");
    close(in), close(out);
}

static unsigned work(void)
{
    unsigned rounds = 0;
    for (unsigned long start = __rdtsc(); __rdtsc() - start < WINDOW; rounds++) {
        for (volatile int i = 0; i < COMPUTED; i++)
            ;
        char bytes[512];
        int file = open("/bin/neighbours", O_RDONLY);
        check(file >= 0 && read(file, bytes, sizeof bytes) == sizeof bytes && close(file) == 0, "read");
        pid_t child = fork();
        check(child >= 0, "fork");
        if (child == 0)
            _exit(0);
        check(waitpid(child, NULL, 0) == child, "wait");
    }
    return rounds;
}

static unsigned talk(void)
{
    message m = {.m_type = 1};
    pid_t server = fork();
    if (server == 0) {
        check(mnx_bind(OWN_VM, 2) == 2, "bind 2");
        while (mnx_receive(ANY, &m) == 0)
            mnx_send(m.m_source, &m);
        _exit(0);
    }
    check(mnx_bind(OWN_VM, 3) == 3, "bind 3");
    check(mnx_wait4bindep(2) == 2, "wait4bindep");
    unsigned rounds = 0;
    for (unsigned long start = __rdtsc(); __rdtsc() - start < WINDOW; rounds++)
        check(mnx_sendrec(2, &m) == 0, "sendrec");
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return rounds;
}

static void hog(const char *kind)
{
    int number = FIRST, i = 1;
    for (; i < HOGS && fork() != 0; i++)
        ;
    number += 2 * i;
    message m = {.m_type = 1};
    char *block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (!strcmp(kind, "binds"))
        for (;;)
            mnx_unbind(HOG_VM, mnx_bind(HOG_VM, number));
    if (fork() == 0) {
        mnx_bind(HOG_VM, number + 1);
        m.m1_p1 = block;
        if (!strcmp(kind, "messages"))
            for (;;)
                if (mnx_receive(ANY, &m) == 0)
                    mnx_send(m.m_source, &m);
        if (!strcmp(kind, "copies")) {
            mnx_wait4bindep(number);
            mnx_sendrec(number, &m);
        }
        for (;;)
            pause();
    }
    mnx_bind(HOG_VM, number);
    mnx_wait4bindep(number + 1);
    if (!strcmp(kind, "copies"))
        mnx_receive(number + 1, &m);
    void *theirs = m.m1_p1;
    for (;;)
        if (!strcmp(kind, "messages"))
            mnx_sendrec(number + 1, &m);
        else if (!strcmp(kind, "notifications"))
            mnx_notify(number + 1);
        else if (!strcmp(kind, "calls"))
            mnx_getep(getpid());
        else
            mnx_vcopy(number + 1, theirs, SELF, block, BLOCK);
}

static unsigned neighbour(const char *what)
{
    const char *const words[] = {"container", "run", "neighbour", "--root", "/c", "--memory", "32M", "--processes", "20", "--",
                                 "/bin/neighbours", what, NULL};
    check(run(words) == 0, "container run neighbour");
    unsigned rounds = 0;
    int file = open("/c/tmp/rounds", O_RDONLY);
    check(file >= 0 && read(file, &rounds, sizeof rounds) == sizeof rounds, "rounds");
    close(file);
    return rounds;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        hog(argv[2]);
    if (argc > 1) {
        unsigned rounds = strcmp(argv[1], "work") ? talk() : work();
        int file = open("/tmp/rounds", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        check(file >= 0 && write(file, &rounds, sizeof rounds) == sizeof rounds, "rounds");
        return 0;
    }
    const char *const folders[] = {"/c", "/c/bin", "/c/proc", "/c/dev", "/c/tmp"};
    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++)
        check(mkdir(folders[i], 0755) == 0, folders[i]);
    copy("/proc/self/exe", "/c/bin/neighbours");
    mnx_drvs_init(0, NULL);
    for (int vm = HOG_VM; vm <= OWN_VM; vm++) {
        VM_usr_t usr = {.vm_vmid = vm, .vm_name = "neighbours", .vm_flags = VM_OPEN};
        check(mnx_vm_init(&usr) == 0, "vm_init");
    }
    const char *const kinds[] = {"messages", "notifications", "binds", "calls", "copies"};
    const char *const works[] = {"work", "talk"};
    unsigned alone[2];
    for (int w = 0; w < 2; w++)
        alone[w] = neighbour(works[w]);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *const words[] = {"container", "run", "hog", "--root", "/c", "--memory", "32M", "--processes", "50", "--descriptors", "200",
                                     "--processor", "10", "--", "/bin/neighbours", "hog", kinds[i], NULL};
        const char *const end[] = {"container", "kill", "hog", NULL};
        pid_t hogs = container(words);
        usleep(SETTLE_US);
        for (int w = 0; w < 2; w++) {
            unsigned rounds = neighbour(works[w]);
            printf("%s_keeps_beside_%s %u\n", works[w], kinds[i], rounds * 100 / alone[w]);
        }
        check(run(end) == 0, "container kill");
        check(waitpid(hogs, NULL, 0) == hogs, "wait");
    }
    return 0;
}
