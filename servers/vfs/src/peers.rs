//! The services vfs asks: file systems and drivers, all asynchronously.
//!
//! A peer is connected when it is first named, and for good. Its requests are repeated to a successor where that is harmless;
//! else they fail with `EIO`, which is also what programs see of every error that is not Linux's.

use crate::{
    callers::{Asked, Call, Caller},
    keep::{Store, records::PeerRecord},
};
use abi::{Endpoint, Errno, Message, Name, chardev, rs};
use alloc::{boxed::Box, rc::Rc, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use server::{Continuation, Peer, Repeat, Request, Runtime, STALL_PERIODS};
use sys::ipc;

/// Requests that the drivers of character devices may hold at a time: one for each thread that waits for input, and those of polls and
/// epolls, which are charged to users. So requests that wait never hold up one that could be carried out.
const DEVICE_WINDOW: usize = 2304;
/// Requests that a file system with a disk may hold at a time: some wait for blocks while others run. It keeps the replies to more than
/// these (`fs::preserve`).
const FILE_SYSTEM_WINDOW: usize = 16;
/// Time without an answer after which a file system has stalled: beyond what a slow disk takes for one request.
const STALL_NS: u64 = 120_000_000_000;
/// Errors from here on are Skink's own.
const FIRST_OWN_ERROR: i32 = 512;

/// pm, of which vfs asks signals. It is above vfs, which never blocks on it.
pub const PROCESS_MANAGER: Service = Service::at(abi::endpoint::slot::PM);

/// A service that vfs asks, by its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    slot: usize,
}

impl Service {
    /// The service in this slot.
    pub const fn at(slot: usize) -> Service {
        Service { slot }
    }

    /// The slot.
    pub const fn slot(self) -> usize {
        self.slot
    }

    /// Whoever serves there now: the grantee of grants.
    pub const fn endpoint(self) -> Endpoint {
        Endpoint::current(self.slot)
    }
}

struct Connection {
    name: Name,
    peer: Peer,
    role: Role,
    /// The slot, once it is known; it does not change, and the service may be down just now.
    slot: Cell<Option<usize>>,
}

impl Connection {
    /// Its slot is known once it has been up.
    #[inline]
    fn service(&self) -> Option<Service> {
        self.slot.get().or_else(|| self.learn_slot()).map(Service::at)
    }

    #[cold]
    fn learn_slot(&self) -> Option<usize> {
        let endpoint = self.peer.endpoint();
        self.slot.set((endpoint != Endpoint::NONE).then(|| endpoint.slot()));
        self.slot.get()
    }
}

/// The services that vfs asks, a handful.
pub struct Peers {
    runtime: Runtime,
    store: Rc<Store>,
    connections: RefCell<Vec<Connection>>,
}

/// What a service is to vfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A file system whose nodes outlive it, because their numbers have a meaning: everything may be repeated.
    StatelessFileSystem,
    /// A file system that keeps its state and does a request that comes again, with the same tag, only once.
    FileSystem,
    /// A driver: requests may be repeated, and a transfer that comes again has the same tag.
    Driver,
}

impl Role {
    fn from_number(number: u8) -> Option<Role> {
        let all = [Role::StatelessFileSystem, Role::FileSystem, Role::Driver];
        all.into_iter().find(|role| *role as u8 == number)
    }

    fn window(self) -> usize {
        match self {
            Role::StatelessFileSystem => 1,
            Role::FileSystem => FILE_SYSTEM_WINDOW,
            Role::Driver => DEVICE_WINDOW,
        }
    }
}

impl Peers {
    /// Nobody is connected.
    pub fn new(runtime: Runtime, store: Rc<Store>) -> Peers {
        Peers { runtime, store, connections: RefCell::default() }
    }

    /// The service with this name, which a successor will know. `ENXIO`: the system has none, or it has never been up.
    pub fn connect(&self, name: &str, role: Role) -> Result<Service, Errno> {
        let name = Name::new(name).ok_or(Errno::ENXIO)?;
        let service = self.connection(name, role)?;
        self.store.add_peer(&PeerRecord { name: name.to_words(), slot: service.slot as u16, role: role as u8 });
        Ok(service)
    }

    #[expect(clippy::disallowed_methods, reason = "as many as there are services")]
    fn connection(&self, name: Name, role: Role) -> Result<Service, Errno> {
        let mut connections = self.connections.borrow_mut();
        if let Some(known) = connections.iter().find(|connection| connection.name == name) {
            return known.service().ok_or(Errno::ENXIO);
        }
        let peer = Peer::connect(&self.runtime, name, role.window()).map_err(|_| Errno::ENXIO)?;
        let connection = Connection { name, peer, role, slot: Cell::new(None) };
        let service = connection.service();
        connections.push(connection);
        service.ok_or(Errno::ENXIO)
    }

