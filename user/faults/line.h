/* The talk with the harness over the second serial line: lines "@TEXT*SUM", where SUM is the FNV-1a hash of TEXT in eight hexadecimal
 * digits. What the line garbles is not taken for something else. tools/xtask/src/faults/line.rs is the other side.
 */
#ifndef LINE_H
#define LINE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { LINE_BYTES = 256 };

static int line_fd = -1;

static inline uint32_t line_sum(const char *text, size_t bytes)
{
    uint32_t sum = 0x811c9dc5;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ (unsigned char)text[i]) * 0x01000193;
    return sum;
}

/* Makes the line raw, also again when the terminals have begun anew. 0, or -1 with errno. */
static inline int line_raw(void)
{
    struct termios settings;
    if (tcgetattr(line_fd, &settings) < 0)
        return -1;
    cfmakeraw(&settings);
    return tcsetattr(line_fd, TCSANOW, &settings);
}

/* Opens the line. 0, or -1 with errno. */
static inline int line_open(const char *path)
{
    line_fd = open(path, O_RDWR | O_NOCTTY);
    return line_fd < 0 ? -1 : line_raw();
}

/* Writes all of it. 0, or -1 with errno. */
static inline int line_write(const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(line_fd, text, bytes);
        if (written <= 0)
            return -1;
        text += written;
        bytes -= written;
    }
    return 0;
}

/* Sends one line. 0, or -1 with errno. */
static inline int line_say(const char *format, ...)
{
    char line[LINE_BYTES] = "@";
    va_list arguments;
    va_start(arguments, format);
    int length = 1 + vsnprintf(line + 1, sizeof line - 16, format, arguments);
    va_end(arguments);
    length += snprintf(line + length, 16, "*%08x\n", line_sum(line + 1, length - 1));
    return line_write(line, length);
}

/* Reads up to a newline, which is not stored. Length; -1 with errno: error, or ETIMEDOUT after `limit_ms` without a byte. */
static inline int line_read(char *line, size_t room, int limit_ms)
{
    size_t length = 0;
    for (;;) {
        struct pollfd wait = { .fd = line_fd, .events = POLLIN };
        int ready = poll(&wait, 1, limit_ms);
        if (ready <= 0) {
            if (ready == 0)
                errno = ETIMEDOUT;
            return -1;
        }
        char bytes[LINE_BYTES];
        /* The other side sends nothing before it is asked, so nothing follows the newline. */
        ssize_t got = read(line_fd, bytes, sizeof bytes);
        if (got <= 0)
            return -1;
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] == '\n') {
                line[length] = 0;
                return (int)length;
            }
            if (length + 1 < room)
                line[length++] = bytes[i];
        }
    }
}

/* The text of an intact line, or null. Changes the line. */
static inline char *line_text(char *line)
{
    char *star = strrchr(line, '*');
    if (line[0] != '@' || !star || strlen(star) != 9)
        return NULL;
    if (strtoul(star + 1, NULL, 16) != line_sum(line + 1, star - line - 1))
        return NULL;
    *star = 0;
    return line + 1;
}

#endif
