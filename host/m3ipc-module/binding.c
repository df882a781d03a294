// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who is bound where: binding and unbinding, by call or because a process has ended. This file is long because all of that changes one table.
 *
 * A process is known by its signal structure, which its threads share, and a thread that was bound itself by its task. The kernel's trace point for
 * the end of tasks tells when one must be forgotten, before its parent is told and whatever files it has open (docs/adr/0081-ends-of-tasks-by-a-trace-point.md).
 */
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>
#include "module.h"

/* Members by key. */
static DEFINE_HASHTABLE(members, 10);
static DEFINE_SPINLOCK(members_lock);
static struct kmem_cache *cache;
static struct tracepoint *task_ends;

static struct member *member_of(const void *key)
{
    struct member *member;

    hash_for_each_possible_rcu(members, member, hash, (unsigned long)key)
        if (member->key == key)
            return member;
    return NULL;
}

/* The caller's member, under RCU: its thread's own, or its process's. */
struct member *own_member(void)
{
    struct member *member = member_of(current->signal);

    if (unlikely(member && READ_ONCE(member->threads))) {
        struct member *own = member_of(current);

        return own ? own : member;
    }
    return member;
}

static void free_member(struct rcu_head *rcu)
{
    struct member *member = container_of(rcu, struct member, rcu);

    // Who has found the member under RCU may ask whose it is.
    put_pid(member->pid);
    kfree(member->notes);
    kmem_cache_free(cache, member);
}

static void release_member(struct kref *refs)
{
    struct member *member = container_of(refs, struct member, refs);

    put_container(member->container);
    call_rcu(&member->rcu, free_member);
}

void put_member(struct member *member)
{
    kref_put(&member->refs, release_member);
}

/* Finds a slot by its number. */
int slot_of_number(struct container *container, int number, struct slot **slot)
{
    if (number < -container->info.vm_nr_tasks || number >= container->info.vm_nr_procs)
        return EMOLRANGE;
    *slot = &container->slots[number + NR_TASKS];
    return 0;
}

/* Finds the slot that an endpoint names, whoever is in it. */
int slot_of_endpoint(struct container *container, int endpoint, struct slot **slot)
{
    unsigned int index;

    if (unlikely(endpoint == NONE || endpoint == ANY || endpoint == SELF))
        return EMOLBADSRCDST;
    if (unlikely(endpoint < -NR_TASKS || endpoint > INT_MAX - NR_TASKS))
        return EMOLENDPOINT;
    index = (unsigned int)(endpoint + NR_TASKS) % _ENDPOINT_DISTANCE;
    if (index >= SLOTS)
        return EMOLENDPOINT;
    *slot = &container->slots[index];
    return 0;
}

/* Checks that the occupant of a slot has this name; the slot is locked. */
int locate(const struct slot *slot, int endpoint)
{
    if (unlikely(slot->endpoint != endpoint))
        return EMOLENDPOINT;
    return likely(slot->member) ? 0 : EMOLDSTDIED;
}

/* The name of a slot's next occupant. */
static int next_endpoint(const struct slot *slot)
{
    int number = number_of(slot), generation = _ENDPOINT_G(slot->endpoint);

    if (number < NR_SYS_PROCS)
        return number;
    return _ENDPOINT(generation < _ENDPOINT_LAST_GENERATION ? generation + 1 : 1, number);
}

/* What a process may that has just been bound: all, and more in slots of tasks and system processes. */
static void give_new_rights(const struct slot *slot, priv_usr_t *rights)
{
    int number = number_of(slot);

    memset(rights, 0xff, sizeof *rights);
    rights->priv_id = number < 0 ? index_of(slot) : number;
    rights->priv_warn = NONE;
    rights->priv_level = number < 0 ? TASK_PRIV : number < NR_SYS_PROCS ? SERVER_PRIV : USER_PRIV;
    rights->priv_alarm = 0;
}

static struct member *make_member(struct slot *slot, int node_number, unsigned int flags)
{
    struct member *member = kmem_cache_zalloc(cache, GFP_KERNEL_ACCOUNT);

    if (!member)
        return NULL;
    kref_init(&member->refs);
    INIT_LIST_HEAD(&member->senders);
    INIT_LIST_HEAD(&member->in_queue);
    member->slot = slot;
    member->leader = slot;
    member->node = node_number;
    member->flags = flags;
    give_new_rights(slot, &member->rights);
    if (member->rights.priv_id < NR_SYS_PROCS)
        member->notes = kcalloc(SLOTS, sizeof *member->notes, GFP_KERNEL_ACCOUNT);
    member->container = slot->container;
    kref_get(&slot->container->refs);
    return member;
}

