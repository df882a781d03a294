/* Programs: how execve and execveat find them, scripts, and files that are executed or written. */
#include "behaviour.h"

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

static char *no_environment[] = {NULL};

/* A copy of the shell at this path. */
static void copy_shell(const char *path) {
    static char bytes[1 << 16];
    int from = open("/bin/sh", O_RDONLY), to = open(path, O_CREAT | O_WRONLY, 0755);
    for (ssize_t length; (length = read(from, bytes, sizeof bytes)) > 0;)
        write(to, bytes, length);
    close(from);
    close(to);
}

/* Starts a copy of the shell at ./f, which runs until end_shell. */
static int line[2];
static pid_t start_shell(void) {
    struct gate executed = new_gate();
    char byte;
    copy_shell("f");
    must(pipe(line));
    pid_t child = fork();
    if (child == 0) {
        dup2(line[0], 0);
        close(line[1]);
        execl("./f", "sh", "-c", "read x", NULL);
        note("(%s)", strerrorname_np(errno));
        _exit(0);
    }
    close(executed.fds[1]);
    read(executed.fds[0], &byte, 1);
    return child;
}

static void end_shell(pid_t child) {
    write(line[1], "\n", 1);
    wait_for(child);
}

/* Runs a program in a child, and shows its exit status. */
static void run_at(int directory, const char *path, int flags) {
    char *words[] = {"zero", "one", NULL};
    IN_CHILD {
        syscall(SYS_execveat, directory, path, words, no_environment, flags);
        note("%s", strerrorname_np(errno));
    }
}

