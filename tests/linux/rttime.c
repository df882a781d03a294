/* RLIMIT_RTTIME. Not with the other limits: how long a thread runs changes when services die (../qemu/deaths.sh). */
#include "behaviour.h"
#include <sched.h>
#include <sys/resource.h>

static int policy(int policy, int priority) {
    struct sched_param param = {priority};
    return sched_setscheduler(0, policy, &param);
}

/* Runs without a call. */
static void spin(long ms) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

BEHAVIOUR("a real-time thread that does not wait gets SIGXCPU, and SIGKILL at the hard limit") {
    struct rlimit limit = {200000, 400000};
    must(setrlimit(RLIMIT_RTTIME, &limit));
    IN_CHILD {
        handle(SIGXCPU, 0);
        spin(600);
        show(handled);
        must(policy(SCHED_FIFO, 1));
        spin(350);
        show(handled);
        for (;;)
            ;
    }
}

BEHAVIOUR("the soft limit is raised by a second each time it is reached") {
    struct rlimit limit = {100000, RLIM_INFINITY};
    must(setrlimit(RLIMIT_RTTIME, &limit));
    handle(SIGXCPU, 0);
    must(policy(SCHED_RR, 1));
    spin(300);
    show(handled);
    getrlimit(RLIMIT_RTTIME, &limit);
    note("%ld", (long)limit.rlim_cur);
}

BEHAVIOUR("a wait begins anew, a child has a limit of its own") {
    struct rlimit limit = {300000, 300000};
    must(setrlimit(RLIMIT_RTTIME, &limit));
    must(policy(SCHED_RR, 1));
    for (int i = 0; i < 4; i++) {
        spin(120);
        sleep_ms(1);
    }
    IN_CHILD {
        for (;;)
            ;
    }
    note("lives");
}
