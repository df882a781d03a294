/* Uses /dev/fb0 as programs of Linux do, and as they should not. `framebuffer TEST` prints what it finds. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fb.h>
#include <linux/kd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;

static void caught(int signal) { siglongjmp(back, signal); }

/* The signal that a store to the byte raises, or 0. */
static int store(volatile unsigned char *at, unsigned char value) {
    int signal = sigsetjmp(back, 1);
    if (signal == 0)
        *at = value;
    return signal;
}

static const char *of(long result) { return result == -1 ? strerror(errno) : "ok"; }

/* The console does not draw meanwhile. */
static void graphics(void) {
    int terminal = open("/dev/tty0", O_RDWR | O_NOCTTY), mode = KD_TEXT;
    if (ioctl(terminal, KDSETMODE, KD_GRAPHICS) != 0 || ioctl(terminal, KDGETMODE, &mode) != 0 || mode != KD_GRAPHICS)
        printf("graphics: %s\n", strerror(errno));
    close(terminal);
}

/* The terminal shows text again. */
static void text(void) {
    int terminal = open("/dev/tty0", O_RDWR | O_NOCTTY);
    printf("text: %s\n", of(ioctl(terminal, KDSETMODE, KD_TEXT)));
    close(terminal);
}

static int screen(void) {
    int fb = open("/dev/fb0", O_RDWR);
    if (fb < 0) {
        printf("open: %s\n", strerror(errno));
        exit(1);
    }
    graphics();
    return fb;
}

static struct fb_var_screeninfo var(int fb) {
    struct fb_var_screeninfo var;
    if (ioctl(fb, FBIOGET_VSCREENINFO, &var) != 0)
        exit(2);
    return var;
}

static struct fb_fix_screeninfo fix(int fb) {
    struct fb_fix_screeninfo fix;
    if (ioctl(fb, FBIOGET_FSCREENINFO, &fix) != 0)
        exit(3);
    return fix;
}

/* A picture that differs everywhere. */
static uint32_t pixel(unsigned x, unsigned y) { return (x * 7 & 0xff) << 16 | (y * 5 & 0xff) << 8 | ((x ^ y) & 0xff); }

static void draw(volatile uint32_t *pixels, unsigned stride, unsigned width, unsigned height) {
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            pixels[y * stride + x] = pixel(x, y);
}

static void information(void) {
    int fb = screen();
    struct fb_var_screeninfo v = var(fb);
    struct fb_fix_screeninfo f = fix(fb);
    printf("%ux%u of %ux%u, %u bits, %u bytes a line, %u in all\n", v.xres, v.yres, v.xres_virtual, v.yres_virtual, v.bits_per_pixel,
           f.line_length, f.smem_len);
    printf("red %u+%u green %u+%u blue %u+%u, %u x %u mm, '%s', visual %u, pan %u %u\n", v.red.offset, v.red.length, v.green.offset,
           v.green.length, v.blue.offset, v.blue.length, v.width, v.height, f.id, f.visual, f.xpanstep, f.ypanstep);
    struct fb_con2fbmap map = {.console = 1, .framebuffer = 9};
    const char *result = of(ioctl(fb, FBIOGET_CON2FBMAP, &map));
    printf("console 1: %s, %u\n", result, map.framebuffer);
    uint32_t crtc = 0;
    printf("picture: %s\n", of(ioctl(fb, FBIO_WAITFORVSYNC, &crtc)));
    crtc = 1;
    printf("picture of another: %s\n", of(ioctl(fb, FBIO_WAITFORVSYNC, &crtc)));
    struct fb_cursor hidden = {0};
    printf("cursor: %s\n", of(ioctl(fb, FBIO_CURSOR, &hidden)));
    printf("nonsense: %s\n", of(ioctl(fb, 0x46ff, &map)));
    printf("nowhere: %s\n", of(ioctl(fb, FBIOGET_VSCREENINFO, 8)));
}