BEHAVIOUR("a script gets its interpreter, one argument, and its path in front of the arguments") {
    make_mode("s", "#!/bin/sh -u \t\necho \"$0\" \"$@\" $- >out", 0755);
    run_at(AT_FDCWD, "./s", 0);
    show_file("out");
}
BEHAVIOUR("the interpreter of a script may be a script") {
    make_mode("inner", "#!/bin/sh\necho \"$0:$1:$2:$3\" >out", 0755);
    make_mode("outer", "#!./inner an argument\n", 0755);
    run_at(AT_FDCWD, "./outer", 0);
    show_file("out");
}
BEHAVIOUR("five scripts interpret each other, six are too many") {
    make_mode("1", "#!/bin/sh\necho \"$@\" >out", 0755);
    for (int number = 2; number <= 7; number++) {
        char path[8], text[16];
        snprintf(path, sizeof path, "%d", number);
        snprintf(text, sizeof text, "#!./%d\n", number - 1);
        make_mode(path, text, 0755);
    }
    run_at(AT_FDCWD, "./5", 0);
    show_file("out");
    run_at(AT_FDCWD, "./6", 0);
    run_at(AT_FDCWD, "./7", 0);
}
BEHAVIOUR("scripts without interpreter, with one that does not exist, may not be executed, is a directory") {
    make_mode("a", "#!\n", 0755);
    make_mode("b", "#!./none\n", 0755);
    make_mode("c", "#!./plain\n", 0755);
    make_mode("d", "#!.\n", 0755);
    make_mode("plain", "text", 0644);
    run_at(AT_FDCWD, "./a", 0);
    run_at(AT_FDCWD, "./b", 0);
    run_at(AT_FDCWD, "./c", 0);
    run_at(AT_FDCWD, "./d", 0);
}
BEHAVIOUR("execveat of a path below a directory") {
    mkdir("d", 0755);
    make_mode("d/s", "#!/bin/sh\necho \"$0\" \"$@\" >out", 0755);
    must(dup2(open("d", O_RDONLY), 40));
    run_at(40, "s", 0);
    show_file("out");
    must(dup2(open("d", O_RDONLY | O_PATH), 41));
    run_at(41, "./s", 0);
    show_file("out");
    run_at(99, "s", 0);
    run_at(open("d/s", O_RDONLY), "s", 0);
}
BEHAVIOUR("execveat AT_EMPTY_PATH of a script: by its descriptor, unless that closes") {
    make_mode("s", "#!/bin/sh\necho \"$0\" \"$@\" >out", 0755);
    must(dup2(open("s", O_RDONLY), 40));
    must(dup3(40, 41, O_CLOEXEC));
    run_at(40, "", AT_EMPTY_PATH);
    show_file("out");
    run_at(41, "", AT_EMPTY_PATH);
}
BEHAVIOUR("execveat AT_EMPTY_PATH of O_PATH, a directory, the working directory, a pipe, nothing") {
    int p[2];
    make_mode("s", "#!/bin/sh\nexit 7", 0755);
    pipe(p);
    run_at(open("s", O_PATH), "", AT_EMPTY_PATH);
    run_at(open(".", O_RDONLY), "", AT_EMPTY_PATH);
    run_at(AT_FDCWD, "", AT_EMPTY_PATH);
    run_at(p[0], "", AT_EMPTY_PATH);
    run_at(99, "", AT_EMPTY_PATH);
    run_at(open("s", O_RDONLY), "", 0);
}
BEHAVIOUR("execveat AT_SYMLINK_NOFOLLOW, of a link and of a file behind one") {
    mkdir("d", 0755);
    make_mode("d/s", "#!/bin/sh\nexit 7", 0755);
    symlink("d/s", "l");
    symlink("d", "e");
    run_at(AT_FDCWD, "l", AT_SYMLINK_NOFOLLOW);
    run_at(AT_FDCWD, "e/s", AT_SYMLINK_NOFOLLOW);
    run_at(AT_FDCWD, "l", 0);
}
BEHAVIOUR("execveat with unknown flags, and with a bad path") {
    make_mode("s", "#!/bin/sh\nexit 7", 0755);
    run_at(AT_FDCWD, "./s", 0x4);
    show(syscall(SYS_execveat, AT_FDCWD, bad(), no_environment, no_environment, 0x4));
}
BEHAVIOUR("a file that is open for writing is not executed") {
    copy_shell("f");
    int fd = open("f", O_RDWR);
    run_at(AT_FDCWD, "./f", 0);
    make_mode("s", "#!./f\n", 0755);
    run_at(AT_FDCWD, "./s", 0);
    close(fd);
    fd = open("s", O_WRONLY | O_APPEND);
    run_at(AT_FDCWD, "./s", 0);
}
BEHAVIOUR("a file that may not be executed is EACCES, though it is open for writing") {
    make("f", "text");
    int fd = open("f", O_RDWR);
    run_at(AT_FDCWD, "./f", 0);
    (void)fd;
}
BEHAVIOUR("a file that is executed is not opened for writing, truncated, executed open") {
    pid_t child = start_shell();
    show(open("f", O_WRONLY));
    show(open("f", O_RDWR | O_APPEND));
    show(open("f", O_RDONLY | O_TRUNC));
    show(open("f", O_WRONLY | O_CREAT, 0600));
    show(open("f", O_WRONLY | O_CREAT | O_EXCL, 0600));
    show(truncate("f", 5));
    show(open("f", O_RDONLY) >= 0);
    end_shell(child);
    show(open("f", O_WRONLY) >= 0);
}
BEHAVIOUR("a file that is executed may change its mode and owner, and be renamed and removed") {
    pid_t child = start_shell();
    show(chmod("f", 0700));
    show(chown("f", USER, USER));
    show(rename("f", "g"));
    show(open("g", O_WRONLY));
    make("f", "new");
    show_file("f");
    show(unlink("g"));
    end_shell(child);
}
BEHAVIOUR("a user without rights is told so before ETXTBSY") {
    pid_t child = start_shell();
    AS(USER) {
        show(open("f", O_WRONLY));
        show(truncate("f", 5));
    }
    end_shell(child);
}
BEHAVIOUR("a memfd is executed while it is open for writing") {
    static char bytes[1 << 16];
    int from = open("/bin/sh", O_RDONLY), to = must(memfd_create("x", 0));
    char *words[] = {"sh", "-c", "exit 9", NULL};
    for (ssize_t length; (length = read(from, bytes, sizeof bytes)) > 0;)
        write(to, bytes, length);
    IN_CHILD {
        fexecve(to, words, no_environment);
        note("%s", strerrorname_np(errno));
    }
}
BEHAVIOUR("/proc/self/exe is executed, read, not written") {
    char *words[] = {"x", "no behaviour has this name", NULL};
    IN_CHILD {
        execve("/proc/self/exe", words, no_environment);
        note("%s", strerrorname_np(errno));
    }
    show(open("/proc/self/exe", O_RDONLY) >= 0);
    show(open("/proc/self/exe", O_WRONLY));
    show(truncate("/proc/self/exe", 1));
    show(unlink("/proc/self/exe"));
}
