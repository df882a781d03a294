/* Watches of files and directories: inotify_init1, inotify_add_watch, inotify_rm_watch, and what a read gives. It is long because each rule is
 * tried by itself. */
#include "behaviour.h"
#include "ready.h"
#include <sys/inotify.h>
#include <sys/select.h>

static const struct {
    uint32_t bit;
    const char *name;
} names[] = {
    {IN_ACCESS, "access"},
    {IN_MODIFY, "modify"},
    {IN_ATTRIB, "attrib"},
    {IN_CLOSE_WRITE, "close-write"},
    {IN_CLOSE_NOWRITE, "close"},
    {IN_OPEN, "open"},
    {IN_MOVED_FROM, "from"},
    {IN_MOVED_TO, "to"},
    {IN_CREATE, "create"},
    {IN_DELETE, "delete"},
    {IN_DELETE_SELF, "delete-self"},
    {IN_MOVE_SELF, "move-self"},
    {IN_UNMOUNT, "unmount"},
    {IN_Q_OVERFLOW, "overflow"},
    {IN_IGNORED, "ignored"},
    {IN_ISDIR, "dir"},
};

static int new_instance(void) { return must(inotify_init1(IN_NONBLOCK)); }

/* Shows one event: the watch, what has happened, the name. '=': it has the cookie of the event before, '+': another one. */
static void show_event(const struct inotify_event *event) {
    static uint32_t cookie;
    char text[256];
    int length = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (event->mask & names[i].bit)
            length += sprintf(text + length, "%s%s", length == 0 ? "" : "|", names[i].name);
    if (event->mask & IN_Q_OVERFLOW)
        events_lost();
    note("%d:%s%s%s%s", event->wd, text, event->len > 0 ? ":" : "", event->len > 0 ? event->name : "",
         event->cookie == 0 ? "" : event->cookie == cookie ? "=" : "+");
    cookie = event->cookie;
}

/* Reads once, shows all events that came, and returns their bytes, or -1. */
static long read_events(int fd, size_t room) {
    char bytes[8192] __attribute__((aligned(8)));
    long length = read(fd, bytes, room < sizeof bytes ? room : sizeof bytes);
    for (char *at = bytes; at < bytes + length;) {
        const struct inotify_event *event = (const struct inotify_event *)at;
        show_event(event);
        at += sizeof *event + event->len;
    }
    return length;
}

/* Shows all events of one read, or its error. */
static long show_one_read(int fd, size_t room) {
    long length = read_events(fd, room);
    if (length < 0)
        show(length);
    return length;
}

/* Shows what an instance that does not wait has, up to its end. */
static void show_events(int fd) {
    while (read_events(fd, 8192) > 0)
        ;
    note(";");
}

static void touch(const char *path) { close(must(open(path, O_RDONLY))); }

