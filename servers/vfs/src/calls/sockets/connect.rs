//! Names and connections: bind, listen, connect, accept, getsockname, getpeername.

use super::{Kind, done, identity, open, socket_of, task};
use crate::{
    base::{Base, Flow},
    callers::permission::{self, S_IFSOCK, WRITE},
    files::{Files, vnode::NodeRef},
    memory::{
        self as user,
        address::{self, Address},
    },
    objects::{O_CLOEXEC, O_NONBLOCK, OpenFile, garbage::InFlight, socket::deadline},
    open::recalled_file,
    paths::{
        change::make_node,
        walk::{self, Last},
    },
    processes::{AT_FDCWD, Process},
    sockets::{
        Connect, PASSCRED, Socket,
        names::{Key, Names},
    },
};
use abi::{Errno, container::container_of};
use alloc::rc::Rc;
use sys::fallible::copied;

/// bind. A name of two bytes, which is the family, lets vfs choose an abstract one.
pub fn bind(
    base: &'static Base,
    names: &'static Rc<Names>,
    process: &Rc<Process>,
    descriptor: i32,
    address: u64,
    length: i32,
) -> Result<Flow, Errno> {
    let (_, socket) = socket_of(process, descriptor)?;
    let address = address::fetch(process.caller.endpoint, address, length)?;
    if address.is_path() {
        let process = process.clone();
        return task(bind_path(base.files(), names, process, socket, address));
    }
    if address.is_empty() {
        if !socket.is_bound() {
            socket.bind(names, &names.free_name(container_of(process.caller.user())), None)?;
        }
        return done(Ok(0));
    }
    socket.bind(names, address.name(), None)?;
    done(Ok(0))
}

/// Makes the special file of a name. `EADDRINUSE`: something has it.
async fn bind_path(
    files: &Files,
    names: &'static Rc<Names>,
    process: Rc<Process>,
    socket: Rc<Socket>,
    address: Address,
) -> Result<u64, Errno> {
    let found = walk::resolve(files, &process, AT_FDCWD, copied(address.name())?, Last::Keep).await?;
    let recalled = recalled_file(&process.caller, &found.parent, found.node.as_ref());
    let node = match (recalled, &found.node) {
        (Some(node), _) => node,
        (None, Some(_)) => return Err(Errno::EADDRINUSE),
        (None, None) if found.slash => return Err(Errno::ENOENT),
        (None, None) if socket.is_bound() => return Err(Errno::EINVAL),
        (None, None) => make_node(files, &process, &found, S_IFSOCK | 0o777, 0).await?,
    };
    socket.bind(names, address.name(), Some(node))?;
    Ok(0)
}

/// listen.
pub fn listen(process: &Process, descriptor: i32, backlog: u32) -> Result<u64, Errno> {
    let (_, socket) = socket_of(process, descriptor)?;
    not_datagrams(&socket)?;
    socket.listen(backlog, identity(&process.caller, &process.caller.credentials()))?;
    Ok(0)
}

/// `EOPNOTSUPP` for a datagram socket, which neither listens nor accepts.
fn not_datagrams(socket: &Socket) -> Result<(), Errno> {
    if socket.kind() == Kind::Datagrams { Err(Errno::EOPNOTSUPP) } else { Ok(()) }
}

/// The socket of this kind with a name. `ECONNREFUSED`: none; `EPROTOTYPE`: another kind.
pub async fn find(
    files: &Files,
    names: &Names,
    process: &Process,
    address: &Address,
    kind: Kind,
) -> Result<Rc<Socket>, Errno> {
    let key = match address.is_path() {
        false => Key::named(container_of(process.caller.user()), address.name()),
        true => {
            let found = walk::resolve(files, process, AT_FDCWD, copied(address.name())?, Last::Follow).await?;
            let node: &NodeRef = found.existing()?;
            permission::check(&process.caller.credentials(), node.attributes(), WRITE)?;
            Key::of(node)
        }
    };
    let socket = names.get(&key).ok_or(Errno::ECONNREFUSED)?;
    if socket.kind() == kind { Ok(socket) } else { Err(Errno::EPROTOTYPE) }
}

/// connect. A datagram socket is disconnected by a name without family.
pub fn connect(
    base: &'static Base,
    names: &'static Rc<Names>,
    process: &Rc<Process>,
    descriptor: i32,
    address: u64,
    length: i32,
) -> Result<Flow, Errno> {
    const AF_UNSPEC: [u8; 2] = [0; 2];
    let (file, socket) = socket_of(process, descriptor)?;
    let who = process.caller.endpoint;
    let mut family = [0; 2];
    if socket.kind() == Kind::Datagrams && length >= family.len() as i32 {
        user::fetch(who, address, &mut family)?;
        if family == AF_UNSPEC {
            socket.disconnect();
            return done(Ok(0));
        }
    }
    let address = address::fetch(who, address, length)?;
    if address.is_empty() {
        return Err(Errno::EINVAL);
    }
    task(connect_to(base, names, process.clone(), file, socket, address))
}

