//! Ends of pipes and FIFOs, and what reading and writing them means for a call: what waits, what a signal ends, and SIGPIPE.

use super::{FIONREAD, Inheritance, Kind, O_DIRECT, Object, Operation, done, no_position, socket::pause};
use crate::{
    base::{
        Base, Flow,
        closing::{Closed, Closing},
    },
    callers::{Call, Caller, permission::S_IFIFO},
    events::{
        Watchers,
        notices::SIGPIPE,
        poll::{ALWAYS_READY, ANY, OF_READERS, OF_WRITERS, POLLHUP},
    },
    files::{stat::Summary, vnode::NodeRef},
    keep::records::{Note, ObjectRecord},
    memory as user,
    memory::buffer::UserBuffer,
    pipes::{Outcome, Pipe},
};
use abi::{
    Errno,
    vfs::{OWNER_INPUT, OWNER_OUTPUT},
};
use alloc::rc::Rc;
use core::cell::Cell;

/// An open end of a pipe or FIFO, or both ends of a FIFO.
#[derive(Debug)]
pub struct PipeEnd {
    /// The pipe.
    pub pipe: Rc<Pipe>,
    /// The special file of a FIFO.
    pub node: Option<NodeRef>,
    /// What fstat tells of a pipe.
    pub inode: u64,
    /// It is the end that is read from.
    pub reads: bool,
    /// It is the end that is written to.
    pub writes: bool,
    /// Of a FIFO that was opened for reading without a writer: how often it had been opened for writing.
    pub lonely: Cell<Option<u32>>,
}

impl PipeEnd {
    #[inline(always)]
    fn write_with(
        &self,
        on: &Operation,
        buffer: &mut UserBuffer,
        at: Option<u64>,
        nonblocking: bool,
    ) -> Result<Flow, Errno> {
        no_position(at)?;
        // Nothing needs no reader.
        if self.pipe.readers() == 0 && buffer.left() == 0 {
            return done(0);
        }
        if on.file.flags() & O_DIRECT != 0 {
            return write_packets(on, &self.pipe, buffer, nonblocking);
        }
        write(on.base, on.caller, &self.pipe, buffer, nonblocking, false)
    }
}

impl Object for PipeEnd {
    fn record(&self) -> ObjectRecord {
        let minor = self.reads as u32 | (self.writes as u32) << 1;
        ObjectRecord { kind: Self::NUMBER, place: self.pipe.record(), minor, more: self.inode }
    }

    fn value(&self) -> u64 {
        self.lonely.get().map_or(0, |opens| 1 + u64::from(opens))
    }

    fn node(&self) -> Option<&NodeRef> {
        self.node.as_ref()
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: self.inode, mode: S_IFIFO | 0o600, ..Summary::default() })
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        read(on.base, on.caller, &self.pipe, buffer, on.file.nonblocking())
    }

    fn read_now(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        read(on.base, on.caller, &self.pipe, buffer, true)
    }

    fn write(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        self.write_with(on, buffer, at, on.file.nonblocking())
    }

    fn write_now(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        self.write_with(on, buffer, at, true)
    }

    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY);
        }
        user::store(on.caller.endpoint, argument, &(self.pipe.bytes() as u32).to_le_bytes())?;
        done(0)
    }

    fn poll(&self) -> u32 {
        let ready = self.pipe.poll(self.reads, self.writes);
        // Who waits for the first writer has lost none.
        if self.lonely.get() == Some(self.pipe.write_opens()) { ready & !POLLHUP } else { ready }
    }

    fn is_asynchronous(&self) -> bool {
        true
    }

    /// As on Linux each write is told, though there was data; but a read only when there was no room. Of other changes, the end of the
    /// other side.
    fn happened(&self, events: u32) -> Option<u64> {
        let only_room = events & OF_WRITERS == events;
        match (self.reads, self.writes) {
            _ if events & !ALWAYS_READY == 0 => Some(if only_room { OWNER_OUTPUT } else { OWNER_INPUT }),
            (true, _) if self.pipe.writers() == 0 => Some(OWNER_INPUT),
            (_, true) if self.pipe.readers() == 0 => Some(OWNER_OUTPUT),
            _ => None,
        }
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        let events = match (self.reads, self.writes) {
            (true, false) => OF_READERS,
            (false, true) => OF_WRITERS,
            _ => ANY,
        };
        [Some((&self.pipe.watchers, events)), None]
    }

    fn close(&self, closing: &Closing) {
        closing.add(Closed::Pipe { pipe: self.pipe.clone(), reads: self.reads, writes: self.writes });
    }
}

impl Kind for PipeEnd {
    const NUMBER: u8 = 5;

