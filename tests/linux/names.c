/* link, unlink, symlink, readlink, rename and mknod: names and what they lead to. */
#include "behaviour.h"

static int same_file(const char *a, const char *b) {
    struct stat one, two;
    return lstat(a, &one) == 0 && lstat(b, &two) == 0 && one.st_ino == two.st_ino;
}

static int links(const char *path) {
    struct stat at;
    return lstat(path, &at) < 0 ? -1 : (int)at.st_nlink;
}

static long rename2(const char *from, const char *to, unsigned flags) {
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

static char *long_name(void) {
    static char name[300];
    memset(name, 'n', 256);
    return name;
}

BEHAVIOUR("link makes a second name of a file") {
    make("a", "text");
    show(link("a", "b"));
    note("%d %d", same_file("a", "b"), links("a"));
}
BEHAVIOUR("link to a name that exists") {
    make("a", "");
    make("b", "");
    show(link("a", "b"));
    show(link("a", "a"));
}
BEHAVIOUR("link of a name that does not exist") { show(link("none", "b")); }
BEHAVIOUR("link of a directory") {
    mkdir("d", 0755);
    show(link("d", "e"));
}
BEHAVIOUR("link of a symbolic link links the link") {
    make("f", "");
    symlink("f", "l");
    show(link("l", "m"));
    note("%d", same_file("l", "m"));
}
BEHAVIOUR("linkat AT_SYMLINK_FOLLOW links the target") {
    make("f", "");
    symlink("f", "l");
    show(linkat(AT_FDCWD, "l", AT_FDCWD, "m", AT_SYMLINK_FOLLOW));
    note("%d", same_file("f", "m"));
}
BEHAVIOUR("linkat with unknown flags, bad descriptors, and a file for a directory") {
    make("f", "");
    int fd = open("f", O_RDONLY);
    show(linkat(AT_FDCWD, "f", AT_FDCWD, "m", 1));
    show(linkat(99, "f", AT_FDCWD, "m", 0));
    show(linkat(AT_FDCWD, "f", 99, "m", 0));
    show(linkat(AT_FDCWD, "f", fd, "m", 0));
}
BEHAVIOUR("linkat with bad memory") {
    make("f", "");
    show(linkat(AT_FDCWD, bad(), AT_FDCWD, "m", 0));
    show(linkat(AT_FDCWD, "f", AT_FDCWD, bad(), 0));
}
BEHAVIOUR("linkat of the empty path") {
    make("f", "");
    show(linkat(open("f", O_RDONLY), "", AT_FDCWD, "m", 0));
}
BEHAVIOUR("link into a directory that may not be written") {
    make("f", "");
    mkdir("d", 0755);
    chown("f", USER, USER);
    AS(USER) { show(link("f", "d/f")); }
}
BEHAVIOUR("link to another file system") {
    make("f", "");
    show(link("/proc/version", "v"));
}
BEHAVIOUR("link through a file, to a long name, with a slash at the end") {
    make("f", "");
    show(link("f", "f/g"));
    show(link("f", long_name()));
    show(link("f", "g/"));
    show(link("f/", "g"));
}
BEHAVIOUR("unlink removes one name, the file goes with the last") {
    make("a", "text");
    link("a", "b");
    show(unlink("a"));
    show_mode("a");
    show_file("b");
    note("%d", links("b"));
}
BEHAVIOUR("unlink of nothing, of the empty path, by bad memory") {
    show(unlink("none"));
    show(unlink(""));
    show(unlink(bad()));
}
BEHAVIOUR("unlink of a directory") {
    mkdir("d", 0755);
    show(unlink("d"));
    show(unlink("."));
    show(unlink("d/"));
}
BEHAVIOUR("unlink of a file with a slash at the end") {
    make("f", "");
    show(unlink("f/"));
}
BEHAVIOUR("unlink of a symbolic link leaves the target") {
    make("f", "");
    symlink("f", "l");
    show(unlink("l"));
    show_mode("f");
}
BEHAVIOUR("unlink in a directory that may not be written") {
    mkdir("d", 0755);
    make("d/f", "");
    AS(USER) { show(unlink("d/f")); }
}
BEHAVIOUR("unlink of a file that may not be written, in a directory that may") {
    make_mode("f", "", 0400);
    AS(USER) { show(unlink("f")); }
}
BEHAVIOUR("unlink of another user's file in a sticky directory") {
    mkdir("d", 0777);
    chmod("d", 01777);
    make_mode("d/f", "", 0666);
    AS(USER) {
        show(unlink("d/f"));
        make("d/own", "");
        show(unlink("d/own"));
    }
}
BEHAVIOUR("the owner of a sticky directory may unlink everything in it") {
    mkdir("d", 0777);
    chmod("d", 01777);
    chown("d", USER, USER);
    make("d/f", "");
    AS(USER) { show(unlink("d/f")); }
}
BEHAVIOUR("unlinkat with unknown flags, AT_REMOVEDIR of a file, a bad descriptor") {
    make("f", "");
    show(unlinkat(AT_FDCWD, "f", 1));
    show(unlinkat(AT_FDCWD, "f", AT_REMOVEDIR));
    show(unlinkat(99, "f", 0));
    show(unlinkat(open("f", O_RDONLY), "f", 0));
}
BEHAVIOUR("unlinkat AT_REMOVEDIR removes a directory") {
    mkdir("d", 0755);
    show(unlinkat(open(".", O_RDONLY), "d", AT_REMOVEDIR));
    show_mode("d");
}
BEHAVIOUR("symlink and readlink") {
    char target[8] = "........";
    show(symlink("target", "l"));
    show(readlink("l", target, sizeof target));
    show_bytes(target, sizeof target);
}
BEHAVIOUR("readlink into a small buffer cuts without an error") {
    char target[4];
    symlink("target", "l");
    show(readlink("l", target, 4));
    show_bytes(target, 4);
}
BEHAVIOUR("readlink with size 0 and with a negative size") {
    char target[4];
    symlink("target", "l");
    show(readlink("l", target, 0));
    show(syscall(SYS_readlink, "l", target, -1));
}
BEHAVIOUR("readlink of what is no link, of nothing, of a loop's part") {
    char target[4];
    make("f", "");
    symlink("l", "l");
    show(readlink("f", target, 4));
    show(readlink(".", target, 4));
    show(readlink("none", target, 4));
    show(readlink("l", target, 4));
    show(readlink("l/x", target, 4));
}
BEHAVIOUR("readlink into bad memory") {
    symlink("target", "l");
    show(readlink("l", bad(), 4));
    show(readlink(bad(), (char[4]){0}, 4));
}
BEHAVIOUR("readlinkat of the empty path reads an O_PATH link") {
    char target[8];
    symlink("target", "l");
    int fd = open("l", O_PATH | O_NOFOLLOW);
    ssize_t length = readlinkat(fd, "", target, sizeof target);
    show_bytes(target, length);
    show(readlinkat(open(".", O_RDONLY), "", target, sizeof target));
}
BEHAVIOUR("symlink to an existing name, with an empty target, with a long target") {
    static char target[5000];
    make("f", "");
    show(symlink("x", "f"));
    show(symlink("", "l"));
    memset(target, 'x', 4096);
    show(symlink(target, "l"));
    show(symlink("x", "none/l"));
    show(symlink("x", "l/"));
}
BEHAVIOUR("symlink with bad memory") {
    show(symlink(bad(), "l"));
    show(symlink("x", bad()));
}
BEHAVIOUR("a symbolic link has mode 0777 and the length of its target") {
    struct stat at;
    umask(077);
    symlink("target", "l");
    lstat("l", &at);
    note("%o %ld", at.st_mode, (long)at.st_size);
}
BEHAVIOUR("a link to a directory and '..' leads to the parent of the directory") {
    mkdir("a", 0755);
    mkdir("a/b", 0755);
    make("a/f", "in a");
    symlink("a/b", "l");
    show_file("l/../f");
}
BEHAVIOUR("a relative link is read from its own directory") {
    mkdir("d", 0755);
    make("d/f", "in d");
    make("f", "outside");
    symlink("f", "d/l");
    show_file("d/l");
}
BEHAVIOUR("rename moves a file") {
    make("a", "text");
    show(rename("a", "b"));
    show_mode("a");
    show_file("b");
}
BEHAVIOUR("rename replaces a file, which lives on for who has it open") {
    make("a", "new");
    make("b", "old");
    int fd = open("b", O_RDONLY);
    show(rename("a", "b"));
    show_file("b");
    show_read(fd, 9);
}
BEHAVIOUR("rename to itself does nothing") {
    make("a", "text");
    show(rename("a", "a"));
    show_file("a");
}
BEHAVIOUR("rename of one of two names of a file to the other does nothing") {
    make("a", "text");
    link("a", "b");
    show(rename("a", "b"));
    note("%d", links("a"));
}
BEHAVIOUR("rename of nothing, to nowhere, with empty paths") {
    make("a", "");
    show(rename("none", "b"));
    show(rename("a", "none/b"));
    show(rename("", "b"));
    show(rename("a", ""));
}
BEHAVIOUR("rename with bad memory") {
    make("a", "");
    show(rename(bad(), "b"));
    show(rename("a", bad()));
}
BEHAVIOUR("rename of a file to a directory, and the reverse") {
    make("f", "");
    mkdir("d", 0755);
    show(rename("f", "d"));
    show(rename("d", "f"));
}
BEHAVIOUR("rename of a directory replaces an empty one alone") {
    mkdir("a", 0755);
    mkdir("b", 0755);
    mkdir("full", 0755);
    make("full/f", "");
    show(rename("a", "full"));
    show(rename("a", "b"));
    show_mode("a");
}
BEHAVIOUR("rename of a directory into itself") {
    mkdir("d", 0755);
    mkdir("d/e", 0755);
    show(rename("d", "d/f"));
    show(rename("d", "d/e"));
    show(rename("d", "d/e/f"));
}
BEHAVIOUR("rename of a directory to the one that it is in") {
    mkdir("d", 0755);
    mkdir("d/e", 0755);
    show(rename("d/e", "d"));
}
BEHAVIOUR("rename of . and ..") {
    mkdir("d", 0755);
    show(rename(".", "b"));
    show(rename("d/..", "b"));
    show(rename("d", "."));
}
BEHAVIOUR("rename with slashes at the end") {
    make("f", "");
    mkdir("d", 0755);
    show(rename("f/", "g"));
    show(rename("f", "g/"));
    show(rename("d/", "e/"));
    show_mode("e");
}
BEHAVIOUR("rename to another file system") {
    make("f", "");
    show(rename("f", "/proc/f"));
    show(rename("f", "/dev/../proc/f"));
}
BEHAVIOUR("rename to a long name, and through a file") {
    make("f", "");
    make("g", "");
    show(rename("f", long_name()));
    show(rename("f", "g/h"));
    show(rename("g/h", "f"));
}
BEHAVIOUR("rename of a link renames the link") {
    make("f", "");
    symlink("f", "l");
    show(rename("l", "m"));
    show_mode("m");
}
BEHAVIOUR("rename onto a link replaces the link") {
    make("f", "text");
    make("g", "target");
    symlink("g", "l");
    show(rename("f", "l"));
    show_file("l");
    show_file("g");
}
BEHAVIOUR("rename of a directory moves '..' and the counts of links") {
    mkdir("a", 0755);
    mkdir("b", 0755);
    mkdir("a/d", 0755);
    show(rename("a/d", "b/d"));
    note("%d %d %d", links("a"), links("b"), same_file("b/d/..", "b"));
}
BEHAVIOUR("rename in a directory that may not be written") {
    mkdir("d", 0755);
    make("d/f", "");
    AS(USER) {
        make("own", "");
        show(rename("d/f", "g"));
        show(rename("own", "d/f"));
    }
}
BEHAVIOUR("rename of another user's directory needs to write it") {
    mkdir("d", 0755);
    mkdir("e", 0777);
    chmod("e", 0777);
    AS(USER) {
        show(rename("d", "d2"));
        show(rename("d2", "e/d"));
    }
}
BEHAVIOUR("rename over another user's file in a sticky directory") {
    mkdir("d", 0777);
    chmod("d", 01777);
    make("d/f", "");
    AS(USER) {
        make("d/own", "");
        show(rename("d/own", "d/f"));
        show(rename("d/f", "d/g"));
    }
}
BEHAVIOUR("renameat2 RENAME_NOREPLACE") {
    make("a", "a");
    make("b", "b");
    show(rename2("a", "b", 1));
    show(rename2("a", "c", 1));
    show_file("c");
}
BEHAVIOUR("renameat2 RENAME_EXCHANGE") {
    make("a", "a");
    mkdir("d", 0755);
    show(rename2("a", "d", 2));
    show_mode("a");
    show_file("d");
    show(rename2("a", "none", 2));
}
BEHAVIOUR("renameat2 RENAME_EXCHANGE of a directory with what is in it") {
    mkdir("d", 0755);
    mkdir("d/e", 0755);
    show(rename2("d", "d/e", 2));
    show(rename2("d/e", "d", 2));
}
BEHAVIOUR("renameat2 with flags that exclude each other or are unknown") {
    make("a", "");
    show(rename2("a", "b", 3));
    show(rename2("a", "b", 8));
    show(rename2("a", "b", 6));
}
BEHAVIOUR("renameat with bad descriptors") {
    make("a", "");
    show(renameat(99, "a", AT_FDCWD, "b"));
    show(renameat(AT_FDCWD, "a", 99, "b"));
    show(renameat(open("a", O_RDONLY), "x", AT_FDCWD, "b"));
}
BEHAVIOUR("rename over a running directory: the current one goes with its name") {
    mkdir("d", 0755);
    chdir("d");
    show(rename("../d", "../e"));
    make("f", "text");
    show_file("../e/f");
}
BEHAVIOUR("mknod makes files, FIFOs and sockets") {
    show(mknod("f", S_IFREG | 0600, 0));
    show(mknod("plain", 0600, 0));
    show(mknod("p", S_IFIFO | 0666, 0));
    show(mknod("s", S_IFSOCK | 0600, 0));
    show_mode("f");
    show_mode("plain");
    show_mode("p");
    show_mode("s");
}
BEHAVIOUR("mknod of a directory, a link, an unknown type") {
    show(mknod("d", S_IFDIR | 0755, 0));
    show(mknod("l", S_IFLNK | 0755, 0));
    show(mknod("x", 0170000, 0));
}
BEHAVIOUR("mknod of an existing name, of nowhere, of a slash") {
    make("f", "");
    show(mknod("f", S_IFIFO | 0600, 0));
    show(mknod("none/f", S_IFIFO | 0600, 0));
    show(mknod("g/", S_IFIFO | 0600, 0));
}
BEHAVIOUR("mknod of devices") {
    struct stat at;
    show(mknod("n", S_IFCHR | 0666, 0x103));
    stat("n", &at);
    note("%o %lx", at.st_mode, (long)at.st_rdev);
    show(write(open("n", O_WRONLY), "x", 1));
    AS(USER) {
        show(mknod("m", S_IFCHR | 0666, 0x103));
        show(mknod("b", S_IFBLK | 0666, 0x103));
    }
}
BEHAVIOUR("open of a device that no driver serves") {
    mknod("c", S_IFCHR | 0666, 0xee77);
    mknod("b", S_IFBLK | 0666, 0xee77);
    show(open("c", O_RDONLY));
    show(open("b", O_RDONLY));
}
BEHAVIOUR("open of a socket's name") {
    mknod("s", S_IFSOCK | 0600, 0);
    show(open("s", O_RDONLY));
    show(open("s", O_PATH));
}
BEHAVIOUR("renameat2 RENAME_WHITEOUT leaves a device without number, of whoever renames") {
    struct stat status;
    mkdir("d", 0777);
    chmod("d", 0777);
    setegid(USER);
    seteuid(USER);
    make("d/a", "one");
    make("d/b", "two");
    show(renameat2(AT_FDCWD, "d/a", AT_FDCWD, "d/c", RENAME_WHITEOUT));
    stat("d/a", &status);
    note("%o %d %d %d %d", status.st_mode, (int)status.st_rdev, status.st_uid, status.st_gid, (int)status.st_nlink);
    show(renameat2(AT_FDCWD, "d/b", AT_FDCWD, "d/c", RENAME_WHITEOUT | RENAME_NOREPLACE));
    show(renameat2(AT_FDCWD, "d/b", AT_FDCWD, "d/c", RENAME_WHITEOUT));
    show(open("d/b", O_RDONLY));
    show(renameat2(AT_FDCWD, "d/c", AT_FDCWD, "d/c", RENAME_WHITEOUT));
    show(renameat2(AT_FDCWD, "d/none", AT_FDCWD, "d/c", RENAME_WHITEOUT));
    show(renameat2(AT_FDCWD, "d/c", AT_FDCWD, "d/a", RENAME_WHITEOUT | RENAME_EXCHANGE));
    show(renameat2(AT_FDCWD, "d/c", AT_FDCWD, "d/a", 8));
    show(mknod("d/whiteout", S_IFCHR, 0));
    show(mknod("d/null", S_IFCHR, 0x103));
}
