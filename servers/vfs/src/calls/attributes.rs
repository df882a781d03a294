//! Attributes of files: access, chmod, chown, times, truncate, statfs.
//!
//! chmod, chown and what sets times ask the file system in the turn of the call and are answered in that of its reply, if the file is known and has no
//! dirty pages; a task goes on where something else has to be waited for.

use super::{
    Changes::First,
    Entry, allow, call,
    call::{AT_EACCESS, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, Call, Target},
    change, done, task,
};
use crate::{
    base::{Base, Flow, leases::Wait},
    callers::permission::{self, WRITE},
    files::{Files, attributes::NewAttributes, leases::Access, stat::STATFS_BYTES, vnode::NodeRef, watches::flag},
    memory as user,
    objects::{O_WRONLY, OpenFile, pipe::PipeEnd, regular::Regular},
    paths::walk::{self, Found, Last, Purpose, Resolution, Stopped},
    processes::{AT_FDCWD, Process},
};
use abi::{Errno, fs, linux::nr};
use alloc::{boxed::Box, rc::Rc, vec::Vec};
use sys::fallible::{copied, filled};

/// fallocate: the file keeps its size.
const FALLOC_FL_KEEP_SIZE: u32 = 1;
/// fallocate: free the space.
const FALLOC_FL_PUNCH_HOLE: u32 = 2;
/// fallocate: the content becomes zeros.
const FALLOC_FL_ZERO_RANGE: u32 = 0x10;
/// fallocate: takes a part out of the file.
const FALLOC_FL_COLLAPSE_RANGE: u32 = 8;
/// fallocate: puts a hole into the file.
const FALLOC_FL_INSERT_RANGE: u32 = 0x20;
/// fallocate: has blocks of its own for the range.
const FALLOC_FL_UNSHARE_RANGE: u32 = 0x40;

/// `fs::SetTimes`: leave it.
pub const TIME_OMIT: u64 = u64::MAX;
/// `fs::SetTimes`: now.
pub const TIME_NOW: u64 = u64::MAX - 1;

/// The file that a call is about, once it is found: pipes have no node.
pub enum Subject {
    /// A file, and the path it was found by.
    Node(NodeRef, Vec<u8>),
    /// An open file.
    File(Rc<OpenFile>),
}

impl Subject {
    pub(super) fn node(&self) -> Result<NodeRef, Errno> {
        match self {
            Subject::Node(node, _) => Ok(node.clone()),
            Subject::File(file) => file.node().cloned().ok_or(Errno::EINVAL),
        }
    }

    /// What a resolved path means. `ENOENT`.
    pub(super) fn found(found: Found) -> Result<Subject, Errno> {
        match found.pipe {
            Some(pipe) => Ok(Subject::File(pipe)),
            None => found.node.map(|node| Subject::Node(node, found.canonical)).ok_or(Errno::ENOENT),
        }
    }

    /// Tells those who watch the file, or its directory.
    pub(super) fn happened(&self, files: &Files, mask: u32) {
        match self {
            Subject::Node(node, path) => files.watches().happened(node, path, mask),
            Subject::File(file) => {
                if let Some(node) = file.node() {
                    files.watches().happened(node, &file.path(), mask);
                }
            }
        }
    }
}

/// `EROFS`: its file system is mounted read-only.
pub(super) fn writable(node: &NodeRef) -> Result<(), Errno> {
    if node.mount().is_read_only() { Err(Errno::EROFS) } else { Ok(()) }
}

const NOFOLLOW: u32 = AT_SYMLINK_NOFOLLOW;

