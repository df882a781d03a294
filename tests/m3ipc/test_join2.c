/* A container names capabilities: whoever has one of them may join, but not by what a user namespace of its own gives. */
#include "m3test.h"
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { USER = 1000 };

/* Keeps these capabilities beyond the change of user, and may be looked into as before. */
static void become(unsigned uid, unsigned capabilities)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{.effective = capabilities, .permitted = capabilities}};
    if (prctl(PR_SET_KEEPCAPS, 1) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)
        puts("no such ids");
    if (syscall(SYS_capset, &head, sets) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
        puts("no such capabilities");
}

static void try(const char *what, int vmid, unsigned capabilities, int namespaces)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        become(USER, capabilities);
        if (namespaces && unshare(namespaces) != 0)
            puts("no namespace");
        int got = mnx_bind(vmid, 70);
        printf("%s in container %d: %s\n", what, vmid, got > 0 ? "may" : result(got));
        exit(0);
    }
    waitpid(pid, NULL, 0);
}

int main(void)
{
    VM_usr_t one = {.vm_vmid = 1, .vm_name = "one", .vm_capabilities = 1 << CAP_SYS_NICE};
    VM_usr_t some = {.vm_vmid = 2, .vm_name = "some", .vm_capabilities = 1 << CAP_SYS_NICE | 1 << CAP_KILL, .vm_uids = {1001}}, told;
    begin();
    SHOW(mnx_vm_init(&one));
    SHOW(mnx_vm_init(&some));
    for (int vmid = 1; vmid <= 2; vmid++) {
        try("none", vmid, 0, 0);
        try("CAP_SYS_NICE", vmid, 1 << CAP_SYS_NICE, 0);
        try("CAP_KILL", vmid, 1 << CAP_KILL, 0);
        try("CAP_NET_RAW", vmid, 1 << CAP_NET_RAW, 0);
        try("a namespace of its own", vmid, 0, CLONE_NEWUSER);
        try("CAP_SYS_NICE, and a namespace of its own", vmid, 1 << CAP_SYS_NICE, CLONE_NEWUSER);
    }
    SHOW(mnx_getvminfo(2, &told));
    printf("capabilities %#lx\n", told.vm_capabilities);
    return 0;
}
