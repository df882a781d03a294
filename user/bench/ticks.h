/* What the benchmark programs have in common. A tick is what rdtsc counts: under the emulator's -icount shift=0 one guest instruction.
 *
 * Each program prints lines "name ticks": ticks for one operation, the mean over the rounds; and the rounds, if BENCH_ROUNDS is in its environment.
 * With BENCH_WARM_UP it prints nothing. They are plain Linux programs: the same binary gives the other column of docs/performance.md when it runs on
 * Linux in the same emulator.
 *
 * For what the emulator's plug-in counts beside ticks (tools/profile/src/counter.rs), instructions that do nothing mark each reading of the
 * counter, and each report of what lies between the last two readings.
 */
#ifndef TICKS_H
#define TICKS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 1, 0x5a, 0x5a, 0x51\n\trdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* Ends the program with a reason when a call of the benchmark fails: a figure of a failed call would be worthless. */
static inline void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static inline void report(const char *name, uint64_t start, uint64_t end, uint64_t rounds)
{
    if (getenv("BENCH_WARM_UP"))
        return;
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 2, 0x5a, 0x5a, 0x51" : : : "memory");
    printf("%s %llu", name, (unsigned long long)((end - start) / rounds));
    if (getenv("BENCH_ROUNDS"))
        printf(" %llu", (unsigned long long)rounds);
    printf("\n");
}

#endif
