//! A process, or thread, that is bound: what it has mapped, and what it may do.

use crate::board::Board;
use crate::client;
use crate::desk::{Desk, Desks, Doing, Word};
use crate::memory::{Access, Mapping};
use crate::pair::Box;
use crate::wire::internal;
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use m3ipc::limits::SLOTS;
use m3ipc::rights::{Rights, SlotSet, Trap};
use rustix::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, TryLockError};

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
    peers: Mutex<Peers>,
}

/// What a member keeps from one call to the next.
pub struct Peers {
    /// Boxes by the other's slot.
    boxes: Vec<Option<Peer>>,
    /// The slots that have one, in ascending order.
    known: Vec<Number>,
    /// The slots that had one on the board when this process looked last.
    seen: SlotSet,
    /// Number of its last call, or of what it has last put into a box. It begins at random, so that a successor's numbers are others.
    count: u64,
    /// Whom it has last heard of.
    pub last: Option<Number>,
}

struct Peer {
    incarnation: u32,
    mapping: Mapping<Box>,
}

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
        let boxes = (0..SLOTS).map(|_| None).collect();
        let peers = Mutex::new(Peers { boxes, known: Vec::new(), seen: SlotSet::NONE, count, last: None });
        Ok(Member { number, endpoint: occupant.endpoint, incarnation: occupant.incarnation, board, desks, peers })
    }

    /// Whether it is still bound.
    pub fn is_bound(&self) -> bool {
        self.board.incarnation(self.number) == self.incarnation
    }

    /// Begins a call: no other thread may make one for the same slot meanwhile.
    ///
    /// # Errors
    /// `NotBound`; `Busy`: another thread does, or this one, which a signal has interrupted.
    pub fn begin(&self) -> Result<MutexGuard<'_, Peers>, Error> {
        if !self.is_bound() {
            return Err(Error::NotBound);
        }
        match self.peers.try_lock() {
            Ok(peers) => Ok(peers),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Error::Busy),
        }
    }

    /// Whether the process in a slot waits for a message, so that its memory does not change.
    pub fn waits(&self, number: Number) -> bool {
        matches!(self.desks.desk(number).word().doing(), Doing::Receiving(..) | Doing::AwaitingAnswer(_))
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
        let rights = self.rights();
        rights.check_trap(trap)?;
        let (number, incarnation) = self.board.locate(to)?;
        if number == self.number {
            return Err(Error::BadPeer);
        }
        let node = self.board.occupant(number).ok_or(Error::DestinationDied)?.node;
        if node != self.board.node() {
            return Err(Error::NoProxy);
        }
        let may = rights.sends_to.contains(number) && self.board.rights(number).receives_from.contains(self.number);
        if may { Ok((number, incarnation)) } else { Err(Error::CallDenied) }
    }
}

impl Peers {
    /// Returns the word of a desk for a new call.
    pub fn next_call(&mut self, doing: Doing) -> Word {
        Word::new(doing, self.next_count())
    }

    /// Returns a number for what is put into a box without a call that waits for it to be taken; never 0.
    pub fn next_put(&mut self) -> u32 {
        self.next_count() as u32
    }

    /// Calls and what they put into boxes are counted together: a message that is waited for has the number of the call.
    fn next_count(&mut self) -> u64 {
        self.count += if self.count as u32 == u32::MAX { 2 } else { 1 };
        self.count
    }

    /// Returns the box in common with the process of this incarnation in a slot, if it is mapped.
    pub fn mapped(&self, number: Number, incarnation: u32) -> Option<&Box> {
        let peer = self.boxes[number.index()].as_ref()?;
        (peer.incarnation == incarnation).then_some(&*peer.mapping)
    }

    /// Returns the box in common with whoever was in a slot when it was mapped.
    pub fn last_mapped(&self, number: Number) -> Option<&Box> {
        self.boxes[number.index()].as_ref().map(|peer| &*peer.mapping)
    }

    /// Returns the box in common with a process; the broker has it when it is not mapped yet.
    ///
    /// # Errors
    /// The broker's; `DestinationDied`.
    pub fn get(&mut self, member: &Member, number: Number, incarnation: u32) -> Result<&Box, Error> {
        if self.mapped(number, incarnation).is_none() {
            self.fetch(member, number)?;
        }
        self.mapped(number, incarnation).ok_or(Error::DestinationDied)
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
        mapping.channel(number, member.number).attach();
        self.boxes[number.index()] = Some(Peer { incarnation, mapping });
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
    pub fn live(&self, member: &Member, number: Number) -> Option<&Box> {
        self.mapped(number, member.board.incarnation(number))
    }
}
