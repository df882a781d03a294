/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the files of the module share.
 *
 * A container has 256 slots; a process or thread that is bound in one is its member. All calls are made on behalf of the caller's member, which is
 * found by its process (or its thread, if that was bound itself) in a hash table.
 *
 * Locks, in the order in which they are taken; all but the first are spinlocks:
 *   node.mutex          starting and ending the node and containers, their descriptors, rights
 *   container.changes   who is bound where: binding and unbinding
 *   members_lock        the table of members, in binding.c
 *   slot.lock           all that its member does; two of them in ascending order of slots, a third never
 *   container.circles   adding to who waits for whom, so that of two waits that close a circle one sees the other
 * What moves between two members moves under the locks of both, so pairs do not hold each other up
 * (docs/adr/0080-pairs-of-locks-in-the-module-of-linux.md).
 *
 * Members and containers are found under RCU. Who sleeps has a reference to its member, and that one to its container.
 *
 * Invariants: a member's peer is bound, or its wait has ended. A member that waits to send is in its peer's queue, and only there. Nobody waits with
 * something there that it would take. The rules are those of lib/m3ipc/src/rendezvous.
 */
#ifndef M3IPC_MODULE_H
#define M3IPC_MODULE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include "m3ipc.h"

enum { SLOTS = NR_TASKS + NR_PROCS };

/* What a member does. */
enum doing {
    RUNNING,
    /* It waits until its peer takes its message, and then returns, or awaits the answer. */
    SENDING,
    ASKING,
    /* It waits for a message of its peer, or of anybody if it has none. */
    RECEIVING,
    /* The same for the answer of its peer, which has taken its message. */
    AWAITING,
};

/* A notification that is pending. */
struct note {
    u64 value;
    u64 time_ns;
};

struct slot {
    spinlock_t lock;
    /* Of the occupant, or of the last one. */
    int endpoint;
    struct member *member;
    struct container *container;
};

/* A process or thread that is bound. */
struct member {
    /* What changes with every message comes first. */
    struct slot *slot;
    enum doing doing;
    /* The end of a wait: result, and the message if it has received one. */
    bool ended;
    bool takes_notes;
    /* Its rights leave somebody out. */
    bool is_restricted;
    int result;
    /* Whom it waits for, if that is one. */
    struct slot *peer;
    /* Whom it has sent to last. */
    struct slot *last;
    /* Who makes a call that waits, or has been interrupted by a stop and will go on with it; NULL: nobody. */
    struct task_struct *caller;
    /* That call, to know it again: its number, and where its message is. */
    unsigned int call;
    const message __user *place;
    /* When the wait ends; 0: never. Of a call that has been interrupted. */
    ktime_t end;
    /* Members that wait to send to it, in the order in which they came; and its place in such a queue. */
    struct list_head senders;
    struct list_head in_queue;
    /* Counts waits: another one has another number. */
    unsigned long waits;
    unsigned long sent;
    message m;
    unsigned long pending[SLOTS / BITS_PER_LONG];
    /* By source; only of those who may be notified while they do not wait. */
    struct note *notes;

    struct kref refs;
    struct rcu_head rcu;
    struct hlist_node hash;
    /* The task of a thread that was bound itself, the signal structure of a process; NULL for one of another node. */
    const void *key;
    struct container *container;
    struct slot *leader;
    /* How many threads of the process it leads are bound. */
    int threads;
    struct pid *pid;
    int node;
    unsigned int flags;
    unsigned long copies;
    priv_usr_t rights;
    char name[MAXPROCNAME];
} ____cacheline_aligned_in_smp;

struct container {
    struct rcu_head rcu;
    spinlock_t changes;
    spinlock_t circles;
    bool has_ended;
    VM_usr_t info;
    struct kref refs;
    struct proc_dir_entry *proc;
    struct slot slots[SLOTS];
};

/* This node. */
struct this_node {
    struct mutex mutex;
    /* -1: not started. */
    int number;
    drvs_usr_t limits;
    struct container __rcu *containers[NR_VMS];
};
extern struct this_node node;

static inline int number_of(const struct slot *slot)
{
    return (int)(slot - slot->container->slots) - NR_TASKS;
}

static inline int index_of(const struct slot *slot)
{
    return slot - slot->container->slots;
}

static inline void lock_two(struct slot *one, struct slot *other)
{
    if (one > other)
        swap(one, other);
    spin_lock(&one->lock);
    spin_lock_nested(&other->lock, SINGLE_DEPTH_NESTING);
}

static inline void unlock_two(struct slot *one, struct slot *other)
{
    spin_unlock(&one->lock);
    spin_unlock(&other->lock);
}

/* main.c */
bool is_admin(void);
bool may_join(void);
bool admits(const VM_usr_t *vm);

/* node.c */
int init_node(int number, const drvs_usr_t __user *asked);
int end_node(void);
int tell_node(drvs_usr_t __user *to);
int init_container(const VM_usr_t __user *asked);
int end_container(int vmid);
int tell_container(int vmid, VM_usr_t __user *to);
int log_container(int vmid);
int set_rights(int vmid, int endpoint, const priv_usr_t __user *from);
int tell_rights(int vmid, int endpoint, priv_usr_t __user *to);
int tell_other_node(int number, node_usr_t __user *to);
int change_nodes(int vmid, int number, bool add);
int serve_node(int number, bool up);
int check_node(int number);
void describe_container(struct container *container, VM_usr_t *to);
void describe_node(int number, node_usr_t *to);
struct container *get_container(int vmid);
void put_container(struct container *container);

/* binding.c */
int start_bindings(void);
void stop_bindings(void);
int bind_caller(int vmid, int number, bool as_thread, long *endpoint);
int bind_other(int vmid, int pid, int number, long *endpoint);
int bind_remote(int vmid, int endpoint, int node_number, const char __user *name, long *bound);
int bind_stand_in(int vmid, int pid, int endpoint, int node_number, unsigned int flags, long *bound);
int unbind(int vmid, int endpoint);
int endpoint_of(int pid, long *endpoint);
void unbind_all(struct container *container);
struct member *own_member(void);
void put_member(struct member *member);
int slot_of_number(struct container *container, int number, struct slot **slot);
int slot_of_endpoint(struct container *container, int endpoint, struct slot **slot);
int locate(const struct slot *slot, int endpoint);

/* wait.c */
int wait_for_own_binding(long limit_ms, long *endpoint);
int wait_for_endpoint(int endpoint, bool bound, long limit_ms, long *value);

/* describe.c */
int tell_process(int vmid, int number, proc_usr_t __user *to);
int log_processes(int vmid);
void describe_process(struct slot *slot, proc_usr_t *to);

/* exchange.c */
int send_message(unsigned int call, int endpoint, long limit_ms, message __user *place);
int receive_message(unsigned int call, int endpoint, long limit_ms, message __user *place);
int reply_message(int endpoint, const message __user *place);
int notify(int endpoint, int value);
int notify_as(int number, int endpoint);
int notify_hardware(int vmid, int endpoint);
int wake_member(int vmid, int endpoint);
void end_member(struct member *member, int result, struct task_struct **sleeper);
void fail_wait(struct member *member, int error);
void end_waits_for(struct slot *gone);
bool drop_suspended(struct member *member, struct task_struct *caller);

/* copy.c */
int copy_block(int from, unsigned long source, int to, unsigned long target, int bytes);

/* proc.c */
int start_proc(void);
void stop_proc(void);
struct proc_dir_entry *make_proc(int vmid);

#endif
