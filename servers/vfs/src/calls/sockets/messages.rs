//! Sending and receiving: sendto, recvfrom, sendmsg, recvmsg, sendmmsg, recvmmsg.

use super::{
    Kind,
    connect::find,
    control::{Control, Room},
    socket_of,
};
use crate::{
    base::{Base, Flow},
    calls::{call::Call, task},
    keep::records::{Note, Ucred},
    memory::{
        self as user,
        address::{self, Address, header},
        buffer::UserBuffer,
    },
    objects::{
        OpenFile, Operation,
        garbage::InFlight,
        messages::{self, Task, envelope, is_nonblocking},
        socket::{self, MOVED_BITS, Transfer, flag},
    },
    pipes::{
        Outcome, World,
        ancillary::Cargo,
        packets::{Parcel, Receiver, Results},
    },
    processes::{Process, Processes},
    sockets::{Socket, names::Names},
};
use abi::{Endpoint, Errno};
use alloc::rc::Rc;
use core::mem::take;
use sys::time;

/// recvmmsg: do not wait once there is a message.
const WAIT_FOR_ONE: u32 = 0x1_0000;
/// Most messages of one call.
const MAX_MESSAGES: u64 = 1024;
/// Bytes of `struct mmsghdr`, and where it has the length of its message.
const MANY_BYTES: u64 = 64;
const MANY_LENGTH: u64 = 56;

/// What a sending or receiving call works with.
#[derive(Clone)]
pub struct On {
    base: &'static Base,
    names: &'static Rc<Names>,
    processes: &'static Processes,
    flight: &'static Rc<InFlight>,
    process: Rc<Process>,
    file: Rc<OpenFile>,
    socket: Rc<Socket>,
}

impl On {
    /// The socket behind the descriptor in argument 0. `ENOTSOCK`, `EBADF`.
    pub fn new(call: &Call) -> Result<On, Errno> {
        let (file, socket) = socket_of(call.process, call.int(0))?;
        Ok(On {
            base: call.base(),
            names: call.sockets(),
            processes: call.processes(),
            flight: call.in_flight(),
            process: call.process(),
            file,
            socket,
        })
    }

    /// The caller.
    pub fn process(&self) -> &Rc<Process> {
        &self.process
    }

    /// The socket.
    pub fn socket(&self) -> &Rc<Socket> {
        &self.socket
    }

    /// What is in flight.
    pub fn flight(&self) -> &Rc<InFlight> {
        self.flight
    }

    fn operation(&self) -> Operation<'_> {
        Operation { base: self.base, caller: &self.process.caller, file: &self.file }
    }

    /// The name of so many bytes that a sending call gives. A connected socket for packets ignores it. `EISCONN`, `EOPNOTSUPP`: streams
    /// send to nobody else.
    fn to(&self, address: u64, bytes: i32) -> Result<Option<Address>, Errno> {
        match self.socket.kind() {
            _ if address == 0 || bytes == 0 => Ok(None),
            Kind::Stream if self.socket.connection().is_some() => Err(Errno::EISCONN),
            Kind::Stream => Err(Errno::EOPNOTSUPP),
            Kind::Packets => Ok(None),
            Kind::Datagrams => address::fetch(self.who(), address, bytes).map(Some),
        }
    }

    fn who(&self) -> Endpoint {
        self.process.caller.endpoint
    }
}

/// `struct msghdr`.
struct Header {
    address: u64,
    name: (u64, u32),
    control: Room,
    buffer: UserBuffer,
}

impl Header {
    /// That of a program. `EFAULT`, `EINVAL`; `EMSGSIZE`: too many pieces.
    fn fetch(who: Endpoint, address: u64) -> Result<Header, Errno> {
        let [name_address, name_bytes, pieces, count, control, bytes] = user::fetch_words::<6>(who, address)?;
        if count > user::IOV_MAX {
            return Err(Errno::EMSGSIZE);
        }
        let buffer = user::vector(who, pieces, count)?;
        let (name, control) = ((name_address, name_bytes as u32), Room { address: control, bytes });
        Ok(Header { address, name, control, buffer })
    }

