//! Sending and receiving: sendto, recvfrom, sendmsg, recvmsg, sendmmsg, recvmmsg.

use super::{Kind, connect::find, socket_of};
use crate::{
    base::{Base, Flow},
    calls::task,
    keep::records::Note,
    memory::{
        self as user,
        address::{self, Address},
        buffer::UserBuffer,
    },
    objects::{
        OpenFile, Operation,
        messages::{self, Task, is_nonblocking},
        socket,
    },
    pipes::{
        World,
        packets::{Receiver, Results},
    },
    processes::Process,
    sockets::{Socket, names::Names},
};
use abi::{Endpoint, Errno};
use alloc::rc::Rc;
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
    process: Rc<Process>,
    file: Rc<OpenFile>,
    socket: Rc<Socket>,
}

impl On {
    /// The socket behind a descriptor. `ENOTSOCK`, `EBADF`.
    pub fn new(
        base: &'static Base,
        names: &'static Rc<Names>,
        process: &Rc<Process>,
        descriptor: i32,
    ) -> Result<On, Errno> {
        let (file, socket) = socket_of(process, descriptor)?;
        Ok(On { base, names, process: process.clone(), file, socket })
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

/// `struct msghdr`, as far as it matters here.
struct Header {
    address: u64,
    name_address: u64,
    name_bytes: u32,
    control_bytes: u64,
    buffer: UserBuffer,
}

impl Header {
    /// That of a program. `EFAULT`, `EINVAL`; `EMSGSIZE`: too many pieces.
    fn fetch(who: Endpoint, address: u64) -> Result<Header, Errno> {
        let [name_address, name_bytes, pieces, count, _, control_bytes] = user::fetch_words::<6>(who, address)?;
        if count > user::IOV_MAX {
            return Err(Errno::EMSGSIZE);
        }
        let buffer = user::vector(who, pieces, count)?;
        Ok(Header { address, name_address, name_bytes: name_bytes as u32, control_bytes, buffer })
    }

    /// The name to send to. `EOPNOTSUPP`: there is a control message.
    fn to(&self, on: &On) -> Result<Option<Address>, Errno> {
        if self.control_bytes > 0 { Err(Errno::EOPNOTSUPP) } else { on.to(self.name_address, self.name_bytes as i32) }
    }

    fn receiver(self) -> Receiver {
        let Header { address, name_address, name_bytes, buffer, .. } = self;
        Receiver { buffer, results: Results::Header { address, name_address, name_bytes }, whole_length: false }
    }
}

/// sendto.
pub fn send_to(on: &On, mut buffer: UserBuffer, flags: u32, [address, bytes]: [u64; 2]) -> Result<Flow, Errno> {
    let to = on.to(address, bytes as i32)?;
    send(on, &mut buffer, flags, to)
}

/// sendmsg. `EOPNOTSUPP`: with a control message.
pub fn send_message(on: &On, address: u64, flags: u32) -> Result<Flow, Errno> {
    let mut header = Header::fetch(on.who(), address)?;
    let to = header.to(on)?;
    send(on, &mut header.buffer, flags, to)
}

fn send(on: &On, buffer: &mut UserBuffer, flags: u32, to: Option<Address>) -> Result<Flow, Errno> {
    match to {
        Some(to) => {
            let (on, mut buffer) = (on.clone(), core::mem::take(buffer));
            task(async move { send_in_task(&on, &mut buffer, flags, Some(to)).await })
        }
        None if on.socket.kind() == Kind::Stream => socket::send(&on.operation(), &on.socket, buffer, flags),
        None => messages::send(&on.operation(), &on.socket, buffer, flags),
    }
}

/// Sends a message, of a socket that keeps their boundaries, to its peer or to the socket of a name.
async fn send_in_task(on: &On, buffer: &mut UserBuffer, flags: u32, to: Option<Address>) -> Result<u64, Errno> {
    let sending = Task::new(&on.operation(), on.socket.record().send_ns);
    let pipe = match to {
        Some(to) => {
            let target = find(on.base.files(), on.names, &on.process, &to, Kind::Datagrams).await?;
            on.socket.outgoing_to(&target)?
        }
        None => on.socket.outgoing()?,
    };
    sending.send(&pipe, buffer, &on.socket.name(), is_nonblocking(&on.file, flags)).await
}

/// recvfrom.
pub fn receive_from(
    on: &On,
    buffer: UserBuffer,
    flags: u32,
    [address, length_address]: [u64; 2],
) -> Result<Flow, Errno> {
    let results = if address == 0 { Results::Nowhere } else { Results::Name { address, length_address } };
    receive(on, Receiver { buffer, results, whole_length: false }, flags)
}

/// recvmsg.
pub fn receive_message(on: &On, address: u64, flags: u32) -> Result<Flow, Errno> {
    receive(on, Header::fetch(on.who(), address)?.receiver(), flags)
}

/// What is known before a message comes: of a stream the sender's name; else that there is none, as at the end.
fn prepare(on: &On, to: &Receiver) -> Result<(), Errno> {
    match (on.socket.kind(), to.results) {
        (Kind::Stream, results) => on.base.report(on.who(), &results, &on.socket.peer_name(), false),
        (_, results @ Results::Header { .. }) => on.base.report(on.who(), &results, &Address::of_length(0), false),
        _ => Ok(()),
    }
}

fn receive(on: &On, mut to: Receiver, flags: u32) -> Result<Flow, Errno> {
    prepare(on, &to)?;
    match on.socket.kind() {
        Kind::Stream => socket::receive(&on.operation(), &on.socket, &mut to.buffer, flags),
        _ => messages::receive(&on.operation(), &on.socket, to, flags),
    }
}

/// How many messages a predecessor has sent or received for the call in progress.
fn done_before(on: &On) -> u64 {
    match on.process.caller.noted() {
        Some(Note::Moved(done)) => done,
        _ => 0,
    }
}

/// The result of a call for several messages that ends with `error`: those that went count more.
fn done_or(done: u64, error: Errno) -> Result<u64, Errno> {
    if done > 0 { Ok(done) } else { Err(error) }
}

/// sendmmsg. `EOPNOTSUPP`: of a stream.
pub async fn send_many(on: On, address: u64, count: u32, flags: u32) -> Result<u64, Errno> {
    if on.socket.kind() == Kind::Stream {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut done = done_before(&on);
    while done < u64::from(count).min(MAX_MESSAGES) {
        let at = address.wrapping_add(done * MANY_BYTES);
        match send_one(&on, at, flags).await {
            Ok(()) => done += 1,
            Err(error) => return done_or(done, error),
        }
        on.process.caller.note(Note::Moved(done));
    }
    Ok(done)
}

async fn send_one(on: &On, address: u64, flags: u32) -> Result<(), Errno> {
    let mut header = Header::fetch(on.who(), address)?;
    let to = header.to(on)?;
    let bytes = send_in_task(on, &mut header.buffer, flags, to).await?;
    user::store(on.who(), address.wrapping_add(MANY_LENGTH), &(bytes as u32).to_le_bytes())
}

/// recvmmsg. The deadline is looked at between two messages, as on Linux. `EOPNOTSUPP`: of a stream.
pub async fn receive_many(
    on: On,
    address: u64,
    count: u32,
    mut flags: u32,
    deadline_ns: Option<u64>,
) -> Result<u64, Errno> {
    if on.socket.kind() == Kind::Stream {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut done = done_before(&on);
    while done < u64::from(count).min(MAX_MESSAGES) {
        if done > 0 && flags & WAIT_FOR_ONE != 0 {
            flags |= socket::flag::DONTWAIT;
        }
        let at = address.wrapping_add(done * MANY_BYTES);
        match receive_one(&on, at, flags).await {
            Ok(()) => done += 1,
            Err(error) => return done_or(done, error),
        }
        on.process.caller.note(Note::Moved(done));
        if deadline_ns.is_some_and(|deadline_ns| time::now_ns() >= deadline_ns) {
            break;
        }
    }
    Ok(done)
}

async fn receive_one(on: &On, address: u64, flags: u32) -> Result<(), Errno> {
    let mut to = Header::fetch(on.who(), address)?.receiver();
    prepare(on, &to)?;
    let incoming = on.socket.incoming().ok_or(Errno::ENOTCONN)?;
    to.whole_length = flags & socket::flag::TRUNC != 0;
    let receiving = Task::new(&on.operation(), on.socket.record().receive_ns);
    let bytes = match on.socket.is_deaf() {
        true => 0,
        false => {
            let peeks = flags & socket::flag::PEEK != 0;
            receiving.receive(incoming, &mut to, peeks, is_nonblocking(&on.file, flags)).await?
        }
    };
    user::store(on.who(), address.wrapping_add(MANY_LENGTH), &(bytes as u32).to_le_bytes())
}
