/* Reads a sector of a disk again and again, past every cache: `sector_read DEVICE NAME`. Prints the shortest time in ticks and the
 * median: the time that the emulated disk itself takes is not the same each time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "../bench/ticks.h"

enum { ROUNDS = 401, SECTOR_BYTES = 512 };

static int by_size(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

int main(int count, char **arguments)
{
    static char sector[SECTOR_BYTES];
    static uint64_t times[ROUNDS];
    check(count == 3, "sector_read DEVICE NAME");
    int disk = open(arguments[1], O_RDONLY);
    check(disk >= 0, arguments[1]);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = ticks();
        check(pread(disk, sector, SECTOR_BYTES, 0) == SECTOR_BYTES, "pread");
        times[round] = ticks() - start;
    }
    qsort(times, ROUNDS, sizeof times[0], by_size);
    printf("%s_least %llu\n%s_median %llu\n", arguments[2], (unsigned long long)times[0], arguments[2],
           (unsigned long long)times[ROUNDS / 2]);
    return 0;
}
