/* open, openat, creat, openat2, close: flags, paths and their errors. */
#include "behaviour.h"
#include <linux/openat2.h>

/* A path of `length` bytes with components of at most 200. */
static char *long_path(size_t length) {
    static char path[8192];
    for (size_t i = 0; i < length; i++)
        path[i] = i % 200 == 199 ? '/' : 'x';
    path[length] = 0;
    return path;
}

static char *long_name(size_t length) {
    static char name[512];
    memset(name, 'n', length);
    name[length] = 0;
    return name;
}

static long open2(int at, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve, size_t size) {
    struct {
        struct open_how how;
        uint64_t more;
    } how = {.how = {.flags = flags, .mode = mode, .resolve = resolve}};
    return syscall(SYS_openat2, at, path, &how, size);
}

#define RESOLVE(path, resolve) show(open2(AT_FDCWD, path, O_RDONLY, 0, resolve, sizeof(struct open_how)))

BEHAVIOUR("open of a name that does not exist") { show(open("none", O_RDONLY)); }
BEHAVIOUR("open of the empty path") { show(open("", O_RDONLY)); }
BEHAVIOUR("open of a path at a bad address") { show(open(bad(), O_RDONLY)); }
BEHAVIOUR("open of a path whose end is not mapped") {
    char *path = edge(4);
    memcpy(path, "name", 4);
    show(open(path, O_RDONLY));
}
BEHAVIOUR("open of a path that ends just before memory that is not mapped") {
    char *path = edge(5);
    make("name", "");
    memcpy(path, "name", 5);
    show(open(path, O_RDONLY));
}
BEHAVIOUR("open O_EXCL|O_CREAT of an existing file") {
    make("f", "");
    show(open("f", O_CREAT | O_EXCL | O_RDWR, 0600));
}
BEHAVIOUR("open O_EXCL|O_CREAT of a symbolic link that leads nowhere") {
    symlink("none", "l");
    show(open("l", O_CREAT | O_EXCL | O_RDWR, 0600));
    show_mode("none");
}
BEHAVIOUR("open O_CREAT of a symbolic link that leads nowhere makes its target") {
    symlink("target", "l");
    show(open("l", O_CREAT | O_RDWR, 0600));
    show_mode("target");
}
BEHAVIOUR("open O_CREAT in a directory that does not exist") { show(open("none/f", O_CREAT | O_RDWR, 0600)); }
BEHAVIOUR("open O_CREAT with a slash at the end") { show(open("f/", O_CREAT | O_RDWR, 0600)); }
BEHAVIOUR("open of a file with a slash at the end") {
    make("f", "");
    show(open("f/", O_RDONLY));
}
BEHAVIOUR("open through a file as if it were a directory") {
    make("f", "");
    show(open("f/g", O_RDONLY));
    show(open("f/g", O_CREAT | O_RDWR, 0600));
    show(open("f/.", O_RDONLY));
}
BEHAVIOUR("open of a directory for reading") { show(open(".", O_RDONLY)); }
BEHAVIOUR("open of a directory for writing") {
    show(open(".", O_WRONLY));
    show(open(".", O_RDWR));
}
BEHAVIOUR("open O_CREAT of a directory") { show(open(".", O_RDONLY | O_CREAT, 0600)); }
BEHAVIOUR("open O_TRUNC of a directory") { show(open(".", O_RDONLY | O_TRUNC)); }
BEHAVIOUR("open O_DIRECTORY of a file") {
    make("f", "");
    show(open("f", O_RDONLY | O_DIRECTORY));
}
BEHAVIOUR("open O_DIRECTORY of a directory") { show(open(".", O_RDONLY | O_DIRECTORY)); }
BEHAVIOUR("open O_NOFOLLOW of a symbolic link") {
    make("f", "");
    symlink("f", "l");
    show(open("l", O_RDONLY | O_NOFOLLOW));
}
BEHAVIOUR("open O_NOFOLLOW follows links before the last component") {
    mkdir("d", 0755);
    make("d/f", "");
    symlink("d", "l");
    show(open("l/f", O_RDONLY | O_NOFOLLOW));
}
BEHAVIOUR("open O_NOFOLLOW|O_DIRECTORY of a link to a directory") {
    symlink(".", "l");
    show(open("l", O_RDONLY | O_NOFOLLOW | O_DIRECTORY));
}
BEHAVIOUR("open O_NOFOLLOW|O_PATH of a link opens the link") {
    symlink("none", "l");
    int fd = open("l", O_PATH | O_NOFOLLOW);
    struct stat at;
    show(fd);
    show(fstat(fd, &at));
    note("%o", at.st_mode & S_IFMT);
}
BEHAVIOUR("open of a loop of links") {
    symlink("b", "a");
    symlink("a", "b");
    show(open("a", O_RDONLY));
    show(open("a", O_CREAT | O_RDWR, 0600));
}
BEHAVIOUR("open through 40 links") {
    make("l0", "");
    for (int i = 1; i <= 40; i++) {
        char from[8], to[8];
        snprintf(from, sizeof from, "l%d", i);
        snprintf(to, sizeof to, "l%d", i - 1);
        symlink(to, from);
    }
    show(open("l40", O_RDONLY));
}
BEHAVIOUR("open through 41 links") {
    make("l0", "");
    for (int i = 1; i <= 41; i++) {
        char from[8], to[8];
        snprintf(from, sizeof from, "l%d", i);
        snprintf(to, sizeof to, "l%d", i - 1);
        symlink(to, from);
    }
    show(open("l41", O_RDONLY));
}
BEHAVIOUR("a name of 255 bytes") { show(open(long_name(255), O_CREAT | O_RDWR, 0600)); }
BEHAVIOUR("a name of 256 bytes") {
    show(open(long_name(256), O_CREAT | O_RDWR, 0600));
    show(open(long_name(256), O_RDONLY));
}
BEHAVIOUR("a path of 4095 bytes is looked up, one of 4096 is too long") {
    show(open(long_path(4095), O_RDONLY));
    show(open(long_path(4096), O_RDONLY));
}
BEHAVIOUR("slashes and dots in a path do nothing") {
    mkdir("d", 0755);
    make("d/f", "");
    show(open(".//d///./../d/f", O_RDONLY));
}
BEHAVIOUR(".. of the root directory is the root directory") { show(open("/../../../dev/null", O_RDONLY)); }
BEHAVIOUR("the lowest free descriptor is taken") {
    show(open("/dev/null", O_RDONLY));
    show(open("/dev/null", O_RDONLY));
    show(open("/dev/null", O_RDONLY));
    close(4);
    show(open("/dev/null", O_RDONLY));
    close(0);
    show(open("/dev/null", O_RDONLY));
}
BEHAVIOUR("open beyond RLIMIT_NOFILE") {
    struct rlimit few = {5, 5};
    setrlimit(RLIMIT_NOFILE, &few);
    show(open("/dev/null", O_RDONLY));
    show(open("/dev/null", O_RDONLY));
    show(open("/dev/null", O_RDONLY));
}
BEHAVIOUR("open O_CREAT beyond RLIMIT_NOFILE makes no file") {
    struct rlimit few = {3, 3};
    setrlimit(RLIMIT_NOFILE, &few);
    show(open("f", O_CREAT | O_RDWR, 0600));
    show_mode("f");
}
BEHAVIOUR("the mode of a new file is reduced by the umask") {
    umask(027);
    close(open("f", O_CREAT | O_WRONLY, 0666));
    show_mode("f");
}
BEHAVIOUR("set-id and sticky bits of a new file") {
    umask(0);
    close(open("f", O_CREAT | O_WRONLY, 07777));
    show_mode("f");
}
BEHAVIOUR("a new file without rights can be written by who has made it") {
    AS(USER) {
        int fd = open("f", O_CREAT | O_RDWR, 0);
        show(write(fd, "abc", 3));
        show(open("f", O_RDONLY));
        show_mode("f");
    }
}
BEHAVIOUR("open O_TRUNC empties a file") {
    make("f", "text");
    int fd = open("f", O_RDWR | O_TRUNC);
    show(size_of(fd));
}
BEHAVIOUR("open O_RDONLY|O_TRUNC empties a file, too") {
    make("f", "text");
    show(size_of(open("f", O_RDONLY | O_TRUNC)));
}
BEHAVIOUR("open O_TRUNC of a file that may not be written") {
    make("f", "text");
    AS(USER) { show(open("f", O_RDONLY | O_TRUNC)); }
    show_file("f");
}
BEHAVIOUR("open with access mode 3 cannot read or write") {
    char byte;
    make("f", "text");
    int fd = open("f", 3);
    show(fd);
    show(read(fd, &byte, 1));
    show(write(fd, "", 1));
}
BEHAVIOUR("open with unknown flags ignores them") {
    make("f", "");
    show(open("f", O_RDONLY | 0x40000000));
}
BEHAVIOUR("reading a file opened for writing, and the reverse") {
    char byte;
    make("f", "text");
    show(read(open("f", O_WRONLY), &byte, 1));
    show(write(open("f", O_RDONLY), "", 1));
}
BEHAVIOUR("a file system's permission is asked at open alone") {
    make("f", "text");
    chmod("f", 0666);
    AS(USER) {
        int fd = open("f", O_RDWR);
        /* The owner forbids it meanwhile. */
        if (fork() == 0) {
            show(open("f", O_RDWR));
            _exit(0);
        }
        wait(NULL);
        show(write(fd, "T", 1));
    }
}
BEHAVIOUR("open by a user without right") {
    make_mode("f", "", 0600);
    AS(USER) {
        show(open("f", O_RDONLY));
        show(open("f", O_WRONLY));
    }
}
BEHAVIOUR("open for writing by a user who may read") {
    make_mode("f", "", 0644);
    AS(USER) {
        show(open("f", O_RDONLY));
        show(open("f", O_RDWR));
    }
}
BEHAVIOUR("open in a directory without search permission") {
    mkdir("d", 0700);
    make("d/f", "");
    AS(USER) {
        show(open("d/f", O_RDONLY));
        show(open("d/none", O_RDONLY));
    }
}
BEHAVIOUR("open in a directory with search permission alone") {
    mkdir("d", 0711);
    make("d/f", "");
    AS(USER) {
        show(open("d/f", O_RDONLY));
        show(open("d", O_RDONLY));
        show(open("d/new", O_RDWR | O_CREAT, 0600));
    }
}
BEHAVIOUR("open O_CREAT of an existing file needs no write permission on the directory") {
    mkdir("d", 0755);
    make("d/f", "");
    AS(USER) { show(open("d/f", O_RDONLY | O_CREAT, 0600)); }
}
BEHAVIOUR("open O_NOATIME of another user's file") {
    make("f", "");
    AS(USER) { show(open("f", O_RDONLY | O_NOATIME)); }
}
BEHAVIOUR("owner and group of a new file") {
    struct stat at;
    AS(USER) { close(open("f", O_CREAT | O_WRONLY, 0644)); }
    show(stat("f", &at));
    note("%d:%d", at.st_uid, at.st_gid);
}
BEHAVIOUR("a new file in a set-group-id directory has the directory's group") {
    struct stat at;
    mkdir("d", 0777);
    chown("d", 0, 77);
    chmod("d", 02777);
    AS(USER) {
        close(open("d/f", O_CREAT | O_WRONLY, 0644));
        mkdir("d/sub", 0755);
    }
    stat("d/f", &at);
    note("%d:%d", at.st_uid, at.st_gid);
    stat("d/sub", &at);
    note("%d:%d %o", at.st_uid, at.st_gid, at.st_mode);
}
BEHAVIOUR("set-group-id is dropped from a new file of a group that its maker is not in") {
    mkdir("d", 0777);
    chown("d", 0, 77);
    chmod("d", 02777);
    AS(USER) { close(open("d/f", O_CREAT | O_WRONLY, 02775)); }
    show_mode("d/f");
}
BEHAVIOUR("creat is open O_CREAT|O_WRONLY|O_TRUNC") {
    make("f", "text");
    int fd = creat("f", 0600);
    char byte;
    show(size_of(fd));
    show(read(fd, &byte, 1));
    note("%o", fcntl(fd, F_GETFL) & O_ACCMODE);
}
BEHAVIOUR("O_PATH: neither read, written, truncated nor given times") {
    make("f", "text");
    int fd = open("f", O_PATH);
    char byte;
    show(read(fd, &byte, 1));
    show(write(fd, "", 1));
    show(ftruncate(fd, 0));
    show(fchmod(fd, 0600));
    show(fchown(fd, 0, 0));
    show(futimens(fd, NULL));
    show(lseek(fd, 0, SEEK_SET));
    show(ioctl(fd, FIONREAD, &byte));
    show(fsync(fd));
    note("%d", mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? errno == EBADF : 2);
}
BEHAVIOUR("O_PATH: status, duplicates and names work") {
    make("f", "text");
    int fd = open("f", O_PATH);
    struct stat at;
    show(fstat(fd, &at));
    show(dup(fd));
    note("%o", fcntl(fd, F_GETFL) & ~0100000);
    show(openat(fd, "g", O_RDONLY));
    show(openat(open(".", O_PATH), "f", O_RDONLY));
}
BEHAVIOUR("O_PATH needs no permission on the file") {
    make_mode("f", "", 0);
    AS(USER) { show(open("f", O_PATH | O_RDWR)); }
}
BEHAVIOUR("openat relative to a directory") {
    mkdir("d", 0755);
    make("d/f", "inner");
    int d = open("d", O_RDONLY | O_DIRECTORY);
    show_read(openat(d, "f", O_RDONLY), 9);
}
BEHAVIOUR("openat with an absolute path ignores the descriptor") { show(openat(-7, "/dev/null", O_RDONLY)); }
BEHAVIOUR("openat relative to a bad descriptor or a file") {
    make("f", "");
    show(openat(99, "f", O_RDONLY));
    show(openat(open("f", O_RDONLY), "f", O_RDONLY));
}
BEHAVIOUR("openat in a directory that has been removed") {
    mkdir("d", 0755);
    int d = open("d", O_RDONLY);
    rmdir("d");
    show(openat(d, "f", O_RDWR | O_CREAT, 0600));
    show(openat(d, "..", O_RDONLY));
}
BEHAVIOUR("open of the current directory that has been removed") {
    mkdir("d", 0755);
    chdir("d");
    rmdir("../d");
    show(open(".", O_RDONLY));
    show(open("f", O_RDWR | O_CREAT, 0600));
    show(open("..", O_RDONLY) >= 0);
}
BEHAVIOUR("openat2 with a structure of another size") {
    show(open2(AT_FDCWD, ".", O_RDONLY, 0, 0, 8));
    show(open2(AT_FDCWD, ".", O_RDONLY, 0, 0, 32));
    show(syscall(SYS_openat2, AT_FDCWD, ".", bad(), sizeof(struct open_how)));
}
BEHAVIOUR("openat2 with bytes set behind the structure that it knows") {
    char how[32] = {[31] = 1};
    show(syscall(SYS_openat2, AT_FDCWD, ".", how, sizeof how));
}
BEHAVIOUR("openat2 refuses unknown flags, modes without O_CREAT, and unknown resolve bits") {
    show(open2(AT_FDCWD, ".", 0x40000000, 0, 0, 24));
    show(open2(AT_FDCWD, ".", O_RDONLY, 0600, 0, 24));
    show(open2(AT_FDCWD, "f", O_CREAT | O_RDWR, 010000, 0, 24));
    show(open2(AT_FDCWD, ".", O_RDONLY, 0, 1 << 20, 24));
}
BEHAVIOUR("openat2 RESOLVE_NO_SYMLINKS") {
    mkdir("d", 0755);
    make("d/f", "");
    symlink("d", "l");
    RESOLVE("d/f", RESOLVE_NO_SYMLINKS);
    RESOLVE("l/f", RESOLVE_NO_SYMLINKS);
    RESOLVE("l", RESOLVE_NO_SYMLINKS);
}
BEHAVIOUR("openat2 RESOLVE_BENEATH") {
    mkdir("d", 0755);
    make("d/f", "");
    symlink("/dev/null", "absolute");
    RESOLVE("d/../d/f", RESOLVE_BENEATH);
    RESOLVE("..", RESOLVE_BENEATH);
    RESOLVE("/dev/null", RESOLVE_BENEATH);
    RESOLVE("absolute", RESOLVE_BENEATH);
}
BEHAVIOUR("openat2 RESOLVE_IN_ROOT takes the directory for /") {
    mkdir("d", 0755);
    make("d/f", "");
    symlink("/f", "d/l");
    int d = open("d", O_RDONLY);
    show(open2(d, "/f", O_RDONLY, 0, RESOLVE_IN_ROOT, 24));
    show(open2(d, "../../f", O_RDONLY, 0, RESOLVE_IN_ROOT, 24));
    show(open2(d, "l", O_RDONLY, 0, RESOLVE_IN_ROOT, 24));
    show(open2(d, "f", O_RDONLY, 0, RESOLVE_IN_ROOT | RESOLVE_BENEATH, 24));
}
BEHAVIOUR("openat2 RESOLVE_NO_XDEV") {
    RESOLVE("/dev/null", RESOLVE_NO_XDEV);
    RESOLVE("/proc/self", RESOLVE_NO_XDEV);
}
BEHAVIOUR("close of a bad descriptor") {
    show(close(-1));
    show(close(3));
    show(close(1 << 30));
}
BEHAVIOUR("close twice") {
    int fd = open("/dev/null", O_RDONLY);
    show(close(fd));
    show(close(fd));
}
BEHAVIOUR("close_range closes a range and leaves the rest") {
    for (int i = 0; i < 5; i++)
        open("/dev/null", O_RDONLY);
    show(close_range(4, 6, 0));
    for (int fd = 3; fd < 8; fd++)
        show(fcntl(fd, F_GETFD));
}
BEHAVIOUR("close_range CLOSE_RANGE_CLOEXEC marks") {
    for (int i = 0; i < 3; i++)
        open("/dev/null", O_RDONLY);
    show(close_range(4, ~0U, CLOSE_RANGE_CLOEXEC));
    for (int fd = 3; fd < 6; fd++)
        show(fcntl(fd, F_GETFD));
}
BEHAVIOUR("close_range with a range that ends before it begins, and unknown flags") {
    show(close_range(5, 4, 0));
    show(close_range(3, 4, 1 << 10));
}
BEHAVIOUR("a file lives on when its name is removed") {
    make("f", "text");
    int fd = open("f", O_RDWR);
    struct stat at;
    unlink("f");
    fstat(fd, &at);
    note("%d", (int)at.st_nlink);
    show_read(fd, 9);
    make("f", "other");
    show(lseek(fd, 0, SEEK_SET));
    show_read(fd, 9);
}