/* Puts a member into its vacant slot and enters it in the table, unless its process or thread is there already. The slot comes first: who finds itself
 * in the table makes calls. */
static int enter(struct member *member, int endpoint)
{
    struct slot *slot = member->slot;
    int error = 0;

    spin_lock(&members_lock);
    if (member->key && member_of(member->key)) {
        error = EMOLBINDTYPE;
    } else {
        spin_lock(&slot->lock);
        slot->endpoint = endpoint == NONE ? next_endpoint(slot) : endpoint;
        smp_store_release(&slot->member, member);
        spin_unlock(&slot->lock);
        if (member->key)
            hash_add_rcu(members, &member->hash, (unsigned long)member->key);
    }
    spin_unlock(&members_lock);
    return error;
}

/* Makes a slot vacant, under its container's lock for changes: whoever waits for it is told. */
static void vacate(struct slot *slot)
{
    struct member *member = slot->member;

    if (member->key) {
        spin_lock(&members_lock);
        hash_del_rcu(&member->hash);
        spin_unlock(&members_lock);
    }
    if (member->leader != slot && member->leader->member)
        WRITE_ONCE(member->leader->member->threads, member->leader->member->threads - 1);
    fail_wait(member, EMOLNOTBIND);
    end_waits_for(slot);
    wake_up_var(slot);
    put_member(member);
}

/* Makes a slot vacant, and those of the threads that its occupant leads. */
static void vacate_group(struct slot *slot)
{
    struct container *container = slot->container;
    struct slot *other;

    for (other = container->slots; slot->member->threads && other < container->slots + SLOTS; other++)
        if (other != slot && other->member && other->member->leader == slot)
            vacate(other);
    vacate(slot);
}

/* Ends a binding, if it has not ended yet. */
static void unbind_member(struct member *member)
{
    struct container *container = member->container;

    spin_lock(&container->changes);
    if (member->slot->member == member)
        vacate_group(member->slot);
    spin_unlock(&container->changes);
}

/* Puts a member into its slot, which gets this name. Its reference is the slot's then; if that fails, it is dropped. */
static int occupy(struct member *member, int endpoint)
{
    struct slot *slot = member->slot;
    struct container *container = slot->container;
    int error = 0;

    spin_lock(&container->changes);
    if (container->has_ended)
        error = EMOLVMNOTRUN;
    else if (slot->member)
        error = EMOLSLOTUSED;
    else if (member->leader != slot && (!member->leader->member || member->leader->member->key != current->signal))
        error = EMOLGRPLEADER;
    else
        error = enter(member, endpoint);
    if (!error && member->leader != slot)
        WRITE_ONCE(member->leader->member->threads, member->leader->member->threads + 1);
    spin_unlock(&container->changes);
    if (error)
        put_member(member);
    return error;
}

/* Puts a process of this node into a slot: its threads share it. Whoever waits for that is woken. */
static int occupy_as(struct member *member, struct task_struct *task, int endpoint, long *bound)
{
    int error;

    member->key = task->signal;
    member->pid = get_task_pid(task, PIDTYPE_TGID);
    kref_get(&member->refs);
    error = occupy(member, endpoint);
    // One that has ended meanwhile has not been seen by task_ended, or is seen here.
    smp_mb();
    if (!error && !atomic_read(&task->signal->live)) {
        unbind_member(member);
        error = EMOLBADPID;
    }
    if (!error) {
        *bound = member->slot->endpoint;
        wake_up_var(task->signal);
        wake_up_var(member->slot);
    }
    put_member(member);
    return error;
}

/* `bind`: the caller's process. */
static int bind_process(struct container *container, int number, struct task_struct *task, long *endpoint)
{
    struct member *member;
    struct slot *slot;
    int error = slot_of_number(container, number, &slot);

    if (error)
        return error;
    member = make_member(slot, node.number, MIS_GRPLEADER);
    return member ? occupy_as(member, task, NONE, endpoint) : EMOLNOMEM;
}

/* Finds the slot of the caller's group leader in a container. */
static int find_leader(struct container *container, struct slot **leader)
{
    int error = EMOLGRPLEADER;
    struct member *member;

    rcu_read_lock();
    member = member_of(current->signal);
    if (member_of(current) || (member && thread_group_leader(current)))
        error = EMOLBINDTYPE;
    else if (member && member->container == container) {
        *leader = member->slot;
        error = 0;
    }
    rcu_read_unlock();
    return error;
}