    /// What is sent besides bytes, and the name to send to. Errors as of [`Control::fetch`] and [`On::to`].
    fn sent(&self, on: &On) -> Result<(Control, Option<Address>), Errno> {
        let Room { address, bytes } = self.control;
        let control = Control::fetch(&on.process, on.processes, address, bytes)?;
        Ok((control, on.to(self.name.0, self.name.1 as i32)?))
    }

    /// Tells a program what has come besides the bytes. `EFAULT`.
    fn report(&self, on: &On, parcel: &Parcel, flags: u32) -> Result<(), Errno> {
        on.base.store().has_moved();
        let (control_bytes, more) = self.control.store(on, parcel, flags);
        let flags = flags & flag::CMSG_CLOEXEC | parcel.flags | more;
        header::store(on.who(), self.address, self.name, &parcel.name, flags, control_bytes)
    }
}

/// sendto.
pub fn send_to(on: &On, mut buffer: UserBuffer, flags: u32, [address, bytes]: [u64; 2]) -> Result<Flow, Errno> {
    let to = on.to(address, bytes as i32)?;
    send(on, &mut buffer, flags, to, Control::default())
}

/// sendmsg.
pub fn send_message(on: &On, address: u64, flags: u32) -> Result<Flow, Errno> {
    let mut header = Header::fetch(on.who(), address)?;
    let (control, to) = header.sent(on)?;
    send(on, &mut header.buffer, flags, to, control)
}

fn send(on: &On, buffer: &mut UserBuffer, flags: u32, to: Option<Address>, control: Control) -> Result<Flow, Errno> {
    let (stream, operation) = (on.socket.kind() == Kind::Stream, on.operation());
    match to {
        Some(_) => {
            let (on, mut buffer) = (on.clone(), take(buffer));
            task(async move { send_in_task(&on, &mut buffer, flags, to, control, 0).await })
        }
        None if control.is_empty() && stream => socket::send(&operation, &on.socket, buffer, flags),
        None if control.is_empty() => messages::send(&operation, &on.socket, buffer, flags),
        None if stream => {
            let cargo = load_stream(on, flags, control)?;
            socket::send_cargo(&operation, &on.socket, buffer, flags, cargo)
        }
        None => {
            let to = messages::outgoing(on.base, &on.socket, flags)?;
            let cargo = control.load(on, &to)?;
            messages::send_cargo(&operation, &on.socket, buffer, flags, (to, cargo))
        }
    }
}

/// What goes with bytes of a stream: with the sender's ids, if one of both sides wants them.
fn load_stream(on: &On, flags: u32, control: Control) -> Result<Cargo, Errno> {
    let Some(pipe) = socket::outgoing(&on.socket, flags)? else { return Ok(Cargo::default()) };
    let mut cargo = control.load(on, pipe)?;
    if cargo.sender.is_none() && pipe.is_identified() {
        cargo.sender = Some(socket::sender_of(&on.process.caller));
    }
    Ok(cargo)
}

/// Sends a message, to the socket's peer or to the socket of a name, after as many others of the same call.
async fn send_in_task(
    on: &On,
    buffer: &mut UserBuffer,
    flags: u32,
    to: Option<Address>,
    control: Control,
    done: u64,
) -> Result<u64, Errno> {
    let limit_ns = on.socket.record().send_ns;
    if on.socket.kind() == Kind::Stream {
        let cargo = load_stream(on, flags, control)?;
        return match socket::send_cargo_after(&on.operation(), &on.socket, buffer, flags, cargo, done)? {
            Flow::Done(result) => result,
            Flow::Task(task) => task.await,
            Flow::Later => on.process.caller.wait_for_signal().await,
        };
    }
    let sending = Task::new(&on.operation(), limit_ns);
    let pipe = match to {
        Some(to) => {
            let target = find(on.base.files(), on.names, &on.process, &to, Kind::Datagrams).await?;
            on.socket.outgoing_to(&target)?
        }
        None => messages::outgoing(on.base, &on.socket, flags)?,
    };
    let envelope = envelope(&on.process.caller, &on.socket, &pipe, control.load(on, &pipe)?);
    sending.send(&pipe, buffer, envelope, is_nonblocking(&on.file, flags)).await
}

