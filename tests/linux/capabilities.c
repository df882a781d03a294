/* Capabilities: the sets of a process and how calls, changes of ids and execs change them; what root is refused without one; those of files.
 * It is long because each rule is tried by itself. */
#include "behaviour.h"
#include <linux/capability.h>
#include <linux/reboot.h>
#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define BIT(capability) (1ULL << (capability))
/* Containers lack this one, so it is never shown. */
#define SHOWN (~BIT(CAP_SYS_RESOURCE))

struct sets {
    unsigned long long effective, permitted, inheritable;
};

static struct sets get(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    struct sets sets;
    must(syscall(SYS_capget, &header, data));
    sets.effective = data[0].effective | (unsigned long long)data[1].effective << 32;
    sets.permitted = data[0].permitted | (unsigned long long)data[1].permitted << 32;
    sets.inheritable = data[0].inheritable | (unsigned long long)data[1].inheritable << 32;
    return sets;
}

static long set(unsigned long long effective, unsigned long long permitted, unsigned long long inheritable) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{effective, permitted, inheritable},
                                             {effective >> 32, permitted >> 32, inheritable >> 32}};
    return syscall(SYS_capset, &header, data);
}

/* Takes capabilities out of the effective set. */
static void lower(unsigned long long which) {
    struct sets own = get();
    must(set(own.effective & ~which, own.permitted, own.inheritable));
}

static void show_sets(void) {
    struct sets own = get();
    note("%llx/%llx/%llx", own.effective & SHOWN, own.permitted & SHOWN, own.inheritable & SHOWN);
}

static long ambient(int what, unsigned long capability) { return prctl(PR_CAP_AMBIENT, what, capability, 0, 0); }

/* The capability sets in /proc/self/status, except that containers have a smaller bounding set. */
static int print_status(char *text, size_t length) {
    char line[256];
    int done = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "Cap", 3) == 0)
            done += snprintf(text + done, length - done, " %.3s=%llx", line + 3, strtoull(line + 8, NULL, 16) & SHOWN);
    fclose(status);
    return done;
}

/* This program again, under the name "f": tells its sets on descriptor 9. */
__attribute__((constructor)) static void again(int count, char **words, char **environment) {
    char text[512];
    (void)environment;
    if (count != 1 || strcmp(words[0], "f") != 0)
        return;
    int length = print_status(text, sizeof text);
    length += sprintf(text + length, " secure=%d", prctl(PR_GET_SECUREBITS));
    _exit(write(9, text, length) != length);
}

/* Makes f, which is this program. */
static void make_program(uid_t owner, mode_t mode) {
    static char bytes[1 << 16];
    chmod(".", 0755);
    int from = must(open("/proc/self/exe", O_RDONLY)), to = must(open("f", O_CREAT | O_WRONLY, 0755));
    for (ssize_t length; (length = read(from, bytes, sizeof bytes)) > 0;)
        write(to, bytes, length);
    must(fchown(to, owner, owner));
    must(fchmod(to, mode));
    close(from);
    close(to);
}

static int told[2];

/* Executes f, after what the caller does in the block: EXEC { ... } */
static pid_t begin_exec(void) {
    must(pipe2(told, O_CLOEXEC));
    return must(fork());
}
static void run_program(void) {
    char *words[] = {"f", NULL};
    dup2(told[1], 9);
    execve("./f", words, NULL);
    show(-1);
    _exit(0);
}
static void show_told(pid_t child) {
    char text[512];
    close(told[1]);
    wait_for(child);
    ssize_t length = read(told[0], text, sizeof text);
    if (length > 0)
        note("%.*s", (int)length - 1, text + 1);
}
#define EXEC for (pid_t child_ = begin_exec(); child_ == 0 || (show_told(child_), 0); run_program())

