/* What the screen costs: a mode, a pan, and the way from the death of its driver to the successor's first answer, when the picture can be changed
 * again: while console draws text, which it does anew in each of these cases, and for a program that has the screen to itself. Programs that
 * have it mapped draw meanwhile. Only on Skink, with a screen. */
#include <fcntl.h>
#include <linux/fb.h>
#include <linux/kd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../bench/ticks.h"
#include "../rs.h"

enum { ROUNDS = 100, DEATHS = 5, PAUSE_US = 500000 };

static int screen;

static struct fb_var_screeninfo now(void)
{
    struct fb_var_screeninfo var;
    check(ioctl(screen, FBIOGET_VSCREENINFO, &var) == 0, "FBIOGET_VSCREENINFO");
    return var;
}

static void put(struct fb_var_screeninfo *var)
{
    check(ioctl(screen, FBIOPUT_VSCREENINFO, var) == 0, "FBIOPUT_VSCREENINFO");
}

static void pan(struct fb_var_screeninfo *var, unsigned line)
{
    var->yoffset = line;
    check(ioctl(screen, FBIOPAN_DISPLAY, var) == 0, "FBIOPAN_DISPLAY");
}

static void pan_back_and_forth(const char *name, struct fb_var_screeninfo *var)
{
    uint64_t start = ticks();
    for (int round = 0; round < ROUNDS; round++)
        pan(var, round % 2 ? 0 : var->yres);
    report(name, start, ticks(), ROUNDS);
}

/* The mean from the death of the driver until its successor has panned the picture. */
static void recover(const char *name, struct fb_var_screeninfo *var)
{
    uint64_t interrupted = 0;
    for (int death = 0; death < DEATHS; death++) {
        uint64_t start = ticks();
        check(service_call(SKINK_RS_SERVICE_CALL_KILL, "framebuffer", NULL, 0) == 0, "kill");
        pan(var, death % 2 ? 0 : var->yres);
        interrupted += ticks() - start;
        /* Within the policy that lets a service die now and then: the next restart is at once. */
        usleep(PAUSE_US);
    }
    report(name, 0, interrupted, DEATHS);
}

int main(void)
{
    screen = open("/dev/fb0", O_RDWR);
    check(screen >= 0, "open");
    int terminal = open("/dev/tty0", O_RDWR);
    check(terminal >= 0, "open");
    struct fb_var_screeninfo large = now(), small = large;
    small.xres = small.xres_virtual = 640, small.yres = small.yres_virtual = 480;
    uint64_t start = ticks();
    for (int round = 0; round < ROUNDS; round++)
        put(round % 2 ? &large : &small);
    report("mode_set", start, ticks(), ROUNDS);
    large.yres_virtual = 2 * large.yres;
    put(&large);
    pan_back_and_forth("pan", &large);
    recover("driver_recovery_text", &large);
    check(ioctl(terminal, KDSETMODE, KD_GRAPHICS) == 0, "KDSETMODE");
    pan_back_and_forth("pan_graphics", &large);
    recover("driver_recovery_graphics", &large);
    check(ioctl(terminal, KDSETMODE, KD_TEXT) == 0, "KDSETMODE");
    return 0;
}
