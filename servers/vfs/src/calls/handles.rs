//! name_to_handle_at and open_by_handle_at: files by what their file systems know them by, as long as they exist.
//!
//! A handle is the inode number and the generation, 32 bits each. The path of a file that was opened by its handle is not known: the
//! descriptor has that of its mount, with the number of the inode. Neighbours: `open`, `files::nodes`.

use super::{
    Changes::First,
    Entry, allow,
    attributes::find,
    call,
    call::{AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, Call, Target},
    change, task,
};
use crate::{
    base::{Base, Flow},
    files::{Files, vnode::NodeRef},
    memory as user,
    objects::{O_CLOEXEC, O_CREAT, O_NOFOLLOW},
    open::open_found,
    pathname,
    processes::{AT_FDCWD, Process},
};
use abi::{Capability, Errno, linux::nr};
use alloc::{format, rc::Rc};

const AT_SYMLINK_FOLLOW: u32 = 0x400;
/// `FILEID_INO32_GEN`: inode number and generation.
const HANDLE_TYPE: u32 = 1;
/// Bytes of such a handle.
const HANDLE_BYTES: u32 = 8;
/// Most bytes of a handle (`MAX_HANDLE_SZ`).
const MAX_HANDLE_BYTES: u32 = 128;
/// `FILEID_INVALID`: the type of a handle that did not fit.
const INVALID_TYPE: u32 = 0xff;
/// Where the handle begins in `struct file_handle`, behind its length and type.
const HANDLE_OFFSET: u64 = 8;

pub(super) const CALLS: &[Entry] =
    &[call(nr::NAME_TO_HANDLE_AT, name_to_handle), change(nr::OPEN_BY_HANDLE_AT, First, open_by_handle)];

fn name_to_handle(call: &Call) -> Result<Flow, Errno> {
    let flags = call.flags(4);
    allow(flags, AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)?;
    let keep = if flags & AT_SYMLINK_FOLLOW == 0 { AT_SYMLINK_NOFOLLOW } else { 0 };
    let target = call.target_at(0, flags & AT_EMPTY_PATH | keep)?;
    task(write_handle(call.files(), call.process(), target, call.words[2], call.words[3]))
}

/// `EOVERFLOW`: there is no room for the handle; its length is told.
async fn write_handle(
    files: &Files,
    process: Rc<Process>,
    target: Target,
    handle: u64,
    mount_id: u64,
) -> Result<u64, Errno> {
    let node = find(files, &process, target).await?.node().map_err(|_| Errno::EOPNOTSUPP)?;
    let (inode, generation) = files.handle(&node).await?;
    let caller = process.caller.endpoint;
    let mut room = [0; 4];
    user::fetch(caller, handle, &mut room)?;
    let room = u32::from_le_bytes(room);
    if room > MAX_HANDLE_BYTES {
        return Err(Errno::EINVAL);
    }
    let fits = room >= HANDLE_BYTES;
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&HANDLE_BYTES.to_le_bytes());
    bytes[4..8].copy_from_slice(&(if fits { HANDLE_TYPE } else { INVALID_TYPE }).to_le_bytes());
    bytes[8..12].copy_from_slice(&inode.to_le_bytes());
    bytes[12..].copy_from_slice(&generation.to_le_bytes());
    user::store(caller, mount_id, &u32::from(node.mount().id()).to_le_bytes())?;
    user::store(caller, handle, if fits { &bytes } else { &bytes[..HANDLE_OFFSET as usize] })?;
    if fits { Ok(0) } else { Err(Errno::EOVERFLOW) }
}

/// `EPERM`: without CAP_DAC_READ_SEARCH, because no path is asked for permission, and in a container, which has no files of its own.
fn open_by_handle(call: &Call) -> Result<Flow, Errno> {
    let credentials = call.process.caller.credentials();
    if credentials.contained.is_some() || !credentials.has(Capability::DacReadSearch) {
        return Err(Errno::EPERM);
    }
    let (caller, address) = (call.process.caller.endpoint, call.words[1]);
    let mut head = [0; HANDLE_OFFSET as usize];
    user::fetch(caller, address, &mut head)?;
    let (bytes, kind) = head.split_at(4);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    let (bytes, kind) = (word(bytes), word(kind));
    if bytes == 0 || bytes > MAX_HANDLE_BYTES {
        return Err(Errno::EINVAL);
    }
    let mut handle = [0; MAX_HANDLE_BYTES as usize];
    let handle = &mut handle[..bytes as usize];
    user::fetch(caller, address.wrapping_add(HANDLE_OFFSET), handle)?;
    let place = match call.int(0) {
        AT_FDCWD => call.process.directories()?.working().node.clone(),
        descriptor => call.process.file(descriptor)?.node().ok_or(Errno::ESTALE)?.clone(),
    };
    if kind != HANDLE_TYPE || bytes < HANDLE_BYTES {
        return Err(Errno::ESTALE);
    }
    let (inode, generation) = (word(&handle[..4]), word(&handle[4..8]));
    task(open(call.base(), call.process(), place, (inode, generation), call.flags(2)))
}

#[expect(clippy::disallowed_macros, reason = "a number: from the heap's reserve")]
async fn open(
    base: &'static Base,
    process: Rc<Process>,
    place: NodeRef,
    handle: (u32, u32),
    flags: u32,
) -> Result<u64, Errno> {
    process.files().check_room(process.caller.descriptor_limit())?;
    let node = base.files().open_handle(&place, handle).await?;
    let mut path = node.mount().path();
    pathname::push(&mut path, format!("#{}", handle.0).as_bytes())?;
    // There is no name to be created or followed.
    let flags = flags & !(O_CREAT | O_NOFOLLOW);
    let file = open_found(base, &process, node, flags, path, false).await?;
    process.insert(file, flags & O_CLOEXEC != 0)
}
