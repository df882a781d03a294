//! Local sockets (unix(7)): connections of two sockets, datagrams, and the names by which a socket is found.
//!
//! A connection is two pipes, one for each direction; what a pipe does for its readers and writers is what a socket does for both
//! ends, so there is no queue of bytes or messages here. `connect` makes both sockets of a connection at once: the one that nobody has
//! accepted yet waits in the queue of the listening socket, and the connecting one may already send. Invariants: a socket is connected or
//! listens at most once, and stays so, but for datagram sockets; its record says the same as its fields.
//! Neighbours: `names`, `listener`, `connection`, `mailbox` and `datagrams`; `objects::socket` makes a socket an open file,
//! `objects::messages` sends and receives messages.

pub mod connection;
mod datagrams;
mod kind;
mod listener;
pub mod mailbox;
pub mod names;
mod options;

use crate::{
    base::closing::Closing,
    callers::save_groups,
    events::{
        Watch, Watchers,
        poll::{ANY, OF_READERS, OF_WRITERS, POLLHUP, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM},
    },
    files::vnode::NodeRef,
    keep::{
        Kept, Store, Text,
        records::{NodeRecord, SocketRecord},
    },
    memory::address::Address,
    pipes::{Pipe, pool::Pipes},
};
use abi::{Errno, container::container_of};
use alloc::rc::Rc;
use connection::{Connection, POLLRDHUP};
use core::cell::{OnceCell, RefCell};
pub use kind::Kind;
use listener::Listener;
use mailbox::Mailbox;
use names::{Bound, Key, Names};
use options::blank;
pub use options::{PASSCRED, PASSSEC, Who};

/// Bytes of a sender's buffer that Linux needs for a message itself.
const OWN_PART: u32 = 32;
/// Most connections that wait beyond the first (`net.core.somaxconn`).
const MAX_BACKLOG: u32 = abi::limits::BACKLOG;

/// One socket.
#[derive(Debug)]
pub struct Socket {
    record: Kept<SocketRecord>,
    role: OnceCell<Role>,
    bound: RefCell<Option<Bound>>,
    /// Registrations of epolls that were made before it had a role: they are told of changes of what it got with that.
    early: Watchers,
    closing: Rc<Closing>,
}

/// What a socket does once it is more than made.
#[derive(Debug)]
enum Role {
    Listens(Listener),
    Connected(Connection),
    /// It receives datagrams.
    Receives(Mailbox),
}

/// Outcome of [`Socket::connect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// The socket is connected.
    Done,
    /// As many connections wait as may.
    Full,
}

impl Socket {
    /// A socket of a user that is neither bound nor connected. `ENFILE`, `ENOMEM`: no room.
    pub fn new(closing: &Rc<Closing>, pipes: &Pipes, kind: Kind, user: u32) -> Result<Rc<Socket>, Errno> {
        let record = blank(kind, user, pipes);
        if kind != Kind::Datagrams {
            return Socket::with(closing, record);
        }
        let incoming = pipes.make(user)?;
        let record = SocketRecord { incoming: incoming.record(), ..record };
        let socket = Socket::with(closing, record).inspect_err(|_| pipes.discard(&[&incoming]))?;
        socket.set_receiving(incoming);
        Ok(socket)
    }

