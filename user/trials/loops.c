/* Loop devices: their requests, what is refused, and a file system on one. Prints what it sees: the same as on Linux.
 * usage: loops DIRECTORY | loops DIRECTORY cycle IMAGE
 * Started by the superuser. With `cycle` it mounts the file system of an image, writes, reads and unmounts, and says only what is wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECTOR = 512, FILE_BYTES = 10 * SECTOR + 100, FILES = 20, CONTENT = 5000 };

static char buffer[8192];

static void say(const char *what, long result)
{
    if (result >= 0)
        printf("%s: %ld\n", what, result);
    else
        printf("%s: %s\n", what, strerrorname_np(errno));
}

static void fail(const char *what)
{
    printf("%s: %s\n", what, strerrorname_np(errno));
    exit(1);
}

static int control(void)
{
    int file = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (file < 0)
        fail("/dev/loop-control");
    return file;
}

/* A device that is free, open. `name` gets its path. */
static int free_device(char *name, int flags)
{
    int file = control();
    int number = ioctl(file, LOOP_CTL_GET_FREE);
    close(file);
    if (number < 0)
        fail("LOOP_CTL_GET_FREE");
    sprintf(name, "/dev/loop%d", number);
    int device = open(name, flags);
    if (device < 0)
        fail(name);
    return device;
}

static int new_file(const char *name, long bytes)
{
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (long at = 0; at < (long)sizeof buffer; at++)
        buffer[at] = at / SECTOR + 'a';
    for (long at = 0; at < bytes; at += SECTOR)
        if (pwrite(file, buffer + at % sizeof buffer, bytes - at < SECTOR ? bytes - at : SECTOR, at) < 0)
            fail(name);
    return file;
}

static uint64_t size(int device)
{
    uint64_t bytes = 99;
    if (ioctl(device, BLKGETSIZE64, &bytes) < 0)
        fail("BLKGETSIZE64");
    return bytes;
}

static void status(const char *what, int device)
{
    struct loop_info64 info = {};
    if (ioctl(device, LOOP_GET_STATUS64, &info) < 0) {
        printf("%s: %s\n", what, strerrorname_np(errno));
        return;
    }
    printf("%s: offset %llu limit %llu flags %u name '%s' size %llu\n", what, (unsigned long long)info.lo_offset,
           (unsigned long long)info.lo_sizelimit, info.lo_flags, info.lo_file_name, (unsigned long long)size(device));
}

static void set(const char *what, int device, uint64_t offset, uint64_t limit, unsigned flags)
{
    struct loop_info64 info = { .lo_offset = offset, .lo_sizelimit = limit, .lo_flags = flags };
    strcpy((char *)info.lo_file_name, "a name");
    say(what, ioctl(device, LOOP_SET_STATUS64, &info));
    status("  now", device);
}

static char at(int file, long position)
{
    char byte = '?';
    return pread(file, &byte, 1, position) == 1 ? byte : '-';
}

