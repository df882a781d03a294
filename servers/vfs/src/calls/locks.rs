//! Advisory locks of programs: fcntl's record locks and flock.

use super::{Entry, call, task};
use crate::{
    files::{
        locks::{Kind, Lock, Range, Waits},
        vnode::NodeRef,
    },
    keep::Store,
    memory as user,
    objects::OpenFile,
    processes::Process,
};
use abi::{Errno, linux::nr};
use alloc::rc::Rc;

const F_RDLCK: u16 = 0;
const F_WRLCK: u16 = 1;
const F_UNLCK: u16 = 2;
/// Bytes of `struct flock`.
const FLOCK_BYTES: usize = 32;

const LOCK_SH: u32 = 1;
const LOCK_EX: u32 = 2;
const LOCK_NB: u32 = 4;
const LOCK_UN: u32 = 8;

/// The lock that a `struct flock` asks for.
struct Request {
    /// `None`: unlock.
    kind: Option<Kind>,
    range: Range,
}

fn node_of(file: &OpenFile) -> Result<NodeRef, Errno> {
    file.usable()?;
    file.node().cloned().ok_or(Errno::EBADF)
}

fn decode(bytes: &[u8; FLOCK_BYTES], file: &OpenFile, size: u64) -> Result<Request, Errno> {
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let kind = match half(0) {
        F_RDLCK => Some(Kind::Shared),
        F_WRLCK => Some(Kind::Exclusive),
        F_UNLCK => None,
        _ => return Err(Errno::EINVAL),
    };
    let base = match half(2) {
        0 => 0,
        1 => file.position(),
        2 => size,
        _ => return Err(Errno::EINVAL),
    };
    Ok(Request { kind, range: Range::from_flock(base, word(8), word(16))? })
}

fn encode(lock: Option<&Lock>, bytes: &mut [u8; FLOCK_BYTES]) {
    let Some(lock) = lock else {
        bytes[..2].copy_from_slice(&F_UNLCK.to_le_bytes());
        return;
    };
    let kind = if lock.kind == Kind::Shared { F_RDLCK } else { F_WRLCK };
    let length = if lock.range.last == u64::MAX { 0 } else { lock.range.last - lock.range.start + 1 };
    bytes[..2].copy_from_slice(&kind.to_le_bytes());
    bytes[2..4].fill(0);
    bytes[8..16].copy_from_slice(&lock.range.start.to_le_bytes());
    bytes[16..24].copy_from_slice(&length.to_le_bytes());
    bytes[24..28].copy_from_slice(&lock.pid.to_le_bytes());
}

pub(super) const CALLS: &[Entry] = &[call(nr::FLOCK, |c| task(flock(c.store(), c.process(), c.int(0), c.flags(1))))];

fn fetch_request(
    process: &Process,
    file: &OpenFile,
    owner: Owner,
    address: u64,
) -> Result<(NodeRef, Request, [u8; FLOCK_BYTES]), Errno> {
    let node = node_of(file)?;
    let mut bytes = [0; FLOCK_BYTES];
    user::fetch(process.caller.endpoint, address, &mut bytes)?;
    if owner.is_file && bytes[24..28] != [0; 4] {
        return Err(Errno::EINVAL);
    }
    let request = decode(&bytes, file, node.size())?;
    Ok((node, request, bytes))
}

/// Who owns a record lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    number: u64,
    /// Shown by `F_GETLK`.
    pid: u32,
    /// Who is charged.
    user: u32,
    is_file: bool,
}

impl Owner {
    /// The process, by its descriptor table (`F_SETLK`).
    pub fn table(process: &Process) -> Owner {
        Owner { number: process.files().owner(), pid: process.caller.pid, user: process.caller.user(), is_file: false }
    }

    /// The open file (`F_OFD_SETLK`).
    pub fn open_file(process: &Process, file: &OpenFile) -> Owner {
        Owner { number: file.number(), pid: -1i32 as u32, user: process.caller.user(), is_file: true }
    }
}

/// F_GETLK, F_OFD_GETLK.
pub(super) fn get_lock(process: &Process, file: &OpenFile, owner: Owner, address: u64) -> Result<u64, Errno> {
    let (node, request, mut bytes) = fetch_request(process, file, owner, address)?;
    let kind = request.kind.ok_or(Errno::EINVAL)?;
    let wanted = Lock { owner: owner.number, pid: owner.pid, user: owner.user, kind, range: request.range };
    encode(node.locks().records.borrow().conflict(&wanted), &mut bytes);
    user::store(process.caller.endpoint, address, &bytes)?;
    Ok(0)
}

