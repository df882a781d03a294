/* name_to_handle_at and open_by_handle_at, on a disk and in memory. */
#include "behaviour.h"

#define ROOM 128

static union {
    struct file_handle head;
    char bytes[sizeof(struct file_handle) + ROOM];
} file;
static int mount_id;

static int handle_of(int directory, const char *path, int flags) {
    file.head.handle_bytes = ROOM;
    return name_to_handle_at(directory, path, &file.head, &mount_id, flags);
}

/* A descriptor of the file system that a handle is of. */
static int mount_of(const char *path) { return must(open(path, O_RDONLY | O_DIRECTORY)); }

static int opened(const char *directory, int flags) { return open_by_handle_at(mount_of(directory), &file.head, flags); }

/* The directory on the disk, and the one in memory. */
#define EACH_PLACE(place) for (const char *place = "."; place != NULL; place = *place == '.' ? "/dev/shm" : NULL)
static const char *in(const char *place, const char *name) {
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, 64, "%s/%s", place, name);
    return path;
}

BEHAVIOUR("name_to_handle_at with unknown flags, a missing file, a bad descriptor") {
    show(handle_of(AT_FDCWD, "f", 0x8000));
    show(handle_of(AT_FDCWD, "f", 0));
    show(handle_of(99, "f", 0));
    make("f", "");
    show(handle_of(must(open("f", O_RDONLY)), "g", 0));
    show(handle_of(AT_FDCWD, "", 0));
}
BEHAVIOUR("name_to_handle_at with too little room, too much, bad memory") {
    make("f", "");
    EACH_PLACE(place) {
        file.head.handle_bytes = 0;
        mount_id = -1;
        show(name_to_handle_at(AT_FDCWD, place, &file.head, &mount_id, 0));
        note("%d %d %d", file.head.handle_bytes > 0, file.head.handle_type, mount_id > 0);
        unsigned needed = file.head.handle_bytes;
        file.head.handle_bytes = needed - 1;
        show(name_to_handle_at(AT_FDCWD, place, &file.head, &mount_id, 0));
        file.head.handle_bytes = needed;
        show(name_to_handle_at(AT_FDCWD, place, &file.head, &mount_id, 0));
        note("%d", file.head.handle_bytes == needed);
    }
    file.head.handle_bytes = ROOM + 1;
    show(name_to_handle_at(AT_FDCWD, "f", &file.head, &mount_id, 0));
    show(name_to_handle_at(AT_FDCWD, "f", bad(), &mount_id, 0));
    file.head.handle_bytes = ROOM;
    show(name_to_handle_at(AT_FDCWD, "f", &file.head, bad(), 0));
}
BEHAVIOUR("name_to_handle_at of a pipe") {
    int p[2];
    pipe(p);
    show(handle_of(p[0], "", AT_EMPTY_PATH));
}
BEHAVIOUR("name_to_handle_at needs no rights to the file, but to its directories") {
    make_mode("f", "", 0);
    must(mkdir("d", 0700));
    make("d/f", "");
    AS(USER) {
        show(handle_of(AT_FDCWD, "f", 0));
        show(handle_of(AT_FDCWD, "d/f", 0));
    }
}
BEHAVIOUR("a file is opened by its handle, whatever has become of its name") {
    EACH_PLACE(place) {
        make(in(place, "behaviour.f"), "text");
        show(handle_of(AT_FDCWD, in(place, "behaviour.f"), 0));
        must(rename(in(place, "behaviour.f"), in(place, "behaviour.g")));
        show_read(must(opened(place, O_RDONLY)), 10);
        int fd = must(opened(place, O_WRONLY | O_APPEND));
        show(write(fd, "more", 4));
        show_file(in(place, "behaviour.g"));
        must(opened(place, O_WRONLY | O_TRUNC));
        show_file(in(place, "behaviour.g"));
        unlink(in(place, "behaviour.g"));
    }
}
BEHAVIOUR("the handle of a directory leads into it") {
    EACH_PLACE(place) {
        must(mkdir(in(place, "behaviour.d"), 0755));
        make(in(place, "behaviour.d/f"), "text");
        show(handle_of(AT_FDCWD, in(place, "behaviour.d"), 0));
        int fd = must(opened(place, O_RDONLY | O_DIRECTORY));
        show_read(openat(fd, "f", O_RDONLY), 10);
        must(unlinkat(fd, "f", 0));
        show(rmdir(in(place, "behaviour.d")));
    }
}
BEHAVIOUR("the handle of a link, and of what it leads to with AT_SYMLINK_FOLLOW") {
    make("f", "text");
    symlink("f", "l");
    show(handle_of(AT_FDCWD, "l", 0));
    show(opened(".", O_RDONLY));
    int fd = opened(".", O_PATH);
    struct stat at;
    fstat(fd, &at);
    note("%d", S_ISLNK(at.st_mode));
    show(handle_of(AT_FDCWD, "l", AT_SYMLINK_FOLLOW));
    show_read(opened(".", O_RDONLY), 10);
}
BEHAVIOUR("AT_EMPTY_PATH means the descriptor, O_PATH too") {
    make("f", "text");
    show(handle_of(must(open("f", O_PATH)), "", AT_EMPTY_PATH));
    show_read(opened(".", O_RDONLY), 10);
    show(handle_of(AT_FDCWD, "", AT_EMPTY_PATH));
    show_read(openat(opened(".", O_RDONLY), "f", O_RDONLY), 10);
}
BEHAVIOUR("a file that is gone is ESTALE, also when another has its place") {
    EACH_PLACE(place) {
        make(in(place, "behaviour.f"), "text");
        show(handle_of(AT_FDCWD, in(place, "behaviour.f"), 0));
        must(unlink(in(place, "behaviour.f")));
        show(opened(place, O_RDONLY));
        for (int count = 0; count < 50; count++) {
            make(in(place, "behaviour.g"), "other");
            int fd = opened(place, O_RDONLY);
            if (fd >= 0)
                show_read(fd, 10);
            unlink(in(place, "behaviour.g"));
        }
    }
}
BEHAVIOUR("a file that is open without a name is opened by its handle") {
    EACH_PLACE(place) {
        make(in(place, "behaviour.f"), "text");
        must(open(in(place, "behaviour.f"), O_RDONLY));
        show(handle_of(AT_FDCWD, in(place, "behaviour.f"), 0));
        must(unlink(in(place, "behaviour.f")));
        int fd = opened(place, O_RDONLY);
        if (fd >= 0)
            show_read(fd, 10);
        else
            show(fd);
    }
}
BEHAVIOUR("open_by_handle_at of lengths and types that are none, with bad memory") {
    make("f", "text");
    show(handle_of(AT_FDCWD, "f", 0));
    int directory = mount_of("."), type = file.head.handle_type;
    unsigned length = file.head.handle_bytes;
    show(open_by_handle_at(directory, bad(), O_RDONLY));
    file.head.handle_bytes = 0;
    show(open_by_handle_at(directory, &file.head, O_RDONLY));
    file.head.handle_bytes = ROOM + 1;
    show(open_by_handle_at(directory, &file.head, O_RDONLY));
    file.head.handle_bytes = 4;
    show(open_by_handle_at(directory, &file.head, O_RDONLY));
    file.head.handle_bytes = length;
    file.head.handle_type = 0x77;
    show(open_by_handle_at(directory, &file.head, O_RDONLY));
    file.head.handle_type = type;
    show(open_by_handle_at(99, &file.head, O_RDONLY));
    show_read(open_by_handle_at(AT_FDCWD, &file.head, O_RDONLY), 10);
    show_read(open_by_handle_at(must(open("f", O_RDONLY)), &file.head, O_RDONLY), 10);
    struct file_handle *end = (void *)edge(sizeof *end + 2);
    memcpy(end, &file, sizeof *end + 2);
    show(open_by_handle_at(directory, end, O_RDONLY));
}
BEHAVIOUR("numbers that no file has are ESTALE") {
    EACH_PLACE(place) {
        show(handle_of(AT_FDCWD, place, 0));
        for (int byte = 0; byte < 8; byte++) {
            file.head.f_handle[byte] ^= 0x5a;
            show(opened(place, O_RDONLY));
            file.head.f_handle[byte] ^= 0x5a;
        }
    }
}
BEHAVIOUR("open_by_handle_at wants CAP_DAC_READ_SEARCH") {
    make("f", "text");
    must(handle_of(AT_FDCWD, "f", 0));
    int directory = mount_of(".");
    AS(USER) show(open_by_handle_at(directory, &file.head, O_RDONLY));
}
BEHAVIOUR("open_by_handle_at: flags are those of open") {
    make("f", "text");
    must(handle_of(AT_FDCWD, "f", 0));
    show(opened(".", O_RDONLY | O_DIRECTORY));
    note("%d", fcntl(must(opened(".", O_RDONLY | O_CLOEXEC)), F_GETFD));
    must(handle_of(AT_FDCWD, ".", 0));
    show(opened(".", O_RDWR));
}
