/* `graphics`: takes the screen and the keyboard of its terminal, and waits to be killed. `graphics modes`: tells who has them. */
#include <linux/kd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(int count, char **words) {
    int screen = -1, keyboard = -1;
    if (count == 1) {
        if (ioctl(0, KDSETMODE, KD_GRAPHICS) != 0 || ioctl(0, KDSKBMODE, K_OFF) != 0)
            return 1;
        pause();
    }
    ioctl(0, KDGETMODE, &screen);
    ioctl(0, KDGKBMODE, &keyboard);
    printf("screen %d, keyboard %d\n", screen, keyboard);
    return 0;
}
