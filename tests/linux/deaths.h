/* The behaviours while services die: what a program is when it is compiled with -DDEATHS, for Skink alone.
 *
 * usage: PROGRAM SERVICE MOST STEP EVERY [WORD]
 *
 * Each behaviour runs undisturbed first, and then while the service is killed after its k-th message since the behaviour began, for k = 1, 2
 * and so on until the service lives to see the end, at most MOST. Each time it must show what it showed undisturbed: a line is printed
 * for each that does not, and one with the counts. Runs in which the system has told that events were lost (IN_Q_OVERFLOW) are counted
 * apart: what they show is not compared. STEP and EVERY make a sample: of every EVERY-th behaviour each STEP-th k. WORD: only behaviours
 * with that word in their name.
 */
#include "rs.h"
#include <sys/klog.h>

static const char *service;

/* The message of the service that is its last; 0: it lives. */
static unsigned last_message;

static int arm(unsigned after) {
    struct skink_injection injection = {SKINK_CALL_INJECT_KILL_AFTER_MESSAGES, after, 0, 0};
    return service_call(SKINK_RS_SERVICE_CALL_INJECT, service, &injection, sizeof injection) >= 0;
}

static void before_behaviour(void) {
    if (last_message != 0 && !arm(last_message))
        note("(injection failed)");
}

/* The kernel starts vm and rs again. */
static int is_critical(void) { return strcmp(service, "vm") == 0 || strcmp(service, "rs") == 0; }

/* Deaths of a service that the kernel starts again, of which rs does not hear: they are in the kernel's log. */
static unsigned logged_deaths(void) {
    enum { READ_ALL = 3, LOG_BYTES = 1 << 18 };
    static char known[LOG_BYTES], now[LOG_BYTES];
    static size_t known_bytes;
    static unsigned deaths;
    char line[64];
    int bytes = klogctl(READ_ALL, now, LOG_BYTES - 1);
    if (bytes < 0) {
        perror("klogctl");
        exit(2);
    }
    now[bytes] = 0;
    /* The log may have lost its beginning meanwhile. */
    size_t lost = 0;
    while (known_bytes - lost > (size_t)bytes || memcmp(now, known + lost, known_bytes - lost) != 0)
        lost++;
    snprintf(line, sizeof line, "kernel: %s is killed as injected", service);
    for (const char *at = now + (known_bytes - lost); (at = strstr(at, line)) != NULL; at++)
        deaths++;
    memcpy(known, now, bytes);
    known_bytes = bytes;
    return deaths;
}

static unsigned restarts(void) {
    struct skink_service_record now;
    if (is_critical()) {
        /* vm may still have to end the behaviour's processes, and die of that: then this mapping waits for its successor. */
        munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
        return logged_deaths();
    }
    while (!service_status(service, &now))
        sleep_ms(1);
    return now.restarts;
}

/* Waits before the next death where more would end the system: the kernel starts vm and rs again eight times in ten seconds. */
static void mind_the_kernel(void) {
    enum { FORGIVEN = 8, WINDOW_MS = 10000 };
    static unsigned deaths;
    if (is_critical() && ++deaths % FORGIVEN == 0)
        sleep_ms(WINDOW_MS + 100);
}

static int differ, lost;

/* Tries a behaviour with one k. Whether the service died of it. */
static int dies(const struct behaviour *behaviour, unsigned k, const char *expected) {
    unsigned before = restarts();
    last_message = k;
    try_once(behaviour);
    last_message = 0;
    arm(0);
    if (shown->lost)
        lost++;
    else if (strcmp(shown->text, expected) != 0) {
        printf("%s: %s killed at %u:%s instead of%s\n", behaviour->name, service, k, shown->text, expected);
        fflush(stdout);
        differ++;
    }
    if (restarts() == before)
        return 0;
    mind_the_kernel();
    return 1;
}

int main(int count, char **words) {
    if (count < 5) {
        fprintf(stderr, "usage: %s SERVICE MOST STEP EVERY [WORD]\n", words[0]);
        return 2;
    }
    service = words[1];
    unsigned most = atoi(words[2]), step = atoi(words[3]), every = atoi(words[4]), tried = 0;
    int deaths = 0;
    begin();
    for (const struct behaviour *each = __start_behaviours; each < __stop_behaviours; each++) {
        unsigned index = each - __start_behaviours;
        if (index % every != 0 || (count > 5 && strstr(each->name, words[5]) == NULL))
            continue;
        try_once(each);
        char *expected = strdup(shown->text);
        tried++;
        for (unsigned k = 1 + index % step; k <= most && dies(each, k, expected); k += step)
            deaths++;
        free(expected);
    }
    fprintf(stderr, "%s: %u behaviours, %d deaths of %s, %d with lost events, %d differ\n", words[0], tried, deaths, service, lost,
            differ);
    return differ != 0;
}
