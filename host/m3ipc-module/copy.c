// SPDX-License-Identifier: MIT OR GPL-2.0
/* `vcopy`: one copy between the memories of two members, for one of them or a third.
 *
 * The pages of those who do not call are pinned, so that they may be unmapped meanwhile; the caller's own memory is reached as by any call. Every byte
 * moves under the locks of those who wait, four pages at a time: so none goes on while it is copied from or to, and what is copied after the end of
 * a wait is nothing. Whole pages are copied as pages where both blocks begin at the same place of one.
 */
#include <linux/cred.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "module.h"

enum {
    /* Pages that are pinned at a time: of small blocks, and of large ones. */
    FEW = 4,
    MANY = 256,
    /* Bytes that are copied under the locks. */
    AT_ONCE = 4 * PAGE_SIZE,
    /* How often memory of the caller's that is taken away again and again is brought back. */
    TRIES = 64,
};

/* One of the two blocks. */
struct party {
    unsigned long address;
    /* Of one who does not call: who that is, its memory, the number of its wait, and pages that are pinned. */
    struct member *member;
    struct mm_struct *mm;
    unsigned long wait;
    struct page **pages;
    int pinned;
    struct page *few[FEW];
};

/* Whether a party still waits in the same call. Its slot is locked. */
static bool waits_on(const struct party *party)
{
    const struct member *member = party->member;

    return member->slot->member == member && member->waits == party->wait && (member->doing == RECEIVING || member->doing == AWAITING);
}

/* Whether the caller may reach the memory of a process: as its user, or by a capability. */
static bool may_reach(struct task_struct *task, struct mm_struct *mm)
{
    const struct cred *cred;
    bool own;

    rcu_read_lock();
    cred = __task_cred(task);
    own = uid_eq(current_fsuid(), cred->uid) && uid_eq(cred->uid, cred->euid) && uid_eq(cred->uid, cred->suid) &&
          gid_eq(current_fsgid(), cred->gid) && gid_eq(cred->gid, cred->egid) && gid_eq(cred->gid, cred->sgid);
    rcu_read_unlock();
    return (own && get_dumpable(mm) == SUID_DUMP_USER) || ns_capable(mm->user_ns, CAP_SYS_PTRACE);
}

/* Takes the memory of a party's process. */
static int open_memory(struct party *party)
{
    struct task_struct *leader, *task;

    rcu_read_lock();
    leader = pid_task(party->member->pid, PIDTYPE_PID);
    // The first thread may have ended before the others.
    if (leader)
        for_each_thread(leader, task)
            if (!party->mm)
                party->mm = get_task_mm(task);
    if (leader)
        get_task_struct(leader);
    rcu_read_unlock();
    if (leader && party->mm && !may_reach(leader, party->mm)) {
        put_task_struct(leader);
        return EMOLPERM;
    }
    if (leader)
        put_task_struct(leader);
    return party->mm ? 0 : EMOLDSTDIED;
}

static void close_party(struct party *party)
{
    if (party->pages && party->pages != party->few)
        kfree(party->pages);
    if (party->mm)
        mmput(party->mm);
    if (party->member)
        put_member(party->member);
}

/* Finds a party by its name, under RCU, and checks that it waits unless it is the caller. */
static int find_party(struct member *me, int endpoint, struct party *party, struct slot **leader)
{
    struct slot *slot = me->slot;
    struct member *member;
    int error = 0;

    if (endpoint != SELF)
        error = slot_of_endpoint(me->container, endpoint, &slot);
    if (error)
        return error;
    spin_lock(&slot->lock);
    error = endpoint == SELF ? 0 : locate(slot, endpoint);
    member = slot->member;
    if (!error && !member)
        error = EMOLNOTBIND;
    if (!error && (member->node != node.number || member->flags & MIS_RMTBACKUP))
        error = EMOLNOPROXY;
    if (!error && member != me && member->doing != RECEIVING && member->doing != AWAITING)
        error = EMOLPROCSTS;
    if (!error) {
        *leader = member->leader;
        if (member != me) {
            party->member = member;
            party->wait = member->waits;
            kref_get(&member->refs);
        }
    }
    spin_unlock(&slot->lock);
    return error;
}