/// recvfrom.
pub fn receive_from(
    on: &On,
    buffer: UserBuffer,
    flags: u32,
    [address, length_address]: [u64; 2],
) -> Result<Flow, Errno> {
    let results = if address == 0 { Results::Nowhere } else { Results::Name { address, length_address } };
    let mut to = Receiver { buffer, results, ..Receiver::default() };
    if on.socket.kind() != Kind::Stream {
        return messages::receive(&on.operation(), &on.socket, to, flags);
    }
    on.base.report(on.who(), &to.results, &on.socket.peer_name(), 0)?;
    socket::receive(&on.operation(), &on.socket, &mut to.buffer, flags)
}

/// recvmsg. It waits in the pipe for a message with which nothing can come.
pub fn receive_message(on: &On, address: u64, flags: u32) -> Result<Flow, Errno> {
    let mut header = Header::fetch(on.who(), address)?;
    let mut to = Receiver { buffer: take(&mut header.buffer), ..Receiver::default() };
    let mut parcel = Parcel::default();
    match receive_now(on, &header, &mut to, &mut parcel, flags) {
        Err(Errno::EAGAIN) if !is_nonblocking(&on.file, flags) => {}
        result => return Ok(Flow::Done(result.and_then(|bytes| header.report(on, &parcel, flags).map(|()| bytes)))),
    }
    if on.socket.kind() != Kind::Stream && header.control.is_none() {
        let (Header { address, name: (name_address, name_bytes), .. }, flags_told) =
            (header, flags & flag::CMSG_CLOEXEC);
        to.results = Results::Header { address, name_address, name_bytes, flags: flags_told };
        return messages::receive(&on.operation(), &on.socket, to, flags);
    }
    let on = on.clone();
    task(async move { receive_later(&on, &header, to, flags, 0).await })
}

/// Receives what there is. `EAGAIN`: nothing, or with `MSG_WAITALL` perhaps too little; other errors as of recvmsg.
fn receive_now(on: &On, header: &Header, to: &mut Receiver, parcel: &mut Parcel, flags: u32) -> Result<u64, Errno> {
    let (stream, peeks) = (on.socket.kind() == Kind::Stream, flags & flag::PEEK != 0);
    let incoming = match on.socket.incoming() {
        Some(incoming) if !stream || flags & flag::OOB == 0 => incoming,
        _ if stream => return Err(Errno::EINVAL),
        _ => return Err(Errno::ENOTCONN),
    };
    if flags & flag::OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if on.socket.is_deaf() {
        if stream {
            fill_stream_parcel(on, header, 0, parcel);
        }
        return Ok(0);
    }
    to.whole_length = flags & flag::TRUNC != 0;
    let outcome = match stream {
        true if flags & flag::WAITALL != 0 && !is_nonblocking(&on.file, flags) => return Err(Errno::EAGAIN),
        true if peeks => Outcome::Done(incoming.peek(on.base, &mut to.buffer, &mut parcel.cargo)),
        true => incoming.read_with(on.base, &mut to.buffer, true, &mut parcel.cargo),
        false => incoming.receive(on.base, to, Some(parcel), peeks, true),
    };
    match outcome {
        Outcome::Done(Ok(bytes)) if stream => {
            fill_stream_parcel(on, header, bytes, parcel);
            Ok(bytes)
        }
        Outcome::Done(result) => result,
        Outcome::Waiting => Err(Errno::EAGAIN),
    }
}

/// Adds what a receiver of a stream gets besides the bytes and what came with them: the peer's name, if there is a place for it. The end is
/// of user 0, as on Linux.
fn fill_stream_parcel(on: &On, header: &Header, bytes: u64, parcel: &mut Parcel) {
    if bytes > 0 && header.name.0 != 0 {
        parcel.name = on.socket.peer_name();
    }
    if bytes == 0 {
        parcel.cargo.sender = Some(Ucred { pid: 0, uid: 0, gid: 0 });
    }
    parcel.arrived = true;
}

