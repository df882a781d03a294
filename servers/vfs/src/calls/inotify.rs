//! The calls on inotify instances: inotify_init, inotify_init1, inotify_add_watch, inotify_rm_watch.

use super::{Entry, allow, call, done, task};
use crate::{
    base::{Base, closing::Closing},
    callers::permission::{self, READ},
    files::watches::{Inotify, Wanted, flag},
    objects::{O_CLOEXEC, O_NONBLOCK, O_RDONLY, OpenFile, inotify::InotifyFile},
    pathname,
    paths::walk::{self, Last},
    processes::{AT_FDCWD, Process},
};
use abi::{Errno, linux::nr};
use alloc::{rc::Rc, vec::Vec};
use sys::fallible::copied;

pub(super) const CALLS: &[Entry] = &[
    call(nr::INOTIFY_INIT, |c| done(create(c.closing(), c.process, 0))),
    call(nr::INOTIFY_INIT1, |c| done(create(c.closing(), c.process, c.flags(0)))),
    call(nr::INOTIFY_ADD_WATCH, |c| {
        let file = instance_for(c.process, c.int(0), c.flags(2))?;
        task(add(c.base(), c.process(), file, c.path(1)?, c.flags(2)))
    }),
    call(nr::INOTIFY_RM_WATCH, |c| {
        let file = c.process.file(c.int(0))?;
        let inotify = instance_of(&file)?;
        done(inotify.home().remove(inotify, c.flags(1)).map(|()| 0))
    }),
];

/// Bits that inotify_add_watch knows.
const KNOWN: u32 = flag::ALL_EVENTS
    | flag::UNMOUNT
    | flag::Q_OVERFLOW
    | flag::IGNORED
    | flag::ONLYDIR
    | flag::DONT_FOLLOW
    | flag::EXCL_UNLINK
    | flag::MASK_CREATE
    | flag::MASK_ADD
    | flag::ISDIR
    | flag::ONESHOT;

/// inotify_init1. `EINVAL`: unknown flags; `EMFILE`: the user has too many.
fn create(closing: &Rc<Closing>, process: &Process, flags: u32) -> Result<u64, Errno> {
    allow(flags, O_CLOEXEC | O_NONBLOCK)?;
    let user = process.caller.user();
    let instance = Inotify::new(closing.watches(), user)?;
    let path = copied(b"anon_inode:inotify")?;
    let file = OpenFile::new(closing, user, InotifyFile(instance), flags & O_NONBLOCK | O_RDONLY, path)?;
    process.insert(file, flags & O_CLOEXEC != 0)
}

fn instance_of(file: &OpenFile) -> Result<&Rc<Inotify>, Errno> {
    file.object::<InotifyFile>().map(|file| &file.0).ok_or(Errno::EINVAL)
}

/// The instance of a descriptor, if `mask` can be asked of it. `EINVAL`, `EBADF`.
fn instance_for(process: &Process, descriptor: i32, mask: u32) -> Result<Rc<OpenFile>, Errno> {
    const BOTH: u32 = flag::MASK_ADD | flag::MASK_CREATE;
    allow(mask, KNOWN)?;
    if mask == 0 {
        return Err(Errno::EINVAL);
    }
    let file = process.file(descriptor)?;
    if mask & BOTH == BOTH {
        return Err(Errno::EINVAL);
    }
    instance_of(&file)?;
    Ok(file)
}

/// inotify_add_watch. The file must be readable.
async fn add(base: &Base, process: Rc<Process>, file: Rc<OpenFile>, path: Vec<u8>, mask: u32) -> Result<u64, Errno> {
    let last = if mask & flag::DONT_FOLLOW != 0 { Last::Keep } else { Last::Follow };
    let found = walk::resolve(base.files(), &process, AT_FDCWD, path, last).await?;
    let node = found.existing()?.clone();
    if mask & flag::ONLYDIR != 0 && !node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    permission::check(&process.caller.credentials(), node.attributes(), READ)?;
    let instance = instance_of(&file)?;
    instance.set_number(file.number());
    let mut path = found.canonical;
    pathname::keep(&mut path);
    let descriptor = base.files().watches().add(instance, Wanted { node, path, mask })?;
    file.save_object();
    Ok(descriptor.into())
}
