//! What datagram sockets have besides: a peer that may change and end, and where a message goes, with a peer or without.

use super::{Kind, Role, Socket, Who};
use crate::{
    base::closing::Closing,
    keep::{Text, records::NOWHERE},
    pipes::{Pipe, pool::Pipes},
};
use abi::Errno;
use alloc::rc::{Rc, Weak};

impl Socket {
    /// Two datagram sockets of a user that are connected with each other. `ENFILE`, `ENOMEM`: no room.
    pub(super) fn pair_of_datagrams(
        closing: &Rc<Closing>,
        pipes: &Pipes,
        user: u32,
        who: Who,
    ) -> Result<[Rc<Socket>; 2], Errno> {
        let one = Socket::new(closing, pipes, Kind::Datagrams, user)?;
        let two = Socket::new(closing, pipes, Kind::Datagrams, user).inspect_err(|_| one.close())?;
        for (own, other) in [(&one, &two), (&two, &one)] {
            own.set_peer_groups(who.groups)
                .inspect_err(|_| [&one, &two].into_iter().for_each(|socket| socket.close()))?;
            own.record.update(|own| own.peer = who.ids);
            own.set_peer(other, Text::EMPTY)
                .inspect_err(|_| [&one, &two].into_iter().for_each(|socket| socket.close()))?;
        }
        Ok([one, two])
    }

    /// Connects a restored datagram socket again, to one that may have ended. `ENOMEM`.
    pub fn restore_peer(&self, peer: Weak<Socket>) -> Result<(), Errno> {
        self.mailbox().map_or(Ok(()), |mailbox| mailbox.connect(peer))
    }

    /// Where its messages go without a name. `ENOTCONN`; `ECONNREFUSED`: its peer has ended; `EPERM`: that receives from another;
    /// `EPIPE`: it is shut down.
    pub fn outgoing(&self) -> Result<Rc<Pipe>, Errno> {
        match self.role.get() {
            Some(Role::Connected(connection)) if connection.writes() => Ok(connection.outgoing().clone()),
            Some(Role::Connected(_)) => Err(Errno::EPIPE),
            Some(Role::Receives(mailbox)) => {
                let peer = mailbox.peer().ok_or(Errno::ENOTCONN)?;
                match peer.upgrade().ok_or(Errno::ECONNREFUSED).and_then(|peer| self.outgoing_to(&peer)) {
                    Err(Errno::ECONNREFUSED) => {
                        self.disconnect();
                        Err(Errno::ECONNREFUSED)
                    }
                    outgoing => outgoing,
                }
            }
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// Where its messages to another datagram socket go. Errors as of [`Socket::outgoing`].
    pub fn outgoing_to(&self, to: &Socket) -> Result<Rc<Pipe>, Errno> {
        let mailbox = to.mailbox().filter(|mailbox| !mailbox.is_closed()).ok_or(Errno::ECONNREFUSED)?;
        if !mailbox.admits(self) {
            return Err(Errno::EPERM);
        }
        match self.mailbox() {
            Some(own) if !own.writes() => Err(Errno::EPIPE),
            _ => Ok(mailbox.incoming().clone()),
        }
    }

    /// Connects a datagram socket to another one. `EPERM`: that is connected to a third one; `ENOMEM`.
    pub fn connect_datagrams(&self, to: &Rc<Socket>) -> Result<(), Errno> {
        self.outgoing_to(to).map(drop).or_else(|error| if error == Errno::EPIPE { Ok(()) } else { Err(error) })?;
        let name = self.store().put_text(to.name().name(), self.record().user)?;
        let old = self.record().peer_name;
        self.set_peer(to, name).inspect_err(|_| self.store().release_text(name))?;
        self.store().release_text(old);
        Ok(())
    }

    fn set_peer(&self, to: &Rc<Socket>, name: Text) -> Result<(), Errno> {
        if let Some(mailbox) = self.mailbox() {
            mailbox.connect(Rc::downgrade(to))?;
        }
        let (place, inode) = (to.place(), to.record().inode);
        self.record.update(|own| (own.first, own.peer_inode, own.peer_name) = (place, inode, name));
        Ok(())
    }

    /// Ends the connection of a datagram socket.
    pub fn disconnect(&self) {
        self.store().release_text(self.record().peer_name);
        self.record.update(|own| (own.first, own.peer_name) = (NOWHERE, Text::EMPTY));
        if let Some(mailbox) = self.mailbox() {
            mailbox.disconnect();
        }
    }
}
