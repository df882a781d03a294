// SPDX-License-Identifier: MIT OR GPL-2.0
/* The rendezvous: the calls that move messages, what they wait for, and what ends a wait. This file is long because it is one state machine.
 *
 * A message goes from the sender's memory to its call, from there to the receiver's member, and from there to the receiver's memory: 64 bytes, three
 * times. The buffers in between are not cleared before they are filled, which would be a fourth. Who sleeps is told by its member (`ended`), which it
 * alone resets.
 *
 * A wait goes on while its process is stopped: the call returns to let the process stop and is made anew by the kernel (ERESTARTNOHAND), while the
 * member waits on ("suspended"). A signal with a handler ends it.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "module.h"

/* For a message on the stack that is filled before it is read: Debian's kernel would have it cleared first. */
#define UNCLEARED __attribute__((__uninitialized__))

/* The locks must be taken anew. */
enum { RETRY = 1 };

/* Copies a message in, by words: this is what every message costs. */
static inline int fetch(message *to, const message __user *from)
{
    const u64 __user *words = (const u64 __user *)from;
    u64 *own = (u64 *)to;
    int i;

    if (!user_access_begin(from, sizeof *from))
        return EMOLFAULT;
#pragma GCC unroll 8
    for (i = 0; i < sizeof *to / sizeof *own; i++)
        unsafe_get_user(own[i], &words[i], fault);
    user_access_end();
    return 0;
fault:
    user_access_end();
    return EMOLFAULT;
}

/* Whether a message can be read, and so mostly stored, there: asked before one is taken that could be given to nobody else then. */
static inline bool is_there(const message __user *place)
{
    const u64 __user *words = (const u64 __user *)place;
    u64 word;

    if (!user_access_begin(place, sizeof *place))
        return false;
    unsafe_get_user(word, &words[0], fault);
    unsafe_get_user(word, &words[sizeof *place / sizeof word - 1], fault);
    user_access_end();
    return true;
fault:
    user_access_end();
    return false;
}

/* Copies a message out. */
static inline int store(message __user *to, const message *m)
{
    u64 __user *words = (u64 __user *)to;
    const u64 *own = (const u64 *)m;
    int i;

    if (!user_access_begin(to, sizeof *to))
        return EMOLFAULT;
#pragma GCC unroll 8
    for (i = 0; i < sizeof *m / sizeof *own; i++)
        unsafe_put_user(own[i], &words[i], fault);
    user_access_end();
    return 0;
fault:
    user_access_end();
    return EMOLFAULT;
}

static bool is_queued(const struct member *member)
{
    return member->doing == SENDING || member->doing == ASKING;
}

/* Whether a member waits for a message that this slot's could be. */
static bool takes_from(const struct member *member, const struct slot *sender)
{
    if (member->doing == RECEIVING)
        return !member->peer || member->peer == sender;
    return member->doing == AWAITING && member->peer == sender;
}

/* Ends a wait. The member's slot is locked, and its peer's if it is queued there. */
void end_member(struct member *member, int result, struct task_struct **sleeper)
{
    if (is_queued(member))
        list_del_init(&member->in_queue);
    *sleeper = member->caller;
    member->doing = RUNNING;
    WRITE_ONCE(member->peer, NULL);
    member->result = result;
    smp_store_release(&member->ended, true);
}

/* Wakes who slept in a wait that has ended. It may be gone by now, but its task is not freed before the end of RCU's section. Who has only given way is
 * awake; it sees that its wait has ended before it sleeps (`sleep`). */
static void wake(struct task_struct *sleeper)
{
    if (!sleeper)
        return;
    smp_mb();
    if (READ_ONCE(sleeper->__state) != TASK_RUNNING)
        wake_up_process(sleeper);
}

/* Who should have the caller's processor while it waits, with a reference; NULL: nobody. That is the task of the member it waits for, or that it has
 * sent to last, if it is ready to run here. Who has a limit of time sleeps at once: its timer wakes it sooner than the scheduler lets it run again. Called
 * under RCU. */
static struct task_struct *next_to_run(struct member *me, const struct slot *peer, long limit_ms)
{
    const struct member *member;
    struct task_struct *task;

