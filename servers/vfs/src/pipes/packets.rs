//! Messages in a pipe, for sockets that keep their boundaries: each is written and read as a whole.
//!
//! In the ring a message is a head (length of the content, length of the sender's name, whether ids and open files go with it), the ids, the
//! name, and the content; so whatever lies in the ring is a number of whole messages, wherever a death leaves it. Open files are in
//! [`super::ancillary`]. A sender copies straight into the memory of a receiver that waits.
//! Invariants: receivers wait only while the ring is empty and no sender waits; a pipe has messages or bytes, never both.

use super::{
    DATA, Outcome, Pipe, ROOM, Side, State, World,
    ancillary::{Ancillary, Cargo},
    hand_over,
};
use crate::{
    keep::records::Ucred,
    memory::{address::Address, buffer::UserBuffer},
};
use abi::{Endpoint, Errno};
use alloc::{boxed::Box, collections::VecDeque};
use core::mem::take;
use sys::fallible::TryQueue;

/// Bytes of the head of a message, and of the ids that may follow it.
const HEAD_BYTES: usize = 8;
const SENDER_BYTES: usize = 12;

/// Flags of a message that a receiver is told.
pub mod flag {
    /// What goes with the message did not fit.
    pub const CTRUNC: u32 = 0x8;
    /// The message was longer than the buffer.
    pub const TRUNC: u32 = 0x20;
}

/// Where a receiver is told of the sender's name and of truncation.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub enum Results {
    #[default]
    Nowhere,
    /// `recvfrom`: addresses of the name and of its length.
    Name { address: u64, length_address: u64 },
    /// `recvmsg` without room for what goes with the message: `struct msghdr`, the room that it has for the name, flags to be told.
    Header { address: u64, name_address: u64, name_bytes: u32, flags: u32 },
}

/// What a receiver gets besides the content.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// The sender's name.
    pub name: Address,
    /// What the sender has given.
    pub cargo: Cargo,
    /// See [`flag`].
    pub flags: u32,
    /// There is a message, though it may be empty.
    pub arrived: bool,
}

impl Default for Parcel {
    /// No message.
    fn default() -> Parcel {
        Parcel { name: Address::EMPTY, cargo: Cargo::default(), flags: 0, arrived: false }
    }
}

/// A receiving call.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Where the content goes.
    pub buffer: UserBuffer,
    /// Where the rest goes.
    pub results: Results,
    /// The result is the length of the message, though it is truncated.
    pub whole_length: bool,
}

/// What a sender gives besides the content.
#[derive(Debug)]
pub struct Envelope {
    /// The name of its socket, if it has one.
    pub name: Option<Box<Address>>,
    /// What goes with the message.
    pub cargo: Cargo,
    /// Real uid of the sender.
    pub user: u32,
    /// Most bytes that the content may have.
    pub most_bytes: u64,
}

/// A sending call.
#[derive(Debug)]
pub struct Letter {
    buffer: UserBuffer,
    envelope: Envelope,
}

/// Calls that wait in a pipe of messages.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    receivers: VecDeque<Receiver>,
    senders: VecDeque<Letter>,
}

impl Waiting {
    /// Removes the call of this program. Returns whether it was there.
    pub(super) fn cancel(&mut self, who: Endpoint) -> bool {
        let before = self.receivers.len() + self.senders.len();
        self.receivers.retain(|waiting| waiting.buffer.owner != who);
        self.senders.retain(|waiting| waiting.buffer.owner != who);
        self.receivers.len() + self.senders.len() < before
    }

    /// Ends all calls that wait to receive.
    pub(super) fn end_receivers(&mut self, world: &impl World, mut result: impl FnMut() -> Result<u64, Errno>) {
        take(&mut self.receivers).iter().for_each(|waiting| world.finish(waiting.buffer.owner, result()));
    }

    /// Ends all calls that wait to send.
    pub(super) fn end_senders(&mut self, world: &impl World, error: Errno) {
        take(&mut self.senders).iter().for_each(|waiting| world.finish(waiting.buffer.owner, Err(error)));
    }

    /// Whether a call waits.
    pub(super) fn has_any(&self) -> bool {
        !self.receivers.is_empty() || !self.senders.is_empty()
    }

    /// Whether a call waits to send.
    pub(super) fn has_senders(&self) -> bool {
        !self.senders.is_empty()
    }
}

/// The head of a message.
struct Head {
    bytes: usize,
    name: Address,
    sender: Option<Ucred>,
    has_rights: bool,
}

