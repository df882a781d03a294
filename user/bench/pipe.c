/* 64 bytes to another program and back through two pipes; through one's own pipe; and a pipe that is made and closed. */
#include <sys/wait.h>
#include <unistd.h>

#include "ticks.h"

enum { ROUNDS = 1000, BYTES = 64 };

static void pass_on(int from, int to)
{
    char buffer[BYTES];
    while (read(from, buffer, BYTES) == BYTES)
        check(write(to, buffer, BYTES) == BYTES, "write");
}

static void bench_own_pipe(void)
{
    int ends[2];
    char buffer[BYTES] = {0};
    check(pipe(ends) == 0, "pipe");
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(write(ends[1], buffer, BYTES) == BYTES && read(ends[0], buffer, BYTES) == BYTES, "own pipe");
    report("own_pipe_write_read_64", start, ticks(), ROUNDS);
    close(ends[0]);
    close(ends[1]);
}

static void bench_pipe_close(void)
{
    int ends[2];
    uint64_t start = ticks();
    for (int i = 0; i < ROUNDS; i++)
        check(pipe(ends) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0, "pipe");
    report("pipe_close", start, ticks(), ROUNDS);
}

int main(void)
{
    int there[2], back[2];
    char buffer[BYTES] = {0};
    check(pipe(there) == 0 && pipe(back) == 0, "pipe");
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        close(there[1]);
        pass_on(there[0], back[1]);
        return 0;
    }
    close(there[0]);
    uint64_t start = 0;
    for (int i = -10; i < ROUNDS; i++) {
        if (i == 0)
            start = ticks();
        check(write(there[1], buffer, BYTES) == BYTES, "write");
        check(read(back[0], buffer, BYTES) == BYTES, "read");
    }
    report("pipe_round_trip_64", start, ticks(), ROUNDS);
    close(there[1]);
    wait(NULL);
    bench_own_pipe();
    bench_pipe_close();
    return 0;
}