    if (limit_ms >= 0)
        return NULL;
    peer = peer ? peer : me->last;
    member = peer ? READ_ONCE(peer->member) : NULL;
    task = member ? READ_ONCE(member->caller) : NULL;
    if (member && !task)
        task = pid_task(member->pid, PIDTYPE_PID);
    if (!task || READ_ONCE(task->__state) != TASK_RUNNING || task_cpu(task) != raw_smp_processor_id())
        return NULL;
    return get_task_struct(task);
}

/* Lets another task run before the caller sleeps. If that ends the wait, neither of the two has left the scheduler's queue, nor had to be put there. The
 * scheduler refuses when the other one is far ahead with its share of the processor. */
static void give_way(struct task_struct *next)
{
    yield_to(next, false);
    put_task_struct(next);
}

static void begin_wait(struct member *me, enum doing doing, struct slot *peer)
{
    me->ended = false;
    me->doing = doing;
    WRITE_ONCE(me->peer, peer);
    me->waits++;
    me->caller = current;
    kref_get(&me->refs);
}

/* Whether a wait for `peer` would close a circle; if not, it is entered as the member's. */
static bool closes_circle(struct member *me, struct slot *peer)
{
    struct container *container = me->container;
    struct slot *at = peer;
    int i;

    spin_lock(&container->circles);
    for (i = 0; i < SLOTS && at && at != me->slot; i++) {
        struct member *other = READ_ONCE(at->member);

        at = other ? READ_ONCE(other->peer) : NULL;
    }
    if (at != me->slot)
        WRITE_ONCE(me->peer, peer);
    spin_unlock(&container->circles);
    return at == me->slot;
}

/* Gives a message to a member that takes it; both slots are locked. */
static void deliver(struct member *from, struct member *to, const message *m, struct task_struct **sleeper)
{
    to->m = *m;
    to->m.m_source = from->slot->endpoint;
    end_member(to, 0, sleeper);
}

/* Takes the message of a member that is queued; both slots are locked. */
static void take(struct member *sender, message *m, struct task_struct **sleeper)
{
    *m = sender->m;
    m->m_source = sender->slot->endpoint;
    if (sender->doing == ASKING) {
        list_del_init(&sender->in_queue);
        sender->doing = AWAITING;
    } else {
        end_member(sender, 0, sleeper);
    }
}

/* Ends the caller's wait unless it has ended, and returns the result that stands. */
static int leave(struct member *me, int error)
{
    struct slot *own = me->slot;
    struct task_struct *self;

    for (;;) {
        struct slot *peer;

        spin_lock(&own->lock);
        if (me->ended) {
            error = me->result;
            break;
        }
        peer = is_queued(me) ? me->peer : NULL;
        if (!peer || spin_trylock(&peer->lock)) {
            end_member(me, error, &self);
            if (peer)
                spin_unlock(&peer->lock);
            break;
        }
        // The locks are taken in their order by others, who need this one.
        spin_unlock(&own->lock);
        cpu_relax();
    }
    spin_unlock(&own->lock);
    return error;
}

/* Ends a wait that was interrupted by a stop, and which `caller` will not go on with. Returns whether there was one. */
bool drop_suspended(struct member *member, struct task_struct *caller)
{
    if (READ_ONCE(member->caller) != caller)
        return false;
    leave(member, EMOLINTR);
    smp_store_release(&member->caller, NULL);
    return true;
}

/* Whether a signal is pending that ends calls: one with a handler, or a fatal one. Others only stop the process, or do nothing. */
static bool is_interrupted(void)
{
    bool interrupted = fatal_signal_pending(current);
    sigset_t pending;
    int i;

    spin_lock_irq(&current->sighand->siglock);
    sigorsets(&pending, &current->pending.signal, &current->signal->shared_pending.signal);
    sigandnsets(&pending, &pending, &current->blocked);
    for (i = 1; i <= _NSIG; i++) {
        __sighandler_t handler = current->sighand->action[i - 1].sa.sa_handler;

        interrupted |= sigismember(&pending, i) && handler != SIG_DFL && handler != SIG_IGN;
    }
    spin_unlock_irq(&current->sighand->siglock);
    return interrupted;
}

