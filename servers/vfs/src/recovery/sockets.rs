//! Sockets as a predecessor has left them: with their pipes, names, and the connections that wait to be accepted.

use super::Restoration;
use crate::{
    keep::{
        Kept,
        records::{AncillaryRecord, CARRIED, NOWHERE, SocketRecord},
    },
    objects::{Inheritance, OpenFile, rights::Carried},
    pipes::{
        Pipe,
        ancillary::{Ancillary, Rights},
    },
    sockets::Socket,
};
use abi::Errno;
use alloc::{
    collections::BTreeSet,
    rc::{Rc, Weak},
    vec::Vec,
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
        self.received.extend(pipes[0].clone());
        let (base, names) = (self.vfs.base(), self.vfs.sockets());
        base.store().claim_socket(place, &record);
        base.pipes().has_inode(record.inode);
        let node = self.node(record.node);
        let socket = Socket::restore(base.closing(), Kept::new(base.store(), place.into(), record), pipes);
        socket.restore_name(names, node);
        Some(socket)
    }

    /// Restores what goes with bytes in pipes from which sockets receive, also of sockets that are found so. It is no recursion, however
    /// long the chain. What nobody can receive is forgotten.
    pub(super) fn restore_ancillaries(&mut self) {
        let mut restored = BTreeSet::new();
        while let Some(pipe) = self.received.pop() {
            // A pipe may be open more than once.
            if !restored.insert(pipe.record()) {
                continue;
            }
            let mut seen = BTreeSet::new();
            let mut next = self.laden.get(&pipe.record()).copied().unwrap_or(NOWHERE);
            // A place that something has written into may lead back.
            while next != NOWHERE && seen.insert(next) {
                let Some(record) = self.vfs.base().store().ancillary(next) else {
                    self.lost += 1;
                    break;
                };
                match self.ancillary(&pipe, next, record) {
                    Ok(entry) => pipe.restore_ancillary(entry),
                    Err(_) => self.lost += 1,
                }
                next = record.next;
            }
        }
        for place in self.laden.keys() {
            self.pipes[place].settle_ancillaries(self.vfs.base());
        }
    }

    /// What goes with bytes of a pipe, as its record at this place says. Files that are corrupt are left out.
    fn ancillary(&mut self, pipe: &Rc<Pipe>, place: u16, record: AncillaryRecord) -> Result<Ancillary, Errno> {
        let store = self.vfs.base().store().clone();
        store.claim_ancillary(place, record.user);
        let mut files: Vec<Rc<OpenFile>> = Vec::new();
        let mut more: Vec<Kept<AncillaryRecord>> = Vec::new();
        let mut part = record;
        loop {
            for place in part.files.into_iter().take(part.count.into()) {
                match self.file(place) {
                    Some(file) => files.push(file),
                    None => self.lost += 1,
                }
            }
            let further = store.ancillary(part.more).filter(|_| more.len() <= usize::from(u8::MAX) / CARRIED);
            let Some(further) = further else { break };
            store.claim_ancillary(part.more, further.user);
            more.push(Kept::new(&store, part.more.into(), further));
            part = further;
        }
        let rights: Option<Rc<dyn Rights>> = match files.is_empty() {
            true => None,
            false => Some(Carried::restore(self.vfs.in_flight(), files, pipe, record.user)?),
        };
        Ok(Ancillary::restore(Kept::new(&store, place.into(), record), more, rights))
    }

    /// Connects datagram sockets again, when all sockets are restored. A place may have another socket by now.
    pub(super) fn connect_datagrams(&mut self) {
        for socket in self.sockets.values() {
            let SocketRecord { first, peer_inode, .. } = socket.record();
            let peer = self.sockets.get(&first).filter(|peer| peer.record().inode == peer_inode);
            if first != NOWHERE {
                let restored = socket.restore_peer(peer.map_or_else(Weak::new, Rc::downgrade));
                self.lost += usize::from(restored.is_err());
            }
        }
    }
}
