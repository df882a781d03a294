/* bad_pointers: system calls with pointers that do not point to usable memory have to fail with EFAULT, and harm nobody.
 * Prints a line for each that does not, and the number of calls made; ends with 0 when all failed as they should. It gives the same on Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

static int calls, wrong;

static void expect(const char *name, const char *where, long result)
{
    calls++;
    if (result == -1 && errno == EFAULT)
        return;
    wrong++;
    printf("%s with %s memory gives %ld (%s)\n", name, where, result, result == -1 ? strerror(errno) : "no error");
}

/* Calls that read from the memory at p. */
static void reading(const char *where, void *p, int file, int full_pipe)
{
    expect("write", where, syscall(SYS_write, file, p, 100));
    expect("write to a pipe", where, syscall(SYS_write, full_pipe, p, 100));
    expect("open", where, syscall(SYS_open, p, O_RDONLY));
    expect("openat", where, syscall(SYS_openat, AT_FDCWD, p, O_RDONLY));
    expect("chdir", where, syscall(SYS_chdir, p));
    expect("mkdir", where, syscall(SYS_mkdir, p, 0755));
    expect("unlink", where, syscall(SYS_unlink, p));
    expect("rename", where, syscall(SYS_rename, p, "/tmp/x"));
    expect("symlink", where, syscall(SYS_symlink, "/tmp/x", p));
    expect("execve", where, syscall(SYS_execve, p, NULL, NULL));
    expect("execve of arguments", where, syscall(SYS_execve, "/bin/true", p, NULL));
    expect("rt_sigprocmask", where, syscall(SYS_rt_sigprocmask, SIG_BLOCK, p, NULL, 8));
    expect("rt_sigaction", where, syscall(SYS_rt_sigaction, SIGUSR1, p, NULL, 8));
    expect("nanosleep", where, syscall(SYS_nanosleep, p, NULL));
    expect("setitimer", where, syscall(SYS_setitimer, ITIMER_REAL, p, NULL));
    expect("utimensat", where, syscall(SYS_utimensat, AT_FDCWD, "/tmp", p, 0));
    expect("writev", where, syscall(SYS_writev, file, p, 1));
    expect("access", where, syscall(SYS_access, p, R_OK));
}

/* Calls that write to the memory at p. */
static void writing(const char *where, void *p, int file, int pipe_with_data)
{
    expect("read", where, syscall(SYS_pread64, file, p, 100, 0));
    expect("read from a pipe", where, syscall(SYS_read, pipe_with_data, p, 100));
    expect("fstat", where, syscall(SYS_fstat, file, p));
    expect("newfstatat", where, syscall(SYS_newfstatat, AT_FDCWD, "/", p, 0));
    expect("getcwd", where, syscall(SYS_getcwd, p, 100));
    expect("readlink", where, syscall(SYS_readlink, "/tmp/bad_pointers_link", p, 100));
    expect("pipe2", where, syscall(SYS_pipe2, p, 0));
    expect("uname", where, syscall(SYS_uname, p));
    expect("sysinfo", where, syscall(SYS_sysinfo, p));
    expect("getrlimit", where, syscall(SYS_getrlimit, 0, p));
    expect("clock_gettime", where, syscall(SYS_clock_gettime, 0, p));
    expect("getrandom", where, syscall(SYS_getrandom, p, 16, 0));
    expect("rt_sigprocmask (old)", where, syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, p, 8));
    expect("statfs", where, syscall(SYS_statfs, "/", p));
    int directory = open("/", O_RDONLY | O_DIRECTORY);
    expect("getdents64", where, syscall(SYS_getdents64, directory, p, 1024));
    close(directory);
}

int main(void)
{
    int ends[2];
    char *read_only = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *gone = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 8192);
    unlink("/tmp/bad_pointers");
    unlink("/tmp/bad_pointers_link");
    int file = open("/tmp/bad_pointers", O_CREAT | O_RDWR, 0644);
    if (file < 0 || pipe(ends) != 0 || write(file, "0123456789", 10) != 10 || write(ends[1], "data", 4) != 4 ||
        symlink("target", "/tmp/bad_pointers_link") != 0) {
        perror("bad_pointers");
        return 1;
    }
    struct { const char *where; void *p; int readable; } bad[] = {
        {"unmapped", gone, 0},
        {"inaccessible", hole, 0},
        {"kernel", (void *)0xffffffff80000000, 0},
        {"half-way", (void *)0xffff800000000000, 0},
        {"non-canonical", (void *)0x800000000000, 0},
        {"low", (void *)8, 0},
        {"last", (void *)-8, 0},
        {"read-only", read_only, 1},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (!bad[i].readable)
            reading(bad[i].where, bad[i].p, file, ends[1]);
        writing(bad[i].where, bad[i].p, file, ends[0]);
    }
    unlink("/tmp/bad_pointers");
    unlink("/tmp/bad_pointers_link");
    printf("%d calls, %d wrong\n", calls, wrong);
    return wrong != 0;
}
