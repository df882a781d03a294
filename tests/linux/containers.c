/* Containers: bind mounts, namespaces of mounts, pivot_root, host names, System V names, users, process numbers, and what is refused inside to a
 * superuser whom an ordinary user has made. Everything happens in namespaces of the behaviour's own. */
#include "behaviour.h"
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#define ALL (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

static pid_t clone_into(int flags) { return syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0); }

/* The block runs in a child with mounts of its own, as root. */
#define WITH_MOUNTS IN_CHILD if (must(unshare(CLONE_NEWNS)), must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)), 1)

static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return -1;
    int result = write(fd, text, strlen(text)) < 0 ? -1 : 0;
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

static void map_root(void) {
    char text[64];
    snprintf(text, sizeof text, "0 %d 1", USER);
    must(put("/proc/self/setgroups", "deny"));
    must(put("/proc/self/uid_map", text));
    must(put("/proc/self/gid_map", text));
}

/* The block runs as root of namespaces that an ordinary user has made, of whose processes it is the first. */
static pid_t enter(int flags) {
    pid_t child = fork_as(USER);
    if (child != 0)
        return child;
    must(prctl(PR_SET_DUMPABLE, 1));
    must(unshare(flags & ~CLONE_NEWPID));
    map_root();
    if (flags & CLONE_NEWPID) {
        must(unshare(CLONE_NEWPID));
        pid_t first = must(fork());
        if (first != 0) {
            wait_for(first);
            _exit(0);
        }
    }
    return 0;
}
#define INSIDE(flags) for (pid_t child_ = enter(flags); child_ == 0 || (wait_for(child_), 0); _exit(0))

static int bind(const char *from, const char *to, int flags) { return mount(from, to, NULL, MS_BIND | flags, NULL); }

