//! What goes with bytes or messages of a socket's pipe (unix(7), "Ancillary messages"): open files, and of streams the sender's ids. And
//! which bytes of a pipe are a packet (pipe(2), `O_DIRECT`).
//!
//! In a pipe of bytes an entry belongs to a range of them: its files go to whoever reads the first byte, and no read passes the range's
//! end then. In a pipe of messages the head of a message says whether the first entry is its own. Invariants: entries are in the order of
//! their bytes; each one's record refers to the next, and the pipe's to the first. Neighbours: `objects::rights` knows open files.

use super::World;
use crate::keep::{
    Kept,
    records::{AncillaryRecord, CARRIED, NO_PLACE, NOWHERE, Ucred},
};
use abi::Errno;
use alloc::{collections::VecDeque, rc::Rc, vec::Vec};
use core::{any::Any, fmt::Debug};
use sys::fallible::{TryQueue, TryVec};

/// Open files on their way to a receiver. A pipe knows where their records are, and no more.
pub trait Rights: Any + Debug {
    /// How many they are.
    fn count(&self) -> usize;
    /// Where the record of one of them is.
    fn place(&self, index: usize) -> u32;
    /// They are in a pipe from now on.
    fn enter(&self);
    /// They are in no pipe any more.
    fn leave(&self);
}

/// What a sender gives with a message or bytes.
#[derive(Clone, Debug, Default)]
pub struct Cargo {
    /// The sender's ids.
    pub sender: Option<Ucred>,
    /// Open files.
    pub rights: Option<Rc<dyn Rights>>,
}

/// How far a read goes, entry by entry.
struct Stretch {
    bytes: usize,
    wanted: usize,
    by_sender: bool,
    /// Of the bytes so far, if they have to have one sender.
    sender: Option<Option<Ucred>>,
}

impl Stretch {
    /// Goes over so many bytes of a sender. False: the read ends before them.
    #[inline]
    fn goes_over(&mut self, bytes: usize, of: Option<Ucred>) -> bool {
        if bytes == 0 {
            return true;
        }
        if self.bytes >= self.wanted || self.by_sender && *self.sender.get_or_insert(of) != of {
            return false;
        }
        self.bytes += bytes;
        true
    }

    fn end(self, rights: Option<Rc<dyn Rights>>) -> (usize, Cargo) {
        (self.bytes.min(self.wanted), Cargo { sender: self.sender.flatten(), rights })
    }
}

/// An entry.
#[derive(Debug)]
pub struct Ancillary {
    record: Kept<AncillaryRecord>,
    /// Records of further files.
    more: Vec<Kept<AncillaryRecord>>,
    rights: Option<Rc<dyn Rights>>,
}

impl Ancillary {
    /// An entry of a user, which a pipe may take. `ETOOMANYREFS`: the user has his share; `ENOMEM`.
    #[inline]
    fn new(world: &impl World, user: u32, cargo: &Cargo) -> Result<Ancillary, Errno> {
        let count = cargo.rights.as_ref().map_or(0, |rights| rights.count());
        let files = |first: usize| {
            let mut record = AncillaryRecord { count: count.saturating_sub(first).min(CARRIED) as u8, ..blank(user) };
            if let Some(rights) = &cargo.rights {
                let places = record.files.iter_mut().take(record.count as usize);
                places.enumerate().for_each(|(index, place)| *place = rights.place(first + index));
            }
            record
        };
        let (mut more, mut behind) = (Vec::new(), NOWHERE);
        // The last record first: each refers to the next.
        for first in (CARRIED..count).step_by(CARRIED).rev() {
            let record = AncillaryRecord { more: behind, ..files(first) };
            let kept = world.new_ancillary(record)?;
            kept.put_unreferenced(record);
            behind = kept.place() as u16;
            more.try_push(kept)?;
        }
        let record = AncillaryRecord { more: behind, sender: cargo.sender, ..files(0) };
        Ok(Ancillary { record: world.new_ancillary(record)?, more, rights: cargo.rights.clone() })
    }

