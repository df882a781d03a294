/* stat, statx, access, chmod, chown, times of files, statfs. */
#include "behaviour.h"
#include <sys/inotify.h>
#include <sys/statfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <utime.h>

static void show_owner(const char *path) {
    struct stat at;
    if (lstat(path, &at) < 0)
        note("%s", strerrorname_np(errno));
    else
        note("%d:%d", (int)at.st_uid, (int)at.st_gid);
}

static void show_times(const char *path) {
    struct stat at;
    stat(path, &at);
    note("%ld.%09ld %ld.%09ld", (long)at.st_atim.tv_sec, at.st_atim.tv_nsec, (long)at.st_mtim.tv_sec, at.st_mtim.tv_nsec);
}

/* Seconds of the last change of contents, and of the inode, set to 1 before. */
static struct stat stat_of(const char *path) {
    struct stat at = {0};
    must(lstat(path, &at));
    return at;
}

static const struct timespec OLD[2] = {{1, 0}, {1, 0}};

BEHAVIOUR("stat of nothing, of the empty path, by bad memory") {
    struct stat at;
    show(stat("none", &at));
    show(stat("", &at));
    show(stat(bad(), &at));
    show(stat(".", bad()));
    show(fstat(99, &at));
    show(fstat(0, bad()));
}
BEHAVIOUR("stat follows links, lstat does not") {
    struct stat at;
    make("f", "text");
    symlink("f", "l");
    stat("l", &at);
    note("%o %ld", at.st_mode, (long)at.st_size);
    lstat("l", &at);
    note("%o %ld", at.st_mode, (long)at.st_size);
}
BEHAVIOUR("stat of a file in a directory without search permission") {
    struct stat at;
    mkdir("d", 0600);
    AS(USER) { show(stat("d/f", &at)); }
}
BEHAVIOUR("stat of a file without any permission") {
    struct stat at;
    make_mode("f", "", 0);
    AS(USER) { show(stat("f", &at)); }
}
BEHAVIOUR("fstatat AT_EMPTY_PATH, and with unknown flags") {
    struct stat at;
    make("f", "text");
    int fd = open("f", O_RDONLY);
    show(fstatat(fd, "", &at, AT_EMPTY_PATH));
    note("%ld", (long)at.st_size);
    show(fstatat(fd, "", &at, 0));
    show(fstatat(AT_FDCWD, "f", &at, 0x4));
    show(fstatat(99, "f", &at, 0));
    show(fstatat(fd, "f", &at, 0));
}
BEHAVIOUR("stat of a pipe") {
    struct stat at;
    int p[2];
    pipe(p);
    show(fstat(p[0], &at));
    note("%o %ld %ld", at.st_mode, (long)at.st_size, (long)at.st_nlink);
}
BEHAVIOUR("stat of /dev/null") {
    struct stat at;
    stat("/dev/null", &at);
    note("%o %lx %ld", at.st_mode, (long)at.st_rdev, (long)at.st_size);
}
BEHAVIOUR("st_blocks counts units of 512 bytes") {
    struct stat at;
    make("f", "text");
    int fd = open("f", O_WRONLY);
    write(fd, (char[5000]){0}, 5000);
    fsync(fd);
    stat("f", &at);
    note("%d %d", at.st_blocks >= 10, at.st_blocks % (4096 / 512) == 0 || at.st_blksize < 4096);
}
BEHAVIOUR("statx tells what it knows") {
    struct statx at;
    make("f", "text");
    show(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &at));
    note("%x %llu %o %u", at.stx_mask & STATX_BASIC_STATS, (unsigned long long)at.stx_size, at.stx_mode, at.stx_nlink);
}
BEHAVIOUR("statx with a reserved mask, unknown flags, both kinds of sync, bad memory") {
    struct statx at;
    show(statx(AT_FDCWD, ".", 0, 0x80000000, &at));
    show(statx(AT_FDCWD, ".", 0x4, STATX_ALL, &at));
    show(statx(AT_FDCWD, ".", AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC, STATX_ALL, &at));
    show(statx(AT_FDCWD, ".", 0, STATX_ALL, bad()));
    show(statx(AT_FDCWD, bad(), 0, STATX_ALL, &at));
    show(statx(99, "f", 0, STATX_ALL, &at));
}
BEHAVIOUR("statx AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH") {
    struct statx at;
    symlink("none", "l");
    show(statx(AT_FDCWD, "l", 0, STATX_ALL, &at));
    show(statx(AT_FDCWD, "l", AT_SYMLINK_NOFOLLOW, STATX_ALL, &at));
    show(statx(open("/dev/null", O_RDONLY), "", AT_EMPTY_PATH, STATX_ALL, &at));
    note("%o", at.stx_mode & S_IFMT);
}
BEHAVIOUR("access of what exists, and of what does not") {
    make("f", "");
    show(access("f", F_OK));
    show(access("none", F_OK));
    show(access("f/x", F_OK));
    show(access("", F_OK));
    show(access(bad(), F_OK));
}
BEHAVIOUR("access with an unknown mode") { show(access(".", 8)); }
BEHAVIOUR("access: root may read and write everything, and execute what anybody may") {
    make_mode("f", "", 0);
    show(access("f", R_OK | W_OK));
    show(access("f", X_OK));
    chmod("f", 0010);
    show(access("f", X_OK));
}
BEHAVIOUR("access by owner, group and others: the first class that fits decides") {
    make_mode("f", "", 0047);
    chown("f", USER, USER);
    AS(USER) { show(access("f", R_OK)); }
    AS(STRANGER) { show(access("f", R_OK)); }
    chown("f", 0, STRANGER);
    AS(STRANGER) {
        show(access("f", R_OK));
        show(access("f", W_OK));
    }
}
BEHAVIOUR("access by a supplementary group") {
    make_mode("f", "", 0040);
    chown("f", 0, 77);
    IN_CHILD {
        gid_t group = 77;
        setgroups(1, &group);
        setresgid(USER, USER, USER);
        setresuid(USER, USER, USER);
        show(access("f", R_OK));
        show(open("f", O_RDONLY));
    }
}
BEHAVIOUR("access asks for the real user, faccessat AT_EACCESS for the effective one") {
    make_mode("f", "", 0600);
    IN_CHILD {
        setresuid(USER, 0, 0);
        show(access("f", R_OK));
        show(syscall(SYS_faccessat2, AT_FDCWD, "f", R_OK, AT_EACCESS));
    }
}
BEHAVIOUR("faccessat2 with unknown flags and bad descriptors") {
    show(syscall(SYS_faccessat2, AT_FDCWD, ".", R_OK, 0x4));
    show(syscall(SYS_faccessat2, 99, "f", R_OK, 0));
    show(syscall(SYS_faccessat2, open("/dev/null", O_RDONLY), "", R_OK, AT_EMPTY_PATH));
}
BEHAVIOUR("chmod sets twelve bits") {
    make("f", "");
    show(chmod("f", 07777));
    show_mode("f");
    show(chmod("f", 0170000));
    show_mode("f");
}
BEHAVIOUR("chmod of nothing, of the empty path, by bad memory") {
    show(chmod("none", 0));
    show(chmod("", 0));
    show(chmod(bad(), 0));
    show(fchmod(99, 0));
}
BEHAVIOUR("chmod by somebody else") {
    make_mode("f", "", 0666);
    AS(USER) {
        show(chmod("f", 0600));
        show(fchmod(open("f", O_RDWR), 0600));
    }
}
BEHAVIOUR("chmod by the owner") {
    make("f", "");
    chown("f", USER, USER);
    AS(USER) { show(chmod("f", 0400)); }
    show_mode("f");
}
BEHAVIOUR("chmod by an owner who is not in the group drops set-group-id") {
    make("f", "");
    chown("f", USER, 77);
    AS(USER) { show(chmod("f", 06755)); }
    show_mode("f");
}
BEHAVIOUR("chmod follows links") {
    make("f", "");
    symlink("f", "l");
    show(chmod("l", 0600));
    show_mode("f");
    show_mode("l");
}
BEHAVIOUR("fchmodat with bad descriptors") {
    make("f", "");
    show(fchmodat(99, "f", 0600, 0));
    show(fchmodat(open("f", O_RDONLY), "f", 0600, 0));
}
BEHAVIOUR("fchmod works on a descriptor for reading") {
    make("f", "");
    show(fchmod(open("f", O_RDONLY), 0640));
    show_mode("f");
}
BEHAVIOUR("chown changes both, or with -1 one") {
    make("f", "");
    show(chown("f", 5, 6));
    show_owner("f");
    show(chown("f", -1, 7));
    show_owner("f");
    show(chown("f", 8, -1));
    show_owner("f");
    show(chown("f", -1, -1));
    show_owner("f");
}
BEHAVIOUR("chown of nothing, through a file, by bad memory") {
    make("f", "");
    show(chown("none", 0, 0));
    show(chown("f/x", 0, 0));
    show(chown(bad(), 0, 0));
    show(fchown(99, 0, 0));
}
BEHAVIOUR("chown follows links, lchown does not") {
    make("f", "");
    symlink("f", "l");
    show(lchown("l", 5, 5));
    show_owner("f");
    show_owner("l");
    show(chown("l", 6, 6));
    show_owner("f");
}
BEHAVIOUR("a user cannot give files away") {
    make("f", "");
    chown("f", USER, USER);
    AS(USER) {
        show(chown("f", STRANGER, -1));
        show(chown("f", -1, STRANGER));
        show(chown("f", USER, USER));
        show(chown("f", -1, -1));
    }
}
BEHAVIOUR("the owner may choose any of his groups") {
    make("f", "");
    chown("f", USER, USER);
    IN_CHILD {
        gid_t group = 77;
        setgroups(1, &group);
        setresgid(USER, USER, USER);
        setresuid(USER, USER, USER);
        show(chown("f", -1, 77));
    }
    show_owner("f");
}
BEHAVIOUR("chown of somebody else's file") {
    make_mode("f", "", 0666);
    AS(USER) {
        show(chown("f", USER, USER));
        show(chown("f", -1, USER));
        show(chown("f", -1, -1));
    }
}
BEHAVIOUR("chown clears the set-id bits of an executable file, also by root") {
    make("f", "");
    chmod("f", 06755);
    chown("f", 5, 5);
    show_mode("f");
}
BEHAVIOUR("chown leaves set-group-id without group execution") {
    make("f", "");
    chmod("f", 06644);
    chown("f", 5, 5);
    show_mode("f");
}
BEHAVIOUR("chown leaves the set-id bits of a directory") {
    mkdir("d", 0755);
    chmod("d", 06755);
    chown("d", 5, 5);
    show_mode("d");
}
BEHAVIOUR("fchownat with AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, unknown flags") {
    make("f", "");
    symlink("f", "l");
    show(fchownat(open("f", O_RDONLY), "", 5, 5, AT_EMPTY_PATH));
    show(fchownat(AT_FDCWD, "l", 6, 6, AT_SYMLINK_NOFOLLOW));
    show(fchownat(AT_FDCWD, "l", 6, 6, 1));
    show_owner("f");
    show_owner("l");
}
BEHAVIOUR("utimensat sets both times to the nanosecond") {
    struct timespec times[2] = {{1000000000, 123456789}, {1100000000, 987654321}};
    make("f", "");
    show(utimensat(AT_FDCWD, "f", times, 0));
    show_times("f");
}
BEHAVIOUR("utimensat with UTIME_OMIT and UTIME_NOW") {
    struct timespec times[2] = {{5, UTIME_OMIT}, {7, 0}};
    make("f", "");
    utimensat(AT_FDCWD, "f", OLD, 0);
    show(utimensat(AT_FDCWD, "f", times, 0));
    show_times("f");
    times[1].tv_nsec = UTIME_NOW;
    show(utimensat(AT_FDCWD, "f", times, 0));
    note("%d", stat_of("f").st_mtim.tv_sec > 1000000);
}
BEHAVIOUR("utimensat with bad nanoseconds, unknown flags, bad memory") {
    struct timespec times[2] = {{0, 1000000000}, {0, 0}};
    make("f", "");
    show(utimensat(AT_FDCWD, "f", times, 0));
    times[0].tv_nsec = -1;
    show(utimensat(AT_FDCWD, "f", times, 0));
    show(utimensat(AT_FDCWD, "f", OLD, 0x4));
    show(utimensat(AT_FDCWD, "f", bad(), 0));
    show(utimensat(AT_FDCWD, bad(), OLD, 0));
    show(utimensat(AT_FDCWD, "none", OLD, 0));
    show(utimensat(99, "f", OLD, 0));
}
BEHAVIOUR("utimensat with two UTIME_OMIT succeeds even for a name that does not exist") {
    struct timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    show(utimensat(AT_FDCWD, "none", times, 0));
}
BEHAVIOUR("utimensat by somebody who may write: now, but no other time") {
    make_mode("f", "", 0666);
    AS(USER) {
        show(utimensat(AT_FDCWD, "f", NULL, 0));
        show(utimensat(AT_FDCWD, "f", OLD, 0));
    }
    chmod("f", 0644);
    AS(USER) {
        show(utimensat(AT_FDCWD, "f", NULL, 0));
        show(utimensat(AT_FDCWD, "f", OLD, 0));
    }
}
BEHAVIOUR("utimensat AT_SYMLINK_NOFOLLOW sets the times of the link") {
    make("f", "");
    symlink("f", "l");
    show(utimensat(AT_FDCWD, "l", OLD, AT_SYMLINK_NOFOLLOW));
    note("%ld %d", (long)stat_of("l").st_mtim.tv_sec, stat_of("f").st_mtim.tv_sec > 1);
}
BEHAVIOUR("utime and utimes have seconds and microseconds") {
    struct utimbuf seconds = {5, 6};
    struct timeval micro[2] = {{7, 8}, {9, 10}}, wrong[2] = {{0, 1000000}, {0, 0}};
    make("f", "");
    show(utime("f", &seconds));
    show_times("f");
    show(utimes("f", micro));
    show_times("f");
    show(syscall(SYS_utimes, "f", wrong));
    show(syscall(SYS_utime, "f", bad()));
    show(syscall(SYS_futimesat, AT_FDCWD, "none", micro));
}
BEHAVIOUR("write sets mtime and ctime, read atime") {
    make("f", "text");
    utimensat(AT_FDCWD, "f", OLD, 0);
    int fd = open("f", O_RDWR);
    write(fd, "x", 1);
    struct stat at = stat_of("f");
    note("%d %d", at.st_mtim.tv_sec > 1, at.st_atim.tv_sec > 1);
    utimensat(AT_FDCWD, "f", OLD, 0);
    show_read(fd, 1);
    at = stat_of("f");
    note("%d", at.st_mtim.tv_sec > 1);
}
BEHAVIOUR("a write of nothing changes no time") {
    make("f", "text");
    utimensat(AT_FDCWD, "f", OLD, 0);
    write(open("f", O_WRONLY), "", 0);
    note("%d", stat_of("f").st_mtim.tv_sec > 1);
}
BEHAVIOUR("ftruncate to the same length sets mtime") {
    make("f", "text");
    utimensat(AT_FDCWD, "f", OLD, 0);
    ftruncate(open("f", O_WRONLY), 4);
    note("%d", stat_of("f").st_mtim.tv_sec > 1);
}
BEHAVIOUR("open O_TRUNC of an empty file sets mtime") {
    make("f", "");
    utimensat(AT_FDCWD, "f", OLD, 0);
    close(open("f", O_WRONLY | O_TRUNC));
    note("%d", stat_of("f").st_mtim.tv_sec > 1);
}
BEHAVIOUR("new and removed names set mtime of the directory") {
    mkdir("d", 0755);
    utimensat(AT_FDCWD, "d", OLD, 0);
    make("d/f", "");
    note("%d", stat_of("d").st_mtim.tv_sec > 1);
    utimensat(AT_FDCWD, "d", OLD, 0);
    unlink("d/f");
    note("%d", stat_of("d").st_mtim.tv_sec > 1);
    utimensat(AT_FDCWD, "d", OLD, 0);
    close(open("d/f", O_RDONLY));
    note("%d", stat_of("d").st_mtim.tv_sec > 1);
}
BEHAVIOUR("chmod, link and rename leave mtime") {
    make("f", "");
    utimensat(AT_FDCWD, "f", OLD, 0);
    chmod("f", 0600);
    link("f", "g");
    rename("f", "h");
    note("%ld", (long)stat_of("h").st_mtim.tv_sec);
}
BEHAVIOUR("statfs of nothing, through a file, by bad memory") {
    struct statfs at;
    make("f", "");
    show(statfs("none", &at));
    show(statfs("f/x", &at));
    show(statfs(bad(), &at));
    show(statfs(".", bad()));
    show(fstatfs(99, &at));
}
BEHAVIOUR("statfs of /proc") {
    struct statfs at;
    show(statfs("/proc", &at));
    note("%lx %ld", (long)at.f_type, (long)at.f_namelen);
}
BEHAVIOUR("statfs of a directory and of a file in it agree") {
    struct statfs one, two;
    make("f", "");
    show(statfs(".", &one));
    show(fstatfs(open("f", O_RDONLY), &two));
    note("%d %ld", one.f_blocks == two.f_blocks && one.f_type == two.f_type, (long)two.f_namelen);
}
static void show_event(int watches) {
    struct inotify_event event[16];
    show(read(watches, event, sizeof event));
    note("%x", event->mask);
    if (event->mask & IN_Q_OVERFLOW)
        events_lost();
}
BEHAVIOUR("setxattr and removexattr tell IN_ATTRIB, unless they fail") {
    char byte;
    make("f", "");
    int watches = inotify_init1(IN_NONBLOCK);
    must(inotify_add_watch(watches, "f", IN_ALL_EVENTS));
    show(removexattr("f", "user.x"));
    show(read(watches, &byte, 1));
    must(setxattr("f", "user.x", "y", 1, 0));
    show_event(watches);
    must(removexattr("f", "user.x"));
    show_event(watches);
}
