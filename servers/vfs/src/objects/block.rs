//! Block special files: any position and length, over drivers that move whole sectors (`abi::block`).
//!
//! Data goes through a buffer of vfs. A write that does not cover a sector reads it first.

use super::{Inheritance, Kind, Object, OpenFile, Operation, Seek, done};
use crate::{
    base::{Base, Flow},
    events::poll::ALWAYS_READY,
    files::vnode::NodeRef,
    keep::records::ObjectRecord,
    memory as user,
    memory::buffer::UserBuffer,
    peers::Service,
};
use abi::{Errno, block};
use alloc::vec::Vec;
use core::mem::take;
use sys::fallible::filled;
use sys::grant::{Access, GrantedBuffer};

/// Positions and lengths of requests are multiples of this.
const SECTOR: u64 = 512;
/// Most bytes of one request.
const CHUNK: u64 = 64 * 1024;

mod ioctl {
    pub const BLKGETSIZE: u32 = 0x1260;
    pub const BLKFLSBUF: u32 = 0x1261;
    pub const BLKSSZGET: u32 = 0x1268;
    pub const BLKGETSIZE64: u32 = 0x8008_1272;
}

/// A disk of a driver.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// The driver.
    pub service: Service,
    /// Which of its disks.
    pub minor: u64,
    /// Its size.
    pub bytes: u64,
}

/// An open block special file.
#[derive(Debug)]
pub struct Block {
    /// The special file.
    pub node: NodeRef,
    /// The device.
    pub device: Disk,
}

impl Object for Block {
    fn record(&self) -> ObjectRecord {
        let Disk { service, minor, bytes } = self.device;
        ObjectRecord { kind: Self::NUMBER, place: service.slot() as u16, minor: minor as u32, more: bytes }
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        let (base, device, file, buffer) = (on.base, self.device, on.file.clone(), take(buffer));
        Ok(Flow::task(async move { read(base, device, &file, buffer, at).await }))
    }

    fn write(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        let (base, device, file, buffer) = (on.base, self.device, on.file.clone(), take(buffer));
        Ok(Flow::task(async move { write(base, device, &file, buffer, at).await }))
    }

    fn seek(&self, seek: &Seek) -> Result<u64, Errno> {
        seek.within(self.device.bytes)
    }

    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        let (who, bytes) = (on.caller.endpoint, self.device.bytes);
        match request {
            ioctl::BLKGETSIZE64 => user::store(who, argument, &bytes.to_le_bytes())?,
            ioctl::BLKGETSIZE => user::store(who, argument, &(bytes / SECTOR).to_le_bytes())?,
            ioctl::BLKSSZGET => user::store(who, argument, &(SECTOR as u32).to_le_bytes())?,
            ioctl::BLKFLSBUF => {}
            _ => return Err(Errno::ENOTTY),
        }
        done(0)
    }

    fn poll(&self) -> u32 {
        ALWAYS_READY
    }
}

impl Kind for Block {
    const NUMBER: u8 = 4;

    fn restore(record: &ObjectRecord, node: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        let service = Service::at(record.place as usize);
        Some(Block { node: node?, device: Disk { service, minor: record.minor as u64, bytes: record.more } })
    }
}

/// The sectors that hold `bytes` bytes from `position` on, at most a chunk: first position and length.
fn span(position: u64, bytes: u64) -> (u64, u64) {
    let start = position - position % SECTOR;
    let end = (position + bytes).next_multiple_of(SECTOR);
    (start, (end - start).min(CHUNK))
}

async fn read(
    base: &Base,
    device: Disk,
    file: &OpenFile,
    mut buffer: UserBuffer,
    at: Option<u64>,
) -> Result<u64, Errno> {
    let size = device.bytes;
    let start = at.unwrap_or_else(|| file.position());
    let mut result = Ok(());
    while buffer.left() > 0 && start + buffer.moved() < size {
        let position = start + buffer.moved();
        let wanted = buffer.piece().bytes.min(size - position);
        let step = read_piece(base, device, position, wanted, &mut buffer).await;
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
    base: &Base,
    device: Disk,
    position: u64,
    wanted: u64,
    buffer: &mut UserBuffer,
) -> Result<(), Errno> {
    let (first, bytes) = span(position, wanted);
    let data = read_sectors(base, device, first, bytes).await?;
    let skip = (position - first) as usize;
    let end = data.len().min(skip + wanted as usize);
    user::store(buffer.owner, buffer.piece().address, &data[skip..end])?;
    buffer.advance((end - skip) as u64);
    Ok(())
}

/// `ENOSPC` at the end of the device.
async fn write(
    base: &Base,
    device: Disk,
    file: &OpenFile,
    mut buffer: UserBuffer,
    at: Option<u64>,
) -> Result<u64, Errno> {
    let size = device.bytes;
    let start = at.unwrap_or_else(|| file.position());
    let mut result = Ok(());
    while buffer.left() > 0 && result.is_ok() {
        let position = start + buffer.moved();
        result = match size.checked_sub(position) {
            None | Some(0) => Err(Errno::ENOSPC),
            Some(room) => {
                let wanted = buffer.piece().bytes.min(room);
                write_piece(base, device, position, wanted, &mut buffer).await
            }
        };
    }
    if at.is_none() {
        file.set_position(start + buffer.moved());
    }
    result.map(|()| buffer.moved()).or_else(|error| buffer.moved_or(error))
}

async fn write_piece(
    base: &Base,
    device: Disk,
    position: u64,
    wanted: u64,
    buffer: &mut UserBuffer,
) -> Result<(), Errno> {
    let (first, bytes) = span(position, wanted);
    let skip = (position - first) as usize;
    let length = (bytes as usize - skip).min(wanted as usize);
    let whole = skip == 0 && length as u64 == bytes;
    let mut data = if whole { filled(0, bytes as usize)? } else { read_sectors(base, device, first, bytes).await? };
    let part = data.get_mut(skip..skip + length).ok_or(Errno::EIO)?;
    user::fetch(buffer.owner, buffer.piece().address, part)?;
    let bytes = data.len() as u64;
    let granted = GrantedBuffer::new(data, device.service.endpoint(), Access::Read)?;
    let request = block::Write { minor: device.minor, grant: granted.id(), position: first, bytes };
    base.peers().ask(device.service, request.message()).await?;
    buffer.advance(length as u64);
    Ok(())
}

async fn read_sectors(base: &Base, device: Disk, position: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
    let room = GrantedBuffer::new(filled(0, bytes as usize)?, device.service.endpoint(), Access::Write)?;
    let request = block::Read { minor: device.minor, grant: room.id(), position, bytes };
    let reply = base.peers().ask(device.service, request.message()).await?;
    if reply.words[0] != bytes {
        return Err(Errno::EIO);
    }
    Ok(room.take())
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
