//! mount, umount2 and sync; `mounts::mounting` does the work.

use super::{Changes::First, Entry, call, change, task};
use abi::linux::nr;

pub(super) const CALLS: &[Entry] = &[
    call(nr::SYNC, |c| {
        let vfs = c.vfs;
        task(async move { vfs.sync().await.map(|()| 0) })
    }),
    change(nr::MOUNT, First, |c| {
        let (source, target, kind) = (c.path_or_none(0)?, c.path(1)?, c.path_or_none(2)?);
        task(c.vfs.mount_call(c.process(), source, target, kind, c.words[3], c.path_or_none(4)?))
    }),
    change(nr::UMOUNT2, First, |c| task(c.vfs.unmount_call(c.process(), c.path(0)?))),
];