impl Head {
    fn total(&self) -> usize {
        front_bytes(self.name.name(), self.sender.is_some()) + self.bytes
    }
}

/// Bytes of a message before its content.
fn front_bytes(name: &[u8], identified: bool) -> usize {
    HEAD_BYTES + if identified { SENDER_BYTES } else { 0 } + name.len()
}

impl Envelope {
    fn name(&self) -> &[u8] {
        self.name.as_ref().map_or(&[], |name| name.name())
    }

    /// What precedes a content of so many bytes.
    fn head(&self, bytes: u64) -> ([u8; HEAD_BYTES + SENDER_BYTES], usize) {
        let mut head = [0; HEAD_BYTES + SENDER_BYTES];
        head[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
        head[4] = self.name().len() as u8;
        head[5] = self.cargo.sender.is_some() as u8 | (self.cargo.rights.is_some() as u8) << 1;
        let Some(Ucred { pid, uid, gid }) = self.cargo.sender else { return (head, HEAD_BYTES) };
        head[HEAD_BYTES..].copy_from_slice([pid, uid, gid].map(u32::to_le_bytes).as_flattened());
        (head, HEAD_BYTES + SENDER_BYTES)
    }
}

impl Pipe {
    /// Sends a message. One with open files does not wait in the pipe. Errors: `EPIPE`, nobody receives; `EMSGSIZE`, too long; `ENOBUFS`, the
    /// pipe does not become large enough; `EAGAIN`; `ETOOMANYREFS`.
    pub fn send(
        &self,
        world: &impl World,
        from: &mut UserBuffer,
        envelope: &mut Envelope,
        nonblocking: bool,
    ) -> Outcome {
        if self.readers.get() == 0 {
            return Outcome::Done(Err(Errno::EPIPE));
        }
        if let Err(error) = self.ensure_holds(world, envelope, from.left()) {
            return Outcome::Done(Err(error));
        }
        let mut state = self.state.borrow_mut();
        let sent = match state.packets.has_senders() {
            false => state.post(world, from, envelope, self.asks.get()),
            true => Ok(false),
        };
        self.save(world, &mut state);
        let outcome = match sent {
            Ok(true) => Outcome::Done(Ok(from.left())),
            // Nothing has changed. Whoever waits for a change to try again must not be woken, else two of them wake each other for ever.
            Ok(false) if nonblocking => return Outcome::Done(Err(Errno::EAGAIN)),
            Ok(false) => {
                let (name, cargo) = (take(&mut envelope.name), take(&mut envelope.cargo));
                let envelope = Envelope { name, cargo, ..*envelope };
                wait_in(&mut state.packets.senders, Letter { buffer: take(from), envelope })
            }
            Err(error) => return Outcome::Done(Err(error)),
        };
        drop(state);
        self.watchers.fire_for(DATA);
        outcome
    }

    /// Makes the pipe larger for a message that it never holds, if the sender is root or the user who pays for the pipe. `EMSGSIZE`, `ENOBUFS`.
    fn ensure_holds(&self, world: &impl World, envelope: &Envelope, bytes: u64) -> Result<(), Errno> {
        if bytes > envelope.most_bytes {
            return Err(Errno::EMSGSIZE);
        }
        let needed = front_bytes(envelope.name(), envelope.cargo.sender.is_some()) as u64 + bytes;
        if needed <= self.capacity() as u64 {
            return Ok(());
        }
        if envelope.user != 0 && envelope.user != self.user {
            return Err(Errno::EMSGSIZE);
        }
        self.set_capacity(world, needed as usize).map(|_| ()).map_err(|_| Errno::ENOBUFS)
    }

    /// Receives a message. `EAGAIN`; with `peeks` the message stays. What comes besides the content goes to `parcel`, if there is one;
    /// such a call does not wait in the pipe.
    pub fn receive(
        &self,
        world: &impl World,
        to: &mut Receiver,
        parcel: Option<&mut Parcel>,
        peeks: bool,
        nonblocking: bool,
    ) -> Outcome {
        let mut state = self.state.borrow_mut();
        if state.has_data() {
            let result = state.deliver_first(world, to, parcel, peeks, self.asks.get());
            state.admit_senders(world);
            self.save(world, &mut state);
            drop(state);
            self.watchers.fire_for(ROOM);
            return Outcome::Done(result);
        }
        if self.writers.get() == 0 {
            drop(state);
            return Outcome::Done(self.end(world));
        }
        if nonblocking {
            return Outcome::Done(Err(Errno::EAGAIN));
        }
        wait_in(&mut state.packets.receivers, take(to))
    }

