//! The calls on sockets. There are pairs of connected local stream sockets (`socketpair`) and no others: no names, no control messages.

use super::{
    Entry, call,
    descriptors::{give_pair, numbered},
    done,
};
use crate::{
    base::{Base, Flow, closing::Closing},
    memory as user,
    memory::buffer::UserBuffer,
    objects::{
        File, O_CLOEXEC, O_NONBLOCK, O_RDWR, OpenFile, Operation,
        socket::{receive, send},
    },
    pipes::{DEFAULT_BYTES, Pipe},
    processes::Process,
    sockets::Socket,
};
use abi::{Errno, linux::nr};
use alloc::rc::Rc;

const AF_UNIX: u32 = 1;
const SOCK_STREAM: u32 = 1;
const SOCK_TYPES: u32 = 0xf;

mod option {
    pub const SOL_SOCKET: u32 = 1;
    pub const TYPE: u32 = 3;
    pub const ERROR: u32 = 4;
    pub const SNDBUF: u32 = 7;
    pub const RCVBUF: u32 = 8;
    pub const ACCEPTCONN: u32 = 30;
    pub const PROTOCOL: u32 = 38;
    pub const DOMAIN: u32 = 39;
}

/// `struct msghdr`, as far as it matters here.
struct Header {
    address: u64,
    name_bytes: u64,
    control_bytes: u64,
    buffer: UserBuffer,
}

pub(super) const CALLS: &[Entry] = &[
    call(nr::SOCKET, |_| Err(Errno::EAFNOSUPPORT)),
    call(nr::SOCKETPAIR, |c| done(socketpair(c.base(), c.process, c.first()))),
    call(nr::SENDTO, |c| send_to(c.base(), c.process, c.int(0), c.buffer(1)?, c.flags(3), c.words[5])),
    call(nr::RECVFROM, |c| receive_from(c.base(), c.process, c.int(0), c.buffer(1)?, c.flags(3), c.words[5])),
    call(nr::SENDMSG, |c| send_message(c.base(), c.process, c.int(0), c.words[1], c.flags(2))),
    call(nr::RECVMSG, |c| receive_message(c.base(), c.process, c.int(0), c.words[1], c.flags(2))),
    call(nr::SHUTDOWN, |c| done(shut_down(c.closing(), c.process, c.int(0), c.flags(1)))),
    call(nr::GETSOCKOPT, |c| done(socket_option(c.process, c.first()))),
    call(nr::SETSOCKOPT, |c| done(set_socket_option(c.process, c.int(0), c.flags(1), c.flags(2)))),
    call(nr::GETSOCKNAME, |c| done(socket_name(c.process, c.int(0), c.words[1], c.words[2]))),
    call(nr::GETPEERNAME, |c| done(socket_name(c.process, c.int(0), c.words[1], c.words[2]))),
];

/// socketpair.
fn socketpair(base: &Base, process: &Process, [domain, kind, protocol, address]: [u64; 4]) -> Result<u64, Errno> {
    let (kind, flags) = (kind as u32 & SOCK_TYPES, kind as u32 & !SOCK_TYPES);
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    match (domain as u32, kind, protocol as u32) {
        (AF_UNIX, SOCK_STREAM, 0 | AF_UNIX) => {}
        (AF_UNIX, SOCK_STREAM, _) => return Err(Errno::EPROTONOSUPPORT),
        (AF_UNIX, ..) => return Err(Errno::ESOCKTNOSUPPORT),
        _ => return Err(Errno::EAFNOSUPPORT),
    }
    let user = process.caller.user();
    let [one, other] = base.pipes().make_two(user)?;
    let inode = base.pipes().new_inodes(2);
    let open = |incoming: &Rc<Pipe>, outgoing: &Rc<Pipe>, inode: u64| {
        let socket = Socket::new(incoming.clone(), outgoing.clone(), inode, (true, true));
        let path = numbered("socket", inode)?;
        File::new(base.closing(), user, socket, flags & O_NONBLOCK | O_RDWR, path)
    };
    let pair = [open(&one, &other, inode)?, open(&other, &one, inode + 1)?];
    give_pair(process, pair, address, flags & O_CLOEXEC != 0)
}

/// sendto: there is nobody else to send to.
fn send_to(
    base: &'static Base,
    process: &Rc<Process>,
    descriptor: i32,
    buffer: UserBuffer,
    flags: u32,
    name_bytes: u64,
) -> Result<Flow, Errno> {
    let file = socket_of(process, descriptor)?;
    if name_bytes != 0 {
        return Err(Errno::EISCONN);
    }
    send_buffer(base, process, &file, buffer, flags)
}

/// recvfrom: the sender has no name.
fn receive_from(
    base: &'static Base,
    process: &Rc<Process>,
    descriptor: i32,
    buffer: UserBuffer,
    flags: u32,
    length_address: u64,
) -> Result<Flow, Errno> {
    let file = socket_of(process, descriptor)?;
    if length_address != 0 {
        user::store(process.caller.endpoint, length_address, &0u32.to_le_bytes())?;
    }
    receive_buffer(base, process, &file, buffer, flags)
}