/* Finds both parties, and the memory of those who do not call. */
static int find_parties(struct party *from, int source, struct party *to, int target, int bytes)
{
    struct slot *leaders[2] = {NULL, NULL};
    struct member *me;
    int error = EMOLNOTBIND;

    rcu_read_lock();
    me = own_member();
    if (me)
        error = me->rights.priv_trap_mask & TRAP_VCOPY ? 0 : EMOLCALLDENIED;
    if (!error && (bytes < 0 || bytes > READ_ONCE(node.limits.d_max_copylen)))
        error = EMOLRANGE;
    if (!error)
        error = find_party(me, source, from, &leaders[0]);
    if (!error)
        error = find_party(me, target, to, &leaders[1]);
    if (!error && leaders[0] == leaders[1])
        error = EMOLPERM;
    if (!error)
        me->copies++;
    rcu_read_unlock();
    if (!error && from->member && to->member && !is_admin())
        error = EMOLPERM;
    if (!error && from->member)
        error = open_memory(from);
    if (!error && to->member)
        error = open_memory(to);
    return error;
}

/* Pins the pages of the next bytes of a party that does not call. Returns how many bytes they have, of so many, or an error. */
static long pin(struct party *party, unsigned long bytes, bool write)
{
    unsigned long offset = offset_in_page(party->address);
    int pages = min_t(unsigned long, DIV_ROUND_UP(offset + bytes, PAGE_SIZE), party->pages == party->few ? FEW : MANY), locked = 1;
    long pinned;

    if (!party->member)
        return bytes;
    if (mmap_read_lock_killable(party->mm))
        return EMOLINTR;
    // Pages that are read from need not be told from others that are referred to, which costs less.
    if (write)
        pinned = pin_user_pages_remote(party->mm, party->address - offset, pages, FOLL_WRITE, party->pages, NULL, &locked);
    else
        pinned = get_user_pages_remote(party->mm, party->address - offset, pages, 0, party->pages, NULL, &locked);
    if (locked)
        mmap_read_unlock(party->mm);
    party->pinned = max(pinned, 0L);
    return pinned > 0 ? min(bytes, pinned * PAGE_SIZE - offset) : EMOLADDRNOTAVAIL;
}

static void unpin(struct party *party, bool written)
{
    if (written && party->pinned)
        unpin_user_pages_dirty_lock(party->pages, party->pinned, true);
    while (!written && party->pinned > 0)
        put_page(party->pages[--party->pinned]);
    party->pinned = 0;
}

/* Copies within one page of each side that does not call; the caller's side is an address of its own. Returns how many bytes were not. What is looked
 * for in copies of the kernel's objects, that they stay within one, is no question for pages that are pinned. */
static unsigned long copy_piece(const struct party *from, void *source, const struct party *to, void *target, unsigned long bytes)
{
    if (!from->member)
        return access_ok((void __user *)source, bytes) ? raw_copy_from_user(target, (void __user *)source, bytes) : bytes;
    if (!to->member)
        return access_ok((void __user *)target, bytes) ? raw_copy_to_user((void __user *)target, source, bytes) : bytes;
    if (bytes == PAGE_SIZE)
        copy_page(target, source);
    else
        memcpy(target, source, bytes);
    return 0;
}

/* Where a party's byte is that comes `offset` after the first page that is pinned. */
static void *place_of(const struct party *party, unsigned long start, unsigned long done)
{
    unsigned long offset = offset_in_page(start) + done;

    return party->member ? page_address(party->pages[offset >> PAGE_SHIFT]) + offset_in_page(offset) : (void *)(start + done);
}

/* How many bytes of a party are left in the page of this one; the caller's pages do not matter. */
static unsigned long left_in_page(const struct party *party, unsigned long start, unsigned long done)
{
    return party->member ? PAGE_SIZE - offset_in_page(start + done) : ULONG_MAX;
}

