/* The rest: prctl, uname, sysinfo, random bytes, memfd, sendfile, splice, attributes, mounts, terminals, what needs root. */
#include "behaviour.h"
#include <linux/reboot.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <termios.h>

static int in, out;
static void new_pipe(void) {
    int ends[2];
    must(pipe2(ends, O_NONBLOCK));
    in = ends[0];
    out = ends[1];
}

static int file(const char *name, const char *text) {
    make(name, text);
    return must(open(name, O_RDWR));
}

BEHAVIOUR("a system call that does not exist") {
    show(syscall(9999));
    show(syscall(-1));
}
BEHAVIOUR("prctl of unknown options") {
    show(prctl(9999, 0, 0, 0, 0));
    show(prctl(-1, 0, 0, 0, 0));
}
BEHAVIOUR("prctl PR_SET_NAME cuts at 15 bytes; bad memory") {
    char name[16];
    show(prctl(PR_SET_NAME, "a name of many bytes"));
    prctl(PR_GET_NAME, name);
    note("'%s'", name);
    show(prctl(PR_SET_NAME, bad()));
    show(prctl(PR_GET_NAME, bad()));
}
BEHAVIOUR("prctl PR_SET_PDEATHSIG with a bad signal; it is not inherited") {
    int signal = -1;
    show(prctl(PR_SET_PDEATHSIG, 65));
    show(prctl(PR_SET_PDEATHSIG, SIGUSR1));
    prctl(PR_GET_PDEATHSIG, &signal);
    show(signal);
    IN_CHILD {
        prctl(PR_GET_PDEATHSIG, &signal);
        show(signal);
    }
    show(prctl(PR_GET_PDEATHSIG, bad()));
}
BEHAVIOUR("prctl PR_SET_NO_NEW_PRIVS wants 1 and zeros, cannot be unset, is inherited") {
    show(prctl(PR_SET_NO_NEW_PRIVS, 2, 0, 0, 0));
    show(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0));
    show(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    show(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    show(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    IN_CHILD { show(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)); }
}
BEHAVIOUR("prctl PR_SET_DUMPABLE takes 0 and 1") {
    show(prctl(PR_GET_DUMPABLE));
    show(prctl(PR_SET_DUMPABLE, 2));
    show(prctl(PR_SET_DUMPABLE, 0));
    show(prctl(PR_GET_DUMPABLE));
}
BEHAVIOUR("a process that has changed its ids is not dumpable") {
    must(setresuid(-1, USER, -1));
    show(prctl(PR_GET_DUMPABLE) == 1);
}
BEHAVIOUR("prctl PR_SET_KEEPCAPS takes 0 and 1") {
    show(prctl(PR_SET_KEEPCAPS, 2));
    show(prctl(PR_SET_KEEPCAPS, 1));
    show(prctl(PR_GET_KEEPCAPS));
}
BEHAVIOUR("prctl PR_SET_CHILD_SUBREAPER is not inherited") {
    int set = -1;
    show(prctl(PR_SET_CHILD_SUBREAPER, 1));
    show(prctl(PR_GET_CHILD_SUBREAPER, &set));
    show(set);
    IN_CHILD {
        prctl(PR_GET_CHILD_SUBREAPER, &set);
        show(set);
    }
}
BEHAVIOUR("prctl PR_SET_TIMERSLACK: 0 sets what it was at first, children inherit it") {
    long first = prctl(PR_GET_TIMERSLACK);
    show(prctl(PR_SET_TIMERSLACK, 77777));
    show(prctl(PR_GET_TIMERSLACK));
    IN_CHILD { show(prctl(PR_GET_TIMERSLACK)); }
    prctl(PR_SET_TIMERSLACK, 0);
    show(prctl(PR_GET_TIMERSLACK) == first);
}
static int large_pages_are_off(void) { return prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0); }
BEHAVIOUR("prctl PR_SET_THP_DISABLE: children inherit it; with arguments that it does not have") {
    show(large_pages_are_off());
    show(prctl(PR_GET_THP_DISABLE, 1, 0, 0, 0));
    show(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 1));
    show(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
    show(large_pages_are_off());
    IN_CHILD { show(large_pages_are_off()); }
    show(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0));
    show(large_pages_are_off());
}
static int memory_failure(void) { return prctl(PR_MCE_KILL_GET, 0, 0, 0, 0); }
BEHAVIOUR("prctl PR_MCE_KILL: children inherit it; with arguments that it does not have") {
    show(memory_failure());
    show(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0));
    show(memory_failure());
    IN_CHILD { show(memory_failure()); }
    show(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_LATE, 0, 0));
    show(memory_failure());
    show(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, 3, 0, 0));
    show(prctl(PR_MCE_KILL, 2, PR_MCE_KILL_EARLY, 0, 0));
    show(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 1, 0));
    show(prctl(PR_MCE_KILL, PR_MCE_KILL_CLEAR, PR_MCE_KILL_EARLY, 0, 0));
    show(prctl(PR_MCE_KILL_GET, 1, 0, 0, 0));
    show(memory_failure());
    show(prctl(PR_MCE_KILL, PR_MCE_KILL_CLEAR, 0, 0, 0));
    show(memory_failure());
}
BEHAVIOUR("prctl PR_TASK_PERF_EVENTS_DISABLE and PR_TASK_PERF_EVENTS_ENABLE without any") {
    show(prctl(PR_TASK_PERF_EVENTS_DISABLE));
    show(prctl(PR_TASK_PERF_EVENTS_ENABLE));
}
BEHAVIOUR("arch_prctl of unknown options, with bad memory") {
    show(syscall(SYS_arch_prctl, 0x7777, 0));
    show(syscall(SYS_arch_prctl, 0x1003, bad()));
    show(syscall(SYS_arch_prctl, 0x1002, -1L));
}
BEHAVIOUR("personality: asked with all ones, set, inherited") {
    show(personality(0xffffffff));
    show(personality(ADDR_NO_RANDOMIZE));
    note("%x", personality(0xffffffff));
    IN_CHILD { note("%x", personality(0xffffffff)); }
}
BEHAVIOUR("uname: the system's name, the machine; bad memory") {
    struct utsname names;
    show(uname(&names));
    note("%s %s", names.sysname, names.machine);
    show(uname(bad()));
}
BEHAVIOUR("sethostname and setdomainname of bad lengths, by a user") {
    char name[70] = "x";
    show(sethostname(name, 65));
    show(sethostname(name, -1));
    show(sethostname(bad(), 5));
    show(setdomainname(name, 65));
    AS(USER) {
        show(sethostname(name, 1));
        show(setdomainname(name, 1));
    }
}
BEHAVIOUR("sysinfo: memory, processes; bad memory") {
    struct sysinfo info;
    show(sysinfo(&info));
    note("%d %d %d", info.totalram > info.freeram, info.procs > 0, info.mem_unit > 0);
    show(sysinfo(bad()));
}
BEHAVIOUR("getrandom with unknown flags, with bad memory, of nothing") {
    char bytes[16];
    show(getrandom(bytes, 16, 0));
    show(getrandom(bytes, 16, 0x77));
    show(getrandom(bytes, 16, GRND_RANDOM | 4));
    show(getrandom(bad(), 16, 0));
    show(getrandom(bytes, 0, 0));
}
BEHAVIOUR("getrandom gives other bytes each time") {
    char one[16], two[16];
    getrandom(one, 16, 0);
    getrandom(two, 16, 0);
    note("%d", memcmp(one, two, 16) != 0);
}
BEHAVIOUR("reboot by a user, with bad magic numbers and commands") {
    show(syscall(SYS_reboot, 1, 2, LINUX_REBOOT_CMD_CAD_OFF, NULL));
    show(syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, 0x7777, NULL));
    AS(USER) { show(syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF, NULL)); }
}
BEHAVIOUR("syslog with bad actions, lengths, memory, by a user") {
    char text[8];
    show(klogctl(99, NULL, 0));
    show(klogctl(3, NULL, 8));
    show(klogctl(3, text, -1));
    AS(USER) { show(klogctl(5, NULL, 0)); }
}
BEHAVIOUR("memfd_create with unknown flags, a long name, bad memory") {
    char name[300];
    memset(name, 'n', sizeof name);
    name[249] = 0;
    show(memfd_create(name, 0));
    name[249] = 'n';
    name[250] = 0;
    show(memfd_create(name, 0));
    show(memfd_create("x", 0x7770));
    show(memfd_create(bad(), 0));
}
BEHAVIOUR("a memfd is an empty file without a name") {
    struct stat at;
    int fd = memfd_create("x", MFD_CLOEXEC);
    show(fcntl(fd, F_GETFD));
    fstat(fd, &at);
    note("%ld %o %ld", (long)at.st_size, at.st_mode, (long)at.st_nlink);
    show(pwrite(fd, "text", 4, 0));
    show_read(fd, 9);
    note("%o", fcntl(fd, F_GETFL) & O_ACCMODE);
}
BEHAVIOUR("a memfd without MFD_ALLOW_SEALING is sealed") {
    int fd = memfd_create("x", 0);
    show(fcntl(fd, F_GET_SEALS));
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
}
BEHAVIOUR("F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL") {
    int fd = memfd_create("x", MFD_ALLOW_SEALING);
    write(fd, "text", 4);
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    show(ftruncate(fd, 1));
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    show(ftruncate(fd, 9));
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL));
    show(pwrite(fd, "x", 1, 0));
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    note("%x", fcntl(fd, F_GET_SEALS));
}
BEHAVIOUR("sendfile between files, with an offset and without") {
    off_t offset = 2;
    int from = file("f", "abcdef"), to = file("g", "");
    show(sendfile(to, from, &offset, 3));
    show(offset);
    show(lseek(from, 0, SEEK_CUR));
    show(sendfile(to, from, NULL, 2));
    show(lseek(from, 0, SEEK_CUR));
    show_file("g");
}
BEHAVIOUR("sendfile at the end, to and from bad descriptors, with a bad offset") {
    off_t offset = 100, negative = -1;
    int from = file("f", "abc"), to = file("g", "");
    show(sendfile(to, from, &offset, 5));
    show(sendfile(99, from, NULL, 5));
    show(sendfile(to, 99, NULL, 5));
    show(sendfile(to, from, &negative, 5));
    show(sendfile(to, from, bad(), 5));
    show(sendfile(open("g", O_RDONLY), from, NULL, 5));
    show(sendfile(to, open("f", O_WRONLY), NULL, 5));
}
BEHAVIOUR("sendfile to a pipe") {
    new_pipe();
    show(sendfile(out, file("f", "abc"), NULL, 5));
    show_read(in, 9);
}
BEHAVIOUR("splice without a pipe, with unknown flags, bad descriptors") {
    int from = file("f", "abc"), to = file("g", "");
    new_pipe();
    show(splice(from, NULL, to, NULL, 3, 0));
    show(splice(99, NULL, out, NULL, 3, 0));
    show(splice(from, NULL, out, NULL, 3, 0x777));
    show(splice(from, NULL, out, NULL, 0, 0));
}
BEHAVIOUR("splice from a file to a pipe and on to a file") {
    new_pipe();
    show(splice(file("f", "abcdef"), NULL, out, NULL, 4, 0));
    show(splice(in, NULL, file("g", ""), NULL, 9, 0));
    show_file("g");
}
BEHAVIOUR("tee copies from a pipe to a pipe, and leaves the bytes") {
    new_pipe();
    int from = in;
    write(out, "text", 4);
    new_pipe();
    show(tee(from, out, 9, 0));
    show_read(in, 9);
    show_read(from, 9);
    show(tee(0, out, 1, 0));
}
BEHAVIOUR("vmsplice into a pipe") {
    struct iovec piece = {"text", 4};
    new_pipe();
    show(vmsplice(out, &piece, 1, 0));
    show_read(in, 9);
}
BEHAVIOUR("copy_file_range between files, of a bad descriptor, with flags, into itself") {
    off_t from_at = 1, to_at = 0;
    int from = file("f", "abcdef"), to = file("g", "");
    show(copy_file_range(from, &from_at, to, &to_at, 3, 0));
    note("%ld %ld", (long)from_at, (long)to_at);
    show_file("g");
    show(copy_file_range(99, NULL, to, NULL, 1, 0));
    show(copy_file_range(from, NULL, to, NULL, 1, 1));
    from_at = 0;
    to_at = 1;
    show(copy_file_range(from, &from_at, from, &to_at, 3, 0));
}
BEHAVIOUR("extended attributes: set, read, listed, removed") {
    char value[16];
    make("f", "");
    show(setxattr("f", "user.one", "value", 5, 0));
    show(getxattr("f", "user.one", NULL, 0));
    show(getxattr("f", "user.one", value, sizeof value));
    show(getxattr("f", "user.one", value, 2));
    show(listxattr("f", NULL, 0));
    show(setxattr("f", "user.one", "x", 1, XATTR_CREATE));
    show(setxattr("f", "user.two", "x", 1, XATTR_REPLACE));
    show(removexattr("f", "user.one"));
    show(getxattr("f", "user.one", value, sizeof value));
}
BEHAVIOUR("extended attributes of nothing, of unknown kinds, with bad names") {
    char name[300] = "user.";
    make("f", "");
    memset(name + 5, 'n', 256);
    show(setxattr("none", "user.one", "x", 1, 0));
    show(setxattr("f", "nokind", "x", 1, 0));
    show(setxattr("f", "", "x", 1, 0));
    show(setxattr("f", name, "x", 1, 0));
    show(setxattr("f", "user.one", "x", 1, 77));
    show(setxattr("f", "user.one", bad(), 1, 0));
    show(fgetxattr(99, "user.one", NULL, 0));
    show(listxattr("none", NULL, 0));
}
BEHAVIOUR("O_TMPFILE makes a file without a name, which linkat names") {
    int fd = open(".", O_TMPFILE | O_RDWR, 0600);
    char path[32];
    show(fd);
    show(write(fd, "text", 4));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    show(linkat(AT_FDCWD, path, AT_FDCWD, "f", AT_SYMLINK_FOLLOW));
    show_file("f");
}
BEHAVIOUR("O_TMPFILE for reading alone, in a file") {
    make("f", "");
    show(open(".", O_TMPFILE | O_RDONLY, 0600));
    show(open("f", O_TMPFILE | O_RDWR, 0600));
}
BEHAVIOUR("writing a program that runs, running a file that is written") {
    static char bytes[1 << 16];
    char *words[] = {"f", NULL};
    int from = open("/bin/sh", O_RDONLY), to = open("f", O_CREAT | O_WRONLY, 0755);
    for (ssize_t length; (length = read(from, bytes, sizeof bytes)) > 0;)
        write(to, bytes, length);
    show(execve("./f", words, NULL));
}
BEHAVIOUR("mount and umount by a user, of nothing, of unknown kinds") {
    mkdir("d", 0755);
    show(mount("none", "d", "no such kind", 0, NULL));
    show(mount("none", "none", "tmpfs", 0, NULL));
    show(umount("d"));
    show(umount("none"));
    AS(USER) {
        show(mount("none", "d", "tmpfs", 0, NULL));
        show(umount("/proc"));
    }
}
BEHAVIOUR("a new file system hides the directory under it, and is busy while a file is open") {
    mkdir("d", 0755);
    make("d/below", "");
    show(mount("none", "d", "tmpfs", 0, "size=1m"));
    show_mode("d/below");
    make("d/above", "text");
    int fd = open("d/above", O_RDONLY);
    show(umount("d"));
    show(rename("d", "e"));
    show(rmdir("d"));
    show(rename("d/above", "above"));
    show(link("d/above", "above"));
    close(fd);
    show(umount("d"));
    show_mode("d/below");
}
BEHAVIOUR("a read-only file system") {
    mkdir("d", 0755);
    show(mount("none", "d", "tmpfs", 0, "size=1m"));
    make("d/f", "text");
    show(mount("none", "d", "tmpfs", MS_REMOUNT | MS_RDONLY, "size=1m"));
    show(open("d/f", O_RDWR));
    show(open("d/f", O_RDONLY) >= 0);
    show(open("d/new", O_CREAT | O_RDWR, 0600));
    show(mkdir("d/e", 0755));
    show(unlink("d/f"));
    show(chmod("d/f", 0600));
    show(rename("d/f", "d/g"));
    show(truncate("d/f", 0));
    show(access("d/f", W_OK));
    show(utimensat(AT_FDCWD, "d/f", NULL, 0));
    umount2("d", MNT_DETACH);
}
BEHAVIOUR("a file system that is full") {
    static char bytes[65536];
    mkdir("d", 0755);
    must(mount("none", "d", "tmpfs", 0, "size=256k"));
    int fd = open("d/f", O_CREAT | O_RDWR, 0600);
    while (write(fd, bytes, sizeof bytes) > 0)
        ;
    show(-1);
    show(fallocate(fd, 0, 0, 10 << 20));
    show(pwrite(fd, "x", 1, 0));
    close(fd);
    show(umount("d"));
}
BEHAVIOUR("terminal calls on what is no terminal") {
    struct termios settings;
    struct winsize size;
    show(tcgetattr(0, &settings));
    show(ioctl(0, TIOCGWINSZ, &size));
    show(isatty(0));
    show(tcgetattr(file("f", ""), &settings));
    show(tcgetpgrp(0));
    show(ioctl(99, TCGETS, &settings));
}
BEHAVIOUR("/dev/tty without a terminal") {
    IN_CHILD {
        setsid();
        show(open("/dev/tty", O_RDWR));
    }
}
BEHAVIOUR("files of /proc cannot be made, removed or renamed") {
    show(open("/proc/new", O_CREAT | O_RDWR, 0600));
    show(unlink("/proc/version"));
    show(rename("/proc/version", "/proc/v"));
    show(rmdir("/proc/self"));
}
BEHAVIOUR("/proc/self is the process that looks") {
    char target[16] = "", own[16];
    show(readlink("/proc/self", target, sizeof target) > 0);
    snprintf(own, sizeof own, "%d", getpid());
    note("%d", strcmp(target, own));
    show(chdir("/proc/self"));
    show(open("stat", O_RDONLY));
}
BEHAVIOUR("/proc/self/fd has a link for each descriptor") {
    char target[300] = "";
    make("f", "");
    int fd = open("f", O_RDONLY);
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    show(readlink(path, target, sizeof target - 1) > 0);
    note("%s", strrchr(target, '/'));
    unlink("f");
    memset(target, 0, sizeof target);
    readlink(path, target, sizeof target - 1);
    note("%s", strrchr(target, '/'));
    show(readlink("/proc/self/fd/99", target, sizeof target));
}
BEHAVIOUR("a file that was removed is opened again by /proc/self/fd") {
    int fd = file("f", "text");
    char path[32];
    unlink("f");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    show_file(path);
}
BEHAVIOUR("/proc of a process that does not exist, and of one that has ended") {
    char path[64];
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    show(access(path, F_OK));
    wait_for(child);
    show(access(path, F_OK));
    show(access("/proc/99999999", F_OK));
}
BEHAVIOUR("acct, swapon and membarrier: of nothing, of unknown commands") {
    show(syscall(SYS_membarrier, 0x777, 0, 0));
    show(syscall(SYS_acct, "none"));
    show(syscall(SYS_swapon, "none", 0));
}
