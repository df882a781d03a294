//! The calls on sockets. Sockets are local ones (`AF_UNIX`); another family would come in at [`Family::of`].
//!
//! Neighbours: `connect` (names and connections), `messages` (sending and receiving), `control` (what goes with messages),
//! `options`.

mod connect;
mod control;
mod messages;
mod options;

use super::{Changes::First, Entry, call, call::Call, change, descriptors::give_pair, done, task};
use crate::{
    base::Base,
    callers::{Caller, permission::Credentials},
    keep::records::Ucred,
    memory::address::AF_UNIX,
    objects::{O_CLOEXEC, O_NONBLOCK, O_RDWR, OpenFile, socket::SocketFile},
    processes::Process,
    sockets::{Kind, Socket, Who},
};
use abi::{Errno, linux::nr};
use alloc::{rc::Rc, vec::Vec};
use messages::On;

const SOL_SOCKET: u32 = 1;

const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const SOCK_RAW: u32 = 3;
const SOCK_SEQPACKET: u32 = 5;
/// Types are at most this.
const SOCK_PACKET: u32 = 10;
const SOCK_TYPES: u32 = 0xf;

pub(super) const CALLS: &[Entry] = &[
    call(nr::SOCKET, |c| done(socket(c.base(), c.process, c.first()))),
    call(nr::SOCKETPAIR, |c| done(socketpair(c.base(), c.process, c.first()))),
    change(nr::BIND, First, |c| connect::bind(c.base(), c.sockets(), c.process, c.int(0), c.words[1], c.int(2))),
    call(nr::LISTEN, |c| done(connect::listen(c.process, c.int(0), c.flags(1)))),
    call(nr::CONNECT, |c| connect::connect(c.base(), c.sockets(), c.process, c.int(0), c.words[1], c.int(2))),
    call(nr::ACCEPT, |c| connect::accept(c.base(), c.in_flight(), c.process, c.int(0), [c.words[1], c.words[2]], 0)),
    call(nr::ACCEPT4, |c| {
        connect::accept(c.base(), c.in_flight(), c.process, c.int(0), [c.words[1], c.words[2]], c.flags(3))
    }),
    call(nr::SENDTO, |c| messages::send_to(&on(c)?, c.buffer(1)?, c.flags(3), [c.words[4], c.words[5]])),
    call(nr::RECVFROM, |c| messages::receive_from(&on(c)?, c.buffer(1)?, c.flags(3), [c.words[4], c.words[5]])),
    call(nr::SENDMSG, |c| messages::send_message(&on(c)?, c.words[1], c.flags(2))),
    call(nr::RECVMSG, |c| messages::receive_message(&on(c)?, c.words[1], c.flags(2))),
    call(nr::SENDMMSG, |c| task(messages::send_many(on(c)?, c.words[1], c.flags(2), c.flags(3)))),
    call(nr::RECVMMSG, |c| task(messages::receive_many(on(c)?, c.words[1], c.flags(2), c.flags(3), c.timespec(4)?))),
    call(nr::SHUTDOWN, |c| done(shut_down(c.process, c.int(0), c.flags(1)))),
    call(nr::GETSOCKOPT, |c| done(options::get(c.base(), c.process, c.first()))),
    call(nr::SETSOCKOPT, |c| done(options::set(c.process, c.first()))),
    call(nr::GETSOCKNAME, |c| done(connect::own_name(c.process, c.int(0), c.words[1], c.words[2]))),
    call(nr::GETPEERNAME, |c| done(connect::peer_name(c.process, c.int(0), c.words[1], c.words[2]))),
];

/// The socket of argument 0, and what else sending and receiving need.
fn on(c: &Call) -> Result<On, Errno> {
    On::new(c)
}

/// An address family that vfs has sockets of.
enum Family {
    Unix,
}

