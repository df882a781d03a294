/* faults: disturbs services while programs work, and judges what came of it.
 *
 * usage: faults FOLDER[:DEVICE:OFFSET]... The folders are on the disks to work on, the root's first; from OFFSET on the DEVICE is
 * nobody's. The harness (tools/xtask/src/faults) asks for one trial after the other over the second serial line:
 *
 *   trial NUMBER SEED SERVICE KIND VALUE BYTES COUNT CLEAN RESTART
 *       what to do; KIND: none, kill-after, poke, silence; VALUE, BYTES, CLEAN in hexadecimal; RESTART: the service is restarted to get its
 *       clean text back (1), or the text is written over in place (0)
 *   end                                                        the program ends
 *
 * and is told "ready" when the system is in order, and "done NUMBER OUTCOME STEP WHAT ERROR RESTARTS OTHERS RECOVERY_NS". tests/faults
 * explains outcomes.
 */
#define _GNU_SOURCE
#include "child.h"
#include "workload.h"
#include <stddef.h>

enum { MOST_SERVICES = 64, MOST_ROUNDS = 100 };
/* Hang detection, in the guest's own time, in which the work takes about 0.2 s undisturbed, and a stuck service 0.2 s to be found,
 * or 3 s when it exchanges messages all the same. While the guest waits, time is the host's, which may be busy with something else for
 * seconds. */
enum { WORK_LIMIT_S = 20, RETRY_LIMIT_S = 5, SETTLE_LIMIT_MS = 20000, COMMAND_LIMIT_MS = 20000, RESCUE_LIMIT_DS = 250 };

struct trial {
    unsigned number, seed;
    char service[20], kind[16];
    uint64_t value, bytes, count, clean;
    unsigned restart;
};

struct services {
    struct skink_service_record records[MOST_SERVICES];
    int count;
};

/* What the supervisor has to know of the trial that the judge is running. */
struct shared {
    struct verdict verdict;
    struct trial trial;
    /* The services before the disturbance, and when the programs were done. */
    struct services before, then;
    /* Grows as the trial goes on; 0 between trials. */
    volatile unsigned phase;
    /* The supervisor had the service killed. */
    volatile unsigned rescued;
    volatile int ended;
};
static struct shared *shared;

static int list(struct services *services)
{
    long bytes = service_call(SKINK_RS_SERVICE_CALL_LIST, "", services->records, sizeof services->records);
    services->count = bytes < 0 ? 0 : bytes / (long)sizeof *services->records;
    return bytes > 0;
}

static const struct skink_service_record *find(const struct services *services, const char *name)
{
    for (int i = 0; i < services->count; i++)
        if (strncmp(services->records[i].name.bytes, name, sizeof services->records[i].name.bytes) == 0)
            return &services->records[i];
    return NULL;
}

static unsigned restarts(const struct services *services, const char *name)
{
    const struct skink_service_record *record = find(services, name);
    return record ? record->restarts : 0;
}

static int inject(const char *service, uint64_t kind, uint64_t value, uint64_t bytes, uint64_t count)
{
    struct skink_injection injection = { kind, value, bytes, count };
    return service_call(SKINK_RS_SERVICE_CALL_INJECT, service, &injection, sizeof injection) >= 0;
}

static int disturb(const struct trial *trial)
{
    if (strcmp(trial->kind, "kill-after") == 0)
        return inject(trial->service, SKINK_CALL_INJECT_KILL_AFTER_MESSAGES, trial->value, 0, 0);
    if (strcmp(trial->kind, "poke") == 0)
        return inject(trial->service, SKINK_CALL_INJECT_POKE, trial->value, trial->bytes, trial->count);
    if (strcmp(trial->kind, "silence") == 0)
        return inject(trial->service, SKINK_CALL_INJECT_SILENCE, 0, 0, 0);
    return strcmp(trial->kind, "none") == 0;
}

static int has_died(const struct trial *trial, unsigned before)
{
    struct skink_service_record now;
    return !service_status(trial->service, &now) || now.restarts != before || now.state != SKINK_RS_STATE_UP;
}

/* The child's part. */
static void work(const struct trial *trial, unsigned restarts_before)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* So that what it starts can be ended with it. */
    setpgid(0, 0);
    workload_all(trial->service);
    if (strcmp(trial->kind, "kill-after") == 0)
        for (int round = 0; round < MOST_ROUNDS && !has_died(trial, restarts_before); round++)
            workload_main(trial->service);
    _exit(PASSED);
}

