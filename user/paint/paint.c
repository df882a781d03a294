/* Paints on the screen with mouse, tablet or finger: `paint [PICTURE.ppm]`. Eight colours are in a bar at the top; its last field clears, the one before it leaves.
 * On a terminal, q leaves too, c clears. With a file name the picture is written there at the end.
 *
 * The canvas is in memory and copied to /dev/fb0 where it changes, so that the pointer's cross can be taken away, and all drawn again when the terminal is shown
 * again. Where the screen has a cursor of its own (FBIO_CURSOR of Skink's virtio_gpu) the cross is that. Runs on Linux as it is: fbdev, evdev and ioctl_console(2) are all it needs. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fb.h>
#include <linux/input.h>
#include <linux/kd.h>
#include <linux/vt.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

enum { MAX_DEVICES = 16, COLOURS = 8, FIELDS = COLOURS + 2, LEAVE = COLOURS, CLEAR = COLOURS + 1, BAR = 32, RADIUS = 3, CROSS = 7 };

static const uint32_t PALETTE[COLOURS] = {0xffffff, 0xff0000, 0x00c000, 0x3060ff, 0xffff00, 0xff00ff, 0x00ffff, 0x000000};

/* A pointing device. An absolute one has a range on each axis; a mouse starts in the middle of the screen. */
struct pointer {
    int file;
    int is_absolute;
    int is_touch;
    struct input_absinfo range[2];
    int x, y;
    /* What the packet that is being read has changed. */
    int is_down, was_down, last_x, last_y, has_moved;
};

static struct {
    int file, width, height, bytes;
    size_t stride, start, size;
    struct fb_var_screeninfo var;
    unsigned char *memory;
} screen;

static uint32_t *canvas;
static uint32_t colour = 0xffffff;
static struct pointer pointers[MAX_DEVICES];
static int pointer_count;
/* Where the cross is, or -1. */
static int cross_x = -1, cross_y;
/* The screen shows the cross itself. */
static int has_cursor;
static volatile sig_atomic_t leaves, is_asked, is_back;
static int is_shown = 1;

