//! Moving bytes between descriptors without a program's memory: splice, tee, vmsplice, sendfile, copy_file_range.
//!
//! A splice moves one piece: what is there, what there is room for, at most [`PIECE_BYTES`]. Whatever a call changes of pipes and positions
//! changes in the turn that answers it, or with a note of how far it has come; so after a death of vfs no byte is lost or doubled. Bytes
//! from or to a file go through memory of vfs, unless both files are of one file system. Neighbours: `files` (files as source and
//! target), `pipes::splice`.

mod files;

use super::{Entry, allow, call, call::Call, done, task};
use crate::{
    base::{Base, Flow},
    callers::Caller,
    events::notices::SIGPIPE,
    memory as user,
    objects::{
        O_APPEND, OpenFile, Operation,
        character::Character,
        null::Null,
        pipe::{self, PipeEnd},
        regular::Regular,
        socket::SocketFile,
        zero::Zero,
    },
    pipes::{Outcome, Pipe},
    processes::Process,
    sockets::Kind,
};
use abi::{Errno, linux::nr};
use alloc::rc::Rc;
use files::Place;

/// Bytes that one call moves at a time: what a pipe holds.
const PIECE_BYTES: usize = 64 * 1024;

/// splice: do not wait for pipes.
const SPLICE_F_NONBLOCK: u32 = 2;
/// All flags of splice; the others are hints.
const SPLICE_F_ALL: u32 = 0xf;

pub(super) const CALLS: &[Entry] = &[
    call(nr::SPLICE, splice),
    call(nr::TEE, tee),
    call(nr::VMSPLICE, vmsplice),
    call(nr::SENDFILE, files::sendfile),
    call(nr::COPY_FILE_RANGE, files::copy_file_range),
];

/// What a call that moves bytes works with.
struct Mover {
    base: &'static Base,
    caller: Rc<Caller>,
    /// Open until the call ends.
    files: [Rc<OpenFile>; 2],
    /// The call does not wait for data, and for room.
    nonblocking: [bool; 2],
}

impl Mover {
    fn new(call: &Call, files: [&Rc<OpenFile>; 2], nonblocking: [bool; 2]) -> Mover {
        Mover { base: call.base(), caller: call.process.caller.clone(), files: files.map(Rc::clone), nonblocking }
    }

    /// Waits until a pipe has data or none will come. `EAGAIN`: the call does not wait.
    async fn wait_for_data(&self, pipe: &Pipe) -> Result<(), Errno> {
        let is_ready = || pipe.can_give() || pipe.is_at_end();
        if is_ready() {
            return Ok(());
        }
        if self.nonblocking[0] {
            return Err(Errno::EAGAIN);
        }
        self.caller.wait_until(&pipe.watchers, is_ready).await
    }

    /// Waits until a pipe has room. `EAGAIN`: the call does not wait; `EPIPE`: nobody reads, SIGPIPE has been sent.
    async fn wait_for_room(&self, pipe: &Pipe) -> Result<(), Errno> {
        loop {
            if pipe.readers() == 0 {
                return self.broken().await;
            }
            if !pipe.is_full() {
                return Ok(());
            }
            if self.nonblocking[1] {
                return Err(Errno::EAGAIN);
            }
            self.caller.wait_until(&pipe.watchers, || !pipe.is_full() || pipe.readers() == 0).await?;
        }
    }

    /// Has pm send SIGPIPE, and ends with the error that pm ends the call with.
    async fn broken<T>(&self) -> Result<T, Errno> {
        self.base.notices().signal(self.caller.endpoint, SIGPIPE);
        loop {
            self.caller.wait().await?;
        }
    }

    /// Whether a long call is to end early, because its thread was signalled or has ended.
    fn is_ended(&self) -> bool {
        self.caller.is_gone() || self.caller.take_cancelled().is_some()
    }

