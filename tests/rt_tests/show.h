/* What the programs here print of a call: its result, or the name of its error. Wants _GNU_SOURCE. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void show(const char *what, long result) {
    if (result < 0)
        printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld\n", what, result);
}
