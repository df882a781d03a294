//! Futexes: Linux's `futex` WAIT, WAKE, REQUEUE, CMP_REQUEUE and the BITSET forms (futex(2)).
//!
//! Compare and sleep happen in one entry of the kernel, so no wake-up between them is lost. A private futex is an address in a space; a
//! shared one is a physical address too, so that processes find each other over shared memory, and threads of one space over a copied
//! page. Waiters hang in buckets: real-time ones by priority, then the others in order of arrival. Walks along a bucket are preempted by
//! interrupts. Neighbours: `inheriting`, `node::futexes` (buckets), `route` (calls arrive), `alarm` (time limits), `life` (interruption and death).

pub mod inheriting;

use crate::{
    Machine, Node, inheritance::Wait, machine::check_range, memory::copy, node::futexes::Key, stop::Stop,
    thread::state::BlockedOn, time::alarm, time::alarm::Kind,
};

use abi::{Errno, endpoint::SLOTS};

/// Operations and flags (linux/futex.h).
mod operation {
    pub const WAIT: u64 = 0;
    pub const WAKE: u64 = 1;
    pub const REQUEUE: u64 = 3;
    pub const CMP_REQUEUE: u64 = 4;
    pub const LOCK_PI: u64 = 6;
    pub const UNLOCK_PI: u64 = 7;
    pub const TRYLOCK_PI: u64 = 8;
    pub const WAIT_BITSET: u64 = 9;
    pub const WAKE_BITSET: u64 = 10;
    pub const WAIT_REQUEUE_PI: u64 = 11;
    pub const CMP_REQUEUE_PI: u64 = 12;
    pub const LOCK_PI2: u64 = 13;
    pub const PRIVATE: u64 = 128;
    pub const REALTIME: u64 = 256;
    pub const NUMBER: u64 = !(PRIVATE | REALTIME);
}

pub const ALL_BITS: u32 = u32::MAX;

/// `futex (address, operation, value, address of timespec or second value, second address, bits or third value)`: as futex(2).
pub fn futex<M: Machine>(node: &mut Node, m: &mut M, words: [u64; 6]) -> Result<u64, Stop> {
    let [address, operation, value, limit, address_2, value_3] = words;
    let operation = operation as u32 as u64;
    let realtime = operation & operation::REALTIME != 0;
    let (shared, number) = (operation & operation::PRIVATE == 0, operation & operation::NUMBER);
    if realtime && !matches!(number, operation::WAIT_BITSET | operation::WAIT_REQUEUE_PI | operation::LOCK_PI2) {
        return Err(Errno::ENOSYS.into());
    }
    let count = value as i32;
    let key = futex_key(node, m, node.current(), address, shared)?;
    match number {
        operation::WAIT => {
            let deadline_ns = deadline_after(node, m, limit)?;
            futex_wait(node, m, key, value as u32, deadline_ns, ALL_BITS)
        }
        operation::WAIT_BITSET => {
            let deadline_ns = deadline_at(node, m, limit, realtime)?;
            futex_wait(node, m, key, value as u32, deadline_ns, value_3 as u32)
        }
        operation::WAKE => futex_wake(node, m, key, count, ALL_BITS),
        operation::WAKE_BITSET => futex_wake(node, m, key, count, value_3 as u32),
        operation::REQUEUE | operation::CMP_REQUEUE | operation::CMP_REQUEUE_PI => {
            let target = futex_key(node, m, node.current(), address_2, shared)?;
            let expected = (number != operation::REQUEUE).then_some(value_3 as u32);
            let inherits = number == operation::CMP_REQUEUE_PI;
            futex_requeue(node, m, [key, target], [count, limit as i32], expected, inherits)
        }
        operation::TRYLOCK_PI => inheriting::lock_pi(node, m, node.current(), key, false),
        operation::LOCK_PI | operation::LOCK_PI2 => {
            let realtime = realtime || number == operation::LOCK_PI;
            let deadline_ns = deadline_at(node, m, limit, realtime)?;
            let result = inheriting::lock_pi(node, m, node.current(), key, true);
            if let (Err(Stop::NoResult), Some(deadline_ns)) = (&result, deadline_ns) {
                node.alarms.set_ns(&mut node.timer, m, (node.threads.current(), Kind::Futex), deadline_ns);
            }
            result
        }
        operation::UNLOCK_PI => inheriting::unlock_pi(node, m, key),
        operation::WAIT_REQUEUE_PI if address != address_2 => {
            let target = futex_key(node, m, node.current(), address_2, shared)?;
            if inheriting::is_next_owner(node, node.current(), target) {
                return inheriting::lock_pi(node, m, node.current(), target, true);
            }
            let deadline_ns = deadline_at(node, m, limit, realtime)?;
            futex_wait(node, m, key, value as u32, deadline_ns, ALL_BITS)
        }
        operation::WAIT_REQUEUE_PI => Err(Errno::EINVAL.into()),
        _ => Err(Errno::ENOSYS.into()),
    }
}