    /// Moves a piece from one pipe to another, in one turn; without `takes` it stays in the first one too.
    async fn between_pipes(self, from: Rc<Pipe>, to: Rc<Pipe>, bytes: usize, takes: bool) -> Result<u64, Errno> {
        loop {
            self.wait_for_data(&from).await?;
            self.wait_for_room(&to).await?;
            if from.is_at_end() {
                return from.take_end(self.base);
            }
            // Either may have changed while the call waited for the other.
            if !from.can_give() || to.is_full() {
                continue;
            }
            let data = from.look(self.base, bytes.min(to.room()).min(PIECE_BYTES))?;
            let moved = to.put(self.base, &data)?;
            if takes {
                from.skip(self.base, moved);
            }
            self.base.store().has_moved();
            return Ok(moved as u64);
        }
    }
}

/// The pipe of an open end.
fn pipe_of(file: &OpenFile) -> Option<Rc<Pipe>> {
    file.object::<PipeEnd>().map(|end| end.pipe.clone())
}

/// A pipe end is open without waiting.
fn is_nonblocking(file: &OpenFile, flags: u32) -> bool {
    flags & SPLICE_F_NONBLOCK != 0 || file.nonblocking()
}

fn splice(call: &Call) -> Result<Flow, Errno> {
    let [_, from_at, _, to_at, bytes, _] = call.first();
    let flags = call.flags(5);
    if bytes == 0 {
        return done(Ok(0));
    }
    allow(flags, SPLICE_F_ALL)?;
    let (from, to) = (open_file(call.process, call.int(0))?, open_file(call.process, call.int(2))?);
    let (source, target) = (pipe_of(&from), pipe_of(&to));
    if source.is_some() && from_at != 0 || target.is_some() && to_at != 0 {
        return Err(Errno::ESPIPE);
    }
    let places = (Place::fetch(call, &from, from_at)?, Place::fetch(call, &to, to_at)?);
    from.readable()?;
    to.writable()?;
    let bytes = bytes.min(user::MAX_TRANSFER) as usize;
    match (source, target) {
        (Some(source), Some(target)) => between(call, [&from, &to], [source, target], bytes, flags, true),
        (Some(source), None) => out_of_pipe(call, (from, source), places.1, bytes, flags),
        (None, Some(target)) => into_pipe(call, places.0, (to, target), bytes, flags),
        (None, None) => Err(Errno::EINVAL),
    }
}

fn tee(call: &Call) -> Result<Flow, Errno> {
    let (bytes, flags) = (call.words[2], call.flags(3));
    allow(flags, SPLICE_F_ALL)?;
    if bytes == 0 {
        return done(Ok(0));
    }
    let (from, to) = (open_file(call.process, call.int(0))?, open_file(call.process, call.int(1))?);
    from.readable()?;
    to.writable()?;
    let (Some(source), Some(target)) = (pipe_of(&from), pipe_of(&to)) else { return Err(Errno::EINVAL) };
    let bytes = bytes.min(user::MAX_TRANSFER) as usize;
    between(call, [&from, &to], [source, target], bytes, flags, false)
}

/// The open file behind a descriptor, unless it is a path only. `EBADF`.
fn open_file(process: &Process, descriptor: i32) -> Result<Rc<OpenFile>, Errno> {
    let file = process.file(descriptor)?;
    file.usable()?;
    Ok(file)
}

fn between(
    call: &Call,
    files: [&Rc<OpenFile>; 2],
    [from, to]: [Rc<Pipe>; 2],
    bytes: usize,
    flags: u32,
    takes: bool,
) -> Result<Flow, Errno> {
    if Rc::ptr_eq(&from, &to) {
        return Err(Errno::EINVAL);
    }
    let nonblocking = files.iter().any(|file| is_nonblocking(file, flags));
    let mover = Mover::new(call, files, [nonblocking; 2]);
    task(mover.between_pipes(from, to, bytes, takes))
}

