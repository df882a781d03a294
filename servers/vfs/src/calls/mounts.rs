//! mount, umount2 and sync; `mounts` does the work.

use super::{Changes::First, Entry, call, change, task};
use crate::mounts;
use abi::linux::nr;

pub(super) const CALLS: &[Entry] = &[
    call(nr::SYNC, |c| {
        let base = c.base();
        task(async move { mounts::sync(base).await.map(|()| 0) })
    }),
    change(nr::MOUNT, First, |c| {
        let (source, target, kind) = (c.path_or_none(0)?, c.path(1)?, c.path_or_none(2)?);
        task(mounts::mount_call(c.base(), c.process(), source, target, kind, c.words[3], c.path_or_none(4)?))
    }),
    change(nr::UMOUNT2, First, |c| task(mounts::unmount_call(c.base(), c.process(), c.path(0)?))),
];