/* Takes the disturbance away: a service that runs on gets its clean text back. */
static void clean_up(const struct trial *trial, int restarted)
{
    if (strcmp(trial->kind, "kill-after") == 0)
        inject(trial->service, SKINK_CALL_INJECT_KILL_AFTER_MESSAGES, 0, 0, 0);
    else if (strcmp(trial->kind, "none") == 0 || restarted)
        return;
    else if (trial->restart)
        service_call(SKINK_RS_SERVICE_CALL_KILL, trial->service, NULL, 0);
    else if (strcmp(trial->kind, "poke") == 0)
        inject(trial->service, SKINK_CALL_INJECT_POKE, trial->value, trial->clean, trial->count);
}

/* Waits until all services are up that were before. One that is not after a long time, or null. */
static const char *settle(const struct services *before)
{
    static char name[17];
    struct timespec pause = { .tv_nsec = 1000000 };
    struct services now;
    for (int waited = 0; waited < SETTLE_LIMIT_MS; waited++) {
        snprintf(name, sizeof name, "%s", list(&now) ? "" : "rs");
        for (int i = 0; i < before->count && !*name; i++)
            if (before->records[i].state == SKINK_RS_STATE_UP && now.records[i].state != SKINK_RS_STATE_UP)
                snprintf(name, sizeof name, "%.16s", before->records[i].name.bytes);
        if (!*name)
            return NULL;
        nanosleep(&pause, NULL);
    }
    return name;
}

static const char *outcome_of(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == PASSED)
        return "passed";
    if (WIFEXITED(status) && WEXITSTATUS(status) == CORRUPTED)
        return "corrupted";
    if (WIFSIGNALED(status)) {
        verdict->error = WTERMSIG(status);
        snprintf(verdict->what, sizeof verdict->what, "killed by a signal");
    }
    return "error";
}

/* Whether a few calls work again. */
static const char *probe(void)
{
    pid_t child = fork();
    if (child == 0) {
        workload_probe();
        _exit(PASSED);
    }
    int status = child < 0 ? -1 : wait_for(child, WORK_LIMIT_S);
    if (status == -1 && child > 0)
        kill(child, SIGKILL);
    return status == -1 ? "lost" : outcome_of(status);
}

/* What the programs saw until the disturbance was over, and how the services stood then. */
static const char *disturb_and_work(const struct trial *trial, const struct services *before, struct services *then)
{
    if (!disturb(trial)) {
        snprintf(verdict->what, sizeof verdict->what, "injection failed");
        verdict->error = errno;
        return "refused";
    }
    pid_t child = fork();
    if (child == 0)
        work(trial, restarts(before, trial->service));
    int status = child < 0 ? -1 : wait_for(child, WORK_LIMIT_S);
    shared->phase++;
    list(then);
    clean_up(trial, restarts(then, trial->service) != restarts(before, trial->service));
    if (status != -1)
        return outcome_of(status);
    /* Programs that hung may go on with the service's successor; they have waited too long all the same. */
    if (child > 0 && wait_for(child, RETRY_LIMIT_S) == -1) {
        kill(-child, SIGKILL);
        wait_for(child, RETRY_LIMIT_S);
    }
    return "hung";
}

/* Tells the other side. Restarts are those until the programs were done, recovery the time from the end of the service to its successor. */
static void tell(const struct trial *trial, const char *outcome, struct verdict *seen, const struct services *before,
                 const struct services *then)
{
    struct skink_service_record now = { 0 };
    unsigned own = restarts(then, trial->service) - restarts(before, trial->service), all = 0;
    for (int i = 0; i < then->count; i++)
        all += then->records[i].restarts - before->records[i].restarts;
    service_status(trial->service, &now);
    /* vm and rs are started again by the kernel, which keeps no times. */
    const struct skink_service_record *was = find(before, trial->service);
    int is_new = was && now.ended_ns > was->ended_ns && now.ready_ns > now.ended_ns;
    uint64_t recovery_ns = is_new ? now.ready_ns - now.ended_ns : 0;
    for (char *at = seen->what; *at; at++)
        if (*at == ' ')
            *at = '_';
    line_say("done %u %s %s %s %d %u %u %llu", trial->number, outcome, *seen->step ? seen->step : "-",
             *seen->what ? seen->what : "-", seen->error, own, all - own > seen->asked ? all - own - seen->asked : 0, (unsigned long long)recovery_ns);
}