    /// One that a predecessor has left, with the records of its further files.
    pub fn restore(
        record: Kept<AncillaryRecord>,
        more: Vec<Kept<AncillaryRecord>>,
        rights: Option<Rc<dyn Rights>>,
    ) -> Ancillary {
        if let Some(rights) = &rights {
            rights.enter();
        }
        Ancillary { record, more, rights }
    }

    fn place(&self) -> u16 {
        self.record.place() as u16
    }

    /// Takes the files out: they go to a receiver, or to nobody.
    fn take_rights(&mut self) -> Option<Rc<dyn Rights>> {
        self.more.clear();
        let rights = self.rights.take();
        rights.inspect(|rights| rights.leave())
    }
}

impl Drop for Ancillary {
    fn drop(&mut self) {
        self.take_rights();
    }
}

/// A record without files.
fn blank(user: u32) -> AncillaryRecord {
    let (next, more, files) = (NOWHERE, NOWHERE, [NO_PLACE; CARRIED]);
    AncillaryRecord { next, more, files, count: 0, packet: false, before: 0, bytes: 0, sender: None, user }
}

/// All entries of a pipe.
#[derive(Debug, Default)]
pub(super) struct Ancillaries {
    queue: VecDeque<Ancillary>,
    /// Bytes up to the end of the last entry's.
    marked: usize,
    /// How many of the entries are packets, and of how many bytes.
    packets: (usize, usize),
}

impl Ancillaries {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The place of the first one's record.
    pub(super) fn first(&self) -> u16 {
        self.queue.front().map_or(NOWHERE, Ancillary::place)
    }