/* Sleeps until the wait of the caller's member has ended, and ends the call. A message goes to `place`, unless that is NULL. */
static int sleep(struct member *me, message __user *place, ktime_t end, struct task_struct *next)
{
    int result = 0;

    if (next)
        give_way(next);
    for (;;) {
        set_current_state(TASK_INTERRUPTIBLE);
        if (smp_load_acquire(&me->ended))
            break;
        if (unlikely(signal_pending(current))) {
            result = EMOLINTR;
            break;
        }
        if (likely(!end)) {
            schedule();
        } else if (!schedule_hrtimeout_range(&end, 0, HRTIMER_MODE_ABS)) {
            result = EMOLTIMEDOUT;
            break;
        }
    }
    __set_current_state(TASK_RUNNING);
    if (unlikely(result == EMOLINTR) && !is_interrupted()) {
        me->end = end;
        put_member(me);
        return -ERESTARTNOHAND;
    }
    result = result ? leave(me, result) : me->result;
    if (!result && place)
        result = store(place, &me->m);
    smp_store_release(&me->caller, NULL);
    put_member(me);
    return result;
}

/* When a wait of so many milliseconds ends; 0: never. */
static ktime_t end_of(long limit_ms)
{
    return limit_ms < 0 ? 0 : ktime_add_ms(ktime_get(), min(limit_ms, (long)INT_MAX)) + 1;
}

/* Whether the caller makes a call anew that a stop had interrupted; if it makes another one, that wait ends. */
static bool goes_on(struct member *me, unsigned int call, const message __user *place)
{
    if (likely(READ_ONCE(me->caller) != current))
        return false;
    if (me->call == call && me->place == place && kref_get_unless_zero(&me->refs))
        return true;
    drop_suspended(me, current);
    return false;
}

/* Checks that a member, whose slot is locked, may begin a call. */
static int check_idle(const struct member *me)
{
    if (unlikely(me->slot->member != me))
        return EMOLNOTBIND;
    return unlikely(me->caller) ? EMOLBUSY : 0;
}

static bool has_right(const unsigned long *slots, const struct slot *slot)
{
    return PRIV_SLOT_TEST(slots, number_of(slot));
}

/* Checks that a member may send to another one by this name; both slots are locked. */
static int check_destination(const struct member *me, const struct slot *to, int endpoint)
{
    int error = locate(to, endpoint);

    if (error)
        return error;
    if (to->member->node != node.number || to->member->flags & MIS_RMTBACKUP)
        return EMOLNOPROXY;
    if (likely(!me->is_restricted && !to->member->is_restricted))
        return 0;
    return has_right(me->rights.priv_ipc_to, to) && has_right(to->member->rights.priv_ipc_from, me->slot) ? 0 : EMOLCALLDENIED;
}

/* Finds the slot that a member sends to by this name: mostly that which it has sent to last. */
static inline int find_destination(struct member *me, int endpoint, struct slot **to)
{
    *to = READ_ONCE(me->last);
    return likely(*to && READ_ONCE((*to)->endpoint) == endpoint) ? 0 : slot_of_endpoint(me->container, endpoint, to);
}

/* Finds that slot, and locks it and the member's own. */
static __always_inline int lock_destination(struct member *me, int endpoint, unsigned int trap, struct slot **to)
{
    int error = likely(me->rights.priv_trap_mask & trap) ? find_destination(me, endpoint, to) : EMOLCALLDENIED;

    drop_suspended(me, current);
    if (!error && *to == me->slot)
        error = me->slot->endpoint == endpoint ? EMOLBADSRCDST : EMOLENDPOINT;
    if (error)
        return error;
    lock_two(me->slot, *to);
    error = check_idle(me);
    if (!error)
        error = check_destination(me, *to, endpoint);
    if (error)
        unlock_two(me->slot, *to);
    else
        WRITE_ONCE(me->last, *to);
    return error;
}

/* Queues a member with its message at the slot it sends to; both are locked. */
static int queue(struct member *me, struct slot *to, const message *m, bool asks)
{
    if (closes_circle(me, to))
        return EMOLLOCKED;
    me->m = *m;
    list_add_tail(&me->in_queue, &to->member->senders);
    begin_wait(me, asks ? ASKING : SENDING, to);
    return 0;
}