async fn connect_to(
    base: &'static Base,
    names: &'static Rc<Names>,
    process: Rc<Process>,
    file: Rc<OpenFile>,
    socket: Rc<Socket>,
    address: Address,
) -> Result<u64, Errno> {
    if socket.has_option(PASSCRED) && !socket.is_bound() {
        socket.bind(names, &names.free_name(container_of(process.caller.user())), None)?;
    }
    let deadline_ns = deadline(socket.record().send_ns);
    loop {
        let to = find(base.files(), names, &process, &address, socket.kind()).await?;
        if socket.kind() == Kind::Datagrams {
            socket.connect_datagrams(&to)?;
            return Ok(0);
        }
        let ids = process.caller.credentials();
        match socket.connect(&to, base.pipes(), identity(&process.caller, &ids))? {
            Connect::Done => return Ok(0),
            Connect::Full if file.nonblocking() => return Err(Errno::EAGAIN),
            Connect::Full => wait_until(base, &process, &to, deadline_ns, |listener| listener.may_connect()).await?,
        }
    }
}

/// accept4. The name of the connection's other side goes to the first of `addresses`, unless that is 0.
pub fn accept(
    base: &'static Base,
    flight: &'static InFlight,
    process: &Rc<Process>,
    descriptor: i32,
    addresses: [u64; 2],
    flags: u32,
) -> Result<Flow, Errno> {
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let (file, socket) = socket_of(process, descriptor)?;
    not_datagrams(&socket)?;
    process.files().check_room(process.caller.descriptor_limit())?;
    match socket.accept()? {
        Some(accepted) => done(give_accepted(base, flight, process, accepted, addresses, flags)),
        None if file.nonblocking() => Err(Errno::EAGAIN),
        None => task(wait_to_accept(base, flight, process.clone(), file, socket, addresses, flags)),
    }
}

async fn wait_to_accept(
    base: &'static Base,
    flight: &'static InFlight,
    process: Rc<Process>,
    file: Rc<OpenFile>,
    socket: Rc<Socket>,
    addresses: [u64; 2],
    flags: u32,
) -> Result<u64, Errno> {
    let deadline_ns = deadline(socket.record().receive_ns);
    loop {
        wait_until(base, &process, &socket, deadline_ns, |_| true).await?;
        process.files().check_room(process.caller.descriptor_limit())?;
        if let Some(accepted) = socket.accept()? {
            drop(file);
            return give_accepted(base, flight, &process, accepted, addresses, flags);
        }
    }
}

/// Gives a connection that has been accepted a descriptor. Without memory for its name, or room for the open file, it is closed.
fn give_accepted(
    base: &Base,
    flight: &InFlight,
    process: &Process,
    accepted: Rc<Socket>,
    [address, length_address]: [u64; 2],
    flags: u32,
) -> Result<u64, Errno> {
    let name = accepted.peer_name();
    flight.accepted(&accepted);
    let file = open(base, process.caller.user(), accepted, flags)?;
    if address != 0 {
        address::store(process.caller.endpoint, &name, address, length_address)?;
    }
    process.insert(file, flags & O_CLOEXEC != 0)
}

/// Waits until a listening socket has changed so that `enough`. `EAGAIN`: the deadline.
async fn wait_until(
    base: &Base,
    process: &Process,
    listener: &Socket,
    deadline_ns: Option<u64>,
    enough: impl Fn(&Socket) -> bool,
) -> Result<(), Errno> {
    let [Some(watchers), _] = listener.watchers() else { return Ok(()) };
    loop {
        let mut sleep = deadline_ns.map(|deadline_ns| base.runtime().sleep_until(deadline_ns));
        watchers.0.add(process.caller.event());
        let waited = process.caller.wait_or_sleep(sleep.as_mut()).await;
        watchers.0.remove(process.caller.event());
        match waited {
            Ok(true) => return Err(Errno::EAGAIN),
            Ok(false) if enough(listener) => return Ok(()),
            Ok(false) => {}
            // A call with a deadline is not repeated after a signal.
            Err(Errno::ERESTARTSYS) if deadline_ns.is_some() => return Err(Errno::EINTR),
            Err(error) => return Err(error),
        }
    }
}

/// getsockname.
pub fn own_name(process: &Process, descriptor: i32, address: u64, length_address: u64) -> Result<u64, Errno> {
    let (_, socket) = socket_of(process, descriptor)?;
    address::store(process.caller.endpoint, &socket.name(), address, length_address)?;
    Ok(0)
}

/// getpeername.
pub fn peer_name(process: &Process, descriptor: i32, address: u64, length_address: u64) -> Result<u64, Errno> {
    let (_, socket) = socket_of(process, descriptor)?;
    if !socket.is_connected() {
        return Err(Errno::ENOTCONN);
    }
    address::store(process.caller.endpoint, &socket.peer_name(), address, length_address)?;
    Ok(0)
}
