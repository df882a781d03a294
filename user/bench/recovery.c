/* From the death of a driver to its successor's first answer: `service kill` of the ramdisk's driver and then a read of a sector of its device,
 * less what the same read takes otherwise. Everything a restart takes is in it: rs, vm, the driver's own start, and the repetition of the
 * request. Only on Skink. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>

#include "../rs.h"
#include "ticks.h"

enum { TIMES = 5, SECTOR = 512, PAUSE_US = 500000 };

static int device;

static void read_sector(void)
{
    static char sector[SECTOR];
    check(pread(device, sector, SECTOR, 0) == SECTOR, "pread");
}

static void kill_driver(void)
{
    check(service_call(SKINK_RS_SERVICE_CALL_KILL, "ramdisk", NULL, 0) == 0, "kill");
}

int main(void)
{
    uint64_t usual = 0, interrupted = 0;
    device = open("/dev/ram0", O_RDONLY);
    check(device >= 0, "open");
    read_sector();
    for (int time = 0; time < TIMES; time++) {
        uint64_t start = ticks();
        read_sector();
        usual += ticks() - start;
        start = ticks();
        kill_driver();
        read_sector();
        interrupted += ticks() - start;
        /* Within the policy that lets a service die now and then: the next restart is at once. */
        usleep(PAUSE_US);
    }
    printf("driver_recovery %llu\n", (unsigned long long)(interrupted - usual) / TIMES);
    return 0;
}
