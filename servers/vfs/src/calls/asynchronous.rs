//! `O_ASYNC` as fcntl and ioctl set it, and the ioctls of sockets that name the owner.
//!
//! Only open files of objects that can tell have the flag. Neighbours: `objects::asynchronous` (what tells), `leases` (fcntl's commands on
//! the owner).

use super::{call::Call, leases};
use crate::{
    memory as user,
    objects::{O_ASYNC, OpenFile, asynchronous, character::Character, socket::SocketFile},
};
use abi::{Errno, vfs::OWNER_PROCESS};
use alloc::rc::Rc;

mod ioctl {
    pub const FIOASYNC: u32 = 0x5452;
    pub const FIOSETOWN: u32 = 0x8901;
    pub const SIOCSPGRP: u32 = 0x8902;
    pub const FIOGETOWN: u32 = 0x8903;
    pub const SIOCGPGRP: u32 = 0x8904;
}

/// The ioctls of this file; `None`: it is another. `ENOTTY`: the object tells nothing; `EFAULT`, `ESRCH`, `ENOMEM`.
pub(super) fn control(call: &Call, file: &Rc<OpenFile>, request: u32) -> Option<Result<u64, Errno>> {
    let is_socket = file.object::<SocketFile>().is_some();
    Some(match request {
        ioctl::FIOASYNC => fetch(call).and_then(|on| match (on != 0) == is_set(file) {
            true => Ok(0),
            false if !file.any().is_asynchronous() => Err(Errno::ENOTTY),
            false => set(call, file, on != 0).map(|()| 0),
        }),
        ioctl::FIOSETOWN | ioctl::SIOCSPGRP if is_socket => {
            fetch(call).and_then(|who| leases::set_signed_owner(call, file, who))
        }
        ioctl::FIOGETOWN | ioctl::SIOCGPGRP if is_socket => {
            let owner = leases::signed_owner(call, file) as i32;
            user::store(call.process.caller.endpoint, call.words[2], &owner.to_le_bytes()).map(|()| 0)
        }
        _ => return None,
    })
}

fn fetch(call: &Call) -> Result<i32, Errno> {
    let mut bytes = [0; 4];
    user::fetch(call.process.caller.endpoint, call.words[2], &mut bytes)?;
    Ok(i32::from_le_bytes(bytes))
}

fn is_set(file: &OpenFile) -> bool {
    file.flags() & O_ASYNC != 0
}

/// Sets or clears `O_ASYNC` for the descriptor in argument 0; without effect on what cannot tell. The owner of a terminal that has none
/// becomes the caller, as on Linux. `ENOMEM`: no room.
pub(super) fn set(call: &Call, file: &Rc<OpenFile>, on: bool) -> Result<(), Errno> {
    if is_set(file) == on || !file.any().is_asynchronous() {
        return Ok(());
    }
    if !on {
        file.set_flags(file.flags() & !O_ASYNC);
        if let Some(owner) = file.owner() {
            owner.set_teller(None, None);
        }
        file.drop_unused_owner();
        return Ok(());
    }
    let owner = file.owner_for(call.process.caller.user())?;
    if owner.record().id == 0 && file.object::<Character>().is_some() {
        leases::name_owner(call.process, &owner, OWNER_PROCESS, call.process.caller.pid);
    }
    owner.set_teller(Some(call.flags(0)), None);
    let watched = asynchronous::watch(call.base(), file, &owner);
    if watched.is_err() {
        owner.set_teller(None, None);
        file.drop_unused_owner();
        return watched;
    }
    file.set_flags(file.flags() | O_ASYNC);
    Ok(())
}
