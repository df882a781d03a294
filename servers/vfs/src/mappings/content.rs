//! Reads and writes of files that heed what programs have changed by shared mappings.

use super::{BUFFER_BYTES, Mappings};
use crate::{
    cache::Staged,
    callers::Caller,
    files::{known::Change, pages, vnode::NodeRef},
    memory as user,
    memory::buffer::{Piece, UserBuffer},
};
use abi::{Endpoint, Errno, Message, fs, vm};
use alloc::vec::Vec;
use sys::fallible::filled;
use sys::{
    grant::{Access, GrantedBuffer, MagicGrant},
    ipc,
};

/// Where a file system has the bytes of a write from.
enum Source {
    /// The program's memory.
    Program { _grant: MagicGrant, bytes: u64 },
    /// Pages of the cache.
    Cache(Staged),
}

/// A write of a program's bytes in progress.
pub struct Writing {
    source: Source,
    change: Change<1>,
}

impl Writing {
    /// How many bytes are asked for: fewer than wanted if only so many could be staged.
    fn bytes(&self) -> u64 {
        match &self.source {
            Source::Program { bytes, .. } => *bytes,
            Source::Cache(staged) => staged.bytes(),
        }
    }

    /// The file system has replied. `None`: nothing has come of it, and it is to be made again.
    pub fn end(self, reply: Result<Message, Errno>) -> Option<Result<Written, Errno>> {
        let bytes = self.bytes();
        let written = reply.map(|reply| (reply.words[0].min(bytes), reply.words[1]));
        let ends_short = match self.source {
            Source::Program { .. } => true,
            Source::Cache(staged) => {
                if staged.end(written.map(|(moved, _)| moved), &self.change) {
                    return None;
                }
                // vm may have taken the other pages back: who asks again is told if it is something else.
                false
            }
        };
        Some(written.map(|(moved, size)| Written {
            bytes: moved,
            size,
            is_end: moved == 0 || moved < bytes && ends_short,
        }))
    }
}

/// What has become of a write.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// So many bytes of it are written.
    pub bytes: u64,
    /// The size of the file.
    pub size: u64,
    /// No more can be written.
    pub is_end: bool,
}

impl Mappings {
    /// Reads from a file into memory of vfs; less than asked for at its end.
    pub async fn read_into(&self, node: &NodeRef, position: u64, bytes: usize) -> Result<Vec<u8>, Errno> {
        self.write_back(node, position, bytes as u64).await?;
        let service = node.service();
        let room = GrantedBuffer::new(filled(0, bytes)?, service.endpoint(), Access::Write)?;
        let request = fs::Read { node: node.number(), grant: room.id(), position, bytes: bytes as u64, kept: false };
        let version = node.known_stat().unchanging();
        let reply = self.peers.ask(service, request.message()).await?;
        self.cache.was_read(node, version, reply.source, fs::Read::results(&reply)?);
        let mut data = room.take();
        data.truncate(reply.words[0] as usize);
        Ok(data)
    }

    /// Writes to a file from memory of vfs.
    pub async fn write_from(&self, node: &NodeRef, position: u64, data: Vec<u8>, ids: u64) -> Result<u64, Errno> {
        let service = node.service();
        let bytes = data.len() as u64;
        let lent = GrantedBuffer::new(data, service.endpoint(), Access::Read)?;
        self.files.settle_for([Some(node)], bytes).await?;
        let _change = Change::writing(node, bytes);
        self.cache.changed(node, position, bytes);
        let request = fs::Write { node: node.number(), grant: lent.id(), position, bytes, ids, written_ns: 0 };
        let reply = self.peers.ask(service, request.message()).await?;
        node.lengthen(reply.words[1]);
        let mut data = lent.take();
        data.truncate(reply.words[0] as usize);
        pages::update(node, position, data, reply.words[1])?;
        Ok(reply.words[0])
    }

    /// A piece of a write, through the cache if it stays there, else straight from the program.
    pub async fn write_piece(
        &self,
        caller: &Caller,
        node: &NodeRef,
        buffer: &UserBuffer,
        position: u64,
        bytes: u64,
    ) -> Result<Written, Errno> {
        let mut may_stage = true;
        loop {
            self.files.settle_for([Some(node)], bytes).await?;
            if node.shared_object().is_some() {
                // It was mapped meanwhile.
                let bytes = bytes.min(BUFFER_BYTES);
                return self.write_through(node, buffer, position, bytes, caller.credentials().ids()).await;
            }
            let (request, writing) = self.ask_to_write(caller, node, buffer, (position, bytes), may_stage)?;
            let reply = self.peers.ask_to_write(caller, node.service(), request, buffer.moved()).await;
            if let Some(written) = writing.end(reply) {
                return written;
            }
            may_stage = false;
        }
    }

    /// The request of [`Mappings::write_piece`] for a file that is settled, and what is held until its reply.
    pub fn ask_to_write(
        &self,
        caller: &Caller,
        node: &NodeRef,
        buffer: &UserBuffer,
        (position, bytes): (u64, u64),
        may_stage: bool,
    ) -> Result<(Message, Writing), Errno> {
        let (service, owner) = (node.service(), buffer.owner);
        let piece = Piece { bytes, ..buffer.piece() };
        let change = Change::writing(node, bytes);
        self.cache.changed(node, position, bytes);
        let staged = if may_stage { self.cache.stage((node, position), (owner, piece), &change) } else { None };
        let (grant, source) = match staged {
            Some(staged) => (staged.grant(), Source::Cache(staged)),
            None => {
                let grant = MagicGrant::new(owner, piece.address, bytes, service.endpoint(), Access::Read)?;
                (grant.id(), Source::Program { _grant: grant, bytes })
            }
        };
        let writing = Writing { source, change };
        let (node, bytes, ids) = (node.number(), writing.bytes(), caller.credentials().ids());
        let request = fs::Write { node, grant, position, bytes, ids, written_ns: 0 };
        Ok((request.message(), writing))
    }

