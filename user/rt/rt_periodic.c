/* How late a periodic process of 1 kHz comes to run, until the standard input ends: `sleep 2 | rt_periodic`.
 *
 * Prints "periods", "missed" (deadlines, which are the ends of the periods), "worst" and "sum", in ticks, then the histogram: "late FROM COUNT" in
 * steps of 100 ticks. The periods begin inside mrt_set2rt, where the process cannot read the counter; it takes the end of that call
 * less a whole call, so that what it tells is a little more than the truth, never less. */
#include "process.h"

enum { PRIORITY = 3, STEP = 100, STEPS = 1000 };

static struct {
    volatile int is_over;
    uint64_t periods, missed, worst, sum;
    uint32_t histogram[STEPS];
} *shared;

static void note(uint64_t late)
{
    uint64_t step = late / STEP;
    shared->histogram[step < STEPS ? step : STEPS - 1]++;
    shared->periods++;
    shared->sum += late;
    if (late > shared->worst)
        shared->worst = late;
}

/* Ticks of a kernel call: this one is of no semaphore. */
static uint64_t cost_of_a_call(void)
{
    uint64_t start = ticks();
    mrt_semup(-1);
    return ticks() - start;
}

static void measure(void)
{
    mrt_sval_t values;
    check(mrt_getsval(&values) == 0, "mrt_getsval");
    become_real_time(PRIORITY, 1);
    uint64_t begin = ticks();
    begin -= cost_of_a_call();
    while (!shared->is_over) {
        mrt_sleep(MRT_FOREVER);
        begin += values.pit_latch;
        note(ticks() - begin);
    }
    mrt_set2nrt();
    mrt_pstat_t statistics;
    check(mrt_getpstat(getpid(), &statistics) == 0, "mrt_getpstat");
    shared->missed = statistics.mdl;
}

int main(void)
{
    char ignored[512];
    shared = shared_memory(sizeof *shared);
    begin_real_time(MRT_BPIP | MRT_PRTYMASK);
    pid_t process = child(measure);
    while (read(0, ignored, sizeof ignored) > 0) {
    }
    shared->is_over = 1;
    wait_for(process);
    check(mrt_RTstop() == 0, "mrt_RTstop");
    printf("periods %llu\nmissed %llu\nworst %llu\nsum %llu\n", (unsigned long long)shared->periods, (unsigned long long)shared->missed,
           (unsigned long long)shared->worst, (unsigned long long)shared->sum);
    for (unsigned step = 0; step < STEPS; step++)
        if (shared->histogram[step])
            printf("late %u %u\n", step * STEP, shared->histogram[step]);
    return 0;
}
