//! `vcopy` in Linux: by the kernel from one process's memory to another's, or, between two buffers of the library, by this process itself.
//!
//! Who copies between buffers has both mapped. What it has found out it keeps as a [`Way`], for the next copy between the same two: whatever could have changed
//! is a word that is compared. A way leads to memory that is mapped here as long as the way exists, so whatever another process does, a copy
//! reads and writes nothing else.
//!
//! Neighbours: `buffers` has this process's own, `region` copies.

use crate::board::Buffer;
use crate::buffers;
use crate::client;
use crate::desk::Word;
use crate::member::Member;
use crate::memory::{self, Block};
use crate::region::{self, Region};
use crate::wire::internal;
use m3ipc::call::Call;
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use m3ipc::limits::{BUFFERS, MAX_COPY};
use m3ipc::rights::Trap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Looks at a process that does something else each time, before it is taken for one that does not wait.
const STABLE_LOOKS: u32 = 100;

/// One of the two processes between which is copied.
#[derive(Clone, Copy)]
struct Party {
    /// The name by which the caller calls it.
    endpoint: i32,
    address: usize,
    number: Number,
    incarnation: u32,
    leader: Number,
    pid: i32,
    /// What it did when it was checked.
    words: (Word, Word),
}

/// Two blocks that `vcopy` was asked for, once its parties have been checked.
pub(crate) struct Copy {
    parties: [Party; 2],
    bytes: usize,
    member: Arc<Member>,
}

impl Copy {
    /// Checks what `vcopy` was asked for.
    ///
    /// # Errors
    /// As `Rendezvous::check_copy`; `CallDenied`; `Range`.
    pub(crate) fn check(member: &Arc<Member>, from: (i32, usize), to: (i32, usize), bytes: i32) -> Result<Copy, Error> {
        member.rights().check_trap(Trap::Copy)?;
        let length = usize::try_from(bytes).map_err(|_| Error::Range)?;
        if length as u64 > MAX_COPY {
            return Err(Error::Range);
        }
        let locate = |endpoint: i32| match Endpoint::from_raw(endpoint) {
            Endpoint::SELF => Ok(member.number),
            other => member.board.locate(other).map(|(number, _)| number),
        };
        let numbers = [locate(from.0)?, locate(to.0)?];
        let parties = [Party::check(member, from, numbers[0])?, Party::check(member, to, numbers[1])?];
        if parties[0].leader == parties[1].leader {
            return Err(Error::NotPermitted);
        }
        Ok(Copy { parties, bytes: length, member: member.clone() })
    }

    /// Copies, by this process or, where it may not, by the broker. Returns how many bytes.
    ///
    /// # Errors
    /// `AddressNotAvailable`: a block is not mapped. `NotPermitted`. `BadState`: a party has stopped waiting meanwhile.
    ///
    /// # Safety
    /// As [`memory::copy`].
    pub(crate) unsafe fn run(&self) -> Result<i64, Error> {
        let [from, to] = self.parties.map(|party| Block { pid: party.pid, address: party.address });
        // SAFETY: as the caller promises.
        let own = unsafe { memory::copy(from, to, self.bytes) };
        match own {
            Ok(()) => {}
            Err(rustix::io::Errno::PERM) => {
                let [from, to] = self.parties.map(|party| [i64::from(party.endpoint), party.address as i64]);
                client::call(Call::Copy as u32, &[from[0], from[1], to[0], to[1], self.bytes as i64], &[])?;
            }
            Err(rustix::io::Errno::SRCH) => return Err(Error::DestinationDied),
            Err(rustix::io::Errno::NOMEM) => return Err(Error::NoMemory),
            Err(_) => return Err(Error::AddressNotAvailable),
        }
        let member = &self.member;
        let has_moved =
            |party: &Party| party.number != member.number && member.desks.desk(party.number).status() != party.words.0;
        if self.parties.iter().any(has_moved) {
            return Err(Error::BadState);
        }
        let copied = &member.desk().copied;
        copied.store(copied.load(Relaxed).wrapping_add(1), Relaxed);
        Ok(self.bytes as i64)
    }
}

