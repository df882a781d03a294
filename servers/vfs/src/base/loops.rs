//! Reads and writes of loop devices, for open files of them and for the file system that is mounted from one (`abi::block`).
//!
//! That file system is a process of its own (`loop_ext2`): it may wait for vfs, which asks the file system of the backing file, which asks a
//! driver. A file of `loop_ext2` is therefore never behind a loop device: requests go down only (docs/adr/0069-loop-devices-in-vfs.md). Every
//! request may come again, as those to a driver may.

use super::Base;
use crate::{
    files::{loops::Backing, pages},
    peers::program_error,
};
use abi::{
    Errno, GrantId, Message,
    block::{Flush, Open, Read, Request, Write},
};
use alloc::{rc::Rc, vec::Vec};
use sys::copy;
use sys::fallible::filled;

/// Most bytes of a request.
const MAX_BYTES: u64 = 1 << 20;
/// Bytes of a request that vfs holds at a time.
const PIECE: u64 = 64 * 1024;

impl Base {
    /// Reads from a loop device. `EINVAL`: beyond its end; `EIO`: the file is shorter by now.
    pub async fn read_loop(&self, backing: &Backing, position: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
        let start = backing.locate(position, bytes)?;
        let data = self.mappings().read_into(backing.node(), start, bytes as usize).await?;
        if data.len() as u64 == bytes { Ok(data) } else { Err(Errno::EIO) }
    }

    /// Writes to a loop device. `EPERM`: it is read-only, or the file is sealed; `EINVAL`: beyond its end; `ENOSPC`.
    pub async fn write_loop(&self, backing: &Backing, position: u64, data: Vec<u8>) -> Result<(), Errno> {
        let (node, bytes) = (backing.node(), data.len() as u64);
        let start = backing.locate(position, bytes)?;
        if backing.is_read_only() || node.writable_bytes(start, bytes)? < bytes {
            return Err(Errno::EPERM);
        }
        let written = self.mappings().write_from(node, start, data, 0).await?;
        node.mount().mark_dirty();
        pages::forget_image(node);
        if written < bytes { Err(Errno::ENOSPC) } else { Ok(()) }
    }

    /// Brings what was written to a loop device to the disk below it.
    pub async fn flush_loop(&self, backing: &Backing) -> Result<(), Errno> {
        self.mappings().sync_node(backing.node()).await
    }

    /// Serves a request of the file system that is mounted from a loop device, as a driver does. Returns false if it is no such request.
    pub fn serve_block(&'static self, message: &Message) -> bool {
        let Some(request) = Request::decode(message) else { return false };
        let message = *message;
        self.runtime().spawn(async move {
            let reply = match self.carry_out(&message, request).await {
                Ok(reply) => reply,
                Err(Errno::EPERM) => message.reply(Err(Errno::EROFS)),
                Err(error) => message.reply(Err(program_error(error))),
            };
            self.runtime().reply(&message, &reply);
        });
        true
    }

    async fn carry_out(&self, message: &Message, request: Request) -> Result<Message, Errno> {
        if !self.peers().is_file_system(message.source.slot()) {
            return Err(Errno::EPERM);
        }
        let backing = |minor| self.loops().device(minor)?.backing();
        match request {
            Request::Open(Open { minor }) => {
                let backing = backing(minor)?;
                let block_bytes = backing.record().block_bytes.into();
                return Ok(Open::reply(message, 0, backing.bytes(), block_bytes, backing.is_read_only()));
            }
            Request::Read(Read { minor, grant, position, bytes }) => {
                self.read_to_grant(message, &backing(minor)?, grant, position, bytes).await
            }
            Request::Write(Write { minor, grant, position, bytes }) => {
                self.write_from_grant(message, &backing(minor)?, grant, position, bytes).await
            }
            Request::Flush(Flush { minor }) => self.flush_loop(&*backing(minor)?).await.map(|()| 0),
        }
        .map(|bytes| message.reply(Ok(bytes)))
    }

    async fn read_to_grant(
        &self,
        message: &Message,
        backing: &Rc<Backing>,
        grant: GrantId,
        position: u64,
        bytes: u64,
    ) -> Result<u64, Errno> {
        let mut done = 0;
        while done < bytes.min(MAX_BYTES) {
            let data = self.read_loop(backing, position.saturating_add(done), (bytes - done).min(PIECE)).await?;
            copy::to_grant(message.source, grant, done, &data)?;
            done += data.len() as u64;
        }
        Ok(done)
    }

    async fn write_from_grant(
        &self,
        message: &Message,
        backing: &Rc<Backing>,
        grant: GrantId,
        position: u64,
        bytes: u64,
    ) -> Result<u64, Errno> {
        let mut done = 0;
        while done < bytes.min(MAX_BYTES) {
            let mut data = filled(0, (bytes - done).min(PIECE) as usize)?;
            copy::from_grant(message.source, grant, done, &mut data)?;
            let moved = data.len() as u64;
            self.write_loop(backing, position.saturating_add(done), data).await?;
            done += moved;
        }
        Ok(done)
    }
}
