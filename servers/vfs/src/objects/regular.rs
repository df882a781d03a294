//! Regular files: data goes straight between the file system and the program through a magic grant.
//!
//! Positions are moved before the file system has answered, so that programs which share an open file, or append, do not write
//! over each other; the answer corrects them.

use super::{
    FIONREAD, Inheritance, Kind, O_ACCMODE, O_APPEND, O_DSYNC, O_WRONLY, Object, OpenFile, Operation, Seek, done,
};
use crate::{
    base::{Base, Flow},
    cache::STAGED_BYTES,
    callers::{Caller, permission::after_write},
    events::poll::ALWAYS_READY,
    files::{
        attributes::NewAttributes,
        leases::Access,
        pages,
        vnode::{Crowd, NodeRef},
        watches::flag,
    },
    keep::records::{Note, ObjectRecord},
    mappings::BUFFER_BYTES,
    memory as user,
    memory::buffer::{Piece, UserBuffer},
};
use abi::{Endpoint, Errno, fs, layout::PAGE_BYTES};
use alloc::rc::Rc;
use core::mem::take;
use sys::grant::{self, MagicGrant};

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
        seek.within(self.node.size())
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
    if node.shared_object().is_some() {
        return 0;
    }
    let dirty = on.base.files().read_dirty(node, start, owner, piece);
    dirty.unwrap_or_else(|| on.base.cache().read(node, start, owner, piece))
}

