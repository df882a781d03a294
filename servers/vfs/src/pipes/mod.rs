//! Pipes and FIFOs: a ring of bytes between programs (pipe(7)).
//!
//! Everything happens inside one call: a writer answers the readers that wait, copying straight from its memory into theirs,
//! a reader lets the waiting writers go on. Invariants: readers wait only while the ring is empty and no writer waits, so that the end of
//! file is told only when nothing is left to read, or while a splice holds the first bytes; nobody waits for an end that nobody holds; a write of at most `PIPE_BUF` bytes is not
//! mixed with others. The ring's memory grows with what is in it, up to the capacity, for which `pool` has reserved pages.
//! The ring outlives vfs, and so does how far a writer that waits has come; those who wait come again by themselves.
//! Neighbours: `World` is vfs (copies, answers), in tests a fake; `ring` holds the bytes; `splice` moves them within vfs; `whole` has packets.

pub mod ancillary;
mod copy;
mod fifo;
mod laden;
pub mod packets;
pub mod pool;
pub mod ring;
mod splice;
#[cfg(test)]
mod tests;
mod whole;

use crate::{
    events::{
        Watchers,
        poll::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM},
    },
    keep::{Kept, records::AncillaryRecord},
    memory::{address::Address, buffer::UserBuffer},
    pipes::{
        ancillary::{Ancillaries, Ancillary, Cargo},
        packets::{Results, Waiting},
        pool::Charge,
        ring::{Pages, Ring},
    },
};
use abi::{Endpoint, Errno};
use alloc::collections::VecDeque;
use copy::{Side, hand_over};
use core::{
    cell::{Cell, RefCell},
    mem::take,
};
use sys::fallible::TryQueue;

/// Writes up to this length are not mixed with others.
pub const PIPE_BUF: u64 = 4096;
/// Bytes a pipe holds unless told otherwise.
pub const DEFAULT_BYTES: usize = 64 * 1024;
/// The most that `F_SETPIPE_SZ` allows.
pub const MAX_BYTES: usize = abi::limits::PIPE_BYTES;

/// Events of a write, and of a read that makes room.
const DATA: u32 = POLLIN | POLLRDNORM;
const ROOM: u32 = POLLOUT | POLLWRNORM;

/// What a pipe needs of the world: memory of programs, and their answers.
pub trait World: Pages {
    /// Copies between two programs.
    fn copy(&self, from: Endpoint, from_address: u64, to: Endpoint, to_address: u64, bytes: u64) -> Result<(), Errno>;
    /// Whether a byte of a program's memory is mapped.
    fn is_mapped(&self, who: Endpoint, address: u64) -> bool;
    /// Notes that the waiting write of a program has moved so many bytes.
    fn note_moved(&self, who: Endpoint, moved: u64);
    /// Answers the waiting call of a program.
    fn finish(&self, who: Endpoint, result: Result<u64, Errno>);
    /// Tells a receiver the name of the sender, and flags of its message (`MSG_*`).
    fn report(&self, to: Endpoint, results: &Results, name: &Address, flags: u32) -> Result<(), Errno>;
    /// A place for what goes with bytes. `ETOOMANYREFS`.
    fn new_ancillary(&self, record: AncillaryRecord) -> Result<Kept<AncillaryRecord>, Errno>;
    /// Drops what nobody will read, soon.
    fn discard(&self, unread: VecDeque<Ancillary>);
    /// The waiting write of this program has lost its last reader.
    fn broken(&self, who: Endpoint, moved: u64);
}

/// Outcome of a read or write.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is over.
    Done(Result<u64, Errno>),
    /// It waits in the pipe: `World::finish` will answer it.
    Waiting,
}

