/* mkdir, rmdir, chdir, getcwd, chroot and reading of directories. */
#include "behaviour.h"
#include <dirent.h>
#include <sys/sendfile.h>

static char *long_name(void) {
    static char name[300];
    memset(name, 'n', 256);
    return name;
}

static int links(const char *path) {
    struct stat at;
    return stat(path, &at) < 0 ? -1 : (int)at.st_nlink;
}

/* Counts the entries of a directory that begin with `start`. */
static int entries(const char *path, const char *start) {
    int count = 0;
    DIR *directory = opendir(path);
    if (directory == NULL)
        return -1;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += strncmp(entry->d_name, start, strlen(start)) == 0;
    closedir(directory);
    return count;
}

static void make_many(int count) {
    char name[32];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "file%d", i);
        close(must(open(name, O_CREAT | O_WRONLY, 0600)));
    }
}

BEHAVIOUR("mkdir makes a directory with two links") {
    show(mkdir("d", 0755));
    show_mode("d");
    note("%d %d", links("d"), links("."));
}
BEHAVIOUR("mkdir of an existing name, also a link that leads nowhere") {
    make("f", "");
    symlink("none", "l");
    show(mkdir("f", 0755));
    show(mkdir(".", 0755));
    show(mkdir("l", 0755));
    show(mkdir("/", 0755));
}
BEHAVIOUR("mkdir of nowhere, through a file, of the empty path, by bad memory") {
    make("f", "");
    show(mkdir("none/d", 0755));
    show(mkdir("f/d", 0755));
    show(mkdir("", 0755));
    show(mkdir(bad(), 0755));
}
BEHAVIOUR("mkdir of a long name") { show(mkdir(long_name(), 0755)); }
BEHAVIOUR("mkdir with a slash at the end") {
    show(mkdir("d/", 0755));
    show_mode("d");
}
BEHAVIOUR("mkdir: the umask, the sticky bit, the set-id bits") {
    umask(027);
    mkdir("d", 07777);
    show_mode("d");
}
BEHAVIOUR("mkdir in a directory that may not be written") {
    mkdir("d", 0755);
    AS(USER) { show(mkdir("d/e", 0755)); }
}
BEHAVIOUR("mkdirat with a bad descriptor and a file") {
    make("f", "");
    show(mkdirat(99, "d", 0755));
    show(mkdirat(open("f", O_RDONLY), "d", 0755));
    show(mkdirat(99, "/", 0755));
}
BEHAVIOUR("mkdir in a directory that has been removed") {
    mkdir("d", 0755);
    chdir("d");
    rmdir("../d");
    show(mkdir("e", 0755));
    show(mkdir("../e", 0755));
}
BEHAVIOUR("rmdir of a directory with entries") {
    mkdir("d", 0755);
    make("d/f", "");
    show(rmdir("d"));
}
BEHAVIOUR("rmdir of a file, a link to a directory, nothing") {
    make("f", "");
    mkdir("d", 0755);
    symlink("d", "l");
    show(rmdir("f"));
    show(rmdir("l"));
    show(rmdir("none"));
    show(rmdir(""));
    show(rmdir(bad()));
}
BEHAVIOUR("rmdir of . and of ..") {
    mkdir("d", 0755);
    chdir("d");
    show(rmdir("."));
    show(rmdir(".."));
    show(rmdir("../d/."));
    show(rmdir("/"));
}
BEHAVIOUR("rmdir of a place where a file system is mounted") { show(rmdir("/proc")); }
BEHAVIOUR("rmdir counts down the links of the parent") {
    mkdir("d", 0755);
    mkdir("d/e", 0755);
    note("%d", links("d"));
    show(rmdir("d/e"));
    note("%d", links("d"));
}
BEHAVIOUR("rmdir with slashes at the end") {
    mkdir("d", 0755);
    show(rmdir("d//"));
}
BEHAVIOUR("rmdir without permission, and in a sticky directory") {
    mkdir("d", 0755);
    mkdir("d/e", 0777);
    mkdir("s", 0777);
    chmod("s", 01777);
    mkdir("s/e", 0777);
    AS(USER) {
        show(rmdir("d/e"));
        show(rmdir("s/e"));
    }
}
BEHAVIOUR("a removed directory that is open is empty") {
    mkdir("d", 0755);
    int d = open("d", O_RDONLY);
    char buffer[512];
    rmdir("d");
    show(syscall(SYS_getdents64, d, buffer, sizeof buffer));
}
BEHAVIOUR("chdir to a file, to nothing, by bad memory") {
    make("f", "");
    show(chdir("f"));
    show(chdir("none"));
    show(chdir(""));
    show(chdir(bad()));
    show(chdir(long_name()));
}
BEHAVIOUR("chdir without search permission") {
    mkdir("d", 0700);
    mkdir("e", 0766);
    AS(USER) {
        show(chdir("d"));
        show(chdir("e"));
    }
}
BEHAVIOUR("fchdir to a directory, a file, nothing") {
    mkdir("d", 0755);
    make("f", "");
    show(fchdir(open("d", O_RDONLY)));
    show(fchdir(open("../f", O_RDONLY)));
    show(fchdir(99));
    show(chdir(".."));
    show(fchdir(open("d", O_PATH)));
}
BEHAVIOUR("a child has the current directory of its parent, and its own afterwards") {
    mkdir("d", 0755);
    make("d/f", "text");
    IN_CHILD {
        chdir("d");
        show_file("f");
    }
    show_file("f");
}
BEHAVIOUR("getcwd into a buffer that is too small, of size 0, into bad memory") {
    char path[4];
    chdir("/proc");
    show(syscall(SYS_getcwd, path, 4));
    show(syscall(SYS_getcwd, path, 0));
    show(syscall(SYS_getcwd, bad(), 100));
}
BEHAVIOUR("getcwd counts the zero at the end") {
    char path[100];
    chdir("/");
    show(syscall(SYS_getcwd, path, 100));
    chdir("/proc");
    show(syscall(SYS_getcwd, path, 100));
    note("%s", path);
}
BEHAVIOUR("getcwd in a directory that has been removed") {
    char path[100];
    mkdir("d", 0755);
    chdir("d");
    rmdir("../d");
    show(syscall(SYS_getcwd, path, 100));
}
BEHAVIOUR("getcwd after the directory was renamed") {
    char path[300];
    mkdir("d", 0755);
    chdir("d");
    rename("../d", "../other");
    show(syscall(SYS_getcwd, path, 300) > 0);
    note("%s", strrchr(path, '/'));
}
BEHAVIOUR("chroot by a user, to a file, to nothing") {
    make("f", "");
    show(chroot("f"));
    show(chroot("none"));
    AS(USER) { show(chroot(".")); }
}
BEHAVIOUR("chroot: / and .. stay inside") {
    mkdir("d", 0755);
    make("d/inner", "inside");
    IN_CHILD {
        show(chroot("d"));
        chdir("/");
        show_file("/inner");
        show_file("../../inner");
    }
}
BEHAVIOUR("chroot leaves the current directory outside, and .. gets out of there") {
    mkdir("d", 0755);
    make("out", "outside");
    IN_CHILD {
        char path[300];
        chroot("d");
        show_file("out");
        show(syscall(SYS_getcwd, path, 300) > 0);
        note("%.13s", path);
    }
}
BEHAVIOUR("umask returns the one before, and keeps nine bits") {
    note("%o", umask(07777));
    note("%o", umask(0));
}
BEHAVIOUR("umask is inherited") {
    umask(077);
    IN_CHILD { note("%o", umask(0)); }
    note("%o", umask(0));
}
BEHAVIOUR("getdents of a file, a bad descriptor, into bad memory") {
    char buffer[512];
    make("f", "");
    show(syscall(SYS_getdents64, open("f", O_RDONLY), buffer, sizeof buffer));
    show(syscall(SYS_getdents64, 99, buffer, sizeof buffer));
    show(syscall(SYS_getdents64, open(".", O_RDONLY), bad(), 512));
}
BEHAVIOUR("getdents into a buffer too small for one entry") {
    char buffer[512];
    int d = open(".", O_RDONLY);
    show(syscall(SYS_getdents64, d, buffer, 1));
    show(syscall(SYS_getdents64, d, buffer, 20));
    show(syscall(SYS_getdents64, d, buffer, 512) > 0);
}
BEHAVIOUR("getdents at the end returns 0 again and again") {
    char buffer[512];
    int d = open(".", O_RDONLY);
    show(syscall(SYS_getdents64, d, buffer, 512) > 0);
    show(syscall(SYS_getdents64, d, buffer, 512));
    show(syscall(SYS_getdents64, d, buffer, 512));
}
BEHAVIOUR("an empty directory has the entries . and ..") {
    note("%d %d", entries(".", ""), entries(".", ".."));
}
BEHAVIOUR("every entry is read once, whatever the size of the buffer") {
    static char buffer[4096];
    make_many(100);
    for (size_t size = 64; size <= 4096; size *= 4) {
        int count = 0, d = open(".", O_RDONLY);
        for (long length; (length = syscall(SYS_getdents64, d, buffer, size)) > 0;)
            for (long at = 0; at < length; at += *(unsigned short *)(buffer + at + 16))
                count++;
        close(d);
        note("%d", count);
    }
}
BEHAVIOUR("the types of entries") {
    make("f", "");
    mkdir("d", 0755);
    symlink("x", "l");
    mkfifo("p", 0600);
    DIR *directory = opendir(".");
    int types[16] = {0};
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        types[entry->d_type & 15]++;
    note("file %d directory %d link %d FIFO %d", types[DT_REG], types[DT_DIR], types[DT_LNK], types[DT_FIFO]);
}
BEHAVIOUR("files that stay are read once while others are removed") {
    static char buffer[1024];
    make_many(200);
    int seen = 0, d = open(".", O_RDONLY);
    for (long length; (length = syscall(SYS_getdents64, d, buffer, sizeof buffer)) > 0;)
        for (long at = 0; at < length; at += *(unsigned short *)(buffer + at + 16)) {
            const char *name = buffer + at + 19;
            if (strncmp(name, "file", 4) != 0)
                continue;
            seen++;
            unlink(name);
        }
    note("%d %d", seen, entries(".", "file"));
}
BEHAVIOUR("lseek to 0 reads a directory again, with what is new") {
    static char buffer[4096];
    int d = open(".", O_RDONLY);
    long before = syscall(SYS_getdents64, d, buffer, sizeof buffer);
    make("new", "");
    show(lseek(d, 0, SEEK_SET));
    note("%d", syscall(SYS_getdents64, d, buffer, sizeof buffer) > before);
}
BEHAVIOUR("telldir and seekdir return to the same entry") {
    make_many(50);
    DIR *directory = opendir(".");
    for (int i = 0; i < 20; i++)
        readdir(directory);
    long place = telldir(directory);
    char name[256];
    strcpy(name, readdir(directory)->d_name);
    while (readdir(directory) != NULL)
        ;
    seekdir(directory, place);
    note("%d", strcmp(name, readdir(directory)->d_name));
}
BEHAVIOUR("two descriptors read a directory each, a duplicate goes on") {
    static char buffer[4096];
    int one = open(".", O_RDONLY), two = open(".", O_RDONLY), copy = dup(one);
    note("%d", syscall(SYS_getdents64, one, buffer, sizeof buffer) > 0);
    note("%d", syscall(SYS_getdents64, two, buffer, sizeof buffer) > 0);
    show(syscall(SYS_getdents64, copy, buffer, sizeof buffer));
}
BEHAVIOUR("write, ftruncate, mmap of a directory") {
    int d = open(".", O_RDONLY);
    show(write(d, "x", 1));
    show(ftruncate(d, 0));
    show_address(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, d, 0));
}
BEHAVIOUR("a directory of 500 names is read, found and emptied") {
    make_many(500);
    note("%d", entries(".", "file"));
    show_mode("file499");
    char name[32];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "file%d", i);
        must(unlink(name));
    }
    note("%d", entries(".", "file"));
}
BEHAVIOUR("a tree of 60 directories") {
    for (int i = 0; i < 60; i++) {
        must(mkdir("directory", 0755));
        must(chdir("directory"));
    }
    char path[1000];
    note("%d", syscall(SYS_getcwd, path, sizeof path) > 600);
    show(chdir(path));
}

