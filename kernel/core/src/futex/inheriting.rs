//! Futexes with priority inheritance: `FUTEX_LOCK_PI`, `TRYLOCK_PI`, `UNLOCK_PI` (futex(2)), and the second half of
//! `CMP_REQUEUE_PI`.
//!
//! The word in the program's memory names the owner. The kernel keeps only waiters: a mutex of `inheritance` that exists from
//! the first waiter to the last, under a number that no semaphore of MINIX4RT has. When the owner ends, the first waiter is
//! the next owner, and makes its call again to write that into the word. A thread is known to `inheritance` from its first
//! wait or donation on, with its ready queue as base. Neighbours: `futex`, `inheritance`, `boost`.

use crate::{
    Machine, Node, boost::donate, boost::effects, futex, futex::ALL_BITS, inheritance::Flags, inheritance::NOTHING,
    inheritance::Refusal, inheritance::Semaphore, memory::copy, node::futexes::FIRST, node::futexes::Key,
    node::futexes::MUTEXES, stop::Stop, stop::preemption_point, thread::attention, thread::state::BlockedOn,
};

use abi::{Errno, endpoint::SERVICE_SLOTS, endpoint::SLOTS, linux::nr};

const MUTEX: Flags = Flags { by_priority: true, mutex: true, inherits: true, ceiling: false };

/// Length of the `syscall` instruction.
const SYSCALL_BYTES: u64 = 2;

/// Fields of the word. As on Linux, an owner that has waited finds `WAITERS` in it, and so unlocks by a call.
mod word {
    pub const TID: u32 = 0x3fff_ffff;
    pub const OWNER_DIED: u32 = 0x4000_0000;
    pub const WAITERS: u32 = 0x8000_0000;
}

/// The thread of a program with this Linux id.
fn thread_by_tid(node: &Node, tid: u32) -> Option<usize> {
    (SERVICE_SLOTS..SLOTS).find(|&slot| node.threads[slot].tid == tid && node.threads[slot].is_live() && tid != 0)
}

/// Returns the mutex of a futex that has waiters.
fn pi_mutex(node: &Node, key: Key) -> Option<(u16, Semaphore)> {
    node.futexes.mutex(key).and_then(|id| Some((id, *node.inheritance.semaphore(id)?)))
}

/// Returns true when a futex has become the thread's by the end of its owner.
pub fn is_next_owner(node: &Node, slot: usize, key: Key) -> bool {
    pi_mutex(node, key).is_some_and(|(_, mutex)| mutex.owner == slot as u16)
}

/// `FUTEX_LOCK_PI`, and `FUTEX_TRYLOCK_PI`, which may not wait, by the current thread; `CMP_REQUEUE_PI` for a thread that waits.
pub fn lock_pi<M: Machine>(node: &mut Node, m: &mut M, slot: usize, key: Key, may_wait: bool) -> Result<u64, Stop> {
    let (own, old) = (node.threads[slot].tid, futex::futex_word(node, m, key.address())?);
    let known = pi_mutex(node, key);
    let is_next_owner = known.is_some_and(|(_, mutex)| mutex.owner == slot as u16);
    if !is_next_owner && old & word::TID == own {
        return Err(Errno::EDEADLK.into());
    }
    if is_next_owner || known.is_none() && old & word::TID == 0 {
        let marks = if is_next_owner { word::OWNER_DIED | word::WAITERS } else { old & word::OWNER_DIED };
        copy::write_own(node, m, key.address(), &(own | marks).to_le_bytes())?;
        known.into_iter().for_each(|(id, _)| drop_unused_pi(node, id));
        return Ok(0);
    }
    copy::write_own(node, m, key.address(), &(old | word::WAITERS).to_le_bytes())?;
    let holder = thread_by_tid(node, old & word::TID);
    match known {
        None if holder.is_none() => Err(Errno::ESRCH.into()),
        _ if !may_wait => Err(Errno::EAGAIN.into()),
        Some((id, _)) => wait_for_pi(node, slot, id),
        None => {
            let id = new_pi_mutex(node, key, holder.unwrap_or_default())?;
            wait_for_pi(node, slot, id)
        }
    }
}