/// Writes over what a file has, or appends to its last page, if the file system need not hear of it now. Returns how many bytes.
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
    if piece.bytes < PAGE_BYTES && files.is_last_page_full(node) {
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

/// Has a page written back that was filled bit by bit, while the program goes on with the next one.
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
    let is_mapped = node.shared_object().is_some();
    let mut result = if is_mapped { base.mappings().write_back(&node, start, buffer.left()).await } else { Ok(()) };
    let mut in_one_turn = 0;
    while buffer.left() > 0 && result.is_ok() {
        let position = start + buffer.moved();
        if node.dirty().is_any()
            && let Err(error) = base.files().settle([Some(&node)]).await
        {
            result = Err(error);
            break;
        }
        let is_long = in_one_turn >= CHUNK;
        let known = if is_mapped || is_long { 0 } else { read_by_cache(base, &node, position, &buffer).await };
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

/// Has the file system copy straight to the program. Returns how many bytes; fewer than `bytes` at the end of the file.
async fn read_directly(
    base: &Base,
    node: &NodeRef,
    position: u64,
    buffer: &UserBuffer,
    bytes: u64,
) -> Result<u64, Errno> {
    let service = node.service();
    let address = buffer.piece().address;
    let grant = MagicGrant::new(buffer.owner, address, bytes, service.endpoint(), grant::Access::Write)?;
    let request = fs::Read { node: node.number(), grant: grant.id(), position, bytes };
    let version = node.known_stat().unchanging();
    let reply = base.peers().ask(service, request.message()).await?;
    base.cache().was_read(node, version, reply.source, fs::Read::results(&reply)?);
    Ok(reply.words[0].min(bytes))
}

/// A write that its file system has to be asked for, piece by piece.
struct Write {
    base: &'static Base,
    caller: Rc<Caller>,
    file: Rc<OpenFile>,
    /// Status flags.
    flags: u32,
    node: NodeRef,
    buffer: UserBuffer,
    /// It goes on from the open file's position, and moves it.
    moves_position: bool,
    start: u64,
    /// Where it ends if all goes well.
    expected: u64,
    old_size: u64,
    real_size: u64,
    result: Result<(), Errno>,
}

impl Write {
    fn new(on: &Operation, node: &NodeRef, buffer: UserBuffer, at: Option<u64>, flags: u32) -> Write {
        let (file, old_size) = (on.file, node.size());
        let appends = flags & O_APPEND != 0;
        let start = if appends { append_at(on.caller, old_size) } else { at.unwrap_or_else(|| file.position()) };
        Write {
            base: on.base,
            caller: on.caller.clone(),
            file: file.clone(),
            flags,
            node: node.clone(),
            buffer,
            moves_position: at.is_none(),
            start,
            expected: start,
            old_size,
            real_size: old_size,
            result: Ok(()),
        }
    }

    /// Begins it: without a task, if it is one request to the file system.
    fn begin(mut self) -> Result<Flow, Errno> {
        let is_one = self.buffer.piece().bytes == self.buffer.left() && self.buffer.left() <= self.most();
        let waits = !is_one || self.start >= self.caller.file_limit() || self.node.shared_object().is_some();
        if waits || !self.base.files().is_settled_for([Some(&self.node)], self.buffer.left()) {
            return Ok(Flow::task(self.run()));
        }
        self.prepare()?;
        let (base, service, part) = (self.base, self.node.service(), (self.start, self.buffer.piece().bytes));
        let asked = base.mappings().ask_to_write(&self.caller, &self.node, &self.buffer, part, true);
        let asked = asked.and_then(|asked| Ok((asked, base.peers().write_tag(&self.caller, service, 0)?)));
        let ((request, writing), tag) = match asked {
            Ok(asked) => asked,
            Err(error) => {
                self.result = Err(error);
                return self.end();
            }
        };
        let caller = self.caller.clone();
        base.ask_then(&caller, (service, request, tag), move |reply| {
            let asked = writing.bytes();
            let is_over =
                writing.end(reply).is_some_and(|written| !self.take(written.map(|(moved, size)| (moved, asked, size))));
            if is_over || self.buffer.left() == 0 { self.end() } else { Ok(Flow::task(self.go_on())) }
        })
    }

    /// Carries it out as a task.
    async fn run(mut self) -> Result<u64, Errno> {
        // At the limit nothing is written; before it, what is below.
        self.base.check_file_limit(&self.caller, self.start.saturating_add(1)).await?;
        self.prepare()?;
        self.go_on().await
    }

    /// Writes what is left of it, as a task.
    async fn go_on(mut self) -> Result<u64, Errno> {
        while self.buffer.left() > 0 {
            let is_mapped = self.node.shared_object().is_some();
            let bytes = self.buffer.piece().bytes.min(if is_mapped { BUFFER_BYTES } else { self.most() });
            let (mappings, position) = (self.base.mappings(), self.start + self.buffer.moved());
            let written = if is_mapped {
                let ids = self.caller.credentials().ids();
                let written = mappings.write_through(&self.node, &self.buffer, position, bytes, ids).await;
                written.map(|(moved, size)| (moved, bytes, size))
            } else {
                mappings.write_piece(&self.caller, &self.node, &self.buffer, position, bytes).await
            };
            if !self.take(written) {
                break;
            }
        }
        self.settle_size();
        self.finish().await
    }

    /// How much the file system is asked for at a time.
    fn most(&self) -> u64 {
        if self.base.cache().keeps_written(&self.node) { STAGED_BYTES } else { CHUNK }
    }

    /// Finds out how much is written, and reserves that part of the file for it. Errors: nothing.
    fn prepare(&mut self) -> Result<(), Errno> {
        self.buffer.truncate(self.caller.file_limit() - self.start);
        self.buffer.truncate(self.node.writable_bytes(self.start, self.buffer.left())?);
        let end = self.start.checked_add(self.buffer.left());
        self.expected = end.filter(|end| *end <= i64::MAX as u64).ok_or(Errno::EINVAL)?;
        if self.moves_position {
            self.file.begin_transfer(self.expected);
        }
        self.node.set_size(self.old_size.max(self.expected));
        Ok(())
    }

    /// Takes note of what has become of a piece: so many bytes of it are written, so many were asked for, and the file has this size. Returns whether to go on.
    fn take(&mut self, written: Result<(u64, u64, u64), Errno>) -> bool {
        match written {
            Ok((moved, asked, size)) => {
                self.buffer.advance(moved);
                self.real_size = size;
                moved == asked
            }
            Err(error) => {
                self.result = Err(error);
                false
            }
        }
    }

    /// Ends it after its only piece, as a task only if more has to be asked.
    fn end(self) -> Result<Flow, Errno> {
        self.settle_size();
        if self.is_within() || !is_written(&self.caller, self.flags, &self.node) {
            return Ok(Flow::task(self.finish()));
        }
        done(self.conclude(Ok(()))?)
    }

    fn end_of_moved(&self) -> u64 {
        self.start + self.buffer.moved()
    }

    /// Sets the size that the file has got, unless it has changed otherwise meanwhile.
    fn settle_size(&self) {
        if self.node.size() == self.old_size.max(self.expected) {
            let end = if self.result.is_ok() { self.end_of_moved() } else { 0 };
            self.node.set_size(self.real_size.max(end));
        }
    }

    /// Whether it has written over what the file had.
    fn is_within(&self) -> bool {
        self.buffer.moved() > 0 && self.end_of_moved() <= self.old_size
    }

    async fn finish(self) -> Result<u64, Errno> {
        let written = written(self.base, &self.caller, self.flags, &self.node).await;
        if self.is_within() && self.flags & (O_APPEND | O_DSYNC) == 0 {
            self.base.files().admit(&self.node, self.end_of_moved()).await;
        }
        self.conclude(written)
    }

    /// Last, in the turn that answers the call: until then it is done again from its start.
    fn conclude(self, written: Result<(), Errno>) -> Result<u64, Errno> {
        if self.moves_position {
            self.file.end_transfer(self.expected, self.end_of_moved());
        }
        if self.buffer.moved() > 0 {
            self.base.files().watches().happened(&self.node, &self.file.path(), flag::MODIFY);
        }
        written?;
        self.result.map(|()| self.buffer.moved()).or_else(|error| self.buffer.moved_or(error))
    }
}

/// Does what follows a write through an open file with these status flags: drops vm's image, clears set-id bits, syncs for O_DSYNC.
pub async fn written(base: &Base, caller: &Caller, flags: u32, node: &NodeRef) -> Result<(), Errno> {
    if is_written(caller, flags, node) {
        return Ok(());
    }
    let mode = after_write(&caller.credentials(), node.mode());
    if mode != node.mode() {
        base.files().set(node, NewAttributes::Mode(mode)).await?;
    }
    if flags & O_DSYNC != 0 {
        base.mappings().sync_node(node).await?;
    }
    Ok(())
}

/// Does the first part of [`written`]. Returns whether that is all: nobody has to be asked.
fn is_written(caller: &Caller, flags: u32, node: &NodeRef) -> bool {
    node.mount().mark_dirty();
    pages::forget_image(node);
    flags & O_DSYNC == 0 && after_write(&caller.credentials(), node.mode()) == node.mode()
}

/// Where an appending write begins: at the end, or where it began when a predecessor did it.
fn append_at(caller: &Caller, size: u64) -> u64 {
    match caller.noted() {
        Some(Note::Start(start)) => start,
        _ => {
            caller.note(Note::Start(size));
            size
        }
    }
}