#define DEEP_LEVELS 45
/* A name of 100 bytes. */
static const char *level(void) {
    static char name[101];
    memset(name, 'l', 100);
    return name;
}
/* Makes directories in each other until no path of PATH_MAX bytes leads to the last, which is where it goes. */
static void go_deep(void) {
    for (int i = 0; i < DEEP_LEVELS; i++) {
        must(mkdir(level(), 0755));
        must(chdir(level()));
    }
}
/* Goes back, and removes them. */
static void come_back(void) {
    for (int i = 0; i < DEEP_LEVELS; i++) {
        must(chdir(".."));
        must(rmdir(level()));
    }
}
BEHAVIOUR("files in a directory that no path leads to") {
    go_deep();
    make("file", "text");
    show(rename("file", "other"));
    show(link("other", "third"));
    show(symlink("third", "link"));
    show_file("link");
    show(mkdir("d", 0755));
    show(rename("d", "d/d"));
    show(rename("third", "d/third"));
    int directory = open("d", O_RDONLY);
    show(directory >= 0);
    show(chdir("/"));
    show(unlinkat(directory, "third", 0));
    show(fchdir(directory));
    show(chdir(".."));
    show(rmdir("d"));
    show(unlink("link"));
    show(unlink("other"));
    come_back();
}
BEHAVIOUR("getcwd and links of /proc where no path leads to, and back again") {
    char path[8192], link[40];
    struct stat before, after;
    must(syscall(SYS_getcwd, path, sizeof path));
    must(stat(".", &before));
    go_deep();
    show(syscall(SYS_getcwd, path, sizeof path));
    show(readlink("/proc/self/cwd", path, sizeof path));
    int file = open("file", O_CREAT | O_WRONLY, 0644);
    show(file >= 0);
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    show(readlink(link, path, sizeof path));
    show(unlink("file"));
    come_back();
    show(syscall(SYS_getcwd, path, sizeof path) > 0);
    must(stat(path, &after));
    show(before.st_ino == after.st_ino);
    must(mkdir("d", 0755));
    must(chdir("d"));
    show(syscall(SYS_getcwd, path, sizeof path) > 0);
    note("%s", strrchr(path, '/'));
}
BEHAVIOUR("a directory that no path leads to is renamed far above") {
    char path[8192];
    must(mkdir("top", 0755));
    must(chdir("top"));
    go_deep();
    int deep = open(".", O_RDONLY);
    for (int i = 0; i < DEEP_LEVELS + 1; i++)
        must(chdir(".."));
    show(rename("top", "new"));
    show(fchdir(deep));
    come_back();
    show(syscall(SYS_getcwd, path, sizeof path) > 0);
    note("%s", strrchr(path, '/'));
}
BEHAVIOUR("a program starts where no path leads to") {
    go_deep();
    int from = open("/proc/self/exe", O_RDONLY), to = open("program", O_CREAT | O_WRONLY, 0755);
    while (sendfile(to, from, NULL, 1 << 20) > 0)
        ;
    close(to);
    IN_CHILD {
        execl("./program", "program", "no such behaviour", NULL);
        show(errno);
    }
    show(unlink("program"));
    come_back();
}
BEHAVIOUR("a directory is not moved into itself where no path leads to") {
    go_deep();
    must(mkdir("d", 0755));
    must(mkdir("d/e", 0755));
    int e = open("d/e", O_RDONLY);
    show(renameat(AT_FDCWD, "d", e, "d"));
    show(renameat(e, ".", AT_FDCWD, "x"));
    must(chdir("d"));
    must(chdir("e"));
    show(renameat(AT_FDCWD, "../../d", AT_FDCWD, "f"));
    must(chdir("../.."));
    must(rmdir("d/e"));
    must(rmdir("d"));
    come_back();
}
