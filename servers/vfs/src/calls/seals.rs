//! The commands of fcntl on seals of files in memory.

use super::{call::Call, done, task};
use crate::{
    base::{Base, Flow},
    files::{
        seals::{self, Seals},
        vnode::NodeRef,
    },
    objects::{OpenFile, regular::Regular},
    processes::Processes,
};
use abi::Errno;
use alloc::rc::Rc;

/// F_ADD_SEALS.
pub const ADD_SEALS: u32 = 1033;
/// F_GET_SEALS.
pub const GET_SEALS: u32 = 1034;

/// Both commands. `EINVAL`: the file is not in memory.
pub fn control(call: &Call, file: &Rc<OpenFile>, command: u32) -> Result<Flow, Errno> {
    let added = call.flags(2);
    if command == ADD_SEALS {
        file.writable().map_err(|_| Errno::EPERM)?;
        if added & !seals::ALL != 0 {
            return Err(Errno::EINVAL);
        }
    }
    let node = &file.object::<Regular>().ok_or(Errno::EINVAL)?.node;
    let known = node.seals().ok_or(Errno::EINVAL)?;
    match command {
        GET_SEALS => done(Ok(known.get().into())),
        _ if known.has(seals::SEAL) => Err(Errno::EPERM),
        _ => task(add(call.base(), call.processes(), node.clone(), added)),
    }
}

/// F_ADD_SEALS. `EBUSY`: the content must not change, but the file is mapped to be written.
async fn add(base: &'static Base, processes: &'static Processes, node: NodeRef, added: u32) -> Result<u64, Errno> {
    let known = || node.seals().filter(|seals| !seals.has(seals::SEAL)).ok_or(Errno::EPERM);
    if added & seals::WRITE != 0 && !known()?.has(seals::WRITE) {
        // Of a mapping that has ended vfs may not have heard.
        if let Some(object) = node.shared_object() {
            base.mappings().release_map(object).await;
        }
        if base.mappings().is_mapped_to_write(&node) {
            return Err(Errno::EBUSY);
        }
    }
    known().map(|seals: &Seals| seals.set(seals.get() | added))?;
    for process in processes.all() {
        let files = process.files();
        let descriptors = files.descriptors();
        let same = descriptors.iter().filter(|(_, file)| file.node().is_some_and(|other| Rc::ptr_eq(other, &node)));
        same.for_each(|(_, file)| file.save_object());
    }
    Ok(0)
}