/// Receives a message when it comes, after as many others of the same call.
async fn receive_later(on: &On, header: &Header, mut to: Receiver, flags: u32, done: u64) -> Result<u64, Errno> {
    let limit_ns = on.socket.record().receive_ns;
    let incoming = on.socket.incoming().ok_or(Errno::ENOTCONN)?.clone();
    let (peeks, all) = (flags & flag::PEEK != 0, flags & flag::WAITALL != 0);
    let mut parcel = Parcel::default();
    let bytes = match on.socket.kind() {
        Kind::Stream => {
            let mut transfer = Transfer::new(&on.operation(), &incoming, &mut to.buffer, limit_ns).after(done);
            let bytes = transfer.receive(peeks, all).await?;
            parcel.cargo = transfer.cargo();
            fill_stream_parcel(on, header, bytes, &mut parcel);
            bytes
        }
        _ => Task::new(&on.operation(), limit_ns).receive(&incoming, &mut to, Some(&mut parcel), peeks).await?,
    };
    header.report(on, &parcel, flags)?;
    Ok(bytes)
}

/// How many messages a predecessor has sent or received for the call in progress.
fn done_before(on: &On) -> u64 {
    match on.process.caller.noted() {
        Some(Note::Moved(noted)) => noted >> MOVED_BITS,
        _ => 0,
    }
}

/// The result of a call for several messages that ends with `error`: those that went count more.
fn done_or(done: u64, error: Errno) -> Result<u64, Errno> {
    if done > 0 { Ok(done) } else { Err(error) }
}

/// One message of a call for several is done: what a predecessor has noted of its bytes does not concern the next.
fn note_done(on: &On, done: u64) {
    on.process.caller.begin_call(None);
    on.process.caller.note(Note::Moved(done << MOVED_BITS));
}

/// sendmmsg.
pub async fn send_many(on: On, address: u64, count: u32, flags: u32) -> Result<u64, Errno> {
    let mut done = done_before(&on);
    while done < u64::from(count).min(MAX_MESSAGES) {
        let at = address.wrapping_add(done * MANY_BYTES);
        match send_one(&on, at, flags, done).await {
            Ok(()) => done += 1,
            Err(error) => return done_or(done, error),
        }
        note_done(&on, done);
    }
    Ok(done)
}

async fn send_one(on: &On, address: u64, flags: u32, done: u64) -> Result<(), Errno> {
    let mut header = Header::fetch(on.who(), address)?;
    let (control, to) = header.sent(on)?;
    let bytes = send_in_task(on, &mut header.buffer, flags, to, control, done).await?;
    user::store(on.who(), address.wrapping_add(MANY_LENGTH), &(bytes as u32).to_le_bytes())
}

/// recvmmsg. The deadline is looked at between two messages, as on Linux.
pub async fn receive_many(
    on: On,
    address: u64,
    count: u32,
    mut flags: u32,
    deadline_ns: Option<u64>,
) -> Result<u64, Errno> {
    let mut done = done_before(&on);
    while done < u64::from(count).min(MAX_MESSAGES) {
        if done > 0 && flags & WAIT_FOR_ONE != 0 {
            flags |= flag::DONTWAIT;
        }
        let at = address.wrapping_add(done * MANY_BYTES);
        match receive_one(&on, at, flags, done).await {
            Ok(()) => done += 1,
            Err(error) => return done_or(done, error),
        }
        note_done(&on, done);
        if deadline_ns.is_some_and(|deadline_ns| time::now_ns() >= deadline_ns) {
            break;
        }
    }
    Ok(done)
}

async fn receive_one(on: &On, address: u64, flags: u32, done: u64) -> Result<(), Errno> {
    let mut header = Header::fetch(on.who(), address)?;
    let mut to = Receiver { buffer: take(&mut header.buffer), ..Receiver::default() };
    let mut parcel = Parcel::default();
    let bytes = match receive_now(on, &header, &mut to, &mut parcel, flags) {
        Err(Errno::EAGAIN) if !is_nonblocking(&on.file, flags) => receive_later(on, &header, to, flags, done).await?,
        result => {
            let bytes = result?;
            header.report(on, &parcel, flags)?;
            bytes
        }
    };
    user::store(on.who(), address.wrapping_add(MANY_LENGTH), &(bytes as u32).to_le_bytes())
}