/* `send`, `sendrec`. */
int send_message(unsigned int call, int endpoint, long limit_ms, message __user *place)
{
    bool asks = call == M3IPC_CALL_SEND_RECEIVE, waits = false;
    message m UNCLEARED;
    int error;
    struct task_struct *sleeper = NULL, *next = NULL;
    struct member *me;
    struct slot *to;

    if (unlikely(fetch(&m, place)))
        return EMOLFAULT;
    rcu_read_lock();
    me = own_member();
    if (unlikely(!me)) {
        rcu_read_unlock();
        return EMOLNOTBIND;
    }
    if (goes_on(me, call, place)) {
        rcu_read_unlock();
        return sleep(me, asks ? place : NULL, me->end, NULL);
    }
    error = lock_destination(me, endpoint, asks ? TRAP_SENDREC : TRAP_SEND, &to);
    if (!error) {
        if (takes_from(to->member, me->slot)) {
            deliver(me, to->member, &m, &sleeper);
            if (asks)
                begin_wait(me, AWAITING, to);
            waits = asks;
            // Who gets the request at once waits for the answer.
            limit_ms = limit_ms ? limit_ms : TIMEOUT_FOREVER;
        } else if (!limit_ms) {
            error = EMOLAGAIN;
        } else {
            error = queue(me, to, &m, asks);
            waits = !error;
        }
        me->sent += !error;
        me->call = call;
        me->place = place;
        unlock_two(me->slot, to);
        wake(sleeper);
    }
    if (waits)
        next = next_to_run(me, to, limit_ms);
    rcu_read_unlock();
    if (waits)
        error = sleep(me, asks ? place : NULL, end_of(limit_ms), next);
    return asks && error == EMOLDSTDIED ? EMOLDEADSRCDST : error;
}

/* The message of a notification. */
static void tell_note(const struct slot *source, const struct note *note, message *m)
{
    memset(m, 0, sizeof *m);
    m->m_source = source->endpoint;
    m->m_type = NOTIFY_FROM(number_of(source));
    m->m9_ull1 = note->value;
    m->m9_ull2 = note->time_ns;
}

/* Takes a pending notification, of one slot or the first one. Returns whether there was one. */
static bool take_note(struct member *me, const struct slot *from, message *m)
{
    unsigned int index;

    if (likely(!me->notes || !(me->pending[0] | me->pending[1] | me->pending[2] | me->pending[3])))
        return false;
    index = from ? index_of(from) : find_first_bit(me->pending, SLOTS);
    if (index >= SLOTS || !test_bit(index, me->pending))
        return false;
    clear_bit(index, me->pending);
    tell_note(&me->container->slots[index], &me->notes[index], m);
    return true;
}

/* Takes what is there for a member. Its slot is locked, and `from` if that is not NULL. Returns EMOLAGAIN if nothing is there, or RETRY. */
static int take_next(struct member *me, struct slot *from, bool notes, message *m, struct task_struct **sleeper)
{
    struct member *sender;

    if (notes && take_note(me, from, m))
        return 0;
    if (from) {
        if (!is_queued(from->member) || from->member->peer != me->slot)
            return EMOLAGAIN;
        take(from->member, m, sleeper);
        return 0;
    }
    sender = list_first_entry_or_null(&me->senders, struct member, in_queue);
    if (!sender)
        return EMOLAGAIN;
    if (!spin_trylock(&sender->slot->lock))
        return RETRY;
    take(sender, m, sleeper);
    spin_unlock(&sender->slot->lock);
    return 0;
}

/* Checks that a member may receive from one slot by this name; both are locked. */
static int check_source(const struct member *me, const struct slot *from, int endpoint)
{
    int error = locate(from, endpoint);

    if (error)
        return error == EMOLDSTDIED ? EMOLSRCDIED : error;
    return has_right(me->rights.priv_ipc_from, from) ? 0 : EMOLCALLDENIED;
}

/* Finds whom a member receives from by this name; NULL: anybody. */
static int find_source(struct member *me, int endpoint, struct slot **from)
{
    int error = 0;

    *from = NULL;
    if (!(me->rights.priv_trap_mask & TRAP_RECEIVE))
        return EMOLCALLDENIED;
    if (endpoint != ANY)
        error = slot_of_endpoint(me->container, endpoint, from);
    if (!error && *from == me->slot)
        error = me->slot->endpoint == endpoint ? EMOLBADSRCDST : EMOLENDPOINT;
    return error;
}