    /// Two sockets of a user that are connected with each other. `ENFILE`, `ENOMEM`: no room.
    pub fn pair(
        closing: &Rc<Closing>,
        pipes: &Pipes,
        kind: Kind,
        user: u32,
        who: Who,
    ) -> Result<[Rc<Socket>; 2], Errno> {
        if kind == Kind::Datagrams {
            return Socket::pair_of_datagrams(closing, pipes, user, who);
        }
        let [to_one, to_two] = pipes.make_two(user)?;
        let half = |incoming: &Rc<Pipe>, outgoing: &Rc<Pipe>| {
            let ends = (incoming.record(), outgoing.record());
            let peer_groups = save_groups(closing.store(), who.groups, user)?;
            let (incoming, outgoing) = ends;
            let record = SocketRecord { incoming, outgoing, peer: who.ids, peer_groups, ..blank(kind, user, pipes) };
            Socket::with(closing, record)
        };
        let sockets = half(&to_one, &to_two).and_then(|one| Ok([one, half(&to_two, &to_one)?]));
        let sockets = sockets.inspect_err(|_| pipes.discard(&[&to_one, &to_two]))?;
        sockets[0].set_connected(&to_one, &to_two);
        sockets[1].set_connected(&to_two, &to_one);
        Ok(sockets)
    }

    /// A socket with this record, whose texts become its own. `ENFILE`, `ENOMEM`: no room; the texts are released.
    fn with(closing: &Rc<Closing>, record: SocketRecord) -> Result<Rc<Socket>, Errno> {
        let store = closing.store();
        let made = closing.open().and_then(|()| store.new_socket(record).inspect_err(|_| closing.closed()));
        let record = made.inspect_err(|_| {
            record.texts().into_iter().for_each(|text| store.release_text(text));
        })?;
        Ok(Rc::new(Socket::without_role(closing, record)))
    }

    fn without_role(closing: &Rc<Closing>, record: Kept<SocketRecord>) -> Socket {
        let (role, bound, early) = (OnceCell::new(), RefCell::default(), Watchers::default());
        Socket { record, role, bound, early, closing: closing.clone() }
    }

    /// A socket as a predecessor has left it, with the pipes of its connection. Its name, and the connections that wait, are restored
    /// by [`Socket::restore_name`] and [`Socket::restore_pending`].
    pub fn restore(
        closing: &Rc<Closing>,
        record: Kept<SocketRecord>,
        [incoming, outgoing]: [Option<Rc<Pipe>>; 2],
    ) -> Rc<Socket> {
        closing.open().expect("a successor needs no more than its predecessor had");
        let socket = Socket::without_role(closing, record);
        match (incoming, outgoing) {
            (Some(incoming), Some(outgoing)) => socket.set_connected(&incoming, &outgoing),
            (Some(incoming), None) => socket.set_receiving(incoming),
            _ if socket.record().listening => {
                socket.role.get_or_init(|| Role::Listens(Listener::default()));
            }
            _ => {}
        }
        Rc::new(socket)
    }

    /// Gives a restored socket its name again.
    pub fn restore_name(self: &Rc<Self>, names: &Rc<Names>, node: Option<NodeRef>) {
        if self.record().bound {
            let key = self.key(self.name().name(), node.as_ref());
            self.bound.replace(Some(Bound::new(names, key, node, self)));
        }
    }

    /// Puts a restored connection at the end of those that wait.
    pub fn restore_pending(&self, pending: Rc<Socket>) {
        if let Some(Role::Listens(listener)) = self.role.get() {
            listener.restore(pending);
        }
    }

    fn set_receiving(&self, incoming: Rc<Pipe>) {
        let SocketRecord { reads, writes, .. } = self.record();
        let mailbox = Mailbox::new(incoming, reads, writes);
        self.role.set(Role::Receives(mailbox)).expect("a socket gets its pipe once");
        self.apply_options();
    }

    fn set_connected(&self, incoming: &Rc<Pipe>, outgoing: &Rc<Pipe>) {
        let SocketRecord { reads, writes, .. } = self.record();
        let connection = Connection::new(incoming.clone(), outgoing.clone(), reads, writes);
        self.role.set(Role::Connected(connection)).expect("a socket is connected once");
        self.apply_options();
    }

    /// What is preserved of it.
    #[inline]
    pub fn record(&self) -> SocketRecord {
        self.record.get()
    }

    /// Its place in preserved memory.
    pub fn place(&self) -> u16 {
        self.record.place() as u16
    }

