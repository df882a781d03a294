//! The supervisor: starts the worker, keeps its deposits, and starts a successor when it dies.
//!
//! It knows nothing of containers, and reads nothing that programs write, so that what kills a worker does not reach it.

use crate::Options;
use crate::store::{self, Key, Packet};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::BTreeMap;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set in the environment of workers.
pub const WORKER: &str = "M3IPCD_WORKER";
/// A worker that dies sooner than this has its successor later.
const SHORT_LIFE: Duration = Duration::from_millis(100);
/// How much later.
const BACK_OFF: Duration = Duration::from_millis(200);
/// Connections that wait to be accepted while there is no worker.
const BACKLOG: i32 = 256;

type Deposits = BTreeMap<Key, (Vec<u8>, Vec<OwnedFd>)>;

/// Listens, and has a worker work, until a worker ends of its own will.
///
/// # Errors
/// When it cannot listen, or cannot start a worker.
pub fn supervise(options: &Options) -> io::Result<()> {
    let mut deposits = Deposits::new();
    deposits.insert(Key::Listener, (Vec::new(), vec![listen(options)?]));
    loop {
        let started = Instant::now();
        let (own, others) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut worker = start(others)?;
        serve(&own, &mut deposits);
        // Whatever it does with a socket that nobody reads: it has ended, or shall.
        worker.kill()?;
        let status = worker.wait()?;
        eprintln!("m3ipcd: worker ended ({status}); starting another one with {} deposits", deposits.len());
        if started.elapsed() < SHORT_LIFE {
            std::thread::sleep(BACK_OFF);
        }
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

/// Starts a worker with this end of the pair as its standard input.
fn start(end: OwnedFd) -> io::Result<Child> {
    let arguments = std::env::args_os().skip(1);
    // A program that was replaced meanwhile has its new version work from now on; one that was removed is still there under this name.
    let program = std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or("/proc/self/exe".into());
    Command::new(program).args(arguments).env(WORKER, "1").stdin(Stdio::from(end)).spawn()
}

/// Hands the deposits over, and keeps what comes, until the worker has ended.
fn serve(worker: &OwnedFd, deposits: &mut Deposits) {
    if hand_over(worker, deposits).is_err() {
        return;
    }
    while let Some(packet) = store::receive(worker) {
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
            Packet::End => {}
        }
    }
}

fn hand_over(worker: &OwnedFd, deposits: &Deposits) -> Result<(), Errno> {
    for (key, (bytes, files)) in deposits {
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        store::keep(worker, *key, bytes, &files)?;
    }
    store::end(worker)
}
