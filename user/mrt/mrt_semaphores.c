/* Semaphores of real-time processes: order of waking, mutexes, inheritance through chains, time limits, ceilings, death of a carrier
 * (section 6 of "MINIX4RT: Real-Time Semaphores", and what no published test looks at). */
#include "trial.h"

static int a, b, c;

static void wait_for_a(void)
{
    static const char *const NAMES[] = {"zero", "one", "two", "three"};
    tell_result(NAMES[self], mrt_semdown(a, MRT_FOREVER));
}

static void three_ups(void)
{
    for (int i = 0; i < 3; i++)
        mrt_semup(a);
    tell("end");
}

static void order_of_waking(void)
{
    a = semaphore("order", 0, SEM_PRTYORDER, 0);
    start(0, 9, wait_for_a), start(1, 7, wait_for_a), start(2, 8, wait_for_a);
    mrt_semint_t internals;
    EXPECT(mrt_semint(a, &internals), 0);
    EXPECT(internals.inq, 3);
    start(3, 3, three_ups);
    end_of_scene();
    expect_story("by priority", "end one ok two ok zero ok");
    mrt_semstat_t statistics;
    EXPECT(mrt_semstat(a, &statistics), 0);
    EXPECT(statistics.ups, 3), EXPECT(statistics.downs, 3), EXPECT(statistics.maxinq, 3);
    EXPECT(mrt_clrsemstat(a), 0);
    EXPECT(mrt_semstat(a, &statistics), 0);
    EXPECT(statistics.ups, 0);
    EXPECT(mrt_semfree(a), 0);

    a = semaphore("order", 0, 0, 0);
    start(0, 9, wait_for_a), start(1, 7, wait_for_a), start(2, 8, wait_for_a);
    start(3, 40, three_ups);
    end_of_scene();
    expect_story("first come, first served", "zero ok one ok two ok end");
    EXPECT(mrt_semfree(a), 0);

    a = semaphore("order", 0, SEM_PRTYORDER, 0);
    start(0, 5, wait_for_a), start(1, 5, wait_for_a), start(2, 5, wait_for_a);
    start(3, 40, three_ups);
    end_of_scene();
    expect_story("equal priorities", "zero ok one ok two ok end");
    EXPECT(mrt_semfree(a), 0);
}

/* L holds the mutex a; b lets H begin, c lets Q begin. */
static void low(void)
{
    mrt_semdown(a, MRT_FOREVER);
    tell("L");
    mrt_semup(c);
    mrt_semup(b);
    tell("L'");
    mrt_semup(a);
    tell("L-end");
}

static void middle(void)
{
    mrt_semdown(c, MRT_FOREVER);
    tell("Q");
}

static void high(void)
{
    mrt_semdown(b, MRT_FOREVER);
    tell("H");
    tell_result("H", mrt_semdown(a, MRT_FOREVER));
    mrt_semup(a);
}

static void inversion(int inherits)
{
    a = semaphore("a", 1, SEM_MUTEX | SEM_PRTYORDER | (inherits ? SEM_PRTYINHERIT : 0), 0);
    b = semaphore("b", 0, SEM_PRTYORDER, 0);
    c = semaphore("c", 0, SEM_PRTYORDER, 0);
    start(0, 3, high), start(1, 20, middle), start(2, 40, low);
    end_of_scene();
    mrt_semfree(a), mrt_semfree(b), mrt_semfree(c);
}

/* Q waits until H waits for L: the middle one runs before or after, as inheritance is. */
static void low_wakes_high_first(void)
{
    mrt_semdown(a, MRT_FOREVER);
    mrt_semup(b);
    mrt_semup(c);
    tell("L'");
    mrt_semup(a);
    tell("L-end");
}

static void inversion_with_a_late_middle(int inherits)
{
    a = semaphore("a", 1, SEM_MUTEX | SEM_PRTYORDER | (inherits ? SEM_PRTYINHERIT : 0), 0);
    b = semaphore("b", 0, SEM_PRTYORDER, 0);
    c = semaphore("c", 0, SEM_PRTYORDER, 0);
    start(0, 3, high), start(1, 20, middle), start(2, 40, low_wakes_high_first);
    end_of_scene();
    mrt_semfree(a), mrt_semfree(b), mrt_semfree(c);
}

/* A chain: 2 holds a; 1 holds b and waits for a; 0 waits for b, with a time limit. c keeps 2 waiting meanwhile. */
static void chain_end(void)
{
    mrt_semdown(a, MRT_FOREVER);
    mrt_semdown(c, MRT_FOREVER);
    mrt_semup(a);
    tell("end");
}

static void chain_middle(void)
{
    mrt_semdown(b, MRT_FOREVER);
    tell_result("middle", mrt_semdown(a, MRT_FOREVER));
    mrt_semup(b);
    mrt_semup(a);
}

static void chain_begin(void)
{
    tell_result("begin", mrt_semdown(b, 300));
}

static void release_chain(void)
{
    mrt_semup(c);
}

static void chains(void)
{
    uint64_t mutex = SEM_MUTEX | SEM_PRTYORDER | SEM_PRTYINHERIT;
    a = semaphore("a", 1, mutex, 0), b = semaphore("b", 1, mutex, 0), c = semaphore("c", 0, SEM_PRTYORDER, 0);
    start(2, 30, chain_end), start(1, 20, chain_middle);
    EXPECT(priority_of(2), 20);
    start(0, 10, chain_begin);
    EXPECT(priority_of(2), 10), EXPECT(priority_of(1), 10);
    usleep(600000);
    EXPECT(priority_of(2), 20), EXPECT(priority_of(1), 20);
    start(3, 40, release_chain);
    end_of_scene();
    expect_story("a chain whose begin gives up", "begin timeout middle ok end");
    mrt_semfree(a), mrt_semfree(b), mrt_semfree(c);
}