/// One pipe.
#[derive(Debug)]
pub struct Pipe {
    state: RefCell<State>,
    /// Open files that may read.
    readers: Cell<u32>,
    /// Open files that may write.
    writers: Cell<u32>,
    /// How often it was opened for reading and for writing: what an opener of a FIFO waits to see grow.
    opened: Cell<(u64, u64)>,
    /// Those who wait for a change: poll, openers of a FIFO.
    pub watchers: Watchers,
    /// Its place in preserved memory.
    record: u16,
    /// Who made it.
    user: u32,
    charge: RefCell<Charge>,
    /// Of a socket that wants to know who sends: no read passes from one sender to another.
    asks: Cell<bool>,
    /// Of a socket that always tells who it is.
    tells: Cell<bool>,
    /// Both ends are closed.
    ended: Cell<bool>,
}

#[derive(Debug)]
struct State {
    ring: Ring,
    waiting_readers: VecDeque<UserBuffer>,
    waiting_writers: VecDeque<UserBuffer>,
    /// Calls that wait with messages: see `packets`.
    packets: Waiting,
    /// A splice moves the first bytes elsewhere: nobody else takes any until it is done.
    held: bool,
    /// What goes with the bytes in the ring.
    ancillaries: Ancillaries,
}

impl Pipe {
    /// A pipe at this place of preserved memory, new or as a predecessor has left it.
    pub fn new(record: u16, ring: Ring, charge: Charge) -> Pipe {
        let (waiting_readers, waiting_writers) = (VecDeque::new(), VecDeque::new());
        let (packets, ancillaries) = (Waiting::default(), Ancillaries::default());
        let state = State { ring, waiting_readers, waiting_writers, packets, ancillaries, held: false };
        Pipe {
            state: RefCell::new(state),
            readers: Cell::new(0),
            writers: Cell::new(0),
            opened: Cell::new((0, 0)),
            watchers: Watchers::default(),
            record,
            user: charge.user(),
            charge: RefCell::new(charge),
            asks: Cell::new(false),
            tells: Cell::new(false),
            ended: Cell::new(false),
        }
    }

    /// Its place in preserved memory.
    pub fn record(&self) -> u16 {
        self.record
    }

    /// Both ends are closed and its content is freed: a FIFO that is opened once more needs another pipe.
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// One more open file, for reading, writing or both.
    pub fn open(&self, reads: bool, writes: bool) {
        self.readers.set(self.readers.get() + reads as u32);
        self.writers.set(self.writers.get() + writes as u32);
        let (read_opens, write_opens) = self.opened.get();
        self.opened.set((read_opens + reads as u64, write_opens + writes as u64));
        self.watchers.fire();
    }

    /// The end of an open file. Waiting peers learn of the end of file, or that the pipe is broken.
    pub fn close(&self, world: &impl World, reads: bool, writes: bool) {
        self.readers.set(self.readers.get() - reads as u32);
        self.writers.set(self.writers.get() - writes as u32);
        // A socket may stop receiving while a thread waits in it.
        let ends = self.writers.get() == 0 || self.readers.get() == 0;
        if ends && !self.is_held() && self.state.borrow().has_waiting() {
            let waiting = take(&mut self.state.borrow_mut().waiting_readers);
            waiting.iter().for_each(|reader| world.finish(reader.owner, self.end(world)));
            let mut packets = take(&mut self.state.borrow_mut().packets);
            packets.end_receivers(world, || self.end(world));
            self.state.borrow_mut().packets = packets;
        }
        if self.readers.get() == 0 && self.state.borrow().has_waiting() {
            let waiting = take(&mut self.state.borrow_mut().waiting_writers);
            waiting.iter().for_each(|writer| world.broken(writer.owner, writer.moved()));
            let error = if self.writers.get() == 0 { Errno::ECONNREFUSED } else { Errno::EPIPE };
            self.state.borrow_mut().packets.end_senders(world, error);
        }
        if self.readers.get() + self.writers.get() == 0 && !self.ended.replace(true) {
            self.discard(world);
            self.state.borrow_mut().ring.clear(world);
            world.end(self.record);
        }
        self.watchers.fire();
    }

