/* Log lines of a service, for the kernel's console and log. */
#include <skink/service.h>
#include <stdarg.h>
#include <skink/memory.h>

/* Capacity of a line; the rest is truncated. */
enum { LINE_BYTES = 256 };

struct line {
    char bytes[LINE_BYTES];
    size_t used;
};

static void add(struct line *line, const char *text, size_t bytes)
{
    size_t room = LINE_BYTES - line->used;
    size_t taken = bytes < room ? bytes : room;
    memcpy(line->bytes + line->used, text, taken);
    line->used += taken;
}

static void add_number(struct line *line, unsigned value, unsigned base)
{
    char digits[10];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    add(line, digits + at, sizeof digits - at);
}

/* Returns the name of this service, from the kernel. */
static void add_name(struct line *line)
{
    static struct skink_thread_info self;
    if (!self.name.bytes[0])
        kernel_call(SKINK_SYS_GETINFO,
                    (const uint64_t[6]){SKINK_INFO_THREAD, service_start()->endpoint & 0xfff, (uintptr_t)&self, sizeof self},
                    NULL);
    const char *end = memchr(self.name.bytes, 0, sizeof self.name.bytes);
    add(line, self.name.bytes, end ? (size_t)(end - self.name.bytes) : sizeof self.name.bytes);
    add(line, ": ", 2);
}

static void add_value(struct line *line, char conversion, va_list *values)
{
    if (conversion == 's') {
        const char *text = va_arg(*values, const char *);
        add(line, text, strlen(text));
    } else if (conversion == 'd') {
        int value = va_arg(*values, int);
        if (value < 0)
            add(line, "-", 1);
        add_number(line, value < 0 ? -(unsigned)value : (unsigned)value, 10);
    } else if (conversion == 'u' || conversion == 'x') {
        add_number(line, va_arg(*values, unsigned), conversion == 'x' ? 16 : 10);
    } else {
        add(line, &conversion, 1);
    }
}

void service_log(const char *format, ...)
{
    struct line line = {.used = 0};
    va_list values;
    va_start(values, format);
    add_name(&line);
    for (const char *at = format; *at; at++) {
        if (*at == '%' && at[1])
            add_value(&line, *++at, &values);
        else
            add(&line, at, 1);
    }
    va_end(values);
    if (line.used == LINE_BYTES)
        line.used--;
    add(&line, "\n", 1);
    /* A service without the right to Diag logs nothing. */
    kernel_call(SKINK_SYS_DIAG, (const uint64_t[6]){(uintptr_t)line.bytes, line.used}, NULL);
}
