//! Policies and priorities of threads, and the kernel's ready queues that they mean.
//!
//! Linux has 99 real-time priorities, the kernel 46 real-time queues for programs. Programs use priorities near either end, so those have
//! queues of their own, and the ones between share: 99 to 83 are queues 3 to 19, 82 to 17 are queues 20 to 30, six each, 16 to 1 are queues
//! 31 to 46. Queues 1 and 2 are left to MINIX4RT. Within a queue, the thread that became ready first runs first.

use abi::Errno;
use abi::call::{NO_QUANTUM, REAL_TIME};
use core::ops::RangeInclusive;

type Result<T> = core::result::Result<T, Errno>;

/// One more than the highest real-time queue.
pub const QUEUES: usize = 47;

/// The best queue of a program with niceness 0; the kernel's default for applications.
const NORMAL_QUEUE: i32 = 8;
/// Niceness per queue.
const NICE_PER_QUEUE: i32 = 5;

const SCHED_OTHER: u64 = 0;
const SCHED_FIFO: u64 = 1;
const SCHED_RR: u64 = 2;
const SCHED_BATCH: u64 = 3;
const SCHED_IDLE: u64 = 5;
/// Or-ed to a policy: children are time shared.
const RESET_ON_FORK: u64 = 0x4000_0000;
/// The same as a flag of `sched_setattr`.
const FLAG_RESET_ON_FORK: u64 = 1;

/// Real-time priorities, the best one last.
pub const PRIORITIES: RangeInclusive<u32> = 1..=99;

/// Size of `struct sched_attr` in its first version; longer ones begin with it.
pub const ATTR_BYTES: u64 = 48;
const ATTR_WORDS: usize = 6;

/// How long a `SCHED_RR` thread runs before others of its queue have their turn (as Linux), and a time-shared one (as the kernel).
const ROUND_ROBIN_US: u64 = 100_000;
const SHARED_US: u64 = 10_000;

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// One of `SCHED_*`.
    policy: u64,
    /// 1 to 99 for real-time policies, else 0.
    priority: u32,
    /// Its children are time shared.
    reset_on_fork: bool,
}

impl Scheduling {
    /// A known policy with a priority that it has. `EINVAL`.
    pub fn new(policy: u64, priority: u32) -> Result<Scheduling> {
        let reset_on_fork = policy & RESET_ON_FORK != 0;
        let policy = policy & !RESET_ON_FORK;
        if priorities(policy)?.contains(&priority) {
            Ok(Scheduling { policy, priority, reset_on_fork })
        } else {
            Err(Errno::EINVAL)
        }
    }

    /// Fixed priority, above all time-shared threads.
    pub fn is_real_time(self) -> bool {
        self.priority != 0
    }

    /// What a child begins with.
    pub fn for_child(self) -> Scheduling {
        if self.reset_on_fork { Scheduling::default() } else { self }
    }

    /// From a `struct sched_attr`. `E2BIG`: too short; `EINVAL`.
    pub fn from_attr(&[size_and_policy, flags, nice_and_priority, ..]: &[u64; ATTR_WORDS]) -> Result<Scheduling> {
        if size_and_policy & 0xffff_ffff < ATTR_BYTES {
            return Err(Errno::E2BIG);
        }
        if flags & !FLAG_RESET_ON_FORK != 0 {
            return Err(Errno::EINVAL);
        }
        let reset = if flags != 0 { RESET_ON_FORK } else { 0 };
        Scheduling::new(size_and_policy >> 32 | reset, (nice_and_priority >> 32) as u32)
    }

    /// As a `struct sched_attr`.
    pub fn to_attr(self, nice: i32) -> [u64; ATTR_WORDS] {
        let nice_and_priority = u64::from(nice as u32) | u64::from(self.priority) << 32;
        [ATTR_BYTES | self.policy << 32, u64::from(self.reset_on_fork), nice_and_priority, 0, 0, 0]
    }

    /// 1 to 99; 0: time shared.
    pub fn priority(self) -> u32 {
        self.priority
    }

    /// How long a turn is; 0: until it waits.
    pub fn turn_us(self) -> u64 {
        match self.policy {
            SCHED_FIFO => 0,
            SCHED_RR => ROUND_ROBIN_US,
            _ => SHARED_US,
        }
    }

    /// The kernel's queue and quantum for a thread of a process with this niceness.
    pub fn queue_and_quantum(self, nice: i32) -> (u64, u64) {
        match self.policy {
            SCHED_FIFO => (REAL_TIME + queue_of(self.priority), NO_QUANTUM),
            SCHED_RR => (REAL_TIME + queue_of(self.priority), ROUND_ROBIN_US),
            _ => (queue_of_nice(nice), SHARED_US),
        }
    }

    /// Linux's policy and real-time priority.
    pub fn policy_and_priority(self) -> (u32, u32) {
        (self.policy as u32, self.priority)
    }

    /// The policy as programs see it.
    pub fn policy_word(self) -> u64 {
        self.policy | if self.reset_on_fork { RESET_ON_FORK } else { 0 }
    }
}

/// The priorities that a policy has. `EINVAL`: unknown policy.
pub fn priorities(policy: u64) -> Result<RangeInclusive<u32>> {
    match policy {
        SCHED_FIFO | SCHED_RR => Ok(PRIORITIES),
        SCHED_OTHER | SCHED_BATCH | SCHED_IDLE => Ok(0..=0),
        _ => Err(Errno::EINVAL),
    }
}

/// The queue after that of this niceness.
pub fn next_queue(nice: i32) -> u64 {
    queue_of_nice(nice + NICE_PER_QUEUE)
}

/// The real-time queue of a priority, 1 to 99.
pub fn queue_of(priority: u32) -> u64 {
    let queue = match priority {
        83.. => 102 - priority,
        17.. => 30 - (priority - 17) / 6,
        _ => 47 - priority,
    };
    queue as u64
}

fn queue_of_nice(nice: i32) -> u64 {
    (NORMAL_QUEUE + nice.div_euclid(NICE_PER_QUEUE)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_priorities_have_better_queues_and_the_ends_have_their_own() {
        let queues: Vec<u64> = PRIORITIES.map(queue_of).collect();
        assert!(queues.is_sorted_by(|lower, higher| lower >= higher));
        assert_eq!((queues[0], queues[98]), (46, 3));
        let distinct = |range: core::ops::Range<usize>| queues[range].is_sorted_by(|lower, higher| lower > higher);
        assert!(distinct(0..17) && distinct(81..99));
    }

    #[test]
    fn policies_want_priorities_of_their_own() {
        assert!(Scheduling::new(SCHED_FIFO, 1).is_ok() && Scheduling::new(SCHED_RR | RESET_ON_FORK, 99).is_ok());
        for (policy, priority) in [(SCHED_FIFO, 0), (SCHED_RR, 100), (SCHED_OTHER, 1), (4, 0), (6, 0)] {
            assert_eq!(Scheduling::new(policy, priority), Err(Errno::EINVAL));
        }
    }
}
