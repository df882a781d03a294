/* Debian's Linux as the system under test: this program is its init, and the driver a module (tests/monolith). */
#ifndef LINUX_H
#define LINUX_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Parameters of the driver: the memory that the kernel leaves alone. */
static char disk_parameters[80];
/* Where the driver's text begins. */
static uint64_t text_base;

static int load_module(const char *name, const char *parameters)
{
    char path[64];
    snprintf(path, sizeof path, "/modules/%s.ko", name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    int result = (int)syscall(SYS_finit_module, file, parameters, 0);
    close(file);
    return result;
}

/* The module `poke` shows the driver's text, which has so many bytes, as a file. */
static int load_poke(const char *bytes)
{
    char parameters[80], text[32] = { 0 };
    int file = open("/sys/module/ramdisk/sections/.text", O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) < 0 || close(file) < 0)
        return -1;
    text_base = strtoull(text, NULL, 16);
    snprintf(parameters, sizeof parameters, "base=%#llx bytes=%s", (unsigned long long)text_base, bytes);
    return load_module("poke", parameters);
}

/* Arguments: address and size of the disk, size of the driver's text. 0, or -1 with errno. */
static int linux_start(char **arguments)
{
    static const char *const needed[] = { "crc32c_generic", "crc16", "mbcache", "jbd2", "ext4" };
    mkdir("/sys", 0755);
    mkdir("/mnt", 0755);
    if (mount("sysfs", "/sys", "sysfs", 0, NULL) < 0 || (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) < 0 && errno != EBUSY))
        return -1;
    for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++)
        if (load_module(needed[i], "") < 0 && errno != EEXIST)
            return -1;
    snprintf(disk_parameters, sizeof disk_parameters, "base=%s bytes=%s", arguments[0], arguments[1]);
    return load_module("ramdisk", disk_parameters) < 0 ? -1 : load_poke(arguments[2]);
}

static int linux_read_text(uint64_t address, unsigned char *bytes, size_t count)
{
    int file = open("/dev/poke", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : pread(file, bytes, count, address - text_base);
    if (file >= 0)
        close(file);
    return (int)got;
}

static int linux_poke(uint64_t address, uint64_t bytes, size_t count)
{
    int file = open("/dev/poke", O_WRONLY | O_CLOEXEC);
    ssize_t done = file < 0 ? -1 : pwrite(file, &bytes, count, address - text_base);
    if (file >= 0)
        close(file);
    return done == (ssize_t)count ? 0 : -1;
}

/* Removes the driver and loads it again. */
static int linux_restart_driver(void)
{
    return syscall(SYS_delete_module, "ramdisk", O_NONBLOCK) < 0 ? -1 : load_module("ramdisk", disk_parameters);
}

/* Nobody restarts drivers unasked. */
static unsigned linux_restarts(uint64_t *recovery_ns)
{
    *recovery_ns = 0;
    return 0;
}

#endif