BEHAVIOUR("a bound directory shows the same files, and is another mount") {
    WITH_MOUNTS {
        mkdir("a", 0755), mkdir("b", 0755);
        make("a/file", "text");
        show(bind("a", "b", 0));
        show_file("b/file");
        make("a/new", "more");
        show_file("b/new");
        show(unlink("b/new"));
        show_file("a/new");
        show(rename("a/file", "b/other"));
        show(link("a/file", "b/other"));
        show(rmdir("b"));
        show(umount("b"));
        show_file("b/file");
        show(umount("b"));
    }
}
BEHAVIOUR("a file is bound over a file, a directory over a directory") {
    WITH_MOUNTS {
        mkdir("dir", 0755);
        make("file", "above"), make("other", "below");
        show(bind("file", "dir", 0));
        show(bind("dir", "file", 0));
        show(bind("none", "dir", 0));
        show(bind("file", "other", 0));
        show_file("other");
        show(unlink("other"));
        show(unlink("file"));
        show_file("other");
        show(umount("other"));
        show_file("other");
    }
}
BEHAVIOUR("flags of a bound mount are its own") {
    WITH_MOUNTS {
        mkdir("a", 0755), mkdir("b", 0755);
        make("a/file", "text");
        must(bind("a", "b", 0));
        show(mount(NULL, "b", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
        show(open("b/file", O_WRONLY));
        show(unlink("b/file"));
        succeeds(open("a/file", O_WRONLY) >= 0);
        show(mount(NULL, "b", NULL, MS_REMOUNT | MS_BIND, NULL));
        succeeds(open("b/file", O_WRONLY) >= 0);
        show(mount(NULL, "a", NULL, MS_REMOUNT | MS_BIND, NULL));
        show(mount(NULL, "a", NULL, MS_PRIVATE, NULL));
        show(mount(NULL, "b", NULL, MS_SLAVE | MS_REC, NULL));
        show(mount(NULL, "b", NULL, MS_PRIVATE | MS_NOSUID, NULL));
    }
}
BEHAVIOUR("what is mounted below is bound only when asked for") {
    WITH_MOUNTS {
        mkdir("a", 0755), mkdir("a/in", 0755), mkdir("b", 0755);
        must(mount("x", "a/in", "tmpfs", 0, NULL));
        make("a/in/deep", "below");
        show(bind("a", "b", 0));
        show_file("b/in/deep");
        show(umount("b"));
        show(bind("a", "b", MS_REC));
        show_file("b/in/deep");
        show(umount("a/in"));
        show_file("b/in/deep");
        show(umount("b"));
        show(mount("b/in", "a/in", NULL, MS_MOVE, NULL));
        show_file("a/in/deep");
        show(mount("a/in", "a/in", NULL, MS_MOVE, NULL));
        show(mount("b", "b/in", NULL, MS_MOVE, NULL));
        show(umount("b"));
    }
}
BEHAVIOUR("a detached mount goes on in what is open") {
    WITH_MOUNTS {
        mkdir("b", 0755);
        must(mount("x", "b", "tmpfs", 0, NULL));
        make("b/file", "text");
        int fd = must(open("b/file", O_RDONLY));
        int dir = must(open("b", O_RDONLY | O_DIRECTORY));
        show(umount("b"));
        show(umount2("b", MNT_DETACH));
        show_file("b/file");
        show_read(fd, 10);
        succeeds(openat(dir, "file", O_RDONLY) >= 0);
        succeeds(openat(dir, "../file", O_RDONLY) >= 0);
        show(umount2("b", 64));
    }
}
BEHAVIOUR("mounts of a namespace are seen there alone") {
    WITH_MOUNTS {
        mkdir("b", 0755);
        make("b/file", "below");
        pid_t child = must(clone_into(CLONE_NEWNS));
        if (child == 0) {
            show(mount("x", "b", "tmpfs", 0, NULL));
            make("b/file", "above");
            show_file("b/file");
            _exit(0);
        }
        wait_for(child);
        show_file("b/file");
        show(umount("b"));
    }
}
BEHAVIOUR("pivot_root: a new root, and the old one at a place below it") {
    WITH_MOUNTS {
        mkdir("new", 0755);
        make("mark", "outside");
        char here[256], path[300];
        getcwd(here, sizeof here);
        show(syscall(SYS_pivot_root, "new", "new"));
        must(mount("x", "new", "tmpfs", 0, NULL));
        mkdir("new/old", 0755), mkdir("new/dir", 0755);
        show(syscall(SYS_pivot_root, "new/dir", "new/old"));
        show(syscall(SYS_pivot_root, "new", "."));
        show(syscall(SYS_pivot_root, "new", "new/none"));
        show(syscall(SYS_pivot_root, "new", "mark"));
        must(chdir("new"));
        show(syscall(SYS_pivot_root, ".", "old"));
        show(chdir("/"));
        getcwd(path, sizeof path);
        note("%s", path);
        snprintf(path, sizeof path, "/old%s/mark", here);
        show_file(path);
        show(umount2("/old", MNT_DETACH));
        show_file(path);
        show(chdir("../../.."));
        succeeds(access("dir", F_OK) == 0);
        show(access("proc", F_OK));
    }
}
BEHAVIOUR("pivot_root with both in one place, as bwrap does") {
    WITH_MOUNTS {
        mkdir("new", 0755);
        must(mount("x", "new", "tmpfs", 0, NULL));
        make("new/inside", "in");
        int before = must(open("/", O_RDONLY | O_DIRECTORY));
        must(chdir("new"));
        show(syscall(SYS_pivot_root, ".", "."));
        show(fchdir(before));
        show(umount2(".", MNT_DETACH));
        show(chdir("/"));
        show_file("inside");
        show_file("/../inside");
    }
}
BEHAVIOUR("a container has a name of the host of its own") {
    struct utsname name;
    IN_CHILD {
        must(unshare(CLONE_NEWUTS));
        show(sethostname("inner", 5));
        uname(&name);
        note("%s", name.nodename);
        pid_t child = must(clone_into(CLONE_NEWUTS));
        if (child == 0) {
            uname(&name);
            note("%s", name.nodename);
            must(sethostname("nested", 6));
            _exit(0);
        }
        wait_for(child);
        uname(&name);
        note("%s", name.nodename);
    }
    uname(&name);
    succeeds(strcmp(name.nodename, "inner") != 0);
}
BEHAVIOUR("System V and POSIX names are a container's") {
    IN_CHILD {
        must(unshare(CLONE_NEWIPC));
        int outer = must(semget(77, 1, IPC_CREAT | 0666));
        int queue = must(msgget(77, IPC_CREAT | 0666));
        succeeds(mq_open("/skink-x", O_CREAT | O_RDWR, 0600, NULL) >= 0);
        pid_t child = must(clone_into(CLONE_NEWIPC));
        if (child == 0) {
            show(semget(77, 1, 0));
            show(msgget(77, 0));
            show(mq_open("/skink-x", O_RDWR));
            succeeds(semget(77, 1, IPC_CREAT | 0666) >= 0);
            _exit(0);
        }
        wait_for(child);
        succeeds(semget(77, 1, 0) == outer);
        succeeds(msgget(77, 0) == queue);
        semctl(outer, 0, IPC_RMID), msgctl(queue, IPC_RMID, NULL), mq_unlink("/skink-x");
    }
}
BEHAVIOUR("an ordinary user makes users of his own, and nothing else alone") {
    AS(USER) {
        show(unshare(CLONE_NEWNS));
        show(unshare(CLONE_NEWUTS));
        show(unshare(CLONE_NEWIPC));
        show(unshare(CLONE_NEWPID));
        show(unshare(CLONE_NEWUSER));
        note("%d %d", getuid(), getgid());
        show(setuid(0));
    }
}
BEHAVIOUR("maps of ids: one's own, once, and groups after they are given up") {
    AS(USER) {
        must(prctl(PR_SET_DUMPABLE, 1));
        must(unshare(CLONE_NEWUSER));
        show(put("/proc/self/uid_map", "0 0 1"));
        show(put("/proc/self/uid_map", "0 1000 2"));
        show(put("/proc/self/uid_map", "0 1001 1"));
        show(put("/proc/self/uid_map", "nonsense"));
        show(put("/proc/self/uid_map", "5 1000 1"));
        show(put("/proc/self/uid_map", "5 1000 1"));
        show(put("/proc/self/gid_map", "6 1000 1"));
        show(put("/proc/self/setgroups", "perhaps"));
        show(put("/proc/self/setgroups", "deny"));
        show(put("/proc/self/gid_map", "6 1000 1"));
        show_file("/proc/self/uid_map");
        show_file("/proc/self/gid_map");
        show_file("/proc/self/setgroups");
        note("%d %d %d %d", getuid(), geteuid(), getgid(), getegid());
        show(setgroups(0, NULL));
        show(setuid(7));
        show(setuid(5));
    }
}
BEHAVIOUR("files as the superuser of a container sees them") {
    struct stat at;
    chmod(".", 0777);
    make("root's", "x");
    INSIDE(CLONE_NEWUSER) {
        make("mine", "y");
        stat("mine", &at);
        note("%d %d", at.st_uid, at.st_gid);
        stat("root's", &at);
        note("%d %d", at.st_uid, at.st_gid);
        show(open("root's", O_WRONLY));
        show(chown("mine", 1, -1));
        show(chown("mine", 0, 0));
        show(chmod("mine", 0));
        show_file("mine");
        show(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
        show(mknod("pipe", S_IFIFO | 0666, 0));
    }
}
BEHAVIOUR("who is confined to a directory gets no users of his own") {
    mkdir("root", 0755);
    IN_CHILD {
        must(chroot("root"));
        become(USER);
        show(unshare(CLONE_NEWUSER));
    }
}
BEHAVIOUR("process numbers begin with one, and those outside have none") {
    pid_t outer = getpid();
    INSIDE(CLONE_NEWUSER | CLONE_NEWPID) {
        note("%d %d %d", getpid(), getppid(), (int)syscall(SYS_gettid));
        show(kill(outer, 0));
        show(kill(-outer, 0));
        show(getpgid(outer));
        show(syscall(SYS_pidfd_open, outer, 0));
        show(ptrace(PTRACE_ATTACH, outer, 0, 0));
        IN_CHILD { note("%d %d", getpid(), getppid()); }
        pid_t child = must(fork());
        if (child == 0) {
            show(setsid());
            note("%d %d", getpgrp(), getsid(0));
            _exit(3);
        }
        int status;
        note("%d", waitpid(child, &status, 0) == child);
        show_status(status);
        note("%d", child);
        show(kill(1, SIGKILL));
        show(kill(-1, SIGTERM));
        show(raise(SIGTERM));
    }
}
BEHAVIOUR("all processes of a container end with its first, which adopts them before") {
    struct gate gate = new_gate();
    INSIDE(CLONE_NEWUSER | CLONE_NEWPID) {
        struct gate told = new_gate();
        pid_t child = must(fork());
        if (child == 0) {
            if (fork() == 0) {
                close(gate.fds[0]);
                pass_gate(told);
                note("%d", getppid());
                open_gate(gate);
                pause();
            }
            _exit(0);
        }
        wait_for(child);
        open_gate(told);
        char byte;
        read(gate.fds[0], &byte, 1);
    }
    close(gate.fds[1]);
    char byte;
    show(read(gate.fds[0], &byte, 1));
}
BEHAVIOUR("unshare of process numbers is for children, until the first has ended") {
    IN_CHILD {
        must(unshare(CLONE_NEWPID));
        note("%d", getpid() != 1);
        pid_t first = must(fork());
        if (first == 0) {
            note("%d", getpid());
            _exit(0);
        }
        wait_for(first);
        show(fork());
    }
}
BEHAVIOUR("/proc of a container shows its processes") {
    INSIDE(ALL) {
        char self[64] = "";
        must(mount("proc", "/proc", "proc", 0, NULL));
        readlink("/proc/self", self, sizeof self - 1);
        note("%s", self);
        show(access("/proc/1/stat", F_OK));
        show(access("/proc/2/stat", F_OK));
        IN_CHILD { show(access("/proc/2/stat", F_OK)); }
        succeeds(access("/proc/self/fd/0", F_OK) == 0);
    }
}
BEHAVIOUR("what was mounted outside is not uncovered inside") {
    mkdir("b", 0755);
    make("b/file", "below");
    WITH_MOUNTS {
        must(mount("x", "b", "tmpfs", MS_RDONLY, NULL));
        INSIDE(CLONE_NEWUSER | CLONE_NEWNS) {
            show(umount("b"));
            show(umount2("b", MNT_DETACH));
            show(mount(NULL, "b", NULL, MS_REMOUNT | MS_BIND, NULL));
            show(mount(NULL, "b", NULL, MS_REMOUNT, NULL));
            show(mount(NULL, "b", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL));
            show(bind(".", "b", 0));
            show_file("b/file");
            show(mount("y", "b", "tmpfs", 0, NULL));
            show(umount("b"));
        }
    }
}
BEHAVIOUR("a directory is bound inside without what is mounted below it only if nothing is") {
    mkdir("a", 0777), mkdir("a/b", 0777), mkdir("c", 0777), chmod("c", 0777);
    INSIDE(CLONE_NEWUSER | CLONE_NEWNS) {
        show(bind("a", "c", 0));
        show(umount("c"));
        show(bind("/", "c", 0));
        show(bind("/", "c", MS_REC));
    }
}

BEHAVIOUR("mounts of others are not for users of one's own") {
    mkdir("b", 0755);
    INSIDE(CLONE_NEWUSER) {
        show(mount("x", "b", "tmpfs", 0, NULL));
        show(umount2("/proc", MNT_DETACH));
        show(sethostname("x", 1));
        show(chroot("."));
    }
}
BEHAVIOUR("ways out for a superuser of a container that are closed") {
    INSIDE(ALL) {
        show(setpriority(PRIO_PROCESS, 0, -5));
        struct sched_param parameter = {10};
        show(sched_setscheduler(0, SCHED_FIFO, &parameter));
        struct rlimit files = {1 << 20, 1 << 20};
        show(setrlimit(RLIMIT_NOFILE, &files));
        struct timeval then = {1, 0};
        show(settimeofday(&then, NULL));
        show(mknod("disk", S_IFBLK | 0600, makedev(254, 0)));
        show(mount("/dev/vda", "/mnt", "ext2", 0, NULL));
        show(unshare(CLONE_NEWUSER));
        show(put("/proc/self/uid_map", "0 0 4294967295"));
    }
}
BEHAVIOUR("flags that clone and unshare refuse") {
    show(clone_into(CLONE_NEWNS | CLONE_FS));
    show(clone_into(CLONE_NEWUSER | CLONE_FS));
    show(unshare(CLONE_PARENT_SETTID));
    show(unshare(CLONE_FS | CLONE_FILES));
    show(syscall(SYS_setns, 99, CLONE_NEWNS));
}
