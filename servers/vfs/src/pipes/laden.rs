//! Bytes in a pipe with which something goes (`ancillary`): how they are written, read and looked at, and what becomes of the rest.

use super::{
    DATA, Pipe, State, World,
    ancillary::{Ancillary, Cargo, Rights},
    hand_over,
};
use crate::{keep::records::NOWHERE, memory::buffer::UserBuffer};
use abi::Errno;
use alloc::rc::Rc;

impl Pipe {
    /// Whether the reader wants to know who sends.
    pub fn asks(&self) -> bool {
        self.asks.get()
    }

    /// Whether the sender's ids are to go with what is sent.
    #[inline]
    pub fn is_identified(&self) -> bool {
        self.asks.get() || self.tells.get()
    }

    /// Sets whether the reader wants to know who sends.
    pub fn set_asks(&self, asks: bool) {
        self.asks.set(asks);
    }

    /// Sets whether the writer always tells who it is.
    pub fn set_tells(&self, tells: bool) {
        self.tells.set(tells);
    }

    /// Drops what goes with bytes that nobody will read.
    pub fn discard(&self, world: &impl World) {
        let mut state = self.state.borrow_mut();
        if !state.ancillaries.is_empty() {
            world.discard(state.ancillaries.take());
            state.ring.set_ancillary(NOWHERE);
            self.save(world, &mut state);
        }
    }

    /// Appends what goes with bytes that a predecessor has left.
    pub fn restore_ancillary(&self, entry: Ancillary) {
        self.state.borrow_mut().ancillaries.restore(entry);
    }

    /// Preserves that nothing else goes with its bytes, after all that has been restored.
    pub fn settle_ancillaries(&self, world: &impl World) {
        let mut state = self.state.borrow_mut();
        let first = state.ancillaries.first();
        state.ring.set_ancillary(first);
        self.save(world, &mut state);
    }

    /// Looks at the open files that are in it.
    pub fn for_each_rights(&self, look: impl FnMut(&Rc<dyn Rights>)) {
        self.state.borrow().ancillaries.rights().for_each(look);
    }

    /// Copies what [`Pipe::read_with`] would take now, and leaves it. Never waits: `EAGAIN`, when there is nothing yet.
    pub fn peek(&self, world: &impl World, to: &mut UserBuffer, cargo: &mut Cargo) -> Result<u64, Errno> {
        let state = self.state.borrow();
        let (length, wanted) = (state.ring.len(), to.left() as usize);
        let (end, peeked) = state.ancillaries.stretch(length, wanted.min(length), self.asks.get());
        let mut skipped = 0;
        while to.left() > 0 && skipped < end {
            let piece = to.piece();
            let bytes = (piece.bytes as usize).min(end - skipped);
            let bytes = state.ring.peek(world, skipped, to.owner, piece.address, bytes)?;
            skipped += bytes;
            to.advance(bytes as u64);
        }
        *cargo = peeked;
        if let (0, Some(writer)) = (skipped, state.waiting_writers.front()) {
            hand_over(world, &mut writer.clone(), to).map_err(|_| Errno::EFAULT)?;
        }
        drop(state);
        match to.moved() {
            0 if to.left() > 0 && self.writers.get() > 0 => Err(Errno::EAGAIN),
            0 if to.left() > 0 => self.end(world),
            moved => Ok(moved),
        }
    }

    /// Writes what there is room for, with `cargo` to go with it, which is taken. Never waits: `EAGAIN`, with the cargo left, when there is
    /// no room. Errors: `EPIPE`, nobody reads; `ETOOMANYREFS`, the user has his share; `ENOMEM`.
    pub fn write_with(
        &self,
        world: &impl World,
        from: &mut UserBuffer,
        user: u32,
        cargo: &mut Cargo,
    ) -> Result<u64, Errno> {
        if self.readers.get() == 0 {
            return Err(Errno::EPIPE);
        }
        let mut state = self.state.borrow_mut();
        let before = from.moved();
        let result = match state.waiting_writers.is_empty() {
            true => state.serve_readers(world, from).and_then(|()| state.fill_with(world, from, user, before, cargo)),
            false => Ok(()),
        };
        self.save(world, &mut state);
        drop(state);
        // Only after a change: see `packets`.
        if from.moved() > before {
            self.watchers.fire_for(DATA);
        }
        match result {
            Ok(()) if from.left() > 0 && from.moved() == before => Err(Errno::EAGAIN),
            Err(error) if from.moved() == before => Err(error),
            _ => Ok(from.moved()),
        }
    }
}

impl State {
    /// Whether something goes with some of the bytes.
    pub(super) fn has_laden(&self) -> bool {
        !self.ancillaries.is_empty()
    }

    /// Removes the first bytes; what goes with them is dropped.
    pub(super) fn skip(&mut self, world: &impl World, bytes: usize) {
        self.ring.skip(world, bytes);
        if self.has_laden() {
            self.ancillaries.consume(bytes);
            self.ring.set_ancillary(self.ancillaries.first());
        }
    }

    /// [`State::drain`] up to the next bytes that belong to another read, with what goes with these.
    pub(super) fn drain_stretch(
        &mut self,
        world: &impl World,
        to: &mut UserBuffer,
        by_sender: bool,
        cargo: &mut Cargo,
    ) -> Result<(), Errno> {
        let (length, before) = (self.ring.len(), to.moved());
        let (end, found) = self.ancillaries.stretch(length, length.min(to.left() as usize), by_sender);
        to.truncate(end as u64);
        let result = self.drain(world, to);
        let moved = (to.moved() - before) as usize;
        if moved > 0 {
            *cargo = match moved == end {
                true => found,
                false => self.ancillaries.stretch(length, moved, by_sender).1,
            };
            let rest = self.ancillaries.rest_of_packet(moved);
            if rest > 0 {
                self.ring.skip(world, rest);
            }
            self.ancillaries.consume(moved + rest);
            self.ring.set_ancillary(self.ancillaries.first());
        }
        result
    }

    /// [`State::fill`] with what goes with the bytes, unless the first of them, behind `before`, have gone to a reader that waited.
    fn fill_with(
        &mut self,
        world: &impl World,
        from: &mut UserBuffer,
        user: u32,
        before: u64,
        cargo: &mut Cargo,
    ) -> Result<(), Errno> {
        if from.moved() > before {
            cargo.rights = None;
        }
        let length = self.ring.len();
        match cargo {
            Cargo { sender: None, rights: None } => return self.fill(world, from),
            Cargo { sender: Some(sender), rights: None } if self.ancillaries.joins(*sender, length) => {
                let result = self.fill(world, from);
                self.ancillaries.extend(self.ring.len());
                return result;
            }
            _ => {}
        }
        let entry = self.ancillaries.prepare(world, user, cargo)?;
        let result = self.fill(world, from);
        let bytes = self.ring.len() - length;
        if bytes > 0 {
            self.ancillaries.mark(entry, self.ring.len(), bytes);
            self.ring.set_ancillary(self.ancillaries.first());
            cargo.rights = None;
        }
        result
    }
}