pub(super) const CALLS: &[Entry] = &[
    call(nr::STATFS, |c| task(statfs_target(c.files(), c.process(), c.target_here(0, 0)?, c.words[1]))),
    call(nr::FSTATFS, |c| task(statfs_target(c.files(), c.process(), c.target_descriptor()?, c.words[1]))),
    call(nr::ACCESS, |c| task(access(c.files(), c.process(), c.target_here(0, 0)?, c.flags(1)))),
    call(nr::FACCESSAT, |c| task(access(c.files(), c.process(), c.target_at(0, 0)?, c.flags(2)))),
    call(nr::FACCESSAT2, |c| {
        allow(c.flags(3), NOFOLLOW | AT_EMPTY_PATH | AT_EACCESS)?;
        task(access(c.files(), c.process(), c.target_at(0, c.flags(3))?, c.flags(2)))
    }),
    call(nr::CHMOD, |c| set(c, c.target_here(0, 0)?, Setting::Mode(c.flags(1)))),
    call(nr::FCHMOD, |c| set(c, c.target_usable()?, Setting::Mode(c.flags(1)))),
    call(nr::FCHMODAT, |c| set(c, c.target_at(0, 0)?, Setting::Mode(c.flags(2)))),
    call(nr::CHOWN, |c| set(c, c.target_here(0, 0)?, Setting::Owner(c.flags(1), c.flags(2)))),
    call(nr::LCHOWN, |c| set(c, c.target_here(0, NOFOLLOW)?, Setting::Owner(c.flags(1), c.flags(2)))),
    call(nr::FCHOWN, |c| set(c, c.target_usable()?, Setting::Owner(c.flags(1), c.flags(2)))),
    call(nr::FCHOWNAT, |c| {
        allow(c.flags(4), NOFOLLOW | AT_EMPTY_PATH)?;
        set(c, c.target_at(0, c.flags(4))?, Setting::Owner(c.flags(2), c.flags(3)))
    }),
    call(nr::UTIME, utime),
    call(nr::UTIMES, |c| set_times(c, c.target_here(0, 0)?, c.words[1], decode_timevals)),
    call(nr::FUTIMESAT, |c| set_times(c, c.target_or_descriptor(0)?, c.words[2], decode_timevals)),
    call(nr::UTIMENSAT, |c| {
        allow(c.flags(3), NOFOLLOW | AT_EMPTY_PATH)?;
        let target = match c.words[1] {
            0 => c.target_or_descriptor(0)?,
            _ => c.target_at(0, c.flags(3))?,
        };
        set_times(c, target, c.words[2], decode_timespecs)
    }),
    change(nr::TRUNCATE, First, |c| task(truncate(c.base(), c.process(), c.target_here(0, 0)?, c.words[1]))),
    change(nr::FTRUNCATE, First, |c| task(ftruncate(c.base(), c.process(), c.int(0), c.words[1]))),
    call(nr::FALLOCATE, |c| task(allocate_call(c.base(), c.process(), c.int(0), c.flags(1), c.words[2], c.words[3]))),
];

fn set_times(
    call: &Call,
    target: Target,
    address: u64,
    decode: fn([u64; 4]) -> Result<[u64; 2], Errno>,
) -> Result<Flow, Errno> {
    let times = match address {
        0 => [TIME_NOW, TIME_NOW],
        _ => decode(user::fetch_words::<4>(call.process.caller.endpoint, address)?)?,
    };
    // Nothing to do: the file is not even looked for.
    if times == [TIME_OMIT, TIME_OMIT] {
        return done(Ok(0));
    }
    set(call, target, Setting::Times(times))
}

/// utime: whole seconds.
fn utime(call: &Call) -> Result<Flow, Errno> {
    let times = match call.words[1] {
        0 => [TIME_NOW, TIME_NOW],
        address => user::fetch_words::<2>(call.process.caller.endpoint, address)?
            .map(|seconds| nanoseconds_since_1970(seconds, 0)),
    };
    set(call, call.target_here(0, 0)?, Setting::Times(times))
}

/// How far it is known in the turn of a call what that is about.
enum Finding {
    Known(Subject),
    /// Somebody has to be asked for the rest of its path.
    Stopped(Box<Stopped>),
}

/// Finds what a call is about, as far as nobody has to be asked.
fn find_known(files: &Files, process: &Process, target: Target) -> Result<Finding, Errno> {
    if target.path.is_empty() && target.flags & AT_EMPTY_PATH != 0 {
        if target.directory == AT_FDCWD {
            let place = walk::place(process, target.directory)?;
            return Ok(Finding::Known(Subject::Node(place.node, copied(&place.path)?)));
        }
        return process.file(target.directory).map(|file| Finding::Known(Subject::File(file)));
    }
    let last = if target.flags & AT_SYMLINK_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
    match walk::resolve_known(files, process, target.directory, target.path, last, Purpose::Use)? {
        Resolution::Found(found, _) => Subject::found(found).map(Finding::Known),
        Resolution::Stopped(stopped) => Ok(Finding::Stopped(stopped)),
    }
}

/// Finds what a call is about.
pub(super) async fn find(files: &Files, process: &Process, target: Target) -> Result<Subject, Errno> {
    match find_known(files, process, target)? {
        Finding::Known(subject) => Ok(subject),
        Finding::Stopped(stopped) => Subject::found(stopped.go_on(files, process).await?),
    }
}

