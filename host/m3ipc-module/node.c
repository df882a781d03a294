// SPDX-License-Identifier: MIT OR GPL-2.0
/* This node and its containers: started, described, ended; and the rights of members. What may be asked for is as in lib/m3ipc/src/settings.rs. */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "module.h"

struct this_node node = {.mutex = __MUTEX_INITIALIZER(node.mutex), .number = -1};

static const drvs_usr_t largest = {NR_VMS, NR_NODES, NR_PROCS, NR_TASKS, NR_SYS_PROCS, MAXCOPYLEN, MAXCOPYLEN, 0, M3IPC_VERSION};

static bool is_within(int asked, int most)
{
    return asked >= 1 && asked <= most;
}

/* `drvs_init`. */
int init_node(int number, const drvs_usr_t __user *asked)
{
    drvs_usr_t limits = largest;
    int error = 0;

    if (asked && copy_from_user(&limits, asked, sizeof limits))
        return EMOLFAULT;
    limits.d_version = M3IPC_VERSION;
    mutex_lock(&node.mutex);
    if (node.number >= 0)
        error = EMOLDRVSBUSY;
    else if (!is_within(limits.d_nr_vms, NR_VMS) || !is_within(limits.d_nr_nodes, NR_NODES) || !is_within(limits.d_nr_procs, NR_PROCS) ||
             !is_within(limits.d_nr_tasks, NR_TASKS) || !is_within(limits.d_nr_sysprocs, min(NR_SYS_PROCS, limits.d_nr_procs)) ||
             !is_within(limits.d_max_copybuf, MAXCOPYLEN) || !is_within(limits.d_max_copylen, MAXCOPYLEN) || number < 0 ||
             number >= limits.d_nr_nodes)
        error = EMOLRANGE;
    if (!error) {
        node.limits = limits;
        WRITE_ONCE(node.number, number);
    }
    mutex_unlock(&node.mutex);
    return error;
}

/* Takes a container out of the table, ends what is in it, and lets it go. The node is locked. */
static void end_one(int vmid)
{
    struct container *container = rcu_dereference_protected(node.containers[vmid], lockdep_is_held(&node.mutex));

    if (!container)
        return;
    RCU_INIT_POINTER(node.containers[vmid], NULL);
    unbind_all(container);
    proc_remove(container->proc);
    put_container(container);
}

/* `drvs_end`. */
int end_node(void)
{
    int error = 0, i;

    mutex_lock(&node.mutex);
    if (node.number < 0)
        error = EMOLDRVSINIT;
    for (i = 0; !error && i < NR_VMS; i++)
        end_one(i);
    WRITE_ONCE(node.number, -1);
    mutex_unlock(&node.mutex);
    return error;
}

/* `getdrvsinfo`. */
int tell_node(drvs_usr_t __user *to)
{
    drvs_usr_t limits;
    int number;

    mutex_lock(&node.mutex);
    limits = node.limits;
    number = node.number;
    mutex_unlock(&node.mutex);
    if (number < 0)
        return EMOLDRVSINIT;
    return copy_to_user(to, &limits, sizeof limits) ? EMOLFAULT : 0;
}

/* Returns a container with a reference, or an error. */
struct container *get_container(int vmid)
{
    struct container *container;

    if (READ_ONCE(node.number) < 0)
        return ERR_PTR(EMOLDRVSINIT);
    if (vmid < 0 || vmid >= READ_ONCE(node.limits.d_nr_vms))
        return ERR_PTR(EMOLBADVMID);
    rcu_read_lock();
    container = rcu_dereference(node.containers[vmid]);
    if (!container || !kref_get_unless_zero(&container->refs))
        container = ERR_PTR(EMOLVMNOTRUN);
    rcu_read_unlock();
    return container;
}

static void release_container(struct kref *refs)
{
    struct container *container = container_of(refs, struct container, refs);

    kvfree_rcu(container, rcu);
}

void put_container(struct container *container)
{
    kref_put(&container->refs, release_container);
}

