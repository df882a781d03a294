//! A thread's connection to the broker. It is made when needed, and again when the broker has a successor.

use crate::wire::{self, ARGUMENTS, Reply, Request};
use m3ipc::error::Error;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// How long a broker that has ended may take to have a successor.
const SUCCESSOR_LIMIT: Duration = Duration::from_secs(5);
/// Pause between two attempts to reach it.
const PAUSE: Duration = Duration::from_millis(2);

struct Connection {
    socket: OwnedFd,
    /// The process that made it: a child has a pid of its own, and must not use its parent's.
    pid: i32,
}

thread_local! {
    static CONNECTION: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

/// A reply, and the files that came with it.
pub struct Answer {
    /// What the C function returns.
    pub value: i64,
    /// Descriptor or text.
    pub bytes: Vec<u8>,
    /// Open files.
    pub files: Vec<OwnedFd>,
}

/// Asks the broker, and waits for its reply.
///
/// # Errors
/// The broker's; `NotInitialised`: there is none; `NotPermitted`: this user may not ask it; `Interrupted`.
pub fn call(call: u32, arguments: &[i64], bytes: &[u8]) -> Result<Answer, Error> {
    let mut request = Request { call, is_repeated: 0, number: 0, arguments: [0; ARGUMENTS], bytes: bytes.to_vec() };
    request.arguments[..arguments.len()].copy_from_slice(arguments);
    CONNECTION.with_borrow_mut(|connection| converse(connection, request))
}

/// Forgets the connection: that of the parent, in a child.
pub fn forget() {
    CONNECTION.with_borrow_mut(Option::take);
}

fn converse(connection: &mut Option<Connection>, mut request: Request) -> Result<Answer, Error> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    if connection.as_ref().is_some_and(|old| old.pid != pid) {
        *connection = None;
    }
    let mut deadline = connection.is_some().then(|| Instant::now() + SUCCESSOR_LIMIT);
    loop {
        let open = match connection.take() {
            Some(open) => open,
            None => match connect() {
                Ok(socket) => Connection { socket, pid },
                Err(_) if deadline.is_some_and(|deadline| Instant::now() < deadline) => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(Errno::ACCESS) => return Err(Error::NotPermitted),
                Err(_) => return Err(Error::NotInitialised),
            },
        };
        request.number = request.number.wrapping_add(1);
        match exchange(&open, &request) {
            Ok(answer) => {
                *connection = Some(open);
                return answer;
            }
            // The broker must not go on waiting for this call.
            Err(Errno::INTR) => return Err(Error::Interrupted),
            Err(_) => {
                request.is_repeated = 1;
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + SUCCESSOR_LIMIT);
                if Instant::now() > deadline {
                    return Err(Error::NotInitialised);
                }
            }
        }
    }
}

fn connect() -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(wire::socket_path())?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&socket, &address)?;
    Ok(socket)
}

/// One request and its reply. The outer error is the connection's, the inner one the broker's.
fn exchange(open: &Connection, request: &Request) -> Result<Result<Answer, Error>, Errno> {
    wire::send(open.socket.as_fd(), &request.encode(), &[], SendFlags::empty())?;
    loop {
        let (packet, files) = wire::receive(open.socket.as_fd(), RecvFlags::empty())?;
        let reply = Reply::decode(&packet).ok_or(Errno::PIPE)?;
        if reply.number == request.number {
            return Ok(reply.result.map(|value| Answer { value, bytes: reply.bytes, files }));
        }
    }
}