/// F_SETLK, F_OFD_SETLK.
pub(super) fn set_lock(
    store: &Rc<Store>,
    process: &Process,
    file: &OpenFile,
    owner: Owner,
    address: u64,
) -> Result<u64, Errno> {
    let (node, request, _) = fetch_request(process, file, owner, address)?;
    match try_lock(store, file, owner, &node, &request)? {
        None => Ok(0),
        Some(_) => Err(Errno::EAGAIN),
    }
}

/// Sets the lock, or returns the owner of a conflicting one.
fn try_lock(
    store: &Rc<Store>,
    file: &OpenFile,
    owner: Owner,
    node: &NodeRef,
    request: &Request,
) -> Result<Option<u64>, Errno> {
    let locks = node.locks();
    let releases_all = request.kind.is_none() && request.range == Range::ALL;
    if !releases_all {
        locks.check_room(store, owner.user)?;
    }
    let Some(kind) = request.kind else {
        locks.release_records(store, node.record(), owner.number, request.range);
        return Ok(None);
    };
    match kind {
        Kind::Shared => file.readable()?,
        Kind::Exclusive => file.writable()?,
    }
    let lock = Lock { owner: owner.number, pid: owner.pid, user: owner.user, kind, range: request.range };
    let holder = locks.records.borrow().conflict(&lock).map(|held| held.owner);
    if holder.is_none() {
        locks.records.borrow_mut().set(lock);
        locks.save(store, node.record());
        if owner.is_file {
            file.set_locked();
        }
        // A lock that has become a shared one may let others in.
        locks.released.fire();
    }
    Ok(holder)
}

/// F_SETLKW, F_OFD_SETLKW.
pub(super) async fn wait_lock(
    store: &Rc<Store>,
    waits: &Waits,
    process: Rc<Process>,
    file: Rc<OpenFile>,
    owner: Owner,
    address: u64,
) -> Result<u64, Errno> {
    let (node, request, _) = fetch_request(&process, &file, owner, address)?;
    let locks = node.locks();
    while let Some(holder) = try_lock(store, &file, owner, &node, &request)? {
        waits.begin(owner.number, holder)?;
        locks.released.add(process.caller.event());
        let waited = process.caller.wait().await;
        locks.released.remove(process.caller.event());
        waits.end(owner.number, holder);
        waited?;
    }
    Ok(0)
}

/// flock.
async fn flock(store: &Rc<Store>, process: Rc<Process>, descriptor: i32, operation: u32) -> Result<u64, Errno> {
    let file = process.file(descriptor)?;
    let node = node_of(&file)?;
    let locks = node.locks();
    let kind = match operation & !LOCK_NB {
        LOCK_SH => Kind::Shared,
        LOCK_EX => Kind::Exclusive,
        LOCK_UN => {
            locks.release_whole(store, node.record(), file.number());
            return Ok(0);
        }
        _ => return Err(Errno::EINVAL),
    };
    let (pid, user) = (process.caller.pid, process.caller.user());
    let lock = Lock { owner: file.number(), pid, user, kind, range: Range::ALL };
    if locks.whole.borrow().kind_of(file.number()) == Some(kind) {
        return Ok(0);
    }
    // A lock of the other kind is given up first: two that hold a shared one and want it exclusive do not wait for each other.
    locks.release_whole(store, node.record(), file.number());
    while locks.whole.borrow().conflict(&lock).is_some() {
        if operation & LOCK_NB != 0 {
            return Err(Errno::EAGAIN);
        }
        locks.released.add(process.caller.event());
        let waited = process.caller.wait().await;
        locks.released.remove(process.caller.event());
        waited?;
    }
    locks.check_room(store, user)?;
    locks.whole.borrow_mut().set(lock);
    locks.save(store, node.record());
    file.set_locked();
    locks.released.fire();
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_reported_as_struct_flock() {
        let lock = Lock { owner: 1, pid: 42, user: 0, kind: Kind::Exclusive, range: Range { start: 10, last: 19 } };
        let mut bytes = [0xff; FLOCK_BYTES];
        encode(Some(&lock), &mut bytes);
        assert_eq!((bytes[0], bytes[2], bytes[8], bytes[16], bytes[24]), (F_WRLCK as u8, 0, 10, 10, 42));
        encode(None, &mut bytes);
        assert_eq!((bytes[0], bytes[8]), (F_UNLCK as u8, 10));
        encode(Some(&Lock { range: Range::ALL, ..lock }), &mut bytes);
        assert_eq!(bytes[16..24], [0; 8]);
    }
}
