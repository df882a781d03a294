/* Runs a command and prints the ticks from the fork to its end. What the command prints is dropped.
 * usage: timed NAME PROGRAM [ARGUMENT...] */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../bench/ticks.h"

int main(int argc, char **argv)
{
    int status;
    check(argc > 2, "usage: timed NAME PROGRAM [ARGUMENT...]");
    uint64_t start = ticks();
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        check(null >= 0 && dup2(null, STDOUT_FILENO) == STDOUT_FILENO, "/dev/null");
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    check(waitpid(child, &status, 0) == child, "waitpid");
    report(argv[1], start, ticks(), 1);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
