/* How a step of the work ends the process: with the status FAILED when a call gave an error, with CORRUPTED when it gave wrong data
 * without one. Which step it was, and why, stands in `verdict`, in memory shared with the parent. All content is a function of position
 * and key, so that wrong bytes are recognised without another copy.
 */
#ifndef VERDICT_H
#define VERDICT_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { PASSED = 0, FAILED = 10, CORRUPTED = 11 };

/* Why a step ended the process. */
struct verdict {
    char step[24], what[40];
    int error;
    /* Services that the work itself had restarted. */
    unsigned asked;
    /* Records that were acknowledged in the journal, which no failure may lose. */
    unsigned records;
};
static struct verdict *verdict;

static inline void end(int status, const char *what)
{
    verdict->error = status == FAILED ? errno : 0;
    snprintf(verdict->what, sizeof verdict->what, "%s", what);
    _exit(status);
}

/* Nobody but the step's author can know better than the call whether it failed. */
static inline void must(int good, const char *what)
{
    if (!good)
        end(FAILED, what);
}

/* The call says it did it; did it? */
static inline void same(int good, const char *what)
{
    if (!good)
        end(CORRUPTED, what);
}

static inline unsigned char content(unsigned key, size_t position)
{
    uint32_t mixed = (uint32_t)position * 0x9e3779b1u + key * 0x85ebca6bu;
    return (mixed ^ mixed >> 15) >> 7;
}

static void fill(unsigned char *bytes, size_t length, unsigned key, size_t position)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = content(key, position + i);
}

static int is_filled(const unsigned char *bytes, size_t length, unsigned key, size_t position)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != content(key, position + i))
            return 0;
    return 1;
}

#endif