BEHAVIOUR("inotify_init1 with unknown flags, and the flags that it knows") {
    show(inotify_init1(1));
    int plain = must(inotify_init()), both = must(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    note("%d %x", fcntl(plain, F_GETFD), fcntl(plain, F_GETFL));
    note("%d %x", fcntl(both, F_GETFD), fcntl(both, F_GETFL));
}
BEHAVIOUR("inotify_init1 beyond RLIMIT_NOFILE") {
    struct rlimit few = {3, 3};
    must(setrlimit(RLIMIT_NOFILE, &few));
    show(inotify_init1(0));
}
BEHAVIOUR("inotify_add_watch for no events, unknown ones, IN_MASK_ADD with IN_MASK_CREATE") {
    int fd = new_instance();
    show(inotify_add_watch(fd, ".", 0));
    show(inotify_add_watch(fd, ".", 1 << 20));
    show(inotify_add_watch(fd, ".", IN_OPEN | IN_MASK_ADD | IN_MASK_CREATE));
    show(inotify_add_watch(fd, ".", IN_ONESHOT));
    show(inotify_add_watch(fd, ".", IN_OPEN));
}
BEHAVIOUR("inotify_add_watch by what is closed, is no instance; of nothing, the empty path, bad memory, through a file") {
    int fd = new_instance();
    make("f", "");
    show(inotify_add_watch(99, ".", IN_OPEN));
    show(inotify_add_watch(-1, ".", IN_OPEN));
    show(inotify_add_watch(0, ".", IN_OPEN));
    show(inotify_add_watch(fd, "none", IN_OPEN));
    show(inotify_add_watch(fd, "", IN_OPEN));
    show(inotify_add_watch(fd, bad(), IN_OPEN));
    show(inotify_add_watch(fd, "f/x", IN_OPEN));
}
BEHAVIOUR("inotify_add_watch wants a file that may be read, behind directories that may be searched") {
    make_mode("secret", "", 0600);
    make_mode("readable", "", 0644);
    must(mkdir("closed", 0700));
    make("closed/f", "");
    AS(USER) {
        int fd = new_instance();
        show(inotify_add_watch(fd, "secret", IN_OPEN));
        show(inotify_add_watch(fd, "closed", IN_OPEN));
        show(inotify_add_watch(fd, "closed/f", IN_OPEN));
        show(inotify_add_watch(fd, "readable", IN_OPEN));
    }
}
BEHAVIOUR("IN_ONLYDIR of a file, IN_DONT_FOLLOW of a link, a link to nothing") {
    int fd = new_instance();
    make("f", "");
    must(symlink("f", "link"));
    must(symlink("none", "dangling"));
    show(inotify_add_watch(fd, "f", IN_OPEN | IN_ONLYDIR));
    show(inotify_add_watch(fd, "link", IN_OPEN | IN_ONLYDIR));
    show(inotify_add_watch(fd, ".", IN_OPEN | IN_ONLYDIR));
    show(inotify_add_watch(fd, "dangling", IN_OPEN));
    show(inotify_add_watch(fd, "dangling", IN_DELETE_SELF | IN_DONT_FOLLOW));
    must(unlink("dangling"));
    show_events(fd);
}
BEHAVIOUR("inotify_rm_watch of no watch, by what is closed or no instance, twice") {
    int fd = new_instance();
    show(inotify_rm_watch(fd, 1));
    show(inotify_rm_watch(fd, -1));
    show(inotify_rm_watch(99, 1));
    show(inotify_rm_watch(0, 1));
    int watch = must(inotify_add_watch(fd, ".", IN_OPEN));
    show(inotify_rm_watch(fd, watch));
    show(inotify_rm_watch(fd, watch));
    show_events(fd);
}
BEHAVIOUR("descriptors of watches count up from 1 in each instance, and are not used again") {
    int one = new_instance(), two = new_instance();
    make("f", "");
    make("g", "");
    show(inotify_add_watch(one, "f", IN_OPEN));
    show(inotify_add_watch(one, "g", IN_OPEN));
    show(inotify_add_watch(two, "g", IN_OPEN));
    must(inotify_rm_watch(one, 2));
    show(inotify_add_watch(one, "g", IN_OPEN));
}
BEHAVIOUR("one file by two names, by a link, is one watch") {
    int fd = new_instance();
    make("f", "");
    must(link("f", "g"));
    must(symlink("f", "link"));
    show(inotify_add_watch(fd, "f", IN_OPEN));
    show(inotify_add_watch(fd, "g", IN_OPEN));
    show(inotify_add_watch(fd, "link", IN_OPEN));
    touch("g");
    show_events(fd);
}
BEHAVIOUR("a second inotify_add_watch replaces the events, IN_MASK_ADD adds, IN_MASK_CREATE fails") {
    int fd = new_instance();
    make("f", "x");
    must(inotify_add_watch(fd, "f", IN_OPEN));
    show(inotify_add_watch(fd, "f", IN_CLOSE));
    touch("f");
    show_events(fd);
    show(inotify_add_watch(fd, "f", IN_OPEN | IN_MASK_ADD));
    touch("f");
    show_events(fd);
    show(inotify_add_watch(fd, "f", IN_OPEN | IN_MASK_CREATE));
}
BEHAVIOUR("IN_ONESHOT: one event, then the watch is gone") {
    int fd = new_instance();
    make("f", "");
    int watch = must(inotify_add_watch(fd, "f", IN_OPEN | IN_ONESHOT));
    touch("f");
    touch("f");
    show_events(fd);
    show(inotify_rm_watch(fd, watch));
}
BEHAVIOUR("reads with too small a buffer, of nothing; write, pread") {
    int fd = new_instance();
    char byte = 0;
    must(inotify_add_watch(fd, ".", IN_CREATE));
    make("f", "");
    show(read(fd, &byte, 0));
    show_one_read(fd, 15);
    show_one_read(fd, 16);
    show_one_read(fd, 31);
    show(write(fd, &byte, 1));
    show(pread(fd, &byte, 1, 0));
    show_one_read(fd, 32);
}
BEHAVIOUR("a read gives whole events, as many as there is room for; FIONREAD counts their bytes") {
    int fd = new_instance(), bytes = -1;
    must(inotify_add_watch(fd, ".", IN_CREATE));
    make("a", "");
    make("b", "");
    make("c", "");
    show(ioctl(fd, FIONREAD, &bytes));
    show(bytes);
    show(show_one_read(fd, 95));
    show(ioctl(fd, FIONREAD, &bytes));
    show(bytes);
    show(show_one_read(fd, 95));
    show(show_one_read(fd, 95));
    show(ioctl(fd, FIONREAD, bad()));
}
BEHAVIOUR("names are padded with zeros to multiples of 16 bytes") {
    int fd = new_instance();
    char name[256];
    static const int lengths[] = {1, 15, 16, 31, 255};
    must(inotify_add_watch(fd, ".", IN_CREATE));
    for (int i = 0; i < 5; i++) {
        char bytes[512];
        memset(name, 'n', lengths[i]);
        name[lengths[i]] = 0;
        make(name, "");
        memset(bytes, 'x', sizeof bytes);
        long length = read(fd, bytes, sizeof bytes);
        note("%ld:%d", length, bytes[length - 1]);
        struct inotify_event *event = (struct inotify_event *)bytes;
        if (event->mask & IN_Q_OVERFLOW)
            events_lost();
    }
}
BEHAVIOUR("a new file, a directory, a link, a symbolic link, a FIFO, in a watched directory") {
    int fd = new_instance();
    must(mkdir("d", 0755));
    must(inotify_add_watch(fd, "d", IN_ALL_EVENTS));
    close(must(open("d/f", O_CREAT | O_WRONLY, 0644)));
    must(mkdir("d/sub", 0755));
    must(link("d/f", "d/link"));
    must(symlink("f", "d/symlink"));
    must(mkfifo("d/fifo", 0644));
    show_events(fd);
}
BEHAVIOUR("an open that fails, and a create that finds the file, tell nothing") {
    int fd = new_instance();
    make("f", "");
    must(inotify_add_watch(fd, ".", IN_ALL_EVENTS));
    show(open("none", O_RDONLY));
    show(open("f", O_CREAT | O_EXCL | O_RDWR, 0644));
    show(mkdir("f", 0755));
    show(unlink("none"));
    show_events(fd);
}
BEHAVIOUR("reads and writes, of nothing too, told to the file and to its directory") {
    char bytes[8];
    int fd = new_instance();
    make("f", "text");
    int file = must(open("f", O_RDWR));
    must(inotify_add_watch(fd, ".", IN_ACCESS | IN_MODIFY));
    must(inotify_add_watch(fd, "f", IN_ACCESS | IN_MODIFY));
    read(file, bytes, 4);
    show_events(fd);
    read(file, bytes, 4);
    read(file, bytes, 0);
    show_events(fd);
    write(file, "more", 4);
    show_events(fd);
    write(file, "", 0);
    pwrite(file, "x", 1, 0);
    show_events(fd);
    close(file);
}
BEHAVIOUR("equal events one after the other are one, unless another is between them") {
    int fd = new_instance();
    make("f", "");
    make("g", "");
    int first = must(open("f", O_WRONLY)), second = must(open("g", O_WRONLY));
    must(inotify_add_watch(fd, ".", IN_MODIFY));
    for (int i = 0; i < 5; i++)
        write(first, "x", 1);
    write(second, "x", 1);
    write(first, "x", 1);
    show_events(fd);
    write(first, "x", 1);
    show_events(fd);
}
BEHAVIOUR("chmod, chown, utimensat, truncate, fallocate") {
    int fd = new_instance();
    make("f", "text");
    must(inotify_add_watch(fd, "f", IN_ALL_EVENTS));
    must(chmod("f", 0600));
    show_events(fd);
    must(chown("f", 1, 1));
    show_events(fd);
    must(utimensat(AT_FDCWD, "f", NULL, 0));
    show_events(fd);
    must(truncate("f", 1));
    show_events(fd);
    int file = must(open("f", O_WRONLY));
    must(ftruncate(file, 100));
    must(fallocate(file, 0, 0, 8192));
    show_events(fd);
}
BEHAVIOUR("reading a directory") {
    char bytes[1024];
    int fd = new_instance();
    must(mkdir("d", 0755));
    must(inotify_add_watch(fd, "d", IN_ALL_EVENTS));
    int directory = must(open("d", O_RDONLY | O_DIRECTORY));
    must(syscall(SYS_getdents64, directory, bytes, sizeof bytes));
    close(directory);
    show_events(fd);
}
BEHAVIOUR("an O_PATH descriptor tells nothing, nor does a stat") {
    struct stat at;
    int fd = new_instance();
    make("f", "");
    must(inotify_add_watch(fd, "f", IN_ALL_EVENTS));
    close(must(open("f", O_PATH)));
    must(stat("f", &at));
    must(access("f", R_OK));
    show_events(fd);
}
BEHAVIOUR("what is in a subdirectory is not told") {
    int fd = new_instance();
    must(mkdir("d", 0755));
    must(mkdir("d/sub", 0755));
    must(inotify_add_watch(fd, "d", IN_ALL_EVENTS));
    make("d/sub/f", "");
    show_events(fd);
}
BEHAVIOUR("a file that is reached by another name is told to that name's directory") {
    int fd = new_instance();
    must(mkdir("d", 0755));
    must(mkdir("e", 0755));
    make("d/f", "");
    must(link("d/f", "e/g"));
    must(inotify_add_watch(fd, "d", IN_OPEN | IN_MODIFY));
    int file = must(open("e/g", O_WRONLY));
    must(write(file, "x", 1));
    show_events(fd);
    int other = must(open("d/f", O_WRONLY));
    must(write(other, "x", 1));
    show_events(fd);
}
BEHAVIOUR("a move within a directory: two events with one cookie; the next move has another") {
    int fd = new_instance();
    make("a", "");
    must(inotify_add_watch(fd, ".", IN_MOVE));
    must(rename("a", "b"));
    must(rename("b", "c"));
    show_events(fd);
}
BEHAVIOUR("moves between directories: both watched, from it alone, to it alone") {
    int fd = new_instance();
    must(mkdir("d", 0755));
    must(mkdir("e", 0755));
    must(mkdir("far", 0755));
    must(inotify_add_watch(fd, "d", IN_ALL_EVENTS));
    must(inotify_add_watch(fd, "e", IN_ALL_EVENTS));
    make("d/f", "");
    show_events(fd);
    must(rename("d/f", "e/f"));
    show_events(fd);
    must(rename("e/f", "far/f"));
    show_events(fd);
    must(rename("far/f", "d/g"));
    show_events(fd);
}
BEHAVIOUR("a watch goes with its file to another name; IN_MOVE_SELF") {
    int fd = new_instance();
    make("f", "");
    must(inotify_add_watch(fd, "f", IN_ALL_EVENTS));
    must(rename("f", "g"));
    show_events(fd);
    make("f", "");
    show_events(fd);
    touch("g");
    show_events(fd);
}
BEHAVIOUR("a directory that is moved: it is told, and watches on") {
    int fd = new_instance();
    must(mkdir("d", 0755));
    must(inotify_add_watch(fd, "d", IN_ALL_EVENTS));
    must(rename("d", "e"));
    show_events(fd);
    make("e/f", "");
    show_events(fd);
}
BEHAVIOUR("a move onto a file that is watched ends that watch") {
    int fd = new_instance();
    make("old", "");
    make("new", "");
    must(inotify_add_watch(fd, "old", IN_ALL_EVENTS));
    must(inotify_add_watch(fd, "new", IN_ALL_EVENTS));
    must(rename("new", "old"));
    show_events(fd);
}
BEHAVIOUR("RENAME_EXCHANGE is two moves") {
    int fd = new_instance();
    make("a", "");
    make("b", "");
    must(inotify_add_watch(fd, ".", IN_MOVE));
    must(syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "b", 2));
    show_events(fd);
}
BEHAVIOUR("link and unlink tell the file IN_ATTRIB, its last name IN_DELETE_SELF and IN_IGNORED") {
    int fd = new_instance();
    make("f", "");
    must(inotify_add_watch(fd, "f", IN_ALL_EVENTS));
    must(link("f", "g"));
    show_events(fd);
    must(unlink("f"));
    show_events(fd);
    must(unlink("g"));
    show_events(fd);
    show(inotify_rm_watch(fd, 1));
}
BEHAVIOUR("a file without names that is open: IN_DELETE_SELF comes with its last close") {
    int fd = new_instance();
    make("f", "");
    int file = must(open("f", O_WRONLY));
    must(inotify_add_watch(fd, "f", IN_ALL_EVENTS));
    must(unlink("f"));
    show_events(fd);
    must(write(file, "x", 1));
    show_events(fd);
    close(file);
    show_events(fd);
}
BEHAVIOUR("a watched directory that is removed, and its parent") {
    int fd = new_instance();
    must(mkdir("d", 0755));
    must(inotify_add_watch(fd, ".", IN_ALL_EVENTS));
    must(inotify_add_watch(fd, "d", IN_ALL_EVENTS));
    must(rmdir("d"));
    show_events(fd);
    must(mkdir("d", 0755));
    show_events(fd);
    make("d/f", "");
    show_events(fd);
}
BEHAVIOUR("IN_EXCL_UNLINK: a file without its name is told no more to the directory") {
    int plain = new_instance(), without = new_instance();
    make("f", "");
    int file = must(open("f", O_WRONLY));
    must(inotify_add_watch(plain, ".", IN_MODIFY));
    must(inotify_add_watch(without, ".", IN_MODIFY | IN_EXCL_UNLINK));
    must(write(file, "x", 1));
    must(unlink("f"));
    show_events(plain);
    show_events(without);
    must(write(file, "x", 1));
    show_events(plain);
    show_events(without);
}
BEHAVIOUR("several instances watch one file, each for what it has asked") {
    int one = new_instance(), two = new_instance(), three = new_instance();
    make("f", "");
    must(inotify_add_watch(one, "f", IN_OPEN));
    must(inotify_add_watch(two, "f", IN_CLOSE | IN_OPEN));
    must(inotify_add_watch(three, ".", IN_OPEN));
    touch("f");
    show_events(one);
    show_events(two);
    show_events(three);
    close(one);
    touch("f");
    show_events(two);
}
BEHAVIOUR("a queue that is full ends with one IN_Q_OVERFLOW, and takes events again when it was read") {
    int fd = new_instance();
    char text[16] = "";
    long count = 0, overflows = 0, length;
    static char bytes[65536] __attribute__((aligned(8)));
    int setting = must(open("/proc/sys/fs/inotify/max_queued_events", O_RDONLY));
    must(read(setting, text, sizeof text - 1));
    long most = atol(text);
    make("f", "");
    make("g", "");
    int files[2] = {must(open("f", O_WRONLY)), must(open("g", O_WRONLY))};
    must(inotify_add_watch(fd, "f", IN_MODIFY));
    must(inotify_add_watch(fd, "g", IN_MODIFY));
    for (long i = 0; i < most + 100; i++)
        must(pwrite(files[i % 2], "x", 1, 0));
    uint32_t last = 0;
    int of = 0;
    while ((length = read(fd, bytes, sizeof bytes)) > 0)
        for (char *at = bytes; at < bytes + length; at += sizeof(struct inotify_event)) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            count++;
            overflows += (event->mask & IN_Q_OVERFLOW) != 0;
            last = event->mask;
            of = event->wd;
        }
    note("%ld %ld %x %d", count - most, overflows, last, of);
    must(pwrite(files[0], "x", 1, 0));
    show_events(fd);
}
BEHAVIOUR("without events a read is EAGAIN with O_NONBLOCK, also when fcntl has set it") {
    int fd = must(inotify_init1(0));
    must(fcntl(fd, F_SETFL, O_NONBLOCK));
    show_one_read(fd, 4096);
    show_one_read(new_instance(), 4096);
}
BEHAVIOUR("poll: never ready for writing, for reading while there are events") {
    int fd = new_instance();
    must(inotify_add_watch(fd, ".", IN_CREATE));
    show_poll(fd, 0);
    make("a", "");
    make("b", "");
    show_poll(fd, 0);
    show_one_read(fd, 32);
    show_poll(fd, 0);
    show_one_read(fd, 32);
    show_poll(fd, 0);
}
BEHAVIOUR("epoll by level, by edge and EPOLLONESHOT") {
    int fd = new_instance();
    int level = epoll_of(fd, EPOLLIN | EPOLLOUT), edge = epoll_of(fd, EPOLLIN | EPOLLET), once = epoll_of(fd, EPOLLIN | EPOLLONESHOT);
    must(inotify_add_watch(fd, ".", IN_CREATE));
    show_epoll(level, 0);
    make("a", "");
    show_epoll(level, 0);
    show_epoll(level, 0);
    show_epoll(edge, 0);
    show_epoll(edge, 0);
    show_epoll(once, 0);
    make("b", "");
    show_epoll(edge, 0);
    show_epoll(once, 0);
    show_events(fd);
    show_epoll(level, 0);
}
BEHAVIOUR("a read, poll and select wait for what another process does") {
    int fd = must(inotify_init1(0));
    must(inotify_add_watch(fd, ".", IN_CREATE));
    pid_t child = fork();
    if (child == 0) {
        show_one_read(fd, 4096);
        show_poll(fd, 5000);
        show_one_read(fd, 4096);
        fd_set set;
        struct timeval time = {5, 0};
        FD_ZERO(&set);
        FD_SET(fd, &set);
        show(select(fd + 1, &set, NULL, NULL, &time));
        show_one_read(fd, 4096);
        _exit(0);
    }
    for (int i = 0; i < 3; i++) {
        char name[] = {'a' + i, 0};
        sleep_ms(10);
        wait_until_asleep(child);
        make(name, "");
    }
    wait_for(child);
}
BEHAVIOUR("of two readers that wait, one has the event") {
    int fd = must(inotify_init1(0));
    struct gate told = new_gate();
    must(inotify_add_watch(fd, ".", IN_CREATE));
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            show_one_read(fd, 4096);
            open_gate(told);
            _exit(0);
        }
    }
    sleep_ms(10);
    wait_until_asleep(children[0]);
    wait_until_asleep(children[1]);
    make("a", "");
    pass_gate(told);
    make("b", "");
    wait_for(children[0]);
    wait_for(children[1]);
}
BEHAVIOUR("a waiting read is interrupted by a handler, and goes on with SA_RESTART") {
    int fd = must(inotify_init1(0));
    must(inotify_add_watch(fd, ".", IN_CREATE));
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        pid_t child = fork();
        if (child == 0) {
            handle(SIGUSR1, flags);
            show_one_read(fd, 4096);
            show(handled);
            _exit(0);
        }
        sleep_ms(10);
        wait_until_asleep(child);
        kill(child, SIGUSR1);
        sleep_ms(10);
        wait_until_asleep(child);
        if (flags != 0)
            make("f", "");
        wait_for(child);
    }
}
BEHAVIOUR("parent and child share an instance: what one has read is gone") {
    int fd = new_instance();
    must(inotify_add_watch(fd, ".", IN_CREATE));
    make("a", "");
    make("b", "");
    IN_CHILD {
        show_one_read(fd, 32);
        show(inotify_add_watch(fd, "a", IN_OPEN));
    }
    touch("a");
    show_events(fd);
}
BEHAVIOUR("an instance that was sent has its watches and its events") {
    int fd = new_instance();
    must(inotify_add_watch(fd, ".", IN_CREATE | IN_DELETE));
    make("a", "");
    fd = through_a_socket(fd);
    show_events(fd);
    must(unlink("a"));
    show(inotify_add_watch(fd, ".", IN_CREATE));
    show_events(fd);
}
BEHAVIOUR("events come while the instance is in flight") {
    int ends[2], fd = new_instance();
    new_link(ends);
    must(inotify_add_watch(fd, ".", IN_CREATE));
    send_descriptor(ends[0], fd);
    close(fd);
    make("a", "");
    fd = receive_descriptor(ends[1]);
    make("b", "");
    show_events(fd);
}
BEHAVIOUR("an exec closes an instance with IN_CLOEXEC, and no other") {
    int fd = must(inotify_init1(0)), closing = must(inotify_init1(IN_CLOEXEC));
    char command[128];
    snprintf(command, sizeof command, "test -e /proc/self/fd/%d && ! test -e /proc/self/fd/%d && exit 4", fd, closing);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(99);
    }
    wait_for(child);
}
/* Shows what fdinfo tells of the watches of an instance, but for numbers of inodes and devices. */
static void show_watches(int fd) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long descriptor, inode, device, mask, ignored;
        if (sscanf(line, "inotify wd:%lx ino:%lx sdev:%lx mask:%lx ignored_mask:%lx", &descriptor, &inode, &device, &mask, &ignored) == 5)
            note("%lx:%lx:%lx", descriptor, mask, ignored);
    }
    fclose(file);
}
BEHAVIOUR("fdinfo has each watch with its mask, the last one first") {
    int fd = new_instance();
    make("f", "");
    must(mkdir("d", 0755));
    show_watches(fd);
    must(inotify_add_watch(fd, ".", IN_CREATE | IN_DELETE));
    must(inotify_add_watch(fd, "f", IN_ALL_EVENTS | IN_ONESHOT));
    must(inotify_add_watch(fd, "d", IN_OPEN | IN_EXCL_UNLINK | IN_ONLYDIR | IN_DONT_FOLLOW));
    show_watches(fd);
    must(inotify_add_watch(fd, ".", IN_MODIFY | IN_MASK_ADD));
    must(inotify_add_watch(fd, "d", IN_ATTRIB));
    show_watches(fd);
    must(inotify_rm_watch(fd, 2));
    show_watches(fd);
    must(inotify_add_watch(fd, "f", IN_ACCESS));
    show_watches(fd);
}
BEHAVIOUR("fdinfo has the inode of a watch") {
    int fd = new_instance();
    struct stat at;
    char word[64];
    make("f", "");
    must(stat("f", &at));
    must(inotify_add_watch(fd, "f", IN_OPEN));
    snprintf(word, sizeof word, "inotify wd:1 ino:%lx", (unsigned long)at.st_ino);
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "r");
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "inotify", 7) == 0)
            show(strncmp(line, word, strlen(word)) == 0);
    fclose(file);
}
