//! Block special files: any position and length, over drivers that move whole sectors (`abi::block`).
//!
//! Data goes through a buffer of vfs. A write that does not cover a sector reads it first.

use crate::{
    memory as user,
    memory::buffer::UserBuffer,
    objects::{Object, OpenFile},
    peers::Service,
    state::Vfs,
};
use abi::{Errno, block};
use alloc::{vec, vec::Vec};
use sys::grant::{Access, GrantedBuffer};

/// Positions and lengths of requests are multiples of this.
const SECTOR: u64 = 512;
/// Most bytes of one request.
const CHUNK: u64 = 64 * 1024;

/// The sectors that hold `bytes` bytes from `position` on, at most a chunk: first position and length.
fn span(position: u64, bytes: u64) -> (u64, u64) {
    let start = position - position % SECTOR;
    let end = (position + bytes).next_multiple_of(SECTOR);
    (start, (end - start).min(CHUNK))
}

impl Vfs {
    /// read on a block special file.
    pub async fn read_block(&self, file: &OpenFile, mut buffer: UserBuffer, at: Option<u64>) -> Result<u64, Errno> {
        let Object::Block { service, minor, bytes: size, .. } = file.object else { return Err(Errno::EBADF) };
        let start = at.unwrap_or_else(|| file.position.get());
        let mut result = Ok(());
        while buffer.left() > 0 && start + buffer.moved() < size {
            let position = start + buffer.moved();
            let wanted = buffer.piece().bytes.min(size - position);
            let step = self.read_piece(service, minor, position, wanted, &mut buffer).await;
            if step.is_err() {
                result = step;
                break;
            }
        }
        if at.is_none() {
            file.set_position(start + buffer.moved());
        }
        result.map(|()| buffer.moved()).or_else(|error| buffer.moved_or(error))
    }

    async fn read_piece(
        &self,
        service: Service,
        minor: u64,
        position: u64,
        wanted: u64,
        buffer: &mut UserBuffer,
    ) -> Result<(), Errno> {
        let (first, bytes) = span(position, wanted);
        let data = self.read_sectors(service, minor, first, bytes).await?;
        let skip = (position - first) as usize;
        let end = data.len().min(skip + wanted as usize);
        user::store(buffer.owner, buffer.piece().address, &data[skip..end])?;
        buffer.advance((end - skip) as u64);
        Ok(())
    }

    /// write on a block special file. `ENOSPC` at its end.
    pub async fn write_block(&self, file: &OpenFile, mut buffer: UserBuffer, at: Option<u64>) -> Result<u64, Errno> {
        let Object::Block { service, minor, bytes: size, .. } = file.object else { return Err(Errno::EBADF) };
        let start = at.unwrap_or_else(|| file.position.get());
        let mut result = Ok(());
        while buffer.left() > 0 && result.is_ok() {
            let position = start + buffer.moved();
            result = match size.checked_sub(position) {
                None | Some(0) => Err(Errno::ENOSPC),
                Some(room) => {
                    let wanted = buffer.piece().bytes.min(room);
                    self.write_piece(service, minor, position, wanted, &mut buffer).await
                }
            };
        }
        if at.is_none() {
            file.set_position(start + buffer.moved());
        }
        result.map(|()| buffer.moved()).or_else(|error| buffer.moved_or(error))
    }

    async fn write_piece(
        &self,
        service: Service,
        minor: u64,
        position: u64,
        wanted: u64,
        buffer: &mut UserBuffer,
    ) -> Result<(), Errno> {
        let (first, bytes) = span(position, wanted);
        let skip = (position - first) as usize;
        let length = (bytes as usize - skip).min(wanted as usize);
        let whole = skip == 0 && length as u64 == bytes;
        let mut data =
            if whole { vec![0; bytes as usize] } else { self.read_sectors(service, minor, first, bytes).await? };
        let part = data.get_mut(skip..skip + length).ok_or(Errno::EIO)?;
        user::fetch(buffer.owner, buffer.piece().address, part)?;
        let bytes = data.len() as u64;
        let lent = GrantedBuffer::new(data, service.endpoint(), Access::Read)?;
        let request = block::Write { minor, grant: lent.id(), position: first, bytes };
        self.ask(service, request.message()).await?;
        buffer.advance(length as u64);
        Ok(())
    }

    async fn read_sectors(&self, service: Service, minor: u64, position: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
        let room = GrantedBuffer::new(vec![0; bytes as usize], service.endpoint(), Access::Write)?;
        let request = block::Read { minor, grant: room.id(), position, bytes };
        let reply = self.ask(service, request.message()).await?;
        if reply.words[0] != bytes {
            return Err(Errno::EIO);
        }
        Ok(room.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_covers_whole_sectors_up_to_a_chunk() {
        assert_eq!(span(0, 512), (0, 512));
        assert_eq!(span(511, 2), (0, 1024));
        assert_eq!(span(1000, 1), (512, 512));
        assert_eq!(span(100, 1 << 30), (0, CHUNK));
    }
}