impl Party {
    fn check(member: &Member, (endpoint, address): (i32, usize), number: Number) -> Result<Party, Error> {
        let occupant = member.board.occupant(number).ok_or(Error::StaleEndpoint)?;
        if occupant.node != member.board.node() {
            return Err(Error::NoProxy);
        }
        let words = stable_words(member, number).ok_or(Error::BadState)?;
        let (incarnation, leader, pid) = (occupant.incarnation, occupant.leader, occupant.pid);
        Ok(Party { endpoint, address, number, incarnation, leader, pid, words })
    }
}

/// Returns what a process that waits does; `None`: it does not wait, or it begins new waits all the time.
fn stable_words(member: &Member, number: Number) -> Option<(Word, Word)> {
    let desk = member.desks.desk(number);
    let words = || (desk.status(), desk.word());
    for _ in 0..STABLE_LOOKS {
        let before = words();
        if number == member.number {
            return Some(before);
        }
        if !member.waits(number) {
            return None;
        }
        if words() == before {
            return Some(before);
        }
    }
    None
}

/// Where a party's buffer is mapped here.
struct End {
    /// The name by which the caller calls its process.
    endpoint: i32,
    /// Its address there.
    address: usize,
    bytes: usize,
    /// How far its address here is from that.
    distance: usize,
    /// Of another process's: its place on the board, its number, and its memory.
    mapped: Option<(usize, u64, Arc<Region>)>,
}

