//! Copies between two files of one file system, through a buffer: the bytes never leave the process.
//!
//! A copy is committed piece by piece, each read and written as a whole; done again after a death, a piece writes the same bytes to the same
//! place. Neighbour: `Server::write`, whose progress is counted in the same way.

use abi::fs::CopyRange;
use abi::{Errno, Message};
use alloc::vec::Vec;
use sys::fallible;

use super::{MountRequest, Server, TRANSFER_BYTES, caller};
use crate::file_system::{DataSink, DataSource, FileSystem};
use crate::linux::nanoseconds;
use crate::preserve::VolumeMemory;

/// Bytes of a piece, which is one transaction: what a copy that misses a block has to repeat.
const PIECE_BYTES: u64 = 64 * 1024;

/// Appends what is read; room has been made.
struct Filling<'a>(&'a mut Vec<u8>);

impl DataSink for Filling<'_> {
    #[expect(clippy::disallowed_methods, reason = "room was made")]
    fn put(&mut self, data: &[u8]) -> Result<(), Errno> {
        self.0.extend_from_slice(data);
        Ok(())
    }
}

/// Supplies what was read.
struct Emptying<'a>(&'a [u8]);

impl DataSource for Emptying<'_> {
    fn take(&mut self, buffer: &mut [u8]) -> Result<(), Errno> {
        let (now, later) = self.0.split_at_checked(buffer.len()).ok_or(Errno::EIO)?;
        buffer.copy_from_slice(now);
        self.0 = later;
        Ok(())
    }
}

impl<F, M> Server<F, M>
where
    F: FileSystem,
    M: FnMut(&MountRequest, Option<VolumeMemory>) -> Result<F, Errno>,
{
    /// Continues a copy after `done` bytes; the last piece is committed with the reply. An error after some bytes ends the copy there.
    pub(super) fn copy_range(
        &mut self,
        message: &Message,
        request: CopyRange,
        done: &mut u64,
    ) -> Result<Message, Errno> {
        let bytes = request.bytes.min(TRANSFER_BYTES);
        let mut buffer: Vec<u8> = fallible::with_capacity(bytes.min(PIECE_BYTES) as usize)?;
        loop {
            let wanted = (bytes - *done).min(PIECE_BYTES);
            let more = match self.copy_piece(&request, *done, wanted, &mut buffer) {
                Ok(more) => more,
                Err(error) if *done == 0 => return Err(error),
                Err(_) => 0,
            };
            if more < wanted || *done + more == bytes {
                let (file_system, from, to) = self.volumes.find_two(request.from, request.to)?;
                let (accessed, size) = (file_system.attributes(from)?.accessed, file_system.attributes(to)?.size);
                return Ok(CopyRange::reply(message, *done + more, size, nanoseconds(accessed)));
            }
            self.commit_part()?;
            *done += more;
        }
    }

    /// Copies up to `wanted` bytes, `done` behind the beginning. Returns how many: fewer at the end of the source, or at a limit.
    fn copy_piece(&mut self, request: &CopyRange, done: u64, wanted: u64, buffer: &mut Vec<u8>) -> Result<u64, Errno> {
        let (file_system, from, to) = self.volumes.find_two(request.from, request.to)?;
        let position = request.from_position.saturating_add(done);
        let present = file_system.attributes(from)?.size.saturating_sub(position).min(wanted);
        buffer.clear();
        let read = file_system.read(from, position, present as usize, &mut Filling(buffer))? as u64;
        if read < present {
            // It has missed a block, then the error is void; or it cannot read one.
            return Err(Errno::EIO);
        }
        let position = request.to_position.saturating_add(done);
        let written = file_system.write(to, position, buffer.len(), &mut Emptying(buffer), caller(request.ids))?;
        Ok(written as u64)
    }
}
