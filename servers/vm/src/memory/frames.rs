//! The frames of physical memory: which are free, and how many users each other one has.
//!
//! A frame in use has one user (a page of a space, an object, vm itself) or, after fork, as many as spaces own the same
//! page. Free frames are bits in words, with one summary bit a word, so that taking one costs a few instructions and
//! frames taken one after the other tend to be neighbours, which lets mappings be made in runs.
//!
//! What vm needs for itself (its heap, page tables, zeros) is marked so: after a death of vm all other users are recounted
//! (`recover`).
//!
//! Invariants: a frame is free exactly when its bit is set; then it has no users. Neighbours: `memory`, which decides who
//! may still take a frame when few are left.

use abi::layout::{PAGE_BYTES, SPACES};
use alloc::{vec, vec::Vec};

/// A frame, by number: its physical address divided by the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame(pub u32);

impl Frame {
    /// Physical address.
    pub const fn address(self) -> u64 {
        self.0 as u64 * PAGE_BYTES
    }

    /// The frame `index` frames behind this one.
    pub const fn plus(self, index: u64) -> Frame {
        Frame(self.0 + index as u32)
    }
}

/// Frames that lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub first: Frame,
    /// How many.
    pub frames: u64,
}

impl Run {
    /// The frames one by one.
    pub fn iter(self) -> impl Iterator<Item = Frame> {
        (0..self.frames).map(move |index| self.first.plus(index))
    }
}

/// Users of a frame that is vm's own.
pub const OWN: u16 = u16::MAX;

const WORD: usize = u64::BITS as usize;

// Every space may be a user, and vm itself.
const _: () = assert!(SPACES < u16::MAX as usize);

/// All frames that vm has.
#[derive(Debug)]
pub struct Frames {
    free_bits: Vec<u64>,
    summary: Vec<u64>,
    users: Vec<u16>,
    /// Words of `summary` below this one are zero.
    first_summary: usize,
    free: usize,
    total: usize,
}

impl Frames {
    /// No frames, with room for numbers below `limit`.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start")]
    pub fn new(limit: usize) -> Frames {
        let words = limit.div_ceil(WORD);
        let summary = words.div_ceil(WORD);
        Frames {
            free_bits: vec![0; words],
            summary: vec![0; summary],
            users: vec![0; words * WORD],
            first_summary: summary,
            free: 0,
            total: 0,
        }
    }

    /// Bytes of heap that `new(limit)` takes.
    pub const fn heap_bytes(limit: usize) -> usize {
        limit * 2 + limit / 8 + limit / 512 + 4096
    }

    /// Adds a free frame. Frames beyond the limit and known ones are left out.
    pub fn add(&mut self, frame: Frame) {
        let index = frame.0 as usize;
        if index < self.users.len() && self.users[index] == 0 && !self.is_free(frame) {
            self.total += 1;
            self.make_free(index);
        }
    }

    /// Number of free frames.
    pub fn free(&self) -> usize {
        self.free
    }

    /// Number of all frames that were ever added.
    pub fn total(&self) -> usize {
        self.total
    }

    /// True for frames that were added: memory in vm's hands, free or not.
    pub fn manages(&self, frame: Frame) -> bool {
        self.users(frame) > 0 || self.is_free(frame)
    }

    /// How many users a frame has.
    pub fn users(&self, frame: Frame) -> u16 {
        self.users.get(frame.0 as usize).copied().unwrap_or(0)
    }

    /// Takes a free frame, for one user.
    pub fn take(&mut self) -> Option<Frame> {
        let word = self.first_free_word()?;
        let index = word * WORD + self.free_bits[word].trailing_zeros() as usize;
        self.make_used(index);
        Some(Frame(index as u32))
    }

    /// Takes a free frame and its free followers, at most `most` in all.
    pub fn take_some(&mut self, most: u64) -> Option<Run> {
        let first = self.take()?;
        let mut frames = 1;
        while frames < most && self.is_free(first.plus(frames)) {
            self.make_used(first.plus(frames).0 as usize);
            frames += 1;
        }
        Some(Run { first, frames })
    }

    /// Takes exactly `frames` neighbours, from the top of memory, where single frames are taken last.
    pub fn take_run(&mut self, frames: u64) -> Option<Run> {
        let mut found = 0;
        let mut index = self.users.len();
        while found < frames {
            index = index.checked_sub(1)?;
            found = if self.is_free(Frame(index as u32)) { found + 1 } else { 0 };
        }
        let run = Run { first: Frame(index as u32), frames };
        run.iter().for_each(|frame| self.make_used(frame.0 as usize));
        Some(run)
    }

    /// Adds a user to a frame in use. A space uses a frame once, so the count cannot overflow.
    pub fn share(&mut self, frame: Frame) {
        self.users[frame.0 as usize] += 1;
    }

