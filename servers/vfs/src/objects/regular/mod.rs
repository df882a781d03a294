//! Regular files: data goes through the page cache, or straight between the file system and the program through a magic grant.
//!
//! Positions are moved before the file system has answered, so that programs which share an open file, or append, do not write
//! over each other; the answer corrects them.

mod write;

pub use write::written;

use super::{
    FIONREAD, Inheritance, Kind, O_ACCMODE, O_APPEND, O_DSYNC, O_WRONLY, Object, OpenFile, Operation, Seek, done,
};
use crate::{
    base::{Base, Flow},
    events::poll::ALWAYS_READY,
    files::{
        leases::Access,
        pages,
        vnode::{Crowd, NodeRef},
        watches::flag,
    },
    keep::records::ObjectRecord,
    memory as user,
    memory::buffer::{Piece, UserBuffer},
};
use abi::{Endpoint, Errno, fs, layout::PAGE_BYTES};
use alloc::rc::Rc;
use core::mem::take;
use sys::grant::{self, MagicGrant};
use write::Write;

/// At most so many bytes a request to a file system, so that other requests get in between.
const CHUNK: u64 = 1 << 20;

/// An open regular file.
#[derive(Debug)]
pub struct Regular {
    /// The file.
    pub node: NodeRef,
    access: Access,
    /// What its user is charged for it.
    pub crowd: Crowd,
}

impl Regular {
    /// A file that is opened with these flags, counted by its vnode until it is dropped.
    pub fn new(node: NodeRef, flags: u32) -> Regular {
        let access = if flags & O_ACCMODE == 0 { Access::Read } else { Access::Write };
        node.leases().opened(access);
        Regular { node, access, crowd: Crowd::default() }
    }

    /// [`Object::write`] with these status flags instead of the open file's.
    pub fn write_as(
        &self,
        on: &Operation,
        buffer: &mut UserBuffer,
        at: Option<u64>,
        flags: u32,
    ) -> Result<Flow, Errno> {
        if buffer.left() == 0 {
            return done(0);
        }
        if let Some(moved) = write_over(on, &self.node, buffer, at, flags) {
            return done(moved);
        }
        Write::new(on, &self.node, take(buffer), at, flags).begin()
    }

    /// What leases count it as.
    pub fn access(&self) -> Access {
        self.access
    }
}

impl Drop for Regular {
    fn drop(&mut self) {
        self.node.leases().closed(self.access);
    }
}

impl Object for Regular {
    fn record(&self) -> ObjectRecord {
        let seals = self.node.seals().map_or(0, |seals| seals.get() << 8);
        let minor = (self.access == Access::Write) as u32 | (self.node.is_linkable() as u32) << 1 | seals;
        ObjectRecord { minor, ..ObjectRecord::of(Self::NUMBER) }
    }

    fn hold(&self, user: u32) -> Result<(), Errno> {
        self.crowd.set(&self.node, user)
    }

    fn node(&self) -> Option<&NodeRef> {
        Some(&self.node)
    }

    fn has_positions(&self) -> bool {
        true
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        let node = &self.node;
        let ended = at.unwrap_or_else(|| on.file.position()) >= node.size() && !node.mount().is_volatile();
        if buffer.left() == 0 || ended {
            return done(0);
        }
        if let Some(moved) = read_known(on, node, buffer, at) {
            return done(moved);
        }
        Ok(Flow::task(read(on.base, on.file.clone(), node.clone(), take(buffer), at)))
    }

    fn write(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        self.write_as(on, buffer, at, on.file.flags())
    }

    fn seek(&self, seek: &Seek) -> Result<u64, Errno> {
        seek.within(|| self.node.size())
    }

    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY);
        }
        let left = self.node.size().saturating_sub(on.file.position());
        user::store(on.caller.endpoint, argument, &(left.min(i32::MAX as u64) as u32).to_le_bytes())?;
        done(0)
    }

    fn poll(&self) -> u32 {
        ALWAYS_READY
    }
}

impl Kind for Regular {
    const NUMBER: u8 = 0;

    fn restore(record: &ObjectRecord, node: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        let node = node?;
        node.set_linkable(record.minor & 2 != 0);
        if let Some(seals) = node.seals() {
            seals.set(record.minor >> 8);
        }
        Some(Regular::new(node, if record.minor & 1 == 0 { 0 } else { O_WRONLY }))
    }
}

/// Reads what the page cache knows, if that is all: then nobody is asked. What has been moved otherwise stays moved.
fn read_known(on: &Operation, node: &NodeRef, buffer: &mut UserBuffer, at: Option<u64>) -> Option<u64> {
    let piece = buffer.piece();
    if piece.bytes < buffer.left() {
        return None;
    }
    let start = at.unwrap_or_else(|| on.file.position());
    let moved = match node.is_ahead() {
        true => read_newer(on, node, start, buffer.owner, piece),
        false => on.base.cache().read(node, start, buffer.owner, piece),
    };
    let end = start + moved;
    if moved < piece.bytes && end < node.size() || moved == 0 {
        return None;
    }
    if at.is_none() {
        on.file.begin_transfer(end);
        on.file.end_transfer(end, end);
    }
    on.base.files().watches().happened(node, &on.file.path(), flag::ACCESS);
    Some(moved)
}

