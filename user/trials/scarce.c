/* scarce: lets the allocations of a service fail, one after the other, while programs work.
 *
 * usage: scarce FIRST LAST SERVICE...
 *
 * For each service and each N from FIRST to LAST the N-th allocation of the service fails during the workload below. A call may
 * then say that memory is exhausted; whatever says that it has succeeded must have done its work, a bystander notices nothing, and
 * afterwards the same workload passes. Prints one line for each service: how many allocations met an error, or what went wrong.
 */
#define _GNU_SOURCE
#include "../rs.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/i2c-dev.h>
#include <linux/i2c.h>
#include <linux/input.h>
#include <linux/kd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

enum { BYTES = 20000, EVENT_MS = 2000 };

/* Errors that stand for memory that is exhausted. */
static int is_shortage(int error)
{
    return error == ENOMEM || error == EAGAIN || error == ENOBUFS;
}

/* Where a workload has got to. */
enum result { PASSED, SHORT, WRONG };
static const char *wrong_step;
static int wrong_error;

static enum result failed(const char *step)
{
    if (is_shortage(errno))
        return SHORT;
    wrong_step = step;
    wrong_error = errno;
    return WRONG;
}

#define TRY(step, condition)            \
    do {                                \
        errno = 0;                      \
        if (!(condition))               \
            return failed(step);        \
    } while (0)

static char content(size_t at, unsigned seed)
{
    return (char)(at * 31 + seed * 7 + at / 251);
}

/* Writes a file, reads it back by another name, and removes it. */
static enum result file_work(const char *folder, unsigned seed)
{
    static char bytes[BYTES], back[BYTES];
    char path[64], other[64];
    snprintf(path, sizeof path, "%s/scarce.%u", folder, seed);
    snprintf(other, sizeof other, "%s/scarce.%u.b", folder, seed);
    for (size_t at = 0; at < BYTES; at++)
        bytes[at] = content(at, seed);
    int file;
    TRY("create", (file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600)) >= 0);
    enum result result = PASSED;
    errno = 0;
    if (write(file, bytes, BYTES) != BYTES || fsync(file) != 0)
        result = failed("write");
    errno = 0;
    if (result == PASSED && rename(path, other) != 0)
        result = failed("rename");
    if (result == PASSED && (pread(file, back, BYTES, 0) != BYTES || memcmp(bytes, back, BYTES) != 0))
        result = failed("read");
    close(file);
    errno = 0;
    if (unlink(other) != 0 && errno != ENOENT && result == PASSED)
        result = failed("unlink");
    errno = 0;
    if (unlink(path) != 0 && errno != ENOENT && result == PASSED)
        result = failed("unlink");
    return result;
}

static enum result pipe_work(void)
{
    int ends[2];
    char byte = 0;
    TRY("pipe", pipe(ends) == 0);
    struct pollfd ready = { .fd = ends[0], .events = POLLIN };
    enum result result = PASSED;
    errno = 0;
    if (write(ends[1], "x", 1) != 1 || poll(&ready, 1, 0) != 1 || read(ends[0], &byte, 1) != 1 || byte != 'x')
        result = failed("pipe");
    close(ends[0]);
    close(ends[1]);
    return result;
}

static volatile sig_atomic_t signals;

static void count(int number)
{
    (void)number;
    signals++;
}

