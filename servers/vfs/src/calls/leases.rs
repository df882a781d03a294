//! fcntl's commands on leases, and on the owner of an open file and its signal.
//!
//! Owner, signal and lease of an open file lie in one record, which is charged to the user whose call makes it. Neighbours:
//! `files::leases`; `asynchronous` (what else an owner is told); `descriptors` (the other commands).

use super::call::Call;
use crate::{
    files::leases::{Access, FileOwner},
    memory as user,
    objects::{OpenFile, regular::Regular},
    processes::{Process, Processes},
};
use abi::{
    Capability, Errno, Part,
    container::{pid_meant, pid_shown},
    vfs::{OWNER_GROUP, OWNER_PROCESS, OWNER_THREAD},
};
use sys::time;

mod fcntl {
    pub const SETOWN: u32 = 8;
    pub const GETOWN: u32 = 9;
    pub const SETSIG: u32 = 10;
    pub const GETSIG: u32 = 11;
    pub const SETOWN_EX: u32 = 15;
    pub const GETOWN_EX: u32 = 16;
    pub const SETLEASE: u32 = 1024;
    pub const GETLEASE: u32 = 1025;
}

const F_RDLCK: u64 = 0;
const F_WRLCK: u64 = 1;
const F_UNLCK: u64 = 2;
const SIGNALS: u64 = 64;

/// Executes one of the commands above. `EINVAL`: another command; `EBADF`: an `O_PATH` descriptor.
pub(super) fn control(call: &Call, file: &OpenFile, command: u32) -> Result<u64, Errno> {
    let (process, argument) = (call.process, call.words[2]);
    file.usable()?;
    match command {
        fcntl::SETOWN => set_signed_owner(call, file, argument as i32),
        fcntl::GETOWN => Ok(signed_owner(call, file) as u64),
        fcntl::SETOWN_EX => {
            let [owner] = user::fetch_words::<1>(process.caller.endpoint, argument)?;
            set_owner(call, file, owner & 0xffff_ffff, (owner >> 32) as i32)
        }
        fcntl::GETOWN_EX => {
            let (kind, id) = owner_of(call, file);
            user::store(process.caller.endpoint, argument, &(kind | (id as u64) << 32).to_le_bytes())?;
            Ok(0)
        }
        fcntl::SETSIG => set_signal(process, file, argument),
        fcntl::GETSIG => Ok(file.owner().map_or(0, |owner| owner.record().signal as u64)),
        fcntl::SETLEASE => set_lease(process, file, call.flags(0), argument),
        fcntl::GETLEASE => Ok(get_lease(file)),
        _ => Err(Errno::EINVAL),
    }
}

/// F_SETOWN: negative ids are groups.
pub(super) fn set_signed_owner(call: &Call, file: &OpenFile, who: i32) -> Result<u64, Errno> {
    let kind = if who < 0 { OWNER_GROUP } else { OWNER_PROCESS };
    set_owner(call, file, kind, who.checked_abs().ok_or(Errno::EINVAL)?)
}

/// F_GETOWN: negative ids are groups.
pub(super) fn signed_owner(call: &Call, file: &OpenFile) -> i64 {
    let (kind, id) = owner_of(call, file);
    if kind == OWNER_GROUP { -(id as i64) } else { id as i64 }
}

/// F_SETOWN, F_SETOWN_EX. `ESRCH`: no process or group has this id; `ENOMEM`.
fn set_owner(call: &Call, file: &OpenFile, kind: u64, id: i32) -> Result<u64, Errno> {
    if kind > OWNER_GROUP {
        return Err(Errno::EINVAL);
    }
    let id = u32::try_from(id).map_err(|_| Errno::ESRCH)?;
    // In a container of processes no number means one outside.
    let container = call.process.caller.parts().of(Part::Processes);
    let id = if id == 0 { 0 } else { pid_meant(container, id).ok_or(Errno::ESRCH)? };
    if id != 0 && !exists(call.processes(), kind, id) {
        return Err(Errno::ESRCH);
    }
    if id != 0 || file.owner().is_some() {
        let owner = file.owner_for(call.process.caller.user())?;
        name_owner(call.process, &owner, kind, id);
        file.drop_unused_owner();
    }
    Ok(0)
}

pub(super) fn name_owner(process: &Process, owner: &FileOwner, kind: u64, id: u32) {
    let credentials = process.caller.credentials();
    owner.set_owner(kind as u8, id, [credentials.uid, credentials.euid]);
}

/// Kind and id of the owner; id 0: there is none, or it has ended.
fn owner_of(call: &Call, file: &OpenFile) -> (u64, u32) {
    let Some(owner) = file.owner() else { return (OWNER_THREAD, 0) };
    let (kind, id) = (owner.record().kind as u64, owner.record().id);
    let container = call.process.caller.parts().of(Part::Processes);
    (kind, if exists(call.processes(), kind, id) { pid_shown(container, id) } else { 0 })
}

/// Whether a thread, process or group has this id. vfs knows neither the ids of threads nor zombies: every thread id counts as existing, and
/// no zombie does.
fn exists(processes: &Processes, kind: u64, id: u32) -> bool {
    match kind {
        OWNER_THREAD => id != 0,
        OWNER_GROUP => processes.any(|process| process.caller.group() == id as u64),
        _ => processes.any(|process| process.caller.pid == id),
    }
}

/// F_SETSIG.
fn set_signal(process: &Process, file: &OpenFile, signal: u64) -> Result<u64, Errno> {
    if signal > SIGNALS {
        return Err(Errno::EINVAL);
    }
    if signal != 0 || file.owner().is_some() {
        file.owner_for(process.caller.user())?.set_signal(signal as u8);
        file.drop_unused_owner();
    }
    Ok(0)
}

/// F_SETLEASE. `EACCES`: the caller does not own the file; `EAGAIN`: other open files or leases conflict, or there is no lease to remove;
/// `ENOMEM`.
fn set_lease(process: &Process, file: &OpenFile, descriptor: u32, kind: u64) -> Result<u64, Errno> {
    let wanted = match kind {
        F_RDLCK => Some(Access::Read),
        F_WRLCK => Some(Access::Write),
        F_UNLCK => None,
        _ => return Err(Errno::EINVAL),
    };
    let node = file.node().ok_or(Errno::EINVAL)?;
    let who = process.caller.credentials();
    if who.euid != node.attributes().uid && !who.has(Capability::Lease) {
        return Err(Errno::EACCES);
    }
    let regular = file.object::<Regular>().ok_or(Errno::EINVAL)?;
    node.leases().expire(time::now_ns());
    let result = match wanted {
        Some(wanted) => grant(process, file, regular, wanted, descriptor),
        None if node.leases().release(file.number()) => Ok(0),
        None => Err(Errno::EAGAIN),
    };
    file.drop_unused_owner();
    result
}

fn grant(process: &Process, file: &OpenFile, of: &Regular, wanted: Access, descriptor: u32) -> Result<u64, Errno> {
    let owner = file.owner_for(process.caller.user())?;
    of.node.leases().set(&owner, of.access(), wanted, descriptor)?;
    if owner.record().id == 0 {
        name_owner(process, &owner, OWNER_PROCESS, process.caller.pid);
    }
    file.set_locked();
    Ok(0)
}

/// F_GETLEASE: during a break, the lease that the break will leave, which is also what its deadline leaves.
fn get_lease(file: &OpenFile) -> u64 {
    match file.owner().and_then(|owner| owner.lease()) {
        None => F_UNLCK,
        Some(Access::Read) => F_RDLCK,
        Some(Access::Write) => F_WRLCK,
    }
}