static void mapping(void) {
    int fb = screen();
    struct fb_var_screeninfo v = var(fb);
    struct fb_fix_screeninfo f = fix(fb);
    unsigned char *at = mmap(0, f.smem_len, PROT_READ | PROT_WRITE, MAP_SHARED, fb, 0);
    printf("mmap: %s\n", of((long)at));
    draw((volatile uint32_t *)at, f.line_length / 4, v.xres, v.yres);
    uint32_t read_back;
    pread(fb, &read_back, 4, 100 * f.line_length + 4 * 200);
    printf("what was stored is read: %d\n", read_back == pixel(200, 100));
    read_back = 0x00123456;
    pwrite(fb, &read_back, 4, 100 * f.line_length + 4 * 200);
    printf("what was written is loaded: %d\n", *(uint32_t *)(at + 100 * f.line_length + 800) == 0x00123456);
    /* A child shares it. */
    if (fork() == 0) {
        at[5] = 77;
        _exit(0);
    }
    wait(0);
    printf("a child's store is seen: %d\n", at[5] == 77);
    /* Devices have an end, and rights. */
    unsigned long pages = 0;
    while (mmap(0, 4096, PROT_READ, MAP_SHARED, fb, pages << 20) != MAP_FAILED)
        pages++;
    printf("beyond %lu MiB: %s\n", pages, strerror(errno));
    void *last = mmap(0, 8192, PROT_READ, MAP_SHARED, fb, (pages << 20) - 4096);
    printf("a page beyond the end: %s\n", of((long)last));
    printf("far beyond: %s\n", of((long)mmap(0, 4096, PROT_READ, MAP_SHARED, fb, 1L << 40)));
    printf("a copy: %s\n", of((long)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fb, 0)));
    int reads = open("/dev/fb0", O_RDONLY);
    printf("writable without the right: %s\n", of((long)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reads, 0)));
    unsigned char *seen = mmap(0, 4096, PROT_READ, MAP_SHARED, reads, 0);
    const char *later = of(mprotect(seen, 4096, PROT_READ | PROT_WRITE));
    printf("later: %s; a store: signal %d\n", later, store(seen, 1));
    printf("read into it: %s\n", of(pread(fb, at + 4096, 4096, 0)));
    int ends[2];
    printf("write from it: %s\n", of(pipe(ends) == 0 ? write(ends[1], at, 1) : -1));
    printf("msync: %s\n", of(msync(at, 4096, MS_SYNC)));
    printf("longer: %s\n", of((long)mremap(at, f.smem_len, f.smem_len + 4096, MREMAP_MAYMOVE)));
    printf("munmap: %s\n", of(munmap(at, f.smem_len)));
    printf("then: signal %d\n", store(at, 1));
}

static void modes(void) {
    int fb = screen();
    struct fb_var_screeninfo v = var(fb), first = v;
    v.yres_virtual = 2 * v.yres;
    v.yoffset = 100;
    const char *result = of(ioctl(fb, FBIOPUT_VSCREENINFO, &v));
    printf("double: %s, %u lines, from %u\n", result, var(fb).yres_virtual, var(fb).yoffset);
    v.yoffset = v.yres;
    result = of(ioctl(fb, FBIOPAN_DISPLAY, &v));
    printf("pan: %s, %u\n", result, var(fb).yoffset);
    v.yoffset = v.yres + 1;
    result = of(ioctl(fb, FBIOPAN_DISPLAY, &v));
    printf("too far: %s, %u\n", result, var(fb).yoffset);
    struct {
        unsigned x, y, bits;
    } wanted[] = {{640, 480, 16}, {800, 600, 8}, {1001, 700, 24}, {0, 0, 32}, {100000, 100, 32}, {4096, 4096, 32}, {640, 480, 99}};
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        v = (struct fb_var_screeninfo){.xres = wanted[i].x, .yres = wanted[i].y, .bits_per_pixel = wanted[i].bits};
        result = of(ioctl(fb, FBIOPUT_VSCREENINFO, &v));
        struct fb_var_screeninfo now = var(fb);
        printf("%ux%ux%u: %s: %ux%ux%u\n", wanted[i].x, wanted[i].y, wanted[i].bits, result, now.xres, now.yres, now.bits_per_pixel);
    }
    v = first;
    v.activate = FB_ACTIVATE_TEST;
    result = of(ioctl(fb, FBIOPUT_VSCREENINFO, &v));
    printf("only a test: %s, still %u\n", result, var(fb).xres);
    v = first;
    v.rotate = 4;
    printf("rotated by 360 degrees: %s\n", of(ioctl(fb, FBIOPUT_VSCREENINFO, &v)));
    printf("blank: %s\n", of(ioctl(fb, FBIOBLANK, FB_BLANK_POWERDOWN)));
    printf("not blank: %s\n", of(ioctl(fb, FBIOBLANK, FB_BLANK_UNBLANK)));
    result = of(ioctl(fb, FBIOPUT_VSCREENINFO, &first));
    printf("back: %s, %u\n", result, var(fb).xres);
}

