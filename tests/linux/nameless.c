/* Files without a name: O_TMPFILE, the links of /proc/self/fd, memfd_create and seals, fallocate. */
#include "behaviour.h"
#include <sys/socket.h>

/* The path of a descriptor in /proc. */
static const char *link_of(int fd) {
    static char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static int nameless(int flags) { return must(open(".", O_TMPFILE | flags, 0666)); }

static int sealed(int seals) {
    int fd = must(memfd_create("x", MFD_ALLOW_SEALING));
    must(ftruncate(fd, 5000));
    must(fcntl(fd, F_ADD_SEALS, seals));
    return fd;
}

/* The count of names. */
static void show_links(int fd) {
    struct stat at;
    fstat(fd, &at);
    note("%ld links", (long)at.st_nlink);
}

BEHAVIOUR("O_TMPFILE: mode, umask, owner, links") {
    struct stat at;
    chmod(".", 0777);
    AS(USER) {
        int fd = nameless(O_RDWR);
        fstat(fd, &at);
        note("%o %d %d %ld %ld", at.st_mode, at.st_uid, at.st_gid, (long)at.st_nlink, (long)at.st_size);
    }
}
BEHAVIOUR("O_TMPFILE: flags that it needs and that it does not take") {
    show(open(".", O_TMPFILE | O_RDONLY, 0600));
    show(open(".", O_TMPFILE | O_RDWR | O_CREAT, 0600));
    show(open(".", (O_TMPFILE & ~O_DIRECTORY) | O_RDWR, 0600));
    show(open("none", O_TMPFILE | O_RDWR, 0600));
    make("f", "");
    show(open("f", O_TMPFILE | O_RDWR, 0600));
    show(open("/proc", O_TMPFILE | O_RDWR, 0600));
}
BEHAVIOUR("O_TMPFILE in a directory that may not be written") {
    mkdir("d", 0755);
    AS(USER) { show(open("d", O_TMPFILE | O_RDWR, 0600)); }
}
BEHAVIOUR("O_TMPFILE: F_GETFL") { note("%x", fcntl(nameless(O_WRONLY), F_GETFL)); }
BEHAVIOUR("O_TMPFILE: a directory stays empty, and can be removed") {
    mkdir("d", 0755);
    int fd = open("d", O_TMPFILE | O_RDWR, 0600);
    show(write(fd, "text", 4));
    show(rmdir("d"));
    show(pwrite(fd, "T", 1, 0));
    char text[8];
    show_bytes(text, pread(fd, text, 8, 0));
}
BEHAVIOUR("O_TMPFILE: linkat by /proc gives the first name") {
    int fd = nameless(O_RDWR);
    write(fd, "text", 4);
    show(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, "f", 0));
    show(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, "f", AT_SYMLINK_FOLLOW));
    show_file("f");
    show_links(fd);
    show(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, "f", AT_SYMLINK_FOLLOW));
    show(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
    show_links(fd);
    unlink("f");
    unlink("g");
    show(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, "h", AT_SYMLINK_FOLLOW));
}
BEHAVIOUR("O_TMPFILE: linkat AT_EMPTY_PATH") {
    int fd = nameless(O_RDWR);
    show(linkat(fd, "", AT_FDCWD, "f", 0));
    show(linkat(fd, "", AT_FDCWD, "f", AT_EMPTY_PATH));
    show_links(fd);
    show(linkat(99, "", AT_FDCWD, "g", AT_EMPTY_PATH));
    show(linkat(open(".", O_RDONLY), "", AT_FDCWD, "g", AT_EMPTY_PATH));
    show(linkat(AT_FDCWD, "", AT_FDCWD, "g", AT_EMPTY_PATH));
    show(linkat(fd, "", AT_FDCWD, "g", AT_EMPTY_PATH | 0x100));
}
BEHAVIOUR("O_TMPFILE | O_EXCL gets no name") {
    int fd = nameless(O_RDWR | O_EXCL);
    show(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, "f", AT_SYMLINK_FOLLOW));
    show(linkat(fd, "", AT_FDCWD, "f", AT_EMPTY_PATH));
}
BEHAVIOUR("a file that was unlinked, and a memfd, get no name") {
    make("f", "text");
    int fd = open("f", O_RDWR);
    unlink("f");
    show(linkat(AT_FDCWD, link_of(fd), AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
    int memory = memfd_create("x", 0);
    show(linkat(AT_FDCWD, link_of(memory), AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
}
BEHAVIOUR("a link in /proc/self/fd opens the file itself, with rights of its own") {
    make("f", "text");
    int fd = open("f", O_RDONLY);
    rename("f", "g");
    make("f", "other");
    show_file(link_of(fd));
    unlink("g");
    show_file(link_of(fd));
    int writes = open(link_of(fd), O_WRONLY);
    show(pwrite(writes, "T", 1, 0));
    show(lseek(writes, 0, SEEK_CUR));
    show_file(link_of(fd));
    show(truncate(link_of(fd), 2));
    show_file(link_of(fd));
    show(open(link_of(fd), O_RDONLY | O_CREAT | O_EXCL, 0600));
    show(open(link_of(fd), O_RDONLY | O_NOFOLLOW));
    show(open(link_of(fd), O_RDONLY | O_DIRECTORY));
}
BEHAVIOUR("a link in /proc/self/fd to a directory is a step of a path") {
    char path[80];
    mkdir("d", 0755);
    make("d/f", "text");
    int fd = open("d", O_RDONLY);
    rename("d", "e");
    snprintf(path, sizeof path, "%s/f", link_of(fd));
    show_file(path);
    snprintf(path, sizeof path, "%s/../e/f", link_of(fd));
    show_file(path);
    snprintf(path, sizeof path, "%s/", link_of(open("e/f", O_RDONLY)));
    show(open(path, O_RDONLY));
}
BEHAVIOUR("a link in /proc/self/fd to a socket, to nothing") {
    show(open(link_of(socket(AF_UNIX, SOCK_STREAM, 0)), O_RDWR));
    show(open(link_of(99), O_RDONLY));
}
BEHAVIOUR("links in /proc/self/fd and /proc/self/cwd tell what was removed") {
    char target[300] = "";
    int fd = open("f", O_CREAT | O_RDWR, 0600);
    unlink("f");
    must(readlink(link_of(fd), target, sizeof target - 1));
    note("%s", strrchr(target, '/') + 1);
    memset(target, 0, sizeof target);
    must(readlink(link_of(memfd_create("name", 0)), target, sizeof target - 1));
    note("%s", target);
    mkdir("d", 0755);
    chdir("d");
    rmdir("../d");
    memset(target, 0, sizeof target);
    must(readlink("/proc/self/cwd", target, sizeof target - 1));
    note("%s", strrchr(target, '/') + 1);
}
BEHAVIOUR("memfd_create: flags, a name that is too long, no name") {
    char name[260];
    memset(name, 'n', sizeof name);
    name[250] = 0;
    show(memfd_create(name, 0));
    name[249] = 0;
    show(memfd_create(name, 0) >= 0);
    show(memfd_create("", 0) >= 0);
    show(memfd_create("x", 0x8000));
    show(memfd_create(bad(), 0));
    note("%x", fcntl(memfd_create("x", MFD_CLOEXEC), F_GETFD));
}
BEHAVIOUR("F_GET_SEALS of a memfd, of a file in /dev/shm, of a pipe") {
    int p[2];
    pipe(p);
    show(fcntl(memfd_create("x", MFD_ALLOW_SEALING), F_GET_SEALS));
    show(fcntl(memfd_create("x", 0), F_GET_SEALS));
    int fd = must(open("/dev/shm/behaviour", O_CREAT | O_RDWR, 0600));
    unlink("/dev/shm/behaviour");
    show(fcntl(fd, F_GET_SEALS));
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    show(fcntl(p[0], F_GET_SEALS));
    show(fcntl(p[1], F_ADD_SEALS, 0));
}
BEHAVIOUR("F_ADD_SEALS: unknown seals, a descriptor for reading alone, once more") {
    int fd = sealed(0);
    show(fcntl(fd, F_ADD_SEALS, 0x4000));
    show(fcntl(open(link_of(fd), O_RDONLY), F_ADD_SEALS, F_SEAL_GROW));
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL));
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    show(fcntl(open(link_of(fd), O_RDONLY), F_GET_SEALS));
}
BEHAVIOUR("F_SEAL_GROW: ftruncate, fallocate, writes across the end") {
    int fd = sealed(F_SEAL_GROW);
    char bytes[5000] = "";
    show(ftruncate(fd, 5001));
    show(ftruncate(fd, 5000));
    show(fallocate(fd, 0, 0, 6000));
    show(pwrite(fd, bytes, 5000, 10));
    show(pwrite(fd, bytes, 100, 4990));
    show(pwrite(fd, bytes, 10, 4990));
    show(pwrite(fd, bytes, 10, 5000));
    show(size_of(fd));
}
BEHAVIOUR("F_SEAL_SHRINK: ftruncate, open with O_TRUNC") {
    int fd = sealed(F_SEAL_SHRINK);
    show(ftruncate(fd, 4999));
    show(open(link_of(fd), O_RDWR | O_TRUNC));
    show(ftruncate(fd, 6000));
    show(size_of(fd));
}
BEHAVIOUR("F_SEAL_WRITE: write, punch, splice, mmap") {
    int p[2], fd = sealed(F_SEAL_WRITE);
    pipe(p);
    write(p[1], "text", 4);
    show(write(fd, "text", 4));
    show(write(fd, "", 0));
    show(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    show(splice(p[0], NULL, fd, NULL, 4, 0));
    show_address(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    show_address(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    void *read = show_address(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
    show(mprotect(read, 4096, PROT_READ | PROT_WRITE));
    show(ftruncate(fd, 10));
}
BEHAVIOUR("F_SEAL_WRITE is refused while the file is mapped to be written") {
    int fd = sealed(0);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    munmap(page, 4096);
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    show(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
}
BEHAVIOUR("F_SEAL_FUTURE_WRITE leaves the mappings that exist") {
    int fd = sealed(0);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), byte = 0;
    show(fcntl(fd, F_ADD_SEALS, 0x10));
    page[0] = 'x';
    show(pwrite(fd, "y", 1, 0));
    show_address(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    pread(fd, &byte, 1, 0);
    note("%c", byte);
}
BEHAVIOUR("fallocate: bad lengths, descriptors and modes") {
    int p[2], fd = open("f", O_CREAT | O_RDWR, 0600);
    pipe(p);
    show(fallocate(fd, 0, 0, 0));
    show(fallocate(fd, 0, -1, 10));
    show(fallocate(fd, 0, 10, -1));
    show(fallocate(open("f", O_RDONLY), 0, 0, 10));
    show(fallocate(p[1], 0, 0, 10));
    show(fallocate(open("/dev/null", O_RDWR), 0, 0, 10));
    show(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10));
    show(fallocate(fd, 0x4000, 0, 10));
}
BEHAVIOUR("fallocate: what is wrong is found in an order, whatever the mode") {
    int modes[] = {FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_UNSHARE_RANGE, FALLOC_FL_PUNCH_HOLE, 0x4000};
    int read_only = open("f", O_RDONLY | O_CREAT, 0600), p[2];
    pipe(p);
    for (int at = 0; at < 5; at++) {
        show(fallocate(9, modes[at], 0, 0));
        show(fallocate(read_only, modes[at], 0, 0));
        show(fallocate(read_only, modes[at], 0, 1));
        show(fallocate(p[1], modes[at], INT64_MAX, 1));
    }
}
BEHAVIOUR("fallocate: KEEP_SIZE, and without it") {
    int fd = open("f", O_CREAT | O_RDWR, 0600);
    show(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 10000));
    show(size_of(fd));
    show(fallocate(fd, 0, 5000, 5000));
    show(size_of(fd));
    show(fallocate(fd, 0, 0, 10));
    show(size_of(fd));
}
BEHAVIOUR("fallocate: PUNCH_HOLE and ZERO_RANGE in the middle") {
    char bytes[12] = "";
    make("f", "abcdefghijk");
    int fd = open("f", O_RDWR);
    show(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
    show(fallocate(fd, FALLOC_FL_ZERO_RANGE, 8, 5));
    show_bytes(bytes, pread(fd, bytes, 12, 0));
    show(size_of(fd));
    show(fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 10, 50));
    show(size_of(fd));
}