/// statfs and fstatfs.
async fn statfs_target(files: &Files, process: Rc<Process>, target: Target, address: u64) -> Result<u64, Errno> {
    const PIPEFS_MAGIC: u64 = 0x5049_5045;
    let bytes = match find(files, &process, target).await?.node() {
        Ok(node) => files.stat_fs(&node).await?,
        Err(_) => {
            let mut bytes = filled(0, STATFS_BYTES)?;
            bytes[..8].copy_from_slice(&PIPEFS_MAGIC.to_le_bytes());
            bytes[8..16].copy_from_slice(&4096u64.to_le_bytes());
            bytes
        }
    };
    user::store(process.caller.endpoint, address, &bytes)?;
    Ok(0)
}

/// access and its relatives: `mode` has R_OK 4, W_OK 2, X_OK 1.
async fn access(files: &Files, process: Rc<Process>, target: Target, mode: u32) -> Result<u64, Errno> {
    if mode & !7 != 0 {
        return Err(Errno::EINVAL);
    }
    let credentials = process.caller.credentials();
    let credentials = if target.flags & AT_EACCESS != 0 { credentials } else { Rc::new(credentials.real()) };
    let node = if target.path.is_empty() && target.flags & AT_EMPTY_PATH != 0 {
        match find(files, &process, target).await?.node() {
            Ok(node) => node,
            Err(_) => return Ok(0),
        }
    } else {
        let last = if target.flags & AT_SYMLINK_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
        let found = walk::resolve_as(files, &process, credentials.clone(), target.directory, target.path, last).await?;
        found.existing()?.clone()
    };
    if mode & WRITE != 0 && (node.is_regular() || node.is_directory()) {
        writable(&node)?;
    }
    permission::check(&credentials, node.attributes(), mode)?;
    Ok(0)
}

/// What a call sets.
#[derive(Clone, Copy)]
enum Setting {
    /// chmod and its relatives.
    Mode(u32),
    /// chown and its relatives; all ones leaves an id.
    Owner(u32, u32),
    /// utimensat and its relatives, with times as `fs::SetTimes` has them.
    Times([u64; 2]),
}

impl Setting {
    /// What a file gets, if the process may set it. Errors as of chmod(2), chown(2) and utimensat(2).
    fn allowed(self, process: &Process, node: &NodeRef) -> Result<NewAttributes, Errno> {
        if matches!(self, Setting::Mode(_)) && node.is_link() {
            return Err(Errno::EOPNOTSUPP);
        }
        writable(node)?;
        let (credentials, file) = (process.caller.credentials(), node.attributes());
        match self {
            Setting::Mode(mode) => {
                permission::check_owner(&credentials, file)?;
                Ok(NewAttributes::Mode(permission::chmod_bits(&credentials, file, mode)))
            }
            Setting::Owner(uid, gid) => {
                let (uid, gid) = ((uid != u32::MAX).then_some(uid), (gid != u32::MAX).then_some(gid));
                let (uid, gid) = credentials.meant(uid, gid)?;
                permission::check_chown(&credentials, file, uid, gid)?;
                Ok(NewAttributes::Owner(uid, gid))
            }
            Setting::Times([accessed_ns, modified_ns]) => {
                let is_owner = permission::check_owner(&credentials, file);
                match (accessed_ns, modified_ns) {
                    (TIME_NOW, TIME_NOW) => is_owner.or_else(|_| permission::check(&credentials, file, WRITE))?,
                    _ => is_owner?,
                }
                Ok(NewAttributes::Times(accessed_ns, modified_ns))
            }
        }
    }

    /// What those who watch the file are told.
    fn event(self) -> u32 {
        match self {
            Setting::Times([TIME_OMIT, _]) => flag::MODIFY,
            Setting::Times([_, TIME_OMIT]) => flag::ACCESS,
            _ => flag::ATTRIB,
        }
    }
}

/// chmod, chown, utimensat and their relatives.
fn set(call: &Call, target: Target, setting: Setting) -> Result<Flow, Errno> {
    let base = call.base();
    match find_known(base.files(), call.process, target)? {
        Finding::Known(subject) => set_known(base, call.process, subject, setting),
        Finding::Stopped(stopped) => {
            let process = call.process();
            task(async move {
                let subject = Subject::found(stopped.go_on(base.files(), &process).await?)?;
                let (node, new) = settable(&process, &subject, setting)?;
                set_settled(base.files(), subject, node, new, setting.event()).await
            })
        }
    }
}

/// The file that a call is about, and what it gets, if the process may set it. `EINVAL`: it is none.
fn settable(process: &Process, subject: &Subject, setting: Setting) -> Result<(NodeRef, NewAttributes), Errno> {
    let node = subject.node()?;
    let new = setting.allowed(process, &node)?;
    Ok((node, new))
}

