// SPDX-License-Identifier: MIT OR GPL-2.0
/* M3-IPC as a module of Linux: the device /dev/m3ipc, whose ioctls are the calls of m3ipc.h by their numbers. Those with a message have a shorter way, too.
 *
 * `binding` knows who is bound, `exchange` has the rendezvous, `copy` the block copies, `node` containers and rights, `proc` /proc/drvs; `module.h`
 * says how they lock. The open file is no more than the right to call: a member is a process or a thread, whichever file it calls by.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include "module.h"

MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("M3-IPC: messages of a microkernel between ordinary processes");

static unsigned int uids[32];
static int uid_count;
module_param_array(uids, uint, &uid_count, 0644);
MODULE_PARM_DESC(uids, "users who may join containers, besides administrators");

static unsigned int gids[32];
static int gid_count;
module_param_array(gids, uint, &gid_count, 0644);
MODULE_PARM_DESC(gids, "groups who may join containers");

static int join_capability = -1;
module_param(join_capability, int, 0644);
MODULE_PARM_DESC(join_capability, "number of a capability by which one may join containers; -1 for none");

static int admin_capability = CAP_SYS_ADMIN;
module_param(admin_capability, int, 0644);
MODULE_PARM_DESC(admin_capability, "number of the capability of administrators, who start and end containers");

/* Whether the caller may do what is for root: by a capability that it has outside of all namespaces of users. */
bool is_admin(void)
{
    int number = READ_ONCE(admin_capability);

    return cap_valid(number) && capable(number);
}

/* Whether the caller may be bound. */
bool may_join(void)
{
    int i, number = READ_ONCE(join_capability);

    for (i = 0; i < READ_ONCE(uid_count); i++)
        if (uid_eq(current_euid(), make_kuid(&init_user_ns, READ_ONCE(uids[i]))))
            return true;
    for (i = 0; i < READ_ONCE(gid_count); i++)
        if (in_egroup_p(make_kgid(&init_user_ns, READ_ONCE(gids[i]))))
            return true;
    return (cap_valid(number) && capable(number)) || is_admin();
}

/* Whether the container admits the caller, who may be bound at all: everybody, if it does not say whom. */
bool admits(const VM_usr_t *vm)
{
    bool says = vm->vm_capabilities != 0;
    int i;

    if (vm->vm_flags & VM_OPEN || is_admin())
        return true;
    for (i = 0; i < ARRAY_SIZE(vm->vm_uids); i++) {
        says |= vm->vm_uids[i] || vm->vm_gids[i];
        if (vm->vm_uids[i] && uid_eq(current_euid(), make_kuid(&init_user_ns, vm->vm_uids[i])))
            return true;
        if (vm->vm_gids[i] && in_egroup_p(make_kgid(&init_user_ns, vm->vm_gids[i])))
            return true;
    }
    for (i = 0; i <= CAP_LAST_CAP; i++)
        if (vm->vm_capabilities >> i & 1 && capable(i))
            return true;
    return !says;
}

static int open(struct inode *inode, struct file *file)
{
    if (may_join())
        return 0;
    pr_notice_ratelimited("m3ipc: user %u (%s) may not join: neither in uids nor in gids\n", from_kuid(&init_user_ns, current_euid()),
                          current->comm);
    return -EACCES;
}

static bool is_for_root(unsigned int call)
{
    switch (call) {
    case M3IPC_CALL_DRVS_INIT:
    case M3IPC_CALL_DRVS_END:
    case M3IPC_CALL_VM_INIT:
    case M3IPC_CALL_VM_END:
    case M3IPC_CALL_REMOTE_BIND:
    case M3IPC_CALL_BACKUP_BIND:
    case M3IPC_CALL_REPLICA_BIND:
    case M3IPC_CALL_SET_PRIVILEGES:
    case M3IPC_CALL_NOTIFY_AS:
    case M3IPC_CALL_NOTIFY_HARDWARE:
    case M3IPC_CALL_NODE_UP:
    case M3IPC_CALL_NODE_DOWN:
    case M3IPC_CALL_ADD_NODE:
    case M3IPC_CALL_DEL_NODE:
        return true;
    default:
        return false;
    }
}