/* 2 holds a and b, which 0 and 1 want, and gives them up in the order in which it got them. */
static void two_mutexes(void)
{
    mrt_semdown(a, MRT_FOREVER), mrt_semdown(b, MRT_FOREVER);
    mrt_semdown(c, MRT_FOREVER);
    mrt_semup(a);
    tell("gave a");
    mrt_semdown(c, MRT_FOREVER);
    mrt_semup(b);
    tell("gave b");
}

static void wants_b(void)
{
    tell_result("b", mrt_semdown(b, MRT_FOREVER));
    mrt_semup(b);
}

static void wants_a(void)
{
    tell_result("a", mrt_semdown(a, MRT_FOREVER));
    mrt_semup(a);
}

static void several_mutexes(void)
{
    uint64_t mutex = SEM_MUTEX | SEM_PRTYORDER | SEM_PRTYINHERIT;
    a = semaphore("a", 1, mutex, 0), b = semaphore("b", 1, mutex, 0), c = semaphore("c", 0, SEM_PRTYORDER, 0);
    start(2, 30, two_mutexes), start(0, 5, wants_a), start(1, 10, wants_b);
    EXPECT(priority_of(2), 5);
    start(3, 40, release_chain);
    EXPECT(priority_of(2), 10);
    start(4, 40, release_chain);
    end_of_scene();
    expect_story("two mutexes", "a ok gave a b ok gave b");
    mrt_semfree(a), mrt_semfree(b), mrt_semfree(c);
}

static void takes_a_then_b(void)
{
    mrt_semdown(a, MRT_FOREVER);
    mrt_semdown(c, MRT_FOREVER);
    tell_result("first", mrt_semdown(b, MRT_FOREVER));
    mrt_semup(a);
}

static void takes_b_then_a(void)
{
    mrt_semdown(b, MRT_FOREVER);
    mrt_semup(c);
    tell_result("second", mrt_semdown(a, MRT_FOREVER));
    mrt_semup(b);
}

static void dies_with_a(void)
{
    mrt_semdown(a, MRT_FOREVER);
    mrt_semdown(c, MRT_FOREVER);
    tell("dies");
}

static void refusals(void)
{
    uint64_t mutex = SEM_MUTEX | SEM_PRTYORDER | SEM_PRTYINHERIT;
    a = semaphore("a", 1, mutex, 0), b = semaphore("b", 1, mutex, 0), c = semaphore("c", 0, SEM_PRTYORDER, 0);
    start(0, 5, takes_a_then_b), start(1, 6, takes_b_then_a);
    end_of_scene();
    expect_story("a circle", "second locked first ok");

    start(0, 30, dies_with_a), start(1, 20, wants_a), start(2, 40, release_chain);
    end_of_scene();
    expect_story("a carrier that ends", "dies a ok");

    start(0, 30, dies_with_a), start(1, 20, wants_a);
    EXPECT(kill(shared->pids[0], SIGKILL), 0);
    end_of_scene();
    expect_story("a carrier that is killed", "a ok");

    start(0, 30, dies_with_a), start(1, 20, wants_a);
    EXPECT(mrt_semfree(a), 0);
    EXPECT(priority_of(0), 30);
    start(2, 40, release_chain);
    end_of_scene();
    expect_story("free with waiters", "a exiting dies");
    mrt_semfree(b), mrt_semfree(c);
}

static void holds_ceiling(void)
{
    mrt_semdown(a, MRT_FOREVER);
    mrt_semdown(c, MRT_FOREVER);
    mrt_semup(a);
    tell("gave");
    mrt_semdown(c, MRT_FOREVER);
}

static void ceilings(void)
{
    a = semaphore("a", 1, SEM_MUTEX | SEM_PRTYORDER | SEM_PRTYCEILING, 10), c = semaphore("c", 0, SEM_PRTYORDER, 0);
    start(0, 30, holds_ceiling);
    EXPECT(priority_of(0), 10);
    start(1, 5, wants_a);
    start(2, 40, release_chain);
    EXPECT(priority_of(0), 30);
    start(3, 40, release_chain);
    end_of_scene();
    expect_story("a ceiling", "a badprty gave");
    mrt_semfree(a), mrt_semfree(c);
}

static void limits(void)
{
    tell_result("now", mrt_semdown(a, MRT_NOWAIT));
    tell_result("soon", mrt_semdown(a, 20));
    mrt_semup(a);
    tell_result("then", mrt_semdown(a, 20));
}

int main(void)
{
    begin_trials();
    EXPECT(mrt_setsval(MRT_BPIP | MRT_PRTYMASK), 0);
    EXPECT(mrt_RTstart(20, 1000), 0);
    order_of_waking();
    inversion(1);
    expect_story("the middle one is first", "L Q H L' H ok L-end");
    inversion_with_a_late_middle(1);
    expect_story("inheritance", "H L' H ok Q L-end");
    inversion_with_a_late_middle(0);
    expect_story("no inheritance", "H Q L' H ok L-end");
    chains();
    several_mutexes();
    refusals();
    ceilings();
    a = semaphore("limits", 0, SEM_PRTYORDER, 0);
    start(0, 5, limits);
    end_of_scene();
    expect_story("time limits", "now again soon timeout then ok");
    mrt_semattr_t attributes;
    EXPECT(mrt_semattr(a, &attributes), 0);
    EXPECT(attributes.value, 0);
    EXPECT(mrt_semfree(a), 0);
    EXPECT(mrt_RTstop(), 0);
    return end_trials("semaphores");
}
