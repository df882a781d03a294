/* Making processes: fork + exit + wait, and with exec of a static program (this one, which then ends at once). */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ticks.h"

enum { ROUNDS = 50 };

static void child_of(const char *program)
{
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        if (program)
            execl(program, program, "exit", (char *)NULL);
        _exit(program ? 1 : 0);
    }
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, "wait");
}

static void bench(const char *name, const char *program)
{
    child_of(program);
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        child_of(program);
    report(name, start, ticks(), ROUNDS);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "exit") == 0)
        _exit(0);
    static char self[4096];
    check(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "/proc/self/exe");
    bench("fork_exit_wait", NULL);
    bench("fork_exec_exit_wait", self);
    return 0;
}