/* `tbind`: the calling thread. */
static int bind_thread(struct container *container, int number, long *endpoint)
{
    struct slot *slot, *leader;
    struct member *member;
    int error = slot_of_number(container, number, &slot);

    if (!error)
        error = find_leader(container, &leader);
    if (error)
        return error;
    member = make_member(slot, node.number, 0);
    if (!member)
        return EMOLNOMEM;
    member->leader = leader;
    member->key = current;
    member->pid = get_task_pid(current, PIDTYPE_PID);
    error = occupy(member, NONE);
    if (!error) {
        *endpoint = slot->endpoint;
        wake_up_var(slot);
    }
    return error;
}

int bind_caller(int vmid, int number, bool as_thread, long *endpoint)
{
    struct container *container = get_container(vmid);
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    if (!may_join() || !admits(&container->info))
        error = EMOLPERM;
    else
        error = as_thread ? bind_thread(container, number, endpoint) : bind_process(container, number, current, endpoint);
    put_container(container);
    return error;
}

/* Whether a process is the caller's own, as its user. */
static bool is_own(struct task_struct *task)
{
    const struct cred *cred;
    bool own;

    rcu_read_lock();
    cred = __task_cred(task);
    own = uid_eq(current_euid(), cred->uid) && uid_eq(cred->uid, cred->euid) && uid_eq(cred->uid, cred->suid);
    rcu_read_unlock();
    return own;
}

/* Finds a process by its number in the caller's namespace. */
static struct task_struct *find_process(int pid)
{
    struct pid *found = pid > 0 ? find_get_pid(pid) : NULL;
    struct task_struct *task = found ? get_pid_task(found, PIDTYPE_TGID) : NULL;

    put_pid(found);
    if (task && task->flags & PF_KTHREAD) {
        put_task_struct(task);
        task = NULL;
    }
    return task;
}

/* `lclbind`: another process. */
int bind_other(int vmid, int pid, int number, long *endpoint)
{
    struct container *container = get_container(vmid);
    struct task_struct *task;
    struct slot *slot;
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    error = slot_of_number(container, number, &slot);
    if (!error) {
        task = find_process(pid);
        if (!task)
            error = EMOLBADPID;
        else if (!is_admin() && !(may_join() && is_own(task) && admits(&container->info)))
            error = EMOLPERM;
        else
            error = bind_process(container, number, task, endpoint);
        if (task)
            put_task_struct(task);
    }
    put_container(container);
    return error;
}

/* Finds the slot that a process is bound in by a name that it has elsewhere. */
static int find_named(struct container *container, int endpoint, struct slot **slot)
{
    int error = slot_of_endpoint(container, endpoint, slot);

    if (!error)
        error = slot_of_number(container, number_of(*slot), slot);
    if (!error && number_of(*slot) < NR_SYS_PROCS && endpoint != number_of(*slot))
        error = EMOLENDPOINT;
    return error;
}

/* Checks that a container extends to a node that is another one. */
static int check_other_node(struct container *container, int number)
{
    int error = check_node(number);

    if (error)
        return error;
    if (number == node.number)
        return EMOLLCLPROC;
    return READ_ONCE(container->info.vm_nodes) & 1u << number ? 0 : EMOLNOVMNODE;
}

/* `rmtbind`. */
int bind_remote(int vmid, int endpoint, int node_number, const char __user *name, long *bound)
{
    struct container *container = get_container(vmid);
    char text[MAXPROCNAME];
    struct member *member;
    struct slot *slot;
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    error = find_named(container, endpoint, &slot);
    if (!error)
        error = check_other_node(container, node_number);
    if (!error && copy_from_user(text, name, sizeof text))
        error = EMOLFAULT;
    if (!error && (!text[0] || text[MAXPROCNAME - 1]))
        error = text[0] ? EMOLRANGE : EMOLINVAL;
    if (!error) {
        member = make_member(slot, node_number, 0);
        error = EMOLNOMEM;
        if (member) {
            strscpy_pad(member->name, text, sizeof member->name);
            error = occupy(member, endpoint);
        }
    }
    if (!error) {
        *bound = endpoint;
        wake_up_var(slot);
    }
    put_container(container);
    return error;
}

