//! memfd_create: a file in memory without a name.

use super::{Entry, call, task};
use crate::{
    base::Base,
    callers::permission::S_IFREG,
    files::{Files, vnode::NodeRef},
    objects::{O_LARGEFILE, O_RDONLY, O_RDWR, OpenFile, regular::Regular},
    processes::Process,
};
use abi::{Errno, linux::nr};
use alloc::{rc::Rc, vec::Vec};
use sys::fallible::{TryVec, copied};

const CLOEXEC: u32 = 1;
/// Seals may be set: see `files::seals`.
const ALLOW_SEALING: u32 = 2;
/// Longest name that a program may give.
const NAME_BYTES: usize = 249;

pub(super) const CALLS: &[Entry] =
    &[call(nr::MEMFD_CREATE, |c| task(create_memory_file(c.base(), c.process(), c.path(0)?, c.flags(1))))];

/// memfd_create: returns the descriptor. `EINVAL`: unknown flags, or the name is too long; `ENOMEM`: no file system in memory is mounted; `ENOSYS` in a
/// container with limits, which would not pay for the memory.
async fn create_memory_file(base: &Base, process: Rc<Process>, name: Vec<u8>, flags: u32) -> Result<u64, Errno> {
    if flags & !(CLOEXEC | ALLOW_SEALING) != 0 || name.len() > NAME_BYTES {
        return Err(Errno::EINVAL);
    }
    if process.caller.parts().limited().is_some() {
        process.caller.refuse("memfd_create");
        return Err(Errno::ENOSYS);
    }
    process.files().check_room(process.caller.descriptor_limit())?;
    let node = create_nameless(base.files(), &process).await?;
    if let Some(seals) = node.seals().filter(|_| flags & ALLOW_SEALING != 0) {
        seals.set(0);
    }
    let mut path = copied(b"/memfd:")?;
    path.try_extend_from_slice(&name)?;
    // As Linux: it is not counted as open for writing, so that what was written to it can be executed.
    let file =
        OpenFile::new(base.closing(), process.caller.user(), Regular::new(node, O_RDONLY), O_RDWR | O_LARGEFILE, path)?;
    process.insert(file, flags & CLOEXEC != 0)
}

/// Makes the file on a file system in memory.
async fn create_nameless(files: &Files, process: &Process) -> Result<NodeRef, Errno> {
    let root = {
        let in_memory = files.mounts.find(|mount| mount.is_in_memory() && !mount.is_read_only());
        in_memory.and_then(|mount| mount.root()).ok_or(Errno::ENOMEM)?
    };
    files.create_nameless(&root, S_IFREG | 0o777, process.caller.credentials().ids()).await
}
