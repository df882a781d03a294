//! What calls tell about a file: stat and its relatives.
//!
//! Neighbours: `attributes` (which changes them), `files::known` (what is known without asking the file system).

use super::{
    Entry, allow,
    attributes::{Subject, find},
    call,
    call::{AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, Call, Target},
    done, task,
};
use crate::{
    base::Flow,
    files::{Files, stat::Stat, vnode::NodeRef},
    memory as user,
    paths::walk::{self, Found, Last, Purpose, Resolution},
    processes::{AT_FDCWD, Process},
};
use abi::{Errno, linux::nr};
use alloc::rc::Rc;

/// Flags of the stat family that change nothing here.
const AT_STAT_IGNORED: u32 = 0x800 | 0x6000;

const NOFOLLOW: u32 = AT_SYMLINK_NOFOLLOW;

pub(super) const CALLS: &[Entry] = &[
    call(nr::STAT, |c| stat_path(c, c.target_here(0, 0)?, c.words[1])),
    call(nr::LSTAT, |c| stat_path(c, c.target_here(0, NOFOLLOW)?, c.words[1])),
    call(nr::FSTAT, |c| stat_descriptor(c, c.words[1])),
    call(nr::NEWFSTATAT, |c| {
        allow(c.flags(3), NOFOLLOW | AT_EMPTY_PATH | AT_STAT_IGNORED)?;
        if names_descriptor(c)? {
            return stat_descriptor(c, c.words[2]);
        }
        stat_path(c, c.target_at(0, c.flags(3))?, c.words[2])
    }),
    call(nr::STATX, |c| {
        const AT_STATX_SYNC_TYPE: u32 = 0x6000;
        const STATX_RESERVED: u32 = 0x8000_0000;
        allow(c.flags(2), NOFOLLOW | AT_EMPTY_PATH | AT_STAT_IGNORED)?;
        allow(c.flags(3), !STATX_RESERVED)?;
        if c.flags(2) & AT_STATX_SYNC_TYPE == AT_STATX_SYNC_TYPE {
            return Err(Errno::EINVAL);
        }
        task(statx_target(c.files(), c.process(), c.target_at(0, c.flags(2))?, c.words[4]))
    }),
];

/// What a process sees of a file.
async fn stat_subject(files: &Files, process: &Process, subject: &Subject) -> Result<Stat, Errno> {
    let mut stat = match subject {
        Subject::Node(node, _) => files.stat(node).await?,
        Subject::File(file) => match file.node() {
            Some(node) => files.stat(node).await?,
            None => Stat::of_object(&file.any().summary()?),
        },
    };
    let credentials = process.caller.credentials();
    if credentials.contained.is_some() {
        stat.set_owner(credentials.seen(stat.owner()));
    }
    Ok(stat)
}

/// fstat, and the others by an empty path.
async fn stat_target(files: &Files, process: Rc<Process>, target: Target, address: u64) -> Result<u64, Errno> {
    let subject = find(files, &process, target).await?;
    let stat = stat_subject(files, &process, &subject).await?;
    user::store(process.caller.endpoint, address, &stat.0)?;
    Ok(0)
}

/// stat, lstat, newfstatat.
async fn stat_resolved(
    files: &Files,
    process: Rc<Process>,
    resolution: Resolution,
    address: u64,
) -> Result<u64, Errno> {
    let subject = Subject::found(resolution.end(files, &process).await?)?;
    let stat = stat_subject(files, &process, &subject).await?;
    user::store(process.caller.endpoint, address, &stat.0)?;
    Ok(0)
}

/// Whether a call with a descriptor, a path and flags means the descriptor, as glibc's fstat does: the path is empty. Other paths are
/// fetched as a whole later.
fn names_descriptor(call: &Call) -> Result<bool, Errno> {
    if call.flags(3) & AT_EMPTY_PATH == 0 || call.int(0) == AT_FDCWD || call.words[1] == 0 {
        return Ok(false);
    }
    let mut first = [0];
    user::fetch(call.process.caller.endpoint, call.words[1], &mut first)?;
    Ok(first == [0])
}

/// Tells a process what is known of a file; `None`: the file system has to be asked, or its owner is another one in the process's container.
#[inline]
fn store_known(process: &Process, node: &NodeRef, address: u64) -> Option<Result<u64, Errno>> {
    if process.caller.credentials().contained.is_some() {
        return None;
    }
    node.known_stat().with(|stat| user::store(process.caller.endpoint, address, &stat.0).map(|()| 0))
}

/// fstat: at once, if what it tells is known.
fn stat_descriptor(call: &Call, address: u64) -> Result<Flow, Errno> {
    let (process, file) = (call.process, call.process.file(call.int(0))?);
    match file.node().and_then(|node| store_known(process, node, address)) {
        Some(stored) => done(stored),
        None => task(stat_target(call.files(), call.process(), call.target_descriptor()?, address)),
    }
}

/// stat of a path: at once, if the file and what is told of it are known.
fn stat_path(call: &Call, target: Target, address: u64) -> Result<Flow, Errno> {
    let (process, Target { directory, path, flags }) = (call.process, target);
    if path.is_empty() {
        return task(stat_target(call.files(), call.process(), Target { directory, path, flags }, address));
    }
    let last = if flags & NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
    let resolution = walk::resolve_known(call.files(), process, directory, path, last, Purpose::Use)?;
    if let Resolution::Found(Found { node: Some(node), .. }, _) = &resolution
        && let Some(stored) = store_known(process, node, address)
    {
        return done(stored);
    }
    task(stat_resolved(call.files(), call.process(), resolution, address))
}

/// statx.
async fn statx_target(files: &Files, process: Rc<Process>, target: Target, address: u64) -> Result<u64, Errno> {
    let subject = find(files, &process, target).await?;
    let stat = stat_subject(files, &process, &subject).await?;
    user::store(process.caller.endpoint, address, &stat.to_statx())?;
    Ok(0)
}
