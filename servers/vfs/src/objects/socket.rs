//! Sockets as open files, and what sending and receiving means for a call: what waits, and until when.

use super::{FIONREAD, Inheritance, Kind, Object, OpenFile, Operation, done, messages, no_position, pipe};
use crate::{
    base::{Base, Flow, closing::Closing},
    callers::{Caller, permission::S_IFSOCK},
    events::{Watchers, notices::SIGPIPE},
    files::{stat::Summary, vnode::NodeRef},
    keep::records::{Note, ObjectRecord},
    memory as user,
    memory::buffer::UserBuffer,
    pipes::{Outcome, Pipe, packets::Receiver},
    sockets::{self, Socket},
};
use abi::Errno;
use alloc::rc::Rc;
use sys::time;

/// Flags of send and recv.
pub mod flag {
    /// Urgent data: local sockets have none.
    pub const OOB: u32 = 0x1;
    /// What is received stays.
    pub const PEEK: u32 = 0x2;
    /// The call does not wait.
    pub const DONTWAIT: u32 = 0x40;
    /// The call waits until the buffer is full.
    pub const WAITALL: u32 = 0x100;
    /// The result is the length of the message, though it is truncated.
    pub const TRUNC: u32 = 0x20;
    /// No SIGPIPE.
    pub const NOSIGNAL: u32 = 0x4000;
}

/// A socket as an open file.
#[derive(Debug)]
pub struct SocketFile(pub Rc<Socket>);

impl Object for SocketFile {
    fn record(&self) -> ObjectRecord {
        ObjectRecord { place: self.0.place(), ..ObjectRecord::of(Self::NUMBER) }
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: self.0.record().inode, mode: S_IFSOCK | 0o777, ..Summary::default() })
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        match self.0.kind() {
            sockets::Kind::Stream => receive(on, &self.0, buffer, 0),
            _ => {
                let buffer = core::mem::take(buffer);
                messages::receive(on, &self.0, Receiver { buffer, ..Receiver::default() }, 0)
            }
        }
    }

    fn write(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        match self.0.kind() {
            sockets::Kind::Stream => send(on, &self.0, buffer, 0),
            _ => messages::send(on, &self.0, buffer, 0),
        }
    }

    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY);
        }
        if self.0.record().listening {
            return Err(Errno::EINVAL);
        }
        let kind = self.0.kind();
        let bytes = self.0.incoming().map_or(0, |incoming| match kind {
            sockets::Kind::Stream => incoming.bytes(),
            _ => incoming.message_bytes(on.base, kind == sockets::Kind::Datagrams),
        });
        user::store(on.caller.endpoint, argument, &(bytes as u32).to_le_bytes())?;
        done(0)
    }

    fn poll(&self) -> u32 {
        self.0.ready()
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        self.0.watchers()
    }

    fn close(&self, _: &Closing) {
        self.0.close();
    }
}

impl Kind for SocketFile {
    const NUMBER: u8 = 8;

    fn restore(record: &ObjectRecord, _: Option<NodeRef>, from: &mut dyn Inheritance) -> Option<Self> {
        from.socket(record.place).map(SocketFile)
    }
}

/// Sends what is in the buffer. `EOPNOTSUPP`: urgent data; `ENOTCONN`.
pub fn send(on: &Operation, socket: &Socket, buffer: &mut UserBuffer, flags: u32) -> Result<Flow, Errno> {
    if flags & flag::OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let connection = socket.connection().ok_or(Errno::ENOTCONN)?;
    let quiet = flags & flag::NOSIGNAL != 0;
    if !connection.writes() {
        return pipe::broken(on.base, on.caller, quiet);
    }
    let nonblocking = on.file.nonblocking() || flags & flag::DONTWAIT != 0;
    match socket.record().send_ns {
        limit_ns @ 1.. if !nonblocking => {
            let transfer = Transfer::new(on, connection.outgoing(), buffer, limit_ns);
            Ok(Flow::task(async move { transfer.send(quiet).await }))
        }
        _ => pipe::write(on.base, on.caller, connection.outgoing(), buffer, nonblocking, quiet),
    }
}

/// Receives what has come. `EINVAL`: urgent data, or it is not connected.
pub fn receive(on: &Operation, socket: &Socket, buffer: &mut UserBuffer, flags: u32) -> Result<Flow, Errno> {
    let connection = socket.connection().filter(|_| flags & flag::OOB == 0).ok_or(Errno::EINVAL)?;
    if connection.is_deaf() {
        return done(0);
    }
    let nonblocking = on.file.nonblocking() || flags & flag::DONTWAIT != 0;
    let limit_ns = socket.record().receive_ns;
    let (peeks, all) = (flags & flag::PEEK != 0, flags & flag::WAITALL != 0);
    if peeks && nonblocking {
        return Ok(Flow::Done(connection.incoming().peek(on.base, buffer)));
    }
    if nonblocking || !peeks && !all && limit_ns == 0 {
        return pipe::read(on.base, on.caller, connection.incoming(), buffer, nonblocking);
    }
    let transfer = Transfer::new(on, connection.incoming(), buffer, limit_ns);
    Ok(Flow::task(async move { transfer.receive(peeks, all).await }))
}