/// sendmsg. `EOPNOTSUPP`: with a control message.
fn send_message(
    base: &'static Base,
    process: &Rc<Process>,
    descriptor: i32,
    address: u64,
    flags: u32,
) -> Result<Flow, Errno> {
    let file = socket_of(process, descriptor)?;
    let header = fetch_header(process, address)?;
    if header.control_bytes != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if header.name_bytes != 0 {
        return Err(Errno::EISCONN);
    }
    send_buffer(base, process, &file, header.buffer, flags)
}

/// recvmsg: there are never names, control messages or flags.
fn receive_message(
    base: &'static Base,
    process: &Rc<Process>,
    descriptor: i32,
    address: u64,
    flags: u32,
) -> Result<Flow, Errno> {
    const NAME_LENGTH: u64 = 8;
    const CONTROL_LENGTH: u64 = 40;
    const FLAGS: u64 = 48;
    let file = socket_of(process, descriptor)?;
    let header = fetch_header(process, address)?;
    let who = process.caller.endpoint;
    user::store(who, header.address + NAME_LENGTH, &0u32.to_le_bytes())?;
    user::store(who, header.address + CONTROL_LENGTH, &0u64.to_le_bytes())?;
    user::store(who, header.address + FLAGS, &0u32.to_le_bytes())?;
    receive_buffer(base, process, &file, header.buffer, flags)
}

fn send_buffer(
    base: &'static Base,
    process: &Process,
    file: &Rc<OpenFile>,
    mut buffer: UserBuffer,
    flags: u32,
) -> Result<Flow, Errno> {
    let on = Operation { base, caller: &process.caller, file };
    send(&on, socket(file)?, &mut buffer, flags)
}

fn receive_buffer(
    base: &'static Base,
    process: &Process,
    file: &Rc<OpenFile>,
    mut buffer: UserBuffer,
    flags: u32,
) -> Result<Flow, Errno> {
    let on = Operation { base, caller: &process.caller, file };
    receive(&on, socket(file)?, &mut buffer, flags)
}

/// shutdown.
fn shut_down(closing: &Rc<Closing>, process: &Process, descriptor: i32, how: u32) -> Result<u64, Errno> {
    let file = socket_of(process, descriptor)?;
    let (reads, writes) = match how {
        0 => (true, false),
        1 => (false, true),
        2 => (true, true),
        _ => return Err(Errno::EINVAL),
    };
    socket(&file)?.shut_down(closing, reads, writes);
    file.save_object();
    Ok(0)
}

/// getsockopt.
fn socket_option(
    process: &Process,
    [descriptor, level, name, address, length_address]: [u64; 5],
) -> Result<u64, Errno> {
    socket_of(process, descriptor as i32)?;
    let value = match (level as u32, name as u32) {
        (option::SOL_SOCKET, option::TYPE) => SOCK_STREAM,
        (option::SOL_SOCKET, option::DOMAIN) => AF_UNIX,
        (option::SOL_SOCKET, option::SNDBUF | option::RCVBUF) => DEFAULT_BYTES as u32,
        (option::SOL_SOCKET, option::ERROR | option::ACCEPTCONN | option::PROTOCOL) => 0,
        (option::SOL_SOCKET, _) => return Err(Errno::ENOPROTOOPT),
        _ => return Err(Errno::EOPNOTSUPP),
    };
    let mut room = [0; 4];
    user::fetch(process.caller.endpoint, length_address, &mut room)?;
    let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| Errno::EINVAL)?.min(4);
    user::store(process.caller.endpoint, address, &value.to_le_bytes()[..room])?;
    user::store(process.caller.endpoint, length_address, &(room as u32).to_le_bytes())?;
    Ok(0)
}

/// setsockopt: sizes of buffers are accepted and do nothing.
fn set_socket_option(process: &Process, descriptor: i32, level: u32, name: u32) -> Result<u64, Errno> {
    socket_of(process, descriptor)?;
    match (level, name) {
        (option::SOL_SOCKET, option::SNDBUF | option::RCVBUF) => Ok(0),
        (option::SOL_SOCKET, _) => Err(Errno::ENOPROTOOPT),
        _ => Err(Errno::EOPNOTSUPP),
    }
}

/// getsockname and getpeername: neither end has a name.
fn socket_name(process: &Process, descriptor: i32, address: u64, length_address: u64) -> Result<u64, Errno> {
    socket_of(process, descriptor)?;
    let mut room = [0; 4];
    user::fetch(process.caller.endpoint, length_address, &mut room)?;
    let name = (AF_UNIX as u16).to_le_bytes();
    let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| Errno::EINVAL)?.min(name.len());
    user::store(process.caller.endpoint, address, &name[..room])?;
    user::store(process.caller.endpoint, length_address, &(name.len() as u32).to_le_bytes())?;
    Ok(0)
}

fn socket(file: &OpenFile) -> Result<&Socket, Errno> {
    file.object().ok_or(Errno::ENOTSOCK)
}

/// The open file of a socket. `ENOTSOCK` for other descriptors.
fn socket_of(process: &Process, descriptor: i32) -> Result<Rc<OpenFile>, Errno> {
    let file = process.file(descriptor)?;
    socket(&file)?;
    Ok(file)
}

fn fetch_header(process: &Process, address: u64) -> Result<Header, Errno> {
    let who = process.caller.endpoint;
    let [_, name_bytes, pieces, count, _, control_bytes] = user::fetch_words::<6>(who, address)?;
    let name_bytes = name_bytes as u32 as u64;
    Ok(Header { address, name_bytes, control_bytes, buffer: user::vector(who, pieces, count)? })
}