/* `bkupbind`, `replbind`: a process of this node under the name of one of another. */
int bind_stand_in(int vmid, int pid, int endpoint, int node_number, unsigned int flags, long *bound)
{
    struct container *container = get_container(vmid);
    struct task_struct *task = NULL;
    struct member *member;
    struct slot *slot;
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    error = find_named(container, endpoint, &slot);
    if (!error && flags & MIS_RMTBACKUP)
        error = check_other_node(container, node_number);
    if (!error) {
        task = find_process(pid);
        error = task ? 0 : EMOLBADPID;
    }
    if (!error) {
        member = make_member(slot, node_number, flags);
        error = member ? occupy_as(member, task, endpoint, bound) : EMOLNOMEM;
    }
    if (task)
        put_task_struct(task);
    put_container(container);
    return error;
}

/* Whether the caller may end the binding of a member. */
static bool may_unbind(const struct member *member)
{
    struct task_struct *task;

    if (is_admin() || member->key == current->signal || member->key == current)
        return true;
    task = member->pid ? pid_task(member->pid, PIDTYPE_PID) : NULL;
    return task && (task->signal == current->signal || is_own(task));
}

/* `unbind`. */
int unbind(int vmid, int endpoint)
{
    struct container *container = get_container(vmid);
    struct member *member = NULL;
    struct slot *slot;
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    rcu_read_lock();
    if (endpoint == SELF) {
        member = member_of(current->signal);
        error = member && member->container == container ? 0 : EMOLNOTBIND;
    } else {
        error = slot_of_endpoint(container, endpoint, &slot);
        if (!error) {
            spin_lock(&slot->lock);
            error = locate(slot, endpoint);
            member = slot->member;
            spin_unlock(&slot->lock);
        }
        error = error == EMOLDSTDIED ? EMOLNOTBIND : error;
    }
    if (!error && !may_unbind(member))
        error = EMOLPERM;
    if (!error)
        unbind_member(member);
    rcu_read_unlock();
    put_container(container);
    return error;
}

/* `getep`. */
int endpoint_of(int pid, long *endpoint)
{
    struct member *member;
    struct task_struct *task;
    int error = EMOLNOTBIND;

    if (pid <= 0)
        return EMOLRANGE;
    rcu_read_lock();
    task = pid_task(find_vpid(pid), PIDTYPE_PID);
    if (!task) {
        error = EMOLBADPID;
    } else {
        member = member_of(task);
        if (!member)
            member = member_of(task->signal);
        if (member) {
            *endpoint = READ_ONCE(member->slot->endpoint);
            error = 0;
        }
    }
    rcu_read_unlock();
    return error;
}

/* Ends all bindings of a container, which gets no new ones, and the processes that were bound but for the caller's. */
void unbind_all(struct container *container)
{
    int i;

    for (i = 0; i < SLOTS; i++) {
        struct slot *slot = &container->slots[i];
        struct pid *pid = NULL;
        bool is_process = false;

        spin_lock(&container->changes);
        container->has_ended = true;
        if (slot->member) {
            pid = get_pid(slot->member->pid);
            is_process = slot->member->leader == slot && slot->member->key != current->signal;
            vacate_group(slot);
        }
        spin_unlock(&container->changes);
        // Those who wait for a binding here wait in vain.
        wake_up_var(slot);
        if (pid && is_process)
            kill_pid(pid, SIGPIPE, 1);
        put_pid(pid);
    }
}

/* A task ends; it may not sleep here. Threads come first, and the last one makes its process end. */
static void task_ended(void *data, struct task_struct *task)
{
    struct member *member;

    rcu_read_lock();
    member = member_of(task);
    if (member)
        unbind_member(member);
    member = member_of(task->signal);
    if (member && !atomic_read(&task->signal->live))
        unbind_member(member);
    else if (member)
        drop_suspended(member, task);
    rcu_read_unlock();
}

static void look_for_task_ends(struct tracepoint *point, void *found)
{
    if (!strcmp(point->name, "sched_process_exit"))
        *(struct tracepoint **)found = point;
}

int start_bindings(void)
{
    int error;

    cache = KMEM_CACHE(member, SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT);
    if (!cache)
        return -ENOMEM;
    for_each_kernel_tracepoint(look_for_task_ends, &task_ends);
    error = task_ends ? tracepoint_probe_register(task_ends, task_ended, NULL) : -ENODEV;
    if (error) {
        pr_err("m3ipc: the kernel does not tell of ends of tasks: it needs CONFIG_TRACEPOINTS\n");
        kmem_cache_destroy(cache);
    }
    return error;
}

/* No container is there any more, and nobody has the device open. */
void stop_bindings(void)
{
    tracepoint_probe_unregister(task_ends, task_ended, NULL);
    tracepoint_synchronize_unregister();
    // Members that are freed after a grace period of RCU.
    rcu_barrier();
    kmem_cache_destroy(cache);
}
