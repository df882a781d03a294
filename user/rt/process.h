/* What the experiments with real-time processes have in common. */
#ifndef PROCESS_H
#define PROCESS_H

#include <skink/mrt.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../bench/ticks.h"

/* 1000 ticks of the real-time clock a second. */
enum { HARMONIC = 20, REFRESH = 1000 };

static inline void begin_real_time(uint64_t options)
{
    check(mrt_setsval(options) == 0, "mrt_setsval");
    check(mrt_RTstart(HARMONIC, REFRESH) == 0, "mrt_RTstart");
}

static inline void become_real_time(unsigned priority, uint64_t period)
{
    mrt_pattr_t mine = {
        .flags = period ? P_PERIODIC : 0, .period = period, .baseprty = priority, .watchdog = MRT_NOPROC, .mq_flags = MQ_PRTYORDER};
    check(mrt_setpattr(&mine) == 0, "mrt_setpattr");
    check(mrt_set2rt() == 0, "mrt_set2rt");
}

static inline int semaphore(const char *name, long value, uint64_t flags)
{
    mrt_semattr_t wanted = {.value = value, .flags = flags};
    memcpy(wanted.name, name, strnlen(name, sizeof wanted.name));
    int id = mrt_semalloc(&wanted);
    check(id >= 0, name);
    return id;
}

/* Comes back when somebody waits for the semaphore. */
static inline void until_waited_for(int id)
{
    mrt_semint_t internals;
    do {
        usleep(1000);
        check(mrt_semint(id, &internals) == 0, "mrt_semint");
    } while (internals.inq == 0);
}

/* A process that does this work and ends well. */
static inline pid_t child(void (*work)(void))
{
    pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid == 0) {
        work();
        _exit(0);
    }
    return pid;
}

static inline void wait_for(pid_t pid)
{
    int status;
    check(waitpid(pid, &status, 0) == pid && status == 0, "a real-time process");
}

static inline void *shared_memory(size_t bytes)
{
    void *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "mmap");
    return memory;
}

#endif