/// Allocates a mutex for a futex that the thread in slot `holder` holds. Its creator is no thread that could end.
fn new_pi_mutex(node: &mut Node, key: Key, holder: usize) -> Result<u16, Errno> {
    effects::take_part(node, holder);
    let pool = FIRST as u16..MUTEXES as u16;
    let id = node.inheritance.allocate(pool, 0, 1, MUTEX, NOTHING).or(Err(Errno::ENOMEM))?;
    node.futexes.set_mutex(id, Some(key));
    // It is free.
    let _ = effects::decide(node, |rt, effects| rt.down(holder as u16, id, false, effects));
    Ok(id)
}

fn wait_for_pi(node: &mut Node, slot: usize, id: u16) -> Result<u64, Stop> {
    effects::take_part(node, slot);
    if let Err(refusal) = effects::decide(node, |rt, effects| rt.down(slot as u16, id, true, effects)) {
        drop_unused_pi(node, id);
        return Err(if refusal == Refusal::Deadlock { Errno::EDEADLK } else { Errno::EINVAL }.into());
    }
    let thread = &mut node.threads[slot];
    thread.state.block(BlockedOn::Futex);
    thread.futex_bits = ALL_BITS;
    let last = node.inheritance.end_of_chain(slot as u16) as usize;
    if let Some(server) = donate::server_of(node, last) {
        donate::donate_along(node, node.threads[last].base_queue, server);
    }
    Err(Stop::NoResult)
}

/// `FUTEX_UNLOCK_PI`: the best waiter is the next owner.
pub fn unlock_pi<M: Machine>(node: &mut Node, m: &mut M, key: Key) -> Result<u64, Stop> {
    let slot = node.current() as u16;
    if futex::futex_word(node, m, key.address())? & word::TID != node.threads.running().tid {
        return Err(Errno::EPERM.into());
    }
    let held = pi_mutex(node, key).filter(|(_, mutex)| mutex.owner == slot);
    let next_owner = held.and_then(|(id, _)| node.inheritance.first_waiter(id));
    let new = next_owner.map_or(0, |next_owner| node.threads[next_owner as usize].tid | word::WAITERS);
    copy::write_own(node, m, key.address(), &new.to_le_bytes())?;
    if let Some((id, _)) = held {
        // It is the owner.
        let _ = effects::decide(node, |rt, effects| rt.up(slot, id, effects));
        drop_unused_pi(node, id);
    }
    Ok(0)
}

/// Ends the wait of a thread for such a futex without it.
pub fn give_up_pi(node: &mut Node, slot: usize, id: u16) {
    effects::decide(node, |rt, effects| rt.give_up(slot as u16, effects));
    drop_unused_pi(node, id);
}

/// Ends the wait of a thread for such a futex by a signal: it makes its call again afterwards, whatever the signal's action says.
pub fn interrupt_pi_wait(node: &mut Node, slot: usize) {
    futex::leave_futex(node, slot);
    let frame = &mut node.threads[slot].frame;
    frame.rip = frame.rip.wrapping_sub(SYSCALL_BYTES);
    node.threads.wake_if_free(slot);
}

/// Frees a mutex without waiters.
fn drop_unused_pi(node: &mut Node, id: u16) {
    if node.inheritance.semaphore(id).is_some_and(|mutex| mutex.value >= 0) {
        // It is allocated, and 0 its creator.
        let _ = effects::decide(node, |rt, effects| rt.free(0, id, effects));
        node.futexes.set_mutex(id, None);
    }
}

/// Hands the futexes of a thread that is to leave its memory, by this call, to their next owners, which make their calls again. Interrupts
/// preempt it after each futex.
pub fn bequeath<M: Machine>(node: &mut Node, m: &mut M, slot: usize) -> Result<(), Stop> {
    while bequeath_one(node, slot) {
        preemption_point(m)?;
    }
    Ok(())
}

/// Hands on one of them. Returns false when there are none.
pub fn bequeath_one(node: &mut Node, slot: usize) -> bool {
    let held = node.inheritance.held_by(slot as u16).find(|&id| id >= FIRST as u16);
    let Some(id) = held else { return false };
    let next_owner = node.inheritance.first_waiter(id);
    // It is the owner.
    let _ = effects::decide(node, |rt, effects| rt.up(slot as u16, id, effects));
    match next_owner {
        None => drop_unused_pi(node, id),
        Some(next_owner) => {
            let next_owner = &mut node.threads[next_owner as usize];
            next_owner.frame.rax = nr::FUTEX as u64;
            next_owner.attention |= attention::RESUME;
        }
    }
    true
}