    /// How often it was opened for reading and for writing so far.
    pub fn opened(&self) -> (u64, u64) {
        self.opened.get()
    }

    /// Open files that read.
    pub fn readers(&self) -> u32 {
        self.readers.get()
    }

    /// Open files that write.
    pub fn writers(&self) -> u32 {
        self.writers.get()
    }

    /// Bytes in the ring.
    pub fn bytes(&self) -> usize {
        self.state.borrow().ring.len()
    }

    /// The ring's capacity.
    pub fn capacity(&self) -> usize {
        self.state.borrow().ring.capacity()
    }

    #[inline]
    fn save(&self, world: &impl World, state: &mut State) {
        state.ring.save(world, self.record, self.user);
    }

    /// The writer closes its socket with unread data: after what is in the ring, the reader gets `ECONNRESET` once, and then the end.
    pub fn reset(&self, world: &impl World) {
        self.set_reset(world, true);
    }

    /// Whether the reader is to get `ECONNRESET`.
    pub fn is_reset(&self) -> bool {
        self.state.borrow().ring.is_reset()
    }

    /// Takes the `ECONNRESET` that the reader is to get. Returns whether there was one.
    pub fn take_reset(&self, world: &impl World) -> bool {
        let reset = self.is_reset();
        if reset {
            self.set_reset(world, false);
        }
        reset
    }

    fn set_reset(&self, world: &impl World, reset: bool) {
        let mut state = self.state.borrow_mut();
        state.ring.set_reset(reset);
        self.save(world, &mut state);
    }

    /// The result of a read at the end, when there is no writer and nothing left.
    fn end(&self, world: &impl World) -> Result<u64, Errno> {
        if self.take_reset(world) { Err(Errno::ECONNRESET) } else { Ok(0) }
    }

    /// Sets the capacity, rounded up to a page or more. `EBUSY`: more is in it; `EPERM`: too much, or more than its user's share.
    pub fn set_capacity(&self, world: &impl World, bytes: usize) -> Result<u64, Errno> {
        if bytes > MAX_BYTES {
            return Err(Errno::EPERM);
        }
        let bytes = bytes.next_power_of_two().max(PIPE_BUF as usize);
        let mut state = self.state.borrow_mut();
        if bytes < state.ring.len() || bytes < state.used_pages() * PIPE_BUF as usize {
            return Err(Errno::EBUSY);
        }
        self.charge.borrow_mut().resize(bytes)?;
        state.ring.set_capacity(bytes);
        state.admit_writers(world);
        self.save(world, &mut state);
        drop(state);
        self.watchers.fire_for(ROOM);
        Ok(bytes as u64)
    }

    /// Reads what is in the ring, then what waiting writers have; waits for the first byte unless `nonblocking`. What goes with the
    /// bytes is dropped.
    #[inline]
    pub fn read(&self, world: &impl World, to: &mut UserBuffer, nonblocking: bool) -> Outcome {
        self.read_with(world, to, nonblocking, &mut Cargo::default())
    }

    /// [`Pipe::read`] that also takes what goes with the bytes; not if it waits in the pipe.
    pub fn read_with(&self, world: &impl World, to: &mut UserBuffer, nonblocking: bool, cargo: &mut Cargo) -> Outcome {
        if to.left() == 0 {
            return Outcome::Done(Ok(0));
        }
        let mut state = self.state.borrow_mut();
        if state.held {
            return if nonblocking {
                Outcome::Done(Err(Errno::EAGAIN))
            } else {
                wait_in(&mut state.waiting_readers, to)
            };
        }
        if state.has_data() {
            let was_full = state.is_full();
            let drained = match state.ancillaries.is_empty() {
                true => state.drain(world, to),
                false => state.drain_stretch(world, to, self.asks.get(), cargo),
            };
            let result = drained.and_then(|()| state.take_from_writers(world, to));
            state.admit_writers(world);
            self.save(world, &mut state);
            if result.is_err() || to.moved() > 0 {
                drop(state);
                if was_full {
                    self.watchers.fire_for(ROOM);
                }
                return Outcome::Done(result.map(|()| to.moved()).or_else(|error| to.moved_or(error)));
            }
        }
        if self.writers.get() == 0 {
            drop(state);
            return Outcome::Done(self.end(world));
        }
        if nonblocking {
            return Outcome::Done(Err(Errno::EAGAIN));
        }
        wait_in(&mut state.waiting_readers, to)
    }

