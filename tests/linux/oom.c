/* How much a process is wanted when memory ends: /proc/PID/oom_score_adj, oom_adj. */
#include "behaviour.h"
#include <sys/prctl.h>

static void show_adjustment(pid_t pid, const char *name) {
    char path[64], text[32];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = must(open(path, O_RDONLY));
    long length = read(fd, text, sizeof text);
    show_bytes(text, length);
    close(fd);
}

static void show_both(void) {
    show_adjustment(getpid(), "oom_score_adj");
    show_adjustment(getpid(), "oom_adj");
}

/* Writes, and shows the result. */
static void adjust_of(pid_t pid, const char *name, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_WRONLY);
    show(fd < 0 ? fd : write(fd, text, strlen(text)));
    close(fd);
}

static void adjust(const char *text) { adjust_of(getpid(), "oom_score_adj", text); }

/* The caller becomes a user without rights, to whom its files in /proc belong. */
static void become_owner(void) {
    become(USER);
    must(prctl(PR_SET_DUMPABLE, 1));
}

BEHAVIOUR("oom_score_adj: no number, two, nothing, beyond the range") {
    adjust("x");
    adjust("1 2");
    adjust("1x");
    adjust("\n");
    adjust("-");
    adjust("+-1");
    adjust("0x");
    adjust("08");
    adjust("1001");
    adjust("-1001");
    adjust("99999999999");
    show_both();
}
BEHAVIOUR("oom_score_adj: forms of a number") {
    const char *forms[] = {"17", " +100\n", "0x10\n", "010", "0\t\n", "1000", "100         9", "-0"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        adjust(forms[i]);
        show_both();
    }
}
BEHAVIOUR("oom_adj: the same in another measure") {
    adjust_of(getpid(), "oom_adj", "16");
    adjust_of(getpid(), "oom_adj", "-18");
    adjust_of(getpid(), "oom_adj", "x");
    for (int i = 1; i <= 15; i += 2) {
        char text[16];
        snprintf(text, sizeof text, "%d\n", i);
        adjust_of(getpid(), "oom_adj", text);
        show_both();
    }
}
BEHAVIOUR("a child inherits it, an exec keeps it, and neither changes another's") {
    adjust("300");
    IN_CHILD {
        show_both();
        adjust("301");
        IN_CHILD { execl("/bin/sh", "sh", "-c", "read x </proc/self/oom_score_adj; test $x = 301", NULL); }
    }
    show_both();
}
BEHAVIOUR("a user raises it, and lowers it to what it was") {
    become_owner();
    adjust("-1");
    adjust("200");
    adjust("100");
    adjust("-1");
    IN_CHILD {
        adjust("-1");
        adjust("0");
    }
    show_both();
    adjust("0");
}
BEHAVIOUR("oom_adj of a user: not lower than it is") {
    become_owner();
    adjust_of(getpid(), "oom_adj", "-1");
    adjust_of(getpid(), "oom_adj", "5");
    adjust_of(getpid(), "oom_adj", "4");
    adjust_of(getpid(), "oom_adj", "5");
    adjust("0");
    adjust_of(getpid(), "oom_adj", "-1");
    show_both();
}
BEHAVIOUR("of another user, of one who is gone") {
    pid_t child = must(fork());
    if (child == 0)
        for (;;)
            pause();
    AS(USER) {
        adjust_of(child, "oom_score_adj", "10");
        show_adjustment(child, "oom_score_adj");
    }
    adjust_of(child, "oom_score_adj", "20");
    show_adjustment(child, "oom_score_adj");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    adjust_of(child, "oom_score_adj", "30");
}
