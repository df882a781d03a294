//! Block special files: any position and length, over disks of drivers that move whole sectors (`abi::block`), and loop devices.
//!
//! Data goes through a buffer of vfs. A write that does not cover a sector reads it first.

use super::{Inheritance, Kind, Object, OpenFile, Operation, Seek, done};
use crate::{
    base::{Base, Flow},
    events::poll::ALWAYS_READY,
    files::{loops::LoopUse, vnode::NodeRef},
    keep::records::{NOWHERE, ObjectRecord},
    memory as user,
    memory::buffer::UserBuffer,
    peers::Service,
};
use abi::{Errno, block};
use alloc::{rc::Rc, vec::Vec};
use core::mem::take;
use sys::fallible::filled;
use sys::grant::{Access, GrantedBuffer};

/// Positions and lengths of requests are multiples of this.
const SECTOR: u64 = 512;
/// Most bytes of one request.
const CHUNK: u64 = 64 * 1024;

mod ioctl {
    pub const BLKROGET: u32 = 0x125e;
    pub const BLKGETSIZE: u32 = 0x1260;
    pub const BLKFLSBUF: u32 = 0x1261;
    pub const BLKSSZGET: u32 = 0x1268;
    pub const BLKPBSZGET: u32 = 0x127b;
    pub const BLKGETSIZE64: u32 = 0x8008_1272;
}

/// What an open block special file is of.
#[derive(Debug)]
pub enum Disk {
    /// A disk of a driver.
    Driven(Driven),
    /// A loop device, whose file may change.
    Loop(LoopUse),
}

/// A disk of a driver.
#[derive(Clone, Copy, Debug)]
pub struct Driven {
    /// The driver.
    pub service: Service,
    /// Which of its disks.
    pub minor: u64,
    /// Its size.
    pub bytes: u64,
}

impl Disk {
    /// Its size now.
    pub fn bytes(&self) -> u64 {
        match self {
            Disk::Driven(disk) => disk.bytes,
            Disk::Loop(disk) => disk.device().bytes(),
        }
    }

    fn block_bytes(&self) -> u64 {
        match self {
            Disk::Driven(_) => SECTOR,
            Disk::Loop(disk) => disk.device().backing().map_or(SECTOR, |backing| backing.record().block_bytes.into()),
        }
    }

    /// Whether it is known to refuse writes; a driver says so when it is asked to write.
    fn is_read_only(&self) -> bool {
        match self {
            Disk::Driven(_) => false,
            Disk::Loop(disk) => disk.device().backing().is_ok_and(|backing| backing.is_read_only()),
        }
    }

    async fn read(&self, base: &Base, position: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
        let disk = match self {
            Disk::Driven(disk) => disk,
            Disk::Loop(disk) => return base.read_loop(&*disk.device().backing()?, position, bytes).await,
        };
        let room = GrantedBuffer::new(filled(0, bytes as usize)?, disk.service.endpoint(), Access::Write)?;
        let request = block::Read { minor: disk.minor, grant: room.id(), position, bytes };
        let reply = base.peers().ask(disk.service, request.message()).await?;
        if reply.words[0] != bytes {
            return Err(Errno::EIO);
        }
        Ok(room.take())
    }

    async fn write(&self, base: &Base, position: u64, data: Vec<u8>) -> Result<(), Errno> {
        let disk = match self {
            Disk::Driven(disk) => disk,
            Disk::Loop(disk) => return base.write_loop(&*disk.device().backing()?, position, data).await,
        };
        let bytes = data.len() as u64;
        let granted = GrantedBuffer::new(data, disk.service.endpoint(), Access::Read)?;
        let request = block::Write { minor: disk.minor, grant: granted.id(), position, bytes };
        base.peers().ask(disk.service, request.message()).await.map(drop)
    }