/* Completes what is asked for as a container. The node is locked. */
static int accept(VM_usr_t *vm)
{
    int *counts[] = {&vm->vm_nr_procs, &vm->vm_nr_tasks, &vm->vm_nr_sysprocs};
    const int most[] = {node.limits.d_nr_procs, node.limits.d_nr_tasks, node.limits.d_nr_sysprocs};
    size_t length = strnlen(vm->vm_name, sizeof vm->vm_name);
    int i;

    if (vm->vm_vmid < 0 || vm->vm_vmid >= node.limits.d_nr_vms)
        return EMOLRANGE;
    for (i = 0; i < ARRAY_SIZE(counts); i++) {
        if (!*counts[i])
            *counts[i] = most[i];
        if (!is_within(*counts[i], most[i]))
            return EMOLRANGE;
    }
    vm->vm_nodes |= 1u << node.number;
    if ((u64)vm->vm_nodes >> node.limits.d_nr_nodes)
        return EMOLBADNODEID;
    if (!length || length == sizeof vm->vm_name)
        return length ? EMOLRANGE : EMOLINVAL;
    memset(vm->vm_name + length, 0, sizeof vm->vm_name - length);
    vm->vm_nr_nodes = hweight32(vm->vm_nodes);
    vm->vm_flags = VM_RUNNING | (vm->vm_flags & VM_OPEN);
    vm->vm_bound = 0;
    return 0;
}

static struct container *make_container(const VM_usr_t *info)
{
    struct container *container = kvzalloc(sizeof *container, GFP_KERNEL_ACCOUNT);
    int i;

    if (!container)
        return NULL;
    kref_init(&container->refs);
    spin_lock_init(&container->changes);
    spin_lock_init(&container->circles);
    container->info = *info;
    for (i = 0; i < SLOTS; i++) {
        spin_lock_init(&container->slots[i].lock);
        container->slots[i].container = container;
        container->slots[i].endpoint = i - NR_TASKS;
    }
    container->proc = make_proc(info->vm_vmid);
    return container;
}

/* `vm_init`. */
int init_container(const VM_usr_t __user *asked)
{
    struct container *container;
    VM_usr_t vm;
    int error;

    if (copy_from_user(&vm, asked, sizeof vm))
        return EMOLFAULT;
    mutex_lock(&node.mutex);
    error = node.number < 0 ? EMOLDRVSINIT : accept(&vm);
    if (!error && rcu_access_pointer(node.containers[vm.vm_vmid]))
        error = EMOLVMRUN;
    if (!error) {
        container = make_container(&vm);
        if (container)
            rcu_assign_pointer(node.containers[vm.vm_vmid], container);
        else
            error = EMOLNOMEM;
    }
    mutex_unlock(&node.mutex);
    return error;
}

/* `vm_end`. */
int end_container(int vmid)
{
    struct container *container;

    mutex_lock(&node.mutex);
    container = get_container(vmid);
    if (!IS_ERR(container)) {
        end_one(vmid);
        put_container(container);
    }
    mutex_unlock(&node.mutex);
    return PTR_ERR_OR_ZERO(container);
}

void describe_container(struct container *container, VM_usr_t *to)
{
    int i;

    *to = container->info;
    to->vm_bound = 0;
    for (i = 0; i < SLOTS; i++)
        to->vm_bound += !!READ_ONCE(container->slots[i].member);
}

/* `getvminfo`. */
int tell_container(int vmid, VM_usr_t __user *to)
{
    struct container *container = get_container(vmid);
    VM_usr_t info;

    if (IS_ERR(container))
        return PTR_ERR(container);
    describe_container(container, &info);
    put_container(container);
    return copy_to_user(to, &info, sizeof info) ? EMOLFAULT : 0;
}

/* `vm_dump`. */
int log_container(int vmid)
{
    struct container *container = get_container(vmid);
    VM_usr_t info;

    if (IS_ERR(container))
        return PTR_ERR(container);
    describe_container(container, &info);
    put_container(container);
    pr_info_ratelimited("m3ipc: container %d %.16s: %d processes, %d tasks, %d of the system; nodes %x, %d bound\n", vmid, info.vm_name,
                        info.vm_nr_procs, info.vm_nr_tasks, info.vm_nr_sysprocs, info.vm_nodes, info.vm_bound);
    return 0;
}

/* Finds the member with this name and locks its slot. */
static struct slot *lock_member(struct container *container, int endpoint, int *error)
{
    struct slot *slot = NULL;

    *error = slot_of_endpoint(container, endpoint, &slot);
    if (*error)
        return NULL;
    spin_lock(&slot->lock);
    *error = locate(slot, endpoint);
    if (*error)
        spin_unlock(&slot->lock);
    return *error ? NULL : slot;
}

static void restrict_member(struct member *member, const priv_usr_t *rights)
{
    member->rights = *rights;
    member->is_restricted = memchr_inv(rights->priv_ipc_from, 0xff, sizeof rights->priv_ipc_from) ||
                            memchr_inv(rights->priv_ipc_to, 0xff, sizeof rights->priv_ipc_to);
}