static void requests(void)
{
    char name[32];
    int device = free_device(name, O_RDWR), file = new_file("file", FILE_BYTES);
    say("clear nothing", ioctl(device, LOOP_CLR_FD));
    say("capacity of nothing", ioctl(device, LOOP_SET_CAPACITY));
    status("status of nothing", device);
    printf("size of nothing: %llu, read %c\n", (unsigned long long)size(device), at(device, 0));
    say("a descriptor that is not open", ioctl(device, LOOP_SET_FD, 77));
    int directory = open(".", O_RDONLY), path = open("file", O_PATH), pipes[2];
    if (pipe(pipes) < 0)
        fail("pipe");
    say("a directory", ioctl(device, LOOP_SET_FD, directory));
    say("a pipe", ioctl(device, LOOP_SET_FD, pipes[0]));
    say("a path", ioctl(device, LOOP_SET_FD, path));
    say("a file", ioctl(device, LOOP_SET_FD, file));
    say("a file again", ioctl(device, LOOP_SET_FD, file));
    status("status", device);
    say("status to no address", ioctl(device, LOOP_GET_STATUS64, 0));
    say("status to a bad address", ioctl(device, LOOP_GET_STATUS64, 8));
    say("status from a bad address", ioctl(device, LOOP_SET_STATUS64, 8));
    set("offset and limit", device, 2 * SECTOR, 3 * SECTOR, 0);
    printf("first %c last %c end %c\n", at(device, 0), at(device, 3 * SECTOR - 1), at(device, 3 * SECTOR));
    say("write", pwrite(device, "XY", 2, SECTOR - 1));
    say("write across the end", pwrite(device, buffer, 2 * SECTOR, 2 * SECTOR));
    say("write at the end", pwrite(device, "x", 1, 3 * SECTOR));
    say("fsync", fsync(device));
    printf("file %c%c\n", at(file, 3 * SECTOR - 1), at(file, 3 * SECTOR));
    set("offset alone", device, SECTOR, 0, LO_FLAGS_AUTOCLEAR);
    set("flags away", device, SECTOR, 0, 0);
    set("offset that is negative", device, -1, 0, 0);
    struct loop_info64 encrypted = { .lo_encrypt_type = LO_CRYPT_XOR };
    say("encryption", ioctl(device, LOOP_SET_STATUS64, &encrypted));
    say("a request that there is not", ioctl(device, 0x4c0f));
    say("block of 1000", ioctl(device, LOOP_SET_BLOCK_SIZE, 1000));
    say("block of 1024", ioctl(device, LOOP_SET_BLOCK_SIZE, 1024));
    int block = 0;
    say("BLKSSZGET", ioctl(device, BLKSSZGET, &block));
    printf("block %d\n", block);
    say("clear", ioctl(device, LOOP_CLR_FD));
    close(device);
    device = open(name, O_RDWR);
    status("status of nothing again", device);
    close(device);
    close(file);
}

static void access_modes(void)
{
    char name[32];
    int device = free_device(name, O_RDWR), file = open("file", O_RDONLY);
    say("a file to be read", ioctl(device, LOOP_SET_FD, file));
    status("status", device);
    int is_read_only = 0;
    say("BLKROGET", ioctl(device, BLKROGET, &is_read_only));
    printf("read-only %d\n", is_read_only);
    say("write", pwrite(device, "x", 1, 0));
    say("clear", ioctl(device, LOOP_CLR_FD));
    close(device);
    close(file);
    device = free_device(name, O_RDONLY);
    file = open("file", O_RDWR);
    say("a device to be read", ioctl(device, LOOP_SET_FD, file));
    status("status", device);
    say("clear", ioctl(device, LOOP_CLR_FD));
    close(device);
    close(file);
}

static void capacity(void)
{
    char name[32];
    int device = free_device(name, O_RDWR), file = new_file("file", 2 * SECTOR);
    struct loop_config config = { .fd = file, .block_size = 1000 };
    say("configure with bad blocks", ioctl(device, LOOP_CONFIGURE, &config));
    config.block_size = 0;
    config.info.lo_flags = 2;
    say("configure with bad flags", ioctl(device, LOOP_CONFIGURE, &config));
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    config.info.lo_sizelimit = 3 * SECTOR;
    say("configure from a bad address", ioctl(device, LOOP_CONFIGURE, 8));
    say("configure", ioctl(device, LOOP_CONFIGURE, &config));
    status("status", device);
    if (pwrite(file, buffer, SECTOR, 2 * SECTOR) != SECTOR)
        fail("write");
    status("the file is longer", device);
    say("capacity", ioctl(device, LOOP_SET_CAPACITY));
    status("the device too", device);
    say("truncate", ftruncate(file, SECTOR));
    char bytes[2] = "xx";
    say("read beyond the file", pread(device, bytes, 2, 2 * SECTOR));
    int other = open(name, O_RDONLY);
    close(device);
    close(file);
    status("with another user", other);
    close(other);
    other = open(name, O_RDONLY);
    status("cleared by itself", other);
    close(other);
}

