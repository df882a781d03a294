/* Sends a file over a serial line, and receives it: the experiment of the papers on driver I/O.
 * usage: transfer FILE LINE RATE...
 *
 * At each rate (bit/s) the file is sent to whoever is at the other end, and then received by way of the chip's loopback (TIOCM_LOOP), where what
 * is sent comes back: so that no byte's time of arrival depends on anything outside the machine. In loopback nobody paces the sender, so the file goes
 * around in pieces that are shorter than the 8 bytes at which the chip interrupts: as on a wire, it then interrupts some character times after the last
 * byte, and not in the middle of the access that is measured. Every byte that comes back is compared.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#ifndef TIOCM_LOOP
#define TIOCM_LOOP 0x8000
#endif

enum { PIECE_BYTES = 7 };

static void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static char *read_file(const char *path, size_t *bytes)
{
    struct stat about;
    int fd = open(path, O_RDONLY);
    check(fd >= 0 && fstat(fd, &about) == 0, path);
    *bytes = (size_t)about.st_size;
    char *content = malloc(*bytes);
    check(content && read(fd, content, *bytes) == about.st_size, path);
    close(fd);
    return content;
}

static speed_t speed(const char *rate)
{
    static const struct {
        const char *name;
        speed_t speed;
    } known[] = {{"9600", B9600}, {"19200", B19200}, {"38400", B38400}, {"115200", B115200}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(rate, known[i].name) == 0)
            return known[i].speed;
    fprintf(stderr, "transfer: there is no rate %s\n", rate);
    exit(1);
}

static void set_rate(int line, speed_t rate)
{
    struct termios settings;
    check(tcgetattr(line, &settings) == 0, "tcgetattr");
    cfmakeraw(&settings);
    settings.c_cflag |= CLOCAL | CREAD;
    cfsetspeed(&settings, rate);
    check(tcsetattr(line, TCSADRAIN, &settings) == 0, "tcsetattr");
}

static void send_all(int line, const char *content, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        ssize_t now = write(line, content + sent, bytes - sent);
        check(now > 0, "write");
        sent += (size_t)now;
    }
    check(tcdrain(line) == 0, "tcdrain");
}

static void receive_all(int line, const char *content, size_t bytes)
{
    int loop = TIOCM_LOOP;
    check(ioctl(line, TIOCMBIS, &loop) == 0, "TIOCMBIS");
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        char piece[PIECE_BYTES];
        size_t length = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        check(write(line, content + at, length) == (ssize_t)length, "write");
        for (size_t got = 0; got < length;) {
            ssize_t now = read(line, piece + got, length - got);
            check(now > 0, "read");
            got += (size_t)now;
        }
        if (memcmp(piece, content + at, length) != 0) {
            fprintf(stderr, "transfer: the bytes from %zu on came back as others\n", at);
            exit(1);
        }
    }
    check(ioctl(line, TIOCMBIC, &loop) == 0, "TIOCMBIC");
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: transfer FILE LINE RATE...\n");
        return 1;
    }
    size_t bytes;
    char *content = read_file(argv[1], &bytes);
    int line = open(argv[2], O_RDWR | O_NOCTTY);
    check(line >= 0, argv[2]);
    for (int i = 3; i < argc; i++) {
        set_rate(line, speed(argv[i]));
        send_all(line, content, bytes);
        receive_all(line, content, bytes);
    }
    /* Any other rate: it ends the measurement of the last one. */
    set_rate(line, B9600);
    return 0;
}