/* `setpriv`. */
int set_rights(int vmid, int endpoint, const priv_usr_t __user *from)
{
    struct container *container = get_container(vmid);
    struct note *notes = NULL;
    struct slot *slot;
    priv_usr_t rights;
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    if (copy_from_user(&rights, from, sizeof rights)) {
        put_container(container);
        return EMOLFAULT;
    }
    // Who may be notified from now on may not have had room for it.
    notes = kcalloc(SLOTS, sizeof *notes, GFP_KERNEL_ACCOUNT);
    rcu_read_lock();
    slot = lock_member(container, endpoint, &error);
    if (slot) {
        if (rights.priv_id < 0 || rights.priv_id >= SLOTS || rights.priv_level < USER_PRIV || rights.priv_level > PROXY_PRIV)
            error = EMOLRANGE;
        else if (!notes)
            error = EMOLNOMEM;
        else
            restrict_member(slot->member, &rights);
        if (!error && !slot->member->notes)
            swap(slot->member->notes, notes);
        spin_unlock(&slot->lock);
    }
    rcu_read_unlock();
    kfree(notes);
    put_container(container);
    return error;
}

/* `getpriv`. */
int tell_rights(int vmid, int endpoint, priv_usr_t __user *to)
{
    struct container *container = get_container(vmid);
    struct slot *slot;
    priv_usr_t rights;
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    rcu_read_lock();
    slot = lock_member(container, endpoint, &error);
    if (slot) {
        rights = slot->member->rights;
        spin_unlock(&slot->lock);
    }
    rcu_read_unlock();
    put_container(container);
    if (!error && copy_to_user(to, &rights, sizeof rights))
        error = EMOLFAULT;
    return error;
}

/* Checks that there can be a node with this number. */
int check_node(int number)
{
    if (READ_ONCE(node.number) < 0)
        return EMOLDRVSINIT;
    return number >= 0 && number < READ_ONCE(node.limits.d_nr_nodes) ? 0 : EMOLBADNODEID;
}

void describe_node(int number, node_usr_t *to)
{
    bool is_own = number == node.number;
    int i;

    *to = (node_usr_t){.n_nodeid = number, .n_flags = is_own ? NODE_ATTACHED : 0, .n_proxies = NONE};
    if (is_own)
        strscpy_pad(to->n_name, M3IPC_OWN_NODE, sizeof to->n_name);
    rcu_read_lock();
    for (i = 0; i < NR_VMS; i++) {
        struct container *container = rcu_dereference(node.containers[i]);

        if (container && READ_ONCE(container->info.vm_nodes) & 1u << number)
            to->n_vms |= 1u << i;
    }
    rcu_read_unlock();
}

/* `getnodeinfo`. */
int tell_other_node(int number, node_usr_t __user *to)
{
    int error = check_node(number);
    node_usr_t info;

    if (error)
        return error;
    describe_node(number, &info);
    return copy_to_user(to, &info, sizeof info) ? EMOLFAULT : 0;
}

/* Whether a process of another node is bound in a container. */
static bool is_used(struct container *container, int number)
{
    bool used = false;
    int i;

    rcu_read_lock();
    for (i = 0; i < SLOTS; i++) {
        struct member *member = READ_ONCE(container->slots[i].member);

        used |= member && member->node == number;
    }
    rcu_read_unlock();
    return used;
}

/* `add_node`, `del_node`. */
int change_nodes(int vmid, int number, bool add)
{
    struct container *container = get_container(vmid);
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    mutex_lock(&node.mutex);
    error = check_node(number);
    if (!error && !(container->info.vm_nodes & 1u << number) != add)
        error = add ? EMOLVMNODE : EMOLNOVMNODE;
    if (!error && !add && (number == node.number || is_used(container, number)))
        error = EMOLNODEBUSY;
    if (!error) {
        WRITE_ONCE(container->info.vm_nodes, container->info.vm_nodes ^ 1u << number);
        container->info.vm_nr_nodes += add ? 1 : -1;
    }
    mutex_unlock(&node.mutex);
    put_container(container);
    return error;
}

/* `node_up`, `node_down`: there are no proxies that could serve a node. */
int serve_node(int number, bool up)
{
    int error = check_node(number);

    return error ? error : number == READ_ONCE(node.number) ? EMOLNODEBUSY : up ? EMOLNOPROXY : EMOLNODEFREE;
}
