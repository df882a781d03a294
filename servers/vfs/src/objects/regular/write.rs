//! A write to a regular file that its file system has to be asked for, piece by piece.
//!
//! Whole pages go through the page cache to the file system, where they stay known (`cache::staged`); all else straight from the program's memory.

use super::super::{O_APPEND, O_DSYNC, OpenFile, Operation, done};
use super::CHUNK;
use crate::{
    base::{Base, Flow},
    cache::STAGED_BYTES,
    callers::{Caller, permission::after_write},
    files::{attributes::NewAttributes, pages, vnode::NodeRef, watches::flag},
    keep::records::Note,
    mappings::{BUFFER_BYTES, Written},
    memory::buffer::UserBuffer,
};
use abi::Errno;
use alloc::rc::Rc;
/// See the head of the file.
pub(super) struct Write {
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
    pub(super) fn new(on: &Operation, node: &NodeRef, buffer: UserBuffer, at: Option<u64>, flags: u32) -> Write {
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
    pub(super) fn begin(mut self) -> Result<Flow, Errno> {
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
            let is_over = writing.end(reply).is_some_and(|written| !self.take(written));
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
                mappings.write_through(&self.node, &self.buffer, position, bytes, ids).await
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

    /// Takes note of what has become of a piece. Returns whether to go on.
    fn take(&mut self, written: Result<Written, Errno>) -> bool {
        match written {
            Ok(Written { bytes, size, is_end }) => {
                self.buffer.advance(bytes);
                self.real_size = size;
                !is_end
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