/* Receives what is there, or begins to wait: then `waits`. May return RETRY. */
static int receive_now(struct member *me, struct slot *from, int endpoint, bool notes, bool may_wait, message *m, bool *waits)
{
    struct task_struct *sleeper = NULL;
    int error;

    if (from)
        lock_two(me->slot, from);
    else
        spin_lock(&me->slot->lock);
    error = check_idle(me);
    if (!error && from)
        error = check_source(me, from, endpoint);
    if (!error)
        error = take_next(me, from, notes, m, &sleeper);
    if (error == EMOLAGAIN && may_wait) {
        error = from && closes_circle(me, from) ? EMOLLOCKED : 0;
        if (!error) {
            me->takes_notes = notes;
            begin_wait(me, RECEIVING, from);
            *waits = true;
        }
    }
    if (from)
        unlock_two(me->slot, from);
    else
        spin_unlock(&me->slot->lock);
    wake(sleeper);
    return error;
}

/* `receive`, `rcvrqst`. */
int receive_message(unsigned int call, int endpoint, long limit_ms, message __user *place)
{
    bool notes = call == M3IPC_CALL_RECEIVE, waits = false;
    struct task_struct *next = NULL;
    message m UNCLEARED;
    struct slot *from;
    struct member *me;
    int error;

    if (unlikely(!is_there(place)))
        return EMOLFAULT;
    rcu_read_lock();
    me = own_member();
    if (unlikely(!me)) {
        rcu_read_unlock();
        return EMOLNOTBIND;
    }
    if (goes_on(me, call, place)) {
        rcu_read_unlock();
        return sleep(me, place, me->end, NULL);
    }
    error = find_source(me, notes ? endpoint : ANY, &from);
    if (!error)
        do
            error = receive_now(me, from, endpoint, notes, limit_ms != 0, &m, &waits);
        while (error == RETRY);
    if (waits) {
        me->call = call;
        me->place = place;
        next = next_to_run(me, from, limit_ms);
    }
    rcu_read_unlock();
    if (waits)
        return sleep(me, place, end_of(limit_ms), next);
    return error ? error : store(place, &m);
}

/* `reply`. */
int reply_message(int endpoint, const message __user *place)
{
    message m UNCLEARED;
    struct task_struct *sleeper = NULL;
    struct member *me;
    struct slot *to;
    int error = EMOLNOTBIND;

    if (unlikely(fetch(&m, place)))
        return EMOLFAULT;
    rcu_read_lock();
    me = own_member();
    if (me)
        error = lock_destination(me, endpoint, TRAP_REPLY, &to);
    if (!error) {
        if (takes_from(to->member, me->slot))
            deliver(me, to->member, &m, &sleeper);
        else
            error = EMOLPROCSTS;
        me->sent += !error;
        unlock_two(me->slot, to);
        wake(sleeper);
    }
    rcu_read_unlock();
    return error;
}

/* Notifies in the name of a slot; the other one is locked, and its member is on this node. */
static int post(struct slot *source, struct slot *to, int value, struct task_struct **sleeper)
{
    struct note note = {.value = (u32)value, .time_ns = ktime_get_ns()};
    struct member *member = to->member;

    if (member->doing == RECEIVING && member->takes_notes && takes_from(member, source)) {
        tell_note(source, &note, &member->m);
        end_member(member, 0, sleeper);
        return 0;
    }
    if (member->rights.priv_id >= NR_SYS_PROCS || !member->notes)
        return EMOLPRIVILEGES;
    if (test_and_set_bit(index_of(source), member->pending))
        return EMOLOVERRUN;
    member->notes[index_of(source)] = note;
    return 0;
}

/* `notify`, `ntfy_value`. */
int notify(int endpoint, int value)
{
    struct task_struct *sleeper = NULL;
    struct member *me;
    struct slot *to;
    int error = EMOLNOTBIND;

    rcu_read_lock();
    me = own_member();
    if (me)
        error = lock_destination(me, endpoint, TRAP_NOTIFY, &to);
    if (!error) {
        error = me->rights.priv_id < NR_SYS_PROCS ? post(me->slot, to, value, &sleeper) : EMOLPRIVILEGES;
        me->sent += !error;
        unlock_two(me->slot, to);
        wake(sleeper);
    }
    rcu_read_unlock();
    return error;
}

