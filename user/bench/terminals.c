/* Pseudo-terminals: 64 bytes written to the master and read from the slave, and the other way, within one process, in raw mode; and
 * opening and closing a pair. */
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include "ticks.h"

enum { ROUNDS = 1000, BYTES = 64 };

static void bench_one_way(const char *name, int from, int to)
{
    char buffer[BYTES] = {0};
    uint64_t start = 0;
    for (int i = -10; i < ROUNDS; i++) {
        if (i == 0)
            start = ticks();
        check(write(from, buffer, BYTES) == BYTES && read(to, buffer, BYTES) == BYTES, name);
    }
    report(name, start, ticks(), ROUNDS);
}

int main(void)
{
    int master, slave;
    struct termios raw;
    check(openpty(&master, &slave, NULL, NULL, NULL) == 0, "openpty");
    tcgetattr(slave, &raw);
    cfmakeraw(&raw);
    tcsetattr(slave, TCSANOW, &raw);
    bench_one_way("pty_master_to_slave_64", master, slave);
    bench_one_way("pty_slave_to_master_64", slave, master);
    close(slave);
    close(master);
    uint64_t start = 0;
    for (int i = -10; i < ROUNDS; i++) {
        if (i == 0)
            start = ticks();
        check(openpty(&master, &slave, NULL, NULL, NULL) == 0, "openpty");
        close(slave);
        close(master);
    }
    report("openpty_close", start, ticks(), ROUNDS);
    return 0;
}
