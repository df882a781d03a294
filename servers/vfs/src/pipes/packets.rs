//! Messages in a pipe, for sockets that keep their boundaries: each is written and read as a whole.
//!
//! In the ring a message is a head (length of the content, length of the sender's name), the name, and the content; so whatever lies in the
//! ring is a number of whole messages, wherever a death leaves it. A sender copies straight into the memory of a receiver that waits.
//! Invariants: receivers wait only while the ring is empty and no sender waits; a pipe has messages or bytes, never both.

use super::{Outcome, Pipe, Side, State, World, hand_over};
use crate::memory::{address::Address, buffer::UserBuffer};
use abi::{Endpoint, Errno};
use alloc::collections::VecDeque;
use core::mem::take;
use sys::fallible::TryQueue;

/// Bytes of the head of a message.
const HEAD_BYTES: usize = 8;

/// Where a receiver is told of the sender's name and of truncation.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub enum Results {
    #[default]
    Nowhere,
    /// `recvfrom`: addresses of the name and of its length.
    Name { address: u64, length_address: u64 },
    /// `recvmsg`: `struct msghdr`, with the room that it has for the name.
    Header { address: u64, name_address: u64, name_bytes: u32 },
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

/// A sending call, and the name of its socket.
#[derive(Debug)]
pub struct Letter {
    buffer: UserBuffer,
    name: Address,
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

    /// Whether a call waits to send.
    pub(super) fn has_senders(&self) -> bool {
        !self.senders.is_empty()
    }
}

/// The head of a message.
struct Head {
    bytes: usize,
    name: Address,
}

impl Head {
    fn total(&self) -> usize {
        HEAD_BYTES + self.name.name().len() + self.bytes
    }
}

impl Pipe {
    /// Sends a message from a socket of this name. Errors: `EPIPE`, nobody receives; `EMSGSIZE`, the pipe never holds so much; `EAGAIN`.
    pub fn send(&self, world: &impl World, from: &mut UserBuffer, name: &Address, nonblocking: bool) -> Outcome {
        if self.readers.get() == 0 {
            return Outcome::Done(Err(Errno::EPIPE));
        }
        let mut state = self.state.borrow_mut();
        if (HEAD_BYTES + name.name().len()) as u64 + from.left() > state.ring.capacity() as u64 {
            return Outcome::Done(Err(Errno::EMSGSIZE));
        }
        let sent = match state.packets.has_senders() {
            false => state.post(world, from, name),
            true => Ok(false),
        };
        self.save(world, &mut state);
        let outcome = match sent {
            Ok(true) => Outcome::Done(Ok(from.left())),
            Ok(false) if nonblocking => Outcome::Done(Err(Errno::EAGAIN)),
            Ok(false) => wait_in(&mut state.packets.senders, Letter { buffer: take(from), name: *name }),
            Err(error) => Outcome::Done(Err(error)),
        };
        drop(state);
        self.watchers.fire();
        outcome
    }

    /// Receives a message. `EAGAIN`; with `peeks` the message stays.
    pub fn receive(&self, world: &impl World, to: &mut Receiver, peeks: bool, nonblocking: bool) -> Outcome {
        let mut state = self.state.borrow_mut();
        if state.has_data() {
            let result = state.deliver_first(world, to, peeks);
            state.admit_senders(world);
            self.save(world, &mut state);
            drop(state);
            self.watchers.fire();
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
    fn post(&mut self, world: &impl World, from: &UserBuffer, name: &Address) -> Result<bool, Errno> {
        while let Some(receiver) = self.packets.receivers.front() {
            let (who, result) = (receiver.buffer.owner, deliver(world, &mut from.clone(), name, &mut receiver.clone()));
            if result == Err(Side::Writer) {
                return Err(Errno::EFAULT);
            }
            self.packets.receivers.pop_front();
            world.finish(who, result.map_err(|_| Errno::EFAULT));
            if result.is_ok() {
                return Ok(true);
            }
        }
        self.append(world, from, name)
    }

    /// Puts a message into the ring, or nothing of it. False: there is no room.
    fn append(&mut self, world: &impl World, from: &UserBuffer, name: &Address) -> Result<bool, Errno> {
        let (before, mut from) = (self.ring.len(), from.clone());
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&(from.left() as u32).to_le_bytes());
        head[4] = name.name().len() as u8;
        let total = (HEAD_BYTES + name.name().len()) as u64 + from.left();
        if (self.ring.room() as u64) < total {
            return Ok(false);
        }
        let written = self.ring.put(world, &head).and_then(|good| Ok(good && self.ring.put(world, name.name())?));
        let filled = written.and_then(|good| if good { self.fill_all(world, &mut from) } else { Ok(false) });
        if filled != Ok(true) {
            self.ring.truncate(world, before);
        }
        filled
    }

    /// Copies a message's content into the ring. False: no page is free.
    fn fill_all(&mut self, world: &impl World, from: &mut UserBuffer) -> Result<bool, Errno> {
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
        self.ring.look(world, at + HEAD_BYTES, name.name_mut());
        let bytes = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        // A length that something has written into ends with the ring.
        let most = self.ring.len().saturating_sub(at + HEAD_BYTES + name.name().len());
        Head { bytes: bytes.min(most), name }
    }

    /// Copies the first message to a receiver, and removes it unless it `peeks`.
    fn deliver_first(&mut self, world: &impl World, to: &mut Receiver, peeks: bool) -> Result<u64, Errno> {
        if self.ring.len() == 0 {
            return self.deliver_from_sender(world, to, peeks);
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
        world.report(to.buffer.owner, &to.results, &head.name, copied < head.bytes)?;
        if !peeks {
            self.ring.skip(world, head.total());
        }
        Ok(if to.whole_length { head.bytes } else { copied } as u64)
    }

    /// From a sender that waits although the ring is empty, because no page is free.
    fn deliver_from_sender(&mut self, world: &impl World, to: &mut Receiver, peeks: bool) -> Result<u64, Errno> {
        let Some(letter) = self.packets.senders.front() else { return Err(Errno::EAGAIN) };
        let (who, bytes) = (letter.buffer.owner, letter.buffer.left());
        let result = deliver(world, &mut letter.buffer.clone(), &letter.name, to);
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
            match self.append(world, &letter.buffer, &letter.name) {
                Ok(true) => world.finish(who, Ok(bytes)),
                Ok(false) => return self.packets.senders.push_front(letter),
                Err(error) => world.finish(who, Err(error)),
            }
        }
    }
}

/// Copies a message from one program to another. Returns the receiver's result.
fn deliver(world: &impl World, from: &mut UserBuffer, name: &Address, to: &mut Receiver) -> Result<u64, Side> {
    let bytes = from.left();
    hand_over(world, from, &mut to.buffer)?;
    world.report(to.buffer.owner, &to.results, name, from.left() > 0).map_err(|_| Side::Reader)?;
    Ok(if to.whole_length { bytes } else { bytes - from.left() })
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
