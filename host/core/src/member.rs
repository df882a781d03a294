//! A process, or thread, that is bound: what it has mapped, and what it may do.

use crate::board::Board;
use crate::client;
use crate::desk::{Desk, Desks, Doing, Word};
use crate::memory::{Access, Exclusive, InUse, Mapping};
use crate::pair::{Box, Link};
use crate::region::Region;
use crate::wire::internal;
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use m3ipc::limits::SLOTS;
use m3ipc::rights::{Rights, SlotSet, Trap};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A process or thread that is bound.
pub struct Member {
    /// Its slot.
    pub number: Number,
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// Its incarnation: another one on the board means that it is bound no more.
    incarnation: u32,
    /// Who is bound.
    pub board: Mapping<Board>,
    /// What everybody waits for.
    pub desks: Mapping<Desks>,
    peers: Exclusive<Peers>,
    /// Counts the calls that move messages.
    calls: AtomicU64,
    /// Other processes' buffers that are mapped, by number.
    mates: Mutex<BTreeMap<u64, Arc<Region>>>,
}

/// What a member keeps from one call to the next.
pub struct Peers {
    /// Boxes by the other's slot.
    boxes: std::boxed::Box<[Option<Peer>; SLOTS]>,
    /// Peers by the last bits of the name that they were called by last.
    checked: [Checked; CHECKED],
    /// The slots that have one, in ascending order.
    known: Vec<Number>,
    /// The slots that had one on the board when this process looked last.
    seen: SlotSet,
    /// Number of its last call that its desk has shown. It begins at random, so that a successor's numbers are others.
    count: u64,
    /// Whom it has last heard of; itself, before the first one.
    pub last: Number,
}

/// A process to which calls may go and from which they may come: all that could forbid them was looked at, and was as for new processes.
#[derive(Clone, Copy)]
struct Checked {
    /// Its endpoint.
    name: i32,
    number: Number,
    incarnation: u32,
    /// The board's count of changes before.
    changes: u64,
}

/// How many are kept.
const CHECKED: usize = 16;

struct Peer {
    incarnation: u32,
    link: Link<Mapping<Box>>,
}

/// One's end of a box that is mapped.
pub(crate) type Ends = Link<Mapping<Box>>;

/// Looks at a process that has begun to wait and has not yet said so on its desk, before it is taken for one that does not wait.
const STATUS_LOOKS: u32 = 500;

impl Member {
    /// Maps board and desks of the slot where the broker has bound this process or thread.
    ///
    /// # Errors
    /// `NoMemory`; `NotBound`: it is not bound any more.
    pub fn new(number: Number, files: &[OwnedFd]) -> Result<Member, Error> {
        let [board, desks] = files else { return Err(Error::NoMemory) };
        let board = Mapping::<Board>::map(board, Access::Read).map_err(|_| Error::NoMemory)?;
        let desks = Mapping::map(desks, Access::Write).map_err(|_| Error::NoMemory)?;
        let occupant = board.occupant(number).ok_or(Error::NotBound)?;
        let count = crate::wait::now_ns();
        let boxes = std::boxed::Box::new([const { None }; SLOTS]);
        // No endpoint has this name.
        let checked = [Checked { name: i32::MIN, number, incarnation: 0, changes: 0 }; CHECKED];
        let peers =
            Exclusive::new(Peers { boxes, checked, known: Vec::new(), seen: SlotSet::NONE, count, last: number });
        let (endpoint, incarnation) = (occupant.endpoint, occupant.incarnation);
        let (calls, mates) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
        Ok(Member { number, endpoint, incarnation, board, desks, peers, calls, mates })
    }

    /// Whether it is still bound.
    pub fn is_bound(&self) -> bool {
        self.board.incarnation(self.number) == self.incarnation
    }

