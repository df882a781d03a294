/* A million events in a keyboard's device, of which an open file that is not read keeps the newest behind a SYN_DROPPED; then one more key. Prints what
 * the file has, and what the service input took of memory for all of it. usage: event_flood PID */
#include <fcntl.h>
#include <linux/input.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EVENTS = 1000000, AT_ONCE = 64, KEPT = 64, ALLOWED_PAGES = 4 };

static int reader, writer;

static void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static long pages(const char *pid)
{
    char path[64];
    long all, resident;
    snprintf(path, sizeof path, "/proc/%s/statm", pid);
    FILE *file = fopen(path, "r");
    check(file && fscanf(file, "%ld %ld", &all, &resident) == 2, "statm");
    fclose(file);
    return resident;
}

/* Presses and releases a key that types nothing, so many times. */
static void flood(int events)
{
    static struct input_event batch[AT_ONCE];
    for (int at = 0; at < AT_ONCE; at += 2) {
        batch[at] = (struct input_event){.type = EV_KEY, .code = KEY_LEFTSHIFT, .value = at / 2 % 2 == 0};
        batch[at + 1] = (struct input_event){.type = EV_SYN, .code = SYN_REPORT};
    }
    for (int done = 0; done < events;) {
        long bytes = write(writer, batch, sizeof batch);
        check(bytes > 0, "write");
        done += bytes / (long)sizeof *batch;
    }
}

/* Tells the events that wait: how many, which is the first, which the last key. */
static void tell(void)
{
    struct input_event events[4 * KEPT];
    long bytes = read(reader, events, sizeof events);
    check(bytes > 0, "read");
    long count = bytes / (long)sizeof *events;
    printf("%s, first: type %u code %u, last key: %u\n", count <= KEPT ? "no more than 64" : "too many", events[0].type, events[0].code,
           events[count - 2].code);
}

int main(int count, char **words)
{
    reader = open("/dev/input/event0", O_RDONLY | O_NONBLOCK);
    writer = open("/dev/input/event0", O_RDWR | O_NONBLOCK);
    check(count == 2 && reader >= 0 && writer >= 0, "open");
    flood(AT_ONCE);
    long before = pages(words[1]);
    flood(EVENTS);
    long more = pages(words[1]) - before;
    printf("memory: %s\n", more <= ALLOWED_PAGES ? "as before" : "more");
    tell();
    struct input_event key[2] = {{.type = EV_KEY, .code = KEY_RIGHTSHIFT, .value = 1}, {.type = EV_SYN, .code = SYN_REPORT}};
    check(write(writer, key, sizeof key) == sizeof key, "write");
    tell();
    key[0].value = 0;
    check(write(writer, key, sizeof key) == sizeof key, "write");
    return 0;
}
