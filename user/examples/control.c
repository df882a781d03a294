/* A control loop: a vessel is kept at 60 degrees. docs/book/real-time.md walks through it and quotes it. usage: control [stuck]
 *
 * Four processes share a page. `main`, an ordinary one, speaks with the device on the second serial line: it sends the heater's power, and a line with the
 * temperature comes back. The other three are real-time: the control loop, a logger and a watchdog. With `stuck` the loop hangs after a while, and
 * the watchdog switches the heater off. */
#include <skink/mrt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Priorities: smaller is better. Times in ms, which are ticks of the real-time clock. Temperatures in tenths of a degree, power in percent. */
enum { WATCHDOG = 1, CONTROL = 10, LOGGER = 40 };
enum { PERIOD = 10, LOG_PERIOD = 50, EXCHANGE_US = 20000 };
enum { SET_POINT = 600, MOST_POWER = 100, ENTRIES = 64, EXCHANGES = 150, STUCK_AFTER = 50 };

struct entry {
    int temperature, power;
};

static struct {
    /* Written by main, read by the loop: the newest sample. */
    volatile unsigned samples;
    volatile int temperature;
    /* Written by the loop, read by main. */
    volatile int power;
    /* Written by the watchdog: nothing heats any more. */
    volatile int is_off;
    volatile int is_over;
    /* Guarded by the mutex. */
    struct entry log[ENTRIES];
    unsigned logged, written;
    int mutex;
} *page;

static int hangs;

static void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static void become_real_time(unsigned priority, unsigned period, long watchdog)
{
    mrt_pattr_t attributes = {
        .baseprty = priority,
        .flags = period ? P_PERIODIC : 0,
        .period = period,
        .watchdog = watchdog,
        .mq_size = 8,
        .mq_flags = MQ_PRTYORDER,
    };
    check(mrt_setpattr(&attributes) == 0, "mrt_setpattr");
    check(mrt_set2rt() == 0, "mrt_set2rt");
}

static int power_for(int temperature)
{
    enum { PROPORTIONAL = 4, INTEGRAL = 40 };
    static int sum;
    int error = SET_POINT - temperature;
    sum += error;
    if (sum < 0)
        sum = 0;
    if (sum > MOST_POWER * INTEGRAL)
        sum = MOST_POWER * INTEGRAL;
    int power = error / PROPORTIONAL + sum / INTEGRAL;
    return power < 0 ? 0 : power > MOST_POWER ? MOST_POWER : power;
}

static void write_down(int temperature, int power)
{
    mrt_semdown(page->mutex, MRT_FOREVER);
    page->log[page->logged++ % ENTRIES] = (struct entry){temperature, power};
    mrt_semup(page->mutex);
}

static void control(long watchdog)
{
    unsigned seen = 0;
    become_real_time(CONTROL, PERIOD, watchdog);
    while (!page->is_over) {
        mrt_sleep(MRT_FOREVER);
        if (page->samples == seen)
            continue;
        seen = page->samples;
        int temperature = page->temperature;
        page->power = power_for(temperature);
        write_down(temperature, page->power);
        while (hangs && seen == STUCK_AFTER && !page->is_off) {
        }
    }
    mrt_set2nrt();
}

static void keep_log(void)
{
    become_real_time(LOGGER, 0, MRT_NOPROC);
    while (!page->is_over) {
        mrt_sleep(LOG_PERIOD);
        mrt_semdown(page->mutex, MRT_FOREVER);
        page->written = page->logged;
        mrt_semup(page->mutex);
    }
    mrt_set2nrt();
}

static void watch(void)
{
    mrt_msg_t message;
    mrt_msghdr_t header;
    become_real_time(WATCHDOG, 0, MRT_NOPROC);
    do {
        mrt_rcv(MRT_ANYPROC, &message, &header, MRT_FOREVER);
        if (header.mtype == MT_KRNDLINE)
            page->is_off = 1;
    } while (header.mtype != MT_KRNPROC);
    mrt_set2nrt();
}

static void exchange(FILE *device)
{
    char line[32];
    fprintf(device, "%d\n", page->is_off ? 0 : page->power);
    check(fflush(device) == 0 && fgets(line, sizeof line, device) != NULL, "the device");
    page->temperature = atoi(line);
    page->samples++;
}

static FILE *open_device(void)
{
    struct termios settings;
    FILE *device = fopen("/dev/ttyS1", "r+");
    check(device != NULL && tcgetattr(fileno(device), &settings) == 0, "/dev/ttyS1");
    cfmakeraw(&settings);
    settings.c_cflag |= CLOCAL;
    check(tcsetattr(fileno(device), TCSANOW, &settings) == 0, "tcsetattr");
    return device;
}

static long start(void (*work)(void))
{
    pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid == 0) {
        work();
        _exit(0);
    }
    mrt_pattr_t attributes;
    while (mrt_getpattr(pid, &attributes) != 0 || !(attributes.flags & P_REALTIME)) {
        check(waitpid(pid, NULL, WNOHANG) == 0, "a real-time process");
        usleep(1000);
    }
    return pid;
}

static long watchdog;

static void control_with_watchdog(void)
{
    control(watchdog);
}

int main(int count, char **arguments)
{
    hangs = count > 1 && strcmp(arguments[1], "stuck") == 0;
    FILE *device = open_device();
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(page != MAP_FAILED, "mmap");
    check(mrt_setsval(MRT_BPIP | MRT_PRTYMASK) == 0, "mrt_setsval");
    check(mrt_RTstart(20, 1000) == 0, "mrt_RTstart");
    mrt_semattr_t mutex = {.value = 1, .flags = SEM_MUTEX | SEM_PRTYORDER | SEM_PRTYINHERIT, .name = "log"};
    page->mutex = mrt_semalloc(&mutex);
    check(page->mutex >= 0, "mrt_semalloc");
    watchdog = start(watch);
    long loop = start(control_with_watchdog);
    start(keep_log);
    for (int i = 0; i < EXCHANGES; i++) {
        exchange(device);
        usleep(EXCHANGE_US);
    }
    mrt_pstat_t statistics;
    check(mrt_getpstat(loop, &statistics) == 0, "mrt_getpstat");
    printf("temperature %d.%d, heater %s, deadlines missed: %s\n", page->temperature / 10, page->temperature % 10,
           page->is_off ? "off" : "on", statistics.mdl ? "some" : "none");
    page->is_over = 1;
    while (wait(NULL) > 0) {
    }
    printf("%u samples, %u of them in the log\n", page->samples, page->written);
    return mrt_RTstop() != 0;
}
