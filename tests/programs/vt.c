/* Virtual terminals as programs use them that switch themselves (ioctl_console(2), VT_SETMODE): which one is free, who agrees to a switch, and
 * what becomes of a terminal whose program is killed. What it prints does not depend on who had the terminals before. `keys`: asks for a key on
 * standard error, too. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kd.h>
#include <linux/vt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int terminal[7];

static int open_terminal(int number) {
    char path[16];
    snprintf(path, sizeof path, "/dev/tty%d", number);
    terminal[number] = open(path, O_RDWR | O_NOCTTY);
    if (terminal[number] < 0) {
        printf("%s: %s\n", path, strerror(errno));
        exit(1);
    }
    return terminal[number];
}

static void tell(const char *what, int result) {
    printf("%s: %s\n", what, result == 0 ? "done" : strerror(errno));
}

static void nap(void) {
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
}

/* Which one is free, when it is `expected` or stays another: Linux knows of a close some time after it. */
static void free_one(const char *when, int expected) {
    int number = 0;
    for (int tries = 0; tries < 100 && number != expected; tries++, nap())
        ioctl(terminal[1], VT_OPENQRY, &number);
    printf("%s: %d is free\n", when, number);
}

static void give_up(const char *what, int number) {
    int result = -1;
    errno = EBUSY;
    for (int tries = 0; tries < 100 && result != 0 && errno == EBUSY; tries++, nap())
        result = ioctl(terminal[1], VT_DISALLOCATE, number);
    tell(what, result);
}

static int shown(void) {
    struct vt_stat state;
    return ioctl(terminal[1], VT_GETSTATE, &state) ? -1 : state.v_active;
}

static void mode_of(int number) {
    struct vt_mode mode;
    int screen = -1;
    ioctl(terminal[number], VT_GETMODE, &mode);
    ioctl(terminal[number], KDGETMODE, &screen);
    printf("terminal %d: mode %d, waitv %d, signals %d %d %d, screen %d\n", number, mode.mode, mode.waitv, mode.relsig, mode.acqsig,
           mode.frsig, screen);
}

static int set_mode(int number, char mode) {
    struct vt_mode wanted = {mode, 1, SIGUSR1, SIGUSR2, 9};
    return ioctl(terminal[number], VT_SETMODE, &wanted);
}

static void await_signal(const char *when) {
    sigset_t set;
    struct timespec limit = {30, 0};
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    int number = sigtimedwait(&set, &info, &limit);
    printf("%s: %s%s\n", when, number == SIGUSR1 ? "release" : number == SIGUSR2 ? "acquire" : "no signal",
           number > 0 && info.si_code == SI_KERNEL ? ", by the kernel" : "");
}

static void no_signal(void) {
    sigset_t set;
    sigpending(&set);
    if (sigismember(&set, SIGUSR1) || sigismember(&set, SIGUSR2))
        printf("a signal too many\n");
}

static void go(int number) {
    ioctl(terminal[1], VT_ACTIVATE, number);
    ioctl(terminal[1], VT_WAITACTIVE, number);
    printf("shown: %d\n", shown());
}

/* A terminal that is not left: it stays for as long as it takes to believe it. */
static void stays(void) {
    struct timespec pause = {0, 300000000};
    nanosleep(&pause, NULL);
    printf("still shown: %d\n", shown());
}

static void which_is_free(void) {
    open_terminal(1);
    free_one("one is open", 2);
    open_terminal(2);
    free_one("two are open", 3);
    int again = dup(terminal[2]);
    close(terminal[2]);
    free_one("a copy is open", 3);
    close(again);
    free_one("it is closed", 2);
    for (int number = 2; number <= 5; number++)
        open_terminal(number);
    struct vt_stat state;
    ioctl(terminal[1], VT_GETSTATE, &state);
    printf("open: %#x\n", state.v_state);
}

static void agreed(int by_key) {
    go(2);
    mode_of(3);
    tell("unknown mode", set_mode(3, 7));
    tell("release of a free one", ioctl(terminal[3], VT_RELDISP, 1));
    tell("mode", set_mode(3, VT_PROCESS));
    mode_of(3);
    tell("release without request", ioctl(terminal[3], VT_RELDISP, 1));
    go(3);
    await_signal("shown");
    tell("acknowledged", ioctl(terminal[3], VT_RELDISP, VT_ACKACQ));
    tell("another is wanted", ioctl(terminal[1], VT_ACTIVATE, 4));
    await_signal("wanted");
    stays();
    tell("refused", ioctl(terminal[3], VT_RELDISP, 0));
    stays();
    if (by_key) {
        fprintf(stderr, "press a key\n");
        await_signal("wanted by a key");
    } else {
        tell("wanted again", ioctl(terminal[1], VT_ACTIVATE, 4));
        await_signal("wanted");
    }
    tell("granted", ioctl(terminal[3], VT_RELDISP, 1));
    tell("waited", ioctl(terminal[1], VT_WAITACTIVE, 4));
    printf("shown: %d\n", shown());
    tell("free again", set_mode(3, VT_AUTO));
    go(3);
    go(2);
    no_signal();
}

static void drawing(void) {
    go(2);
    tell("graphics", ioctl(terminal[2], KDSETMODE, KD_GRAPHICS));
    tell("another is wanted", ioctl(terminal[1], VT_ACTIVATE, 3));
    stays();
    tell("text", ioctl(terminal[2], KDSETMODE, KD_TEXT));
    go(3);
}

/* A process that decides over terminal 4 and draws there is killed. */
static void killed(void) {
    int ready[2];
    char byte;
    if (pipe(ready))
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        terminal[4] = open("/dev/tty4", O_RDWR | O_NOCTTY);
        set_mode(4, VT_PROCESS);
        ioctl(terminal[4], KDSETMODE, KD_GRAPHICS);
        write(ready[1], "", 1);
        pause();
        _exit(0);
    }
    read(ready[0], &byte, 1);
    go(4);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    go(3);
    mode_of(4);
}

static void limits(void) {
    tell("locked", ioctl(terminal[1], VT_LOCKSWITCH, 0));
    tell("another is wanted", ioctl(terminal[1], VT_ACTIVATE, 2));
    stays();
    tell("unlocked", ioctl(terminal[1], VT_UNLOCKSWITCH, 0));
    go(2);
    tell("the shown one is given up", ioctl(terminal[1], VT_DISALLOCATE, 2));
    tell("an open one is given up", ioctl(terminal[1], VT_DISALLOCATE, 3));
    close(terminal[5]);
    give_up("a closed one is given up", 5);
    tell("all closed ones are given up", ioctl(terminal[1], VT_DISALLOCATE, 0));
    tell("none is given up", ioctl(terminal[1], VT_DISALLOCATE, 99));
    tell("none is shown", ioctl(terminal[1], VT_ACTIVATE, 0));
    tell("none is waited for", ioctl(terminal[1], VT_WAITACTIVE, 0));
}

int main(int count, char **words) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    which_is_free();
    agreed(count == 2 && !strcmp(words[1], "keys"));
    drawing();
    killed();
    limits();
    return 0;
}
