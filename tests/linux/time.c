/* Clocks, sleeping, alarms, interval timers, POSIX timers, timer descriptors. */
#include "behaviour.h"
#include <pthread.h>
#include <sys/timerfd.h>
#include <sys/timex.h>

static struct timespec ms(long milliseconds) {
    return (struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000};
}

static struct itimerspec every(long first_ms, long period_ms) {
    return (struct itimerspec){.it_value = ms(first_ms), .it_interval = ms(period_ms)};
}

/* The call itself: the C library handles SIGEV_THREAD and numbers timers otherwise. */
static long new_timer(clockid_t clock, struct sigevent *event, int *id) {
    return syscall(SYS_timer_create, clock, event, id);
}

static long set_timer(int id, int flags, struct itimerspec value, struct itimerspec *old) {
    return syscall(SYS_timer_settime, id, flags, &value, old);
}

static uint64_t expirations(int fd) {
    uint64_t count = 0;
    return read(fd, &count, sizeof count) == sizeof count ? count : UINT64_MAX;
}

BEHAVIOUR("clock_gettime of unknown clocks, with bad memory") {
    struct timespec now;
    show(clock_gettime(99, &now));
    show(syscall(SYS_clock_gettime, CLOCK_REALTIME, bad()));
    show(syscall(SYS_clock_gettime, -1, &now));
}
BEHAVIOUR("the monotonic clock never goes back") {
    struct timespec before, after;
    int back = 0;
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < 1000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &after);
        back += after.tv_sec < before.tv_sec || (after.tv_sec == before.tv_sec && after.tv_nsec < before.tv_nsec);
        before = after;
    }
    show(back);
}
BEHAVIOUR("every clock can be read") {
    struct timespec now;
    for (int clock = CLOCK_REALTIME; clock <= CLOCK_BOOTTIME; clock++)
        show(clock_gettime(clock, &now));
    show(clock_gettime(CLOCK_TAI, &now));
}
BEHAVIOUR("clock_getres") {
    struct timespec resolution;
    show(clock_getres(CLOCK_MONOTONIC, &resolution));
    note("%ld.%09ld", (long)resolution.tv_sec, resolution.tv_nsec);
    show(clock_getres(99, &resolution));
    show(clock_getres(CLOCK_REALTIME, NULL));
    show(syscall(SYS_clock_getres, CLOCK_REALTIME, bad()));
}
BEHAVIOUR("clock_settime of clocks that cannot be set, by a user, with bad times") {
    struct timespec now, wrong = {0, 1000000000}, negative = {-1, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    show(clock_settime(CLOCK_MONOTONIC, &now));
    show(clock_settime(99, &now));
    show(clock_settime(CLOCK_REALTIME, &wrong));
    show(clock_settime(CLOCK_REALTIME, &negative));
    show(syscall(SYS_clock_settime, CLOCK_REALTIME, bad()));
    AS(USER) { show(clock_settime(CLOCK_REALTIME, &now)); }
}
BEHAVIOUR("the processor time of a process and of a thread grow while it computes, not while it sleeps") {
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    sleep_ms(100);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    note("%d", (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 < 50);
    long long end = now_ms() + 50;
    while (now_ms() < end)
        ;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    note("%d", before.tv_nsec > after.tv_nsec);
}
// The clock of the processor time of a process or thread: Linux's encoding of its number.
static clockid_t clock_of(pid_t number, int per_thread, int what) {
    return (clockid_t)(~(unsigned)number << 3 | (unsigned)per_thread << 2 | (unsigned)what);
}
BEHAVIOUR("clock_gettime of the clock that pthread_getcpuclockid and clock_getcpuclockid tell") {
    struct timespec time;
    clockid_t clock;
    show(pthread_getcpuclockid(pthread_self(), &clock));
    show(clock_gettime(clock, &time));
    show(clock_getcpuclockid(0, &clock));
    show(clock_gettime(clock, &time));
    show(clock_getcpuclockid(getpid(), &clock));
    show(clock_gettime(clock, &time));
    show(clock_getcpuclockid(999999, &clock));
}
BEHAVIOUR("the clock of another process counts its processor time, and ends when it has been waited for") {
    struct timespec time = {0, 0};
    pid_t child = fork();
    if (child == 0)
        for (;;)
            ;
    clockid_t clock = clock_of(child, 0, 2);
    while (time.tv_sec == 0 && time.tv_nsec < 1000000)
        must(clock_gettime(clock, &time));
    show(clock_gettime(clock_of(child, 1, 2), &time));
    kill(child, SIGKILL);
    waitid(P_PID, child, NULL, WEXITED | WNOWAIT);
    show(clock_gettime(clock, &time));
    note("%d", time.tv_sec > 0 || time.tv_nsec >= 1000000);
    waitpid(child, NULL, 0);
    show(clock_gettime(clock, &time));
}
BEHAVIOUR("clocks of processes that there are not") {
    struct timespec time;
    for (int what = 0; what < 4; what++)
        show(clock_gettime(clock_of(0, 0, what), &time));
    show(clock_gettime(clock_of(999999, 0, 2), &time));
    show(clock_gettime(clock_of(999999, 1, 2), &time));
    show(clock_gettime(clock_of(-5, 0, 2), &time));
    show(clock_getres(clock_of(0, 1, 2), &time));
    note("%ld %ld", time.tv_sec, time.tv_nsec);
    show(clock_getres(clock_of(999999, 0, 2), &time));
    show(clock_gettime(clock_of(0, 0, 2), bad()));
}
BEHAVIOUR("clock_settime of a clock of processor time") {
    struct timespec time = {1, 0};
    show(clock_settime(CLOCK_PROCESS_CPUTIME_ID, &time));
    show(clock_settime(clock_of(0, 0, 2), &time));
    show(clock_settime(clock_of(999999, 0, 2), &time));
}
BEHAVIOUR("gettimeofday and time with bad memory") {
    show(syscall(SYS_gettimeofday, bad(), NULL));
    show(syscall(SYS_gettimeofday, NULL, bad()));
    show(syscall(SYS_gettimeofday, NULL, NULL));
    show(syscall(SYS_time, bad()));
}
BEHAVIOUR("settimeofday by a user, with bad microseconds") {
    struct timeval wrong = {0, 1000000}, one = {1, 0};
    show(syscall(SYS_settimeofday, &wrong, NULL));
    show(syscall(SYS_settimeofday, bad(), NULL));
    AS(USER) { show(syscall(SYS_settimeofday, &one, NULL)); }
}
BEHAVIOUR("nanosleep with bad times and bad memory") {
    struct timespec wrong = {0, 1000000000}, negative = {-1, 0}, below = {0, -1};
    show(nanosleep(&wrong, NULL));
    show(nanosleep(&negative, NULL));
    show(nanosleep(&below, NULL));
    show(nanosleep(bad(), NULL));
}
BEHAVIOUR("nanosleep sleeps as long as it says") {
    struct timespec time = ms(30);
    long long before = now_ms();
    show(nanosleep(&time, NULL));
    note("%d", now_ms() - before >= 30);
}
BEHAVIOUR("clock_nanosleep returns its errors") {
    struct timespec time = ms(1), wrong = {0, -1};
    note("%s", strerrorname_np(clock_nanosleep(99, 0, &time, NULL)));
    note("%s", strerrorname_np(clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL)));
    note("%d", clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL));
    show(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &time, NULL));
    show(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, bad(), NULL));
}
BEHAVIOUR("clock_nanosleep until a time that has passed returns at once") {
    struct timespec past = {1, 0};
    note("%d", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL));
    note("%d", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &past, NULL));
}
BEHAVIOUR("an absolute sleep that is interrupted does not tell what is left") {
    pid_t child = fork();
    if (child == 0) {
        struct timespec end, left = {77, 0};
        handle(SIGUSR1, 0);
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += 5;
        note("%s", strerrorname_np(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, &left)));
        note("%ld", (long)left.tv_sec);
        _exit(0);
    }
    sleep_ms(20);
    wait_until_asleep(child);
    kill(child, SIGUSR1);
    wait_for(child);
}
BEHAVIOUR("alarm returns the seconds that were left, rounded") {
    show(alarm(100));
    show(alarm(50));
    show(alarm(0));
    show(alarm(0));
}
BEHAVIOUR("SIGALRM kills who does not expect it") {
    IN_CHILD {
        struct itimerval soon = {.it_value = {0, 1000}};
        setitimer(ITIMER_REAL, &soon, NULL);
        pause();
    }
}
BEHAVIOUR("alarm and setitimer are one timer") {
    struct itimerval value;
    alarm(100);
    getitimer(ITIMER_REAL, &value);
    note("%d", value.it_value.tv_sec > 90);
    value = (struct itimerval){.it_value = {200, 0}};
    setitimer(ITIMER_REAL, &value, NULL);
    note("%d", alarm(0) > 190);
}
BEHAVIOUR("setitimer of unknown kinds, with bad times, bad memory") {
    struct itimerval value = {0}, wrong = {.it_value = {0, 1000000}}, negative = {.it_value = {-1, 0}};
    show(setitimer(9, &value, NULL));
    show(setitimer(ITIMER_REAL, &wrong, NULL));
    show(setitimer(ITIMER_REAL, &negative, NULL));
    show(syscall(SYS_setitimer, ITIMER_REAL, bad(), NULL));
    show(syscall(SYS_setitimer, ITIMER_REAL, &value, bad()));
    show(syscall(SYS_getitimer, 9, &value));
    show(syscall(SYS_getitimer, ITIMER_REAL, bad()));
}
BEHAVIOUR("setitimer returns the timer before; a period repeats") {
    struct itimerval often = {.it_value = {0, 2000}, .it_interval = {0, 2000}}, none = {0}, old;
    handle(SIGALRM, 0);
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled < 3)
        pause();
    show(setitimer(ITIMER_REAL, &none, &old));
    note("%ld", (long)old.it_interval.tv_usec);
    show(getitimer(ITIMER_REAL, &old));
    note("%ld %ld", (long)old.it_value.tv_usec, (long)old.it_interval.tv_usec);
}
BEHAVIOUR("ITIMER_PROF and ITIMER_VIRTUAL count computing") {
    struct itimerval soon = {.it_value = {0, 20000}};
    handle(SIGPROF, 0);
    setitimer(ITIMER_PROF, &soon, NULL);
    while (handled == 0)
        ;
    handle(SIGVTALRM, 0);
    setitimer(ITIMER_VIRTUAL, &soon, NULL);
    while (handled == 1)
        ;
    show(handled);
}
BEHAVIOUR("timer_create with unknown clocks, signals, kinds, bad memory") {
    int id;
    struct sigevent wrong = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 99}, kind = {.sigev_notify = 77, .sigev_signo = SIGUSR1};
    show(new_timer(99, NULL, &id));
    show(new_timer(CLOCK_MONOTONIC, &wrong, &id));
    show(new_timer(CLOCK_MONOTONIC, &kind, &id));
    show(new_timer(CLOCK_MONOTONIC, bad(), &id));
    show(new_timer(CLOCK_MONOTONIC, NULL, bad()));
}
BEHAVIOUR("timers have numbers from 0 on") {
    int ids[3];
    for (int i = 0; i < 3; i++)
        new_timer(CLOCK_MONOTONIC, NULL, &ids[i]);
    note("%d %d", ids[1] - ids[0], ids[2] - ids[1]);
}
BEHAVIOUR("calls on a timer that does not exist") {
    struct itimerspec value = every(10, 0);
    show(set_timer(77, 0, value, NULL));
    show(syscall(SYS_timer_gettime, 77, &value));
    show(syscall(SYS_timer_getoverrun, 77));
    show(syscall(SYS_timer_delete, 77));
    show(syscall(SYS_timer_delete, -1));
}
BEHAVIOUR("timer_settime with bad times and bad memory") {
    int id;
    struct itimerspec wrong = every(10, 0);
    must(new_timer(CLOCK_MONOTONIC, NULL, &id));
    wrong.it_value.tv_nsec = 1000000000;
    show(set_timer(id, 0, wrong, NULL));
    wrong = every(10, 0);
    wrong.it_interval.tv_nsec = -1;
    show(set_timer(id, 0, wrong, NULL));
    show(syscall(SYS_timer_settime, id, 0, bad(), NULL));
    show(syscall(SYS_timer_settime, id, 0, NULL, NULL));
    show(syscall(SYS_timer_gettime, id, bad()));
}
BEHAVIOUR("a timer without an event sends SIGALRM") {
    int id;
    handle(SIGALRM, 0);
    must(new_timer(CLOCK_MONOTONIC, NULL, &id));
    set_timer(id, 0, every(5, 0), NULL);
    pause();
    show(handled);
}
BEHAVIOUR("a timer's signal has its value, its code and its number") {
    int id;
    siginfo_t info;
    sigset_t set = set_of(SIGRTMIN);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 42};
    block(SIGRTMIN);
    must(new_timer(CLOCK_MONOTONIC, &event, &id));
    set_timer(id, 0, every(5, 0), NULL);
    sigwaitinfo(&set, &info);
    note("%d %d %d %d", info.si_code, info.si_value.sival_int, info.si_timerid == id, info.si_overrun);
}
BEHAVIOUR("a blocked timer signal is queued once, and counts the overruns") {
    int id;
    siginfo_t info;
    sigset_t set = set_of(SIGRTMIN);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct timespec zero = {0, 0};
    block(SIGRTMIN);
    must(new_timer(CLOCK_MONOTONIC, &event, &id));
    set_timer(id, 0, every(2, 2), NULL);
    sleep_ms(30);
    show(sigtimedwait(&set, &info, &zero));
    note("%d", syscall(SYS_timer_getoverrun, id) >= 10);
}
BEHAVIOUR("timer_gettime of a timer that is not armed, is armed, has fired") {
    int id;
    struct itimerspec value;
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    must(new_timer(CLOCK_MONOTONIC, &none, &id));
    syscall(SYS_timer_gettime, id, &value);
    note("%ld", (long)value.it_value.tv_sec);
    set_timer(id, 0, every(100000, 7), NULL);
    syscall(SYS_timer_gettime, id, &value);
    note("%d %ld", value.it_value.tv_sec > 90, value.it_interval.tv_nsec);
    set_timer(id, 0, every(1, 0), NULL);
    sleep_ms(5);
    syscall(SYS_timer_gettime, id, &value);
    note("%ld %ld", (long)value.it_value.tv_sec, value.it_value.tv_nsec);
}
BEHAVIOUR("timer_settime returns the timer before, and TIMER_ABSTIME in the past fires at once") {
    int id;
    struct itimerspec old;
    handle(SIGALRM, 0);
    must(new_timer(CLOCK_MONOTONIC, NULL, &id));
    set_timer(id, 0, every(100000, 0), NULL);
    show(set_timer(id, TIMER_ABSTIME, every(1, 0), &old));
    note("%d %d", old.it_value.tv_sec > 90, handled);
}
BEHAVIOUR("timers are not inherited") {
    int id;
    must(new_timer(CLOCK_MONOTONIC, NULL, &id));
    IN_CHILD { show(syscall(SYS_timer_delete, id)); }
    show(syscall(SYS_timer_delete, id));
    show(syscall(SYS_timer_delete, id));
}
BEHAVIOUR("a timer of the processor time fires while the process computes") {
    int id;
    handle(SIGALRM, 0);
    must(new_timer(CLOCK_PROCESS_CPUTIME_ID, NULL, &id));
    set_timer(id, 0, every(20, 0), NULL);
    while (handled == 0)
        ;
    show(handled);
}
BEHAVIOUR("a timer of the processor time of a process or thread by its number") {
    int id;
    handle(SIGALRM, 0);
    for (int per_thread = 0; per_thread < 2; per_thread++) {
        must(new_timer(clock_of(getpid(), per_thread, 2), NULL, &id));
        set_timer(id, 0, every(20, 0), NULL);
        for (int before = handled; handled == before;)
            ;
        show(handled);
    }
    show(new_timer(clock_of(999999, 0, 2), NULL, &id));
    show(new_timer(clock_of(getppid(), 1, 2), NULL, &id));
    show(new_timer(CLOCK_MONOTONIC_RAW, NULL, &id));
    show(new_timer(CLOCK_REALTIME_COARSE, NULL, &id));
    show(new_timer(CLOCK_MONOTONIC_COARSE, NULL, &id));
}
BEHAVIOUR("timerfd_create with unknown clocks and flags") {
    show(timerfd_create(99, 0));
    show(timerfd_create(CLOCK_MONOTONIC, 1));
    show(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
    show(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    show(fcntl(3, F_GETFD));
}
BEHAVIOUR("timerfd_settime with bad descriptors, flags, times, memory") {
    struct itimerspec value = every(10, 0), wrong = every(10, 0);
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    wrong.it_value.tv_nsec = 1000000000;
    show(timerfd_settime(99, 0, &value, NULL));
    show(timerfd_settime(0, 0, &value, NULL));
    show(timerfd_settime(fd, 77, &value, NULL));
    show(timerfd_settime(fd, 0, &wrong, NULL));
    show(timerfd_settime(fd, 0, bad(), NULL));
    show(timerfd_gettime(fd, bad()));
    show(timerfd_gettime(0, &value));
}
BEHAVIOUR("read of a timer descriptor: too short a buffer, not armed") {
    char bytes[7];
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    uint64_t count;
    show(read(fd, bytes, 7));
    show(read(fd, &count, 8));
    show(write(fd, &count, 8));
}
BEHAVIOUR("a timer descriptor counts expirations until it is read") {
    struct itimerspec often = every(2, 2);
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(fd, 0, &often, NULL);
    sleep_ms(20);
    note("%d", expirations(fd) >= 8);
}
BEHAVIOUR("read of a timer descriptor waits for it, poll tells") {
    struct itimerspec soon = every(5, 0);
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct pollfd asked = {.fd = fd, .events = POLLIN | POLLOUT};
    show(poll(&asked, 1, 0));
    timerfd_settime(fd, 0, &soon, NULL);
    show((long)expirations(fd));
    timerfd_settime(fd, 0, &soon, NULL);
    show(poll(&asked, 1, -1));
    note("%x", asked.revents);
}
BEHAVIOUR("setting a timer descriptor forgets what has expired") {
    struct itimerspec soon = every(1, 0), none = every(0, 0), old;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(fd, 0, &soon, NULL);
    sleep_ms(5);
    show(timerfd_settime(fd, 0, &none, &old));
    show((long)expirations(fd));
}
BEHAVIOUR("a child shares a timer descriptor") {
    struct itimerspec soon = every(1, 0);
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(fd, 0, &soon, NULL);
    sleep_ms(5);
    IN_CHILD { show((long)expirations(fd)); }
    show((long)expirations(fd));
}
BEHAVIOUR("adjtimex with an unknown clock for clock_adjtime, by a user, with bad memory") {
    struct timex change = {.modes = ADJ_FREQUENCY};
    show(syscall(SYS_clock_adjtime, 99, &change));
    show(syscall(SYS_adjtimex, bad()));
    AS(USER) { show(syscall(SYS_adjtimex, &change)); }
}