    /// Bytes of the messages, or with `first` of the first one.
    pub fn message_bytes(&self, world: &impl World, first: bool) -> usize {
        let state = self.state.borrow();
        let (mut at, mut bytes) = (0, 0);
        while at < state.ring.len() && !(first && at > 0) {
            let head = state.head(world, at);
            bytes += head.bytes;
            at += head.total();
        }
        bytes
    }
}

impl State {
    /// Hands a message to a receiver that waits, or puts it into the ring. False: there is no room.
    fn post(&mut self, world: &impl World, from: &UserBuffer, envelope: &Envelope, asks: bool) -> Result<bool, Errno> {
        while let Some(receiver) = self.packets.receivers.front() {
            let (who, mut to) = (receiver.buffer.owner, receiver.clone());
            let result = deliver(world, &mut from.clone(), envelope, &mut to, None, asks);
            if result == Err(Side::Writer) {
                return Err(Errno::EFAULT);
            }
            self.packets.receivers.pop_front();
            world.finish(who, result.map_err(|_| Errno::EFAULT));
            if result.is_ok() {
                return Ok(true);
            }
        }
        self.append(world, from, envelope)
    }

    /// Puts a message into the ring, or nothing of it. False: there is no room.
    fn append(&mut self, world: &impl World, from: &UserBuffer, envelope: &Envelope) -> Result<bool, Errno> {
        let (before, mut from) = (self.ring.len(), from.clone());
        let (head, length) = envelope.head(from.left());
        let total = (length + envelope.name().len()) as u64 + from.left();
        if (self.ring.room() as u64) < total {
            return Ok(false);
        }
        let entry = self.entry(world, envelope)?;
        let written = self.ring.put(world, &head[..length]);
        let written = written.and_then(|good| Ok(good && self.ring.put(world, envelope.name())?));
        let filled = written.and_then(|good| if good { self.fill_all(world, &mut from) } else { Ok(false) });
        match entry {
            _ if filled != Ok(true) => self.ring.truncate(world, before),
            Some(entry) => {
                self.ancillaries.push(entry, 0, 0);
                self.ring.set_ancillary(self.ancillaries.first());
            }
            None => {}
        }
        filled
    }

    /// What is to be kept for the open files of a message. `ETOOMANYREFS`, `ENOMEM`.
    fn entry(&mut self, world: &impl World, envelope: &Envelope) -> Result<Option<Ancillary>, Errno> {
        let Envelope { cargo: Cargo { rights, .. }, user, .. } = envelope;
        if rights.is_none() {
            return Ok(None);
        }
        self.ancillaries.prepare(world, *user, &Cargo { sender: None, rights: rights.clone() }).map(Some)
    }

    /// Copies a message's content into the ring. False: no page is free.
    pub(super) fn fill_all(&mut self, world: &impl World, from: &mut UserBuffer) -> Result<bool, Errno> {
        while from.left() > 0 {
            let piece = from.piece();
            match self.ring.fill(world, from.owner, piece.address, piece.bytes as usize)? {
                0 => return Ok(false),
                bytes => from.advance(bytes as u64),
            }
        }
        Ok(true)
    }

    /// The head of the message that begins here.
    fn head(&self, world: &impl World, at: usize) -> Head {
        let mut head = [0; HEAD_BYTES];
        self.ring.look(world, at, &mut head);
        let mut name = Address::of_length(head[4] as usize);
        let sender = (head[5] & 1 != 0).then(|| self.sender(world, at + HEAD_BYTES));
        let front = front_bytes(name.name(), sender.is_some());
        self.ring.look(world, at + front - name.name().len(), name.name_mut());
        let bytes = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        // A length that something has written into ends with the ring.
        let most = self.ring.len().saturating_sub(at + front);
        Head { bytes: bytes.min(most), name, sender, has_rights: head[5] & 2 != 0 }
    }

    /// The sender's ids that begin here.
    fn sender(&self, world: &impl World, at: usize) -> Ucred {
        let mut ids = [[0; 4]; 3];
        self.ring.look(world, at, ids.as_flattened_mut());
        let [pid, uid, gid] = ids.map(u32::from_le_bytes);
        Ucred { pid, uid, gid }
    }