/* Where the device shows a pixel of a picture that is turned: behind what programs see. */
static unsigned long shown_at(const struct fb_var_screeninfo *v, unsigned x, unsigned y) {
    switch (v->rotate) {
    case FB_ROTATE_CW: return (unsigned long)x * v->yres + v->yres - 1 - y;
    case FB_ROTATE_UD: return (unsigned long)(v->yres - 1 - y) * v->xres + v->xres - 1 - x;
    default: return (unsigned long)(v->xres - 1 - x) * v->yres + y;
    }
}

static void rotation(void) {
    int fb = screen();
    struct fb_var_screeninfo v, first = var(fb);
    for (unsigned number = 1; number < 4; number++) {
        v = first;
        v.rotate = number;
        const char *result = of(ioctl(fb, FBIOPUT_VSCREENINFO, &v));
        v = var(fb);
        unsigned long bytes = fix(fb).smem_len, wrong = 0;
        volatile uint32_t *at = mmap(0, 2 * bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fb, 0);
        draw(at, fix(fb).line_length / 4, v.xres, v.yres);
        uint32_t crtc = 0;
        ioctl(fb, FBIO_WAITFORVSYNC, &crtc);
        for (unsigned y = 0; y < v.yres; y++)
            for (unsigned x = 0; x < v.xres; x++)
                wrong += at[bytes / 4 + shown_at(&v, x, y)] != pixel(x, y);
        uint32_t written = 0x123456;
        pwrite(fb, &written, 4, 4 * (7 * v.xres + 9));
        int is_seen = at[bytes / 4 + shown_at(&v, 9, 7)] == written;
        printf("turned %u: %s, %ux%u, rotate %u, %lu wrong, written %d\n", number, result, v.xres, v.yres, v.rotate, wrong, is_seen);
        munmap((void *)at, 2 * bytes);
        v.yres_virtual *= 2;
        printf("higher: %s\n", of(ioctl(fb, FBIOPUT_VSCREENINFO, &v)));
        v.yoffset = 1;
        printf("pan: %s\n", of(ioctl(fb, FBIOPAN_DISPLAY, &v)));
    }
    printf("upright: %s\n", of(ioctl(fb, FBIOPUT_VSCREENINFO, &first)));
}

/* The screen shows what it shows turned by so many quarters. */
static void turn(unsigned number) {
    int fb = open("/dev/fb0", O_RDWR);
    struct fb_var_screeninfo v = var(fb);
    v.rotate = number;
    printf("turned by %u: %s\n", number, of(ioctl(fb, FBIOPUT_VSCREENINFO, &v)));
}

static void colours(void) {
    int fb = screen();
    uint16_t red[4] = {1, 2, 3, 4}, green[4] = {5, 6, 7, 8}, blue[4] = {9, 10, 11, 0xffff}, none[4] = {7, 7, 7, 7};
    struct fb_cmap map = {.start = 100, .len = 4, .red = red, .green = green, .blue = blue, .transp = 0};
    printf("put: %s\n", of(ioctl(fb, FBIOPUTCMAP, &map)));
    memset(red, 0, 8), memset(green, 0, 8), memset(blue, 0, 8);
    map.transp = none;
    const char *result = of(ioctl(fb, FBIOGETCMAP, &map));
    printf("get: %s: %u %u %u %u\n", result, red[1], green[2], blue[3], none[0]);
    map.len = 0;
    printf("nothing: %s\n", of(ioctl(fb, FBIOGETCMAP, &map)));
    map.len = 4, map.green = (uint16_t *)8;
    printf("nowhere: %s\n", of(ioctl(fb, FBIOGETCMAP, &map)));
    map.green = green, map.start = 256;
    printf("beyond: %s\n", of(ioctl(fb, FBIOPUTCMAP, &map)));
}