static void lock_parties(const struct party *from, const struct party *to)
{
    if (from->member && to->member)
        lock_two(from->member->slot, to->member->slot);
    else
        spin_lock(&(from->member ? from : to)->member->slot->lock);
}

static void unlock_parties(const struct party *from, const struct party *to)
{
    if (from->member)
        spin_unlock(&from->member->slot->lock);
    if (to->member)
        spin_unlock(&to->member->slot->lock);
}

/* Copies some bytes under the locks of those who wait. Returns how many, which is less if the caller's memory is not there, or an error. */
static long copy_locked(const struct party *from, const struct party *to, unsigned long done, unsigned long bytes)
{
    unsigned long end = done + bytes, start = done;
    bool waits;

    lock_parties(from, to);
    waits = (!from->member || waits_on(from)) && (!to->member || waits_on(to));
    pagefault_disable();
    while (waits && done < end) {
        unsigned long piece = min3(end - done, left_in_page(from, from->address, done), left_in_page(to, to->address, done));
        unsigned long failed =
            copy_piece(from, place_of(from, from->address, done), to, place_of(to, to->address, done), piece);

        done += piece - failed;
        if (failed)
            break;
    }
    pagefault_enable();
    unlock_parties(from, to);
    return waits ? done - start : EMOLPROCSTS;
}

/* Brings memory of the caller's that was not there. */
static int bring(const struct party *from, const struct party *to, unsigned long done, unsigned long bytes)
{
    size_t missing = !from->member ? fault_in_readable((char __user *)from->address + done, bytes)
                                   : fault_in_writeable((char __user *)to->address + done, bytes);

    return missing == bytes ? EMOLADDRNOTAVAIL : 0;
}

/* Copies what is pinned, a few pages after the other. Memory of the caller's is brought to the end of these pages, and each few of them have their tries:
 * were the next attempt to reach further, each of them would end where nothing has been brought yet. */
static int copy_pinned(const struct party *from, const struct party *to, unsigned long bytes)
{
    unsigned long done = 0, end = 0;
    int tries = 0;

    while (done < bytes) {
        long copied;
        int error;

        if (done == end) {
            end = min_t(unsigned long, bytes, done + AT_ONCE);
            tries = 0;
        }
        copied = copy_locked(from, to, done, end - done);
        if (copied < 0)
            return copied;
        done += copied;
        if (done == end) {
            cond_resched();
            continue;
        }
        if (tries++ == TRIES || (!from->member == !to->member))
            return EMOLADDRNOTAVAIL;
        error = bring(from, to, done, end - done);
        if (error)
            return error;
    }
    return 0;
}

/* Makes room for the pages of a party that does not call. */
static int make_room(struct party *party, unsigned long bytes)
{
    bool few = offset_in_page(party->address) + bytes <= FEW * PAGE_SIZE;

    if (party->member)
        party->pages = few ? party->few : kmalloc_array(MANY, sizeof *party->pages, GFP_KERNEL);
    return party->member && !party->pages ? EMOLNOMEM : 0;
}

/* `vcopy`. */
int copy_block(int source, unsigned long source_address, int target, unsigned long target_address, int bytes)
{
    struct party from = {.address = source_address}, to = {.address = target_address};
    unsigned long left = bytes;
    int error = find_parties(&from, source, &to, target, bytes);

    if (!error && left)
        error = make_room(&from, left);
    if (!error && left)
        error = make_room(&to, left);
    while (!error && left) {
        long some = pin(&from, left, false);

        if (some > 0)
            some = pin(&to, some, true);
        error = some < 0 ? some : copy_pinned(&from, &to, some);
        unpin(&from, false);
        unpin(&to, true);
        if (fatal_signal_pending(current))
            error = EMOLINTR;
        from.address += some;
        to.address += some;
        left -= some;
    }
    close_party(&from);
    close_party(&to);
    return error;
}
