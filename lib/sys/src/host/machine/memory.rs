//! How the simulated machine copies: between programs, which have their memory here, and services, whose memory is the process's own.
//!
//! Addresses of a service come from this crate alone (`keep`, `grant`), and name memory that the service has set aside for copies:
//! its preserved memory, a granted buffer, its grant table. The service that owns it waits, or makes the call, while the copy is made: one
//! service runs at a time, and the machine's lock is held.

use super::state::State;
use crate::Result;
use abi::grant::{GrantEntry, MAGIC, READ, USED, WRITE};
use abi::{Endpoint, Errno, GrantId};
use std::vec;

/// The caller's side of a copy.
pub(super) enum Side<'a> {
    /// The copy fills this.
    Into(&'a mut [u8]),
    /// The copy reads this.
    From(&'a [u8]),
}

impl Side<'_> {
    fn len(&self) -> usize {
        match self {
            Side::Into(buffer) => buffer.len(),
            Side::From(buffer) => buffer.len(),
        }
    }

    /// The right that the other side must have given.
    fn right(&self) -> u32 {
        match self {
            Side::Into(_) => READ,
            Side::From(_) => WRITE,
        }
    }

    fn copy(&mut self, other: &mut [u8]) {
        match self {
            Side::Into(buffer) => buffer.copy_from_slice(other),
            Side::From(buffer) => other.copy_from_slice(buffer),
        }
    }
}

/// A grant as its user names it.
pub(super) struct Use {
    pub(super) by: Endpoint,
    pub(super) granter: Endpoint,
    pub(super) grant: GrantId,
    pub(super) offset: u64,
}

impl State {
    /// Memory of a service for the time of one copy.
    fn own<'a>(&self, address: u64, bytes: usize) -> Result<&'a mut [u8]> {
        if address < self.unmapped.end && address + bytes as u64 > self.unmapped.start {
            return Err(Errno::EFAULT);
        }
        // SAFETY: see the head of the file; the slice is used within one copy and not kept.
        Ok(unsafe { std::slice::from_raw_parts_mut(address as *mut u8, bytes) })
    }

    pub(super) fn read_program(&mut self, program: Endpoint, address: u64, into: &mut [u8]) -> Result<()> {
        let (memory, range) = self.program(program, address, into.len())?;
        into.copy_from_slice(&memory[range]);
        Ok(())
    }

    pub(super) fn write_program(&mut self, program: Endpoint, address: u64, from: &[u8]) -> Result<()> {
        let (memory, range) = self.program(program, address, from.len())?;
        memory[range].copy_from_slice(from);
        Ok(())
    }

    /// `VirCopy`. With `side`, that is the caller's; without, it is memory of the caller at the address.
    pub(super) fn virtual_copy(
        &mut self,
        (from, from_address): (Endpoint, u64),
        (to, to_address): (Endpoint, u64),
        bytes: u64,
        side: Option<&mut Side>,
    ) -> Result<u64> {
        let length = bytes as usize;
        match side {
            Some(Side::Into(buffer)) => self.read_program(from, from_address, buffer)?,
            Some(Side::From(buffer)) => self.write_program(to, to_address, buffer)?,
            None if from == Endpoint::SELF && to == Endpoint::SELF => {
                self.own(to_address, length)?.copy_from_slice(self.own(from_address, length)?);
            }
            None if from == Endpoint::SELF => self.write_program(to, to_address, self.own(from_address, length)?)?,
            None if to == Endpoint::SELF => self.read_program(from, from_address, self.own(to_address, length)?)?,
            None => {
                let mut between = vec![0; length];
                self.read_program(from, from_address, &mut between)?;
                self.write_program(to, to_address, &between)?;
            }
        }
        Ok(bytes)
    }

    /// `SafeCopyFrom` and `SafeCopyTo`.
    pub(super) fn safe_copy(&mut self, used: &Use, side: &mut Side) -> Result<u64> {
        let length = side.len();
        if self.is_played(used.granter) {
            let (memory, range) = self.program(used.granter, used.offset, length)?;
            side.copy(&mut memory[range]);
            return Ok(length as u64);
        }
        let entry = self.granted(used, length, side.right())?;
        let address = entry.address + used.offset;
        if entry.flags & MAGIC == 0 {
            side.copy(self.own(address, length)?);
        } else {
            let (memory, range) = self.program(entry.owner, address, length)?;
            side.copy(&mut memory[range]);
        }
        Ok(length as u64)
    }

    fn granted(&self, used: &Use, length: usize, right: u32) -> Result<GrantEntry> {
        let Use { by, granter, grant, offset } = *used;
        let service = self.services.get(&granter.slot()).ok_or(Errno::EDEADSRCDST)?;
        let (table, _) = service.grants.filter(|(_, entries)| (grant.index() as u64) < *entries).ok_or(Errno::EPERM)?;
        // SAFETY: within the table that the granter, which waits, has registered; it is there as long as the granter's thread.
        let entry = unsafe { (table as *const GrantEntry).add(grant.index()).read_volatile() };
        let is_grantee = entry.grantee == by || entry.grantee == Endpoint::current(by.slot());
        let is_valid = entry.flags & (USED | right) == USED | right && entry.sequence as u16 == grant.sequence();
        let is_within = offset.checked_add(length as u64).is_some_and(|end| end <= entry.bytes);
        if is_grantee && is_valid && is_within { Ok(entry) } else { Err(Errno::EPERM) }
    }
}