static void fail(const char *what)
{
    fprintf(stderr, "paint: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void on_signal(int number)
{
    if (number == SIGUSR1)
        is_asked = 1;
    else if (number == SIGUSR2)
        is_back = 1;
    else
        leaves = 1;
}

/* The bits of a colour as the screen has them. */
static uint32_t encoded(uint32_t rgb)
{
    const struct fb_bitfield *parts[3] = {&screen.var.red, &screen.var.green, &screen.var.blue};
    uint32_t pixel = 0;
    for (int part = 0; part < 3; part++) {
        uint32_t intensity = rgb >> (16 - 8 * part) & 0xff;
        pixel |= intensity >> (8 - parts[part]->length) << parts[part]->offset;
    }
    return pixel;
}

static void put(int x, int y, uint32_t rgb)
{
    uint32_t pixel = encoded(rgb);
    if (is_shown)
        memcpy(screen.memory + screen.start + y * screen.stride + (size_t)x * screen.bytes, &pixel, screen.bytes);
}

/* Shows what the canvas has in a rectangle, which may be partly outside. */
static void show(int left, int top, int right, int bottom)
{
    for (int y = top < 0 ? 0 : top; y < bottom && y < screen.height; y++)
        for (int x = left < 0 ? 0 : left; x < right && x < screen.width; x++)
            put(x, y, canvas[(size_t)y * screen.width + x]);
}

/* What is to change of the screen's own cursor. */
static int set_cursor(int set, int enable, int x, int y)
{
    static uint32_t image[(2 * CROSS + 1) * (2 * CROSS + 1)];
    for (int step = 0; step < 2 * CROSS + 1; step++)
        image[CROSS * (2 * CROSS + 1) + step] = image[step * (2 * CROSS + 1) + CROSS] = step % 2 ? 0xff000000 : 0xffffffff;
    struct fb_cursor cursor = {.set = set, .enable = enable, .hot = {CROSS, CROSS}};
    cursor.image = (struct fb_image){.dx = x - CROSS, .dy = y - CROSS, .width = 2 * CROSS + 1, .height = 2 * CROSS + 1, .depth = 32, .data = (char *)image};
    return ioctl(screen.file, FBIO_CURSOR, &cursor) == 0;
}

static void hide_cross(void)
{
    if (has_cursor)
        return;
    if (cross_x >= 0)
        show(cross_x - CROSS, cross_y - CROSS, cross_x + CROSS + 1, cross_y + CROSS + 1);
    cross_x = -1;
}

static void show_cross(int at_x, int at_y)
{
    if (has_cursor) {
        set_cursor(FB_CUR_SETPOS, is_shown, at_x, at_y);
        return;
    }
    hide_cross();
    cross_x = at_x, cross_y = at_y;
    for (int step = -CROSS; step <= CROSS; step++) {
        int places[2][2] = {{at_x + step, at_y}, {at_x, at_y + step}};
        for (int arm = 0; arm < 2; arm++) {
            int x = places[arm][0], y = places[arm][1];
            if (x >= 0 && y >= 0 && x < screen.width && y < screen.height)
                put(x, y, canvas[(size_t)y * screen.width + x] ^ 0xffffff);
        }
    }
}

static void fill(int left, int top, int right, int bottom, uint32_t rgb)
{
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++)
            canvas[(size_t)y * screen.width + x] = rgb;
    show(left, top, right, bottom);
}

static int field_start(int field) { return field * screen.width / FIELDS; }

/* Colours, a frame for leaving and one for clearing: the inner one is what is left then. */
static void draw_bar(void)
{
    for (int field = 0; field < FIELDS; field++) {
        int left = field_start(field), right = field_start(field + 1);
        fill(left, 0, right, BAR, field < COLOURS ? PALETTE[field] : 0x808080);
        if (field >= COLOURS)
            fill(left + 4, 4, right - 4, BAR - 4, field == LEAVE ? 0x400000 : 0);
    }
    fill(0, BAR, screen.width, BAR + 1, 0x808080);
}

static void clear(void)
{
    fill(0, BAR + 1, screen.width, screen.height, 0);
}

/* A disc, below the bar. */
static void dab(int at_x, int at_y)
{
    for (int y = at_y - RADIUS; y <= at_y + RADIUS; y++)
        for (int x = at_x - RADIUS; x <= at_x + RADIUS; x++) {
            int dx = x - at_x, dy = y - at_y;
            if (dx * dx + dy * dy <= RADIUS * RADIUS && x >= 0 && y > BAR && x < screen.width && y < screen.height)
                canvas[(size_t)y * screen.width + x] = colour;
        }
    show(at_x - RADIUS, at_y - RADIUS, at_x + RADIUS + 1, at_y + RADIUS + 1);
}

static void stroke(int x, int y, int to_x, int to_y)
{
    int steps_x = abs(to_x - x), steps_y = abs(to_y - y), error = steps_x - steps_y;
    int way_x = x < to_x ? 1 : -1, way_y = y < to_y ? 1 : -1;
    for (;;) {
        dab(x, y);
        if (x == to_x && y == to_y)
            return;
        int twice = 2 * error;
        if (twice > -steps_y)
            error -= steps_y, x += way_x;
        if (twice < steps_x)
            error += steps_x, y += way_y;
    }
}

static void choose(int x)
{
    int field = 0;
    while (field + 1 < FIELDS && x >= field_start(field + 1))
        field++;
    if (field < COLOURS)
        colour = PALETTE[field];
    else if (field == CLEAR)
        clear();
    else
        leaves = 1;
}

/* A packet is complete. */
static void act(struct pointer *pointer)
{
    hide_cross();
    int is_new = pointer->is_down && !pointer->was_down;
    if (is_new && pointer->y <= BAR)
        choose(pointer->x);
    else if (is_new)
        dab(pointer->x, pointer->y);
    else if (pointer->is_down && pointer->has_moved)
        stroke(pointer->last_x, pointer->last_y, pointer->x, pointer->y);
    pointer->was_down = pointer->is_down, pointer->has_moved = 0;
    pointer->last_x = pointer->x, pointer->last_y = pointer->y;
    if (!pointer->is_touch)
        show_cross(pointer->x, pointer->y);
}

static void move_to(struct pointer *pointer, int axis, int place)
{
    int *at = axis == 0 ? &pointer->x : &pointer->y, end = axis == 0 ? screen.width : screen.height;
    *at = place < 0 ? 0 : place >= end ? end - 1 : place;
    pointer->has_moved = 1;
}

/* A place on an absolute axis, in its own measure. */
static void move_absolutely(struct pointer *pointer, int axis, int place)
{
    const struct input_absinfo *range = &pointer->range[axis];
    int64_t pixels = axis == 0 ? screen.width : screen.height, length = (int64_t)range->maximum - range->minimum + 1;
    move_to(pointer, axis, length > 0 ? ((int64_t)place - range->minimum) * pixels / length : 0);
}

static void take(struct pointer *pointer, const struct input_event *event)
{
    if (event->type == EV_REL && event->code <= REL_Y) {
        move_to(pointer, event->code, (event->code == REL_X ? pointer->x : pointer->y) + event->value);
    } else if (event->type == EV_ABS && event->code <= ABS_Y && pointer->is_absolute) {
        move_absolutely(pointer, event->code, event->value);
    } else if (event->type == EV_KEY && (event->code == BTN_LEFT || event->code == BTN_TOUCH)) {
        pointer->is_down = event->value != 0;
    } else if (event->type == EV_SYN && event->code == SYN_REPORT) {
        act(pointer);
    }
}

/* Returns 0 when the device is gone. */
static int serve(struct pointer *pointer)
{
    struct input_event events[64];
    ssize_t bytes = read(pointer->file, events, sizeof events);
    if (bytes < 0)
        return errno == EAGAIN || errno == EINTR;
    for (size_t index = 0; index < bytes / sizeof *events; index++)
        take(pointer, &events[index]);
    return bytes > 0;
}

static int has(const unsigned char *bits, int bit) { return bits[bit / 8] >> bit % 8 & 1; }

/* Adds the device if it points at something. */
static void add_device(const char *name)
{
    char path[300];
    unsigned char keys[KEY_MAX / 8 + 1] = {0}, relative[REL_MAX / 8 + 1] = {0}, absolute[ABS_MAX / 8 + 1] = {0};
    snprintf(path, sizeof path, "/dev/input/%s", name);
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    ioctl(file, EVIOCGBIT(EV_KEY, sizeof keys), keys);
    ioctl(file, EVIOCGBIT(EV_REL, sizeof relative), relative);
    ioctl(file, EVIOCGBIT(EV_ABS, sizeof absolute), absolute);
    struct pointer pointer = {.file = file, .x = screen.width / 2, .y = screen.height / 2};
    pointer.is_touch = has(keys, BTN_TOUCH);
    pointer.is_absolute = has(absolute, ABS_X) && has(absolute, ABS_Y) && ioctl(file, EVIOCGABS(ABS_X), &pointer.range[0]) >= 0 &&
                          ioctl(file, EVIOCGABS(ABS_Y), &pointer.range[1]) >= 0;
    /* It tells only what changes. */
    for (int axis = 0; pointer.is_absolute && axis < 2; axis++)
        move_absolutely(&pointer, axis, pointer.range[axis].value);
    int is_mouse = has(relative, REL_X) && has(relative, REL_Y);
    if ((pointer.is_absolute || is_mouse) && (pointer.is_touch || has(keys, BTN_LEFT)) && pointer_count < MAX_DEVICES)
        pointers[pointer_count++] = pointer;
    else
        close(file);
}

static void find_devices(void)
{
    DIR *folder = opendir("/dev/input");
    if (!folder)
        fail("/dev/input");
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, "event", 5) == 0)
            add_device(entry->d_name);
    closedir(folder);
    if (pointer_count == 0) {
        fprintf(stderr, "paint: no mouse, tablet or touch screen in /dev/input\n");
        exit(1);
    }
}