static enum result signal_work(void)
{
    struct sigaction action = { .sa_handler = count };
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
    struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
    signals = 0;
    TRY("sigaction", sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
    TRY("kill", kill(getpid(), SIGUSR1) == 0);
    TRY("timer_create", timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    errno = 0;
    if (timer_settime(timer, 0, &soon, NULL) != 0) {
        int error = errno;
        timer_delete(timer);
        errno = error;
        return failed("timer_settime");
    }
    struct timespec pause = { .tv_nsec = 5000000 };
    /* The signal interrupts it. */
    errno = 0;
    int has_slept = nanosleep(&pause, NULL) == 0 || errno == EINTR;
    int error = errno;
    timer_delete(timer);
    errno = has_slept ? 0 : error;
    return has_slept && signals == 2 ? PASSED : failed("signals");
}

static enum result memory_work(void)
{
    char *memory;
    TRY("mmap", (memory = mmap(NULL, 16 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
    for (int page = 0; page < 16; page++)
        memory[page << 12] = (char)page;
    enum result result = PASSED;
    errno = 0;
    if (mprotect(memory, 4 << 12, PROT_READ) != 0 || memory[3 << 12] != 3)
        result = failed("mprotect");
    munmap(memory, 16 << 12);
    return result;
}

/* A child that runs a program, and its status. */
static enum result process_work(void)
{
    pid_t child;
    int status = 0;
    TRY("fork", (child = fork()) >= 0);
    if (child == 0) {
        execl("/bin/true", "true", NULL);
        _exit(is_shortage(errno) ? 75 : 99);
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR && !is_shortage(errno))
            return failed("waitpid");
    if (status == 0)
        return PASSED;
    /* exec fails after the point of no return, or the loader's mmap has no memory: the program ends. */
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 75 || WEXITSTATUS(status) == 127))
        return SHORT;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return SHORT;
    fprintf(stderr, "a child has ended with status %#x\n", status);
    errno = 0;
    return failed("child");
}

static enum result proc_work(void)
{
    char text[256];
    int file;
    TRY("/proc", (file = open("/proc/self/stat", O_RDONLY)) >= 0);
    errno = 0;
    enum result result = read(file, text, sizeof text) > 0 ? PASSED : failed("/proc");
    close(file);
    return result;
}

/* A text on a terminal of the screen, which is to be seen there, and the font that it is drawn in. */
static enum result console_work(unsigned seed)
{
    static unsigned char glyphs[32 * 512];
    char text[32], seen[32];
    int length = snprintf(text, sizeof text, "\x1b[2J\x1b[HSCARCE %u", seed), head = 7;
    struct console_font_op font = { .op = KD_FONT_OP_GET, .width = 8, .height = 32, .charcount = 512, .data = glyphs };
    int terminal, picture = -1;
    TRY("/dev/tty2", (terminal = open("/dev/tty2", O_RDWR | O_NOCTTY)) >= 0);
    enum result result = PASSED;
    errno = 0;
    if (write(terminal, text, length) != length || tcdrain(terminal) != 0)
        result = failed("write to a terminal");
    errno = 0;
    if (result == PASSED && ioctl(terminal, KDFONTOP, &font) != 0)
        result = failed("KDFONTOP");
    errno = 0;
    if (result == PASSED && ((picture = open("/dev/vcs2", O_RDONLY)) < 0 || read(picture, seen, length - head) != length - head ||
                             memcmp(seen, text + head, length - head) != 0))
        result = failed("/dev/vcs2");
    if (picture >= 0)
        close(picture);
    close(terminal);
    return result;
}

static enum result put_shift(int keyboard, int value)
{
    struct input_event key[2] = { { .type = EV_KEY, .code = KEY_LEFTSHIFT, .value = value }, { .type = EV_SYN } };
    TRY("write to event0", write(keyboard, key, sizeof key) == sizeof key);
    return PASSED;
}

/* A key that types nothing comes back to whoever has the keyboard open, once. */
static enum result input_work(void)
{
    struct input_event seen[2];
    int keyboard;
    TRY("event0", (keyboard = open("/dev/input/event0", O_RDWR | O_NONBLOCK)) >= 0);
    struct pollfd ready = { .fd = keyboard, .events = POLLIN };
    /* It may still be pressed, if its release met an error before. */
    enum result result = put_shift(keyboard, 0);
    while (result == PASSED && read(keyboard, seen, sizeof seen) > 0)
        ;
    if (result == PASSED)
        result = put_shift(keyboard, 1);
    errno = 0;
    if (result == PASSED && poll(&ready, 1, EVENT_MS) != 1)
        result = failed("poll of event0");
    errno = 0;
    if (result == PASSED && (read(keyboard, seen, sizeof seen) != sizeof seen || seen[0].code != KEY_LEFTSHIFT || seen[0].value != 1))
        result = failed("read of event0");
    enum result released = put_shift(keyboard, 0);
    close(keyboard);
    return released > result ? released : result;
}

/* A byte of a memory module's EEPROM, which is always the same. */
static enum result bus_work(void)
{
    static int known = -1;
    union i2c_smbus_data data = { 0 };
    struct i2c_smbus_ioctl_data transfer = { I2C_SMBUS_READ, 2, I2C_SMBUS_BYTE_DATA, &data };
    int bus;
    TRY("i2c-0", (bus = open("/dev/i2c-0", O_RDWR)) >= 0);
    enum result result = PASSED;
    errno = 0;
    if (ioctl(bus, I2C_SLAVE, 0x50) != 0 || ioctl(bus, I2C_SMBUS, &transfer) != 0)
        result = failed("i2c-0");
    else if (known < 0)
        known = data.byte;
    errno = 0;
    if (result == PASSED && data.byte != known)
        result = failed("a byte of i2c-0");
    close(bus);
    return result;
}

static enum result work(unsigned seed)
{
    enum result worst = PASSED;
    enum result results[] = { pipe_work(),        memory_work(),  file_work("/tmp", seed), file_work("/dev/shm", seed),
                              process_work(),     signal_work(),  proc_work(),
                              console_work(seed), input_work(),   bus_work() };
    for (size_t at = 0; at < sizeof results / sizeof *results; at++)
        if (results[at] > worst)
            worst = results[at];
    return worst;
}

static int inject(const char *service, uint64_t n)
{
    struct skink_injection injection = { SKINK_CALL_INJECT_ALLOCATION, n, 0, 0 };
    return service_call(SKINK_RS_SERVICE_CALL_INJECT, service, &injection, sizeof injection) >= 0;
}

static long restarts(const char *service)
{
    struct skink_service_record record;
    return service_status(service, &record) ? (long)record.restarts : -1;
}

/* Another process, which does nothing but go on: it echoes bytes through two pipes, made before any allocation fails. */
struct bystander {
    pid_t process;
    int to, from;
};

static struct bystander start_bystander(void)
{
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0)
        exit(2);
    pid_t process = fork();
    if (process == 0) {
        char byte;
        close(to[1]);
        close(from[0]);
        while (read(to[0], &byte, 1) == 1)
            if (write(from[1], &byte, 1) != 1)
                _exit(1);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    return (struct bystander){ process, to[1], from[0] };
}

static int still_goes_on(struct bystander *bystander)
{
    char byte = 0;
    return write(bystander->to, "y", 1) == 1 && read(bystander->from, &byte, 1) == 1 && byte == 'y';
}

static int trouble_with(const char *service, unsigned first, unsigned last, struct bystander *bystander)
{
    unsigned shortages = 0;
    long before = restarts(service);
    for (unsigned n = first; n <= last; n++) {
        if (!inject(service, n)) {
            printf("%s: cannot inject: %s\n", service, strerror(errno));
            return 1;
        }
        enum result result = work(n);
        inject(service, 0);
        if (result == WRONG || work(n) != PASSED || !still_goes_on(bystander)) {
            printf("%s: allocation %u: wrong at %s: %s\n", service, n, wrong_step ? wrong_step : "the repetition", strerror(wrong_error));
            return 1;
        }
        shortages += result == SHORT;
    }
    if (before < 0 || restarts(service) != before) {
        printf("%s has died\n", service);
        return 1;
    }
    fprintf(stderr, "%s: %u of %u met an error\n", service, shortages, last - first + 1);
    printf("%s goes on\n", service);
    return 0;
}

int main(int count_of_words, char **words)
{
    if (count_of_words < 4) {
        fprintf(stderr, "usage: scarce FIRST LAST SERVICE...\n");
        return 2;
    }
    unsigned first = (unsigned)atoi(words[1]), last = (unsigned)atoi(words[2]);
    struct bystander bystander = start_bystander();
    int troubles = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int at = 3; at < count_of_words; at++)
        troubles += trouble_with(words[at], first, last, &bystander);
    return troubles != 0;
}