fn set_known(base: &'static Base, process: &Process, subject: Subject, setting: Setting) -> Result<Flow, Errno> {
    let (files, event) = (base.files(), setting.event());
    let (node, new) = settable(process, &subject, setting)?;
    if !files.is_settled([Some(&node)]) {
        return task(set_settled(files, subject, node, new, event));
    }
    let (request, change) = files.ask_to_set(&node, new);
    base.ask_then(&process.caller, (node.service(), request, None), move |reply| {
        files.were_set(change, &node, new, &reply?)?;
        subject.happened(files, event);
        done(Ok(0))
    })
}

/// Sets attributes of a file, and tells those who watch it.
async fn set_settled(
    files: &Files,
    subject: Subject,
    node: NodeRef,
    new: NewAttributes,
    event: u32,
) -> Result<u64, Errno> {
    files.set(&node, new).await?;
    subject.happened(files, event);
    Ok(0)
}

/// truncate.
async fn truncate(base: &Base, process: Rc<Process>, target: Target, size: u64) -> Result<u64, Errno> {
    if size > i64::MAX as u64 {
        return Err(Errno::EINVAL);
    }
    let subject = find(base.files(), &process, target).await?;
    let node = subject.node()?;
    if node.is_directory() {
        return Err(Errno::EISDIR);
    }
    if !node.is_regular() {
        return Err(Errno::EINVAL);
    }
    writable(&node)?;
    permission::check(&process.caller.credentials(), node.attributes(), WRITE)?;
    node.check_idle()?;
    // Counted as open for writing until the file has its new size, so that no lease is set meanwhile.
    let open = Regular::new(node, O_WRONLY);
    if open.node.leases().has_any() {
        base.break_leases(&process.caller, &open.node, Access::Write, Wait::Yes).await?;
    }
    let resized = resize(base, &process, &open.node, size).await?;
    subject.happened(base.files(), flag::MODIFY);
    Ok(resized)
}