static void open_screen(void)
{
    struct fb_fix_screeninfo fix;
    screen.file = open("/dev/fb0", O_RDWR | O_CLOEXEC);
    if (screen.file < 0 || ioctl(screen.file, FBIOGET_VSCREENINFO, &screen.var) < 0 || ioctl(screen.file, FBIOGET_FSCREENINFO, &fix) < 0)
        fail("/dev/fb0");
    screen.bytes = screen.var.bits_per_pixel / 8;
    if (screen.bytes != 2 && screen.bytes != 4) {
        fprintf(stderr, "paint: %u bits a pixel; 16 or 32 are needed (fbset -depth 32)\n", screen.var.bits_per_pixel);
        exit(1);
    }
    screen.width = screen.var.xres, screen.height = screen.var.yres;
    screen.stride = fix.line_length, screen.size = fix.smem_len;
    screen.start = screen.var.yoffset * screen.stride + (size_t)screen.var.xoffset * screen.bytes;
    screen.memory = mmap(0, screen.size, PROT_READ | PROT_WRITE, MAP_SHARED, screen.file, 0);
    canvas = calloc((size_t)screen.width * screen.height, sizeof *canvas);
    if (screen.memory == MAP_FAILED || !canvas)
        fail("pixels of /dev/fb0");
}

