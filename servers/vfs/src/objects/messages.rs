//! Messages of sockets that keep their boundaries (`SOCK_SEQPACKET`, `SOCK_DGRAM`): what sending and receiving one means for a call.
//!
//! A call waits in the pipe where it can. One that has a deadline, peeks, or sends or receives several messages, is a task.

use super::{
    OpenFile, Operation, done, pipe,
    socket::{deadline, flag, pause, sender_of},
};
use crate::{
    base::{Base, Flow},
    callers::Caller,
    memory::buffer::UserBuffer,
    pipes::{
        Outcome, Pipe,
        ancillary::Cargo,
        packets::{Envelope, Parcel, Receiver},
    },
    sockets::{PASSCRED, Socket},
};
use abi::Errno;
use alloc::{boxed::Box, rc::Rc};

/// Whether a call on this open file does not wait.
pub fn is_nonblocking(file: &OpenFile, flags: u32) -> bool {
    file.nonblocking() || flags & flag::DONTWAIT != 0
}

/// Sends a message to the socket's peer. `ENOTCONN`, `ECONNREFUSED`: it has none, or that has ended; `EPIPE`, `EMSGSIZE`.
pub fn send(on: &Operation, socket: &Socket, buffer: &mut UserBuffer, flags: u32) -> Result<Flow, Errno> {
    let to = outgoing(on.base, socket, flags)?;
    send_cargo(on, socket, buffer, flags, (to, Cargo::default()))
}

/// What a socket sends messages into. `EOPNOTSUPP`: urgent data; `ECONNRESET`: its peer has closed with unread messages, which is told
/// once; other errors as of [`send`].
pub fn outgoing(base: &Base, socket: &Socket, flags: u32) -> Result<Rc<Pipe>, Errno> {
    if flags & flag::OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    match socket.connection() {
        Some(connection) if connection.incoming().take_reset(base) => Err(Errno::ECONNRESET),
        _ => socket.outgoing(),
    }
}

/// Sends a message with which something goes.
pub fn send_cargo(
    on: &Operation,
    socket: &Socket,
    buffer: &mut UserBuffer,
    flags: u32,
    (to, cargo): (Rc<Pipe>, Cargo),
) -> Result<Flow, Errno> {
    let mut envelope = envelope(on.caller, socket, &to, cargo);
    let nonblocking = is_nonblocking(on.file, flags);
    let limit_ns = socket.record().send_ns;
    if nonblocking || limit_ns == 0 && envelope.cargo.rights.is_none() {
        let outcome = to.send(on.base, buffer, &mut envelope, nonblocking);
        return pipe::flow(on.base, on.caller, &to, outcome);
    }
    match to.send(on.base, buffer, &mut envelope, true) {
        Outcome::Done(Err(Errno::EAGAIN)) => {}
        outcome => return pipe::flow(on.base, on.caller, &to, outcome),
    }
    let (task, mut buffer) = (Task::new(on, limit_ns), core::mem::take(buffer));
    Ok(Flow::task(async move { task.send(&to, &mut buffer, envelope, false).await }))
}

/// What a message has besides its content: with the sender's ids, if it has none and one of both sides wants them.
pub fn envelope(caller: &Caller, socket: &Socket, to: &Pipe, mut cargo: Cargo) -> Envelope {
    if cargo.sender.is_none() && (to.asks() || socket.has_option(PASSCRED)) {
        cargo.sender = Some(sender_of(caller));
    }
    let name = socket.is_bound().then(|| Box::new(socket.name()));
    Envelope { name, cargo, user: caller.user(), most_bytes: socket.longest_message() }
}

/// Receives a message. `ENOTCONN`; `EOPNOTSUPP`: urgent data.
pub fn receive(on: &Operation, socket: &Socket, mut to: Receiver, flags: u32) -> Result<Flow, Errno> {
    let incoming = socket.incoming().ok_or(Errno::ENOTCONN)?;
    if flags & flag::OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if socket.is_deaf() {
        return done(0);
    }
    to.whole_length = flags & flag::TRUNC != 0;
    let (peeks, nonblocking, limit_ns) =
        (flags & flag::PEEK != 0, is_nonblocking(on.file, flags), socket.record().receive_ns);
    if nonblocking || !peeks && limit_ns == 0 {
        let outcome = incoming.receive(on.base, &mut to, None, peeks, nonblocking);
        return pipe::flow(on.base, on.caller, incoming, outcome);
    }
    let (task, incoming) = (Task::new(on, limit_ns), incoming.clone());
    Ok(Flow::task(async move { task.receive(&incoming, &mut to, None, peeks).await }))
}

/// A call that sends or receives messages in a task.
pub struct Task {
    base: &'static Base,
    caller: Rc<Caller>,
    /// Open until the call ends.
    _file: Rc<OpenFile>,
    deadline_ns: Option<u64>,
}

impl Task {
    /// The call in progress, each wait of which is limited to so many nanoseconds; 0: not at all.
    pub fn new(on: &Operation, limit_ns: u64) -> Task {
        Task { base: on.base, caller: on.caller.clone(), _file: on.file.clone(), deadline_ns: deadline(limit_ns) }
    }

    /// Sends a message into a pipe.
    pub async fn send(
        &self,
        to: &Pipe,
        buffer: &mut UserBuffer,
        mut envelope: Envelope,
        nonblocking: bool,
    ) -> Result<u64, Errno> {
        loop {
            match to.send(self.base, buffer, &mut envelope, true) {
                Outcome::Done(Err(Errno::EAGAIN)) if !nonblocking => self.pause(to).await?,
                outcome => return self.finish(outcome),
            }
        }
    }

    /// Receives a message from a pipe, when there is one.
    pub async fn receive(
        &self,
        from: &Pipe,
        to: &mut Receiver,
        mut parcel: Option<&mut Parcel>,
        peeks: bool,
    ) -> Result<u64, Errno> {
        loop {
            match from.receive(self.base, to, parcel.as_deref_mut(), peeks, true) {
                Outcome::Done(Err(Errno::EAGAIN)) => self.pause(from).await?,
                outcome => return self.finish(outcome),
            }
        }
    }

    fn finish(&self, outcome: Outcome) -> Result<u64, Errno> {
        self.base.store().has_moved();
        match outcome {
            Outcome::Done(result) => result,
            Outcome::Waiting => Err(Errno::EAGAIN),
        }
    }

    async fn pause(&self, pipe: &Pipe) -> Result<(), Errno> {
        pause(self.base, &self.caller, pipe, self.deadline_ns).await
    }
}
