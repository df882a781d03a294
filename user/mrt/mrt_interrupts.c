/* Interrupt descriptors: timer-driven and event-driven, with a message or a wake-up as second stage; the tick of the time-shared world; and the
 * interrupts of ordinary drivers, which wait while something real-time runs and are not lost (part B, 2, 10 and 11). */
#include "trial.h"

/* The second serial line, and a software interrupt. */
enum { LINE = 3, SOFTWARE = 70 };

static void serves_messages(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    for (int i = 0; i < 5; i++) {
        tell_result("irq", mrt_rcv(MRT_ANYPROC, &message, &header, 1000));
        shared->numbers[0] = header.mtype, shared->numbers[1] = (long)message.words[0], shared->numbers[2] = (long)message.words[1];
    }
}

static void by_message(void)
{
    start(0, 10, serves_messages);
    mrt_iattr_t wanted = {.period = 20, .task = shared->pids[0], .watchdog = MRT_NOPROC, .priority = 8, .irqtype = TDIRQ | SOFTIRQ | ISTMSG};
    EXPECT(mrt_setiattr(SOFTWARE, &wanted), 0);
    end_of_scene();
    expect_story("timer-driven, by message", "irq ok irq ok irq ok irq ok irq ok");
    EXPECT(shared->numbers[0], MT_KRNIRQ), EXPECT(shared->numbers[1], SOFTWARE), EXPECT(shared->numbers[2], 5);
    mrt_iattr_t seen;
    EXPECT(mrt_getiattr(SOFTWARE, &seen), 0);
    EXPECT(seen.irqtype, NRTIRQ);
}

/* Sleeps twice for the interrupt, then works for longer than its period. */
static void serves_wakeups(void)
{
    mrt_sleep(MRT_FOREVER), tell("woken");
    mrt_sleep(MRT_FOREVER), tell("woken");
    while (shared->numbers[5] == 0) {
    }
    tell("late");
}

static void watches(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    tell_result("watchdog", mrt_rcv(MRT_ANYPROC, &message, &header, 1000));
    shared->numbers[0] = header.mtype, shared->numbers[1] = (long)message.words[0], shared->numbers[2] = (long)message.words[1];
    shared->numbers[5] = 1;
}

static void by_wakeup(void)
{
    shared->numbers[5] = 0;
    start(0, 5, watches), start(1, 20, serves_wakeups);
    mrt_iattr_t wanted = {
        .period = 50, .task = shared->pids[1], .watchdog = shared->pids[0], .priority = 8, .irqtype = TDIRQ | SOFTIRQ | RELATPER};
    EXPECT(mrt_setiattr(SOFTWARE, &wanted), 0);
    end_of_scene();
    expect_story("timer-driven, by wake-up", "woken woken watchdog ok late");
    EXPECT(shared->numbers[0], MT_KRNDLINE), EXPECT(shared->numbers[1], SOFTWARE), EXPECT(shared->numbers[2], 1);
}

/* Counts the messages about the line until there are none for half a second. */
static void serves_line(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    shared->numbers[3] = 0;
    while (mrt_rcv(MRT_ANYPROC, &message, &header, 500) == 0)
        shared->numbers[3]++;
}

static void keeps_the_processor(void)
{
    uint64_t begin = __builtin_ia32_rdtsc();
    while (__builtin_ia32_rdtsc() - begin < 600000000ull) {
    }
    tell("done");
}

/* The other end of the line sends 60 numbers. A real-time task hears of each interrupt; the line's driver does when no real-time process runs,
 * and nothing that was sent is lost though one keeps the processor for some time. */
static void by_line(void)
{
    FILE *line = fopen("/dev/ttyS1", "r+");
    char text[16];
    mrt_istat_t statistics;
    start(0, 10, serves_line);
    mrt_iattr_t wanted = {.task = shared->pids[0], .watchdog = MRT_NOPROC, .priority = 8, .irqtype = RTIRQ | ISTMSG};
    EXPECT(mrt_setiattr(LINE, &wanted), 0);
    fputs("ready\n", line), fflush(line);
    for (int i = 0; i < 60; i++) {
        if (i == 20)
            start(1, 20, keeps_the_processor);
        EXPECT(fgets(text, sizeof text, line) != NULL, 1);
        EXPECT(atoi(text), i);
    }
    EXPECT(mrt_getistat(LINE, &statistics), 0);
    long count = statistics.count;
    EXPECT(count > 0, 1);
    end_of_scene();
    expect_story("an interrupt line", "done");
    EXPECT(shared->numbers[3] + (long)statistics.mdl >= count, 1);
    fclose(line);
}

int main(void)
{
    mrt_istat_t before, after;
    begin_trials();
    EXPECT(mrt_RTstart(20, 200), 0);
    EXPECT(mrt_getistat(SKINK_RT_TICK_IRQ, &before), 0);
    by_message();
    by_wakeup();
    by_line();
    EXPECT(mrt_getistat(SKINK_RT_TICK_IRQ, &after), 0);
    mrt_sstat_t statistics;
    EXPECT(mrt_getsstat(&statistics), 0);
    long ticks = after.count - before.count, wanted = statistics.ticks / 20;
    EXPECT(ticks >= wanted - 2 && ticks <= wanted, 1);
    EXPECT(statistics.idlemax > 0, 1);
    EXPECT(mrt_RTstop(), 0);
    return end_trials("interrupts");
}
