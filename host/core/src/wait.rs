//! Waiting: by the processor that the peer is on.
//!
//! On another processor the peer may be about to do what is waited for: it is cheaper to look again for a few microseconds than to sleep. On
//! the same one it cannot go on until this process stops: then the processor is yielded to it. After that, sleep on the desk's bell.

use crate::desk::Desk;
use crate::memory;
use rustix::thread::futex;
use rustix::time::{ClockId, Timespec};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// How long one looks again before sleeping, while the peer is on another processor.
const SPIN_NS: u64 = 15_000;
/// How often the processor is yielded to a peer on the same one before sleeping.
const YIELDS: u32 = 2;
/// Looks between two looks at the clock: a few hundred nanoseconds.
const LOOKS: u32 = 16;
/// The longest sleep. A ring that was lost, because another member has scribbled on the desk, costs at most this.
const LONGEST_SLEEP_NS: u64 = 1_000_000_000;

/// Returns the time in nanoseconds of CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Returns the time of the kernel's last tick, in nanoseconds of CLOCK_MONOTONIC: some milliseconds late, for a tenth of the cost.
pub fn coarse_now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// As long as it takes.
    Forever,
    /// Not at all.
    NoWait,
    /// Until CLOCK_MONOTONIC shows these nanoseconds.
    Until(u64),
}

impl Limit {
    /// Returns the limit that C programs give in milliseconds.
    #[inline]
    pub fn from_ms(ms: i64) -> Limit {
        match u64::try_from(ms) {
            Ok(0) => Limit::NoWait,
            Ok(ms) => Limit::Until(now_ns().saturating_add(ms.saturating_mul(1_000_000))),
            Err(_) => Limit::Forever,
        }
    }

    /// Returns what is left of it, in nanoseconds.
    pub fn left_ns(self) -> Option<u64> {
        match self {
            Limit::Forever => None,
            Limit::NoWait => Some(0),
            Limit::Until(end) => Some(end.saturating_sub(now_ns())),
        }
    }
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What was waited for has happened.
    Done,
    /// The limit has passed.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
}

/// Wakes the owner of a desk if it sleeps. What it waits for must have happened before, by a sequentially consistent store.
pub fn ring(desk: &Desk) {
    if desk.bell.load(SeqCst) != 0 {
        desk.bell.store(0, SeqCst);
        // The word is mapped; waking cannot fail.
        let _ = futex::wake(&desk.bell, futex::Flags::empty(), u32::MAX >> 1);
    }
}

/// Looks again for a while until `look` finds what is waited for, which the owner of `peer` is expected to bring about, and now and then whether
/// the wait `is_over` for another reason. Returns what was found.
#[inline(always)]
pub fn look_again<T>(own: &Desk, peer: &Desk, look: impl Fn() -> Option<T>, is_over: impl Fn() -> bool) -> Option<T> {
    let found = look();
    if found.is_some() || is_over() {
        return found;
    }
    if is_beside(own, peer) { look_for_long(look, is_over) } else { look_by_turns(look, is_over) }
}

/// Looks for what the owner of `peer` is expected to bring about within a moment, if it is on another processor.
#[inline(always)]
pub fn look_for_a_moment<T>(own: &Desk, peer: &Desk, look: impl Fn() -> Option<T>) -> Option<T> {
    let found = look();
    if found.is_some() || !is_beside(own, peer) { found } else { look_some_times(&look) }
}

/// Says which processor this one is on, and whether the owner of `peer` was on another when it waited last.
#[inline(always)]
fn is_beside(own: &Desk, peer: &Desk) -> bool {
    let cpu = memory::current_cpu();
    if own.cpu.load(Relaxed) != cpu {
        own.cpu.store(cpu, Relaxed);
    }
    peer.cpu.load(Relaxed) != cpu
}

#[inline(always)]
fn look_some_times<T>(look: &impl Fn() -> Option<T>) -> Option<T> {
    for _ in 0..LOOKS {
        std::hint::spin_loop();
        let found = look();
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Sleeps at one's own desk until it `is_done`.
pub fn sleep_until(own: &Desk, limit: Limit, mut is_done: impl FnMut() -> bool) -> Outcome {
    loop {
        own.bell.store(1, SeqCst);
        if is_done() {
            own.bell.store(0, SeqCst);
            return Outcome::Done;
        }
        let slept = sleep(own, limit);
        own.bell.store(0, SeqCst);
        match slept {
            _ if is_done() => return Outcome::Done,
            Err(rustix::io::Errno::INTR) => return Outcome::Interrupted,
            _ if limit.left_ns() == Some(0) => return Outcome::TimedOut,
            _ => {}
        }
    }
}

/// Looks while the processor is yielded to the peer.
#[cold]
fn look_by_turns<T>(look: impl Fn() -> Option<T>, is_over: impl Fn() -> bool) -> Option<T> {
    for _ in 0..YIELDS {
        rustix::thread::sched_yield();
        let found = look();
        if found.is_some() || is_over() {
            return found;
        }
    }
    None
}

/// Looks while the peer runs on another processor.
#[inline(always)]
fn look_for_long<T>(look: impl Fn() -> Option<T>, is_over: impl Fn() -> bool) -> Option<T> {
    // What comes at once comes before the clock has been asked.
    let mut end = None;
    loop {
        let found = look_some_times(&look);
        if found.is_some() {
            return found;
        }
        let now = now_ns();
        if is_over() || now >= *end.get_or_insert(now + SPIN_NS) {
            return None;
        }
    }
}

fn sleep(own: &Desk, limit: Limit) -> rustix::io::Result<()> {
    let ns = limit.left_ns().map_or(LONGEST_SLEEP_NS, |left| left.min(LONGEST_SLEEP_NS));
    let longest = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    match futex::wait(&own.bell, futex::Flags::empty(), 1, Some(&longest)) {
        Err(rustix::io::Errno::TIMEDOUT | rustix::io::Errno::AGAIN) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}