static int give_file(unsigned permitted, unsigned inheritable, int effective) {
    struct vfs_cap_data data = {VFS_CAP_REVISION_2 | (effective ? VFS_CAP_FLAGS_EFFECTIVE : 0),
                                {{permitted, inheritable}, {0, 0}}};
    return setxattr("f", "security.capability", &data, sizeof data, 0);
}

BEHAVIOUR("root has all, and inherits none") {
    char text[512] = "";
    show_sets();
    print_status(text, sizeof text);
    note("%s", text + 1);
}
BEHAVIOUR("capset refuses what is not permitted, and effective what is not to be permitted") {
    show(set(BIT(CAP_KILL), BIT(CAP_CHOWN), 0));
    show(set(BIT(CAP_CHOWN), BIT(CAP_CHOWN) | BIT(CAP_KILL), 0));
    show(set(0, BIT(CAP_CHOWN) | BIT(CAP_FOWNER), 0));
    show(set(BIT(CAP_KILL), BIT(CAP_CHOWN) | BIT(CAP_KILL), 0));
    show_sets();
}
BEHAVIOUR("capset ignores what is no capability") {
    show(set(~0ULL & SHOWN & ~BIT(CAP_SETPCAP), ~0ULL & SHOWN, 1ULL << 50));
    show_sets();
}
BEHAVIOUR("inheritable without CAP_SETPCAP: what is permitted or was inheritable") {
    must(set(BIT(CAP_KILL), BIT(CAP_KILL), BIT(CAP_CHOWN)));
    show(set(BIT(CAP_KILL), BIT(CAP_KILL), BIT(CAP_CHOWN) | BIT(CAP_FOWNER)));
    show(set(BIT(CAP_KILL), BIT(CAP_KILL), BIT(CAP_CHOWN) | BIT(CAP_KILL)));
    show(set(BIT(CAP_KILL), BIT(CAP_KILL), 0));
    show(set(BIT(CAP_KILL), BIT(CAP_KILL), BIT(CAP_CHOWN)));
}
BEHAVIOUR("inheritable with CAP_SETPCAP: within the bounding set") {
    show(prctl(PR_CAPBSET_DROP, CAP_CHOWN));
    show(set(get().effective, get().permitted, BIT(CAP_CHOWN)));
    show(set(get().effective, get().permitted, BIT(CAP_KILL)));
}
BEHAVIOUR("PR_CAPBSET_READ and PR_CAPBSET_DROP of no capability, and without CAP_SETPCAP") {
    show(prctl(PR_CAPBSET_READ, 41));
    show(prctl(PR_CAPBSET_READ, 1UL << 40));
    show(prctl(PR_CAPBSET_DROP, 41));
    show(prctl(PR_CAPBSET_READ, CAP_KILL));
    show(prctl(PR_CAPBSET_DROP, CAP_KILL));
    show(prctl(PR_CAPBSET_READ, CAP_KILL));
    show_sets();
    lower(BIT(CAP_SETPCAP));
    show(prctl(PR_CAPBSET_DROP, CAP_CHOWN));
    show(prctl(PR_CAPBSET_DROP, 41));
}
BEHAVIOUR("PR_SET_SECUREBITS: unknown bits, locked bits, without CAP_SETPCAP") {
    show(prctl(PR_GET_SECUREBITS));
    show(prctl(PR_SET_SECUREBITS, 1UL << 20));
    show(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED));
    show(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT));
    show(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT_LOCKED));
    show(prctl(PR_GET_SECUREBITS));
    lower(BIT(CAP_SETPCAP));
    show(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS));
}
BEHAVIOUR("PR_SET_KEEPCAPS: of 2, and where it is locked") {
    show(prctl(PR_SET_KEEPCAPS, 2));
    show(prctl(PR_SET_KEEPCAPS, 1));
    show(prctl(PR_GET_SECUREBITS));
    show(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS_LOCKED));
    show(prctl(PR_GET_KEEPCAPS));
    show(prctl(PR_SET_KEEPCAPS, 1));
}
BEHAVIOUR("PR_CAP_AMBIENT: wrong arguments") {
    show(prctl(PR_CAP_AMBIENT, 0, 0, 0, 0));
    show(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 41, 0, 0));
    show(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 1, 0));
    show(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0, 0));
    show(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 1));
    show(prctl(PR_CAP_AMBIENT, 5, CAP_KILL, 0, 0));
}
BEHAVIOUR("PR_CAP_AMBIENT: only what is permitted and inheritable") {
    show(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
    must(set(get().effective, get().permitted, BIT(CAP_KILL) | BIT(CAP_CHOWN)));
    show(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
    show(ambient(PR_CAP_AMBIENT_IS_SET, CAP_KILL));
    show(ambient(PR_CAP_AMBIENT_RAISE, CAP_CHOWN));
    show(ambient(PR_CAP_AMBIENT_LOWER, CAP_CHOWN));
    show(ambient(PR_CAP_AMBIENT_IS_SET, CAP_CHOWN));
    must(set(get().effective, get().permitted, BIT(CAP_CHOWN)));
    show(ambient(PR_CAP_AMBIENT_IS_SET, CAP_KILL));
}
BEHAVIOUR("SECBIT_NO_CAP_AMBIENT_RAISE") {
    must(set(get().effective, get().permitted, BIT(CAP_KILL)));
    show(prctl(PR_SET_SECUREBITS, SECBIT_NO_CAP_AMBIENT_RAISE));
    show(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
}
BEHAVIOUR("setresuid: the effective id alone, and back") {
    must(setresuid(-1, USER, -1));
    show_sets();
    must(setresuid(-1, 0, -1));
    show_sets();
    lower(BIT(CAP_CHOWN));
    must(setresuid(USER, -1, -1));
    show_sets();
    must(setresuid(USER, USER, USER));
    show_sets();
}
BEHAVIOUR("keepcaps: permitted, until they are made effective") {
    must(set(get().effective, get().permitted, BIT(CAP_KILL)));
    must(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
    must(prctl(PR_SET_KEEPCAPS, 1));
    must(setresuid(USER, USER, USER));
    show_sets();
    show(ambient(PR_CAP_AMBIENT_IS_SET, CAP_KILL));
    show(set(BIT(CAP_SETUID), BIT(CAP_SETUID), 0));
    show(setresuid(0, STRANGER, STRANGER));
    show_sets();
}
BEHAVIOUR("SECBIT_NO_SETUID_FIXUP: ids change nothing") {
    must(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP));
    must(setresuid(USER, USER, USER));
    show_sets();
    setfsuid(STRANGER);
    show_sets();
}
BEHAVIOUR("setfsuid: the capabilities for files") {
    setfsuid(USER);
    show_sets();
    setfsuid(STRANGER);
    setfsuid(0);
    show_sets();
}
BEHAVIOUR("without CAP_DAC_OVERRIDE root reads and searches, and writes nothing") {
    make_mode("f", "text", 0600);
    mkdir("d", 0700);
    make("d/g", "");
    must(chown("f", USER, USER));
    must(chown("d", USER, USER));
    lower(BIT(CAP_DAC_OVERRIDE));
    succeeds(open("f", O_RDONLY) >= 0);
    succeeds(open("f", O_RDWR) >= 0);
    succeeds(open("d", O_RDONLY) >= 0);
    succeeds(open("d/g", O_RDWR) >= 0);
    show(unlink("d/g"));
    show(access("f", W_OK));
    show(faccessat(AT_FDCWD, "f", W_OK, AT_EACCESS));
    lower(BIT(CAP_DAC_READ_SEARCH));
    succeeds(open("f", O_RDONLY) >= 0);
    succeeds(open("d/g", O_RDONLY) >= 0);
    show(chdir("d"));
}
BEHAVIOUR("access with SECBIT_NO_SETUID_FIXUP judges by what is effective") {
    make_mode("f", "text", 0600);
    must(chown("f", USER, USER));
    must(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP));
    lower(BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH));
    show(access("f", R_OK));
}
BEHAVIOUR("without CAP_FOWNER: chmod, utimes, O_NOATIME, sticky directories") {
    struct timespec times[2] = {{5, 5}, {5, 5}};
    make_mode("f", "text", 0666);
    must(chown("f", USER, USER));
    mkdir("d", 0777);
    must(chmod("d", 01777));
    must(chown("d", STRANGER, STRANGER));
    make_mode("d/g", "", 0666);
    must(chown("d/g", USER, USER));
    lower(BIT(CAP_FOWNER));
    show(chmod("f", 0600));
    show(utimensat(AT_FDCWD, "f", times, 0));
    show(utimensat(AT_FDCWD, "f", NULL, 0));
    succeeds(open("f", O_RDONLY | O_NOATIME) >= 0);
    show(unlink("d/g"));
}
BEHAVIOUR("without CAP_CHOWN: another owner, a group") {
    make("f", "");
    lower(BIT(CAP_CHOWN));
    show(chown("f", USER, -1));
    show(chown("f", -1, USER));
    show(chown("f", 0, 0));
}
BEHAVIOUR("without CAP_FSETID a write takes the set-id bits, and chmod of a foreign group's file") {
    make_mode("f", "", 06777);
    must(chown("f", 0, USER));
    must(chmod("f", 06777));
    lower(BIT(CAP_FSETID));
    int fd = must(open("f", O_WRONLY));
    must(write(fd, "x", 1));
    show_mode("f");
    must(chmod("f", 02777));
    show_mode("f");
}
BEHAVIOUR("without CAP_SETUID and CAP_SETGID") {
    gid_t group = USER;
    lower(BIT(CAP_SETUID) | BIT(CAP_SETGID));
    show(syscall(SYS_setuid, USER));
    show(syscall(SYS_setresuid, -1, USER, -1));
    show(syscall(SYS_setuid, 0));
    show(syscall(SYS_setgid, USER));
    show(syscall(SYS_setgroups, 1, &group));
    setfsuid(USER);
    show(setfsuid(-1));
}
BEHAVIOUR("without CAP_KILL a signal to another user") {
    struct gate gate = new_gate();
    pid_t child = fork_as(USER);
    if (child == 0) {
        open_gate(gate);
        pause();
    }
    pass_gate(gate);
    lower(BIT(CAP_KILL));
    show(kill(child, SIGTERM));
    must(set(get().permitted, get().permitted, 0));
    show(kill(child, SIGTERM));
    int status;
    waitpid(child, &status, 0);
    show_status(status);
}
BEHAVIOUR("without CAP_SYS_CHROOT, CAP_MKNOD, CAP_SYS_ADMIN, CAP_SYS_BOOT") {
    mkdir("d", 0755);
    lower(BIT(CAP_SYS_CHROOT) | BIT(CAP_MKNOD) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_BOOT));
    show(chroot("d"));
    show(mknod("n", S_IFCHR | 0600, makedev(1, 3)));
    show(mknod("p", S_IFIFO | 0600, 0));
    show(mount("none", "d", "tmpfs", 0, NULL));
    show(umount2("d", 0));
    show(sethostname("x", 1));
    show(setdomainname("x", 1));
    show(syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, 0x12345, 0));
    show(setxattr("d", "trusted.x", "y", 1, 0));
}
BEHAVIOUR("without CAP_SYS_TIME the clock stays") {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    lower(BIT(CAP_SYS_TIME));
    show(clock_settime(CLOCK_REALTIME, &now));
    show(syscall(SYS_settimeofday, &(struct timeval){now.tv_sec, 0}, NULL));
}
BEHAVIOUR("without CAP_SYS_NICE: below the own niceness, real-time policies, others' processes") {
    struct sched_param one = {1};
    struct rlimit none = {0, 0};
    pid_t child = fork_as(USER);
    if (child == 0) {
        pause();
        _exit(0);
    }
    must(setrlimit(RLIMIT_NICE, &none));
    must(setrlimit(RLIMIT_RTPRIO, &none));
    lower(BIT(CAP_SYS_NICE));
    show(setpriority(PRIO_PROCESS, 0, -1));
    show(setpriority(PRIO_PROCESS, 0, 3));
    show(sched_setscheduler(0, SCHED_FIFO, &one));
    wait_until_asleep(child);
    show(setpriority(PRIO_PROCESS, child, 5));
    kill(child, SIGKILL);
}
BEHAVIOUR("without CAP_SYS_PTRACE a process with more rights is not traced") {
    pid_t child = must(fork());
    if (child == 0) {
        pause();
        _exit(0);
    }
    wait_until_asleep(child);
    must(set(0, 0, 0));
    show(ptrace(PTRACE_ATTACH, child, 0, 0));
    kill(child, SIGKILL);
}
BEHAVIOUR("without CAP_LEASE a lease on another's file") {
    make_mode("f", "", 0666);
    must(chown("f", USER, USER));
    int fd = must(open("f", O_RDONLY));
    lower(BIT(CAP_LEASE));
    show(fcntl(fd, F_SETLEASE, F_RDLCK));
}
BEHAVIOUR("without CAP_IPC_LOCK the limit of locked memory counts") {
    struct rlimit small = {4096, 4096};
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(setrlimit(RLIMIT_MEMLOCK, &small));
    show(mlock(memory, 8192));
    munlock(memory, 8192);
    lower(BIT(CAP_IPC_LOCK));
    show(mlock(memory, 8192));
    show(mlock(memory, 4096));
}
BEHAVIOUR("without CAP_SYS_RESOURCE hard limits do not rise") {
    struct rlimit low = {100, 100}, high = {100, 200};
    must(setrlimit(RLIMIT_NOFILE, &low));
    lower(BIT(CAP_SYS_RESOURCE));
    show(setrlimit(RLIMIT_NOFILE, &high));
}
BEHAVIOUR("a user with a capability: CAP_DAC_OVERRIDE opens, CAP_CHOWN gives away, neither does more") {
    make_mode("f", "text", 0600);
    must(prctl(PR_SET_KEEPCAPS, 1));
    must(setresuid(USER, USER, USER));
    must(set(BIT(CAP_DAC_OVERRIDE), BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN), 0));
    succeeds(open("f", O_RDWR) >= 0);
    show(chmod("f", 0666));
    show(chown("f", USER, -1));
    must(set(BIT(CAP_CHOWN), BIT(CAP_CHOWN), 0));
    succeeds(open("f", O_RDWR) >= 0);
    show(chown("f", STRANGER, -1));
    show(setuid(0));
}
BEHAVIOUR("a child has what its parent has") {
    must(set(BIT(CAP_KILL), BIT(CAP_KILL) | BIT(CAP_CHOWN), BIT(CAP_CHOWN)));
    IN_CHILD { show_sets(); }
}
BEHAVIOUR("root executes within the bounding set, whatever it had before") {
    make_program(0, 0755);
    EXEC {
        must(prctl(PR_CAPBSET_DROP, CAP_KILL));
        must(set(0, 0, BIT(CAP_CHOWN)));
    }
}
BEHAVIOUR("exec with SECBIT_NOROOT") {
    make_program(0, 0755);
    EXEC {
        must(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_KEEP_CAPS));
    }
}
BEHAVIOUR("exec by a user whose real id is root's") {
    make_program(0, 0755);
    EXEC { must(setresuid(0, USER, USER)); }
}
BEHAVIOUR("exec by a user keeps what is ambient, and nothing else") {
    make_program(0, 0755);
    EXEC {
        must(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS));
        must(setresuid(USER, USER, USER));
        must(set(BIT(CAP_KILL), BIT(CAP_KILL) | BIT(CAP_CHOWN), BIT(CAP_KILL) | BIT(CAP_CHOWN)));
        must(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
    }
}
BEHAVIOUR("a set-user-id program of root's") {
    make_program(0, 04755);
    EXEC { become(USER); }
}
BEHAVIOUR("a set-user-id program of a user's clears what is ambient") {
    make_program(STRANGER, 04755);
    EXEC {
        must(prctl(PR_SET_KEEPCAPS, 1));
        must(setresuid(USER, USER, USER));
        must(set(0, BIT(CAP_KILL), BIT(CAP_KILL)));
        must(ambient(PR_CAP_AMBIENT_RAISE, CAP_KILL));
    }
}
BEHAVIOUR("PR_SET_NO_NEW_PRIVS: a set-user-id program of root's gives nothing") {
    make_program(0, 04755);
    EXEC {
        become(USER);
        must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    }
}
BEHAVIOUR("security.capability: what is no such value, by a user, without CAP_SETFCAP") {
    make("f", "");
    must(chown("f", USER, USER));
    show(setxattr("f", "security.capability", "nonsense", 8, 0));
    AS(USER) {
        show(setxattr("f", "security.capability", "nonsense", 8, 0));
        show(give_file(0, 0, 0));
    }
    lower(BIT(CAP_SETFCAP));
    show(give_file(0, 0, 0));
    must(set(get().permitted, get().permitted, 0));
    lower(BIT(CAP_SYS_ADMIN));
    show(give_file(0, 0, 0));
    lower(BIT(CAP_SETFCAP));
    show(removexattr("f", "security.capability"));
}
BEHAVIOUR("a file gives its capabilities to a user, effective or only permitted") {
    make_program(0, 0755);
    must(give_file(BIT(CAP_KILL) | BIT(CAP_CHOWN), 0, 1));
    EXEC { become(USER); }
    must(give_file(BIT(CAP_KILL), BIT(CAP_CHOWN), 0));
    EXEC { become(USER); }
    EXEC {
        must(set(get().effective, get().permitted, BIT(CAP_CHOWN)));
        become(USER);
    }
}
BEHAVIOUR("a file whose effective capabilities are not in the bounding set is not executed") {
    make_program(0, 0755);
    must(give_file(BIT(CAP_KILL) | BIT(CAP_CHOWN), 0, 1));
    EXEC {
        must(prctl(PR_CAPBSET_DROP, CAP_KILL));
        become(USER);
    }
}
BEHAVIOUR("capabilities of a file replace root's for a set-user-id program, and not for root") {
    make_program(0, 04755);
    must(give_file(BIT(CAP_KILL), 0, 1));
    EXEC { become(USER); }
    EXEC {}
}
BEHAVIOUR("PR_SET_NO_NEW_PRIVS: a file gives no capabilities") {
    make_program(0, 0755);
    must(give_file(BIT(CAP_KILL), 0, 1));
    EXEC {
        become(USER);
        must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    }
}
BEHAVIOUR("a file that is written, truncated or given away loses its capabilities, not by chmod") {
    char value[32];
    make("f", "text");
    must(give_file(BIT(CAP_KILL), 0, 1));
    must(chmod("f", 0755));
    show(getxattr("f", "security.capability", value, sizeof value));
    int fd = must(open("f", O_RDWR));
    must(write(fd, "x", 1));
    show(getxattr("f", "security.capability", value, sizeof value));
    must(give_file(BIT(CAP_KILL), 0, 1));
    must(ftruncate(fd, 2));
    show(getxattr("f", "security.capability", value, sizeof value));
    must(give_file(BIT(CAP_KILL), 0, 1));
    must(fchown(fd, USER, -1));
    show(getxattr("f", "security.capability", value, sizeof value));
}
