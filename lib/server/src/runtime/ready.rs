//! The set of ready tasks: one bit each, found in a few instructions.
//!
//! Wakers must be `Send` and `Sync` by Rust's rules although there is one thread; atomics make them so without a lock.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Limit of tasks: 64 words of 64 bits.
pub const TASKS: usize = 64 * 64;

/// Tasks that were woken and have not run since.
pub struct ReadySet {
    /// Bit `w`: `words[w]` is not empty.
    summary: AtomicU64,
    words: [AtomicU64; 64],
}

impl ReadySet {
    /// Returns the empty set.
    pub const fn new() -> Self {
        ReadySet { summary: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; 64] }
    }

    /// Returns whether no task is ready.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.summary.load(Relaxed) == 0
    }

    /// Adds a task.
    pub fn insert(&self, task: usize) {
        self.words[task / 64].fetch_or(1 << (task % 64), Relaxed);
        self.summary.fetch_or(1 << (task / 64), Relaxed);
    }

    /// Removes the first task at or after `from`, else the first of all.
    pub fn take(&self, from: usize) -> Option<usize> {
        let word = from / 64 % 64;
        let summary = self.summary.load(Relaxed);
        if summary == 0 {
            return None;
        }
        let rest = self.words[word].load(Relaxed) & !0 << (from % 64);
        if rest != 0 {
            return Some(self.remove(word, rest.trailing_zeros()));
        }
        let later = summary & mask_above(word);
        let word = if later != 0 { later.trailing_zeros() } else { summary.trailing_zeros() } as usize;
        Some(self.remove(word, self.words[word].load(Relaxed).trailing_zeros()))
    }

    fn remove(&self, word: usize, bit: u32) -> usize {
        let left = self.words[word].load(Relaxed) & !(1 << bit);
        self.words[word].store(left, Relaxed);
        if left == 0 {
            self.summary.store(self.summary.load(Relaxed) & !(1 << word), Relaxed);
        }
        word * 64 + bit as usize
    }
}

/// Bits above `bit`.
const fn mask_above(bit: usize) -> u64 {
    if bit == 63 { 0 } else { !0 << (bit + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_woken_task_is_taken_once_in_turn() {
        let set = ReadySet::new();
        for task in [5, 64, 63, 4095, 5, 130] {
            set.insert(task);
        }
        let mut from = 60;
        let mut order = std::vec::Vec::new();
        while let Some(task) = set.take(from) {
            order.push(task);
            from = task + 1;
        }
        assert_eq!(order, [63, 64, 130, 4095, 5]);
    }

    #[test]
    fn a_task_woken_again_while_it_runs_is_there_again() {
        let set = ReadySet::new();
        set.insert(7);
        assert_eq!(set.take(0), Some(7));
        set.insert(7);
        assert_eq!(set.take(8), Some(7));
        assert_eq!(set.take(8), None);
    }
}
