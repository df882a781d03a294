//! Memory of other processes: `PTRACE_PEEKDATA`, `PTRACE_POKEDATA`, /proc/PID/mem, `process_vm_readv`, `process_vm_writev`.

use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::system::System;
use abi::layout::PAGE_BYTES;
use abi::{Endpoint, Errno, pm};
use sys::fallible;

type Result<T> = core::result::Result<T, Errno>;

/// IOV_MAX.
const MAX_VECTORS: u64 = 1024;
/// What one call copies at most: pm serves others after that. Programs go on with the rest, as after any short transfer.
const MAX_BYTES: u64 = 256 * 1024;
/// Copied at a time.
const PIECE_BYTES: u64 = 16 * 1024;

/// A stretch of memory.
type Stretch = (u64, u64);

/// The next piece of two lists of stretches: address here, address there, length.
fn next_piece(local: &mut [Stretch], remote: &mut [Stretch]) -> Option<(u64, u64, u64)> {
    let here = local.iter_mut().find(|stretch| stretch.1 != 0)?;
    let there = remote.iter_mut().find(|stretch| stretch.1 != 0)?;
    // A piece that cannot be copied whole ends at a page of the other process, so that what is present is copied.
    let to_page_end = PAGE_BYTES - there.0 % PAGE_BYTES;
    let bytes = here.1.min(there.1).min(PIECE_BYTES - PAGE_BYTES + to_page_end);
    let piece = (here.0, there.0, bytes);
    for stretch in [here, there] {
        *stretch = (stretch.0.wrapping_add(bytes), stretch.1 - bytes);
    }
    Some(piece)
}

impl<S: System> Programs<S> {
    /// Writes to the memory of a process that is traced, also where it may only read itself: the page becomes its own. `EIO`.
    pub fn poke(&mut self, t: ThreadIndex, address: u64, bytes: &[u8]) -> Result<()> {
        let endpoint = self.table[t].endpoint();
        let (mut address, mut rest) = (address, bytes);
        while !rest.is_empty() {
            let length = (PAGE_BYTES - address % PAGE_BYTES).min(rest.len() as u64);
            let (piece, behind) = rest.split_at(length as usize);
            if self.system.write(endpoint, address, piece).is_err() {
                self.system.vm_poke(endpoint, address, piece).map_err(|_| Errno::EIO)?;
            }
            (address, rest) = (address.wrapping_add(length), behind);
        }
        Ok(())
    }

    /// `pm::Memory`.
    pub fn copy_memory(&mut self, requester: Endpoint, ask: &pm::Memory) -> Result<u64> {
        let t = self.table.find(ask.process).ok_or(Errno::ESRCH)?;
        let mut bytes = fallible::filled(0, ask.bytes.min(PIECE_BYTES) as usize)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        if ask.write {
            self.system.read_grant(requester, ask.grant, &mut bytes)?;
            return self.poke(t, ask.address, &bytes).map(|()| bytes.len() as u64);
        }
        let there = self.read_pages(t, ask.address, &mut bytes);
        if there == 0 { Err(Errno::EIO) } else { self.system.write_grant(requester, ask.grant, &bytes[..there]) }
    }

    /// Reads memory up to the first page that is not there. Returns the bytes read.
    fn read_pages(&mut self, t: ThreadIndex, address: u64, bytes: &mut [u8]) -> usize {
        let endpoint = self.table[t].endpoint();
        let mut done = 0;
        while done < bytes.len() {
            let at = address.wrapping_add(done as u64);
            let length = ((PAGE_BYTES - at % PAGE_BYTES) as usize).min(bytes.len() - done);
            if self.system.read(endpoint, at, &mut bytes[done..done + length]).is_err() {
                break;
            }
            done += length;
        }
        done
    }

    /// A word of the memory of a process. `EIO`.
    pub fn peek(&mut self, t: ThreadIndex, address: u64) -> Result<u64> {
        self.read_word(t, address).map_err(|_| Errno::EIO)
    }

    /// `process_vm_readv`, `process_vm_writev` (`writes`): `(pid, local, count, remote, count, flags)`.
    pub fn process_vm(&mut self, t: ThreadIndex, a: &[u64; 7], writes: bool) -> Result<u64> {
        if a[5] != 0 || a[2] > MAX_VECTORS || a[4] > MAX_VECTORS {
            return Err(Errno::EINVAL);
        }
        let mut local = self.read_vectors(t, a[1], a[2])?;
        let mut remote = self.read_vectors(t, a[3], a[4])?;
        let own = self.table.process_of(t);
        let p = u32::try_from(a[0]).ok().and_then(|pid| self.table.process_by_pid(pid)).ok_or(Errno::ESRCH)?;
        let target = self.table[p].main().ok_or(Errno::ESRCH)?;
        if !self.may_attach(own, p) {
            return Err(Errno::EPERM);
        }
        let (here, there) = (self.table[t].endpoint(), self.table[target].endpoint());
        let mut buffer = fallible::filled(0, PIECE_BYTES as usize)?;
        let mut done = 0;
        while done < MAX_BYTES
            && let Some((at, other, bytes)) = next_piece(&mut local, &mut remote)
        {
            let piece = &mut buffer[..bytes as usize];
            let (from, to) = if writes { ((here, at), (there, other)) } else { ((there, other), (here, at)) };
            let copied = self.system.read(from.0, from.1, piece).and_then(|()| self.system.write(to.0, to.1, piece));
            match copied {
                Ok(()) => done += bytes,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn read_vectors(&mut self, t: ThreadIndex, address: u64, count: u64) -> Result<alloc::vec::Vec<Stretch>> {
        let mut bytes = fallible::filled([[0; 8]; 2], count as usize)?;
        self.system.read(self.table[t].endpoint(), address, bytes.as_flattened_mut().as_flattened_mut())?;
        let stretches = bytes.iter().map(|[at, length]| (u64::from_le_bytes(*at), u64::from_le_bytes(*length)));
        let stretches = fallible::collect(stretches)?;
        if stretches.iter().any(|(_, length)| *length > i64::MAX as u64) {
            return Err(Errno::EINVAL);
        }
        Ok(stretches)
    }
}
