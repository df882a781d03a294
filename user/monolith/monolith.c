/* monolith: makes a mistake in the driver of a RAM disk, copies a file, and tells what the user of the copy has seen.
 *
 * usage: monolith                  on Skink
 *        init ADDRESS BYTES TEXT   as the first program of Linux: the memory of the disk and the size of its driver's text
 *
 * The harness (tools/xtask/src/monolith) speaks with it over the second serial line (../faults/line.h). All times are the processor's
 * time-stamp counter, which is the emulated machine's time in ns since power-on on both systems.
 *
 *   here:    ready NS ADDRESS               the undisturbed copy has worked; ADDRESS is where the driver's text begins, 0: unknown
 *   harness: text ADDRESS COUNT             here: text BYTES, in hexadecimal
 *   harness: trial ADDRESS BYTES COUNT      the mistake: so many bytes, in hexadecimal, the first one lowest
 *   here:    seen OUTCOME STEP WHAT ERROR NS
 *   here:    tried                          the copy or a step of the recovery has ended, or takes too long
 *   here:    done HOW NS RESTARTS RECOVERY_NS
 *
 * OUTCOME is passed, error, corrupted, killed or hung, and NS what the copy took. HOW is what it took until a copy worked: nothing,
 * again (nothing but another try), driver (somebody restarted it) or machine (has to be restarted); then NS is the time from the failure
 * to the end of the copy that worked.
 */
#define _GNU_SOURCE
#include "../faults/child.h"
#include "../faults/line.h"
#include "copy.h"
#include "linux.h"
#include "skink.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { LINUX_ARGUMENTS = 3, COMMAND_LIMIT_MS = 1 << 30, MOST_TEXT = 64 };
/* A user takes a copy for hung after this time of the machine, of which it takes 0.2 s undisturbed; longer than Skink needs
 * to find a driver that hangs. */
enum { HUNG_S = 6, END_S = 1 };

struct system {
    int (*start)(char **arguments);
    int (*read_text)(uint64_t address, unsigned char *bytes, size_t count);
    int (*poke)(uint64_t address, uint64_t bytes, size_t count);
    int (*restart_driver)(void);
    unsigned (*restarts)(uint64_t *recovery_ns);
};

static const struct system linux_system = { linux_start, linux_read_text, linux_poke, linux_restart_driver, linux_restarts };
static const struct system skink_system = { skink_start, skink_read_text, skink_poke, skink_restart_driver, skink_restarts };
static const struct system *target;

static uint64_t now_ns(void)
{
    return __builtin_ia32_rdtsc();
}

static const char *outcome_of(int status)
{
    if (WIFSIGNALED(status)) {
        verdict->error = WTERMSIG(status);
        return "killed";
    }
    return WEXITSTATUS(status) == PASSED ? "passed" : WEXITSTATUS(status) == CORRUPTED ? "corrupted" : "error";
}

/* Has a child do `work`, which may never come back. */
static const char *try(void (*work)(void))
{
    memset(verdict, 0, sizeof *verdict);
    pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        work();
        _exit(PASSED);
    }
    int status = child < 0 ? -1 : wait_for(child, HUNG_S);
    /* So that the harness knows that the machine lives. */
    line_say("tried");
    if (status != -1)
        return outcome_of(status);
    if (child > 0) {
        kill(child, SIGKILL);
        wait_for(child, END_S);
    }
    return "hung";
}

static int passes(void (*work)(void))
{
    return strcmp(try(work), "passed") == 0;
}

/* Leaves the file system of a copy that has failed. */
static void leave(void)
{
    umount(FOLDER);
}

static void restart_driver(void)
{
    must(target->restart_driver() == 0, "restart");
}

/* What a user does whose copy has failed, until it works. */
static const char *recover(void)
{
    try(leave);
    if (passes(copy))
        return "again";
    try(leave);
    if (!passes(restart_driver))
        return "machine";
    /* A call that had waited for the driver may have mounted the file system meanwhile. */
    try(leave);
    if (passes(copy))
        return "driver";
    return "machine";
}

/* Tells what a word of the verdict is, without blanks. */
static const char *word(char *text)
{
    for (char *at = text; *at; at++)
        if (*at == ' ')
            *at = '_';
    return *text ? text : "-";
}

static void run_trial(uint64_t address, uint64_t bytes, size_t count)
{
    uint64_t recovery_ns = 0;
    unsigned before = target->restarts(&recovery_ns);
    if (target->poke(address, bytes, count) < 0) {
        line_say("refused %d", errno);
        return;
    }
    uint64_t begin = now_ns();
    const char *outcome = try(copy), *how = "nothing";
    uint64_t failed = now_ns();
    line_say("seen %s %s %s %d %llu", outcome, word(verdict->step), word(verdict->what), verdict->error,
             (unsigned long long)(failed - begin));
    if (strcmp(outcome, "passed") != 0)
        how = recover();
    uint64_t end = now_ns();
    unsigned restarts = target->restarts(&recovery_ns) - before;
    line_say("done %s %llu %u %llu", how, (unsigned long long)(end - failed), restarts,
             (unsigned long long)(restarts ? recovery_ns : 0));
}

static void tell_text(uint64_t address, size_t count)
{
    unsigned char bytes[MOST_TEXT];
    char text[2 * MOST_TEXT + 1] = "";
    int got = target->read_text(address, bytes, count < MOST_TEXT ? count : MOST_TEXT);
    for (int i = 0; i < got; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    line_say("text %s", text);
}

static void serve(void)
{
    char line[LINE_BYTES];
    for (;;) {
        unsigned long address, bytes, count;
        if (line_read(line, sizeof line, COMMAND_LIMIT_MS) < 0)
            continue;
        char *text = line_text(line);
        if (text && sscanf(text, "trial %lx %lx %lu", &address, &bytes, &count) == 3)
            run_trial(address, bytes, count);
        else if (text && sscanf(text, "text %lx %lu", &address, &count) == 2)
            tell_text(address, count);
    }
}

int main(int count, char **arguments)
{
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ended, NULL);
    /* The kernel hands init its own words, too. */
    target = getpid() == 1 && count > LINUX_ARGUMENTS ? &linux_system : &skink_system;
    verdict = mmap(NULL, sizeof *verdict, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdict == MAP_FAILED || target->start(arguments + count - LINUX_ARGUMENTS) < 0 || line_open("/dev/ttyS1") < 0) {
        perror("monolith");
        return 1;
    }
    if (strcmp(try(prepare_files), "passed") != 0 || strcmp(try(copy), "passed") != 0) {
        fprintf(stderr, "monolith: the undisturbed copy failed: %s: %s: %s\n", verdict->step, verdict->what, strerror(verdict->error));
        return 1;
    }
    line_say("ready %llu %llx", (unsigned long long)now_ns(), (unsigned long long)text_base);
    serve();
}
