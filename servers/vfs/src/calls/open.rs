//! open and its relatives (open(2)): `open` finds the file, the process gets a descriptor of it.

use super::{Changes::First, Entry, call::Call, change, task};
use crate::{
    base::{Base, Flow},
    memory as user,
    objects::{O_CLOEXEC, O_CREAT, O_TRUNC, O_WRONLY},
    open::open_file,
    processes::{AT_FDCWD, Process},
};
use abi::{Errno, linux::nr};
use alloc::{rc::Rc, vec::Vec};

/// Bytes of the `struct open_how` that is known.
const OPEN_HOW_BYTES: u64 = 24;

pub(super) const CALLS: &[Entry] = &[
    change(nr::OPEN, First, |c| task(open(c.base(), c.process(), AT_FDCWD, c.path(0)?, c.flags(1), c.flags(2)))),
    change(nr::OPENAT, First, |c| task(open(c.base(), c.process(), c.int(0), c.path(1)?, c.flags(2), c.flags(3)))),
    change(nr::OPENAT2, First, openat2),
    change(nr::CREAT, First, |c| {
        task(open(c.base(), c.process(), AT_FDCWD, c.path(0)?, O_CREAT | O_TRUNC | O_WRONLY, c.flags(1)))
    }),
];

/// openat2: flags and mode of `struct open_how`. `EINVAL` for restrictions of the resolution, which are not supported.
fn openat2(call: &Call) -> Result<Flow, Errno> {
    if call.words[3] < OPEN_HOW_BYTES {
        return Err(Errno::EINVAL);
    }
    let [flags, mode, resolve] = user::fetch_words::<3>(call.process.caller.endpoint, call.words[2])?;
    if resolve != 0 || flags > u32::MAX as u64 || mode & !0o7777 != 0 {
        return Err(Errno::EINVAL);
    }
    task(open(call.base(), call.process(), call.int(0), call.path(1)?, flags as u32, mode as u32))
}

/// open, openat, creat: returns the descriptor.
async fn open(
    base: &'static Base,
    process: Rc<Process>,
    directory: i32,
    path: Vec<u8>,
    flags: u32,
    mode: u32,
) -> Result<u64, Errno> {
    process.files().check_room(process.caller.descriptor_limit())?;
    let file = open_file(base, &process, directory, path, flags, mode).await?;
    process.insert(file, flags & O_CLOEXEC != 0)
}