    /// Connects to a service that a predecessor has asked. `ENXIO`: the system has none of this name.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub fn restore(&self, record: &PeerRecord) -> Result<(), Errno> {
        let name = Name::from_words(record.name.0, record.name.1);
        let role = Role::from_number(record.role).ok_or(Errno::ENXIO)?;
        let peer = Peer::connect(&self.runtime, name, role.window()).map_err(|_| Errno::ENXIO)?;
        let slot = Cell::new(Some(record.slot as usize));
        self.connections.borrow_mut().push(Connection { name, peer, role, slot });
        Ok(())
    }

    /// Connects to pm, as to a driver: its requests may come again. `ENXIO`.
    pub fn connect_process_manager(&self) -> Result<(), Errno> {
        if self.peer(PROCESS_MANAGER).is_ok() {
            return Ok(());
        }
        self.connect("pm", Role::Driver).map(drop)
    }

    /// Runs a task beside the calls.
    pub fn run(&self, task: impl Future<Output = ()> + 'static) {
        self.runtime.spawn(task);
    }

    /// The name of a service.
    pub fn name(&self, service: Service) -> Option<Name> {
        self.find(service, |connection| connection.name).ok()
    }

    /// The file systems whose nodes are counted.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub fn file_systems(&self) -> Vec<Service> {
        let connections = self.connections.borrow();
        let counted = connections.iter().filter(|connection| connection.role == Role::FileSystem);
        counted.filter_map(Connection::service).collect()
    }

    /// Whether a file system whose nodes are counted is in this slot.
    pub fn is_file_system(&self, slot: usize) -> bool {
        self.find(Service::at(slot), |connection| connection.role == Role::FileSystem) == Ok(true)
    }

    fn find<R>(&self, service: Service, what: impl FnOnce(&Connection) -> R) -> Result<R, Errno> {
        let connections = self.connections.borrow();
        let found = connections.iter().find(|connection| connection.service() == Some(service));
        found.map(what).ok_or(Errno::ENXIO)
    }

    fn peer(&self, service: Service) -> Result<Peer, Errno> {
        self.find(service, |connection| connection.peer.clone())
    }

    /// The incarnation of a service that requests go to now.
    pub fn incarnation(&self, service: Service) -> Endpoint {
        self.find(service, |connection| connection.peer.endpoint()).unwrap_or(Endpoint::NONE)
    }

    /// Asks a service and waits for its answer. Errors of the answer are errors here.
    pub async fn ask(&self, service: Service, message: Message) -> Result<Message, Errno> {
        let request = self.peer(service)?.request(message, Repeat::Yes);
        success(request.await)
    }

    /// Asks a file system for a change that must not be made twice. The request's tag says which change of which call it is, so that
    /// a file system that has made it already gives its answer again: see `calls::repeated`.
    pub async fn ask_once(&self, caller: &Caller, service: Service, message: Message) -> Result<Message, Errno> {
        let request = request(&self.peer(service)?, message, caller.change_tag());
        success(request.await)
    }

    /// Asks a file system to write for a program, whose call has moved so many bytes already: see [`Peers::write_tag`].
    pub async fn ask_to_write(
        &self,
        caller: &Caller,
        service: Service,
        message: Message,
        moved: u64,
    ) -> Result<Message, Errno> {
        let tag = self.write_tag(caller, service, moved)?;
        let request = request(&self.peer(service)?, message, tag);
        success(request.await)
    }

    /// The tag of a write for a program, whose call has moved so many bytes already. One without state is told by it which part of which call
    /// it is, so that whoever it asks in turn knows a write that comes again after a death.
    pub fn write_tag(&self, caller: &Caller, service: Service, moved: u64) -> Result<Option<u64>, Errno> {
        let role = self.find(service, |connection| connection.role)?;
        Ok((role == Role::StatelessFileSystem).then(|| caller.transfer_tag(moved)))
    }

    /// Asks a file system without a task: `next` gets the reply, which [`Peers::file_system_replied`] takes. `ENXIO`: there is no such service.
    pub fn ask_then(
        &self,
        service: Service,
        message: Message,
        tag: Option<u64>,
        next: Box<dyn Continuation>,
    ) -> Result<(), Errno> {
        self.find(service, |connection| connection.peer.request_then(message, Repeat::Yes, tag, next))
    }

    /// The reply to [`Peers::ask_then`], as awaiting [`Peers::ask`] gives it.
    pub fn file_system_replied(reply: Result<Message, Errno>) -> Result<Message, Errno> {
        success(reply)
    }

    /// Reports file systems to rs that answer heartbeats but none of their requests, for ever: they are restarted, and requests are repeated
    /// or fail with `EIO`. Drivers wait for what may never come, such as input.
    pub async fn watch(&self) {
        loop {
            self.runtime.sleep_ns(STALL_NS / u64::from(STALL_PERIODS)).await;
            for service in self.watched() {
                let Ok(Some(process)) = self.peer(service).map(|peer| peer.check_progress()) else { continue };
                let name = self.name(service);
                sys::log!("{} answers no request", name.as_ref().map_or("?", |name| name.as_str()));
                if let Err(error) =
                    ipc::call(Endpoint::RS, &rs::Stalled { process }.message()).and_then(|reply| reply.result())
                {
                    sys::log!("rs does not replace it: {error}");
                }
            }
        }
    }

    fn watched(&self) -> impl Iterator<Item = Service> {
        let count = self.connections.borrow().len();
        (0..count).filter_map(|at| {
            let connections = self.connections.borrow();
            connections.get(at).filter(|connection| connection.role != Role::Driver).and_then(Connection::service)
        })
    }

    /// Tells a service something and does not wait for the answer.
    pub fn tell(&self, service: Service, message: Message) {
        if let Ok(peer) = self.peer(service) {
            peer.tell(message);
        }
    }

    /// Asks a character device for what may take long: a signal of the program ends it (`chardev::Cancel`), with the signal's error.
    pub async fn ask_device(&self, caller: &Caller, service: Service, message: Message) -> Result<Message, Errno> {
        let peer = self.peer(service)?;
        let request = peer.request(message, Repeat::Yes);
        self.wait_for_device(caller, peer, request, message.words[0]).await
    }

    /// [`Peers::ask_device`] for a transfer, with a tag by which a driver that must not repeat it (tty) knows it when this vfs has died and its
    /// successor asks again.
    pub async fn ask_device_once(
        &self,
        caller: &Caller,
        service: Service,
        message: Message,
        moved: u64,
    ) -> Result<Message, Errno> {
        let peer = self.peer(service)?;
        let request = peer.request_tagged(message, Repeat::Yes, caller.transfer_tag(moved));
        self.wait_for_device(caller, peer, request, message.words[0]).await
    }

    /// [`Peers::ask_device_once`] without a task: `next` gets the reply, which [`Peers::device_replied`] takes. `ENXIO`: there is no such
    /// service.
    pub fn ask_device_then(
        &self,
        caller: &Caller,
        service: Service,
        message: Message,
        moved: u64,
        next: Box<dyn Continuation>,
    ) -> Result<(), Errno> {
        let (peer, tag, minor) = (self.peer(service)?, caller.transfer_tag(moved), message.words[0]);
        peer.request_then(message, Repeat::Yes, Some(tag), next);
        let asked = Asked { peer, tag, minor };
        if caller.is_cancelled() {
            // A signal came while the call was on its way from a predecessor.
            asked.cancel();
        }
        caller.set_call(Call::Device(asked));
        Ok(())
    }

    /// The reply to [`Peers::ask_device_then`], as awaiting [`Peers::ask_device_once`] gives it.
    pub fn device_replied(caller: &Caller, reply: Result<Message, Errno>) -> Result<Message, Errno> {
        caller.set_call(Call::None);
        match (success(reply), caller.take_cancelled()) {
            (Err(Errno::EINTR), Some(error)) => Err(error),
            (result, _) => result,
        }
    }

    async fn wait_for_device(
        &self,
        caller: &Caller,
        peer: Peer,
        request: Request,
        minor: u64,
    ) -> Result<Message, Errno> {
        let tag = request.tag();
        let mut request = pin!(request);
        let mut cancelled = None;
        caller.set_call(Call::Waiting);
        let reply = poll_fn(|context| {
            if let Poll::Ready(reply) = request.as_mut().poll(context) {
                return Poll::Ready(reply);
            }
            while pin!(caller.event().wait()).poll(context).is_ready() {
                if let Some(error) = caller.take_cancelled() {
                    cancelled = Some(error);
                    peer.cancel(tag, chardev::Cancel { tag, minor }.message());
                }
            }
            Poll::Pending
        })
        .await;
        caller.set_call(Call::None);
        match (success(reply), cancelled) {
            (Err(Errno::EINTR), Some(error)) => Err(error),
            (result, _) => result,
        }
    }

    /// Asks a device in the background; `done` gets the answer. Returns what ends the request early.
    pub fn ask_meanwhile(
        &self,
        service: Service,
        message: Message,
        done: impl FnOnce(Result<Message, Errno>) + 'static,
    ) -> Result<impl FnOnce() + 'static, Errno> {
        let peer = self.peer(service)?;
        let request = peer.request(message, Repeat::Yes);
        let (tag, minor) = (request.tag(), message.words[0]);
        self.runtime.spawn(async move { done(success(request.await)) });
        Ok(move || peer.cancel(tag, chardev::Cancel { tag, minor }.message()))
    }
}

/// An error as programs may see it.
pub fn program_error(error: Errno) -> Errno {
    if error.0 >= FIRST_OWN_ERROR { Errno::EIO } else { error }
}

/// Queues a request, with the caller's tag if there is one. It is repeated until somebody answers.
fn request(peer: &Peer, message: Message, tag: Option<u64>) -> Request {
    match tag {
        Some(tag) => peer.request_tagged(message, Repeat::Yes, tag),
        None => peer.request(message, Repeat::Yes),
    }
}

fn success(reply: Result<Message, Errno>) -> Result<Message, Errno> {
    let reply = reply.map_err(program_error)?;
    reply.result().map_err(program_error)?;
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_see_only_errors_they_know() {
        assert_eq!(program_error(Errno::ENOSPC), Errno::ENOSPC);
        assert_eq!(program_error(Errno::EDEADSRCDST), Errno::EIO);
    }
}