/* Does a call that moves no message. */
static int do_request(unsigned int call, const long *a, long *value)
{
    void __user *last = (void __user *)a[2];

    if (is_for_root(call) && !is_admin())
        return EMOLPERM;
    switch (call) {
    case M3IPC_CALL_DRVS_INIT:
        *value = a[0];
        return init_node(a[0], (void __user *)a[1]);
    case M3IPC_CALL_DRVS_END:
        return end_node();
    case M3IPC_CALL_DRVS_INFO:
        *value = READ_ONCE(node.number);
        return tell_node((void __user *)a[0]);
    case M3IPC_CALL_VM_INIT:
        return init_container((void __user *)a[0]);
    case M3IPC_CALL_VM_END:
        return end_container(a[0]);
    case M3IPC_CALL_VM_INFO:
        return tell_container(a[0], (void __user *)a[1]);
    case M3IPC_CALL_VM_DUMP:
        return log_container(a[0]);
    case M3IPC_CALL_BIND:
        return bind_caller(a[0], a[1], false, value);
    case M3IPC_CALL_THREAD_BIND:
        return bind_caller(a[0], a[1], true, value);
    case M3IPC_CALL_LOCAL_BIND:
        return bind_other(a[0], a[1], a[2], value);
    case M3IPC_CALL_REMOTE_BIND:
        return bind_remote(a[0], a[2], a[3], (void __user *)a[1], value);
    case M3IPC_CALL_BACKUP_BIND:
        return bind_stand_in(a[0], a[1], a[2], a[3], MIS_RMTBACKUP, value);
    case M3IPC_CALL_REPLICA_BIND:
        return bind_stand_in(a[0], a[1], a[2], READ_ONCE(node.number), MIS_REPLICATED | MIS_GRPLEADER, value);
    case M3IPC_CALL_WAIT_FOR_BIND:
        return wait_for_own_binding(a[0], value);
    case M3IPC_CALL_WAIT_FOR_BIND_OF:
        return wait_for_endpoint(a[0], true, a[1], value);
    case M3IPC_CALL_WAIT_FOR_UNBIND:
        return wait_for_endpoint(a[0], false, a[1], value);
    case M3IPC_CALL_UNBIND:
        return unbind(a[0], a[1]);
    case M3IPC_CALL_GET_ENDPOINT:
        return endpoint_of(a[0], value);
    case M3IPC_CALL_PROCESS_INFO:
        return tell_process(a[0], a[1], last);
    case M3IPC_CALL_PROCESS_DUMP:
        return log_processes(a[0]);
    case M3IPC_CALL_SET_PRIVILEGES:
        return set_rights(a[0], a[1], last);
    case M3IPC_CALL_GET_PRIVILEGES:
        return tell_rights(a[0], a[1], last);
    case M3IPC_CALL_NOTIFY:
        return notify(a[0], 0);
    case M3IPC_CALL_NOTIFY_VALUE:
        return notify(a[0], a[1]);
    case M3IPC_CALL_NOTIFY_AS:
        return notify_as(a[0], a[1]);
    case M3IPC_CALL_NOTIFY_HARDWARE:
        return notify_hardware(a[0], a[1]);
    case M3IPC_CALL_COPY:
        *value = (int)a[4];
        return copy_block(a[0], a[1], a[2], a[3], a[4]);
    case M3IPC_CALL_WAKE_UP:
        return wake_member(a[0], a[1]);
    case M3IPC_CALL_NODE_UP:
        return serve_node(a[1], true);
    case M3IPC_CALL_NODE_DOWN:
        return serve_node(a[0], false);
    case M3IPC_CALL_NODE_INFO:
        return tell_other_node(a[0], (void __user *)a[1]);
    case M3IPC_CALL_ADD_NODE:
    case M3IPC_CALL_DEL_NODE:
        return change_nodes(a[0], a[1], call == M3IPC_CALL_ADD_NODE);
    default:
        // Proxies and moves do not exist yet.
        return EMOLNOSYS;
    }
}

/* A call without a message: its arguments in the order of its prototype, and room for what it returns. */
static long request(unsigned int call, m3ipc_request_t __user *address)
{
    m3ipc_request_t request;
    int error;

    if (copy_from_user(&request, address, sizeof request))
        return EMOLFAULT;
    request.value = 0;
    error = do_request(call, request.arguments, &request.value);
    if (!error && put_user(request.value, &address->value))
        error = EMOLFAULT;
    return error;
}

/* A call with a message, which is sent or received at `place`. */
static __always_inline long exchange(unsigned int call, int endpoint, long limit_ms, message __user *place)
{
    if (call == M3IPC_CALL_RECEIVE || call == M3IPC_CALL_RECEIVE_REQUEST)
        return receive_message(call, endpoint, limit_ms, place);
    return call == M3IPC_CALL_REPLY ? reply_message(endpoint, place) : send_message(call, endpoint, limit_ms, place);
}

static bool has_message(unsigned int call)
{
    return call >= M3IPC_CALL_SEND && call <= M3IPC_CALL_REPLY;
}

/* Calls by `ioctl`: all of them. */
static long control(struct file *file, unsigned int command, unsigned long address)
{
    m3ipc_parcel_t __user *parcel = (void __user *)address;
    unsigned int call = command - M3IPC_IOCTL(0);
    long limit_ms;
    int endpoint;

    if (!has_message(call))
        return call && call <= 0xff ? request(call, (void __user *)address) : -ENOTTY;
    if (get_user(limit_ms, &parcel->limit_ms) || get_user(endpoint, &parcel->m.m_source))
        return EMOLFAULT;
    return exchange(call, endpoint, limit_ms, &parcel->m);
}

/* Calls by `posix_fadvise`: those with a message, and notifications. The kernel comes here by a third of the instructions that it takes to an `ioctl`
 * (docs/adr/0114-the-processor-and-the-way-into-the-module.md). */
static int advise(struct file *file, loff_t address, loff_t peer, int advice)
{
    unsigned int call = advice - M3IPC_IOCTL(0);
    int endpoint = lower_32_bits(peer), upper = upper_32_bits(peer);

    if (unlikely(in_compat_syscall()))
        return -EINVAL;
    if (has_message(call))
        return exchange(call, endpoint, upper, (void __user *)(unsigned long)address);
    return call == M3IPC_CALL_NOTIFY_VALUE ? notify(endpoint, upper) : -EINVAL;
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = open,
    .unlocked_ioctl = control,
    .fadvise = advise,
    .llseek = no_llseek,
};

static struct miscdevice device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "m3ipc",
    .fops = &operations,
    .mode = 0666,
};

static int __init start(void)
{
    int error;

    BUILD_BUG_ON(M3IPC_CALL_REPLY - M3IPC_CALL_SEND != 4);
    error = start_bindings();
    if (error)
        return error;
    error = start_proc();
    if (!error) {
        error = misc_register(&device);
        if (error)
            stop_proc();
    }
    if (error)
        stop_bindings();
    return error;
}

static void __exit stop(void)
{
    misc_deregister(&device);
    end_node();
    stop_proc();
    stop_bindings();
}

module_init(start);
module_exit(stop);
