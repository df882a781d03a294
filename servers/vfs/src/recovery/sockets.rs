//! Sockets as a predecessor has left them: with their pipes, names, and the connections that wait to be accepted.

use super::Restoration;
use crate::{
    keep::{
        Kept,
        records::{NOWHERE, SocketRecord},
    },
    objects::Inheritance,
    sockets::Socket,
};
use alloc::{
    collections::BTreeSet,
    rc::{Rc, Weak},
};

impl Restoration {
    /// The socket at this place, and what waits in it. `None`: its record is corrupt, or refers to nothing.
    pub(super) fn restore_socket(&mut self, place: u16) -> Option<Rc<Socket>> {
        if let Some(known) = self.sockets.get(&place) {
            return Some(known.clone());
        }
        let record = self.vfs.base().store().socket(place)?;
        let socket = self.make_socket(place, record)?;
        self.sockets.insert(place, socket.clone());
        let mut seen = BTreeSet::new();
        let mut next = if record.listening { record.first } else { NOWHERE };
        // A place that something has written into may lead back.
        while next != NOWHERE && seen.insert(next) {
            let waiting = self.vfs.base().store().socket(next)?;
            match self.make_socket(next, waiting) {
                Some(accepted) => socket.restore_pending(accepted),
                None => self.lost += 1,
            }
            next = waiting.next;
        }
        Some(socket)
    }

    fn make_socket(&mut self, place: u16, record: SocketRecord) -> Option<Rc<Socket>> {
        let mut pipe = |place| if place == NOWHERE { Some(None) } else { Inheritance::pipe(self, place).map(Some) };
        let pipes = [pipe(record.incoming)?, pipe(record.outgoing)?];
        let (base, names) = (self.vfs.base(), self.vfs.sockets());
        base.store().claim_socket(place, &record);
        base.pipes().has_inode(record.inode);
        let node = self.node(record.node);
        let socket = Socket::restore(base.closing(), Kept::new(base.store(), place.into(), record), pipes);
        socket.restore_name(names, node);
        Some(socket)
    }

    /// Connects datagram sockets again, when all sockets are restored. A place may have another socket by now.
    pub(super) fn connect_datagrams(&self) {
        for socket in self.sockets.values() {
            let SocketRecord { first, peer_inode, .. } = socket.record();
            let peer = self.sockets.get(&first).filter(|peer| peer.record().inode == peer_inode);
            if first != NOWHERE {
                socket.restore_peer(peer.map_or_else(Weak::new, Rc::downgrade));
            }
        }
    }
}
