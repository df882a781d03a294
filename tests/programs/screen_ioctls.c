/* Fonts' ioctls of a terminal with pointers that lead nowhere, and old ones that Linux has no more. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fb.h>
#include <linux/kd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

static int terminal;
static unsigned char font[512 * 4 * 32];

static void told(const char *what, unsigned long request, void *argument) {
    int result = ioctl(terminal, request, argument);
    printf("%s: %s\n", what, result < 0 ? strerror(errno) : "ok");
}

static struct console_font_op op(int number, void *data) {
    return (struct console_font_op){.op = number, .width = 8, .height = 16, .charcount = 256, .data = data};
}

int main(int count, char **words) {
    terminal = open(words[count - 1], O_RDWR | O_NOCTTY);
    char *end = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(end + 4096, 4096);
    void *places[] = {(void *)8, (void *)0xffff800000000000, (void *)~7ul, end + 4096 - 8};
    const char *names[] = {"low", "the kernel's", "the last", "half"};
    for (int place = 0; place < 4; place++) {
        printf("-- %s\n", names[place]);
        told("structure", KDFONTOP, places[place]);
        struct console_font_op set = op(KD_FONT_OP_SET, places[place]), get = op(KD_FONT_OP_GET, places[place]);
        told("set", KDFONTOP, &set);
        get.charcount = 512, get.height = 32;
        told("get", KDFONTOP, &get);
        struct console_font_op usual = op(KD_FONT_OP_SET_DEFAULT, places[place]);
        if (place < 3)
            told("default", KDFONTOP, &usual);
        told("map's structure", PIO_UNIMAP, places[place]);
        struct unimapdesc map = {100, places[place]};
        told("map", PIO_UNIMAP, &map);
        told("map to read", GIO_UNIMAP, &map);
    }
    printf("-- sizes\n");
    for (int size = 0; size < 6; size++) {
        struct console_font_op wrong = op(KD_FONT_OP_SET, font);
        wrong.width = (unsigned[]){0, 33, 8, 8, 8, ~0u}[size];
        wrong.height = (unsigned[]){16, 16, 0, 33, 16, 16}[size];
        wrong.charcount = size == 4 ? 513 : 256;
        told("set", KDFONTOP, &wrong);
    }
    struct console_font_op small = op(KD_FONT_OP_GET, font);
    small.charcount = 10;
    told("too few to read", KDFONTOP, &small);
    struct console_font_op none = op(KD_FONT_OP_GET, 0);
    none.height = 32, none.width = 32, none.charcount = 512;
    told("only asked", KDFONTOP, &none);
    printf("%u by %u, %u\n", none.width, none.height, none.charcount);
    struct console_font_op null = op(KD_FONT_OP_SET, 0);
    told("nothing to set", KDFONTOP, &null);
    struct console_font_op usual = op(KD_FONT_OP_SET_DEFAULT, 0), named = op(KD_FONT_OP_SET_DEFAULT, "nonsense");
    told("the usual one", KDFONTOP, &usual);
    told("one of no such name", KDFONTOP, &named);
    struct console_font_op strange = op(99, font);
    told("no such operation", KDFONTOP, &strange);
    printf("-- old ones\n");
    told("GIO_FONT", GIO_FONT, font);
    told("PIO_FONT", PIO_FONT, font);
    struct consolefontdesc description = {256, 16, (char *)font};
    told("GIO_FONTX", GIO_FONTX, &description);
    told("PIO_FONTX", PIO_FONTX, &description);
    told("PIO_FONTRESET", PIO_FONTRESET, 0);
    told("PIO_FONT nowhere", PIO_FONT, places[1]);
    struct fb_cursor cursor = {.set = FB_CUR_SETPOS, .enable = 1};
    terminal = open("/dev/fb0", O_RDWR);
    told("FBIO_CURSOR", FBIO_CURSOR, &cursor);
    told("FBIO_CURSOR nowhere", FBIO_CURSOR, places[1]);
    return 0;
}
