//! Packets in a pipe (pipe(2), `O_DIRECT`): what one write has put in, at most `PIPE_BUF` bytes, a read takes alone, and drops what it has no
//! room for.
//!
//! In the ring a packet is bytes like others, and an entry of `ancillary` says where it begins and ends; so the same pipe can have
//! both. As on Linux a packet takes a page of the pipe's capacity, however short it is. A writer that waits does so in a task.

use super::{DATA, PIPE_BUF, Pipe, Side, State, World, hand_over};
use crate::memory::buffer::UserBuffer;
use abi::Errno;

impl Pipe {
    /// Writes as many packets as there is room for, charged to a user. Never waits: `EAGAIN`, when there is no room for the first. `EPIPE`:
    /// nobody reads; `ENOMEM`: the user has his share.
    pub fn write_packets(&self, world: &impl World, from: &mut UserBuffer, user: u32) -> Result<u64, Errno> {
        if self.readers.get() == 0 {
            return from.moved_or(Errno::EPIPE);
        }
        if from.left() == 0 {
            return Ok(from.moved());
        }
        let mut state = self.state.borrow_mut();
        let before = from.moved();
        let mut result = Ok(true);
        while from.left() > 0 && result == Ok(true) {
            result = state.put_packet(world, from, user);
        }
        self.save(world, &mut state);
        drop(state);
        if from.moved() > before {
            self.watchers.fire_for(DATA);
        }
        match result {
            Err(error) => from.moved_or(error),
            Ok(_) if from.moved() == before => Err(Errno::EAGAIN),
            Ok(_) => Ok(from.moved()),
        }
    }
}

impl State {
    /// Pages of its capacity that are in use; those of bytes that are no packets count together.
    pub(super) fn used_pages(&self) -> usize {
        let (packets, bytes) = self.ancillaries.packets();
        packets + self.ring.len().saturating_sub(bytes).div_ceil(PIPE_BUF as usize)
    }

    /// Whether it has packets, and room for no more.
    pub(super) fn is_full_of_packets(&self) -> bool {
        self.ancillaries.packets().0 > 0 && self.used_pages() >= self.ring.capacity() / PIPE_BUF as usize
    }

    /// Hands a packet to a reader that waits, or puts it into the ring. False: there is no room.
    fn put_packet(&mut self, world: &impl World, from: &mut UserBuffer, user: u32) -> Result<bool, Errno> {
        let mut packet = from.clone();
        packet.truncate(PIPE_BUF);
        let bytes = packet.left();
        if !self.waiting_writers.is_empty() {
            return Ok(false);
        }
        let taken = self.give_packet(world, &packet)? || self.append_packet(world, &mut packet, user)?;
        if taken {
            from.advance_all(bytes);
        }
        Ok(taken)
    }

    /// Hands a packet to a reader that waits. One whose memory is bad gets its error. False: none waits.
    fn give_packet(&mut self, world: &impl World, packet: &UserBuffer) -> Result<bool, Errno> {
        while !self.held
            && let Some(reader) = self.waiting_readers.front_mut()
        {
            let given = hand_over(world, &mut packet.clone(), reader);
            if given == Err(Side::Writer) {
                return Err(Errno::EFAULT);
            }
            let result = given.map(|()| reader.moved()).map_err(|_| Errno::EFAULT);
            world.finish(reader.owner, result);
            self.waiting_readers.pop_front();
            if given.is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts a packet into the ring, or nothing of it. False: there is no room.
    fn append_packet(&mut self, world: &impl World, packet: &mut UserBuffer, user: u32) -> Result<bool, Errno> {
        let (before, bytes) = (self.ring.len(), packet.left() as usize);
        if self.used_pages() >= self.ring.capacity() / PIPE_BUF as usize || self.ring.room() < bytes {
            return Ok(false);
        }
        let entry = self.ancillaries.prepare_packet(world, user)?;
        let filled = self.fill_all(world, packet);
        if filled != Ok(true) {
            self.ring.truncate(world, before);
            return filled;
        }
        self.ancillaries.mark(entry, self.ring.len(), bytes);
        self.ring.set_ancillary(self.ancillaries.first());
        Ok(true)
    }
}
