/* A container says who may join it: users, groups, everybody, or nobody but root. */
#include "m3test.h"

static uid_t uid;
static gid_t gid;
static int vmid;

static void joiner(void)
{
    if (setgid(gid) != 0 || setuid(uid) != 0)
        puts("no such ids");
    int got = mnx_bind(vmid, 70);
    printf("user %u, group %u in container %d: %s\n", uid, gid, vmid, got > 0 ? "may" : result(got));
}

static void try(int container, uid_t user, gid_t group)
{
    vmid = container;
    uid = user;
    gid = group;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        joiner();
        exit(0);
    }
    waitpid(pid, NULL, 0);
}

int main(void)
{
    VM_usr_t named = {.vm_vmid = 1, .vm_name = "named", .vm_uids = {1000}, .vm_gids = {0, 0, 50}};
    VM_usr_t open = {.vm_vmid = 2, .vm_name = "open", .vm_flags = VM_OPEN}, told;
    begin();
    SHOW(mnx_vm_init(&named));
    SHOW(mnx_vm_init(&open));
    try(1, 0, 0);
    try(1, 1000, 1000);
    try(1, 1001, 50);
    try(1, 1001, 1001);
    try(2, 1001, 1001);
    SHOW(mnx_getvminfo(1, &told));
    printf("users %u, groups %u, running %d, open %d\n", told.vm_uids[0], told.vm_gids[2], told.vm_flags & VM_RUNNING,
           told.vm_flags & VM_OPEN);
    SHOW(mnx_getvminfo(2, &told));
    printf("open %d\n", told.vm_flags & VM_OPEN);

    /* Another user's process is bound by root only. */
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        exit(0);
    }
    pid_t other = fork();
    if (other == 0) {
        if (setgid(1000) != 0 || setuid(1000) != 0)
            puts("no such ids");
        SHOW(mnx_lclbind(1, pid, 71));
        exit(0);
    }
    waitpid(other, NULL, 0);
    printf("by root: %s\n", mnx_lclbind(1, pid, 71) > 0 ? "may" : "may not");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}
