/* neighbours: the rows of containers in `./skink bench containers`: what a new one costs from its making to its end, and what a neighbour keeps of its throughput while another one's processes take
 * all that they can. The rows of neighbours are percent, of what the same work did alone in the same time; not ticks. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../bench/ticks.h"

enum { ROUNDS = 20, WINDOW = 200000000, SETTLE_US = 200000, COMPUTED = 20000 };

static char self[4096];

/* Starts `container` with these words. */
static pid_t container(const char *const *words)
{
    pid_t child = fork();
    check(child >= 0, "fork");
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

static void bench_new(void)
{
    const char *const words[] = { "container", "run", "new", "--root", "/c", "--memory", "8M", "--processes", "5", "--",
                                  "/bin/neighbours", "nothing", NULL };
    check(run(words) == 0, "container run");
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        run(words);
    report("container_new", start, ticks(), ROUNDS);
}

/* Computes, asks, reads a file and makes a process, until time is over. Returns how often. */
static unsigned work(void)
{
    unsigned rounds = 0;
    for (uint64_t start = ticks(); ticks() - start < WINDOW; rounds++) {
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

/* The work in a container of its own. */
static unsigned neighbour(void)
{
    const char *const words[] = { "container", "run", "neighbour", "--root", "/c", "--memory", "32M", "--processes", "20", "--",
                                  "/bin/neighbours", "work", NULL };
    check(run(words) == 0, "container run neighbour");
    unsigned rounds = 0;
    int file = open("/c/tmp/rounds", O_RDONLY);
    check(file >= 0 && read(file, &rounds, sizeof rounds) == sizeof rounds, "rounds");
    close(file);
    return rounds;
}

/* A hog with a tenth of the processor, or with what it can get. */
static void bench_beside(const char *kind, int is_limited, unsigned alone)
{
    const char *const limited[] = { "container", "run", "hog", "--root", "/c", "--memory", "32M", "--processes", "50", "--descriptors", "200",
                                    "--processor", "10", "--", "/bin/contained", "hog", kind, NULL };
    const char *const without[] = { "container", "run", "hog", "--root", "/c", "--memory", "32M", "--processes", "50", "--descriptors", "200",
                                 "--", "/bin/contained", "hog", kind, NULL };
    const char *const end[] = { "container", "kill", "hog", NULL };
    pid_t hog = container(is_limited ? limited : without);
    usleep(SETTLE_US);
    unsigned beside = neighbour();
    check(run(end) == 0, "container kill");
    check(waitpid(hog, NULL, 0) == hog, "wait");
    printf("neighbour_keeps_beside_%s%s %u\n", is_limited ? "" : "free_", kind, beside * 100 / alone);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "nothing") == 0)
        return 0;
    if (argc > 1 && strcmp(argv[1], "work") == 0) {
        unsigned rounds = work();
        int file = open("/tmp/rounds", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        check(file >= 0 && write(file, &rounds, sizeof rounds) == sizeof rounds, "rounds");
        return 0;
    }
    check(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "/proc/self/exe");
    const char *const folders[] = { "/c", "/c/bin", "/c/proc", "/c/dev", "/c/tmp" };
    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++)
        check(mkdir(folders[i], 0755) == 0, folders[i]);
    copy(self, "/c/bin/neighbours");
    bench_new();
    copy("/bin/contained", "/c/bin/contained");
    unsigned alone = neighbour();
    const char *const kinds[] = { "processor", "forks", "memory", "files", "large" };
    for (int is_limited = 1; is_limited >= 0; is_limited--)
        for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
            bench_beside(kinds[i], is_limited, alone);
    return 0;
}
