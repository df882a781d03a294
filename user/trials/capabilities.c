/* Capabilities while services die: so many children, one after the other, become a user, keep a capability or lose it, execute this program,
 * and look whether they have what they should. Prints how many did; the same on Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define USER 1000

static int set(unsigned effective, unsigned permitted, unsigned inheritable)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{effective, permitted, inheritable}, {0, 0, 0}};
    return syscall(SYS_capset, &header, data);
}

static unsigned permitted(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    return syscall(SYS_capget, &header, data) == 0 ? data[0].permitted : ~0U;
}

/* Whether the file that only root may open can be opened. */
static int opens(void)
{
    int fd = open("secret", O_RDONLY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* After the exec: 1 if the capability and what it allows are there, 2 if neither is, else 0. */
static int look(void)
{
    int has = permitted() == 1U << CAP_DAC_OVERRIDE;
    return has && opens() ? 1 : !has && permitted() == 0 && !opens() ? 2 : 0;
}

static int child(int keeps)
{
    unsigned one = 1U << CAP_DAC_OVERRIDE;
    if (!opens() || prctl(PR_SET_KEEPCAPS, 1) != 0 || setresuid(USER, USER, USER) != 0 || opens())
        return 0;
    if (set(one, one, one) != 0 || !opens())
        return 0;
    if (keeps && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0) != 0)
        return 0;
    execl("/proc/self/exe", "capabilities", "look", NULL);
    return 0;
}

int main(int count, char **arguments)
{
    int good[2] = {0, 0};
    if (count < 2)
        return 1;
    if (strcmp(arguments[1], "look") == 0)
        return look();
    close(open("secret", O_CREAT | O_WRONLY, 0600));
    for (int n = 0; n < atoi(arguments[1]); n++) {
        int keeps = n % 2, status = 0;
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(keeps));
        if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == (keeps ? 1 : 2))
            good[keeps]++;
    }
    printf("%d lost it, %d kept it\n", good[0], good[1]);
    return unlink("secret") != 0;
}