    /// Writes everything, waiting for room unless `nonblocking`. `EPIPE`: nobody reads.
    pub fn write(&self, world: &impl World, from: &mut UserBuffer, nonblocking: bool) -> Outcome {
        if self.readers.get() == 0 {
            return Outcome::Done(Err(Errno::EPIPE));
        }
        if from.left() == 0 {
            return Outcome::Done(Ok(0));
        }
        let mut state = self.state.borrow_mut();
        if state.waiting_writers.is_empty() {
            let result = state.serve_readers(world, from).and_then(|()| state.fill(world, from));
            self.save(world, &mut state);
            if let Err(error) = result {
                drop(state);
                self.watchers.fire_for(DATA);
                return Outcome::Done(from.moved_or(error));
            }
        }
        let outcome = if from.left() == 0 {
            Outcome::Done(Ok(from.moved()))
        } else if nonblocking {
            Outcome::Done(from.moved_or(Errno::EAGAIN))
        } else {
            if from.moved() > 0 {
                world.note_moved(from.owner, from.moved());
            }
            wait_in(&mut state.waiting_writers, from)
        };
        drop(state);
        self.watchers.fire_for(DATA);
        outcome
    }

    /// Removes the waiting call of this program; returns how many bytes it has moved.
    pub fn cancel(&self, who: Endpoint) -> Option<u64> {
        let state = &mut *self.state.borrow_mut();
        let moved = take_out(&mut state.waiting_readers, who).or_else(|| take_out(&mut state.waiting_writers, who));
        moved.or_else(|| state.packets.cancel(who).then_some(0))
    }

    /// Ready events (Linux POLL*) of an end that reads, writes or both.
    pub fn poll(&self, reads: bool, writes: bool) -> u32 {
        let state = self.state.borrow();
        let mut ready = 0;
        if reads && state.has_data() {
            ready |= DATA;
        }
        if reads && self.writers.get() == 0 {
            ready |= POLLHUP;
        }
        if writes && !state.is_full() {
            ready |= ROOM;
        }
        if writes && self.readers.get() == 0 {
            ready |= POLLERR;
        }
        ready
    }
}

/// Puts a call at the end of a queue. `ENOMEM` for the call when there is no room, unless it has moved something.
#[expect(clippy::disallowed_methods, reason = "room was made")]
fn wait_in(queue: &mut VecDeque<UserBuffer>, buffer: &mut UserBuffer) -> Outcome {
    match queue.try_make_room(1) {
        Ok(()) => {
            queue.push_back(take(buffer));
            Outcome::Waiting
        }
        Err(error) => Outcome::Done(buffer.moved_or(error)),
    }
}

fn take_out(queue: &mut VecDeque<UserBuffer>, who: Endpoint) -> Option<u64> {
    let index = queue.iter().position(|waiting| waiting.owner == who)?;
    queue.remove(index).map(|waiting| waiting.moved())
}

impl State {
    /// Whether a call waits in it.
    fn has_waiting(&self) -> bool {
        !self.waiting_readers.is_empty() || !self.waiting_writers.is_empty() || self.packets.has_any()
    }

    /// Whether a poll for writing waits.
    fn is_full(&self) -> bool {
        (self.ring.room() as u64) < PIPE_BUF || self.is_full_of_packets()
    }

    /// Whether a read has something to take, from the ring or from a writer that waits.
    fn has_data(&self) -> bool {
        self.ring.len() > 0 || !self.waiting_writers.is_empty() || self.packets.has_senders()
    }