static int terminal = -1;
static struct termios settings;
static struct vt_mode switching;

/* The terminal shows text again. */
static void give_back(void)
{
    if (terminal < 0)
        return;
    tcsetattr(terminal, TCSAFLUSH, &settings);
    ioctl(terminal, VT_SETMODE, &switching);
    ioctl(terminal, KDSETMODE, KD_TEXT);
}

/* Where the standard input is a terminal on the screen, that is not drawn on meanwhile, and keys are read from it. Elsewhere the terminal that is shown gives way. */
static void take_terminal(void)
{
    int mode;
    terminal = ioctl(0, KDGETMODE, &mode) == 0 ? dup(0) : open("/dev/tty0", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || ioctl(terminal, VT_GETMODE, &switching) < 0 || tcgetattr(terminal, &settings) < 0) {
        terminal = -1;
        return;
    }
    struct termios raw = settings;
    raw.c_lflag &= ~(ICANON | ECHO);
    tcsetattr(terminal, TCSAFLUSH, &raw);
    struct vt_mode asks = {.mode = VT_PROCESS, .relsig = SIGUSR1, .acqsig = SIGUSR2};
    ioctl(terminal, VT_SETMODE, &asks);
    ioctl(terminal, KDSETMODE, KD_GRAPHICS);
    atexit(give_back);
}

static void press(char key)
{
    if (key == 'c')
        clear();
    else if (key == 'q')
        leaves = 1;
}

/* Another terminal is to be shown, or this one again. */
static void follow_terminal(void)
{
    if (is_asked) {
        is_asked = 0, is_shown = 0;
        ioctl(terminal, VT_RELDISP, 1);
    }
    if (is_back) {
        is_back = 0, is_shown = 1;
        ioctl(terminal, VT_RELDISP, VT_ACKACQ);
        show(0, 0, screen.width, screen.height);
        /* Text has taken its place; the next movement shows it. */
        has_cursor = set_cursor(FB_CUR_SETALL, 0, 0, 0);
    }
}

static void save(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path);
    fprintf(file, "P6\n%d %d\n255\n", screen.width, screen.height - BAR - 1);
    for (size_t at = (size_t)(BAR + 1) * screen.width; at < (size_t)screen.width * screen.height; at++)
        for (int shift = 16; shift >= 0; shift -= 8)
            fputc(canvas[at] >> shift & 0xff, file);
    if (fclose(file) != 0)
        fail(path);
}

static void paint(void)
{
    struct pollfd files[MAX_DEVICES + 1];
    sigset_t none;
    sigemptyset(&none);
    while (!leaves && pointer_count > 0) {
        for (int index = 0; index < pointer_count; index++)
            files[index] = (struct pollfd){.fd = pointers[index].file, .events = POLLIN};
        files[pointer_count] = (struct pollfd){.fd = terminal, .events = POLLIN};
        int ready = ppoll(files, pointer_count + 1, 0, &none);
        follow_terminal();
        if (ready <= 0)
            continue;
        char key;
        if (files[pointer_count].revents & POLLIN && read(terminal, &key, 1) == 1)
            press(key);
        for (int index = pointer_count - 1; index >= 0; index--)
            if (files[index].revents && !serve(&pointers[index]))
                pointers[index] = pointers[--pointer_count];
    }
}

int main(int count, char **words)
{
    if (count > 2 || (count == 2 && words[1][0] == '-')) {
        fprintf(stderr, "usage: paint [PICTURE.ppm]\n");
        return 2;
    }
    open_screen();
    find_devices();
    /* Signals come while nothing is drawn: only in ppoll. */
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t all;
    sigemptyset(&all);
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    for (size_t index = 0; index < sizeof numbers / sizeof *numbers; index++) {
        sigaction(numbers[index], &action, 0);
        sigaddset(&all, numbers[index]);
    }
    sigprocmask(SIG_BLOCK, &all, 0);
    take_terminal();
    has_cursor = set_cursor(FB_CUR_SETALL, 0, 0, 0);
    draw_bar();
    clear();
    puts("paint: ready");
    fflush(stdout);
    paint();
    hide_cross();
    if (has_cursor)
        set_cursor(0, 0, 0, 0);
    if (count == 2)
        save(words[1]);
    return 0;
}