    /// Copies the first message to a receiver, and removes it unless it `peeks`.
    fn deliver_first(
        &mut self,
        world: &impl World,
        to: &mut Receiver,
        parcel: Option<&mut Parcel>,
        peeks: bool,
        asks: bool,
    ) -> Result<u64, Errno> {
        if self.ring.len() == 0 {
            return self.deliver_from_sender(world, to, parcel, peeks, asks);
        }
        let head = self.head(world, 0);
        let start = head.total() - head.bytes;
        let copied = to.buffer.left().min(head.bytes as u64) as usize;
        let mut done = 0;
        while done < copied {
            let piece = to.buffer.piece();
            let bytes = (piece.bytes as usize).min(copied - done);
            let step = self.ring.peek(world, start + done, to.buffer.owner, piece.address, bytes)?;
            done += step;
            to.buffer.advance(step as u64);
        }
        let rights = if head.has_rights { self.ancillaries.first_rights() } else { None };
        let cargo = Cargo { sender: head.sender, rights };
        tell(world, to, parcel, &head.name, &cargo, copied < head.bytes, asks)?;
        if !peeks {
            self.ring.skip(world, head.total());
            if head.has_rights {
                self.ancillaries.skip();
                self.ring.set_ancillary(self.ancillaries.first());
            }
        }
        Ok(if to.whole_length { head.bytes } else { copied } as u64)
    }

    /// From a sender that waits although the ring is empty, because no page is free.
    fn deliver_from_sender(
        &mut self,
        world: &impl World,
        to: &mut Receiver,
        parcel: Option<&mut Parcel>,
        peeks: bool,
        asks: bool,
    ) -> Result<u64, Errno> {
        let Some(letter) = self.packets.senders.front() else { return Err(Errno::EAGAIN) };
        let (who, bytes) = (letter.buffer.owner, letter.buffer.left());
        let result = deliver(world, &mut letter.buffer.clone(), &letter.envelope, to, parcel, asks);
        match result {
            Ok(result) => {
                if !peeks {
                    self.packets.senders.pop_front();
                    world.finish(who, Ok(bytes));
                }
                Ok(result)
            }
            Err(Side::Reader) => Err(Errno::EFAULT),
            Err(Side::Writer) => {
                self.packets.senders.pop_front();
                world.finish(who, Err(Errno::EFAULT));
                Err(Errno::EAGAIN)
            }
        }
    }

    /// Lets senders that wait go on, in their order.
    #[expect(clippy::disallowed_methods, reason = "it has just been taken out")]
    fn admit_senders(&mut self, world: &impl World) {
        while let Some(letter) = self.packets.senders.pop_front() {
            let (who, bytes) = (letter.buffer.owner, letter.buffer.left());
            match self.append(world, &letter.buffer, &letter.envelope) {
                Ok(true) => world.finish(who, Ok(bytes)),
                Ok(false) => return self.packets.senders.push_front(letter),
                Err(error) => world.finish(who, Err(error)),
            }
        }
    }
}

/// Copies a message from one program to another. Returns the receiver's result.
fn deliver(
    world: &impl World,
    from: &mut UserBuffer,
    envelope: &Envelope,
    to: &mut Receiver,
    parcel: Option<&mut Parcel>,
    asks: bool,
) -> Result<u64, Side> {
    let bytes = from.left();
    hand_over(world, from, &mut to.buffer)?;
    let name = envelope.name.as_deref().unwrap_or(&Address::EMPTY);
    tell(world, to, parcel, name, &envelope.cargo, from.left() > 0, asks).map_err(|_| Side::Reader)?;
    Ok(if to.whole_length { bytes } else { bytes - from.left() })
}

/// Tells a receiver who has sent its message, and gives it what goes with it, if it takes that; `asks`: its socket does.
fn tell(
    world: &impl World,
    to: &Receiver,
    parcel: Option<&mut Parcel>,
    name: &Address,
    cargo: &Cargo,
    truncated: bool,
    asks: bool,
) -> Result<(), Errno> {
    let flags = if truncated { flag::TRUNC } else { 0 };
    if let Some(parcel) = parcel {
        *parcel = Parcel { name: *name, cargo: cargo.clone(), flags, arrived: true };
        return Ok(());
    }
    if matches!(to.results, Results::Nowhere) {
        return Ok(());
    }
    let lost = asks || cargo.rights.is_some();
    world.report(to.buffer.owner, &to.results, name, flags | if lost { flag::CTRUNC } else { 0 })
}

/// Puts a call at the end of a queue. `ENOMEM` for the call when there is no room.
#[expect(clippy::disallowed_methods, reason = "room was made")]
fn wait_in<T>(queue: &mut VecDeque<T>, call: T) -> Outcome {
    match queue.try_make_room(1) {
        Ok(()) => {
            queue.push_back(call);
            Outcome::Waiting
        }
        Err(error) => Outcome::Done(Err(error)),
    }
}