    /// Appends one that a predecessor has left.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub(super) fn restore(&mut self, entry: Ancillary) {
        let record = entry.record.get();
        self.marked += (record.before + record.bytes) as usize;
        self.count(&record, 1);
        self.queue.push_back(entry);
    }

    /// An entry that [`Ancillaries::push`] will take. `ETOOMANYREFS`, `ENOMEM`.
    #[inline]
    pub(super) fn prepare(&mut self, world: &impl World, user: u32, cargo: &Cargo) -> Result<Ancillary, Errno> {
        self.queue.try_make_room(1)?;
        Ancillary::new(world, user, cargo)
    }

    /// An entry for a packet, as [`Ancillaries::prepare`] makes one. `ENOMEM`: also when the user has his share.
    pub(super) fn prepare_packet(&mut self, world: &impl World, user: u32) -> Result<Ancillary, Errno> {
        self.queue.try_make_room(1)?;
        let record = AncillaryRecord { packet: true, ..blank(user) };
        let record = world.new_ancillary(record).map_err(|_| Errno::ENOMEM)?;
        Ok(Ancillary { record, more: Vec::new(), rights: None })
    }

    /// How many packets there are, and how many bytes they have.
    pub(super) fn packets(&self) -> (usize, usize) {
        self.packets
    }

    /// An entry has come (`by` 1) or gone (-1).
    fn count(&mut self, record: &AncillaryRecord, by: isize) {
        if record.packet {
            let (packets, bytes) = self.packets;
            let bytes = bytes.wrapping_add_signed(by * record.bytes as isize);
            self.packets = (packets.wrapping_add_signed(by), bytes);
        }
    }

    /// How many bytes follow the first `read` ones in a packet that these end in: they are not read any more.
    pub(super) fn rest_of_packet(&self, read: usize) -> usize {
        if self.packets.0 == 0 {
            return 0;
        }
        let mut at = 0;
        for record in self.queue.iter().map(|entry| entry.record.get()) {
            let begin = at + record.before as usize;
            at = begin + record.bytes as usize;
            if read <= at {
                return if record.packet && read > begin { at - read } else { 0 };
            }
        }
        0
    }

    /// Appends an entry that has been prepared, for the last `bytes` of `length` bytes.
    #[inline]
    pub(super) fn mark(&mut self, entry: Ancillary, length: usize, bytes: usize) {
        let before = length - bytes - self.marked;
        self.marked = length;
        self.push(entry, before, bytes);
    }

    /// Appends an entry that has been prepared; of a stream, for so many bytes, behind so many without one.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "room was made")]
    pub(super) fn push(&mut self, entry: Ancillary, before: usize, bytes: usize) {
        let record = AncillaryRecord { before: before as u32, bytes: bytes as u32, ..entry.record.get() };
        entry.record.put_unreferenced(record);
        self.count(&record, 1);
        if let Some(last) = self.queue.back() {
            last.record.update(|record| record.next = entry.place());
        }
        if let Some(rights) = &entry.rights {
            rights.enter();
        }
        self.queue.push_back(entry);
    }

    /// Whether the last entry goes with the last of `length` bytes, is of this sender, and has no files.
    pub(super) fn joins(&self, sender: Ucred, length: usize) -> bool {
        let last = self.queue.back().filter(|last| self.marked == length && last.rights.is_none());
        last.is_some_and(|last| last.record.get().sender == Some(sender))
    }

    /// Has the last entry go with all bytes up to the last of `length`.
    pub(super) fn extend(&mut self, length: usize) {
        let further = length - self.marked;
        if let Some(last) = self.queue.back().filter(|_| further > 0) {
            last.record.update(|record| record.bytes += further as u32);
            self.marked = length;
        }
    }

    /// How far a read of `wanted` of `length` bytes goes, and what goes with these; `by_sender`: it does not pass from one sender to another.
    pub(super) fn stretch(&self, length: usize, wanted: usize, by_sender: bool) -> (usize, Cargo) {
        let mut stretch = Stretch { bytes: 0, wanted, by_sender, sender: None };
        for entry in &self.queue {
            let record = entry.record.get();
            if !stretch.goes_over(record.before as usize, None)
                || !stretch.goes_over(record.bytes as usize, record.sender)
            {
                return stretch.end(None);
            }
            if entry.rights.is_some() || record.packet {
                return stretch.end(entry.rights.clone());
            }
        }
        stretch.goes_over(length - self.marked, None);
        stretch.end(None)
    }

    /// The first bytes have been read, of which there were as many; files that go with them leave.
    pub(super) fn consume(&mut self, mut bytes: usize) {
        self.marked = self.marked.saturating_sub(bytes);
        while bytes > 0 {
            let Some(entry) = self.queue.front_mut() else { return };
            let old = entry.record.get();
            let skipped = (old.before as usize).min(bytes);
            let taken = (old.bytes as usize).min(bytes - skipped);
            bytes -= skipped + taken;
            if taken > 0 {
                entry.take_rights();
            }
            let (before, left) = (old.before - skipped as u32, old.bytes - taken as u32);
            if before + left == 0 {
                self.queue.pop_front();
                self.count(&old, -1);
                continue;
            }
            let mut record = AncillaryRecord { before, bytes: left, ..old };
            if taken > 0 {
                (record.more, record.count) = (NOWHERE, 0);
            }
            entry.record.set(record);
            self.count(&old, -1);
            return self.count(&record, 1);
        }
    }

    /// The files of the first message.
    pub(super) fn first_rights(&self) -> Option<Rc<dyn Rights>> {
        self.queue.front().and_then(|first| first.rights.clone())
    }

    /// Removes the first message's entry.
    pub(super) fn skip(&mut self) {
        self.queue.pop_front();
    }

    /// Takes all of them.
    pub(super) fn take(&mut self) -> VecDeque<Ancillary> {
        (self.marked, self.packets) = (0, (0, 0));
        core::mem::take(&mut self.queue)
    }

    /// The files of all entries.
    pub(super) fn rights(&self) -> impl Iterator<Item = &Rc<dyn Rights>> {
        self.queue.iter().filter_map(|entry| entry.rights.as_ref())
    }
}
