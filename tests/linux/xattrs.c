/* Extended attributes. */
#include "behaviour.h"
#include <sys/socket.h>
#include <sys/xattr.h>

static char large[70000];

static void show_value(const char *path, const char *name) {
    char value[512];
    show_bytes(value, lgetxattr(path, name, value, sizeof value));
}

static int by_name(const void *one, const void *two) { return strcmp(*(char *const *)one, *(char *const *)two); }

/* Shows the names of a file's attributes, sorted; without what a Linux may add to every file. */
static void show_names(const char *path) {
    static char names[4096];
    char *sorted[64];
    int count = 0;
    long bytes = llistxattr(path, names, sizeof names);
    if (bytes < 0)
        show(bytes);
    for (long at = 0; at < bytes; at += strlen(names + at) + 1)
        if (strcmp(names + at, "security.selinux") != 0)
            sorted[count++] = names + at;
    qsort(sorted, count, sizeof *sorted, by_name);
    for (int i = 0; i < count; i++)
        note("%s", sorted[i]);
    note(";");
}

BEHAVIOUR("setxattr XATTR_CREATE of what exists, XATTR_REPLACE of what does not, both, unknown flags") {
    make("f", "");
    show(setxattr("f", "user.a", "x", 1, XATTR_REPLACE));
    show(setxattr("f", "user.a", "one", 3, XATTR_CREATE));
    show(setxattr("f", "user.a", "x", 1, XATTR_CREATE));
    show(setxattr("f", "user.a", "two", 3, XATTR_REPLACE));
    show(setxattr("f", "user.a", "x", 1, XATTR_CREATE | XATTR_REPLACE));
    show(setxattr("f", "user.b", "x", 1, XATTR_CREATE | XATTR_REPLACE));
    show(setxattr("f", "user.a", "x", 1, 4));
    show_value("f", "user.a");
}
BEHAVIOUR("names: empty, no namespace, an unknown one, nothing behind it, 255 bytes, 256 bytes, bad memory") {
    make("f", "");
    memset(large, 'n', 300);
    memcpy(large, "user.", 5);
    show(setxattr("f", "", "x", 1, 0));
    show(setxattr("f", "name", "x", 1, 0));
    show(setxattr("f", "other.name", "x", 1, 0));
    show(setxattr("f", "user.", "x", 1, 0));
    large[255] = 0;
    show(setxattr("f", large, "x", 1, 0));
    show(removexattr("f", large));
    large[255] = 'n', large[256] = 0;
    show(setxattr("f", large, "x", 1, 0));
    show(setxattr("f", bad(), "x", 1, 0));
    show_names("f");
}
BEHAVIOUR("getxattr and removexattr of bad names, and of names that the file does not have") {
    char value[16];
    make("f", "");
    static const char *const names[] = {"", "name", "other.name", "user.", "user.none", "trusted.none", "security.none"};
    for (int i = 0; i < 7; i++) {
        show(getxattr("f", names[i], value, 16));
        show(removexattr("f", names[i]));
    }
}
BEHAVIOUR("of nothing, of the empty path, through a file, by a closed descriptor, in a circle of links") {
    char value[16];
    make("f", "");
    must(symlink("circle", "circle"));
    show(setxattr("none", "user.a", "x", 1, 0));
    show(getxattr("", "user.a", value, 16));
    show(listxattr("f/x", value, 16));
    show(removexattr("circle", "user.a"));
    show(fsetxattr(99, "user.a", "x", 1, 0));
    show(flistxattr(-1, value, 16));
}
BEHAVIOUR("values: none, one byte, with zeros, too large, from bad memory") {
    make("f", "");
    show(setxattr("f", "user.none", NULL, 0, 0));
    show_value("f", "user.none");
    show(setxattr("f", "user.zeros", "a\0b", 3, 0));
    show_value("f", "user.zeros");
    show(setxattr("f", "user.large", large, 65537, 0));
    show(setxattr("f", "user.bad", bad(), 3, 0));
    show_names("f");
}
BEHAVIOUR("a read asks for the size, has too little room, has just enough, bad memory") {
    char value[16];
    make("f", "");
    must(setxattr("f", "user.a", "value", 5, 0));
    show(getxattr("f", "user.a", NULL, 0));
    show(getxattr("f", "user.a", value, 4));
    show(getxattr("f", "user.a", value, 5));
    show(getxattr("f", "user.a", bad(), 5));
    show(getxattr("f", "user.a", bad(), 4));
}
BEHAVIOUR("a list asks for the size, has too little room, has just enough, bad memory") {
    char names[64];
    make("f", "");
    must(setxattr("f", "user.a", "x", 1, 0));
    must(setxattr("f", "user.bc", "x", 1, 0));
    show(listxattr("f", NULL, 0));
    show(listxattr("f", names, 14));
    show(listxattr("f", names, 15));
    show(listxattr("f", bad(), 64));
    show_names("f");
}
BEHAVIOUR("a new value replaces the old one, shorter and longer, and the others stay") {
    make("f", "");
    must(setxattr("f", "user.a", "first", 5, 0));
    must(setxattr("f", "user.b", "other", 5, 0));
    must(setxattr("f", "user.a", "2", 1, 0));
    show_value("f", "user.a");
    must(setxattr("f", "user.a", "a longer third value", 20, 0));
    show_value("f", "user.a");
    show_value("f", "user.b");
    must(removexattr("f", "user.a"));
    show_value("f", "user.a");
    show_names("f");
}
BEHAVIOUR("calls follow links, those with l do not: a link has no user attributes") {
    make("f", "");
    must(symlink("f", "link"));
    show(setxattr("link", "user.a", "by link", 7, 0));
    show_value("f", "user.a");
    show(lsetxattr("link", "user.a", "x", 1, 0));
    show_value("link", "user.a");
    show(lremovexattr("link", "user.a"));
    show(lsetxattr("link", "trusted.a", "of the link", 11, 0));
    show_value("link", "trusted.a");
    show_names("link");
    show_names("f");
}
BEHAVIOUR("of a directory, a FIFO, a device, a pipe, a socket") {
    int fds[2], pair[2];
    must(mkdir("d", 0755));
    must(mkfifo("fifo", 0644));
    show(setxattr("d", "user.a", "x", 1, 0));
    show_names("d");
    show(setxattr("fifo", "user.a", "x", 1, 0));
    show_value("fifo", "user.a");
    show(setxattr("fifo", "trusted.a", "x", 1, 0));
    show_names("fifo");
    must(pipe(fds));
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    show(fsetxattr(fds[0], "user.a", "x", 1, 0));
    show(fremovexattr(fds[0], "user.a"));
}
BEHAVIOUR("by descriptors: for reading, for writing, O_PATH, of a file without a name") {
    char value[16];
    make("f", "");
    int reading = must(open("f", O_RDONLY)), writing = must(open("f", O_WRONLY)), path = must(open("f", O_PATH));
    show(fsetxattr(reading, "user.a", "value", 5, 0));
    show(fgetxattr(writing, "user.a", value, 16));
    show(fsetxattr(path, "user.a", "x", 1, 0));
    show(fgetxattr(path, "user.a", value, 16));
    show(flistxattr(path, value, 16));
    must(unlink("f"));
    show(fsetxattr(writing, "user.a", "later", 5, XATTR_REPLACE));
    show(fgetxattr(reading, "user.a", value, 16));
    show(fremovexattr(writing, "user.a"));
    show(fgetxattr(reading, "user.a", value, 16));
}
BEHAVIOUR("user attributes want the file's permissions, a list none") {
    char value[16];
    make_mode("secret", "", 0600);
    make_mode("readable", "", 0644);
    make_mode("open", "", 0666);
    must(setxattr("secret", "user.a", "x", 1, 0));
    must(setxattr("readable", "user.a", "x", 1, 0));
    AS(USER) {
        show(getxattr("secret", "user.a", value, 16));
        show(setxattr("secret", "user.a", "y", 1, 0));
        show_names("secret");
        show(getxattr("readable", "user.a", value, 16));
        show(setxattr("readable", "user.a", "y", 1, 0));
        show(removexattr("readable", "user.a"));
        show(setxattr("open", "user.a", "y", 1, 0));
        show(removexattr("open", "user.a"));
    }
}
BEHAVIOUR("trusted attributes are root's alone, others do not see them") {
    char value[16];
    make_mode("f", "", 0666);
    must(setxattr("f", "trusted.a", "x", 1, 0));
    must(setxattr("f", "user.a", "x", 1, 0));
    show_names("f");
    AS(USER) {
        show_names("f");
        show(getxattr("f", "trusted.a", value, 16));
        show(setxattr("f", "trusted.a", "y", 1, 0));
        show(removexattr("f", "trusted.a"));
        show(getxattr("f", "trusted.none", value, 16));
    }
}
BEHAVIOUR("security attributes are read by everybody and set by root") {
    char value[16];
    make_mode("f", "", 0666);
    must(setxattr("f", "security.a", "x", 1, 0));
    AS(USER) {
        show(getxattr("f", "security.a", value, 16));
        show(setxattr("f", "security.a", "y", 1, 0));
        show(removexattr("f", "security.a"));
    }
}
BEHAVIOUR("user attributes of a sticky directory are its owner's to set") {
    char value[16];
    must(mkdir("sticky", 0777));
    must(chmod("sticky", 01777));
    must(mkdir("plain", 0777));
    must(chmod("plain", 0777));
    AS(USER) {
        show(setxattr("sticky", "user.a", "x", 1, 0));
        show(getxattr("sticky", "user.a", value, 16));
        show(setxattr("plain", "user.a", "x", 1, 0));
    }
}
BEHAVIOUR("attributes stay with a rename, a link, a truncation, a chmod; a new file has none") {
    make("f", "text");
    must(setxattr("f", "user.a", "kept", 4, 0));
    must(rename("f", "g"));
    show_value("g", "user.a");
    must(link("g", "h"));
    must(unlink("g"));
    show_value("h", "user.a");
    must(truncate("h", 0));
    must(chmod("h", 0600));
    show_value("h", "user.a");
    must(unlink("h"));
    make("h", "");
    show_names("h");
}
BEHAVIOUR("setxattr and removexattr change ctime, not mtime; getxattr nothing") {
    struct stat before, after;
    char value[16];
    make("f", "");
    must(stat("f", &before));
    sleep_ms(20);
    must(setxattr("f", "user.a", "x", 1, 0));
    must(stat("f", &after));
    note("%d %d", before.st_ctim.tv_sec != after.st_ctim.tv_sec || before.st_ctim.tv_nsec != after.st_ctim.tv_nsec,
         before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    before = after;
    sleep_ms(20);
    must(getxattr("f", "user.a", value, 16));
    must(stat("f", &after));
    note("%d", before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
    must(removexattr("f", "user.a"));
    must(stat("f", &after));
    note("%d", before.st_ctim.tv_sec != after.st_ctim.tv_sec || before.st_ctim.tv_nsec != after.st_ctim.tv_nsec);
}
BEHAVIOUR("twenty attributes, of which some are removed") {
    make("f", "");
    for (int i = 0; i < 20; i++) {
        char name[16], value[64];
        snprintf(name, sizeof name, "user.n%d", i);
        memset(value, 'a' + i, sizeof value);
        must(setxattr("f", name, value, 20 + i, 0));
    }
    for (int i = 0; i < 20; i += 3) {
        char name[16];
        snprintf(name, sizeof name, "user.n%d", i);
        must(removexattr("f", name));
    }
    int right = 0;
    for (int i = 0; i < 20; i++) {
        char name[16], value[64];
        snprintf(name, sizeof name, "user.n%d", i);
        long length = getxattr("f", name, value, sizeof value);
        right += i % 3 == 0 ? length < 0 : length == 20 + i && value[0] == 'a' + i && value[length - 1] == 'a' + i;
    }
    show(right);
}
BEHAVIOUR("what a child has set its parent reads, by a descriptor from before") {
    char value[16];
    make("f", "");
    int fd = must(open("f", O_RDONLY));
    IN_CHILD { must(setxattr("f", "user.a", "child's", 7, 0)); }
    show_bytes(value, fgetxattr(fd, "user.a", value, sizeof value));
}