/// The same for a file of which there are newer bytes than its file system has.
#[inline(never)]
fn read_newer(on: &Operation, node: &NodeRef, start: u64, owner: Endpoint, piece: Piece) -> u64 {
    let dirty = on.base.files().read_dirty(node, start, owner, piece);
    dirty.unwrap_or_else(|| on.base.cache().read(node, start, owner, piece))
}

/// Writes over what a file has, or appends to its last pages, if the file system need not hear of it now. Returns how many bytes.
fn write_over(on: &Operation, node: &NodeRef, buffer: &UserBuffer, at: Option<u64>, flags: u32) -> Option<u64> {
    let piece = buffer.piece();
    let start = at.unwrap_or_else(|| on.file.position());
    let end = start.checked_add(piece.bytes)?;
    let is_plain = flags & (O_APPEND | O_DSYNC) == 0 && piece.bytes == buffer.left();
    let is_allowed =
        is_plain && end <= on.caller.file_limit() && node.writable_bytes(start, piece.bytes) == Ok(piece.bytes);
    let (files, owner, user) = (on.base.files(), buffer.owner, on.caller.user());
    let is_kept = is_allowed
        && (files.write_over(node, start, owner, piece, user) || files.append(node, start, owner, piece, user));
    if !is_kept {
        return None;
    }
    if piece.bytes < PAGE_BYTES && !files.make_room_behind_run(node) {
        write_back(on.base, node);
    }
    on.base.cache().changed(node, start, piece.bytes);
    pages::forget_image(node);
    if at.is_none() {
        on.file.begin_transfer(end);
        on.file.end_transfer(end, end);
    }
    on.base.files().watches().happened(node, &on.file.path(), flag::MODIFY);
    Some(piece.bytes)
}

/// Has pages written back that were filled bit by bit, while the program goes on with the next one.
fn write_back(base: &'static Base, node: &NodeRef) {
    let node = node.clone();
    base.peers().run(async move {
        // Who asks next about the file is told, or a sync.
        let _ = base.files().settle([Some(&node)]).await;
    });
}

async fn read(
    base: &Base,
    file: Rc<OpenFile>,
    node: NodeRef,
    mut buffer: UserBuffer,
    at: Option<u64>,
) -> Result<u64, Errno> {
    let start = at.unwrap_or_else(|| file.position());
    let expected = start + buffer.left().min(node.size().saturating_sub(start));
    if at.is_none() {
        file.begin_transfer(expected);
    }
    let (mut result, mut in_one_turn) = (Ok(()), 0);
    while buffer.left() > 0 && result.is_ok() {
        let position = start + buffer.moved();
        if node.dirty().is_any()
            && let Err(error) = base.files().settle([Some(&node)]).await
        {
            result = Err(error);
            break;
        }
        let is_long = in_one_turn >= CHUNK;
        let known = if is_long { 0 } else { read_by_cache(base, &node, position, &buffer).await };
        if known > 0 {
            buffer.advance(known);
            if position + known >= node.size() {
                break;
            }
            in_one_turn += known;
            continue;
        }
        // While the file system is asked, other requests get in.
        let wanted = buffer.piece().bytes.min(if is_long { PAGE_BYTES } else { CHUNK });
        in_one_turn = 0;
        match read_directly(base, &node, position, &buffer, wanted).await {
            Ok(moved) => {
                buffer.advance(moved);
                if moved < wanted {
                    break;
                }
            }
            Err(error) => result = Err(error),
        }
    }
    if at.is_none() {
        file.end_transfer(expected, start + buffer.moved());
    }
    if buffer.moved() > 0 {
        base.files().watches().happened(&node, &file.path(), flag::ACCESS);
    }
    result.map(|()| buffer.moved()).or_else(|error| buffer.moved_or(error))
}

/// Reads the first of what the page cache knows, or has the file system tell it. Returns how many bytes; none: it has to be read directly.
async fn read_by_cache(base: &Base, node: &NodeRef, position: u64, buffer: &UserBuffer) -> u64 {
    let piece = buffer.piece();
    let read = || base.cache().read(node, position, buffer.owner, piece);
    match read() {
        0 if base.cache().fill(node, position, piece.bytes).await => read(),
        moved => moved,
    }
}

/// Has the file system copy straight to the program, once it has what programs have stored by mappings. Returns how many bytes; fewer than `bytes` at the end of the file.
async fn read_directly(
    base: &Base,
    node: &NodeRef,
    position: u64,
    buffer: &UserBuffer,
    bytes: u64,
) -> Result<u64, Errno> {
    if node.shared_object().is_some() {
        base.mappings().write_back(node, position, bytes).await?;
    }
    let service = node.service();
    let address = buffer.piece().address;
    let grant = MagicGrant::new(buffer.owner, address, bytes, service.endpoint(), grant::Access::Write)?;
    let request = fs::Read { node: node.number(), grant: grant.id(), position, bytes, kept: false };
    let version = node.known_stat().unchanging();
    let reply = base.peers().ask(service, request.message()).await?;
    base.cache().was_read(node, version, reply.source, fs::Read::results(&reply)?);
    Ok(reply.words[0].min(bytes))
}
