/* What the trials of MINIX4RT have in common. A scene is a few processes, each real-time with its own priority, which write what happens to them
 * into one string in shared memory: real-time processes make no calls that print. Scenes are deterministic, because a process of a better
 * priority always runs until it waits, and the parent, which is ordinary, runs when all of them wait. */
#ifndef TRIAL_H
#define TRIAL_H

#include <signal.h>
#define SKINK_LONG_NAMES
#include <skink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACTORS = 8, STORY = 200 };

static struct {
    volatile unsigned length;
    volatile char story[STORY];
    volatile int has_arrived[ACTORS];
    volatile long pids[ACTORS];
    volatile long numbers[16];
} *shared;

static int failures;
static int self;

static inline void expect_number(const char *what, long got, long wanted)
{
    if (got != wanted) {
        printf("%s gave %ld instead of %ld\n", what, got, wanted);
        failures++;
    }
}

#define EXPECT(call, wanted) expect_number(#call, (call), (wanted))

/* For real-time processes: adds a word to the story. */
static inline void tell(const char *word)
{
    if (shared->length && shared->length < STORY)
        shared->story[shared->length++] = ' ';
    for (; *word && shared->length < STORY; word++)
        shared->story[shared->length++] = *word;
}

static inline void tell_result(const char *who, long result)
{
    static const struct {
        long number;
        const char *name;
    } NAMES[] = {{0, "ok"}, {E_MRT_TIMEOUT, "timeout"}, {E_TRY_AGAIN, "again"}, {E_MRT_EXITING, "exiting"}, {-ELOCKED, "locked"},
                 {E_MRT_RTMODE, "rtmode"}, {E_MRT_MQFULL, "full"}, {-EPERM, "perm"}, {E_MRT_UNSLEEP, "unsleep"}, {E_MRT_BADPRTY, "badprty"}};
    tell(who);
    for (unsigned i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].number == result) {
            tell(NAMES[i].name);
            return;
        }
    tell("?");
}

static inline void expect_story(const char *scene, const char *wanted)
{
    char story[STORY + 1] = {0};
    memcpy(story, (const char *)shared->story, shared->length);
    if (strcmp(story, wanted)) {
        printf("%s: %s\n  instead of: %s\n", scene, story, wanted);
        failures++;
    }
    shared->length = 0;
}

static inline int semaphore(const char *name, long value, uint64_t flags, unsigned ceiling)
{
    mrt_semattr_t wanted = {.value = value, .flags = flags, .priority = ceiling};
    memcpy(wanted.name, name, strnlen(name, sizeof wanted.name));
    return mrt_semalloc(&wanted);
}

static inline mrt_pattr_t attributes(unsigned priority)
{
    return (mrt_pattr_t){
        .baseprty = priority, .watchdog = MRT_NOPROC, .mq_size = 8, .mq_flags = MQ_PRTYORDER | MQ_PRTYINHERIT};
}

/* Starts actor number `who`, and comes back when it waits. It becomes real-time, does its work, and ends. */
static inline void start_with(int who, mrt_pattr_t mine, void (*work)(void))
{
    shared->has_arrived[who] = 0;
    pid_t pid = fork();
    if (pid == 0) {
        self = who;
        shared->pids[who] = getpid();
        int result = mrt_setpattr(&mine);
        if (result == 0)
            result = mrt_set2rt();
        shared->has_arrived[who] = 1;
        if (result == 0)
            work();
        else
            tell_result("set2rt", result);
        _exit(0);
    }
    while (!shared->has_arrived[who])
        usleep(1000);
}

static inline void start(int who, unsigned priority, void (*work)(void))
{
    start_with(who, attributes(priority), work);
}

static inline void end_of_scene(void)
{
    while (wait(NULL) > 0) {
    }
}

static inline void begin_trials(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static inline int end_trials(const char *name)
{
    printf("%s: %s\n", name, failures ? "failed" : "as it should be");
    return failures != 0;
}

/* Effective priority of an actor, for its parent. */
static inline long priority_of(int who)
{
    mrt_pint_t internals = {0};
    int result = mrt_getpint(shared->pids[who], &internals);
    return result ? result : (long)internals.priority;
}

#endif
