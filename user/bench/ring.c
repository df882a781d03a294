/* The ring test of "Examining the Viability of MINIX 3": n processes in a ring of pipes pass a number round; ticks for one hop.
 * usage: ring [processes [laps]] */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ticks.h"

static void pass_on(int from, int to)
{
    long sum;
    while (read(from, &sum, sizeof sum) == sizeof sum) {
        sum += getpid();
        check(write(to, &sum, sizeof sum) == sizeof sum, "write");
    }
}

int main(int argc, char **argv)
{
    int processes = argc > 1 ? atoi(argv[1]) : 100;
    int laps = argc > 2 ? atoi(argv[2]) : 10;
    check(processes > 1 && laps > 0, "usage: ring [processes [laps]]");

    int first[2], from;
    check(pipe(first) == 0, "pipe");
    from = first[0];
    for (int i = 1; i < processes; i++) {
        int next[2];
        check(pipe(next) == 0, "pipe");
        pid_t child = fork();
        check(child >= 0, "fork");
        if (child == 0) {
            close(first[1]);
            close(next[0]);
            pass_on(from, next[1]);
            return 0;
        }
        close(from);
        close(next[1]);
        from = next[0];
    }

    long sum = 0;
    uint64_t start = 0;
    for (int lap = -1; lap < laps; lap++) {
        if (lap == 0)
            start = ticks();
        check(write(first[1], &sum, sizeof sum) == sizeof sum, "write");
        check(read(from, &sum, sizeof sum) == sizeof sum, "read");
    }
    char name[32];
    snprintf(name, sizeof name, "ring_%d_hop", processes);
    report(name, start, ticks(), (uint64_t)laps * processes);
    close(first[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
