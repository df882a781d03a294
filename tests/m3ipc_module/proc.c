/* /proc/drvs: what it says of a node with a container in which three processes are bound, one of which waits. */
#include "../m3ipc/m3test.h"

static void child(void)
{
    message m;
    mnx_receive(ANY, &m);
    mnx_receive(1, &m);
}

static int has(const char *path, const char *wanted)
{
    static char text[8192];
    int file = open(path, O_RDONLY);
    ssize_t bytes = file < 0 ? -1 : read(file, text, sizeof text - 1);
    close(file);
    text[bytes > 0 ? bytes : 0] = 0;
    if (bytes > 0 && strstr(text, wanted))
        return 1;
    printf("%s has no '%s':\n%s", path, wanted, text);
    return 0;
}

int main(void)
{
    message m = text_message(1, 1);
    char line[100];
    begin();
    mnx_add_node(0, 3);
    mnx_bind(0, 1);
    pid_t pid = spawn(2, child);
    mnx_rmtbind(0, "remote", 20, 3);
    mnx_send(2, &m);
    until(2, RTS_RECEIVING);
    int good = has("/proc/drvs/info", "nodeid=0\n") & has("/proc/drvs/info", "nr_vms=32\n") & has("/proc/drvs/info", "version=1\n");
    good &= has("/proc/drvs/nodes", " 0     1      -1        0        0 -------------------------------X local\n");
    good &= has("/proc/drvs/nodes", " 3     0      -1        0        0 -------------------------------X \n");
    good &= has("/proc/drvs/VM0/info", "name=test\nnodes=----------------------------X--X\n");
    snprintf(line, sizeof line, " 0   2        2 %6d  0     8   20        1    27342 27342   -1 proc\n", pid);
    good &= has("/proc/drvs/VM0/procs", line);
    good &= has("/proc/drvs/VM0/procs", " 0  20       20     -1  3  1000    0    27342    27342 27342   -1 remote\n");
    snprintf(line, sizeof line, " 0   1        1 %6d  0         1         0         0         0\n", getpid());
    good &= has("/proc/drvs/VM0/stats", line);
    kill(pid, SIGKILL);
    mnx_vm_end(0);
    good &= open("/proc/drvs/VM0/info", O_RDONLY) < 0;
    puts(good ? "good" : "bad");
    return !good;
}
