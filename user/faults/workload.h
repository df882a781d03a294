/* The work that programs do while a service is disturbed: each step uses one kind of call and checks what comes back.
 * A step that gets an error or wrong data ends the process (`verdict.h`).
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "line.h"
#include "../rs.h"
#include "verdict.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES = 100000, PIECE = 8192, PIPE_BYTES = 32768, RECORD = 32, RAW_BYTES = 65536, MOST_DISKS = 4 };

/* A disk with a file system, and behind that file system a range that belongs to us alone. */
struct disk {
    const char *folder, *device;
    off_t raw;
};
static struct disk disks[MOST_DISKS];
static int disk_count;
/* The content that a trial writes follows from it. */
static unsigned seed;

static void check_file(const char *path, unsigned key)
{
    unsigned char piece[PIECE];
    size_t position = 0;
    ssize_t got;
    int file = open(path, O_RDONLY);
    must(file >= 0, "open to check");
    while ((got = read(file, piece, sizeof piece)) > 0) {
        same(is_filled(piece, got, key, position), "content");
        position += got;
    }
    must(got == 0, "read to check");
    same(position == FILE_BYTES, "length");
    must(close(file) == 0, "close after check");
}

static void write_file(const char *path, unsigned key)
{
    unsigned char piece[PIECE];
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(file >= 0, "create");
    for (size_t position = 0; position < FILE_BYTES;) {
        size_t wanted = FILE_BYTES - position < PIECE ? FILE_BYTES - position : PIECE;
        fill(piece, wanted, key, position);
        must(write(file, piece, wanted) == (ssize_t)wanted, "write");
        position += wanted;
    }
    must(fsync(file) == 0, "fsync");
    must(close(file) == 0, "close");
}

/* Copies a file, has the copy written to the disk, reads it back, renames and removes it. */
static void copy_in(const char *folder)
{
    char source[64], copy[64], renamed[64];
    unsigned char piece[PIECE];
    struct stat about;
    ssize_t got;
    snprintf(source, sizeof source, "%s/source", folder);
    snprintf(copy, sizeof copy, "%s/copy", folder);
    snprintf(renamed, sizeof renamed, "%s/renamed", folder);
    int from = open(source, O_RDONLY), to = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(from >= 0 && to >= 0, "open");
    while ((got = read(from, piece, sizeof piece)) > 0)
        must(write(to, piece, got) == got, "write");
    must(got == 0, "read");
    must(fsync(to) == 0, "fsync");
    must(close(from) == 0 && close(to) == 0, "close");
    check_file(copy, 1);
    must(rename(copy, renamed) == 0, "rename");
    must(stat(renamed, &about) == 0, "stat");
    same(about.st_size == FILE_BYTES, "size");
    must(unlink(renamed) == 0, "unlink");
    same(stat(renamed, &about) < 0 && errno == ENOENT, "unlinked file is there");
}

static void step_files(void)
{
    copy_in(disks[0].folder);
}

/* Appends a record to a file: what was acknowledged stands there once, whatever happened. */
static void step_journal(void)
{
    unsigned char record[RECORD], last[RECORD];
    char path[64];
    struct stat about;
    snprintf(path, sizeof path, "%s/journal", disks[0].folder);
    int file = open(path, O_RDWR | O_APPEND);
    must(file >= 0, "open");
    fill(record, RECORD, 2, (size_t)verdict->records * RECORD);
    must(write(file, record, RECORD) == RECORD, "append");
    verdict->records++;
    must(fstat(file, &about) == 0, "fstat");
    same(about.st_size == (off_t)verdict->records * RECORD, "records lost or twice");
    must(pread(file, last, RECORD, about.st_size - RECORD) == RECORD, "pread");
    same(memcmp(record, last, RECORD) == 0, "record");
    must(close(file) == 0, "close");
}