    /// A piece of a copy between two files that are settled, through the cache, if what is known of the source may stay there as the target's. `None`: nothing has come of it.
    pub async fn copy_by_cache(
        &self,
        (source, from): (&NodeRef, u64),
        (target, to): (&NodeRef, u64),
        bytes: u64,
        ids: u64,
    ) -> Option<Written> {
        let change = Change::writing(target, bytes);
        self.cache.changed(target, to, bytes);
        let staged = self.cache.stage_copy((target, to), (source, from), bytes, &change)?;
        let (node, grant, bytes) = (target.number(), staged.grant(), staged.bytes());
        let request = fs::Write { node, grant, position: to, bytes, ids, written_ns: 0 };
        let writing = Writing { source: Source::Cache(staged), change };
        writing.end(self.peers.ask(target.service(), request.message()).await)?.ok()
    }

    /// A piece of a write to a file that is mapped: to the file, and into vm's pages.
    pub async fn write_through(
        &self,
        node: &NodeRef,
        buffer: &UserBuffer,
        position: u64,
        bytes: u64,
        ids: u64,
    ) -> Result<Written, Errno> {
        let mut data = filled(0, bytes as usize)?;
        user::fetch(buffer.owner, buffer.piece().address, &mut data)?;
        let service = node.service();
        let lent = GrantedBuffer::new(data, service.endpoint(), Access::Read)?;
        self.files.settle_for([Some(node)], bytes).await?;
        let _change = Change::writing(node, bytes);
        self.cache.changed(node, position, bytes);
        let request = fs::Write { node: node.number(), grant: lent.id(), position, bytes, ids, written_ns: 0 };
        let reply = self.peers.ask(service, request.message()).await?;
        let (written, size) = (reply.words[0].min(bytes), reply.words[1]);
        let mut data = lent.take();
        data.truncate(written as usize);
        pages::update(node, position, data, size)?;
        Ok(Written { bytes: written, size, is_end: written < bytes })
    }

    /// Makes a part of a file read as zeros, in mappings too. Without `keeps_space` its blocks are freed, unless the file is mapped
    /// shared: a store to a mapping cannot fail, so that its space stays.
    pub async fn clear(&self, node: &NodeRef, offset: u64, bytes: u64, keeps_space: bool) -> Result<(), Errno> {
        let punches = !keeps_space && node.shared_object().is_none();
        let mode = if punches { fs::ALLOCATE_PUNCH } else { fs::ALLOCATE_ZERO };
        self.files.allocate(node, offset, bytes, mode).await?;
        pages::forget_image(node);
        self.clear_pages(node, offset, offset.saturating_add(bytes).min(node.size()))
    }

    /// Clears the pages that vm has of a part of a file, if it is mapped shared.
    fn clear_pages(&self, node: &NodeRef, mut at: u64, end: u64) -> Result<(), Errno> {
        let Some(image) = node.shared_object() else { return Ok(()) };
        while at < end {
            let missing = ipc::call(Endpoint::VM, &vm::ImageMissing { image, offset: at, bytes: end - at }.message())?;
            let (absent_bytes, absent) = match missing.words[0] {
                0 => (0, end),
                bytes => (bytes, vm::ImageMissing::results(&missing)?),
            };
            while at < absent {
                let bytes = (absent - at).min(BUFFER_BYTES);
                pages::update(node, at, filled(0, bytes as usize)?, node.size())?;
                at += bytes;
            }
            at = at.max(absent + absent_bytes);
        }
        Ok(())
    }

    /// Fills a stretch of an image, or of a file that is mapped shared, where pages are missing: with those of the cache, or by a copy if that cannot have them.
    pub async fn fill_image(&self, node: &NodeRef, image: u64, offset: u64, bytes: u64) -> Result<(), Errno> {
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let missing = ipc::call(Endpoint::VM, &vm::ImageMissing { image, offset: at, bytes: end - at }.message())?;
            if missing.words[0] == 0 {
                return Ok(());
            }
            let start = vm::ImageMissing::results(&missing)?;
            let length = missing.words[0].min(BUFFER_BYTES);
            self.files.settle([Some(node)]).await?;
            let shown = self.cache.show(node, image, start, length).await;
            if shown > 0 {
                at = start + shown;
                continue;
            }
            let data = self.read_into(node, start, length as usize).await?;
            if (data.len() as u64) < length {
                return Err(Errno::EIO);
            }
            let lent = GrantedBuffer::new(data, Endpoint::VM, Access::Read)?;
            let request = vm::ImageFill { image, offset: start, grant: lent.id(), bytes: length };
            ipc::call(Endpoint::VM, &request.message())?;
            if node.shared_object() == Some(image) {
                // What vm has of the file now is something else than what the cache may have got meanwhile.
                self.cache.changed(node, start, length);
            }
            at = start + length;
        }
        Ok(())
    }
}