/// The socket of a stream, if it is one.
fn stream(file: &OpenFile) -> Option<&SocketFile> {
    file.object::<SocketFile>().filter(|socket| socket.0.kind() == Kind::Stream)
}

/// splice from a pipe. `EINVAL`: the target takes no bytes from pipes, or appends.
fn out_of_pipe(
    call: &Call,
    (from, source): (Rc<OpenFile>, Rc<Pipe>),
    to: Place,
    bytes: usize,
    flags: u32,
) -> Result<Flow, Errno> {
    let file = to.file().clone();
    if file.flags() & O_APPEND != 0 || !to.is_valid() {
        return Err(Errno::EINVAL);
    }
    let mover = Mover::new(call, [&from, &file], [is_nonblocking(&from, flags), file.nonblocking()]);
    if let Some(regular) = file.object::<Regular>() {
        let node = regular.node.clone();
        return task(mover.pipe_to_file(source, to, node, bytes));
    }
    if swallows(&file) {
        return task(mover.discard(source, bytes));
    }
    if to.is_explicit() {
        return Err(Errno::EINVAL);
    }
    if file.object::<Character>().is_some() {
        return task(mover.pipe_to_device(source, bytes));
    }
    let socket = stream(&file).ok_or(Errno::EINVAL)?;
    let connection = socket.0.connection().ok_or(Errno::ENOTCONN)?;
    if !connection.writes() {
        return task(async move { mover.broken().await });
    }
    let target = connection.outgoing().clone();
    task(mover.between_pipes(source, target, bytes, true))
}

/// Whether it is a device that takes everything.
fn swallows(file: &OpenFile) -> bool {
    file.object::<Null>().is_some() || file.object().is_some_and(Zero::swallows)
}

/// splice into a pipe. `EINVAL`: the source gives no bytes to pipes.
fn into_pipe(
    call: &Call,
    from: Place,
    (to, target): (Rc<OpenFile>, Rc<Pipe>),
    bytes: usize,
    flags: u32,
) -> Result<Flow, Errno> {
    let file = from.file().clone();
    if !from.is_valid() {
        return Err(Errno::EINVAL);
    }
    let mover = Mover::new(call, [&file, &to], [is_nonblocking(&file, flags), is_nonblocking(&to, flags)]);
    if let Some(regular) = file.object::<Regular>() {
        let node = regular.node.clone();
        return task(mover.file_to_pipe(from, node, target, bytes));
    }
    let socket = stream(&file).filter(|_| !from.is_explicit()).ok_or(Errno::EINVAL)?;
    let connection = socket.0.connection().ok_or(Errno::EINVAL)?;
    if connection.is_deaf() {
        return done(Ok(0));
    }
    let source = connection.incoming().clone();
    task(mover.between_pipes(source, target, bytes, true))
}

/// vmsplice: a program's memory is copied, whether it is given as a gift or not.
fn vmsplice(call: &Call) -> Result<Flow, Errno> {
    let flags = call.flags(3);
    allow(flags, SPLICE_F_ALL)?;
    let file = open_file(call.process, call.int(0))?;
    if !file.reads() && !file.writes() {
        return Err(Errno::EBADF);
    }
    let mut buffer = call.vector(1)?;
    if buffer.left() == 0 {
        return done(Ok(0));
    }
    let pipe = pipe_of(&file).ok_or(Errno::EBADF)?;
    let nonblocking = flags & SPLICE_F_NONBLOCK != 0;
    if !file.writes() {
        let on = Operation { base: call.base(), caller: &call.process.caller, file: &file };
        return pipe::read(on.base, on.caller, &pipe, &mut buffer, nonblocking);
    }
    let mover = Mover::new(call, [&file, &file], [nonblocking; 2]);
    task(async move {
        mover.wait_for_room(&pipe).await?;
        match pipe.write(mover.base, &mut buffer, true) {
            Outcome::Done(result) => result,
            Outcome::Waiting => Err(Errno::EAGAIN),
        }
    })
}
