// SPDX-License-Identifier: MIT OR GPL-2.0
/* What is told of a process: by call, in the kernel's log, and to proc.c. */
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include "module.h"

/* Describes the occupant of a slot, under RCU. */
void describe_process(struct slot *slot, proc_usr_t *to)
{
    struct member *member;
    struct task_struct *task;
    struct slot *peer;

    *to = (proc_usr_t){.p_nr = number_of(slot), .p_endpoint = NONE, .p_vmid = slot->container->info.vm_vmid, .p_rts_flags = RTS_SLOT_FREE,
                       .p_lpid = -1, .p_nodeid = -1, .p_getfrom = NONE, .p_sendto = NONE, .p_waitmigr = NONE, .p_waitunbind = NONE,
                       .p_proxy = NONE, .p_leader = NONE};
    spin_lock(&slot->lock);
    member = slot->member;
    if (!member) {
        spin_unlock(&slot->lock);
        return;
    }
    peer = member->peer;
    to->p_endpoint = slot->endpoint;
    to->p_rts_flags = 0;
    if (member->doing == SENDING || member->doing == ASKING) {
        to->p_rts_flags |= RTS_SENDING;
        to->p_sendto = READ_ONCE(peer->endpoint);
    }
    if (member->doing == RECEIVING || member->doing == AWAITING || member->doing == ASKING) {
        to->p_rts_flags |= RTS_RECEIVING;
        to->p_getfrom = peer ? READ_ONCE(peer->endpoint) : ANY;
    }
    if (member->node != node.number)
        to->p_rts_flags |= RTS_REMOTE;
    to->p_nodeid = member->node;
    to->p_nodemap = 1u << member->node;
    to->p_misc_flags = member->flags | (find_first_bit(member->pending, SLOTS) < SLOTS ? MIS_NOTIFY : 0);
    to->p_leader = READ_ONCE(member->leader->endpoint);
    to->p_lclsent = member->sent;
    to->p_lclcopy = member->copies;
    memcpy(to->p_name, member->name, sizeof to->p_name);
    if (member->pid) {
        // A process that the caller's namespace does not know has no number in it.
        int pid = pid_nr_ns(member->pid, task_active_pid_ns(current));

        to->p_lpid = pid ? pid : -1;
        task = pid_task(member->pid, PIDTYPE_PID);
        // A process may execute another program after it was bound.
        if (task)
            strscpy_pad(to->p_name, task->comm, sizeof to->p_name);
    }
    spin_unlock(&slot->lock);
}

/* `getprocinfo`. */
int tell_process(int vmid, int number, proc_usr_t __user *to)
{
    struct container *container = get_container(vmid);
    proc_usr_t process;
    struct slot *slot;
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    error = slot_of_number(container, number, &slot);
    if (!error) {
        rcu_read_lock();
        describe_process(slot, &process);
        rcu_read_unlock();
        if (copy_to_user(to, &process, sizeof process))
            error = EMOLFAULT;
    }
    put_container(container);
    return error;
}

/* `proc_dump`. */
int log_processes(int vmid)
{
    struct container *container = get_container(vmid);
    int i;

    if (IS_ERR(container))
        return PTR_ERR(container);
    for (i = 0; i < SLOTS; i++) {
        proc_usr_t p;

        rcu_read_lock();
        describe_process(&container->slots[i], &p);
        rcu_read_unlock();
        if (!(p.p_rts_flags & RTS_SLOT_FREE))
            pr_info_ratelimited("m3ipc: container %d: slot %d is %d, %.16s, flags %x, from %d, to %d\n", vmid, p.p_nr, p.p_endpoint, p.p_name,
                                p.p_rts_flags, p.p_getfrom, p.p_sendto);
    }
    put_container(container);
    return 0;
}
