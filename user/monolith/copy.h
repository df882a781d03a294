/* The file copy that both systems make while the driver of their RAM disk has a mistake in it.
 *
 * It mounts the disk's file system, copies a file whose content is known, has the copy written to the disk, mounts the file system again
 * so that nothing of it is cached, and compares the copy, the source and a third file that nobody writes to. The first error or wrong
 * byte ends the process (../faults/verdict.h).
 */
#ifndef COPY_H
#define COPY_H

#include "../faults/verdict.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define DEVICE "/dev/ram0"
#define FOLDER "/mnt"

enum { SOURCE_BYTES = 256 << 10, WITNESS_BYTES = 1 << 20, PIECE = 16384 };
enum { SOURCE_KEY = 1, WITNESS_KEY = 2 };

static void step(const char *name)
{
    snprintf(verdict->step, sizeof verdict->step, "%s", name);
}

static void mount_disk(void)
{
    must(mount(DEVICE, FOLDER, "ext2", 0, NULL) == 0, "mount");
}

static void unmount_disk(void)
{
    must(umount(FOLDER) == 0, "umount");
}

static void write_file(const char *path, unsigned key, size_t bytes)
{
    unsigned char piece[PIECE];
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(file >= 0, "create");
    for (size_t position = 0; position < bytes; position += PIECE) {
        fill(piece, PIECE, key, position);
        must(write(file, piece, PIECE) == PIECE, "write");
    }
    must(fsync(file) == 0, "fsync");
    must(close(file) == 0, "close");
}

static void check_file(const char *path, unsigned key, size_t bytes)
{
    unsigned char piece[PIECE];
    size_t position = 0;
    ssize_t got;
    int file = open(path, O_RDONLY);
    must(file >= 0, "open to compare");
    while ((got = read(file, piece, PIECE)) > 0) {
        same(is_filled(piece, got, key, position), "content");
        position += got;
    }
    must(got == 0, "read to compare");
    same(position == bytes, "length");
    must(close(file) == 0, "close");
}

static void copy_file(const char *source, const char *copy)
{
    unsigned char piece[PIECE];
    ssize_t got;
    int from = open(source, O_RDONLY), to = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(from >= 0 && to >= 0, "open");
    while ((got = read(from, piece, PIECE)) > 0)
        must(write(to, piece, got) == got, "write");
    must(got == 0, "read");
    must(fsync(to) == 0, "fsync");
    must(close(from) == 0 && close(to) == 0, "close");
}

/* Makes the files, on the undisturbed system. */
static void prepare_files(void)
{
    step("prepare");
    mount_disk();
    write_file(FOLDER "/source", SOURCE_KEY, SOURCE_BYTES);
    write_file(FOLDER "/witness", WITNESS_KEY, WITNESS_BYTES);
    unmount_disk();
}

/* Ends the process with PASSED, FAILED or CORRUPTED. */
static void copy(void)
{
    step("mount");
    mount_disk();
    step("copy");
    copy_file(FOLDER "/source", FOLDER "/copy");
    step("unmount");
    unmount_disk();
    step("compare");
    mount_disk();
    check_file(FOLDER "/copy", SOURCE_KEY, SOURCE_BYTES);
    check_file(FOLDER "/source", SOURCE_KEY, SOURCE_BYTES);
    check_file(FOLDER "/witness", WITNESS_KEY, WITNESS_BYTES);
    step("remove");
    must(unlink(FOLDER "/copy") == 0, "unlink");
    unmount_disk();
    _exit(PASSED);
}

#endif