/* Bytes through a pipe between two processes. */
static void step_pipe(void)
{
    unsigned char piece[1000];
    int ends[2], status;
    size_t position = 0;
    ssize_t got;
    must(pipe(ends) == 0, "pipe");
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        for (size_t sent = 0; sent < PIPE_BYTES; sent += 512) {
            fill(piece, 512, seed, sent);
            must(write(ends[1], piece, 512) == 512, "write");
        }
        _exit(0);
    }
    must(close(ends[1]) == 0, "close");
    while ((got = read(ends[0], piece, sizeof piece)) > 0) {
        same(is_filled(piece, got, seed, position), "content");
        position += got;
    }
    must(got == 0, "read");
    must(waitpid(child, &status, 0) == child, "waitpid");
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        _exit(WEXITSTATUS(status));
    errno = EINTR;
    must(WIFEXITED(status), "the writer was killed");
    same(position == PIPE_BYTES, "length");
    must(close(ends[0]) == 0, "close");
}

static char pipeline_expected[64];

/* What a pipeline of the shell prints. */
static void run_pipeline(char *printed, size_t room)
{
    char command[128];
    snprintf(command, sizeof command, "cat %s/source | tr a-y b-z | md5sum", disks[0].folder);
    int ends[2], status;
    size_t length = 0;
    ssize_t got;
    must(pipe(ends) == 0, "pipe");
    pid_t child = vfork();
    must(child >= 0, "vfork");
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    must(close(ends[1]) == 0, "close");
    while ((got = read(ends[0], printed + length, room - 1 - length)) > 0)
        length += got;
    must(got == 0, "read");
    printed[length] = 0;
    must(waitpid(child, &status, 0) == child, "waitpid");
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status of the pipeline");
    must(close(ends[0]) == 0, "close");
}

static void step_pipeline(void)
{
    char printed[64];
    run_pipeline(printed, sizeof printed);
    same(strcmp(printed, pipeline_expected) == 0, "output");
}

/* Sends a line and gets it back from the other side; a line to the console beside it. */
static void step_serial(void)
{
    static unsigned number;
    char line[LINE_BYTES], answer[LINE_BYTES];
    int console = open("/dev/ttyS0", O_WRONLY | O_NOCTTY);
    must(console >= 0, "open");
    int length = snprintf(line, sizeof line, "@echo %u %u ", seed, number++);
    for (int i = 0; i < 100; i++)
        line[length++] = 'a' + content(seed + number, i) % 26;
    line[length] = 0;
    must(write(console, ".", 1) == 1, "console");
    must(close(console) == 0, "close");
    line[length] = '\n';
    must(line_write(line, length + 1) == 0, "write");
    line[length] = 0;
    /* Nothing comes: then either what was sent is lost, or the answer, and nobody was told. */
    int got = line_read(answer, sizeof answer, 10000);
    same(got >= 0 || errno != ETIMEDOUT, "no echo");
    must(got >= 0, "read");
    same(strcmp(line, answer) == 0, "echo");
}

static void step_processes(void)
{
    char text[512], *end;
    int file = open("/proc/self/stat", O_RDONLY), found = 0;
    must(file >= 0, "open");
    ssize_t got = read(file, text, sizeof text - 1);
    must(got > 0 && close(file) == 0, "read");
    text[got] = 0;
    same(strtol(text, &end, 10) == getpid() && *end == ' ', "own pid");
    DIR *folder = opendir("/proc");
    must(folder != NULL, "opendir");
    errno = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        found |= strtol(entry->d_name, NULL, 10) == getpid();
    must(errno == 0, "readdir");
    same(found, "own folder");
    must(closedir(folder) == 0, "closedir");
    file = open("/proc/uptime", O_RDONLY);
    must(file >= 0, "open");
    got = read(file, text, sizeof text - 1);
    must(got > 0 && close(file) == 0, "read");
    same(strchr(text, '.') != NULL, "uptime");
}

