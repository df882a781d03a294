/* Resource limits, priorities, policies of the scheduler, affinity, usage. */
#include "behaviour.h"
#include <linux/sched.h>
#include <sys/times.h>

/* As <linux/sched/types.h> has it, which the C library's header excludes. */
struct sched_attr {
    uint32_t size, sched_policy;
    uint64_t sched_flags;
    int32_t sched_nice;
    uint32_t sched_priority;
    uint64_t sched_runtime, sched_deadline, sched_period;
};

static struct rlimit limit_of(int resource) {
    struct rlimit limit;
    must(getrlimit(resource, &limit));
    return limit;
}

static long policy(int number, int priority) {
    struct sched_param parameter = {priority};
    return syscall(SYS_sched_setscheduler, 0, number, &parameter);
}

BEHAVIOUR("getrlimit and setrlimit of unknown resources") {
    struct rlimit limit;
    show(syscall(SYS_getrlimit, 99, &limit));
    show(syscall(SYS_setrlimit, 99, &limit));
    show(syscall(SYS_getrlimit, -1, &limit));
    show(syscall(SYS_prlimit64, 0, 99, NULL, &limit));
}
BEHAVIOUR("getrlimit and setrlimit with bad memory") {
    show(syscall(SYS_getrlimit, RLIMIT_NOFILE, bad()));
    show(syscall(SYS_setrlimit, RLIMIT_NOFILE, bad()));
    show(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, bad(), NULL));
    show(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, bad()));
}
BEHAVIOUR("a soft limit above the hard one") {
    struct rlimit wrong = {10, 5};
    show(setrlimit(RLIMIT_CORE, &wrong));
}
BEHAVIOUR("a user may lower his limits, and raise the soft one up to the hard one") {
    AS(USER) {
        struct rlimit limit = {50, 60};
        show(setrlimit(RLIMIT_NOFILE, &limit));
        limit.rlim_cur = 60;
        show(setrlimit(RLIMIT_NOFILE, &limit));
        limit.rlim_max = 61;
        show(setrlimit(RLIMIT_NOFILE, &limit));
        limit = limit_of(RLIMIT_NOFILE);
        note("%d/%d", (int)limit.rlim_cur, (int)limit.rlim_max);
    }
}
BEHAVIOUR("limits are inherited") {
    struct rlimit limit = {77, 88};
    must(setrlimit(RLIMIT_NOFILE, &limit));
    IN_CHILD {
        limit = limit_of(RLIMIT_NOFILE);
        note("%d/%d", (int)limit.rlim_cur, (int)limit.rlim_max);
    }
}
BEHAVIOUR("prlimit of nobody, of another user's process, of a child") {
    struct rlimit limit = {40, 40}, old;
    show(prlimit(0x3ffffff, RLIMIT_NOFILE, NULL, &old));
    pid_t parent = getpid();
    AS(USER) { show(prlimit(parent, RLIMIT_NOFILE, NULL, &old)); }
    struct gate gate = new_gate();
    pid_t child = fork();
    if (child == 0) {
        pass_gate(gate);
        note("%d", (int)limit_of(RLIMIT_NOFILE).rlim_cur);
        _exit(0);
    }
    long set = prlimit(child, RLIMIT_NOFILE, &limit, &old);
    show(set);
    note("%d", (int)old.rlim_cur);
    open_gate(gate);
    wait_for(child);
}
BEHAVIOUR("RLIMIT_NOFILE below what is open closes nothing") {
    struct rlimit limit = {1, 1};
    int fd = open("/dev/null", O_RDONLY);
    must(setrlimit(RLIMIT_NOFILE, &limit));
    show(fcntl(fd, F_GETFD));
    show(open("/dev/null", O_RDONLY));
    show(dup(fd));
}
BEHAVIOUR("RLIMIT_CPU: SIGXCPU at the soft limit, SIGKILL at the hard one") {
    IN_CHILD {
        struct rlimit limit = {1, 2};
        signal(SIGXCPU, SIG_DFL);
        setrlimit(RLIMIT_CPU, &limit);
        for (;;)
            ;
    }
}
BEHAVIOUR("RLIMIT_FSIZE does not concern pipes and devices") {
    struct rlimit limit = {0, 0};
    int p[2];
    pipe(p);
    must(setrlimit(RLIMIT_FSIZE, &limit));
    show(write(p[1], "x", 1));
    show(write(1, "x", 1));
}
BEHAVIOUR("RLIMIT_STACK bounds the stack") {
    IN_CHILD {
        char *words[] = {"sh", "-c", "ulimit -s", NULL};
        struct rlimit limit = {1 << 20, 1 << 20};
        must(setrlimit(RLIMIT_STACK, &limit));
        int p[2];
        pipe(p);
        if (fork() == 0) {
            dup2(p[1], 1);
            execve("/bin/sh", words, NULL);
        }
        wait(NULL);
        show_read(p[0], 20);
    }
}
BEHAVIOUR("getpriority and setpriority of unknown kinds and of nobody") {
    errno = 0;
    show(getpriority(9, 0));
    show(getpriority(PRIO_PROCESS, 0x3ffffff));
    show(getpriority(PRIO_PGRP, 0x3ffffff));
    show(getpriority(PRIO_USER, 0x3ffffff));
    show(setpriority(9, 0, 0));
    show(setpriority(PRIO_PROCESS, 0x3ffffff, 0));
}
BEHAVIOUR("the system call getpriority returns 20 minus the niceness") {
    setpriority(PRIO_PROCESS, 0, 5);
    show(syscall(SYS_getpriority, PRIO_PROCESS, 0));
    show(getpriority(PRIO_PROCESS, 0));
}
BEHAVIOUR("setpriority beyond the limits is cut") {
    show(setpriority(PRIO_PROCESS, 0, 99));
    show(getpriority(PRIO_PROCESS, 0));
    show(setpriority(PRIO_PROCESS, 0, -99));
    errno = 0;
    show(getpriority(PRIO_PROCESS, 0));
}
BEHAVIOUR("a user becomes nicer, never less nice") {
    AS(USER) {
        show(setpriority(PRIO_PROCESS, 0, 5));
        show(setpriority(PRIO_PROCESS, 0, 4));
        show(getpriority(PRIO_PROCESS, 0));
    }
}
BEHAVIOUR("niceness is inherited") {
    setpriority(PRIO_PROCESS, 0, 7);
    IN_CHILD { show(getpriority(PRIO_PROCESS, 0)); }
}
BEHAVIOUR("setpriority of a group reaches its members, getpriority tells the best") {
    struct gate gate = new_gate(), ready = new_gate();
    pid_t child = fork();
    if (child == 0) {
        setpriority(PRIO_PROCESS, 0, 3);
        open_gate(ready);
        pass_gate(gate);
        show(getpriority(PRIO_PROCESS, 0));
        _exit(0);
    }
    setpriority(PRIO_PROCESS, 0, 8);
    pass_gate(ready);
    show(getpriority(PRIO_PGRP, 0));
    show(setpriority(PRIO_PGRP, 0, 9));
    open_gate(gate);
    wait_for(child);
}
BEHAVIOUR("sched_setscheduler with unknown policies, bad priorities, bad memory, nobody") {
    struct sched_param parameter = {0};
    show(policy(77, 0));
    show(policy(SCHED_OTHER, 1));
    show(policy(SCHED_FIFO, 0));
    show(policy(SCHED_FIFO, 100));
    show(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, NULL));
    show(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, bad()));
    show(syscall(SYS_sched_setscheduler, -1, SCHED_OTHER, &parameter));
    show(syscall(SYS_sched_setscheduler, 0x3ffffff, SCHED_OTHER, &parameter));
}
BEHAVIOUR("sched_getscheduler and sched_getparam") {
    struct sched_param parameter;
    show(sched_getscheduler(0));
    show(sched_getparam(0, &parameter));
    show(parameter.sched_priority);
    show(sched_getscheduler(-1));
    show(sched_getscheduler(0x3ffffff));
    show(sched_getparam(0, NULL));
    show(sched_getparam(0, bad()));
    show(sched_getparam(-1, &parameter));
}
BEHAVIOUR("SCHED_FIFO and SCHED_RR by root, and children inherit them") {
    struct sched_param parameter;
    show(policy(SCHED_FIFO, 10));
    IN_CHILD {
        sched_getparam(0, &parameter);
        note("%d %d", sched_getscheduler(0), parameter.sched_priority);
    }
    show(policy(SCHED_RR, 20));
    show(sched_getscheduler(0));
    show(policy(SCHED_OTHER, 0));
}
BEHAVIOUR("SCHED_RESET_ON_FORK: children have the ordinary policy") {
    show(policy(SCHED_FIFO | SCHED_RESET_ON_FORK, 10));
    note("%x", sched_getscheduler(0));
    IN_CHILD { show(sched_getscheduler(0)); }
}
BEHAVIOUR("a user has no real-time policy, but may be a batch") {
    AS(USER) {
        show(policy(SCHED_FIFO, 1));
        show(policy(SCHED_BATCH, 0));
        show(sched_getscheduler(0));
        show(policy(SCHED_IDLE, 0));
        show(sched_getscheduler(0));
    }
}
BEHAVIOUR("sched_setparam of an ordinary process") {
    struct sched_param parameter = {5};
    show(sched_setparam(0, &parameter));
    parameter.sched_priority = 0;
    show(sched_setparam(0, &parameter));
    show(sched_setparam(0, bad()));
}
BEHAVIOUR("sched_get_priority_min and max") {
    note("%d-%d", sched_get_priority_min(SCHED_FIFO), sched_get_priority_max(SCHED_FIFO));
    note("%d-%d", sched_get_priority_min(SCHED_OTHER), sched_get_priority_max(SCHED_OTHER));
    show(sched_get_priority_min(77));
    show(sched_get_priority_max(-1));
}
BEHAVIOUR("sched_rr_get_interval") {
    struct timespec interval;
    show(sched_rr_get_interval(-1, &interval));
    show(sched_rr_get_interval(0x3ffffff, &interval));
    show(sched_rr_get_interval(0, bad()));
    policy(SCHED_RR, 1);
    show(sched_rr_get_interval(0, &interval));
    policy(SCHED_FIFO, 1);
    show(sched_rr_get_interval(0, &interval));
    note("%ld.%09ld", (long)interval.tv_sec, interval.tv_nsec);
}
BEHAVIOUR("sched_getattr and sched_setattr") {
    struct sched_attr attributes = {0};
    show(syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0));
    note("%u %u", attributes.sched_policy, attributes.sched_priority);
    show(syscall(SYS_sched_getattr, 0, &attributes, 8, 0));
    show(syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 1));
    show(syscall(SYS_sched_getattr, 0, NULL, sizeof attributes, 0));
    show(syscall(SYS_sched_getattr, -1, &attributes, sizeof attributes, 0));
    show(syscall(SYS_sched_setattr, 0, NULL, 0));
    attributes.sched_policy = 99;
    show(syscall(SYS_sched_setattr, 0, &attributes, 0));
    attributes.sched_policy = SCHED_OTHER;
    show(syscall(SYS_sched_setattr, 0, &attributes, 1));
}
BEHAVIOUR("sched_setaffinity to no processor, with bad memory, of nobody") {
    unsigned long mask = 0, one = 1;
    show(syscall(SYS_sched_setaffinity, 0, sizeof mask, &mask));
    show(syscall(SYS_sched_setaffinity, 0, sizeof mask, bad()));
    show(syscall(SYS_sched_setaffinity, 0x3ffffff, sizeof one, &one));
    show(syscall(SYS_sched_setaffinity, 0, sizeof one, &one));
}
BEHAVIOUR("sched_getaffinity returns the bytes it has written") {
    unsigned long mask[16] = {0};
    sched_setaffinity(0, 8, (cpu_set_t *)&(unsigned long){1});
    show(syscall(SYS_sched_getaffinity, 0, 128, mask) > 0);
    note("%lx", mask[0]);
    show(syscall(SYS_sched_getaffinity, 0, 1, mask));
    show(syscall(SYS_sched_getaffinity, 0, 12, mask));
    show(syscall(SYS_sched_getaffinity, 0, 128, bad()));
    show(syscall(SYS_sched_getaffinity, 0x3ffffff, 128, mask));
}
BEHAVIOUR("sched_setaffinity of another user's process") {
    unsigned long one = 1;
    pid_t parent = getpid();
    AS(USER) { show(syscall(SYS_sched_setaffinity, parent, sizeof one, &one)); }
}
BEHAVIOUR("sched_yield") { show(sched_yield()); }
BEHAVIOUR("getcpu with bad memory and without any") {
    unsigned cpu = 99;
    show(syscall(SYS_getcpu, NULL, NULL, NULL));
    show(syscall(SYS_getcpu, bad(), NULL, NULL));
    sched_setaffinity(0, 8, (cpu_set_t *)&(unsigned long){1});
    show(syscall(SYS_getcpu, &cpu, NULL, NULL));
    note("%u", cpu);
}
BEHAVIOUR("getrusage of unknown kinds, with bad memory") {
    struct rusage usage;
    show(getrusage(9, &usage));
    show(getrusage(RUSAGE_SELF, bad()));
    show(getrusage(RUSAGE_THREAD, &usage));
}
BEHAVIOUR("getrusage RUSAGE_CHILDREN counts those that were waited for") {
    struct rusage before, after;
    pid_t child = fork();
    if (child == 0) {
        clock_t end = clock() + CLOCKS_PER_SEC / 20;
        while (clock() < end)
            ;
        _exit(0);
    }
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    getrusage(RUSAGE_CHILDREN, &before);
    wait_for(child);
    getrusage(RUSAGE_CHILDREN, &after);
    note("%ld", (long)before.ru_utime.tv_usec);
    note("%d", after.ru_utime.tv_usec + after.ru_stime.tv_usec + 1000000 * after.ru_utime.tv_sec > 20000);
}
BEHAVIOUR("getrusage: faults and the most memory") {
    struct rusage usage;
    volatile char *memory = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long at = 0; at < 8 << 20; at += 4096)
        memory[at] = 1;
    getrusage(RUSAGE_SELF, &usage);
    note("%d %d", usage.ru_maxrss >= 8192, usage.ru_minflt > 0);
}
/* Touches memory and sleeps a few times. */
static void use(long bytes, int sleeps) {
    volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    munmap((void *)memory, bytes);
    while (sleeps-- > 0)
        sleep_ms(1);
}
BEHAVIOUR("wait4 and RUSAGE_CHILDREN: faults, the most memory and switches of a child") {
    struct rusage before, one, all;
    getrusage(RUSAGE_CHILDREN, &before);
    note("%ld %ld %ld", before.ru_maxrss, before.ru_minflt, before.ru_nvcsw);
    for (int mib = 16; mib > 0; mib -= 12) {
        pid_t child = fork();
        if (child == 0) {
            use(mib << 20, 5);
            _exit(0);
        }
        must(wait4(child, NULL, 0, &one));
        getrusage(RUSAGE_CHILDREN, &all);
        note("%d %d %d %d", one.ru_maxrss >= mib << 10, one.ru_maxrss < (mib + 8) << 10, one.ru_minflt > 16, one.ru_nvcsw >= 5);
        note("%d %d %d", all.ru_maxrss >= 16 << 10, all.ru_minflt >= one.ru_minflt, all.ru_nvcsw >= one.ru_nvcsw);
    }
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    note("%d", own.ru_maxrss < 16 << 10);
}
BEHAVIOUR("getrusage: the most memory stays when memory goes, and over an exec") {
    struct rusage first, then;
    use(16 << 20, 0);
    getrusage(RUSAGE_SELF, &first);
    use(4096, 0);
    getrusage(RUSAGE_SELF, &then);
    note("%d %d", first.ru_maxrss >= 16 << 10, then.ru_maxrss >= first.ru_maxrss);
    pid_t child = fork();
    if (child == 0) {
        use(24 << 20, 0);
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    must(wait4(child, NULL, 0, &then));
    note("%d", then.ru_maxrss >= 24 << 10);
}
BEHAVIOUR("getrusage: sleeps are voluntary switches, of the thread too; /proc/PID/status counts them") {
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    use(4096, 10);
    getrusage(RUSAGE_SELF, &after);
    note("%d", after.ru_nvcsw - before.ru_nvcsw >= 10);
    getrusage(RUSAGE_THREAD, &after);
    note("%d", after.ru_nvcsw >= 10);
    char line[256];
    long counted = -1;
    FILE *status = fopen("/proc/self/status", "re");
    while (fgets(line, sizeof line, status))
        sscanf(line, "voluntary_ctxt_switches: %ld", &counted);
    note("%d", counted >= 10);
}
BEHAVIOUR("times with bad memory, without memory") {
    struct tms times_of;
    note("%d", times(&times_of) > 0);
    note("%d", syscall(SYS_times, NULL) > 0);
    show(syscall(SYS_times, bad()));
}
static void limit(int resource, rlim_t bytes) {
    struct rlimit limits = {bytes, bytes};
    must(setrlimit(resource, &limits));
}
static void *map(size_t bytes, int rights, int flags) { return mmap(NULL, bytes, rights, flags | MAP_ANONYMOUS, -1, 0); }

BEHAVIOUR("RLIMIT_AS: mmap, mremap and brk beyond it") {
    limit(RLIMIT_AS, 64 << 20);
    show_address(map(256 << 20, PROT_NONE, MAP_PRIVATE));
    show_address(map(256 << 20, PROT_READ, MAP_SHARED));
    void *page = show_address(map(4096, PROT_READ, MAP_PRIVATE));
    show_address(mremap(page, 4096, 256 << 20, MREMAP_MAYMOVE));
    show(sbrk(256 << 20) == (void *)-1);
    show(sbrk(4096) == (void *)-1);
}
BEHAVIOUR("RLIMIT_AS below what is there: nothing more, but what is there can be given back") {
    char *pages = map(64 << 20, PROT_NONE, MAP_PRIVATE);
    limit(RLIMIT_AS, 1 << 20);
    show_address(map(4096, PROT_NONE, MAP_PRIVATE));
    show_address(mmap(pages, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    show(munmap(pages, 64 << 20));
}
BEHAVIOUR("RLIMIT_DATA: private memory to be written, not other memory") {
    limit(RLIMIT_DATA, 8 << 20);
    show_address(map(16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE));
    show_address(map(16 << 20, PROT_READ | PROT_WRITE, MAP_SHARED));
    void *pages = show_address(map(16 << 20, PROT_READ, MAP_PRIVATE));
    show(mprotect(pages, 16 << 20, PROT_READ | PROT_WRITE));
    show(mprotect(pages, 4096, PROT_READ | PROT_WRITE));
    show(sbrk(16 << 20) == (void *)-1);
}
BEHAVIOUR("RLIMIT_AS and RLIMIT_DATA are inherited by fork") {
    limit(RLIMIT_AS, 64 << 20);
    limit(RLIMIT_DATA, 8 << 20);
    IN_CHILD {
        show_address(map(256 << 20, PROT_NONE, MAP_PRIVATE));
        show_address(map(16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE));
    }
}
BEHAVIOUR("RLIMIT_MEMLOCK: a user's mlock, mlock2, MAP_LOCKED, mlockall") {
    AS(USER) {
        limit(RLIMIT_MEMLOCK, 4 * 4096);
        char *pages = map(16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE);
        show(mlock(pages, 5 * 4096));
        show(mlock(pages, 3 * 4096));
        show(mlock(pages + 4096, 3 * 4096));
        show(mlock(pages + 8 * 4096, 4096));
        show_address(map(4096, PROT_READ, MAP_PRIVATE | MAP_LOCKED));
        show(munlock(pages, 4096));
        show(syscall(SYS_mlock2, pages + 8 * 4096, 4096, 1));
        show(mlockall(MCL_CURRENT));
        show(munlockall());
        show(mlockall(MCL_FUTURE));
        show_address(map(5 * 4096, PROT_READ, MAP_PRIVATE));
        show_address(map(4 * 4096, PROT_READ, MAP_PRIVATE));
    }
}
BEHAVIOUR("RLIMIT_MEMLOCK 0 is EPERM for a user, and no limit for root") {
    char *pages = map(16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    limit(RLIMIT_MEMLOCK, 0);
    show(mlock(pages, 16 * 4096));
    show(mlockall(MCL_CURRENT));
    AS(USER) {
        show(mlock(pages, 4096));
        show(mlockall(MCL_CURRENT));
        show_address(map(4096, PROT_READ, MAP_PRIVATE | MAP_LOCKED));
        show(munlock(pages, 4096));
        show(munlockall());
    }
}
BEHAVIOUR("locks are not inherited, and end with the mapping") {
    AS(USER) {
        limit(RLIMIT_MEMLOCK, 4 * 4096);
        char *pages = map(16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE);
        show(mlock(pages, 4 * 4096));
        pid_t child = fork();
        if (child == 0) {
            show(mlock(pages + 8 * 4096, 4 * 4096));
            _exit(0);
        }
        wait_for(child);
        munmap(pages, 4 * 4096);
        show(mlock(pages + 8 * 4096, 4 * 4096));
    }
}
BEHAVIOUR("mlockall and munlock: bad flags, holes") {
    char *pages = map(3 * 4096, PROT_READ, MAP_PRIVATE);
    munmap(pages + 4096, 4096);
    show(mlockall(0));
    show(mlockall(8));
    show(mlockall(MCL_ONFAULT));
    show(mlock(pages, 3 * 4096));
    show(munlock(pages, 3 * 4096));
}
BEHAVIOUR("RLIMIT_STACK holds at once") {
    IN_CHILD {
        limit(RLIMIT_STACK, 1 << 20);
        volatile char *here = (char *)__builtin_frame_address(0);
        here[-(3 << 18)] = 1;
        note("grown");
        here[-(3 << 20)] = 1;
        note("beyond");
    }
}
BEHAVIOUR("RLIMIT_CPU is inherited") {
    struct rlimit second = {1, 5};
    must(setrlimit(RLIMIT_CPU, &second));
    IN_CHILD {
        for (;;)
            ;
    }
}
