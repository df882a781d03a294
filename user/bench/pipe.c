/* 64 bytes to another program and back through two pipes. */
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
    return 0;
}