static void step_devices(void)
{
    unsigned char bytes[4096];
    struct stat about;
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY), random = open("/dev/urandom", O_RDONLY);
    must(zero >= 0 && null >= 0 && random >= 0, "open");
    memset(bytes, 1, sizeof bytes);
    must(read(zero, bytes, sizeof bytes) == sizeof bytes, "read");
    for (size_t i = 0; i < sizeof bytes; i++)
        same(bytes[i] == 0, "zeros");
    must(write(null, bytes, sizeof bytes) == sizeof bytes, "write");
    must(read(random, bytes, 32) == 32, "random");
    int sum = 0;
    for (int i = 0; i < 32; i++)
        sum |= bytes[i];
    same(sum != 0, "random bytes are zero");
    must(stat("/dev/null", &about) == 0, "stat");
    same(S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3), "number of the device");
    must(close(zero) == 0 && close(null) == 0 && close(random) == 0, "close");
}

/* The clock of the machine and the kernel's go together. */
static void step_clock(void)
{
    struct rtc_time date;
    struct timespec now;
    int clock = open("/dev/rtc0", O_RDONLY);
    must(clock >= 0, "open");
    for (int i = 0; i < 4; i++) {
        must(ioctl(clock, RTC_RD_TIME, &date) == 0, "RTC_RD_TIME");
        struct tm fields = { .tm_year = date.tm_year, .tm_mon = date.tm_mon, .tm_mday = date.tm_mday,
                             .tm_hour = date.tm_hour, .tm_min = date.tm_min, .tm_sec = date.tm_sec };
        must(clock_gettime(CLOCK_REALTIME, &now) == 0, "clock_gettime");
        long apart = labs((long)(timegm(&fields) - now.tv_sec));
        same(apart <= 5, "time");
    }
    must(close(clock) == 0, "close");
}

static void step_memory(void)
{
    enum { PAGES = 32, BYTES = PAGES * 4096 };
    int status;
    unsigned char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED, "mmap");
    fill(memory, BYTES, seed, 0);
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        memory[0] ^= 1;
        _exit(is_filled(memory + 1, BYTES - 1, seed, 1) ? PASSED : CORRUPTED);
    }
    must(waitpid(child, &status, 0) == child, "waitpid");
    errno = EINTR;
    must(WIFEXITED(status), "the child was killed");
    same(WEXITSTATUS(status) == PASSED, "memory of the child");
    same(is_filled(memory, BYTES, seed, 0), "memory");
    must(mprotect(memory, 4096, PROT_READ) == 0, "mprotect");
    must(munmap(memory, BYTES) == 0, "munmap");
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

