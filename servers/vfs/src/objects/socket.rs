//! Sockets as open files: read and write are receive and send without flags.

use super::{FIONREAD, Inheritance, Kind, Object, Operation, done, no_position, pipe};
use crate::{
    base::{Flow, closing::Closing},
    callers::permission::S_IFSOCK,
    events::{
        Watchers,
        poll::{OF_READERS, OF_WRITERS},
    },
    files::{stat::Summary, vnode::NodeRef},
    keep::records::ObjectRecord,
    memory as user,
    memory::buffer::UserBuffer,
    sockets::Socket,
};
use abi::Errno;

/// Flags of send and recv.
pub mod flag {
    /// The call does not wait.
    pub const DONTWAIT: u32 = 0x40;
    /// No SIGPIPE.
    pub const NOSIGNAL: u32 = 0x4000;
    /// Without meaning for a local stream: EOR, DONTROUTE, CMSG_CLOEXEC.
    pub const IGNORED: u32 = 0x80 | 0x4 | 0x4000_0000;
}

impl Object for Socket {
    fn record(&self) -> ObjectRecord {
        let minor = self.outgoing.record() as u32 | (self.reads() as u32) << 16 | (self.writes() as u32) << 17;
        ObjectRecord { kind: Self::NUMBER, place: self.incoming.record(), minor, more: self.inode }
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: self.inode, mode: S_IFSOCK | 0o777, ..Summary::default() })
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        receive(on, self, buffer, 0)
    }

    fn write(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        send(on, self, buffer, 0)
    }

    fn control(&self, on: &Operation, request: u32, argument: u64) -> Result<Flow, Errno> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY);
        }
        user::store(on.caller.endpoint, argument, &(self.incoming.bytes() as u32).to_le_bytes())?;
        done(0)
    }

    fn poll(&self) -> u32 {
        self.ready()
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((&self.incoming.watchers, OF_READERS)), Some((&self.outgoing.watchers, OF_WRITERS))]
    }

    fn close(&self, closing: &Closing) {
        self.shut_down(closing, true, true);
    }
}

impl Kind for Socket {
    const NUMBER: u8 = 8;

    fn restore(record: &ObjectRecord, _: Option<NodeRef>, from: &mut dyn Inheritance) -> Option<Self> {
        let ends = (record.minor >> 16 & 1 != 0, record.minor >> 17 & 1 != 0);
        from.has_inode(record.more);
        Some(Socket::new(from.pipe(record.place)?, from.pipe(record.minor as u16)?, record.more, ends))
    }
}

/// Sends what is in the buffer.
pub fn send(on: &Operation, socket: &Socket, buffer: &mut UserBuffer, flags: u32) -> Result<Flow, Errno> {
    if flags & !(flag::DONTWAIT | flag::NOSIGNAL | flag::IGNORED) != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let quiet = flags & flag::NOSIGNAL != 0;
    if !socket.writes() {
        return pipe::broken(on.base, on.caller, quiet);
    }
    let nonblocking = on.file.nonblocking() || flags & flag::DONTWAIT != 0;
    pipe::write(on.base, on.caller, &socket.outgoing, buffer, nonblocking, quiet)
}

/// Receives what has come.
pub fn receive(on: &Operation, socket: &Socket, buffer: &mut UserBuffer, flags: u32) -> Result<Flow, Errno> {
    if flags & !(flag::DONTWAIT | flag::IGNORED) != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if !socket.reads() {
        return done(0);
    }
    let nonblocking = on.file.nonblocking() || flags & flag::DONTWAIT != 0;
    pipe::read(on.base, on.caller, &socket.incoming, buffer, nonblocking)
}
