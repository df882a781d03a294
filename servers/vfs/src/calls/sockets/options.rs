//! getsockopt and setsockopt.

use super::{SOL_SOCKET, socket_of};
use crate::{
    base::Base,
    memory::{self as user, address::AF_UNIX},
    processes::Process,
    sockets::Socket,
};
use abi::{Capability, Endpoint, Errno};

/// Options of `SOL_SOCKET`.
mod option {
    pub const REUSEADDR: u32 = 2;
    pub const TYPE: u32 = 3;
    pub const ERROR: u32 = 4;
    pub const DONTROUTE: u32 = 5;
    pub const BROADCAST: u32 = 6;
    pub const SNDBUF: u32 = 7;
    pub const RCVBUF: u32 = 8;
    pub const KEEPALIVE: u32 = 9;
    pub const OOBINLINE: u32 = 10;
    pub const REUSEPORT: u32 = 15;
    pub const LINGER: u32 = 13;
    pub use crate::sockets::{PASSCRED, PASSSEC};
    pub const PEERCRED: u32 = 17;
    pub const RCVLOWAT: u32 = 18;
    pub const SNDLOWAT: u32 = 19;
    pub const RCVTIMEO: u32 = 20;
    pub const SNDTIMEO: u32 = 21;
    pub const ACCEPTCONN: u32 = 30;
    pub const SNDBUFFORCE: u32 = 32;
    pub const RCVBUFFORCE: u32 = 33;
    pub const PROTOCOL: u32 = 38;
    pub const DOMAIN: u32 = 39;
    pub const COOKIE: u32 = 57;
    pub const PEERGROUPS: u32 = 59;
}

/// Bounds of the sizes of buffers, as Linux has them. It counts twice what it is told.
const MAX_BUFFER: u32 = abi::limits::SOCKET_BUFFER;
const MAX_FORCED: u32 = i32::MAX as u32 / 2;
const MIN_SEND_BUFFER: u32 = 4608;
const MIN_RECEIVE_BUFFER: u32 = 2304;

const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_US: u64 = 1000;
const US_PER_S: u64 = 1_000_000;

/// Whether an option is on or off, and nothing else.
fn is_switch(name: u32) -> bool {
    use option::*;
    matches!(name, REUSEADDR | DONTROUTE | BROADCAST | KEEPALIVE | OOBINLINE | REUSEPORT | PASSCRED | PASSSEC)
}

/// getsockopt.
pub fn get(
    base: &Base,
    process: &Process,
    [descriptor, level, name, address, length_address]: [u64; 5],
) -> Result<u64, Errno> {
    let (_, socket) = socket_of(process, descriptor as i32)?;
    let who = process.caller.endpoint;
    let mut room = [0; 4];
    user::fetch(who, length_address, &mut room)?;
    let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| Errno::EINVAL)?;
    if level as u32 != SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP);
    }
    if name as u32 == option::PEERGROUPS {
        return peer_groups(who, &socket, address, (length_address, room));
    }
    let mut bytes = [0; 16];
    let length = value(base, &socket, name as u32, &mut bytes)?.min(room);
    user::store(who, address, &bytes[..length])?;
    user::store(who, length_address, &(length as u32).to_le_bytes())?;
    Ok(0)
}

/// Writes the groups of a socket's peer, and their length in place of the room. `ENODATA`: it has no peer; `ERANGE`: too little room.
fn peer_groups(
    who: Endpoint,
    socket: &Socket,
    address: u64,
    (length_address, room): (u64, usize),
) -> Result<u64, Errno> {
    let groups = socket.peer_groups()?;
    user::store(who, length_address, &(groups.len() as u32).to_le_bytes())?;
    if room < groups.len() {
        return Err(Errno::ERANGE);
    }
    user::store(who, address, &groups)?;
    Ok(0)
}