    fn restore(record: &ObjectRecord, node: Option<NodeRef>, from: &mut dyn Inheritance) -> Option<Self> {
        let (reads, writes) = (record.minor & 1 != 0, record.minor & 2 != 0);
        let pipe = from.pipe(record.place)?;
        from.has_packets(&pipe);
        pipe.open(reads, writes);
        if let Some(node) = &node {
            node.set_fifo(&pipe);
        }
        from.has_inode(record.more);
        Some(PipeEnd { pipe, node, inode: record.more, reads, writes, lonely: Cell::new(None) })
    }

    fn position_in(&self, value: u64) -> u64 {
        self.lonely.set(value.checked_sub(1).map(|opens| opens as u32));
        0
    }
}

/// Reads from a pipe.
#[inline]
pub fn read(
    base: &Base,
    caller: &Caller,
    pipe: &Rc<Pipe>,
    buffer: &mut UserBuffer,
    nonblocking: bool,
) -> Result<Flow, Errno> {
    let outcome = pipe.read(base, buffer, nonblocking);
    flow(base, caller, pipe, outcome)
}

/// Writes to a pipe; `quiet`: without a signal when nobody reads.
#[inline]
pub fn write(
    base: &Base,
    caller: &Caller,
    pipe: &Rc<Pipe>,
    buffer: &mut UserBuffer,
    nonblocking: bool,
    quiet: bool,
) -> Result<Flow, Errno> {
    if let Some(Note::Moved(moved)) = caller.noted() {
        buffer.advance_all(moved);
    }
    let outcome = pipe.write(base, buffer, nonblocking);
    if outcome == Outcome::Done(Err(Errno::EPIPE)) {
        return broken(base, caller, quiet);
    }
    flow(base, caller, pipe, outcome)
}

/// Writes packets to a pipe.
fn write_packets(on: &Operation, pipe: &Rc<Pipe>, buffer: &mut UserBuffer, nonblocking: bool) -> Result<Flow, Errno> {
    if let Some(Note::Moved(moved)) = on.caller.noted() {
        buffer.advance_all(moved);
    }
    on.base.store().has_moved();
    match pipe.write_packets(on.base, buffer, on.caller.user()) {
        Err(Errno::EAGAIN) if !nonblocking => {}
        Err(Errno::EPIPE) => return broken(on.base, on.caller, false),
        Ok(moved) if buffer.left() > 0 && !nonblocking => on.caller.note(Note::Moved(moved)),
        result => return Ok(Flow::Done(result)),
    }
    let (base, caller, file, pipe, buffer) =
        (on.base, on.caller.clone(), on.file.clone(), pipe.clone(), core::mem::take(buffer));
    Ok(Flow::task(async move {
        let result = write_further_packets(base, &caller, &pipe, buffer).await;
        drop(file);
        result
    }))
}

/// Writes packets as room comes.
async fn write_further_packets(
    base: &Base,
    caller: &Caller,
    pipe: &Pipe,
    mut buffer: UserBuffer,
) -> Result<u64, Errno> {
    loop {
        if let Err(error) = pause(base, caller, pipe, None).await {
            return buffer.moved_or(error);
        }
        match pipe.write_packets(base, &mut buffer, caller.user()) {
            Err(Errno::EAGAIN) => {}
            Err(Errno::EPIPE) => {
                base.notices().signal(caller.endpoint, SIGPIPE);
                return caller.wait_for_signal().await;
            }
            Ok(moved) if buffer.left() > 0 => caller.note(Note::Moved(moved)),
            result => return result,
        }
        base.store().has_moved();
    }
}

/// Ends a write to a pipe without readers: SIGPIPE, unless `quiet`.
pub fn broken(base: &Base, caller: &Caller, quiet: bool) -> Result<Flow, Errno> {
    if quiet {
        return Err(Errno::EPIPE);
    }
    caller.set_call(Call::Signalled(0));
    base.notices().signal(caller.endpoint, SIGPIPE);
    Ok(Flow::Later)
}

/// The flow of a call that has read from or written to a pipe.
#[inline(always)]
pub(super) fn flow(base: &Base, caller: &Caller, pipe: &Rc<Pipe>, outcome: Outcome) -> Result<Flow, Errno> {
    match outcome {
        Outcome::Done(result) => {
            base.store().has_moved();
            Ok(Flow::Done(result))
        }
        Outcome::Waiting => Ok(wait(caller, pipe)),
    }
}

/// The flow of a call that waits in a pipe.
#[inline(never)]
fn wait(caller: &Caller, pipe: &Rc<Pipe>) -> Flow {
    match caller.take_cancelled() {
        // A signal came while the call was on its way from a predecessor.
        Some(error) => Flow::Done(match pipe.cancel(caller.endpoint) {
            Some(moved @ 1..) => Ok(moved),
            _ => Err(error),
        }),
        None => {
            caller.set_call(Call::Pipe(pipe.clone()));
            Flow::Later
        }
    }
}