    /// Copies straight into the memory of readers that wait. A reader whose memory is bad gets its error, the writer goes on.
    #[inline(always)]
    fn serve_readers(&mut self, world: &impl World, from: &mut UserBuffer) -> Result<(), Errno> {
        if self.waiting_readers.is_empty() { Ok(()) } else { self.serve_waiting_readers(world, from) }
    }

    fn serve_waiting_readers(&mut self, world: &impl World, from: &mut UserBuffer) -> Result<(), Errno> {
        while from.left() > 0 && !self.held {
            let Some(reader) = self.waiting_readers.front_mut() else { return Ok(()) };
            let filled = hand_over(world, from, reader);
            let (who, moved) = (reader.owner, reader.moved());
            match filled {
                Ok(()) => {}
                Err(Side::Writer) if moved == 0 => return Err(Errno::EFAULT),
                Err(_) => {}
            }
            self.waiting_readers.pop_front();
            world.finish(who, if moved > 0 { Ok(moved) } else { Err(Errno::EFAULT) });
            if filled == Err(Side::Writer) {
                return Err(Errno::EFAULT);
            }
        }
        Ok(())
    }

    /// Puts as much into the ring as fits and may go in.
    fn fill(&mut self, world: &impl World, from: &mut UserBuffer) -> Result<(), Errno> {
        let whole = from.moved() == 0 && from.left() <= PIPE_BUF;
        if whole && (self.ring.room() as u64) < from.left() {
            return Ok(());
        }
        while from.left() > 0 && self.ring.room() > 0 {
            let piece = from.piece();
            let bytes = self.ring.fill(world, from.owner, piece.address, piece.bytes as usize)?;
            if bytes == 0 {
                break;
            }
            from.advance(bytes as u64);
        }
        Ok(())
    }

    /// Takes out of the ring what the buffer holds.
    fn drain(&mut self, world: &impl World, to: &mut UserBuffer) -> Result<(), Errno> {
        while to.left() > 0 && self.ring.len() > 0 {
            let piece = to.piece();
            let bytes = self.ring.drain(world, to.owner, piece.address, piece.bytes as usize)?;
            to.advance(bytes as u64);
        }
        Ok(())
    }

    /// Copies straight from the memory of writers that wait, once the ring is empty. A writer whose memory is bad gets its error, the
    /// reader goes on.
    fn take_from_writers(&mut self, world: &impl World, to: &mut UserBuffer) -> Result<(), Errno> {
        while to.left() > 0 && self.ring.len() == 0 {
            let Some(writer) = self.waiting_writers.front_mut() else { return Ok(()) };
            let emptied = hand_over(world, writer, to);
            let (who, moved, left) = (writer.owner, writer.moved(), writer.left());
            if emptied == Ok(()) && left > 0 {
                world.note_moved(who, moved);
                return Ok(());
            }
            if emptied == Err(Side::Reader) {
                return Err(Errno::EFAULT);
            }
            let result = emptied.map(|()| moved).or_else(|_| writer.moved_or(Errno::EFAULT));
            self.waiting_writers.pop_front();
            world.finish(who, result);
        }
        Ok(())
    }

    /// Lets writers that wait go on, in their order.
    #[expect(clippy::disallowed_methods, reason = "it has just been taken out")]
    fn admit_writers(&mut self, world: &impl World) {
        while let Some(mut writer) = self.waiting_writers.pop_front() {
            let before = writer.moved();
            match self.fill(world, &mut writer) {
                Err(error) => world.finish(writer.owner, writer.moved_or(error)),
                Ok(()) if writer.left() == 0 => world.finish(writer.owner, Ok(writer.moved())),
                Ok(()) => {
                    if writer.moved() > before {
                        world.note_moved(writer.owner, writer.moved());
                    }
                    self.waiting_writers.push_front(writer);
                    return;
                }
            }
        }
    }
}
