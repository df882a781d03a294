//! The frames of physical memory: which are free, and how many users each other one has. This file is long because its tests stand beside what they try.
//!
//! A frame in use has one user (a page of a space, an object, vm itself) or, after fork, as many as leaves (`pages`) own the same
//! page. Free frames are bits in words, with one summary bit a word, so that taking one costs a few instructions and
//! frames taken one after the other tend to be neighbours, which lets mappings be made in runs.
//!
//! What vm needs for itself (its heap, page tables, zeros) is marked so: after a death of vm all other users are recounted
//! (`recover`).
//!
//! A frame that a container pays for is marked, and its payer noted, until its last user releases it: what is copied on write or shared by processes of
//! a container counts once.
//!
//! Invariants: a frame is free exactly when its bit is set; then it has no users. Neighbours: `memory`, which decides who
//! may still take a frame when few are left.

use abi::Errno;
use abi::container::CONTAINERS;
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
pub const OWN: u16 = PAID - 1;
/// Added to the users of a frame that a container pays for.
const PAID: u16 = 1 << 15;

/// The last user of a frame that a container pays for.
const LAST_PAID: u16 = PAID | 1;

const WORD: usize = u64::BITS as usize;

// Every space may be a user, and vm itself.
const _: () = assert!(SPACES < OWN as usize);

/// Who pays for frames: a container with limits, or nobody in particular.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Payer(u8);

impl Payer {
    /// Services, and programs in no container with limits.
    pub const NOBODY: Payer = Payer(0);

    /// A container. `EINVAL`: there is none with this number.
    pub fn container(number: u64) -> Result<Payer, Errno> {
        if (1..CONTAINERS as u64).contains(&number) { Ok(Payer(number as u8)) } else { Err(Errno::EINVAL) }
    }

    /// As a number of a byte.
    pub const fn to_bits(self) -> usize {
        self.0 as usize
    }

    /// From [`Payer::to_bits`].
    pub const fn from_bits(bits: usize) -> Payer {
        Payer(bits as u8)
    }

    fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// What a container pays for.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    frames: u64,
    /// Page tables of its spaces: the kernel's pool has given and takes their frames.
    tables: u64,
    limit: u64,
}

