/* lp: a driver in C for the first parallel port (IEEE 1284 compatibility mode: the Centronics printer interface of the PC), /dev/lp0.
 *
 * A byte is sent by three accesses: data, strobe on, strobe off. The printer acknowledges it by an interrupt. A write completes when
 * its last byte is sent; on a time-out it returns the bytes printed, or -EIO.
 *
 * The argument `io` of the system file selects the functions for port accesses: `system` (sys_inb: messages to the SYSTEM task),
 * `hal` (hsys_inb: the HAL trap) or `bare` (i386inb: the instruction itself, which works where `io_way` is `emulate` or `direct`).
 *
 * After a crash in the middle of a write vfs repeats it, and the printer prints it again from the start. */
#include <skink/chardev.h>

enum { DATA = 0x378, STATUS = 0x379, CONTROL = 0x37a, IRQ = 7 };

/* Status register. */
enum { READY = 0x80, PAPER_OUT = 0x20, SELECTED = 0x10, NO_ERROR = 0x08 };
/* Control register. */
enum { STROBE = 0x01, NO_RESET = 0x04, SELECT = 0x08, INTERRUPT = 0x10, IDLE = NO_RESET | SELECT | INTERRUPT };

/* The ioctl of lp(4) that reads the status register. */
enum { LPGETSTATUS = 0x060b };

enum { CHUNK_BYTES = 256 };
/* Polls of a printer that is not ready yet. It acknowledges a byte a moment before it is ready for the next one. */
enum { LOOKS = 8 };
static const uint64_t PATIENCE_NS = 500000000;

/* Port accesses; they return 0 or a negative error. */
struct way {
    const char *name;
    int (*in)(port_t port, uint8_t *value);
    int (*out)(port_t port, uint8_t value);
};

static int hal_in(port_t port, uint8_t *value)
{
    int result = hsys_inb(port);
    if (result >= 0)
        *value = (uint8_t)result;
    return result < 0 ? result : OK;
}

static int bare_in(port_t port, uint8_t *value)
{
    *value = (uint8_t)i386inb(port);
    return OK;
}

static int bare_out(port_t port, uint8_t value)
{
    i386outb(port, value);
    return OK;
}

static const struct way WAYS[] = {
    {"hal", hal_in, hsys_outb},
    {"system", sys_inb, sys_outb},
    {"bare", bare_in, bare_out},
};

static const struct way *way;
static const int hook = 0;

/* The write in progress. */
static struct {
    bool busy;
    message request;
    struct client client;
    /* Bytes sent so far, and when the alarm was set. */
    uint64_t printed, printed_before;
    /* The part that has been fetched: `chunk_at` of `chunk_bytes` are printed. */
    uint8_t chunk[CHUNK_BYTES];
    size_t chunk_bytes, chunk_at;
} job;

static uint64_t now_ns(void)
{
    return (uint64_t)kernel_call(SKINK_SYS_TIME, (const uint64_t[6]){0}, NULL);
}

/* Returns the status register, or a negative error. */
static int status(void)
{
    uint8_t value = 0;
    int result = way->in(STATUS, &value);
    return result < 0 ? result : value;
}

static bool is_ready(void)
{
    for (int look = 0; look < LOOKS; look++) {
        int now = status();
        if (now >= 0 && (now & (READY | PAPER_OUT | SELECTED | NO_ERROR)) == (READY | SELECTED | NO_ERROR))
            return true;
    }
    return false;
}

static int print_byte(uint8_t byte)
{
    int result = way->out(DATA, byte);
    if (result == OK)
        result = way->out(CONTROL, IDLE | STROBE);
    if (result == OK)
        result = way->out(CONTROL, IDLE);
    return result;
}

/* Completes the write: bytes printed take precedence over an error. */
static void finish(int error)
{
    job.busy = false;
    sys_setalarm(0);
    service_answer(&job.request, job.printed ? (int64_t)job.printed : error);
}

/* Fetches the next chunk, unless the write is done. */
static int fetch(void)
{
    if (job.chunk_at < job.chunk_bytes)
        return OK;
    uint64_t left = job.client.bytes - job.printed;
    job.chunk_at = 0;
    job.chunk_bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    return client_fetch(&job.client, job.printed, job.chunk, job.chunk_bytes);
}

/* Prints until the printer is busy. It interrupts when it is ready again. */
static void go_on(void)
{
    while (job.busy && is_ready()) {
        int result = job.printed < job.client.bytes ? fetch() : OK;
        if (result == OK && job.printed < job.client.bytes)
            result = print_byte(job.chunk[job.chunk_at]);
        if (result != OK || job.printed == job.client.bytes) {
            finish(result);
            return;
        }
        job.chunk_at++;
        job.printed++;
    }
}

static int64_t lp_open(uint64_t minor)
{
    return minor == 0 ? OK : -ENXIO;
}

static int64_t lp_write(const message *m, uint64_t minor, const struct client *client)
{
    if (minor != 0)
        return -ENXIO;
    if (job.busy)
        return -EBUSY;
    if (client->bytes == 0)
        return 0;
    if (REQUEST((message *)m, chardev_write)->flags & SKINK_CHARDEV_NONBLOCK && !is_ready())
        return -EAGAIN;
    job.busy = true;
    job.request = *m;
    job.client = *client;
    job.printed = job.printed_before = 0;
    job.chunk_bytes = job.chunk_at = 0;
    sys_setalarm(now_ns() + PATIENCE_NS);
    go_on();
    return CHARDEV_LATER;
}

static int64_t lp_control(const message *m, uint64_t request, const struct client *client)
{
    (void)m;
    if (request != LPGETSTATUS)
        return -ENOTTY;
    int value = status();
    return value < 0 ? value : client_put(client, 0, &value, sizeof value);
}

static void lp_cancel(endpoint_t requester, uint64_t tag)
{
    if (job.busy && job.request.source == requester && job.request.words[6] == tag)
        finish(-EINTR);
}

static void lp_interrupt(uint64_t hooks)
{
    (void)hooks;
    go_on();
}

/* Handles the time-out. A printer that has made progress gets another period. */
static void lp_alarm(uint64_t time_ns)
{
    go_on();
    if (!job.busy)
        return;
    if (job.printed == job.printed_before) {
        finish(-EIO);
        return;
    }
    job.printed_before = job.printed;
    sys_setalarm(time_ns + PATIENCE_NS);
}

static int set_up(void)
{
    int result = way->out(CONTROL, SELECT);
    if (result == OK)
        result = way->out(CONTROL, IDLE);
    /* Without a port the bus floats. */
    int value = result == OK ? status() : result;
    if (value == 0xff)
        return -ENXIO;
    if (value < 0)
        return value;
    result = sys_irqsetpolicy(IRQ, SKINK_KERNEL_IRQ_REENABLE, &hook);
    return result == OK ? sys_irqenable(&hook) : result;
}

int main(void)
{
    way = &WAYS[0];
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
        if (service_argument_is("io", WAYS[i].name))
            way = &WAYS[i];
    int result = set_up();
    if (result != OK)
        service_not_ready(result);
    service_log("the printer port is reached by %s", way->name);
    static const struct chardev_driver driver = {
        .open = lp_open,
        .write = lp_write,
        .control = lp_control,
        .cancel = lp_cancel,
        .interrupt = lp_interrupt,
        .alarm = lp_alarm,
    };
    chardev_run(&driver);
}
