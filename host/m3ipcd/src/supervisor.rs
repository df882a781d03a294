//! The supervisor: keeps the worker's deposits, and starts a successor when it dies. A worker does the same for its supervisor (`broker`).
//!
//! It knows nothing of containers, and reads nothing that programs write, so that what kills a worker does not reach it.

use crate::Options;
use crate::partner::{BACK_OFF, Partner, Role};
use crate::store::{self, Key, Packet};
use m3core::signals::Signals;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::BTreeMap;
use std::io;

/// Connections that wait to be accepted while there is no worker.
const BACKLOG: i32 = 256;

type Deposits = BTreeMap<Key, (Vec<u8>, Vec<OwnedFd>)>;

/// Listens, and has a worker work, until a signal ends the broker.
///
/// # Errors
/// When it cannot listen, or cannot start a worker.
pub fn begin(options: &Options) -> io::Result<()> {
    let signals = Signals::block()?;
    let mut deposits = Deposits::new();
    deposits.insert(Key::Listener, (Vec::new(), vec![listen(options)?]));
    let worker = Partner::start(Role::Worker)?;
    supervise(worker, deposits, &signals, Holds::Nothing)
}

/// Supervises the worker that has started this process, and its successors.
///
/// # Errors
/// When the worker ends before it has handed over what it has.
pub fn succeed() -> io::Result<()> {
    let signals = Signals::block()?;
    let lost =
        || io::Error::other("worker ended before it had handed over to its new supervisor; all containers are lost");
    let worker = Partner::starter().ok_or_else(lost)?;
    let mut deposits = Deposits::new();
    loop {
        match store::receive(worker.socket()).ok_or_else(lost)? {
            Packet::End => return supervise(worker, deposits, &signals, Holds::All),
            packet => keep(packet, &mut deposits),
        }
    }
}

/// What a worker has of the deposits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    All,
}

fn supervise(mut worker: Partner, mut deposits: Deposits, signals: &Signals, mut holds: Holds) -> io::Result<()> {
    loop {
        if holds == Holds::Nothing && hand_over(worker.socket(), &deposits).is_err() {
            worker.end();
        }
        if serve(worker.socket(), &mut deposits, signals)? == Ends::Broker {
            worker.ask_to_end();
            return Ok(());
        }
        let (how, pause) = (worker.end(), worker.pause());
        std::thread::sleep(pause);
        worker = loop {
            match Partner::start(Role::Worker) {
                Ok(worker) => break worker,
                Err(_) if signals.have_come() => return Ok(()),
                // What is kept is worth more than to end.
                Err(error) => eprintln!("m3ipcd: start of a worker failed: {error}; trying again"),
            }
            std::thread::sleep(BACK_OFF);
        };
        eprintln!(
            "m3ipcd: worker ended ({how}); pid {} is the new worker, with {} deposits",
            worker.pid(),
            deposits.len()
        );
        holds = Holds::Nothing;
    }
}

/// Listens where the options say, unless another broker does. The socket appears under its name once it can be connected to.
fn listen(options: &Options) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(&options.socket)?;
    let socket = |flags| rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    if rustix::net::connect(&socket(SocketFlags::CLOEXEC)?, &address).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another m3ipcd listens here"));
    }
    let new = options.socket.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // A worker must not wait for a peer that has gone away between two calls.
    let listener = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    rustix::net::bind(&listener, &SocketAddrUnix::new(&new)?)?;
    // Who may do what is decided by the peer's credentials; others need not even connect.
    let is_private = options.uids.is_empty() && options.gids.is_empty();
    let mode = if is_private { 0o600 } else { 0o666 };
    std::fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    rustix::net::listen(&listener, BACKLOG)?;
    std::fs::rename(&new, &options.socket)?;
    Ok(listener)
}

/// What has ended.
#[derive(PartialEq, Eq)]
enum Ends {
    Worker,
    Broker,
}

/// Keeps what comes, until the worker has ended, or a signal comes.
fn serve(worker: &OwnedFd, deposits: &mut Deposits, signals: &Signals) -> io::Result<Ends> {
    loop {
        // A worker that a signal ends sends one before it is gone.
        if signals.come_before(worker)? {
            return Ok(Ends::Broker);
        }
        match store::receive(worker) {
            Some(packet) => keep(packet, deposits),
            None => return Ok(Ends::Worker),
        }
    }
}

fn keep(packet: Packet, deposits: &mut Deposits) {
    match packet {
        Packet::Keep(key, bytes, files) => {
            // A descriptor that changes comes without the files that it came with first.
            let entry = deposits.entry(key).or_default();
            entry.0 = bytes;
            if !files.is_empty() {
                entry.1 = files;
            }
        }
        Packet::Drop(key) => {
            deposits.remove(&key);
        }
        Packet::Introduce(_) | Packet::End => {}
    }
}

fn hand_over(worker: &OwnedFd, deposits: &Deposits) -> Result<(), Errno> {
    for (key, (bytes, files)) in deposits {
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        store::hand_over(worker, *key, bytes, &files)?;
    }
    store::end(worker)
}
