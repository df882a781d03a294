//! mount, umount2, pivot_root and sync; `mounts` does the work.

use super::{Changes::First, Entry, call, change, task};
use crate::mounts::{
    self,
    calls::{Arguments, mount_call, pivot_call, unmount_call},
};
use abi::linux::nr;

pub(super) const CALLS: &[Entry] = &[
    call(nr::SYNC, |c| {
        let base = c.base();
        task(async move { mounts::sync(base).await.map(|()| 0) })
    }),
    change(nr::MOUNT, First, |c| {
        let (source, target, kind) = (c.path_or_none(0)?, c.path(1)?, c.path_or_none(2)?);
        let arguments = Arguments { source, target, kind, flags: c.words[3], options: c.path_or_none(4)? };
        task(mount_call(c.base(), c.process(), arguments))
    }),
    change(nr::UMOUNT2, First, |c| task(unmount_call(c.base(), c.process(), c.path(0)?, c.words[1]))),
    call(nr::PIVOT_ROOT, |c| task(pivot_call(c.base(), c.processes(), c.process(), c.path(0)?, c.path(1)?))),
];
