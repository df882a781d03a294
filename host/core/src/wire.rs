//! What the library and the broker say to each other, one packet of a Unix socket each.
//!
//! A request is the number of a call, arguments as the C function has them, and bytes: a descriptor, a name. A reply is a result, bytes and
//! open files. Everything is little-endian; a packet of another form is refused.

use m3ipc::error::Error;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::PathBuf;

/// Begins every packet; its last digit is the version.
const MAGIC: u32 = 0x4d33_0001;
/// Arguments of a request.
pub const ARGUMENTS: usize = 6;
/// Limit of a packet's bytes behind its head.
pub const MAX_BYTES: usize = 8 << 10;
/// Limit of the files in a packet.
const MAX_FILES: usize = 2;

/// Calls that are no calls of C programs.
pub mod internal {
    /// Where am I bound, and which program is this? The reply has board and desks.
    pub const JOIN: u32 = 0x100;
    /// The box that the caller has in common with the process in a slot.
    pub const BOX: u32 = 0x101;
    /// Which containers are there?
    pub const CONTAINERS: u32 = 0x102;
    /// A buffer for this address, of so many bytes, of this program. The reply has its memory.
    pub const ALLOCATE: u32 = 0x103;
    /// The buffer at this address is freed.
    pub const FREE: u32 = 0x104;
    /// The memory of a buffer, by container, its group leader's slot, place and number.
    pub const BUFFER: u32 = 0x105;
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// [`m3ipc::call::Call`], or one of [`internal`].
    pub call: u32,
    /// Not 0 when a former broker may have done it already.
    pub is_repeated: u32,
    /// Comes back in the reply.
    pub number: u32,
    /// The arguments.
    pub arguments: [i64; ARGUMENTS],
    /// Descriptor or name.
    pub bytes: Vec<u8>,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Of the request.
    pub number: u32,
    /// What the call has returned. Endpoints may be negative, so errors are no values.
    pub result: Result<i64, Error>,
    /// Descriptor or text.
    pub bytes: Vec<u8>,
}

impl Request {
    /// Returns the packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut packet = Vec::with_capacity(64 + self.bytes.len());
        for word in [MAGIC, self.call, self.is_repeated, self.number] {
            packet.extend_from_slice(&word.to_le_bytes());
        }
        for argument in self.arguments {
            packet.extend_from_slice(&argument.to_le_bytes());
        }
        packet.extend_from_slice(&self.bytes);
        packet
    }

    /// Reads a packet.
    pub fn decode(packet: &[u8]) -> Option<Request> {
        let mut reader = Reader(packet);
        let magic = reader.u32()?;
        let (call, is_repeated, number) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let mut arguments = [0; ARGUMENTS];
        for argument in &mut arguments {
            *argument = reader.i64()?;
        }
        (magic == MAGIC).then(|| Request { call, is_repeated, number, arguments, bytes: reader.0.to_vec() })
    }
}

impl Reply {
    /// Returns the packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut packet = Vec::with_capacity(24 + self.bytes.len());
        let error = self.result.err().map_or(0, |error| error as u32);
        for word in [MAGIC, self.number, error, 0] {
            packet.extend_from_slice(&word.to_le_bytes());
        }
        packet.extend_from_slice(&self.result.unwrap_or(0).to_le_bytes());
        packet.extend_from_slice(&self.bytes);
        packet
    }

    /// Reads a packet. An error without a name is taken for `Invalid`.
    pub fn decode(packet: &[u8]) -> Option<Reply> {
        let mut reader = Reader(packet);
        let (magic, number, error, _) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        let value = reader.i64()?;
        let named = || i32::try_from(error).ok().and_then(|error| Error::from_result(error.wrapping_neg()));
        let result = if error == 0 { Ok(value) } else { Err(named().unwrap_or(Error::Invalid)) };
        (magic == MAGIC).then(|| Reply { number, result, bytes: reader.0.to_vec() })
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn i64(&mut self) -> Option<i64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i64::from_le_bytes(*word))
    }
}

/// Sends a packet with open files.
///
/// # Errors
/// Those of `sendmsg(2)`.
pub fn send(socket: BorrowedFd, packet: &[u8], files: &[BorrowedFd], flags: SendFlags) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::INVAL);
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(packet)], &mut ancillary, flags | SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a packet and the open files with it; no bytes: the other end is closed.
///
/// # Errors
/// Those of `recvmsg(2)`.
pub fn receive(socket: BorrowedFd, flags: RecvFlags) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
    let mut packet = vec![0; MAX_BYTES + 64];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut packet)];
    let received = rustix::net::recvmsg(socket, &mut parts, &mut ancillary, flags | RecvFlags::CMSG_CLOEXEC)?;
    packet.truncate(received.bytes);
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            files.extend(fds);
        }
    }
    Ok((packet, files))
}

/// Returns where the broker listens: `$M3IPC_SOCKET`, or `m3ipcd.sock` in the folder for run-time files of this user.
pub fn socket_path() -> PathBuf {
    if let Some(path) = std::env::var_os("M3IPC_SOCKET") {
        return PathBuf::from(path);
    }
    let uid = rustix::process::getuid().as_raw();
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = own.unwrap_or_else(|| match uid {
        0 => PathBuf::from("/run"),
        _ => PathBuf::from(format!("/run/user/{uid}")),
    });
    folder.join("m3ipcd.sock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back() {
        let request =
            Request { call: 8, is_repeated: 1, number: 7, arguments: [1, -2, 3, i64::MIN, 5, 6], bytes: vec![1, 2, 3] };
        assert_eq!(Request::decode(&request.encode()), Some(request));
        for result in [Ok(-1), Ok(i64::MAX), Err(Error::NotBound)] {
            let reply = Reply { number: 7, result, bytes: vec![9] };
            assert_eq!(Reply::decode(&reply.encode()), Some(reply));
        }
    }

    #[test]
    fn garbage_is_refused() {
        let good =
            Request { call: 8, is_repeated: 0, number: 0, arguments: [0; ARGUMENTS], bytes: Vec::new() }.encode();
        for length in 0..good.len() {
            assert_eq!(Request::decode(&good[..length]), None);
        }
        let mut other = good;
        other[0] ^= 1;
        assert_eq!(Request::decode(&other), None);
        assert_eq!(Reply::decode(&other), None);
    }
}