/* Notifies in the name of a slot of a container that is found under RCU. */
static int post_in_name(struct container *container, struct slot *source, int endpoint)
{
    struct task_struct *sleeper = NULL;
    struct slot *to;
    int error = slot_of_endpoint(container, endpoint, &to);

    if (error)
        return error;
    spin_lock(&to->lock);
    error = locate(to, endpoint);
    if (!error && to == source)
        error = EMOLBADSRCDST;
    if (!error && (to->member->node != node.number || to->member->flags & MIS_RMTBACKUP))
        error = EMOLNOPROXY;
    if (!error)
        error = post(source, to, 0, &sleeper);
    spin_unlock(&to->lock);
    wake(sleeper);
    return error;
}

/* `src_notify`. */
int notify_as(int number, int endpoint)
{
    struct member *me;
    struct slot *source;
    int error = EMOLNOTBIND;

    rcu_read_lock();
    me = own_member();
    if (me)
        error = slot_of_number(me->container, number, &source);
    if (!error && !READ_ONCE(source->member))
        error = EMOLBADPROC;
    if (!error)
        error = post_in_name(me->container, source, endpoint);
    rcu_read_unlock();
    return error;
}

/* `hdw_notify`. */
int notify_hardware(int vmid, int endpoint)
{
    struct container *container = get_container(vmid);
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    rcu_read_lock();
    error = post_in_name(container, &container->slots[HARDWARE + NR_TASKS], endpoint);
    rcu_read_unlock();
    put_container(container);
    return error;
}

/* Whether the caller is in a container. */
static bool is_in(const struct container *container)
{
    struct member *me;
    bool is_in;

    rcu_read_lock();
    me = own_member();
    is_in = me && me->container == container;
    rcu_read_unlock();
    return is_in;
}

/* `wakeup`. Who is not in the container must be an administrator. */
int wake_member(int vmid, int endpoint)
{
    struct container *container = get_container(vmid);
    struct task_struct *sleeper = NULL;
    struct slot *slot;
    int error;

    if (IS_ERR(container))
        return PTR_ERR(container);
    if (!is_in(container) && !is_admin()) {
        put_container(container);
        return EMOLPERM;
    }
    rcu_read_lock();
    error = slot_of_endpoint(container, endpoint, &slot);
    if (!error) {
        spin_lock(&slot->lock);
        error = locate(slot, endpoint);
        if (!error && (slot->member->doing != RECEIVING || slot->member->peer))
            error = EMOLPROCRUN;
        if (!error)
            end_member(slot->member, EMOLWOKENUP, &sleeper);
        spin_unlock(&slot->lock);
        wake(sleeper);
    }
    rcu_read_unlock();
    put_container(container);
    return error;
}

/* What the wait of a member for a slot ends with when that becomes vacant. */
static int error_of(enum doing doing)
{
    return doing == SENDING ? EMOLDSTDIED : doing == RECEIVING ? EMOLSRCDIED : EMOLDEADSRCDST;
}

/* Ends the waits for a slot that has become vacant, under the container's lock for changes; and forgets its notifications. */
void end_waits_for(struct slot *gone)
{
    struct container *container = gone->container;
    struct slot *slot;

    for (slot = container->slots; slot < container->slots + SLOTS; slot++) {
        struct task_struct *sleeper = NULL;
        struct member *member;

        if (slot == gone)
            continue;
        // New waits for the slot are none: who begins one holds its lock, and sees that it is vacant.
        member = READ_ONCE(slot->member);
        if (!member)
            continue;
        clear_bit(index_of(gone), member->pending);
        if (READ_ONCE(member->peer) != gone)
            continue;
        lock_two(slot, gone);
        if (slot->member == member && member->peer == gone)
            end_member(member, error_of(member->doing), &sleeper);
        unlock_two(slot, gone);
        wake(sleeper);
    }
}

/* Ends the wait of a member that loses its slot, which becomes vacant. */
void fail_wait(struct member *member, int error)
{
    struct task_struct *sleeper = NULL;
    struct slot *own = member->slot;

    for (;;) {
        struct slot *peer;

        spin_lock(&own->lock);
        peer = is_queued(member) ? member->peer : NULL;
        if (!peer || spin_trylock(&peer->lock)) {
            if (member->doing != RUNNING)
                end_member(member, error, &sleeper);
            WRITE_ONCE(own->member, NULL);
            if (peer)
                spin_unlock(&peer->lock);
            spin_unlock(&own->lock);
            wake(sleeper);
            return;
        }
        spin_unlock(&own->lock);
        cpu_relax();
    }
}
