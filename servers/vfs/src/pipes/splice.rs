//! Bytes between a pipe and memory of vfs: what splice, tee and sendfile move without a program's memory.
//!
//! Bytes that go to a file or a device are copied, and removed when they have arrived. Meanwhile the pipe is *held*: others who read wait, so
//! that nobody takes the same bytes. What goes to another pipe is moved within one turn.

use super::{DATA, Pipe, ROOM, State, World, ancillary::Cargo};
use abi::Errno;
use alloc::vec::Vec;
use sys::fallible::filled;

impl Pipe {
    /// Whether a splice holds the first bytes.
    pub fn is_held(&self) -> bool {
        self.state.borrow().held
    }

    /// Whether [`Pipe::look`] has something to copy.
    pub fn can_give(&self) -> bool {
        let state = self.state.borrow();
        !state.held && state.has_data()
    }

    /// Whether there is nothing to take, and never will be.
    pub fn is_at_end(&self) -> bool {
        !self.is_held() && self.writers.get() == 0 && !self.can_give()
    }

    /// Whether a poll for writing would wait.
    pub fn is_full(&self) -> bool {
        self.state.borrow().is_full()
    }

    /// Bytes that may be put in now.
    pub fn room(&self) -> usize {
        self.state.borrow().ring.room()
    }

    /// Ends a splice from an empty pipe without writers. `ECONNRESET`: of a socket whose peer has lost data.
    pub fn take_end(&self, world: &impl World) -> Result<u64, Errno> {
        self.end(world)
    }

    /// Copies up to `limit` of the first bytes. `ENOMEM`, also when a writer waits because no page is free.
    pub fn look(&self, world: &impl World, limit: usize) -> Result<Vec<u8>, Errno> {
        let mut state = self.state.borrow_mut();
        state.admit_writers(world);
        self.save(world, &mut state);
        let mut bytes = filled(0, limit.min(state.ring.len()))?;
        if bytes.is_empty() {
            return Err(Errno::ENOMEM);
        }
        state.ring.look(world, 0, &mut bytes);
        Ok(bytes)
    }

    /// Removes bytes that [`Pipe::look`] has copied.
    pub fn skip(&self, world: &impl World, bytes: usize) {
        let mut state = self.state.borrow_mut();
        state.skip(world, bytes);
        state.admit_writers(world);
        self.save(world, &mut state);
        drop(state);
        self.watchers.fire_for(ROOM);
    }

    /// Appends as many bytes as there is room for, and serves those who wait for them. Returns how many. `ENOMEM`.
    pub fn put(&self, world: &impl World, bytes: &[u8]) -> Result<usize, Errno> {
        let mut state = self.state.borrow_mut();
        let before = state.ring.len();
        let fits = bytes.len().min(state.ring.room());
        let result = state.ring.put(world, &bytes[..fits]);
        let moved = state.ring.len() - before;
        state.serve_from_ring(world);
        self.save(world, &mut state);
        drop(state);
        if moved > 0 {
            self.watchers.fire_for(DATA);
        }
        match (moved, result) {
            (0, Err(error)) => Err(error),
            (0, Ok(_)) => Err(Errno::ENOMEM),
            (moved, _) => Ok(moved),
        }
    }

    /// Holds the first bytes, until [`Pipe::release`].
    pub fn hold(&self) {
        self.state.borrow_mut().held = true;
    }

    /// Removes what has been moved, lets go of the rest, and serves those who have waited meanwhile.
    pub fn release(&self, world: &impl World, moved: usize) {
        let mut state = self.state.borrow_mut();
        state.held = false;
        state.skip(world, moved);
        state.serve_from_ring(world);
        state.admit_writers(world);
        state.serve_from_ring(world);
        self.save(world, &mut state);
        let ended = self.writers.get() == 0 && state.ring.len() == 0;
        let waiting = if ended { core::mem::take(&mut state.waiting_readers) } else { Default::default() };
        drop(state);
        waiting.iter().for_each(|reader| world.finish(reader.owner, self.end(world)));
        self.watchers.fire();
    }
}

impl State {
    /// Gives what is in the ring to readers that wait. One whose memory is bad gets its error, the bytes stay.
    fn serve_from_ring(&mut self, world: &impl World) {
        while !self.held && self.ring.len() > 0 {
            let Some(mut reader) = self.waiting_readers.pop_front() else { return };
            let result = match self.has_laden() {
                false => self.drain(world, &mut reader),
                true => self.drain_stretch(world, &mut reader, false, &mut Cargo::default()),
            };
            world.finish(reader.owner, result.map(|()| reader.moved()).or_else(|error| reader.moved_or(error)));
        }
    }
}
