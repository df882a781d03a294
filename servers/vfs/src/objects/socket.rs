//! Sockets as open files, and what sending and receiving means for a call: what waits, and until when.

use super::{FIONREAD, Inheritance, Kind, Object, OpenFile, Operation, done, messages, no_position, pipe};
use crate::{
    base::{Base, Flow, closing::Closing},
    callers::{Caller, permission::S_IFSOCK},
    events::{
        Watchers,
        notices::SIGPIPE,
        poll::{ALWAYS_READY, OF_READERS, POLLIN},
    },
    files::{stat::Summary, vnode::NodeRef},
    keep::records::{Note, ObjectRecord, Ucred},
    memory as user,
    memory::buffer::UserBuffer,
    pipes::{Outcome, Pipe, ancillary::Cargo, packets::Receiver},
    sockets::{self, Socket, connection::POLLRDHUP},
};
use abi::{
    Errno,
    vfs::{OWNER_HANG_UP, OWNER_INPUT, OWNER_OUTPUT},
};
use alloc::rc::Rc;
use sys::time;

/// ioctl: bytes that the peer has not read (`SIOCOUTQ`).
const TIOCOUTQ: u32 = 0x5411;

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
    /// Descriptors that are received are closed by exec.
    pub const CMSG_CLOEXEC: u32 = 0x4000_0000;
}

/// A socket as an open file.
#[derive(Debug)]
pub struct SocketFile(pub Rc<Socket>);

impl SocketFile {
    #[inline]
    fn receive(&self, on: &Operation, buffer: &mut UserBuffer, flags: u32) -> Result<Flow, Errno> {
        match self.0.kind() {
            sockets::Kind::Stream => receive(on, &self.0, buffer, flags),
            _ => {
                let buffer = core::mem::take(buffer);
                messages::receive(on, &self.0, Receiver { buffer, ..Receiver::default() }, flags)
            }
        }
    }

    #[inline]
    fn send(&self, on: &Operation, buffer: &mut UserBuffer, flags: u32) -> Result<Flow, Errno> {
        match self.0.kind() {
            sockets::Kind::Stream => send(on, &self.0, buffer, flags),
            _ => messages::send(on, &self.0, buffer, flags),
        }
    }
}