    /// Brings what was written to the medium.
    async fn flush(&self, base: &Base) -> Result<(), Errno> {
        match self {
            Disk::Driven(disk) => {
                let request = block::Flush { minor: disk.minor };
                base.peers().ask(disk.service, request.message()).await.map(drop)
            }
            Disk::Loop(disk) => match disk.device().backing() {
                Ok(backing) => base.flush_loop(&backing).await,
                Err(_) => Ok(()),
            },
        }
    }
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
        let of = ObjectRecord::of(Self::NUMBER);
        match &self.device {
            Disk::Driven(Driven { service, minor, bytes }) => {
                ObjectRecord { place: service.slot() as u16, minor: *minor as u32, more: *bytes, ..of }
            }
            Disk::Loop(disk) => ObjectRecord { place: NOWHERE, minor: disk.device().number() as u32, ..of },
        }
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }

    fn has_positions(&self) -> bool {
        true
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        let (base, file, buffer) = (on.base, on.file.clone(), take(buffer));
        Ok(Flow::task(async move { read(base, &file, buffer, at).await }))
    }

    fn write(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        if self.device.is_read_only() {
            return Err(Errno::EPERM);
        }
        let (base, file, buffer) = (on.base, on.file.clone(), take(buffer));
        Ok(Flow::task(async move { write(base, &file, buffer, at).await }))
    }

    fn seek(&self, seek: &Seek) -> Result<u64, Errno> {
        seek.within(|| self.device.bytes())
    }

    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        let (who, disk) = (on.caller.endpoint, &self.device);
        match request {
            ioctl::BLKGETSIZE64 => user::store(who, argument, &disk.bytes().to_le_bytes())?,
            ioctl::BLKGETSIZE => user::store(who, argument, &(disk.bytes() / SECTOR).to_le_bytes())?,
            ioctl::BLKSSZGET | ioctl::BLKPBSZGET => {
                user::store(who, argument, &(disk.block_bytes() as u32).to_le_bytes())?;
            }
            ioctl::BLKROGET => user::store(who, argument, &u32::from(disk.is_read_only()).to_le_bytes())?,
            ioctl::BLKFLSBUF => return Ok(flush(on.base, on.file.clone())),
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

    fn restore(record: &ObjectRecord, node: Option<NodeRef>, from: &mut dyn Inheritance) -> Option<Self> {
        let minor = record.minor.into();
        let device = match record.place {
            NOWHERE => Disk::Loop(LoopUse::new(from.loop_device(minor)?)),
            slot => Disk::Driven(Driven { service: Service::at(slot as usize), minor, bytes: record.more }),
        };
        Some(Block { node: node?, device })
    }
}

/// fsync of an open block special file.
pub fn flush(base: &'static Base, file: Rc<OpenFile>) -> Flow {
    Flow::task(async move {
        disk_of(&file)?.flush(base).await?;
        Ok(0)
    })
}

fn disk_of(file: &OpenFile) -> Result<&Disk, Errno> {
    file.object::<Block>().map(|block| &block.device).ok_or(Errno::EIO)
}

/// The sectors that hold `bytes` bytes from `position` on, at most a chunk: first position and length.
fn span(position: u64, bytes: u64) -> (u64, u64) {
    let start = position - position % SECTOR;
    let end = (position + bytes).next_multiple_of(SECTOR);
    (start, (end - start).min(CHUNK))
}

async fn read(base: &Base, file: &OpenFile, mut buffer: UserBuffer, at: Option<u64>) -> Result<u64, Errno> {
    let disk = disk_of(file)?;
    let size = disk.bytes();
    let start = at.unwrap_or_else(|| file.position());
    let mut result = Ok(());
    while buffer.left() > 0 && start + buffer.moved() < size {
        let position = start + buffer.moved();
        let wanted = buffer.piece().bytes.min(size - position);
        let step = read_piece(base, disk, position, wanted, &mut buffer).await;
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
    disk: &Disk,
    position: u64,
    wanted: u64,
    buffer: &mut UserBuffer,
) -> Result<(), Errno> {
    let (first, bytes) = span(position, wanted);
    let data = disk.read(base, first, bytes).await?;
    let skip = (position - first) as usize;
    let end = data.len().min(skip + wanted as usize);
    user::store(buffer.owner, buffer.piece().address, &data[skip..end])?;
    buffer.advance((end - skip) as u64);
    Ok(())
}

/// `ENOSPC` at the end of the device.
async fn write(base: &Base, file: &OpenFile, mut buffer: UserBuffer, at: Option<u64>) -> Result<u64, Errno> {
    let disk = disk_of(file)?;
    let size = disk.bytes();
    let start = at.unwrap_or_else(|| file.position());
    let mut result = Ok(());
    while buffer.left() > 0 && result.is_ok() {
        let position = start + buffer.moved();
        result = match size.checked_sub(position) {
            None | Some(0) => Err(Errno::ENOSPC),
            Some(room) => {
                let wanted = buffer.piece().bytes.min(room);
                write_piece(base, disk, position, wanted, &mut buffer).await
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
    disk: &Disk,
    position: u64,
    wanted: u64,
    buffer: &mut UserBuffer,
) -> Result<(), Errno> {
    let (first, bytes) = span(position, wanted);
    let skip = (position - first) as usize;
    let length = (bytes as usize - skip).min(wanted as usize);
    let whole = skip == 0 && length as u64 == bytes;
    let mut data = if whole { filled(0, bytes as usize)? } else { disk.read(base, first, bytes).await? };
    let part = data.get_mut(skip..skip + length).ok_or(Errno::EIO)?;
    user::fetch(buffer.owner, buffer.piece().address, part)?;
    disk.write(base, first, data).await?;
    buffer.advance(length as u64);
    Ok(())
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