/// The key of a futex in the space of a thread. `EINVAL`: not aligned.
fn futex_key<M: Machine>(node: &mut Node, m: &mut M, slot: usize, address: u64, shared: bool) -> Result<Key, Stop> {
    if !address.is_multiple_of(4) {
        return Err(Errno::EINVAL.into());
    }
    let space = copy::space_of(node, slot)?;
    if !shared {
        return Ok(Key::new(space, address, 0));
    }
    check_range(address, 4)?;
    let physical = m.translate(space, address).map_err(|fault| Stop::Fault(slot, fault))?;
    Ok(Key::new(space, address, physical))
}

/// The word of a futex in the memory of the caller.
pub fn futex_word<M: Machine>(node: &mut Node, m: &mut M, address: u64) -> Result<u32, Stop> {
    let mut value = [0; 4];
    copy::read_own(node, m, address, &mut value)?;
    Ok(u32::from_le_bytes(value))
}

/// The timespec at this address, in ns; `None` for address 0. `EINVAL`: negative or not normalised.
fn read_timespec<M: Machine>(node: &mut Node, m: &mut M, address: u64) -> Result<Option<u64>, Stop> {
    if address == 0 {
        return Ok(None);
    }
    let mut bytes = [0; 16];
    copy::read_own(node, m, address, &mut bytes)?;
    let both = u128::from_le_bytes(bytes);
    let (seconds, nanoseconds) = (both as u64, (both >> 64) as u64);
    if seconds > i64::MAX as u64 || nanoseconds >= 1_000_000_000 {
        return Err(Errno::EINVAL.into());
    }
    Ok(Some(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)))
}

fn deadline_after<M: Machine>(node: &mut Node, m: &mut M, limit: u64) -> Result<Option<u64>, Stop> {
    let duration_ns = read_timespec(node, m, limit)?;
    let now_ns = alarm::now_ns(m);
    Ok(duration_ns.map(|duration_ns| now_ns.saturating_add(duration_ns)))
}

pub fn deadline_at<M: Machine>(node: &mut Node, m: &mut M, limit: u64, realtime: bool) -> Result<Option<u64>, Stop> {
    let offset_ns = if realtime { node.real_offset_ns } else { 0 };
    Ok(read_timespec(node, m, limit)?.map(|deadline_ns| deadline_ns.saturating_sub(offset_ns)))
}

fn futex_wait<M: Machine>(
    node: &mut Node,
    m: &mut M,
    key: Key,
    expected: u32,
    deadline_ns: Option<u64>,
    bits: u32,
) -> Result<u64, Stop> {
    if bits == 0 {
        return Err(Errno::EINVAL.into());
    }
    if futex_word(node, m, key.address())? != expected {
        return Err(Errno::EAGAIN.into());
    }
    let slot = node.current();
    wait_for_futex(node, slot, key, bits);
    if let Some(deadline_ns) = deadline_ns {
        node.alarms.set_ns(&mut node.timer, m, (slot, Kind::Futex), deadline_ns);
    }
    Err(Stop::NoResult)
}

/// Makes a thread wait.
pub fn wait_for_futex(node: &mut Node, slot: usize, key: Key, bits: u32) {
    let thread = &mut node.threads[slot];
    thread.state.block(BlockedOn::Futex);
    thread.futex_bits = bits;
    node.futexes.enter(&mut node.threads, slot, key);
}

/// The time limit of a wait has come, which for a sleep is what it waited for.
pub fn futex_time_is_up(node: &mut Node, slot: usize) {
    let is_sleep = node.threads[slot].futex_bits == 0;
    end_futex_wait(node, slot, if is_sleep { Ok(0) } else { Err(Errno::ETIMEDOUT) });
}

/// What a walk does between two preemption points, in steps past a waiter.
const STEPS_AT_ONCE: u32 = 48;
/// To end a wait, or to move a waiter, takes as long as so many.
const CHANGE_STEPS: u32 = 8;

/// A walk of the caller over the waiters of a futex, which interrupts preempt. Waiters that come meanwhile may be met too; so the number
/// that is woken or moved is limited by the number of threads. `Thread::progress` keeps both numbers.
struct Walk {
    walker: usize,
    key: Key,
    bits: u32,
    next: usize,
    steps: u32,
    woken: u64,
    moved: u64,
}

/// `Thread::progress` of a walk: it has begun; waiters moved; waiters woken.
const BEGUN: u64 = 1 << 63;
const MOVED_SHIFT: u32 = 16;

impl Walk {
    fn has_begun(node: &Node) -> bool {
        node.threads[node.caller()].progress != 0
    }

    fn begin(node: &Node, key: Key, bits: u32) -> Walk {
        let walker = node.caller();
        let next = if Walk::has_begun(node) { node.futexes.resume(key, walker) } else { node.futexes.first(key) };
        let progress = node.threads[walker].progress & !BEGUN;
        let (woken, moved) = (progress & ((1 << MOVED_SHIFT) - 1), progress >> MOVED_SHIFT);
        Walk { walker, key, bits, next, steps: 0, woken, moved }
    }