    /// Changes options.
    pub fn update(&self, change: impl FnOnce(&mut SocketRecord)) {
        self.record.update(change);
    }

    /// Its connection, if it has one.
    #[inline]
    pub fn connection(&self) -> Option<&Connection> {
        match self.role.get() {
            Some(Role::Connected(connection)) => Some(connection),
            _ => None,
        }
    }

    /// What it transfers.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::of(self.record().kind)
    }

    fn mailbox(&self) -> Option<&Mailbox> {
        match self.role.get() {
            Some(Role::Receives(mailbox)) => Some(mailbox),
            _ => None,
        }
    }

    /// What it receives, if it can.
    pub fn incoming(&self) -> Option<&Rc<Pipe>> {
        self.connection().map(Connection::incoming).or_else(|| self.mailbox().map(Mailbox::incoming))
    }

    /// Looks at the pipes in which it receives, and those of connections that wait in it.
    pub fn for_each_queue(&self, mut look: impl FnMut(&Rc<Pipe>)) {
        self.incoming().into_iter().for_each(&mut look);
        if let Some(listener) = self.listener() {
            listener.for_each(|waiting| waiting.incoming().into_iter().for_each(&mut look));
        }
    }

    /// Whether there will be nothing to receive.
    pub fn is_deaf(&self) -> bool {
        self.connection().is_some_and(Connection::is_deaf) || self.mailbox().is_some_and(Mailbox::is_deaf)
    }

    /// Whether getpeername has a name to tell.
    pub fn is_connected(&self) -> bool {
        self.connection().is_some() || self.mailbox().is_some_and(|mailbox| mailbox.peer().is_some())
    }

    fn listener(&self) -> Option<&Listener> {
        match self.role.get() {
            Some(Role::Listens(listener)) => Some(listener),
            _ => None,
        }
    }

    /// Its own name; empty: none.
    #[inline]
    pub fn name(&self) -> Address {
        self.address(self.record().name)
    }

    fn address(&self, text: Text) -> Address {
        if text == Text::EMPTY { Address::of_length(0) } else { Address::new(&self.store().text(text)) }
    }

    /// The name that its peer had when they were connected; empty: none.
    pub fn peer_name(&self) -> Address {
        self.address(self.record().peer_name)
    }

    fn store(&self) -> &Rc<Store> {
        self.closing.store()
    }

    /// Most bytes of a message that it sends: Linux takes its own part of a message from the buffer, too.
    pub fn longest_message(&self) -> u64 {
        self.record().send_bytes.saturating_sub(OWN_PART).into()
    }

    /// Whether it has a name.
    pub fn is_bound(&self) -> bool {
        self.record().name != Text::EMPTY
    }

    /// Gives it a name: of `node`, or an abstract one. `EINVAL`: it has one; `EADDRINUSE`: another socket has it; `ENOMEM`.
    pub fn bind(self: &Rc<Self>, names: &Rc<Names>, name: &[u8], node: Option<NodeRef>) -> Result<(), Errno> {
        if self.is_bound() {
            return Err(Errno::EINVAL);
        }
        let key = self.key(name, node.as_ref());
        if names.get(&key).is_some() {
            return Err(Errno::EADDRINUSE);
        }
        let text = self.store().put_text(name, self.record().user)?;
        let record = node.as_ref().map_or(NodeRecord::NONE, |node| node.record());
        self.record.update(|own| (own.name, own.node, own.bound) = (text, record, true));
        self.bound.replace(Some(Bound::new(names, key, node, self)));
        Ok(())
    }

    fn key(&self, name: &[u8], node: Option<&NodeRef>) -> Key {
        node.map_or_else(|| Key::named(container_of(self.record().user), name), Key::of)
    }

    /// Lets it listen, or changes how many connections may wait. `EINVAL`: it has no name, or is connected.
    pub fn listen(self: &Rc<Self>, backlog: u32, who: Who) -> Result<(), Errno> {
        if !self.is_bound() || self.connection().is_some() {
            return Err(Errno::EINVAL);
        }
        if self.role.get().is_none() {
            let listener = Listener::default();
            self.tell_early(listener.watchers(), ANY)?;
            self.role.set(Role::Listens(listener)).expect("it had none");
        }
        let backlog = backlog.min(MAX_BACKLOG) as u16;
        self.set_peer_groups(who.groups)?;
        self.record.update(|own| (own.listening, own.backlog, own.peer) = (true, backlog, who.ids));
        self.fire();
        Ok(())
    }

    /// Connects it to a listening socket. `ECONNREFUSED`: that does not listen any more; `EISCONN`, `EINVAL`: this one is connected, or
    /// listens itself; `ENFILE`, `ENOMEM`: no room.
    pub fn connect(self: &Rc<Self>, to: &Socket, pipes: &Pipes, who: Who) -> Result<Connect, Errno> {
        let listener = to.open_listener().ok_or(Errno::ECONNREFUSED)?;
        if !to.has_room() {
            return Ok(Connect::Full);
        }
        match self.role.get() {
            None => {}
            Some(Role::Connected(_)) => return Err(Errno::EISCONN),
            Some(Role::Listens(_) | Role::Receives(_)) => return Err(Errno::EINVAL),
        }
        listener.make_room()?;
        let [back, forth] = pipes.make_two(self.record().user)?;
        let told = self.tell_early(&back.watchers, OF_READERS);
        let told = told.and_then(|()| self.tell_early(&forth.watchers, OF_WRITERS));
        let made = told.and_then(|()| self.connect_by(to, pipes, who, [&back, &forth]));
        let accepted = made.inspect_err(|_| pipes.discard(&[&back, &forth]))?;
        accepted.set_connected(&forth, &back);
        self.set_connected(&back, &forth);
        match listener.last() {
            Some(last) => last.record.update(|own| own.next = accepted.place()),
            None => to.record.update(|own| own.first = accepted.place()),
        }
        listener.add(accepted);
        self.fire();
        Ok(Connect::Done)
    }

    /// Makes the records of a connection. Returns the socket of the other side.
    fn connect_by(
        &self,
        to: &Socket,
        pipes: &Pipes,
        who: Who,
        [back, forth]: [&Rc<Pipe>; 2],
    ) -> Result<Rc<Socket>, Errno> {
        let (own, other, store) = (self.record(), to.record(), self.store());
        let peer_name = store.put_text(to.name().name(), own.user)?;
        let undo = |_: &Errno| store.release_text(peer_name);
        let name = store.put_text(to.name().name(), own.user).inspect_err(undo)?;
        let own_name = store.put_text(self.name().name(), own.user);
        let own_name = own_name.inspect_err(undo).inspect_err(|_| store.release_text(name))?;
        let undo_names = |_: &Errno| [peer_name, name, own_name].into_iter().for_each(|text| store.release_text(text));
        let own_groups = save_groups(store, who.groups, own.user).inspect_err(undo_names)?;
        let peer_groups = store.put_text(&store.text(other.peer_groups), own.user).inspect_err(undo_names);
        let peer_groups = peer_groups.inspect_err(|_| store.release_text(own_groups))?;
        let record = SocketRecord {
            incoming: forth.record(),
            outgoing: back.record(),
            name,
            peer_name: own_name,
            peer: who.ids,
            peer_groups: own_groups,
            options: other.options,
            ..blank(self.kind(), own.user, pipes)
        };
        let accepted = Socket::with(&self.closing, record);
        let accepted = accepted.inspect_err(undo).inspect_err(|_| store.release_text(peer_groups))?;
        self.record.update(|own| {
            (own.incoming, own.outgoing) = (back.record(), forth.record());
            (own.peer_name, own.peer, own.peer_groups) = (peer_name, other.peer, peer_groups);
        });
        Ok(accepted)
    }

    /// What it listens with, unless it is closed or shut down.
    fn open_listener(&self) -> Option<&Listener> {
        self.listener().filter(|listener| !listener.is_closed() && self.record().reads)
    }

    /// Whether a connection may wait in it.
    fn has_room(&self) -> bool {
        self.listener().is_some_and(|listener| listener.len() <= self.record().backlog as usize)
    }

    /// Whether somebody who found it full should try again.
    pub fn may_connect(&self) -> bool {
        self.open_listener().is_none() || self.has_room()
    }

    /// Takes the first connection that waits. `EINVAL`: it does not listen, or is shut down.
    pub fn accept(&self) -> Result<Option<Rc<Socket>>, Errno> {
        let listener = self.open_listener().ok_or(Errno::EINVAL)?;
        let Some(accepted) = listener.take() else { return Ok(None) };
        self.record.update(|own| own.first = accepted.record().next);
        self.fire();
        Ok(Some(accepted))
    }

    /// Stops receiving, sending or both; what that ends is noted for the next sweep.
    pub fn shut_down(&self, reads: bool, writes: bool) {
        self.record.update(|own| (own.reads, own.writes) = (own.reads && !reads, own.writes && !writes));
        match self.role.get() {
            Some(Role::Connected(connection)) => connection.shut_down(&self.closing, reads, writes),
            Some(Role::Receives(mailbox)) => mailbox.shut_down(&self.closing, reads, writes),
            _ => self.fire(),
        }
    }

    /// Ends it: its name is free, its peer gets the end, those who wait to be accepted are refused.
    pub fn close(&self) {
        let bound = self.bound.take();
        drop(bound);
        match self.role.get() {
            None => {}
            Some(Role::Connected(connection)) => connection.close(&self.closing, false),
            Some(Role::Receives(mailbox)) => mailbox.close(&self.closing),
            Some(Role::Listens(listener)) => {
                listener.close().iter().for_each(|waiting| waiting.refuse());
                self.fire();
            }
        }
    }

    /// Ends one that nobody has accepted.
    fn refuse(&self) {
        if let Some(connection) = self.connection() {
            connection.close(&self.closing, true);
        }
    }

    /// Has early registrations told of changes of these events there. `ENOMEM`.
    fn tell_early(self: &Rc<Self>, watchers: &Watchers, events: u32) -> Result<(), Errno> {
        if self.early.others() == 0 {
            return Ok(());
        }
        let watch: Rc<dyn Watch> = self.clone();
        watchers.add_watch(&watch, events)
    }

    fn fire(&self) {
        self.early.fire();
        if let Some(listener) = self.listener() {
            listener.watchers().fire();
        }
    }

    /// Ready events (Linux POLL*).
    pub fn ready(&self) -> u32 {
        let SocketRecord { reads, .. } = self.record();
        let ended = if reads { 0 } else { POLLIN | POLLRDNORM | POLLRDHUP };
        match self.role.get() {
            None => POLLOUT | POLLWRNORM | POLLHUP | ended,
            Some(Role::Connected(connection)) => connection.ready(),
            Some(Role::Receives(mailbox)) => mailbox.ready(),
            Some(Role::Listens(listener)) if listener.len() > 0 => POLLIN | POLLRDNORM | ended,
            Some(Role::Listens(_)) => ended,
        }
    }

    /// Fire when [`Socket::ready`] may have changed.
    pub fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        match self.role.get() {
            None => [Some((&self.early, ANY)), None],
            Some(Role::Connected(connection)) => connection.watchers(),
            Some(Role::Receives(mailbox)) => mailbox.watchers(),
            Some(Role::Listens(listener)) => [Some((listener.watchers(), ANY)), None],
        }
    }
}

impl Watch for Socket {
    fn changed(self: Rc<Self>, events: u32) {
        self.early.fire_for(events);
    }

    fn height(&self) -> usize {
        self.early.height()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.closing.closed();
    }
}