    /// Begins a call of a member that is bound: no other thread may make one for the same slot meanwhile.
    ///
    /// # Errors
    /// `Busy`: another thread does, or this one, which a signal has interrupted.
    pub fn begin(&self) -> Result<InUse<'_, Peers>, Error> {
        self.peers.try_use().ok_or(Error::Busy)
    }

    /// Counts a call that moves messages.
    #[inline(always)]
    pub(crate) fn count_call(&self) {
        self.calls.store(self.calls.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Begins a call towards or from a process that was checked before, for the thread that uses the member alone; `None`: [`Member::begin`] does it, or says
    /// why not.
    #[inline(always)]
    pub(crate) fn begin_at_once(&self, name: Endpoint) -> Option<(InUse<'_, Peers>, (Number, u32))> {
        let peers = self.peers.use_as_favourite()?;
        let known = peers.checked(self, name)?;
        Some((peers, known))
    }

    /// Returns the word that counts the calls that move messages, to watch it.
    pub(crate) fn calls_word(&self) -> &AtomicU64 {
        &self.calls
    }

    /// Returns other processes' buffers that are mapped.
    pub(crate) fn mates_buffers(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Region>>> {
        self.mates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the process in a slot waits for a message, so that its memory does not change.
    pub fn waits(&self, number: Number) -> bool {
        let desk = self.desks.desk(number);
        // Its request may have been taken a moment ago: then its desk says so when it has looked again for some microseconds.
        for _ in 0..STATUS_LOOKS {
            match (desk.status().doing(), desk.word().doing()) {
                (Doing::SendingForAnswer(to), Doing::Running) if !self.owes_answer(number, to, desk.status()) => {
                    std::thread::sleep(std::time::Duration::from_micros(20));
                }
                (Doing::SendingForAnswer(to), word) => {
                    return word == Doing::AwaitingAnswer(to) || self.owes_answer(number, to, desk.status());
                }
                // Its request was here before its desk said so.
                (Doing::Running, _) if self.has_request(number) => {
                    std::thread::sleep(std::time::Duration::from_micros(20));
                }
                (Doing::Receiving(..), word) => return !matches!(word, Doing::GotMessage(_) | Doing::GotNote(_)),
                _ => return false,
            }
        }
        false
    }

    fn owes_answer(&self, number: Number, to: Number, status: Word) -> bool {
        let peers = if to == self.number { self.begin().ok() } else { None };
        peers.is_some_and(|peers| peers.last_link(number).is_some_and(|link| link.owes_answer(status.call())))
    }

    fn has_request(&self, number: Number) -> bool {
        self.begin().is_ok_and(|peers| peers.last_link(number).is_some_and(Ends::has_request))
    }

    /// Whether something that this process has put into its box is the one that this member's call ends with.
    fn is_claimed_by(&self, number: Number) -> bool {
        matches!(self.desk().word().doing(), Doing::GotMessage(peer) | Doing::GotNote(peer) if peer == number)
    }

    /// Returns its own desk.
    pub fn desk(&self) -> &Desk {
        self.desks.desk(self.number)
    }

    /// Returns its rights.
    pub fn rights(&self) -> Rights {
        self.board.rights(self.number)
    }

    /// Checks that it may make this call towards this process, which it may not be itself.
    ///
    /// # Errors
    /// `CallDenied`, `BadPeer`, `NoProxy`, and as [`Board::locate`].
    pub fn check_destination(&self, to: Endpoint, trap: Trap) -> Result<(Number, u32), Error> {
        if !self.board.may_call(self.number, trap) {
            return Err(Error::CallDenied);
        }
        let (number, incarnation) = self.board.locate(to)?;
        if number == self.number {
            return Err(Error::BadPeer);
        }
        if self.board.node_of(number) != self.board.node() {
            return Err(Error::NoProxy);
        }
        if !self.board.may_send(self.number, number) {
            return Err(Error::CallDenied);
        }
        Ok((number, incarnation))
    }
}

impl Peers {
    /// Returns slot and incarnation of a process that calls may go to and come from, if that was found out before and nothing has changed since.
    #[inline(always)]
    pub(crate) fn checked(&self, member: &Member, name: Endpoint) -> Option<(Number, u32)> {
        let known = &self.checked[name.raw() as usize % CHECKED];
        // Then its box is mapped, too.
        let is_same = known.name == name.raw() && member.board.changes() == known.changes;
        is_same.then_some((known.number, known.incarnation))
    }

    /// Keeps that a call may go to a process, which was found out when the board's count of changes was `changes` or a later one.
    pub(crate) fn keep_checked(
        &mut self,
        member: &Member,
        name: Endpoint,
        (number, incarnation): (Number, u32),
        changes: u64,
    ) {
        if member.is_bound() && !member.board.is_restricted(member.number) && !member.board.is_restricted(number) {
            let name = name.raw();
            self.checked[name as usize % CHECKED] = Checked { name, number, incarnation, changes };
        }
    }

    /// Returns the word of a desk for a new call.
    pub fn next_call(&mut self, doing: Doing) -> Word {
        self.count += 1;
        Word::new(doing, self.count)
    }

    /// Returns the box in common with the process of this incarnation in a slot, if it is mapped.
    pub(crate) fn mapped(&self, number: Number, incarnation: u32) -> Option<&Ends> {
        self.boxes[number.index()].as_ref().filter(|peer| peer.incarnation == incarnation).map(|peer| &peer.link)
    }

    /// Returns the box in common with whoever was in a slot when it was mapped.
    pub(crate) fn last_link(&self, number: Number) -> Option<&Ends> {
        self.boxes[number.index()].as_ref().map(|peer| &peer.link)
    }

    /// The same, to take something.
    #[inline(always)]
    pub(crate) fn last_link_mut(&mut self, number: Number) -> Option<&mut Ends> {
        self.boxes[number.index()].as_mut().map(|peer| &mut peer.link)
    }

    /// Returns the box in common with a process; the broker has it when it is not mapped yet.
    ///
    /// # Errors
    /// The broker's; `DestinationDied`.
    #[inline]
    pub(crate) fn get(&mut self, member: &Member, number: Number, incarnation: u32) -> Result<&mut Ends, Error> {
        if self.mapped(number, incarnation).is_none() {
            self.fetch(member, number)?;
        }
        let peer = self.boxes[number.index()].as_mut().filter(|peer| peer.incarnation == incarnation);
        peer.map(|peer| &mut peer.link).ok_or(Error::DestinationDied)
    }

    fn fetch(&mut self, member: &Member, number: Number) -> Result<(), Error> {
        let arguments = [member.board.container(), member.number.get(), number.get()].map(i64::from);
        let answer = client::call(internal::BOX, &arguments, &[])?;
        let incarnation = answer.value as u32;
        if self.mapped(number, incarnation).is_some() {
            return Ok(());
        }
        let file = answer.files.first().ok_or(Error::NoMemory)?;
        let mapping = Mapping::<Box>::map(file, Access::Write).map_err(|_| Error::NoMemory)?;
        let link = Link::new(mapping, member.number < number);
        self.boxes[number.index()] = Some(Peer { incarnation, link });
        if let Err(at) = self.known.binary_search(&number) {
            self.known.insert(at, number);
        }
        Ok(())
    }

    /// Maps the boxes that others have asked the broker for, and forgets those of processes that have ended.
    pub fn refresh(&mut self, member: &Member) {
        let mut new = member.board.boxes(member.number);
        self.seen = new;
        let (boxes, board) = (&mut self.boxes, &member.board);
        self.known.retain(|number| {
            let is_live =
                boxes[number.index()].as_ref().is_some_and(|peer| board.incarnation(*number) == peer.incarnation);
            if is_live {
                new.remove(*number);
            }
            // Looked at after it has ended, so it cannot claim this process any more; before that it may have.
            let stays = is_live || member.is_claimed_by(*number);
            if !stays {
                boxes[number.index()] = None;
            }
            stays
        });
        while let Some(number) = new.first() {
            new.remove(number);
            // Who has ended meanwhile has no box any more.
            let _ = self.fetch(member, number);
        }
    }

    /// Whether it knows of all boxes on the board, and of no others.
    pub fn is_current(&self, member: &Member) -> bool {
        self.seen == member.board.boxes(member.number)
            && self.known.iter().all(|number| self.live(member, *number).is_some())
    }

    /// Returns the slots with a box.
    pub fn known(&self) -> &[Number] {
        &self.known
    }

    /// Returns the box with the process in a slot, if that one is still bound.
    pub(crate) fn live(&self, member: &Member, number: Number) -> Option<&Ends> {
        self.mapped(number, member.board.incarnation(number))
    }
}