/// ftruncate.
async fn ftruncate(base: &Base, process: Rc<Process>, descriptor: i32, size: u64) -> Result<u64, Errno> {
    let file = process.file(descriptor)?;
    file.usable()?;
    match file.object::<Regular>() {
        Some(Regular { node, .. }) if file.writes() && size <= i64::MAX as u64 => {
            let resized = resize(base, &process, node, size).await?;
            base.files().watches().happened(node, &file.path(), flag::MODIFY);
            Ok(resized)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// What the flags of fallocate ask for besides keeping the size. `EOPNOTSUPP`: no combination that there is.
fn allocation_kind(flags: u32) -> Result<u32, Errno> {
    let keeps_size = flags & FALLOC_FL_KEEP_SIZE != 0;
    match (flags & !FALLOC_FL_KEEP_SIZE, keeps_size) {
        (kind @ (0 | FALLOC_FL_ZERO_RANGE | FALLOC_FL_UNSHARE_RANGE), _)
        | (kind @ FALLOC_FL_PUNCH_HOLE, true)
        | (kind @ (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE), false) => Ok(kind),
        _ => Err(Errno::EOPNOTSUPP),
    }
}

/// fallocate.
async fn allocate_call(
    base: &Base,
    process: Rc<Process>,
    descriptor: i32,
    flags: u32,
    offset: u64,
    bytes: u64,
) -> Result<u64, Errno> {
    let file = process.file(descriptor)?;
    file.usable()?;
    if bytes == 0 || offset > i64::MAX as u64 || bytes > i64::MAX as u64 {
        return Err(Errno::EINVAL);
    }
    let keeps_size = flags & FALLOC_FL_KEEP_SIZE != 0;
    let kind = allocation_kind(flags)?;
    file.writable()?;
    let node = match (file.object::<Regular>(), file.object::<PipeEnd>()) {
        (Some(Regular { node, .. }), _) => node,
        (None, Some(_)) => return Err(Errno::ESPIPE),
        (None, None) => return Err(Errno::ENODEV),
    };
    if offset + bytes > i64::MAX as u64 {
        return Err(Errno::EFBIG);
    }
    if !matches!(kind, 0 | FALLOC_FL_ZERO_RANGE | FALLOC_FL_PUNCH_HOLE) {
        // Files without extents, and those in memory, have no such thing on Linux either.
        return Err(Errno::EOPNOTSUPP);
    }
    if kind != 0
        && let Some(seals) = node.seals()
    {
        seals.check_write()?;
    }
    match (kind, keeps_size) {
        (FALLOC_FL_PUNCH_HOLE, _) => {}
        (_, true) => base.files().allocate(node, offset, bytes, fs::ALLOCATE_CHECK).await?,
        (_, false) => lengthen(base, &process, node, offset, bytes).await?,
    }
    if kind != 0 {
        base.mappings().clear(node, offset, bytes, kind == FALLOC_FL_ZERO_RANGE).await?;
        drop_set_ids(base, &process, node).await?;
    }
    base.files().watches().happened(node, &file.path(), flag::MODIFY);
    Ok(0)
}

/// Gives a file space for this part, and lengthens it if it ends before. `ENOSPC`: it is as long as before.
async fn lengthen(base: &Base, process: &Process, node: &NodeRef, offset: u64, bytes: u64) -> Result<(), Errno> {
    let (old_size, end) = (node.size(), offset + bytes);
    if end > old_size {
        resize(base, process, node, end).await?;
    }
    let result = base.files().allocate(node, offset, bytes, fs::ALLOCATE_FILL).await;
    if result.is_err() && node.size() == end.max(old_size) {
        base.files().restore_size(node, old_size).await?;
    }
    result
}

async fn resize(base: &Base, process: &Process, node: &NodeRef, size: u64) -> Result<u64, Errno> {
    if let Some(seals) = node.seals() {
        seals.check_resize(node.size(), size)?;
    }
    if size > node.size() {
        base.check_file_limit(&process.caller, size).await?;
    }
    base.files().set_size(&process.caller, node, size).await?;
    drop_set_ids(base, process, node).await?;
    Ok(0)
}

/// Clears the set-id bits of a file whose content has changed, unless the superuser has done it.
async fn drop_set_ids(base: &Base, process: &Process, node: &NodeRef) -> Result<(), Errno> {
    let mode = permission::after_write(&process.caller.credentials(), node.mode());
    if mode == node.mode() { Ok(()) } else { base.files().set(node, NewAttributes::Mode(mode)).await }
}

/// Times of utimensat (`struct timespec[2]`, as words). `EINVAL`.
fn decode_timespecs(words: [u64; 4]) -> Result<[u64; 2], Errno> {
    const UTIME_NOW: u64 = (1 << 30) - 1;
    const UTIME_OMIT: u64 = (1 << 30) - 2;
    let decode = |seconds: u64, nanoseconds: u64| match nanoseconds {
        UTIME_NOW => Ok(TIME_NOW),
        UTIME_OMIT => Ok(TIME_OMIT),
        0..1_000_000_000 => Ok(nanoseconds_since_1970(seconds, nanoseconds)),
        _ => Err(Errno::EINVAL),
    };
    Ok([decode(words[0], words[1])?, decode(words[2], words[3])?])
}

/// Times of utimes (`struct timeval[2]`, as words). `EINVAL`.
fn decode_timevals(words: [u64; 4]) -> Result<[u64; 2], Errno> {
    let decode = |seconds: u64, microseconds: u64| match microseconds {
        0..1_000_000 => Ok(nanoseconds_since_1970(seconds, microseconds * 1000)),
        _ => Err(Errno::EINVAL),
    };
    Ok([decode(words[0], words[1])?, decode(words[2], words[3])?])
}

/// Times before 1970 count as 1970, those beyond the protocol's range as its end.
fn nanoseconds_since_1970(seconds: u64, nanoseconds: u64) -> u64 {
    if (seconds as i64) < 0 {
        return 0;
    }
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds).min(TIME_NOW - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_times_are_now_and_omit() {
        assert_eq!(decode_timespecs([0, (1 << 30) - 1, 0, (1 << 30) - 2]), Ok([TIME_NOW, TIME_OMIT]));
        assert_eq!(decode_timespecs([1, 5, 2, 999_999_999]), Ok([1_000_000_005, 2_999_999_999]));
        assert_eq!(decode_timespecs([0, 5, u64::MAX, 5]), Ok([5, 0]));
        assert_eq!(decode_timevals([0, 7, 3, 999_999]), Ok([7_000, 3_999_999_000]));
        assert_eq!(decode_timespecs([1, 1_000_000_000, 0, 0]), Err(Errno::EINVAL));
    }

    #[test]
    fn times_out_of_range_are_cut() {
        assert_eq!(decode_timevals([u64::MAX, 0, 1 << 60, 0]), Ok([0, TIME_NOW - 1]));
        assert_eq!(decode_timevals([0, 1_000_000, 0, 0]), Err(Errno::EINVAL));
    }
}
