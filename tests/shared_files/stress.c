/* Four processes change one file at once, through mappings and by calls, each of them its own lines of 64 bytes, of which every page has
   some of each. What each reads is what it has written last, whichever way; and what is in the file at the end too. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 4
#define PAGES 12
#define LINE 64
#define BYTES (PAGES * 4096)
#define LINES (BYTES / LINE)

static unsigned long state;

static unsigned random_below(unsigned end) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % end;
}

static unsigned char expected[BYTES];
static int file, bad;
static unsigned char *at;

/* By plain stores: what is tested is memory. */
static void fill(volatile unsigned char *line, unsigned char value) {
    for (int i = 0; i < LINE; i++) line[i] = value;
}

static void check(const char *how, int line, const unsigned char *found) {
    if (memcmp(found, expected + line * LINE, LINE) != 0 && bad++ < 5) printf("line %d by %s: %d for %d\n", line, how, *found, expected[line * LINE]);
}

/* What process `mine` does, or with `pretend` only what it leaves. */
static void work(int mine, int rounds, int pretend) {
    state = 88172645463325252ul + mine;
    for (int i = 0; i < rounds; i++) {
        unsigned char found[LINE], value = random_below(255) + 1;
        int line = random_below(LINES / PROCESSES) * PROCESSES + mine, step = random_below(16);
        unsigned char *own = expected + line * LINE;
        if (step < 9) fill(own, value);
        if (pretend) continue;
        if (step < 6) fill(at + line * LINE, value);
        else if (step < 9 && pwrite(file, own, LINE, line * LINE) != LINE) perror("pwrite");
        else if (step == 9) msync(at, BYTES, MS_SYNC);
        else if (step == 10) {
            munmap(at, BYTES);
            at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        }
        check("mapping", line, at + line * LINE);
        if (pread(file, found, LINE, line * LINE) != LINE) perror("pread");
        check("pread", line, found);
    }
}

int main(int count, char **arguments) {
    if (count < 3) return 1;
    int rounds = atoi(arguments[2]);
    file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(file, BYTES) != 0) perror("ftruncate");
    for (int mine = 0; mine < PROCESSES; mine++) {
        if (fork() != 0) continue;
        at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        work(mine, rounds, 0);
        fflush(stdout);
        _exit(bad != 0);
    }
    int status, failed = 0;
    while (wait(&status) > 0) failed |= status;
    for (int mine = 0; mine < PROCESSES; mine++) work(mine, rounds, 1);
    static unsigned char found[BYTES];
    if (pread(file, found, BYTES, 0) != BYTES) perror("pread");
    printf("%s, file %s\n", failed ? "failed" : "as written", memcmp(found, expected, BYTES) ? "different" : "the same");
    return 0;
}
