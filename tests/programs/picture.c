/* Pictures for the tests of programs that draw, and what is on the screen.
 *
 * `picture make FILE WIDTH HEIGHT NUMBER`: writes a PNG of many colours, another one for each number.
 * `picture hold COLOURS`: waits until the screen has so many colours and does not change any more; tells its size and how many colours it has.
 * `picture draw`: draws in the mapped memory of the screen.
 * `picture column`: shows which of the first sixteen pixels of the screen's left edge are lit.
 * `picture take`: writes the pixels of the screen to standard output. */
#include <fcntl.h>
#include <linux/fb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint32_t crc_table[256];

static uint32_t crc(uint32_t sum, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        sum = crc_table[(sum ^ bytes[i]) & 0xff] ^ sum >> 8;
    return sum;
}

static void put32(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void chunk(FILE *file, const char *name, const uint8_t *data, size_t count) {
    uint8_t word[4];
    put32(word, (uint32_t)count);
    fwrite(word, 4, 1, file);
    fwrite(name, 4, 1, file);
    fwrite(data, 1, count, file);
    put32(word, ~crc(crc(~0u, (const uint8_t *)name, 4), data, count));
    fwrite(word, 4, 1, file);
}

/* The picture's lines in blocks of the compressor's that are not compressed, one for each line. */
static int make(const char *path, unsigned width, unsigned height, unsigned number) {
    size_t line = 1 + 3 * (size_t)width, all = 2 + height * (5 + line) + 4, at = 2;
    uint8_t *data = malloc(all), header[13] = {0};
    uint32_t a = 1, b = 0;
    FILE *file = fopen(path, "wb");
    if (!data || !file || line > 0xffff)
        return 1;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t sum = i;
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? 0xedb88320u ^ sum >> 1 : sum >> 1;
        crc_table[i] = sum;
    }
    data[0] = 0x78, data[1] = 0x01;
    for (unsigned y = 0; y < height; y++) {
        uint8_t *block = data + at;
        block[0] = y + 1 == height;
        block[1] = (uint8_t)line, block[2] = (uint8_t)(line >> 8);
        block[3] = (uint8_t)~line, block[4] = (uint8_t)(~line >> 8);
        block[5] = 0;
        for (unsigned x = 0; x < width; x++) {
            uint8_t *pixel = block + 6 + 3 * x;
            pixel[0] = (uint8_t)(255 * x / width);
            pixel[1] = (uint8_t)(255 * y / height);
            pixel[2] = (uint8_t)((x / 32 ^ y / 32) * 37 + 85 * number);
        }
        for (size_t i = 0; i < line; i++)
            a = (a + block[5 + i]) % 65521, b = (b + a) % 65521;
        at += 5 + line;
    }
    put32(data + at, b << 16 | a);
    put32(header, width), put32(header + 4, height);
    header[8] = 8, header[9] = 2;
    fwrite("\x89PNG\r\n\x1a\n", 8, 1, file);
    chunk(file, "IHDR", header, sizeof header);
    chunk(file, "IDAT", data, all);
    chunk(file, "IEND", data, 0);
    return fclose(file) != 0;
}

struct screen {
    int file;
    unsigned width, height, bits, stride;
    size_t bytes;
};

static int open_screen(struct screen *screen) {
    struct fb_var_screeninfo var;
    struct fb_fix_screeninfo fix;
    screen->file = open("/dev/fb0", O_RDONLY);
    if (screen->file < 0 || ioctl(screen->file, FBIOGET_VSCREENINFO, &var) || ioctl(screen->file, FBIOGET_FSCREENINFO, &fix))
        return 1;
    screen->width = var.xres, screen->height = var.yres, screen->bits = var.bits_per_pixel;
    screen->stride = fix.line_length, screen->bytes = (size_t)fix.line_length * var.yres;
    return 0;
}

static int read_screen(const struct screen *screen, uint8_t *pixels) {
    size_t at = 0;
    ssize_t count = 1;
    while (at < screen->bytes && (count = pread(screen->file, pixels + at, screen->bytes - at, (off_t)at)) > 0)
        at += (size_t)count;
    return at < screen->bytes;
}

static unsigned colours(const struct screen *screen, const uint8_t *pixels) {
    static uint8_t seen[1 << 21];
    unsigned count = 0;
    memset(seen, 0, sizeof seen);
    for (size_t at = 0; at < screen->bytes; at += 4) {
        uint32_t pixel = (pixels[at] | pixels[at + 1] << 8 | pixels[at + 2] << 16) & 0xffffff;
        count += !(seen[pixel >> 3] >> (pixel & 7) & 1);
        seen[pixel >> 3] |= (uint8_t)(1 << (pixel & 7));
    }
    return count;
}

/* Looks until so many looks in turn see the same. */
static int hold(unsigned least) {
    enum { LOOKS = 15 };
    struct screen screen;
    if (open_screen(&screen) || screen.bits != 32)
        return 1;
    uint8_t *now = malloc(screen.bytes), *last = calloc(1, screen.bytes);
    unsigned found = 0;
    for (int same = 0; same < LOOKS || found < least;) {
        struct timespec pause = {0, 200000000};
        nanosleep(&pause, NULL);
        if (!now || !last || read_screen(&screen, now))
            return 1;
        same = memcmp(now, last, screen.bytes) == 0 ? same + 1 : 0;
        if (same == 1)
            found = colours(&screen, now);
        memcpy(last, now, screen.bytes);
    }
    fprintf(stderr, "held\n");
    printf("%u by %u, %u colours\n", screen.width, screen.height, found);
    return 0;
}

static int draw(void) {
    struct screen screen;
    int file = open("/dev/fb0", O_RDWR);
    if (file < 0 || open_screen(&screen) || screen.bits != 32)
        return 1;
    uint8_t *pixels = mmap(NULL, screen.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pixels == MAP_FAILED)
        return 1;
    for (unsigned y = 0; y < screen.height; y++)
        for (unsigned x = 0; x < screen.width; x++) {
            uint32_t pixel = 255 * x / screen.width << 16 | 255 * y / screen.height << 8 | ((x ^ y) & 255);
            memcpy(pixels + y * screen.stride + 4 * x, &pixel, 4);
        }
    return munmap(pixels, screen.bytes) != 0;
}

static int column(void) {
    struct screen screen;
    if (open_screen(&screen) || screen.bits != 32)
        return 1;
    uint8_t *pixels = malloc(screen.bytes);
    if (!pixels || read_screen(&screen, pixels))
        return 1;
    for (unsigned y = 0; y < 16; y++) {
        const uint8_t *pixel = pixels + y * screen.stride;
        putchar(pixel[0] | pixel[1] | pixel[2] ? '#' : '.');
    }
    putchar('\n');
    return 0;
}

static int take(void) {
    struct screen screen;
    if (open_screen(&screen))
        return 1;
    uint8_t *pixels = malloc(screen.bytes);
    if (!pixels || read_screen(&screen, pixels))
        return 1;
    return fwrite(pixels, 1, screen.bytes, stdout) != screen.bytes;
}

int main(int count, char **words) {
    if (count == 6 && !strcmp(words[1], "make"))
        return make(words[2], (unsigned)atoi(words[3]), (unsigned)atoi(words[4]), (unsigned)atoi(words[5]));
    if (count == 3 && !strcmp(words[1], "hold"))
        return hold((unsigned)atoi(words[2]));
    if (count == 2 && !strcmp(words[1], "draw"))
        return draw();
    if (count == 2 && !strcmp(words[1], "column"))
        return column();
    if (count == 2 && !strcmp(words[1], "take"))
        return take();
    return 2;
}