static void numbers(void)
{
    char name[32];
    int device = free_device(name, O_RDWR), file = open("file", O_RDWR), all = control();
    say("add what there is", ioctl(all, LOOP_CTL_ADD, 0));
    say("remove a negative one", ioctl(all, LOOP_CTL_REMOVE, -1));
    say("remove what there is not", ioctl(all, LOOP_CTL_REMOVE, 1000));
    say("a request that there is not", ioctl(all, 0x4c8f));
    say("a file", ioctl(device, LOOP_SET_FD, file));
    int number = atoi(name + strlen("/dev/loop"));
    say("remove what is in use", ioctl(all, LOOP_CTL_REMOVE, number));
    printf("another one is free: %d\n", ioctl(all, LOOP_CTL_GET_FREE) != number);
    int other = open(name, O_RDWR);
    say("clear", ioctl(device, LOOP_CLR_FD));
    status("with another user", other);
    say("a file of that device", ioctl(device, LOOP_SET_FD, device));
    close(other);
    close(device);
    device = open(name, O_RDWR);
    status("cleared by itself", device);
    close(device);
    close(file);
    close(all);
}

static void busy(void)
{
    char name[32];
    int device = free_device(name, O_RDWR);
    mkdir("small", 0700);
    if (mount("none", "small", "tmpfs", 0, "size=1m") < 0)
        fail("tmpfs");
    int file = new_file("small/file", 4 * SECTOR);
    fchmod(file, 0755);
    say("a file in memory", ioctl(device, LOOP_SET_FD, file));
    close(file);
    say("umount", umount("small"));
    pid_t child = fork();
    if (child == 0) {
        execl("small/file", "file", (char *)NULL);
        _exit(errno == ETXTBSY ? 1 : 2);
    }
    int end = 0;
    waitpid(child, &end, 0);
    printf("exec is refused: %d\n", WEXITSTATUS(end));
    unlink("small/file");
    printf("without a name: %c\n", at(device, SECTOR));
    say("clear", ioctl(device, LOOP_CLR_FD));
    close(device);
    say("umount", umount("small"));
    rmdir("small");
}

/* Mounts the image and looks at its files, or makes them. */
static void cycle(const char *image)
{
    char name[32], path[64];
    int device = free_device(name, O_RDWR), file = open(image, O_RDWR);
    struct loop_config config = { .fd = file, .info.lo_flags = LO_FLAGS_AUTOCLEAR };
    if (file < 0 || ioctl(device, LOOP_CONFIGURE, &config) < 0)
        fail(image);
    close(file);
    mkdir("mnt", 0700);
    if (mount(name, "mnt", "ext2", 0, NULL) < 0)
        fail("mount");
    close(device);
    for (int number = 0; number < FILES; number++) {
        sprintf(path, "mnt/%d", number);
        char content[CONTENT], found[CONTENT];
        memset(content, 'a' + number, sizeof content);
        file = open(path, O_RDWR);
        if (file >= 0 && (read(file, found, sizeof found) != CONTENT || memcmp(content, found, sizeof found) != 0))
            printf("%s: other bytes\n", path);
        if (file < 0)
            file = open(path, O_RDWR | O_CREAT, 0600);
        if (pwrite(file, content, sizeof content, 0) != CONTENT)
            fail(path);
        if (number % 8 == 0 && fsync(file) < 0)
            fail("fsync");
        if (pread(file, found, sizeof found, 0) != CONTENT || memcmp(content, found, sizeof found) != 0)
            printf("%s: other bytes\n", path);
        close(file);
    }
    sprintf(path, "mnt/%d", getpid() % FILES);
    unlink(path);
    if (umount("mnt") < 0)
        fail("umount");
    device = open(name, O_RDWR);
    if (ioctl(device, LOOP_GET_STATUS64, &config.info) == 0)
        printf("%s is not cleared\n", name);
    close(device);
}

int main(int argc, char **argv)
{
    setbuf(stdout, NULL);
    if (argc < 2 || chdir(argv[1]) < 0)
        return 1;
    if (argc == 4) {
        cycle(argv[3]);
        return 0;
    }
    requests();
    access_modes();
    capacity();
    numbers();
    busy();
    unlink("file");
    return 0;
}