impl Object for SocketFile {
    fn record(&self) -> ObjectRecord {
        ObjectRecord { place: self.0.place(), ..ObjectRecord::of(Self::NUMBER) }
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: self.0.record().inode, mode: S_IFSOCK | 0o777, ..Summary::default() })
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        self.receive(on, buffer, 0)
    }

    fn read_now(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        self.receive(on, buffer, flag::DONTWAIT)
    }

    fn write(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        self.send(on, buffer, 0)
    }

    fn write_now(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        self.send(on, buffer, flag::DONTWAIT)
    }

    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        let kind = self.0.kind();
        let bytes_of = |pipe: &Rc<Pipe>, first| match kind {
            sockets::Kind::Stream => pipe.bytes(),
            _ => pipe.message_bytes(on.base, first),
        };
        let bytes = match request {
            FIONREAD | TIOCOUTQ if self.0.record().listening => return Err(Errno::EINVAL),
            FIONREAD => self.0.incoming().map_or(0, |pipe| bytes_of(pipe, kind == sockets::Kind::Datagrams)),
            TIOCOUTQ => self.0.connection().map_or(0, |connection| bytes_of(connection.outgoing(), false)),
            _ => return Err(Errno::ENOTTY),
        };
        user::store(on.caller.endpoint, argument, &(bytes as u32).to_le_bytes())?;
        done(0)
    }

    fn poll(&self) -> u32 {
        self.0.ready()
    }

    fn is_asynchronous(&self) -> bool {
        true
    }

    /// What comes, and of streams room after a send that found none; that the peer has gone, once.
    fn happened(&self, events: u32) -> Option<u64> {
        let ready = self.0.ready();
        match events {
            _ if events & OF_READERS == 0 => (self.0.kind() == sockets::Kind::Stream).then_some(OWNER_OUTPUT),
            _ if events & !ALWAYS_READY == 0 => Some(OWNER_INPUT),
            // The other pipe of the connection tells.
            _ if events & POLLIN == 0 => None,
            _ if ready & POLLRDHUP != 0 => Some(OWNER_HANG_UP),
            _ if ready & POLLIN != 0 => Some(OWNER_INPUT),
            _ => None,
        }
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

/// The ids of a caller that a receiver is told.
pub fn sender_of(caller: &Caller) -> Ucred {
    let ids = caller.credentials();
    Ucred { pid: caller.pid, uid: ids.uid, gid: ids.gid }
}

/// Sends what is in the buffer. `EOPNOTSUPP`: urgent data; `ENOTCONN`.
pub fn send(on: &Operation, socket: &Socket, buffer: &mut UserBuffer, flags: u32) -> Result<Flow, Errno> {
    let quiet = flags & flag::NOSIGNAL != 0;
    let Some(pipe) = outgoing(socket, flags)? else { return pipe::broken(on.base, on.caller, quiet) };
    if pipe.is_identified() {
        let cargo = Cargo { sender: Some(sender_of(on.caller)), rights: None };
        return send_cargo(on, socket, buffer, flags, cargo);
    }
    let nonblocking = messages::is_nonblocking(on.file, flags);
    match socket.record().send_ns {
        limit_ns @ 1.. if !nonblocking => {
            let transfer = Transfer::new(on, pipe, buffer, limit_ns);
            Ok(Flow::task(async move { transfer.send(quiet).await }))
        }
        _ => pipe::write(on.base, on.caller, pipe, buffer, nonblocking, quiet),
    }
}

/// What a stream socket sends into; `None`: it is shut down. `EOPNOTSUPP`: urgent data; `ENOTCONN`.
pub fn outgoing(socket: &Socket, flags: u32) -> Result<Option<&Rc<Pipe>>, Errno> {
    if flags & flag::OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let connection = socket.connection().ok_or(Errno::ENOTCONN)?;
    Ok(connection.writes().then(|| connection.outgoing()))
}

/// [`send`] of bytes with which something goes.
pub fn send_cargo(
    on: &Operation,
    socket: &Socket,
    buffer: &mut UserBuffer,
    flags: u32,
    cargo: Cargo,
) -> Result<Flow, Errno> {
    send_cargo_after(on, socket, buffer, flags, cargo, 0)
}

/// [`send_cargo`] after as many other messages of the same call.
pub fn send_cargo_after(
    on: &Operation,
    socket: &Socket,
    buffer: &mut UserBuffer,
    flags: u32,
    mut cargo: Cargo,
    messages: u64,
) -> Result<Flow, Errno> {
    let quiet = flags & flag::NOSIGNAL != 0;
    let Some(pipe) = outgoing(socket, flags)? else { return pipe::broken(on.base, on.caller, quiet) };
    let nonblocking = messages::is_nonblocking(on.file, flags);
    resume(on, buffer);
    if buffer.moved() > 0 {
        cargo.rights = None;
    }
    on.base.store().has_moved();
    let is_begun = match pipe.write_with(on.base, buffer, on.caller.user(), &mut cargo) {
        Err(Errno::EAGAIN) if !nonblocking => false,
        Err(Errno::EPIPE) => return pipe::broken(on.base, on.caller, quiet),
        Ok(_) if buffer.left() > 0 && !nonblocking => true,
        result => return Ok(Flow::Done(result)),
    };
    let transfer = Transfer::resumed(on, pipe, buffer, socket.record().send_ns).with(cargo).after(messages);
    if is_begun {
        transfer.note();
    }
    Ok(Flow::task(async move { transfer.send(quiet).await }))
}

/// Receives what has come. `EINVAL`: urgent data, or it is not connected.
pub fn receive(on: &Operation, socket: &Socket, buffer: &mut UserBuffer, flags: u32) -> Result<Flow, Errno> {
    let connection = socket.connection().filter(|_| flags & flag::OOB == 0).ok_or(Errno::EINVAL)?;
    if connection.is_deaf() {
        return done(0);
    }
    let nonblocking = messages::is_nonblocking(on.file, flags);
    let limit_ns = socket.record().receive_ns;
    let (peeks, all) = (flags & flag::PEEK != 0, flags & flag::WAITALL != 0);
    if peeks && nonblocking {
        return Ok(Flow::Done(connection.incoming().peek(on.base, buffer, &mut Cargo::default())));
    }
    if nonblocking || !peeks && !all && limit_ns == 0 {
        return pipe::read(on.base, on.caller, connection.incoming(), buffer, nonblocking);
    }
    let mut transfer = Transfer::new(on, connection.incoming(), buffer, limit_ns);
    Ok(Flow::task(async move { transfer.receive(peeks, all).await }))
}

/// The time at which a wait of so many nanoseconds ends; 0: never.
pub fn deadline(limit_ns: u64) -> Option<u64> {
    (limit_ns != 0).then(|| time::now_ns().saturating_add(limit_ns))
}

/// Bits of a note that say how many bytes of a message were moved; those above say how many messages were before it.
pub const MOVED_BITS: u32 = 32;

/// Goes on in a buffer behind what a predecessor has moved for the call.
fn resume(on: &Operation, buffer: &mut UserBuffer) {
    if let Some(Note::Moved(noted)) = on.caller.noted() {
        buffer.advance_all(noted & ((1 << MOVED_BITS) - 1));
    }
}

/// A transfer that waits in a task, because it has a deadline, or what a pipe's own waiting does not do.
pub struct Transfer {
    base: &'static Base,
    caller: Rc<Caller>,
    /// Open until the transfer ends.
    _file: Rc<OpenFile>,
    pipe: Rc<Pipe>,
    buffer: UserBuffer,
    /// What goes with the bytes.
    cargo: Cargo,
    deadline_ns: Option<u64>,
    /// Messages of the call that were moved before.
    before: u64,
}

impl Transfer {
    /// A transfer of a buffer, each wait of which is limited to so many nanoseconds; 0: not at all.
    pub fn new(on: &Operation, pipe: &Rc<Pipe>, buffer: &mut UserBuffer, limit_ns: u64) -> Transfer {
        resume(on, buffer);
        Transfer::resumed(on, pipe, buffer, limit_ns)
    }

    /// [`Transfer::new`] for a buffer that [`resume`] has seen.
    fn resumed(on: &Operation, pipe: &Rc<Pipe>, buffer: &mut UserBuffer, limit_ns: u64) -> Transfer {
        let buffer = core::mem::take(buffer);
        let (caller, file, pipe, cargo) = (on.caller.clone(), on.file.clone(), pipe.clone(), Cargo::default());
        let deadline_ns = deadline(limit_ns);
        Transfer { base: on.base, caller, _file: file, pipe, buffer, cargo, deadline_ns, before: 0 }
    }

    /// One that sends something with its bytes. If some of these went before a death, so have the open files.
    pub fn with(mut self, cargo: Cargo) -> Transfer {
        self.cargo = cargo;
        if self.buffer.moved() > 0 {
            self.cargo.rights = None;
        }
        self
    }

    /// One before which the call has moved so many messages.
    pub fn after(mut self, messages: u64) -> Transfer {
        self.before = messages << MOVED_BITS;
        self
    }

    /// What has come with the bytes.
    pub fn cargo(&mut self) -> Cargo {
        core::mem::take(&mut self.cargo)
    }

    fn note(&self) {
        self.caller.note(Note::Moved(self.before | self.buffer.moved()));
    }

    /// Receives at least a byte; with `all` until the buffer is full, or there is an end. `EAGAIN`: the deadline.
    pub async fn receive(&mut self, peeks: bool, all: bool) -> Result<u64, Errno> {
        loop {
            let before = self.buffer.moved();
            let result = if peeks { self.peek(all) } else { self.read() };
            let moved = self.buffer.moved();
            match result {
                Err(Errno::EAGAIN) => {}
                Ok(_) if all && self.buffer.left() > 0 && moved > before => {
                    self.note();
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
        match self.pipe.read_with(self.base, &mut self.buffer, true, &mut self.cargo) {
            Outcome::Done(result) => result,
            Outcome::Waiting => Err(Errno::EAGAIN),
        }
    }

    /// Peeks from the beginning. `EAGAIN`: there is nothing, or with `all` not enough.
    fn peek(&mut self, all: bool) -> Result<u64, Errno> {
        let mut buffer = self.buffer.clone();
        let moved = self.pipe.peek(self.base, &mut buffer, &mut self.cargo)?;
        if all && buffer.left() > 0 && moved > 0 && self.pipe.writers() > 0 {
            return Err(Errno::EAGAIN);
        }
        self.buffer = buffer;
        Ok(moved)
    }

    /// Sends everything. `EAGAIN`: the deadline, and nothing was sent; `EPIPE`: nobody reads, and unless `quiet` SIGPIPE has been sent.
    pub async fn send(mut self, quiet: bool) -> Result<u64, Errno> {
        loop {
            match self.write() {
                Ok(_) if self.buffer.left() == 0 => return Ok(self.buffer.moved()),
                Ok(_) => self.note(),
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

    /// Sends what there is room for. `EAGAIN`: none.
    fn write(&mut self) -> Result<u64, Errno> {
        self.pipe.write_with(self.base, &mut self.buffer, self.caller.user(), &mut self.cargo)
    }

    /// Has pm send SIGPIPE, and ends with the error that pm ends the call with.
    async fn signal(&self) -> Result<u64, Errno> {
        self.base.notices().signal(self.caller.endpoint, SIGPIPE);
        self.caller.wait_for_signal().await
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