    /// Takes a user away from a frame in use; the last one frees it.
    pub fn release(&mut self, frame: Frame) {
        let index = frame.0 as usize;
        match self.users[index] {
            0 => debug_assert!(false, "frame {index} is released but free"),
            1 => self.make_free(index),
            _ => self.users[index] -= 1,
        }
    }

    /// Frames in use become vm's own.
    pub fn keep(&mut self, run: Run) {
        run.iter().for_each(|frame| self.users[frame.0 as usize] = OWN);
    }

    /// Frames of vm's own are free.
    pub fn unkeep(&mut self, run: Run) {
        run.iter().for_each(|frame| self.make_free(frame.0 as usize));
    }

    /// Frees everything but vm's own frames: the other users claim theirs again.
    pub fn begin_recount(&mut self) {
        self.free = 0;
        self.free_bits.iter().for_each(|word| self.free += word.count_ones() as usize);
        for index in 0..self.users.len() {
            if !matches!(self.users[index], 0 | OWN) {
                self.make_free(index);
            }
        }
    }

    /// One more user of a frame. False: it is nobody's to use.
    pub fn claim(&mut self, frame: Frame) -> bool {
        match self.users(frame) {
            0 if !self.is_free(frame) => return false,
            OWN => return false,
            0 => self.make_used(frame.0 as usize),
            _ => self.share(frame),
        }
        true
    }

    fn is_free(&self, frame: Frame) -> bool {
        let index = frame.0 as usize;
        self.free_bits.get(index / WORD).is_some_and(|word| word >> (index % WORD) & 1 != 0)
    }

    fn first_free_word(&mut self) -> Option<usize> {
        while *self.summary.get(self.first_summary)? == 0 {
            self.first_summary += 1;
        }
        Some(self.first_summary * WORD + self.summary[self.first_summary].trailing_zeros() as usize)
    }

    fn make_used(&mut self, index: usize) {
        let word = index / WORD;
        self.free_bits[word] &= !(1 << (index % WORD));
        if self.free_bits[word] == 0 {
            self.summary[word / WORD] &= !(1 << (word % WORD));
        }
        self.users[index] = 1;
        self.free -= 1;
    }

    fn make_free(&mut self, index: usize) {
        let word = index / WORD;
        self.free_bits[word] |= 1 << (index % WORD);
        self.summary[word / WORD] |= 1 << (word % WORD);
        self.first_summary = self.first_summary.min(word / WORD);
        self.users[index] = 0;
        self.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(numbers: core::ops::Range<u32>) -> Frames {
        let mut frames = Frames::new(numbers.end as usize);
        numbers.for_each(|number| frames.add(Frame(number)));
        frames
    }

    #[test]
    fn every_frame_is_given_out_once() {
        let mut frames = frames(10..5000);
        let mut taken: Vec<Frame> = core::iter::from_fn(|| frames.take()).collect();
        assert_eq!((taken.len(), frames.free()), (4990, 0));
        taken.dedup();
        assert_eq!((taken.len(), taken[0]), (4990, Frame(10)));
        taken.iter().for_each(|&frame| frames.release(frame));
        assert_eq!((frames.free(), frames.total()), (4990, 4990));
    }

    #[test]
    fn the_last_user_frees_a_frame() {
        let mut frames = frames(0..1);
        let frame = frames.take().expect("one is free");
        frames.share(frame);
        frames.release(frame);
        assert_eq!((frames.take(), frames.users(frame)), (None, 1));
        frames.release(frame);
        assert_eq!(frames.take(), Some(frame));
    }

    #[test]
    fn runs_end_at_used_frames() {
        let mut frames = frames(0..200);
        let all: Vec<Frame> = core::iter::from_fn(|| frames.take()).collect();
        for index in [3, 4, 5, 7, 60, 61, 62, 63, 64, 65, 66] {
            frames.release(all[index]);
        }
        assert_eq!(frames.take_some(16), Some(Run { first: Frame(3), frames: 3 }));
        assert_eq!(frames.take_run(5), Some(Run { first: Frame(62), frames: 5 }));
        assert_eq!(frames.take_run(3), None);
        assert_eq!(frames.take_some(1), Some(Run { first: Frame(7), frames: 1 }));
        assert_eq!(frames.free(), 2);
    }

    #[test]
    fn the_table_needs_no_more_heap_than_foretold() {
        for limit in [1, 1000, 65_536, 1 << 24] {
            let frames = Frames::new(limit);
            let bytes = frames.users.len() * 2 + (frames.free_bits.len() + frames.summary.len()) * 8;
            assert!(bytes <= Frames::heap_bytes(limit), "{limit} frames need {bytes} bytes");
        }
    }

    #[test]
    fn a_frame_added_twice_counts_once() {
        let mut frames = frames(0..10);
        frames.add(Frame(5));
        let taken = frames.take().expect("free");
        frames.add(taken);
        frames.add(Frame(5000));
        assert_eq!((frames.free(), frames.total()), (9, 10));
        assert!(frames.manages(taken) && !frames.manages(Frame(500)));
    }
}
