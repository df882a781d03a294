/* User and group ids: every transition of the set*id calls, groups, file system ids, set-id programs, capabilities. */
#include "behaviour.h"
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

/* The system calls, which change this process alone; the C library's change every thread. */
static long call1(long number, long a) { return syscall(number, a); }

static void show_users(void) {
    uid_t real, effective, saved;
    getresuid(&real, &effective, &saved);
    note("%d/%d/%d", (int)real, (int)effective, (int)saved);
}

static void show_groups(void) {
    gid_t real, effective, saved;
    getresgid(&real, &effective, &saved);
    note("%d/%d/%d", (int)real, (int)effective, (int)saved);
}

static void capabilities(struct __user_cap_data_struct data[2]) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    syscall(SYS_capget, &header, data);
}

/* Shows whether the process has any permitted, effective capabilities. */
static void show_capabilities(void) {
    struct __user_cap_data_struct data[2];
    capabilities(data);
    note("%d%d", (data[0].permitted | data[1].permitted) != 0, (data[0].effective | data[1].effective) != 0);
}

BEHAVIOUR("setuid by root sets all three") {
    show(call1(SYS_setuid, 5));
    show_users();
    show(call1(SYS_setuid, 0));
}
BEHAVIOUR("setuid of -1") {
    show(call1(SYS_setuid, -1));
    show(call1(SYS_setgid, -1));
}
BEHAVIOUR("setuid by a user: to the real or the saved id, and only the effective one changes") {
    must(setresuid(5, 6, 7));
    show(call1(SYS_setuid, 7));
    show_users();
    show(call1(SYS_setuid, 5));
    show_users();
    show(call1(SYS_setuid, 6));
    show(call1(SYS_setuid, 0));
}
BEHAVIOUR("setuid with effective id 0 but real id of a user sets all three") {
    must(setresuid(5, 0, 6));
    show(call1(SYS_setuid, 9));
    show_users();
}
BEHAVIOUR("setresuid leaves what is -1") {
    show(syscall(SYS_setresuid, 5, -1, 7));
    show_users();
    show(syscall(SYS_setresuid, -1, -1, -1));
    show_users();
}
BEHAVIOUR("setresuid by a user permutes his three ids") {
    must(setresuid(5, 6, 7));
    show(syscall(SYS_setresuid, 7, 5, 6));
    show_users();
    show(syscall(SYS_setresuid, 6, 6, 6));
    show_users();
    show(syscall(SYS_setresuid, 5, -1, -1));
    show(syscall(SYS_setresuid, -1, -1, 0));
}
BEHAVIOUR("setreuid by root: the saved id follows the effective one when the real one is set") {
    show(syscall(SYS_setreuid, 5, 0));
    show_users();
}
BEHAVIOUR("setreuid with the effective id alone: the saved id follows if it is not the real one") {
    show(syscall(SYS_setreuid, -1, 5));
    show_users();
}
BEHAVIOUR("setreuid of the effective id to the real one leaves the saved id") {
    must(setresuid(5, 6, 7));
    show(syscall(SYS_setreuid, -1, 5));
    show_users();
}
BEHAVIOUR("setreuid by a user: the real id from real and effective, the effective from all three") {
    must(setresuid(5, 6, 7));
    show(syscall(SYS_setreuid, 7, -1));
    show(syscall(SYS_setreuid, -1, 7));
    show_users();
    show(syscall(SYS_setreuid, 8, -1));
    show(syscall(SYS_setreuid, -1, 8));
}
BEHAVIOUR("setreuid swaps") {
    must(setresuid(5, 6, 6));
    show(syscall(SYS_setreuid, 6, 5));
    show_users();
    show(syscall(SYS_setreuid, 5, 6));
    show_users();
}
BEHAVIOUR("who has dropped root for good cannot return") {
    must(setresuid(5, 5, 5));
    show(syscall(SYS_setresuid, 0, 0, 0));
    show(call1(SYS_setuid, 0));
    show(syscall(SYS_setreuid, -1, 0));
}
BEHAVIOUR("who has dropped root's effective id alone can return") {
    must(setresuid(-1, 5, -1));
    show_users();
    show(call1(SYS_setuid, 0));
    show_users();
}
BEHAVIOUR("setgid by root sets all three, by a user the effective one") {
    show(call1(SYS_setgid, 5));
    show_groups();
    must(setresgid(5, 6, 7));
    must(setresuid(9, 9, 9));
    show(call1(SYS_setgid, 7));
    show_groups();
    show(call1(SYS_setgid, 8));
}
BEHAVIOUR("setresgid and setregid by a user") {
    must(setresgid(5, 6, 7));
    must(setresuid(9, 9, 9));
    show(syscall(SYS_setregid, 7, -1));
    show(syscall(SYS_setregid, 6, 5));
    show_groups();
    show(syscall(SYS_setresgid, 8, -1, -1));
    show(syscall(SYS_setresgid, 5, 5, 5));
    show_groups();
}
BEHAVIOUR("group ids give no right to set groups") {
    must(setresuid(9, 9, 9));
    show_groups();
    show(call1(SYS_setgid, 5));
    show(setgroups(0, NULL));
}
BEHAVIOUR("getresuid and getresgid with bad memory") {
    uid_t id;
    show(syscall(SYS_getresuid, &id, &id, bad()));
    show(syscall(SYS_getresuid, bad(), &id, &id));
    show(syscall(SYS_getresgid, &id, bad(), &id));
}
BEHAVIOUR("setgroups and getgroups") {
    gid_t groups[4] = {4, 77, 5}, read[4];
    show(setgroups(3, groups));
    show(getgroups(0, NULL));
    show(getgroups(4, read));
    note("%d %d %d", (int)read[0], (int)read[1], (int)read[2]);
    show(getgroups(2, read));
}
BEHAVIOUR("setgroups and getgroups with bad memory, too many, negative") {
    gid_t group = 5;
    show(setgroups(1, bad()));
    show(setgroups(65537, &group));
    must(setgroups(1, &group));
    show(getgroups(1, bad()));
    show(getgroups(-1, &group));
}
BEHAVIOUR("groups are inherited") {
    gid_t groups[2] = {5, 6};
    must(setgroups(2, groups));
    IN_CHILD { show(getgroups(0, NULL)); }
}
BEHAVIOUR("setfsuid returns the one before, and has no errors") {
    show(setfsuid(5));
    show(setfsuid(-1));
    show(setfsuid(0));
    show(setfsuid(0));
}
BEHAVIOUR("setfsuid by a user: one of his ids") {
    must(setresuid(5, 6, 7));
    show(setfsuid(7));
    show(setfsuid(8));
    show(setfsuid(5));
}
BEHAVIOUR("the file system id decides about files, and who owns new ones") {
    struct stat at;
    make_mode("f", "", 0600);
    IN_CHILD {
        setfsgid(USER);
        setfsuid(USER);
        show(open("f", O_RDONLY));
        close(open("new", O_CREAT | O_WRONLY, 0600));
    }
    stat("new", &at);
    note("%d:%d", (int)at.st_uid, (int)at.st_gid);
}
BEHAVIOUR("the effective id takes the file system id with it") {
    setfsuid(5);
    must(setresuid(-1, 6, -1));
    show(setfsuid(-1));
}
BEHAVIOUR("a set-user-id program runs with its owner's effective and saved id") {
    char *words[] = {"f", NULL};
    chmod(".", 0755);
    int from = open("/proc/self/exe", O_RDONLY), to = open("f", O_CREAT | O_WRONLY, 0755);
    static char bytes[1 << 16];
    for (ssize_t length; (length = read(from, bytes, sizeof bytes)) > 0;)
        write(to, bytes, length);
    fchown(to, STRANGER, STRANGER);
    fchmod(to, 06755);
    close(to);
    AS(USER) { execve("./f", words, NULL); }
}
/* The program again, from the behaviour before: without a word it shows its ids by its exit status. */
__attribute__((constructor)) static void again(int count, char **words, char **environment) {
    (void)environment;
    uid_t real, effective, saved;
    gid_t groups[3];
    if (count != 1 || strcmp(words[0], "f") != 0)
        return;
    getresuid(&real, &effective, &saved);
    getresgid(&groups[0], &groups[1], &groups[2]);
    _exit((real == USER) + 2 * (effective == STRANGER) + 4 * (saved == STRANGER) + 8 * (groups[0] == USER) +
          16 * (groups[1] == STRANGER) + 32 * (groups[2] == STRANGER));
}
BEHAVIOUR("set-id bits of a script do nothing") {
    char *words[] = {"f", NULL};
    make("f", "#!/bin/sh\nexit $(id -u | head -c 1)\n");
    chmod("f", 04755);
    AS(USER) { execve("./f", words, NULL); }
}
BEHAVIOUR("PR_SET_NO_NEW_PRIVS takes the effect of set-id bits") {
    char *words[] = {"f", NULL};
    int from = open("/proc/self/exe", O_RDONLY), to = open("f", O_CREAT | O_WRONLY, 0755);
    static char bytes[1 << 16];
    for (ssize_t length; (length = read(from, bytes, sizeof bytes)) > 0;)
        write(to, bytes, length);
    fchown(to, STRANGER, STRANGER);
    fchmod(to, 06755);
    close(to);
    AS(USER) {
        show(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        execve("./f", words, NULL);
    }
}
BEHAVIOUR("capget with an unknown version tells the one it likes") {
    struct __user_cap_header_struct header = {0x1234, 0};
    struct __user_cap_data_struct data[2];
    show(syscall(SYS_capget, &header, data));
    note("%x", header.version);
    show(syscall(SYS_capget, &header, data));
    show(syscall(SYS_capget, bad(), data));
    header.pid = 0x3ffffff;
    show(syscall(SYS_capget, &header, data));
    header.pid = -1;
    show(syscall(SYS_capget, &header, data));
}
BEHAVIOUR("capset for another process, and of what is not permitted") {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 1};
    struct __user_cap_data_struct data[2];
    capabilities(data);
    show(syscall(SYS_capset, &header, data));
    header.pid = 0;
    AS(USER) {
        capabilities(data);
        data[0].permitted |= 1 << CAP_SYS_ADMIN;
        show(syscall(SYS_capset, &header, data));
        data[0].permitted = 0;
        data[0].effective = 1 << CAP_CHOWN;
        show(syscall(SYS_capset, &header, data));
    }
}
BEHAVIOUR("who leaves root loses all capabilities") {
    show_capabilities();
    must(setresuid(USER, USER, USER));
    show_capabilities();
}
BEHAVIOUR("who leaves root with his effective id alone keeps them permitted") {
    must(setresuid(-1, USER, -1));
    show_capabilities();
    must(setresuid(-1, 0, -1));
    show_capabilities();
}
BEHAVIOUR("PR_SET_KEEPCAPS keeps them permitted, not effective") {
    show(prctl(PR_SET_KEEPCAPS, 1));
    must(setresuid(USER, USER, USER));
    show_capabilities();
}
BEHAVIOUR("ids of other processes' priorities: only the own user's may change") {
    pid_t parent = getpid();
    AS(USER) { show(setpriority(PRIO_PROCESS, parent, 5)); }
}