impl Family {
    /// The family with this number. `EAFNOSUPPORT`.
    fn of(domain: u32) -> Result<Family, Errno> {
        if domain == AF_UNIX { Ok(Family::Unix) } else { Err(Errno::EAFNOSUPPORT) }
    }
}

/// The arguments of socket and socketpair: type, and flags of the new descriptors. `EINVAL`, `EAFNOSUPPORT`, `ESOCKTNOSUPPORT`,
/// `EPROTONOSUPPORT`.
fn type_and_flags(domain: u64, kind: u64, protocol: u64) -> Result<(Kind, u32), Errno> {
    let (kind, flags) = (kind as u32 & SOCK_TYPES, kind as u32 & !SOCK_TYPES);
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 || kind > SOCK_PACKET {
        return Err(Errno::EINVAL);
    }
    let Family::Unix = Family::of(domain as u32)?;
    match (kind, protocol as u32) {
        (_, protocol) if protocol != 0 && protocol != AF_UNIX => Err(Errno::EPROTONOSUPPORT),
        (SOCK_STREAM, _) => Ok((Kind::Stream, flags)),
        (SOCK_DGRAM | SOCK_RAW, _) => Ok((Kind::Datagrams, flags)),
        (SOCK_SEQPACKET, _) => Ok((Kind::Packets, flags)),
        _ => Err(Errno::ESOCKTNOSUPPORT),
    }
}

/// socket.
fn socket(base: &Base, process: &Process, [domain, kind, protocol]: [u64; 3]) -> Result<u64, Errno> {
    let (kind, flags) = type_and_flags(domain, kind, protocol)?;
    let user = process.caller.user();
    let socket = Socket::new(base.closing(), base.pipes(), kind, user)?;
    process.insert(open(base, user, socket, flags)?, flags & O_CLOEXEC != 0)
}

/// socketpair.
fn socketpair(base: &Base, process: &Process, [domain, kind, protocol, address]: [u64; 4]) -> Result<u64, Errno> {
    let (kind, flags) = type_and_flags(domain, kind, protocol)?;
    let user = process.caller.user();
    let ids = process.caller.credentials();
    let [one, other] = Socket::pair(base.closing(), base.pipes(), kind, user, identity(&process.caller, &ids))?;
    let one = open(base, user, one, flags).inspect_err(|_| other.close())?;
    let other = open(base, user, other, flags)?;
    give_pair(process, [one, other], address, flags & O_CLOEXEC != 0)
}

/// Opens a socket for a user, with the flags that its descriptor is to have. `ENFILE`: it is closed. It is shown by its inode number.
fn open(base: &Base, user: u32, socket: Rc<Socket>, flags: u32) -> Result<Rc<OpenFile>, Errno> {
    OpenFile::new(base.closing(), user, SocketFile(socket), flags & O_NONBLOCK | O_RDWR, Vec::new())
}

/// shutdown.
fn shut_down(process: &Process, descriptor: i32, how: u32) -> Result<u64, Errno> {
    let (_, socket) = socket_of(process, descriptor)?;
    let (reads, writes) = match how {
        0 => (true, false),
        1 => (false, true),
        2 => (true, true),
        _ => return Err(Errno::EINVAL),
    };
    socket.shut_down(reads, writes);
    Ok(0)
}

/// What a caller's peer is told of it.
fn identity<'a>(caller: &Caller, ids: &'a Credentials) -> Who<'a> {
    Who { ids: Ucred { pid: caller.pid, uid: ids.euid, gid: ids.egid }, groups: &ids.groups }
}

/// The open file of a socket, and the socket. `ENOTSOCK` for other descriptors.
fn socket_of(process: &Process, descriptor: i32) -> Result<(Rc<OpenFile>, Rc<Socket>), Errno> {
    let file = process.file(descriptor)?;
    file.usable()?;
    let socket = file.object::<SocketFile>().map(|socket| socket.0.clone()).ok_or(Errno::ENOTSOCK)?;
    Ok((file, socket))
}