/// Writes the value of an option to `bytes`. Returns its length. `ENOPROTOOPT`: there is no such option.
fn value(base: &Base, socket: &Socket, name: u32, bytes: &mut [u8; 16]) -> Result<usize, Errno> {
    let record = socket.record();
    let number = match name {
        option::TYPE => record.kind as u32,
        option::DOMAIN => AF_UNIX,
        option::PROTOCOL => 0,
        option::SNDBUF => record.send_bytes,
        option::RCVBUF => record.receive_bytes,
        option::ACCEPTCONN => record.listening as u32,
        option::ERROR if socket.connection().is_some_and(|connection| connection.incoming().take_reset(base)) => {
            Errno::ECONNRESET.0 as u32
        }
        option::ERROR => 0,
        option::PEERCRED => {
            let words = [record.peer.pid, record.peer.uid, record.peer.gid].map(u32::to_le_bytes);
            bytes[..12].copy_from_slice(words.as_flattened());
            return Ok(12);
        }
        option::RCVLOWAT | option::SNDLOWAT => 1,
        option::LINGER => return Ok(8),
        option::COOKIE => {
            bytes[..8].copy_from_slice(&record.inode.to_le_bytes());
            return Ok(8);
        }
        option::RCVTIMEO => return Ok(put_time(record.receive_ns, bytes)),
        option::SNDTIMEO => return Ok(put_time(record.send_ns, bytes)),
        switch if is_switch(switch) => socket.has_option(switch) as u32,
        _ => return Err(Errno::ENOPROTOOPT),
    };
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Ok(4)
}

/// Writes a time as `struct timeval`.
fn put_time(time_ns: u64, bytes: &mut [u8; 16]) -> usize {
    let words = [time_ns / NS_PER_S, time_ns % NS_PER_S / NS_PER_US].map(u64::to_le_bytes);
    bytes.copy_from_slice(words.as_flattened());
    bytes.len()
}

/// setsockopt. Sizes of buffers are remembered, and change nothing.
pub fn set(process: &Process, [descriptor, level, name, address, length]: [u64; 5]) -> Result<u64, Errno> {
    let (_, socket) = socket_of(process, descriptor as i32)?;
    let (who, name, length) = (process.caller.endpoint, name as u32, length as i32);
    if level as u32 != SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP);
    }
    if length < size_of::<u32>() as i32 {
        return Err(Errno::EINVAL);
    }
    let mut value = [0; 4];
    user::fetch(who, address, &mut value)?;
    let value = u32::from_le_bytes(value);
    match name {
        option::SNDBUFFORCE | option::RCVBUFFORCE if !process.caller.credentials().has(Capability::NetAdmin) => {
            return Err(Errno::EPERM);
        }
        option::LINGER if length < 8 => return Err(Errno::EINVAL),
        // Nothing is left to send when a socket is closed; bytes are received as they come.
        option::LINGER | option::RCVLOWAT => {}
        option::SNDBUFFORCE => socket.update(|own| own.send_bytes = (value.min(MAX_FORCED) * 2).max(MIN_SEND_BUFFER)),
        option::RCVBUFFORCE => {
            socket.update(|own| own.receive_bytes = (value.min(MAX_FORCED) * 2).max(MIN_RECEIVE_BUFFER));
        }
        option::SNDBUF => socket.update(|own| own.send_bytes = (value.min(MAX_BUFFER) * 2).max(MIN_SEND_BUFFER)),
        option::RCVBUF => socket.update(|own| own.receive_bytes = (value.min(MAX_BUFFER) * 2).max(MIN_RECEIVE_BUFFER)),
        option::RCVTIMEO => {
            let limit_ns = fetch_time(who, address, length)?;
            socket.update(|own| own.receive_ns = limit_ns);
        }
        option::SNDTIMEO => {
            let limit_ns = fetch_time(who, address, length)?;
            socket.update(|own| own.send_ns = limit_ns);
        }
        switch if is_switch(switch) => {
            socket.switch(switch, value != 0);
        }
        _ => return Err(Errno::ENOPROTOOPT),
    }
    Ok(0)
}

/// A limit of time, as `struct timeval`, in nanoseconds; 0: none. `EINVAL`: too short; `EDOM`: not a time.
fn fetch_time(who: Endpoint, address: u64, length: i32) -> Result<u64, Errno> {
    if length < 16 {
        return Err(Errno::EINVAL);
    }
    let [seconds, microseconds] = user::fetch_words::<2>(who, address)?;
    match seconds {
        _ if microseconds >= US_PER_S => Err(Errno::EDOM),
        // As on Linux: a time before now means the shortest wait.
        seconds if seconds as i64 <= -1 => Ok(1),
        seconds => Ok(seconds.saturating_mul(NS_PER_S).saturating_add(microseconds * NS_PER_US)),
    }
}
