// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who waits until somebody is bound, or no longer is. Those who bind wake the variable that is waited for: the process's signal structure, or the slot. */
#include <linux/wait_bit.h>
#include "module.h"

/* Waits until `condition` holds, which wake_up_var(var) tells of. Returns 0 or the error that ended the wait. */
#define WAIT_FOR(var, condition, limit_ms)                                                                                        \
    ({                                                                                                                            \
        long limit = (limit_ms) < 0 ? MAX_SCHEDULE_TIMEOUT : msecs_to_jiffies(min(limit_ms, (long)INT_MAX)) + 1;                   \
        long left = ___wait_var_event(var, ___wait_cond_timeout(condition), TASK_INTERRUPTIBLE, 0, limit,                         \
                                      __ret = schedule_timeout(__ret));                                                           \
        left == -ERESTARTSYS ? -ERESTARTNOHAND : left ? 0 : EMOLTIMEDOUT;                                                          \
    })

/* Tells where the caller is bound. */
static bool is_bound(long *endpoint)
{
    struct member *member;

    rcu_read_lock();
    member = own_member();
    if (member)
        *endpoint = READ_ONCE(member->slot->endpoint);
    rcu_read_unlock();
    return member;
}

/* `wait4bind`. */
int wait_for_own_binding(long limit_ms, long *endpoint)
{
    if (is_bound(endpoint))
        return 0;
    if (READ_ONCE(node.number) < 0)
        return EMOLDRVSINIT;
    if (!limit_ms)
        return EMOLAGAIN;
    return WAIT_FOR(current->signal, is_bound(endpoint), limit_ms);
}

/* Whether the occupant of a slot has this name. */
static bool has_occupant(struct slot *slot, int endpoint)
{
    return smp_load_acquire(&slot->member) && READ_ONCE(slot->endpoint) == endpoint;
}

/* `wait4bindep`, `wait4unbind`. */
int wait_for_endpoint(int endpoint, bool bound, long limit_ms, long *value)
{
    struct container *container = NULL;
    struct member *me;
    struct slot *slot;
    int error = EMOLNOTBIND;

    rcu_read_lock();
    me = own_member();
    if (me && kref_get_unless_zero(&me->container->refs)) {
        container = me->container;
        error = slot_of_endpoint(container, endpoint, &slot);
    }
    rcu_read_unlock();
    if (!error && has_occupant(slot, endpoint) != bound) {
        if (limit_ms)
            error = WAIT_FOR(slot, has_occupant(slot, endpoint) == bound || READ_ONCE(container->has_ended), limit_ms);
        else
            error = EMOLAGAIN;
        if (!error && has_occupant(slot, endpoint) != bound)
            error = EMOLNOTBIND;
    }
    *value = endpoint;
    if (container)
        put_container(container);
    return error;
}