/// How to copy between two buffers. Beside the mappings it has each word that a change of mind about the copy would change.
pub(crate) struct Way {
    from: End,
    to: End,
    /// Which process has found it, who is bound and what it may do, what the parties do, which buffers there are, and what this process has done meanwhile.
    numbers: [(&'static AtomicU64, u64); 10],
    /// What each party waits for.
    waits: [(&'static AtomicU64, u64); 2],
    /// Counts the member's copies.
    copied: &'static AtomicU64,
    /// Keeps all these words mapped.
    _member: Arc<Member>,
}

impl Way {
    /// Finds the way for a copy, if both blocks lie in buffers, and the caller has the rights of a new process. `changes` belongs to the back end.
    pub(crate) fn find(copy: &Copy, changes: &'static AtomicU64) -> Option<Way> {
        let member = &copy.member;
        // SAFETY: all that is watched and counted lies in `member` or in its mappings, which the way keeps.
        let words: &'static Member = unsafe { &*Arc::as_ptr(member) };
        let (board, desks) = (&words.board, &words.desks);
        let [from, to] = &copy.parties;
        // In this order: what changes and what is freed from now on is noticed.
        let bound = seen(board.changes_word());
        let is_bound = |party: &Party| board.incarnation(party.number) == party.incarnation;
        if board.is_restricted(member.number) || !member.is_bound() || !copy.parties.iter().all(is_bound) {
            return None;
        }
        let freed = seen(&buffers::FREED);
        let ends = [End::find(member, from, copy.bytes)?, End::find(member, to, copy.bytes)?];
        let is_own = |party: &Party| party.number == member.number;
        let status = |party: &Party| match is_own(party) {
            true => freed,
            false => (desks.desk(party.number).status_word(), party.words.0.raw()),
        };
        let word = |party: &Party| match is_own(party) {
            true => freed,
            false => (desks.desk(party.number).own_word(), party.words.1.raw()),
        };
        let id = |party: &Party, end: &End| match &end.mapped {
            Some((place, id, _)) => (board.buffer_word(party.leader, *place), *id),
            None => freed,
        };
        let calls = seen(words.calls_word());
        let [from_id, to_id] = [id(from, &ends[0]), id(to, &ends[1])];
        let waits = [status(from), status(to)];
        let numbers = [bound, seen(changes), calls, freed, waits[0], waits[1], word(from), word(to), from_id, to_id];
        let copied = &desks.desk(member.number).copied;
        let [from, to] = ends;
        let way = Way { from, to, numbers, waits, copied, _member: member.clone() };
        // Its parties may have moved on since they were checked.
        way.is_good().then_some(way)
    }

    #[inline(always)]
    fn is_good(&self) -> bool {
        are_as_seen(&self.numbers)
    }

    /// Copies, if that is between these two buffers and all is as it was. Returns whether it is done.
    ///
    /// # Safety
    /// The caller has named the memory that is written, if it is its own.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, from: (i32, usize), to: (i32, usize), bytes: usize) -> bool {
        if !(self.from.has(from, bytes) && self.to.has(to, bytes) && self.is_good()) {
            return false;
        }
        let [source, target] = [from.1.wrapping_add(self.from.distance), to.1.wrapping_add(self.to.distance)];
        // SAFETY: both blocks lie in regions that this way keeps, or that this process has not freed; two processes never have the same.
        unsafe { region::copy(source, target, bytes) };
        if !are_as_seen(&self.waits) {
            return false;
        }
        self.copied.store(self.copied.load(Relaxed).wrapping_add(1), Relaxed);
        true
    }
}

/// Returns a word as it is now.
fn seen(word: &'static AtomicU64) -> (&'static AtomicU64, u64) {
    (word, word.load(SeqCst))
}

#[inline(always)]
fn are_as_seen(words: &[(&AtomicU64, u64)]) -> bool {
    words.iter().all(|(word, number)| word.load(SeqCst) == *number)
}

impl End {
    fn find(member: &Member, party: &Party, bytes: usize) -> Option<End> {
        let endpoint = party.endpoint;
        if member.board.occupant(member.number)?.pid == party.pid {
            let (address, bytes) = buffers::own(party.address, bytes)?;
            return Some(End { endpoint, address, bytes, distance: 0, mapped: None });
        }
        let (place, buffer) = (0..BUFFERS).find_map(|place| {
            let buffer = member.board.buffer(party.leader, place)?;
            buffer.has(party.address as u64, bytes as u64).then_some((place, buffer))
        })?;
        let region = member.mates_region(party.leader, place, buffer)?;
        let (address, bytes) = (buffer.address as usize, region.bytes());
        let distance = region.address().wrapping_sub(address);
        Some(End { endpoint, address, bytes, distance, mapped: Some((place, buffer.id, region)) })
    }

    /// Whether a block lies in it.
    #[inline(always)]
    fn has(&self, (endpoint, address): (i32, usize), bytes: usize) -> bool {
        let offset = address.wrapping_sub(self.address);
        endpoint == self.endpoint && offset <= self.bytes && bytes <= self.bytes.wrapping_sub(offset)
    }
}

impl Member {
    /// Returns the memory of another process's buffer. Who may not have it copies by the kernel, which says why not.
    fn mates_region(&self, leader: Number, place: usize, buffer: Buffer) -> Option<Arc<Region>> {
        let mut mapped = self.mates_buffers();
        if let Some(known) = mapped.get(&buffer.id) {
            return Some(known.clone());
        }
        let arguments = [self.board.container().into(), leader.get().into(), place as i64, buffer.id.cast_signed()];
        let answer = client::call(internal::BUFFER, &arguments, &[]).ok()?;
        let region = Arc::new(Region::map(answer.files.first()?, buffer.bytes as usize).ok()?);
        // Those that were freed are of no use any more.
        let is_there = |id: u64| {
            let places =
                (0..m3ipc::limits::SLOTS).flat_map(|at| (0..BUFFERS).map(move |place| (Number::at(at), place)));
            places.into_iter().any(|(leader, place)| self.board.buffer_id(leader, place) == id)
        };
        mapped.retain(|id, _| is_there(*id));
        mapped.insert(buffer.id, region.clone());
        Some(region)
    }
}