/* An image of the cursor, partly transparent. */
static uint32_t image[64 * 64];

static struct fb_cursor arrow(void) {
    for (unsigned at = 0; at < sizeof image / sizeof *image; at++)
        image[at] = at % 3 ? 0xff000000 | at * 0x0f1035 : 0;
    return (struct fb_cursor){.set = FB_CUR_SETALL, .enable = 1, .hot = {3, 5}, .image = {100, 200, 16, 24, .depth = 32, .data = (char *)image}};
}

/* A cursor of the device: what it takes, what it refuses, and that it is turned and panned with the picture. Ends with one at (40, 50). */
static void cursor(void) {
    int fb = screen();
    struct fb_cursor c = arrow(), wrong;
    printf("a picture: %s\n", of(ioctl(fb, FBIO_CURSOR, &c)));
    c.set = FB_CUR_SETPOS, c.image.dx = -9;
    printf("partly outside: %s\n", of(ioctl(fb, FBIO_CURSOR, &c)));
    wrong = arrow(), wrong.image.depth = 1;
    printf("of two colours: %s\n", of(ioctl(fb, FBIO_CURSOR, &wrong)));
    wrong = arrow(), wrong.image.width = 65;
    printf("too wide: %s\n", of(ioctl(fb, FBIO_CURSOR, &wrong)));
    wrong = arrow(), wrong.image.width = 0;
    printf("of no width: %s\n", of(ioctl(fb, FBIO_CURSOR, &wrong)));
    wrong = arrow(), wrong.hot.y = 64;
    printf("pointing outside: %s\n", of(ioctl(fb, FBIO_CURSOR, &wrong)));
    char *end = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(end + 4096, 4096);
    for (int beyond = 0; beyond < 3; beyond++) {
        const char *places[] = {0, (char *)0xffff800000000000, end + 4096 - 100};
        wrong = arrow(), wrong.image.dx = 7777, wrong.image.data = places[beyond];
        printf("a picture that is not there: %s\n", of(ioctl(fb, FBIO_CURSOR, &wrong)));
    }
    printf("nowhere: %s\n", of(ioctl(fb, FBIO_CURSOR, end + 4096 - 8)));
    c.set = FB_CUR_SETPOS, c.image.dx = 10, c.image.dy = 20;
    struct fb_var_screeninfo v = var(fb);
    for (v.rotate = 0; v.rotate < 4; v.rotate++) {
        const char *result = of(ioctl(fb, FBIOPUT_VSCREENINFO, &v));
        printf("turned %u: %s, %s\n", v.rotate, result, of(ioctl(fb, FBIO_CURSOR, &c)));
    }
    v.rotate = 0, v.yres_virtual = 2 * v.yres, v.yoffset = 0;
    ioctl(fb, FBIOPUT_VSCREENINFO, &v);
    v.yoffset = 15;
    printf("panned: %s\n", of(ioctl(fb, FBIOPAN_DISPLAY, &v)));
    c.enable = 0;
    printf("hidden: %s\n", of(ioctl(fb, FBIO_CURSOR, &c)));
    v.yres_virtual = v.yres, v.yoffset = 0;
    ioctl(fb, FBIOPUT_VSCREENINFO, &v);
    c.enable = 1, c.image.dx = 40, c.image.dy = 50;
    printf("shown: %s\n", of(ioctl(fb, FBIO_CURSOR, &c)));
    printf("off: %s\n", of(ioctl(fb, FBIOBLANK, FB_BLANK_POWERDOWN)));
    printf("on: %s\n", of(ioctl(fb, FBIOBLANK, FB_BLANK_UNBLANK)));
}

