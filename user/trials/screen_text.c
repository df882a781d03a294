/* What text on the screen costs: a line that scrolls, until all is on the screen, and the way from a key to the changed pixel.
 *
 * On Skink and on Linux, with a screen of 32 bits a pixel. The second terminal is used, which no shell reads. A key is put in where the
 * keyboard's driver would put it, by a write to its event device: what the interrupt and the driver cost is not in it. */
#include <fcntl.h>
#include <linux/fb.h>
#include <linux/input.h>
#include <linux/kd.h>
#include <linux/vt.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "../bench/ticks.h"

enum { LINES = 4000, KEYS = 50, CELL_WIDTH = 8, CELL_HEIGHT = 16, WATCHED_COLUMNS = 8, PAUSE_NS = 100000000 };

static int terminal, keyboard;
static volatile uint32_t *pixels;
static unsigned words_per_line, height;

static void say(const char *text) { check(write(terminal, text, strlen(text)) == (long)strlen(text), "write"); }

/* Nothing is drawn any more. */
static void settle(void) {
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    tcdrain(terminal);
    nanosleep(&pause, 0);
}

/* A number that differs when the beginning of a row of text does. */
static uint64_t look(unsigned row) {
    uint64_t sum = 0;
    for (unsigned y = row * CELL_HEIGHT + 2; y < (row + 1) * CELL_HEIGHT - 2; y += 2)
        for (unsigned x = 0; x < WATCHED_COLUMNS * CELL_WIDTH; x++)
            sum = sum * 31 + pixels[y * words_per_line + x];
    return sum;
}

/* Lines as `find /` prints them. The last one is waited for. */
static void scroll(void) {
    char text[LINES][64];
    unsigned last_row = height / CELL_HEIGHT - 2;
    for (int line = 0; line < LINES; line++)
        snprintf(text[line], sizeof text[line], "/usr/share/doc/package-%d/copyright-and-changes\n", line * 7919 % 10007);
    settle();
    uint64_t start = ticks();
    for (int line = 0; line < LINES; line++)
        say(text[line]);
    tcdrain(terminal);
    uint64_t written = ticks();
    /* The marker appears in the row above the cursor. */
    uint64_t before = look(last_row);
    say("#\n");
    while (look(last_row) == before)
        ;
    report("scroll_line", start, ticks(), LINES);
    report("scroll_line_written", start, written, LINES);
}

static void put_event(unsigned type, unsigned code, int value) {
    struct input_event event = {.type = type, .code = code, .value = value};
    check(write(keyboard, &event, sizeof event) == sizeof event, "event");
}

static void press(unsigned key, int value) {
    put_event(EV_KEY, key, value);
    put_event(EV_SYN, SYN_REPORT, 0);
}

static void keys(void) {
    uint64_t all = 0, worst = 0;
    for (int round = 0; round < KEYS; round++) {
        say("\033[2J\033[H");
        settle();
        uint64_t before = look(0), start = ticks();
        press(KEY_M, 1);
        while (look(0) == before)
            ;
        uint64_t took = ticks() - start;
        all += took, worst = took > worst ? took : worst;
        press(KEY_M, 0);
    }
    printf("key_to_pixel %llu\nkey_to_pixel_worst %llu\n", (unsigned long long)all / KEYS, (unsigned long long)worst);
}

int main(void) {
    int screen = open("/dev/fb0", O_RDWR);
    terminal = open("/dev/tty2", O_RDWR | O_NOCTTY);
    keyboard = open("/dev/input/event0", O_RDWR);
    check(screen >= 0 && terminal >= 0 && keyboard >= 0, "open");
    struct fb_var_screeninfo var;
    struct fb_fix_screeninfo fix;
    check(ioctl(screen, FBIOGET_VSCREENINFO, &var) == 0 && ioctl(screen, FBIOGET_FSCREENINFO, &fix) == 0, "information");
    words_per_line = fix.line_length / 4, height = var.yres;
    pixels = mmap(0, fix.smem_len, PROT_READ, MAP_SHARED, screen, 0);
    check(pixels != MAP_FAILED, "mmap");
    check(ioctl(terminal, VT_ACTIVATE, 2) == 0 && ioctl(terminal, VT_WAITACTIVE, 2) == 0, "VT_ACTIVATE");
    printf("pixels %ux%ux%u\n", var.xres, var.yres, var.bits_per_pixel);
    keys();
    scroll();
    return 0;
}
