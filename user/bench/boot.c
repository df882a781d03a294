/* How long the system took from the kernel's entry to the first command that a user can give, and how much memory it uses then.
 * The monotonic clock begins at the kernel's entry and counts nanoseconds, which under -icount shift=0 are ticks. On Linux the clock begins
 * about there too. */
#include <sys/sysinfo.h>
#include <time.h>

#include "ticks.h"

int main(void)
{
    struct timespec now;
    struct sysinfo memory;
    check(clock_gettime(CLOCK_MONOTONIC, &now) == 0, "clock_gettime");
    check(sysinfo(&memory) == 0, "sysinfo");
    printf("kernel_entry_to_command %llu\n", now.tv_sec * 1000000000ull + now.tv_nsec);
    printf("memory_used_bytes %llu\n", (unsigned long long)(memory.totalram - memory.freeram) * memory.mem_unit);
    return 0;
}