/* Whether the system is in order after the disturbance: what the programs saw, or that it is not. */
static const char *after(const char *outcome, struct verdict *seen)
{
    const char *down = settle(&shared->before);
    shared->phase++;
    if (down) {
        snprintf(seen->what, sizeof seen->what, "%s is down", down);
        return "lost";
    }
    const char *probed = probe();
    if (strcmp(probed, "passed") == 0)
        return outcome;
    *seen = *verdict;
    return strcmp(probed, "corrupted") == 0 ? probed : "lost";
}

static void run_trial(const struct trial *trial)
{
    shared->trial = *trial;
    list(&shared->before);
    shared->then = shared->before;
    seed = trial->seed;
    memset(verdict, 0, offsetof(struct verdict, records));
    shared->rescued = 0;
    shared->phase = 1;
    const char *outcome = disturb_and_work(trial, &shared->before, &shared->then);
    struct verdict seen = *verdict;
    shared->phase++;
    outcome = after(outcome, &seen);
    if (shared->rescued && (strcmp(outcome, "passed") == 0 || strcmp(outcome, "error") == 0))
        outcome = "hung";
    tell(trial, outcome, &seen, &shared->before, &shared->then);
    shared->phase = 0;
}

/* Starts the journal anew before it gets large. */
static void trim(void)
{
    char path[64];
    if (verdict->records < 1000)
        return;
    snprintf(path, sizeof path, "%s/journal", disks[0].folder);
    if (truncate(path, 0) == 0)
        verdict->records = 0;
}

/* Runs one trial after the other, as it is told. */
static void judge(void)
{
    char line[LINE_BYTES];
    for (;;) {
        struct trial trial = { 0 };
        trim();
        line_raw();
        line_say("ready");
        if (line_read(line, sizeof line, COMMAND_LIMIT_MS) < 0)
            continue;
        char *text = line_text(line);
        if (text && strcmp(text, "end") == 0) {
            shared->ended = 1;
            _exit(0);
        }
        if (text && sscanf(text, "trial %u %u %16s %15s %lx %lx %lu %lx %u", &trial.number, &trial.seed, trial.service, trial.kind,
                           &trial.value, &trial.bytes, &trial.count, &trial.clean, &trial.restart) == 9)
            run_trial(&trial);
    }
}

/* Waits until the judge has ended, or a trial does not go on. The judge itself may wait for ever for the service that it has disturbed: that
 * one is killed then, as a person would at another terminal, and its successor asked again. 0 when that does not help either. */
static int watch(void)
{
    struct timespec pause = { .tv_nsec = 100000000 };
    unsigned last = 0, waited = 0;
    while (!shared->ended) {
        nanosleep(&pause, NULL);
        waited = shared->phase == last && last != 0 ? waited + 1 : 0;
        last = shared->phase;
        if (waited == RESCUE_LIMIT_DS) {
            shared->rescued = 1;
            service_call(SKINK_RS_SERVICE_CALL_KILL, shared->trial.service, NULL, 0);
        }
        if (waited == 2 * RESCUE_LIMIT_DS)
            return 0;
    }
    return 1;
}

int main(int count, char **arguments)
{
    sigset_t child_ended;
    /* A session without a terminal: children in groups of their own may then read from the line. */
    setsid();
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ended, NULL);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count < 2 || shared == MAP_FAILED || line_open("/dev/ttyS1") < 0) {
        fprintf(stderr, "usage: faults FOLDER[:DEVICE:OFFSET]...\n");
        return 2;
    }
    verdict = &shared->verdict;
    workload_prepare(arguments + 1);
    for (;;) {
        pid_t running = fork();
        if (running == 0)
            judge();
        if (watch())
            return 0;
        /* One program is lost. Is the system? */
        struct verdict seen = *verdict;
        kill(running, SIGKILL);
        const char *outcome = after("hung", &seen);
        tell(&shared->trial, outcome, &seen, &shared->before, &shared->then);
        shared->phase = 0;
    }
}