/// The time at which a wait of so many nanoseconds ends; 0: never.
pub fn deadline(limit_ns: u64) -> Option<u64> {
    (limit_ns != 0).then(|| time::now_ns().saturating_add(limit_ns))
}

/// A transfer that waits in a task, because it has a deadline, or what a pipe's own waiting does not do.
struct Transfer {
    base: &'static Base,
    caller: Rc<Caller>,
    /// Open until the transfer ends.
    _file: Rc<OpenFile>,
    pipe: Rc<Pipe>,
    buffer: UserBuffer,
    deadline_ns: Option<u64>,
}

impl Transfer {
    fn new(on: &Operation, pipe: &Rc<Pipe>, buffer: &mut UserBuffer, limit_ns: u64) -> Transfer {
        let mut buffer = core::mem::take(buffer);
        if let Some(Note::Moved(moved)) = on.caller.noted() {
            buffer.advance_all(moved);
        }
        let (caller, file, pipe) = (on.caller.clone(), on.file.clone(), pipe.clone());
        Transfer { base: on.base, caller, _file: file, pipe, buffer, deadline_ns: deadline(limit_ns) }
    }

    /// Receives at least a byte; with `all` until the buffer is full, or there is an end. `EAGAIN`: the deadline.
    async fn receive(mut self, peeks: bool, all: bool) -> Result<u64, Errno> {
        loop {
            let before = self.buffer.moved();
            let result = if peeks { self.peek(all) } else { self.read() };
            let moved = self.buffer.moved();
            match result {
                Err(Errno::EAGAIN) => {}
                Ok(_) if all && self.buffer.left() > 0 && moved > before => {
                    self.caller.note(Note::Moved(moved));
                    continue;
                }
                Ok(_) => return Ok(moved),
                Err(error) => return self.buffer.moved_or(error),
            }
            if let Err(error) = self.wait().await {
                return self.buffer.moved_or(error);
            }
        }
    }

    fn read(&mut self) -> Result<u64, Errno> {
        match self.pipe.read(self.base, &mut self.buffer, true) {
            Outcome::Done(result) => result,
            Outcome::Waiting => Err(Errno::EAGAIN),
        }
    }

    /// Peeks from the beginning. `EAGAIN`: there is nothing, or with `all` not enough.
    fn peek(&mut self, all: bool) -> Result<u64, Errno> {
        let mut buffer = self.buffer.clone();
        let moved = self.pipe.peek(self.base, &mut buffer)?;
        if all && buffer.left() > 0 && moved > 0 && self.pipe.writers() > 0 {
            return Err(Errno::EAGAIN);
        }
        self.buffer = buffer;
        Ok(moved)
    }

    /// Sends everything. `EAGAIN`: the deadline, and nothing was sent; `EPIPE`: nobody reads, and unless `quiet` SIGPIPE has been sent.
    async fn send(mut self, quiet: bool) -> Result<u64, Errno> {
        loop {
            let result = match self.pipe.write(self.base, &mut self.buffer, true) {
                Outcome::Done(result) => result,
                Outcome::Waiting => Err(Errno::EAGAIN),
            };
            match result {
                Ok(_) if self.buffer.left() == 0 => return Ok(self.buffer.moved()),
                Ok(moved) => self.caller.note(Note::Moved(moved)),
                Err(Errno::EAGAIN) => {}
                Err(error) if self.buffer.moved() > 0 => return self.buffer.moved_or(error),
                Err(Errno::EPIPE) if !quiet => return self.signal().await,
                Err(error) => return Err(error),
            }
            if let Err(error) = self.wait().await {
                return self.buffer.moved_or(error);
            }
        }
    }

    /// Has pm send SIGPIPE, and ends with the error that pm ends the call with.
    async fn signal(&self) -> Result<u64, Errno> {
        self.base.notices().signal(self.caller.endpoint, SIGPIPE);
        loop {
            self.caller.wait().await?;
        }
    }

    /// Waits until the pipe changes. `EAGAIN`: the deadline.
    async fn wait(&self) -> Result<(), Errno> {
        pause(self.base, &self.caller, &self.pipe, self.deadline_ns).await
    }
}

/// Waits until a pipe changes. `EAGAIN`: the deadline.
pub(super) async fn pause(base: &Base, caller: &Caller, pipe: &Pipe, deadline_ns: Option<u64>) -> Result<(), Errno> {
    let mut sleep = deadline_ns.map(|deadline_ns| base.runtime().sleep_until(deadline_ns));
    pipe.watchers.add(caller.event());
    let waited = caller.wait_or_sleep(sleep.as_mut()).await;
    pipe.watchers.remove(caller.event());
    match waited {
        Ok(true) => Err(Errno::EAGAIN),
        Ok(false) => Ok(()),
        // A call with a deadline is not repeated after a signal.
        Err(Errno::ERESTARTSYS) if deadline_ns.is_some() => Err(Errno::EINTR),
        Err(error) => Err(error),
    }
}