static void step_signals(void)
{
    struct sigaction action = { .sa_handler = count_signal };
    struct timespec before, after, pause = { .tv_nsec = 1000000 };
    signals = 0;
    must(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
    must(kill(getpid(), SIGUSR1) == 0, "kill");
    same(signals == 1, "signals");
    must(clock_gettime(CLOCK_MONOTONIC, &before) == 0, "clock_gettime");
    must(nanosleep(&pause, NULL) == 0, "nanosleep");
    must(clock_gettime(CLOCK_MONOTONIC, &after) == 0, "clock_gettime");
    same((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >= 1000000, "sleep was too short");
}

/* A range of a disk that no file system uses, past every cache. */
static void raw_disk(const struct disk *disk)
{
    static unsigned char bytes[RAW_BYTES];
    int device = open(disk->device, O_RDWR);
    must(device >= 0, "open");
    fill(bytes, RAW_BYTES, seed, 0);
    must(pwrite(device, bytes, RAW_BYTES, disk->raw) == RAW_BYTES, "pwrite");
    memset(bytes, 0, RAW_BYTES);
    must(pread(device, bytes, RAW_BYTES, disk->raw) == RAW_BYTES, "pread");
    same(is_filled(bytes, RAW_BYTES, seed, 0), "sectors");
    must(close(device) == 0, "close");
}

/* Reads the ramdisk's first sectors, past the cache. */
static void step_ramdisk(void)
{
    static unsigned char bytes[RAW_BYTES];
    int device = open("/dev/ram0", O_RDONLY);
    must(device >= 0, "open");
    must(pread(device, bytes, RAW_BYTES, 0) == RAW_BYTES, "pread");
    same(bytes[1080] == 0x53 && bytes[1081] == 0xef, "magic number of ext2");
    must(close(device) == 0, "close");
}

static void step_disks(void)
{
    for (int i = 1; i < disk_count; i++) {
        copy_in(disks[i].folder);
        raw_disk(&disks[i]);
    }
}

/* Has rs start other services again: work for rs, ds, vm and pci. */
static void step_restart(void)
{
    static const char *others[] = { "rtc", "virtio_blk" };
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
        struct skink_service_record record;
        /* It may be starting at this moment, or not be in this system. */
        if (service_status(others[i], &record) && record.state == SKINK_RS_STATE_UP) {
            must(service_call(SKINK_RS_SERVICE_CALL_KILL, others[i], NULL, 0) == 0, "service kill");
            verdict->asked++;
        }
    }
    errno = 0;
}

struct step {
    const char *name;
    void (*run)(void);
    /* Services that this step is the main work of. */
    const char *services;
};

static const struct step steps[] = {
    { "files", step_files, " ext2 vfs ramdisk " },
    { "journal", step_journal, " ext2 vfs " },
    { "pipe", step_pipe, " vfs pm " },
    { "serial", step_serial, " uart tty " },
    { "processes", step_processes, " procfs " },
    { "devices", step_devices, " devfs " },
    { "clock", step_clock, " rtc " },
    { "memory", step_memory, " vm pm " },
    { "signals", step_signals, " pm " },
    { "ramdisk", step_ramdisk, " ramdisk " },
    { "disks", step_disks, " virtio_blk ata " },
    { "restart", step_restart, " ds pci rs " },
    { "pipeline", step_pipeline, " " },
};
enum { STEPS = sizeof steps / sizeof *steps };

static void run_step(const struct step *step)
{
    snprintf(verdict->step, sizeof verdict->step, "%s", step->name);
    step->run();
}

static int concerns(const struct step *step, const char *service)
{
    char padded[24];
    snprintf(padded, sizeof padded, " %s ", service);
    return strstr(step->services, padded) != NULL;
}

/* Only the steps that concern `service`. */
static void workload_main(const char *service)
{
    for (int i = 0; i < STEPS; i++)
        if (concerns(&steps[i], service))
            run_step(&steps[i]);
}

/* Those first, then all steps; the restarts of other services only where they are the point. */
static void workload_all(const char *service)
{
    workload_main(service);
    for (int i = 0; i < STEPS; i++)
        if (steps[i].run != step_restart && !concerns(&steps[i], service))
            run_step(&steps[i]);
}

/* A few steps that show whether the system is in order again. */
static void workload_probe(void)
{
    char source[64];
    static const struct step check = { "probe", NULL, "" };
    for (int i = 0; i < disk_count; i++) {
        snprintf(verdict->step, sizeof verdict->step, "%s", check.name);
        snprintf(source, sizeof source, "%s/source", disks[i].folder);
        check_file(source, 1);
    }
    for (int i = 1; i < STEPS; i++)
        if (steps[i].run == step_journal || steps[i].run == step_serial || steps[i].run == step_memory)
            run_step(&steps[i]);
}

/* Makes what the steps need, on an undisturbed system. `arguments`: FOLDER[:DEVICE:OFFSET] for each disk, the root's first. */
static void workload_prepare(char **arguments)
{
    char path[64];
    snprintf(verdict->step, sizeof verdict->step, "prepare");
    for (; *arguments && disk_count < MOST_DISKS; arguments++) {
        struct disk *disk = &disks[disk_count++];
        disk->folder = strtok(*arguments, ":");
        disk->device = strtok(NULL, ":");
        char *raw = strtok(NULL, ":");
        disk->raw = raw ? strtoll(raw, NULL, 0) : 0;
        mkdir(disk->folder, 0700);
        snprintf(path, sizeof path, "%s/source", disk->folder);
        write_file(path, 1);
    }
    snprintf(path, sizeof path, "%s/journal", disks[0].folder);
    must(close(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600)) == 0, "journal");
    run_pipeline(pipeline_expected, sizeof pipeline_expected);
    same(strlen(pipeline_expected) > 32, "pipeline");
}

#endif