    /// The next waiter that shares a bit. It may leave the bucket.
    fn next<M: Machine>(&mut self, node: &mut Node, m: &mut M) -> Result<Option<usize>, Stop> {
        while self.next != 0 {
            if self.steps >= STEPS_AT_ONCE && m.interrupt_pending() {
                node.futexes.suspend(self.walker, self.next);
                node.threads[self.walker].progress = BEGUN | self.moved << MOVED_SHIFT | self.woken;
                return Err(Stop::Preempted);
            }
            self.steps = self.steps % STEPS_AT_ONCE + 1;
            let slot = self.next;
            let waiter = &node.threads[slot];
            self.next = waiter.next as usize;
            if self.key.is(Key::of(waiter)) && waiter.futex_bits & self.bits != 0 {
                self.steps += CHANGE_STEPS;
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }
}

/// So many threads may wait.
fn limit_of(count: i32) -> u64 {
    count.clamp(0, SLOTS as i32) as u64
}

/// Wakes at most `count` waiters that share a bit (Linux wakes one for a count of 0 or less, too). → number.
fn futex_wake<M: Machine>(node: &mut Node, m: &mut M, key: Key, count: i32, bits: u32) -> Result<u64, Stop> {
    if bits == 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut walk = Walk::begin(node, key, bits);
    while walk.woken < limit_of(count.max(1))
        && let Some(slot) = walk.next(node, m)?
    {
        if waits_to_be_requeued(node, slot) {
            return Err(Errno::EINVAL.into());
        }
        end_futex_wait(node, slot, Ok(0));
        walk.woken += 1;
    }
    Ok(walk.woken)
}

/// `FutexWake (endpoint, address, count)`: wakes waiters of a shared futex in the space of a thread. → number.
pub fn wake_futex_of<M: Machine>(node: &mut Node, m: &mut M, slot: usize, words: [u64; 2]) -> Result<u64, Stop> {
    let key = futex_key(node, m, slot, words[0], true)?;
    futex_wake(node, m, key, words[1] as i32, ALL_BITS)
}

/// Wakes `count` waiters of the first futex and makes up to `limit` others wait for the second. → woken and, when a value was
/// expected, moved. One that inherits is given to the first, if it is free, and waited for by the others.
fn futex_requeue<M: Machine>(
    node: &mut Node,
    m: &mut M,
    [source, target]: [Key; 2],
    [count, limit]: [i32; 2],
    expected: Option<u32>,
    inherits: bool,
) -> Result<u64, Stop> {
    if count < 0 || limit < 0 || inherits && count != 1 {
        return Err(Errno::EINVAL.into());
    }
    if let Some(expected) = expected.filter(|_| !Walk::has_begun(node))
        && futex_word(node, m, source.address())? != expected
    {
        return Err(Errno::EAGAIN.into());
    }
    let mut walk = Walk::begin(node, source, ALL_BITS);
    while (walk.woken < limit_of(count) || walk.moved < limit_of(limit))
        && let Some(slot) = walk.next(node, m)?
    {
        let is_first = walk.woken < limit_of(count);
        match inherits {
            _ if waits_to_be_requeued(node, slot) != inherits => return Err(Errno::EINVAL.into()),
            false if is_first => end_futex_wait(node, slot, Ok(0)),
            false if source.is(target) => {}
            false => move_waiter(node, slot, target),
            true => match inheriting::lock_pi(node, m, slot, target, true) {
                Ok(_) => end_futex_wait(node, slot, Ok(0)),
                Err(Stop::NoResult) => node.futexes.leave(&mut node.threads, slot),
                Err(stop) if is_first => return Err(stop),
                Err(_) => break,
            },
        }
        if is_first { walk.woken += 1 } else { walk.moved += 1 }
    }
    Ok(walk.woken + if expected.is_some() { walk.moved } else { 0 })
}

/// A waiter made its call to be moved to a futex with inheritance.
pub fn waits_to_be_requeued(node: &Node, slot: usize) -> bool {
    node.threads[slot].frame.rsi as u32 as u64 & operation::NUMBER == operation::WAIT_REQUEUE_PI
}

/// Makes a waiter wait for another futex.
fn move_waiter(node: &mut Node, slot: usize, target: Key) {
    node.futexes.leave(&mut node.threads, slot);
    let target = target.seen_from(node.threads[slot].space);
    node.futexes.enter(&mut node.threads, slot, target);
}

/// Ends the wait of a thread in a futex bucket with this result.
pub fn end_futex_wait(node: &mut Node, slot: usize, result: Result<u64, Errno>) {
    leave_futex(node, slot);
    let thread = &mut node.threads[slot];
    thread.frame.set_result(result);
    node.threads.wake_if_free(slot);
}

/// Takes a thread out of its futex bucket.
pub fn leave_futex(node: &mut Node, slot: usize) {
    node.alarms.cancel(slot, Kind::Futex);
    let thread = &mut node.threads[slot];
    thread.state.unblock();
    if let Wait::Semaphore(id) = node.inheritance.waits(slot as u16) {
        return inheriting::give_up_pi(node, slot, id);
    }
    node.futexes.leave(&mut node.threads, slot);
}
