//! Options of a socket that are on or off, what it is told of its peer, and the record that it begins with.

use super::{Kind, Socket};
use crate::{
    callers::save_groups,
    keep::{
        Text,
        records::{NOWHERE, NodeRecord, SocketRecord, Ucred},
    },
    pipes::pool::Pipes,
};
use abi::Errno;
use alloc::vec::Vec;

/// Bytes of a socket's buffers unless told otherwise, as Linux reports them.
const DEFAULT_BUFFER: u32 = abi::limits::SOCKET_BUFFER;
/// `SO_PASSCRED`: the sender's ids go with what it receives and sends.
pub const PASSCRED: u32 = 16;
/// `SO_PASSSEC`.
pub const PASSSEC: u32 = 34;

/// The bit of an option that is on or off.
fn bit_of(option: u32) -> u32 {
    if option == PASSSEC { 0 } else { option }
}

/// Who a peer is told to be.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// Its ids.
    pub ids: Ucred,
    /// Its supplementary groups.
    pub groups: &'a [u32],
}

impl Socket {
    /// Turns an option on or off that is a switch.
    pub fn switch(&self, option: u32, on: bool) {
        let bit = bit_of(option);
        self.record.update(|own| own.options = own.options & !(1 << bit) | (on as u32) << bit);
        self.apply_options();
    }

    /// Whether a switch is on.
    pub fn has_option(&self, option: u32) -> bool {
        self.record().options >> bit_of(option) & 1 != 0
    }

    /// Has its pipes do what its options say.
    pub(super) fn apply_options(&self) {
        let identified = self.has_option(PASSCRED);
        self.incoming().into_iter().for_each(|pipe| pipe.set_asks(identified));
        if let Some(connection) = self.connection() {
            connection.outgoing().set_tells(identified);
        }
    }

    /// Sets the supplementary groups of its peer. `ENOMEM`.
    pub(super) fn set_peer_groups(&self, groups: &[u32]) -> Result<(), Errno> {
        let text = save_groups(self.store(), groups, self.record().user)?;
        self.store().release_text(self.record().peer_groups);
        self.record.update(|own| own.peer_groups = text);
        Ok(())
    }

    /// The supplementary groups of its peer, four bytes each. `ENODATA`: it has none.
    pub fn peer_groups(&self) -> Result<Vec<u8>, Errno> {
        match self.record().peer {
            Ucred::NONE => Err(Errno::ENODATA),
            _ => Ok(self.store().text(self.record().peer_groups)),
        }
    }
}

/// The record of a socket that is only made.
pub(super) fn blank(kind: Kind, user: u32, pipes: &Pipes) -> SocketRecord {
    SocketRecord {
        kind: kind.number(),
        listening: false,
        bound: false,
        reads: true,
        writes: true,
        options: 0,
        incoming: NOWHERE,
        outgoing: NOWHERE,
        backlog: 0,
        first: NOWHERE,
        next: NOWHERE,
        peer_inode: 0,
        inode: pipes.new_inodes(1),
        user,
        name: Text::EMPTY,
        peer_name: Text::EMPTY,
        node: NodeRecord::NONE,
        peer: Ucred::NONE,
        peer_groups: Text::EMPTY,
        receive_ns: 0,
        send_ns: 0,
        receive_bytes: DEFAULT_BUFFER,
        send_bytes: DEFAULT_BUFFER,
    }
}