/// All frames that vm has.
#[derive(Debug)]
pub struct Frames {
    free_bits: Vec<u64>,
    summary: Vec<u64>,
    users: Vec<u16>,
    /// Who pays for each frame that is marked `PAID`.
    payers: Vec<Payer>,
    accounts: [Account; CONTAINERS],
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
            payers: vec![Payer::NOBODY; words * WORD],
            accounts: [Account::default(); CONTAINERS],
            first_summary: summary,
            free: 0,
            total: 0,
        }
    }

    /// Bytes of heap that `new(limit)` takes.
    pub const fn heap_bytes(limit: usize) -> usize {
        limit * 3 + limit / 8 + limit / 512 + 4096
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

    /// Whether any frame of a run is memory in vm's hands, free or not.
    pub fn manages_any(&self, run: Run) -> bool {
        let first = (run.first.0 as usize).min(self.users.len());
        let end = first.saturating_add(run.frames as usize).min(self.users.len());
        self.users[first..end].iter().any(|users| users & !PAID != 0) || self.is_any_free(first, end)
    }

    /// Whether any frame from `first` up to `end` is free, by words.
    fn is_any_free(&self, first: usize, end: usize) -> bool {
        let mut at = first;
        while at < end {
            let bits = (WORD - at % WORD).min(end - at);
            if self.free_bits[at / WORD] >> (at % WORD) << (WORD - bits) != 0 {
                return true;
            }
            at += bits;
        }
        false
    }

    /// How many users a frame has.
    pub fn users(&self, frame: Frame) -> u16 {
        self.users.get(frame.0 as usize).map_or(0, |users| users & !PAID)
    }

    /// Sets how many frames a container may pay for. What it has already stays.
    pub fn set_limit(&mut self, payer: Payer, limit: u64) {
        self.accounts[payer.get()].limit = limit;
    }

    /// Returns how many frames a container pays for, page tables included.
    pub fn paid_by(&self, payer: Payer) -> u64 {
        let account = &self.accounts[payer.get()];
        account.frames + account.tables
    }

    /// Returns how many frames a payer may still get.
    pub fn left_for(&self, payer: Payer) -> u64 {
        if payer == Payer::NOBODY {
            return u64::MAX;
        }
        self.accounts[payer.get()].limit.saturating_sub(self.paid_by(payer))
    }

    /// Returns who pays for a frame.
    #[cfg(test)]
    pub fn payer_of(&self, frame: Frame) -> Payer {
        let index = frame.0 as usize;
        if self.users[index] & PAID != 0 { self.payers[index] } else { Payer::NOBODY }
    }

    /// Frames that have just been taken are paid for by somebody.
    pub fn charge(&mut self, run: Run, payer: Payer) {
        if payer != Payer::NOBODY {
            self.accounts[payer.get()].frames += run.frames;
            for index in run.iter().map(|frame| frame.0 as usize) {
                self.users[index] |= PAID;
                self.payers[index] = payer;
            }
        }
    }

    /// Page tables of a payer's spaces have taken frames.
    pub fn charge_tables(&mut self, frames: u64, payer: Payer) {
        if payer != Payer::NOBODY {
            self.accounts[payer.get()].tables += frames;
        }
    }

    /// Page tables of a payer's spaces are gone, or another one's.
    pub fn refund_tables(&mut self, frames: u64, payer: Payer) {
        if payer != Payer::NOBODY {
            let account = &mut self.accounts[payer.get()];
            account.tables = account.tables.saturating_sub(frames);
        }
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

    /// Adds a user to a frame in use. A leaf uses a frame once and a space has a page in one leaf, so the count cannot overflow.
    pub fn share(&mut self, frame: Frame) {
        self.users[frame.0 as usize] += 1;
    }

    /// Takes a user away from a frame in use; the last one frees it.
    pub fn release(&mut self, frame: Frame) {
        let index = frame.0 as usize;
        match self.users[index] {
            0 => debug_assert!(false, "frame {index} is released but free"),
            1 => self.make_free(index),
            LAST_PAID => self.refund(index),
            _ => self.users[index] -= 1,
        }
    }

    #[cold]
    fn refund(&mut self, index: usize) {
        self.accounts[self.payers[index].get()].frames -= 1;
        self.make_free(index);
    }

    /// Frames in use become vm's own.
    pub fn keep(&mut self, run: Run) {
        run.iter().for_each(|frame| self.users[frame.0 as usize] = OWN);
    }

    /// Frames of vm's own are free.
    pub fn unkeep(&mut self, run: Run) {
        run.iter().for_each(|frame| self.make_free(frame.0 as usize));
    }

    /// Frees everything but vm's own frames: the other users claim theirs again, until `end_recount`.
    pub fn begin_recount(&mut self) {
        self.accounts.iter_mut().for_each(|account| (account.frames, account.tables) = (0, 0));
        self.free = 0;
        self.free_bits.iter().for_each(|word| self.free += word.count_ones() as usize);
        for index in 0..self.users.len() {
            if !matches!(self.users[index], 0 | OWN) {
                let paid = self.users[index] & PAID;
                self.make_free(index);
                self.users[index] = paid;
            }
        }
    }

    /// Nobody pays for what nobody has claimed.
    pub fn end_recount(&mut self) {
        self.users.iter_mut().filter(|users| **users == PAID).for_each(|users| *users = 0);
    }

    /// One more user of a frame. False: it is nobody's to use.
    pub fn claim(&mut self, frame: Frame) -> bool {
        match self.users(frame) {
            0 if !self.is_free(frame) => return false,
            OWN => return false,
            0 => self.claim_first(frame.0 as usize),
            _ => self.share(frame),
        }
        true
    }

    /// The first user of a frame, which is paid for by whom it was before.
    fn claim_first(&mut self, index: usize) {
        let paid = self.users[index];
        self.make_used(index);
        if paid != 0 {
            self.users[index] |= paid;
            self.accounts[self.payers[index].get()].frames += 1;
        }
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
    fn a_frame_is_paid_for_once_until_its_last_user_releases_it() {
        let mut frames = frames(0..100);
        let [first, second] = [3, 4].map(|number| Payer::container(number).unwrap());
        frames.set_limit(first, 10);
        let run = frames.take_some(4).unwrap();
        frames.charge(run, first);
        frames.charge_tables(5, first);
        assert_eq!((frames.paid_by(first), frames.left_for(first), frames.paid_by(second)), (9, 1, 0));
        frames.share(run.first);
        assert_eq!((frames.users(run.first), frames.paid_by(first)), (2, 9));
        frames.release(run.first);
        assert_eq!((frames.users(run.first), frames.paid_by(first)), (1, 9));
        run.iter().for_each(|frame| frames.release(frame));
        frames.refund_tables(5, first);
        assert_eq!((frames.paid_by(first), frames.free()), (0, 100));
        assert_eq!(frames.take(), Some(run.first), "the next one pays for itself");
        frames.release(run.first);
        assert_eq!((frames.left_for(Payer::NOBODY), frames.paid_by(first)), (u64::MAX, 0));
        assert!([0, CONTAINERS as u64, u64::MAX].iter().all(|number| Payer::container(*number).is_err()));
    }

    #[test]
    fn a_recount_finds_who_pays_for_what_is_claimed_and_forgets_the_rest() {
        let mut frames = frames(0..10);
        let payer = Payer::container(62).unwrap();
        let run = frames.take_some(3).unwrap();
        frames.charge(run, payer);
        let [other, own] = [(); 2].map(|()| frames.take().unwrap());
        frames.keep(Run { first: own, frames: 1 });
        frames.begin_recount();
        assert!(frames.claim(run.first) && frames.claim(run.first) && frames.claim(other) && !frames.claim(own));
        frames.end_recount();
        assert_eq!((frames.paid_by(payer), frames.users(run.first), frames.free()), (1, 2, 7));
        // What was forgotten is not found by the next recount either.
        frames.begin_recount();
        assert!(frames.claim(run.first) && frames.claim(run.first) && frames.claim(other));
        frames.end_recount();
        assert_eq!((frames.paid_by(payer), frames.free()), (1, 7));
        assert!(!frames.manages(Frame(500)) && frames.manages(run.first.plus(1)));
        frames.release(run.first);
        frames.release(run.first);
        frames.release(other);
        assert_eq!((frames.paid_by(payer), frames.free()), (0, 9));
        let again: Vec<Frame> = core::iter::from_fn(|| frames.take()).collect();
        again.iter().for_each(|frame| frames.release(*frame));
        assert_eq!((again.len(), frames.paid_by(payer)), (9, 0));
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
            let bytes = frames.users.len() * 3 + (frames.free_bits.len() + frames.summary.len()) * 8;
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

    #[test]
    fn a_run_is_managed_if_any_of_its_frames_is() {
        let mut frames = Frames::new(300);
        [3, 64, 127, 190].into_iter().for_each(|index| frames.add(Frame(index)));
        let taken = [3, 190].map(|_| frames.take().expect("there are four"));
        for first in 0..310 {
            for count in [0, 1, 2, 60, 64, 65, 129, 1 << 40] {
                let run = Run { first: Frame(first), frames: count };
                let by_one = run.iter().take(400).any(|frame| frames.manages(frame));
                assert_eq!(frames.manages_any(run), by_one, "{first} {count} {taken:?}");
            }
        }
    }
}