/* Moves the cursor, with a new image every 16th time, until the file "stop" is there; the last is always at (300, 301). */
static void pointer(void) {
    int fb = screen();
    for (unsigned step = 0;; step++) {
        int is_last = access("/tmp/stop", F_OK) == 0;
        struct fb_cursor c = arrow();
        c.set = step % 16 == 0 || is_last ? FB_CUR_SETALL : FB_CUR_SETPOS;
        c.image.dx = is_last ? 300 : step % 200, c.image.dy = is_last ? 301 : step % 100;
        if (ioctl(fb, FBIO_CURSOR, &c) != 0)
            printf("step %u: %s\n", step, strerror(errno));
        if (is_last)
            return;
        if (step == 0)
            close(open("/tmp/moving", O_CREAT, 0600));
    }
}

/* Draws one picture after the other where nobody sees it, shows it, and asks whether it is shown, until the file "stop" is there; the last is always
 * the same. Mapped before any death. */
static void film(void) {
    int fb = screen();
    struct fb_var_screeninfo v = var(fb);
    v.yres_virtual = 2 * v.yres;
    if (ioctl(fb, FBIOPUT_VSCREENINFO, &v) != 0)
        printf("double: %s\n", strerror(errno));
    struct fb_fix_screeninfo f = fix(fb);
    volatile uint32_t *at = mmap(0, f.smem_len, PROT_READ | PROT_WRITE, MAP_SHARED, fb, 0);
    unsigned stride = f.line_length / 4;
    for (unsigned picture = 1;; picture++) {
        int is_last = access("/tmp/stop", F_OK) == 0;
        volatile uint32_t *hidden = at + picture % 2 * v.yres * stride;
        if (is_last)
            draw(hidden, stride, v.xres, v.yres);
        else
            for (unsigned line = 0; line < v.yres; line += 8)
                for (unsigned x = 0; x < v.xres; x++)
                    hidden[line * stride + x] = pixel(x + picture, line);
        v.yoffset = picture % 2 * v.yres;
        const char *result = of(ioctl(fb, FBIOPAN_DISPLAY, &v));
        struct fb_var_screeninfo now = var(fb);
        if (now.xres != v.xres || now.yres_virtual != v.yres_virtual || now.yoffset != v.yoffset)
            printf("picture %u: %s, from %u instead of %u\n", picture, result, now.yoffset, v.yoffset);
        if (is_last)
            return;
        if (picture == 1)
            close(open("/tmp/film", O_CREAT, 0600));
    }
}

/* The visible picture, as a PPM. */
static void picture(void) {
    int fb = screen();
    struct fb_var_screeninfo v = var(fb);
    uint32_t pixel;
    unsigned char line[3 * 4096];
    uint32_t pixels[4096];
    printf("P6\n%u %u\n255\n", v.xres, v.yres);
    fflush(stdout);
    for (unsigned y = 0; y < v.yres; y++) {
        pread(fb, pixels, 4 * v.xres, (long)(y + v.yoffset) * fix(fb).line_length);
        for (unsigned x = 0; x < v.xres; x++)
            pixel = pixels[x], line[3 * x] = pixel >> 16, line[3 * x + 1] = pixel >> 8, line[3 * x + 2] = pixel;
        write(1, line, 3 * v.xres);
    }
}

int main(int count, char **words) {
    struct sigaction action = {.sa_handler = caught};
    sigaction(SIGSEGV, &action, 0), sigaction(SIGBUS, &action, 0);
    setvbuf(stdout, 0, _IOLBF, 0);
    if (count > 2 && strcmp(words[1], "turn") == 0)
        turn(atoi(words[2]));
    const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"information", information}, {"mapping", mapping}, {"modes", modes}, {"colours", colours}, {"rotation", rotation}, {"film", film}, {"cursor", cursor}, {"text", text}, {"pointer", pointer}, {"picture", picture}};
    for (unsigned i = 0; i < sizeof tests / sizeof *tests; i++)
        if (count > 1 && strcmp(words[1], tests[i].name) == 0)
            tests[i].run();
    return 0;
}
