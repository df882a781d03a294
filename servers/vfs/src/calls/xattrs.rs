//! Extended attributes (xattr(7)): who may read and change those of which namespace. File systems check no permissions.
//!
//! `user.` is for files and directories, by their permissions; `trusted.` for the superuser; `security.` for everybody to read, and for the
//! superuser to change. Other names are not supported by file systems.

use super::{
    Changes::All,
    Entry, allow,
    attributes::{Subject, find, writable},
    call,
    call::{AT_SYMLINK_NOFOLLOW, Call, Target},
    change, task,
};
use crate::{
    base::{Base, Flow},
    callers::permission::{self, Credentials, READ, S_IFDIR, S_ISVTX, WRITE},
    files::{
        vnode::NodeRef,
        watches::flag,
        xattrs::{CAPABILITY, are_capabilities},
    },
    memory as user,
    processes::Process,
};
use abi::{Capability, Errno, linux::nr};
use alloc::{rc::Rc, vec::Vec};

/// setxattr: the attribute does not exist.
const XATTR_CREATE: u32 = 1;
/// setxattr: the attribute exists.
const XATTR_REPLACE: u32 = 2;
/// Longest name, without its NUL.
const XATTR_NAME_MAX: usize = 255;
/// Longest value that may be set.
const XATTR_SIZE_MAX: u64 = 65536;

const USER: &[u8] = b"user.";
const TRUSTED: &[u8] = b"trusted.";
const SECURITY: &[u8] = b"security.";

/// How a call names the file.
type Finder = fn(&Call) -> Result<Target, Errno>;

const BY_PATH: Finder = |call| call.target_here(0, 0);
const BY_LINK: Finder = |call| call.target_here(0, AT_SYMLINK_NOFOLLOW);
const BY_DESCRIPTOR: Finder = |call| call.target_usable();

pub(super) const CALLS: &[Entry] = &[
    change(nr::SETXATTR, All, |c| set(c, BY_PATH)),
    change(nr::LSETXATTR, All, |c| set(c, BY_LINK)),
    change(nr::FSETXATTR, All, |c| set(c, BY_DESCRIPTOR)),
    change(nr::REMOVEXATTR, All, |c| remove(c, BY_PATH)),
    change(nr::LREMOVEXATTR, All, |c| remove(c, BY_LINK)),
    change(nr::FREMOVEXATTR, All, |c| remove(c, BY_DESCRIPTOR)),
    call(nr::GETXATTR, |c| get(c, BY_PATH)),
    call(nr::LGETXATTR, |c| get(c, BY_LINK)),
    call(nr::FGETXATTR, |c| get(c, BY_DESCRIPTOR)),
    call(nr::LISTXATTR, |c| list(c, BY_PATH)),
    call(nr::LLISTXATTR, |c| list(c, BY_LINK)),
    call(nr::FLISTXATTR, |c| list(c, BY_DESCRIPTOR)),
];

/// The name in argument 1. `ERANGE`: empty or too long; `EFAULT`.
fn name_of(call: &Call) -> Result<Vec<u8>, Errno> {
    match call.path(1) {
        Ok(name) if (1..=XATTR_NAME_MAX).contains(&name.len()) => Ok(name),
        Ok(_) | Err(Errno::ENAMETOOLONG) => Err(Errno::ERANGE),
        Err(error) => Err(error),
    }
}

fn set(call: &Call, target: Finder) -> Result<Flow, Errno> {
    let flags = call.flags(4);
    allow(flags, XATTR_CREATE | XATTR_REPLACE)?;
    let name = name_of(call)?;
    let bytes = call.words[3];
    if bytes > XATTR_SIZE_MAX {
        return Err(Errno::E2BIG);
    }
    let memory = call.base().charge(call.process.caller.user(), bytes as usize)?;
    let value = user::fetch_vec(call.process.caller.endpoint, call.words[2], bytes as usize)?;
    let (base, process, target) = (call.base(), call.process(), target(call)?);
    task(async move {
        let (subject, node) = changeable(base, &process, target, &name, Some(&value)).await?;
        // Both at once mean a replacement, which finds no attribute that may not exist.
        let result = match flags {
            flags if flags == XATTR_CREATE | XATTR_REPLACE => match base.files().xattr(&node, &name).await {
                Ok(_) => Err(Errno::EEXIST),
                Err(error) => Err(error),
            },
            flags => base.files().set_xattr(&process.caller, &node, &name, &value, flags).await,
        };
        drop(memory);
        result?;
        subject.happened(base.files(), flag::ATTRIB);
        Ok(0)
    })
}

fn remove(call: &Call, target: Finder) -> Result<Flow, Errno> {
    let name = name_of(call)?;
    let (base, process, target) = (call.base(), call.process(), target(call)?);
    task(async move {
        let (subject, node) = changeable(base, &process, target, &name, None).await?;
        base.files().remove_xattr(&process.caller, &node, &name).await?;
        subject.happened(base.files(), flag::ATTRIB);
        Ok(0)
    })
}

fn get(call: &Call, target: Finder) -> Result<Flow, Errno> {
    let name = name_of(call)?;
    let (address, bytes) = (call.words[2], call.words[3]);
    let (base, process, target) = (call.base(), call.process(), target(call)?);
    task(async move {
        let node =
            node_of(&find(base.files(), &process, target).await?).map_err(|error| no_node(&name, error, READ))?;
        check(&process.caller.credentials(), &node, &name, READ)?;
        let value = base.files().xattr(&node, &name).await?;
        answer(&process, address, bytes, &value)
    })
}

fn list(call: &Call, target: Finder) -> Result<Flow, Errno> {
    let (address, bytes) = (call.words[1], call.words[2]);
    let (base, process, target) = (call.base(), call.process(), target(call)?);
    task(async move {
        let node = node_of(&find(base.files(), &process, target).await?)?;
        let mut names = base.files().xattr_names(&node).await?;
        if !process.caller.credentials().has(Capability::SysAdmin) {
            without_trusted(&mut names);
        }
        answer(&process, address, bytes, &names)
    })
}

/// Stores a value or list, or only tells its length when the program has no room. `ERANGE`: too little room.
fn answer(process: &Process, address: u64, room: u64, bytes: &[u8]) -> Result<u64, Errno> {
    match room {
        0 => {}
        room if (bytes.len() as u64) > room => return Err(Errno::ERANGE),
        _ => user::store(process.caller.endpoint, address, bytes)?,
    }
    Ok(bytes.len() as u64)
}

/// Removes the names that only the superuser sees from a list.
fn without_trusted(names: &mut Vec<u8>) {
    let (mut from, mut to) = (0, 0);
    while let Some(length) = names[from..].iter().position(|&byte| byte == 0) {
        let range = from..from + length + 1;
        from = range.end;
        if !names[range.clone()].starts_with(TRUSTED) {
            names.copy_within(range.clone(), to);
            to += range.len();
        }
    }
    names.truncate(to);
}

/// The file of a call; pipes and the like have none.
fn node_of(subject: &Subject) -> Result<NodeRef, Errno> {
    match subject {
        Subject::Node(node, _) => Ok(node.clone()),
        Subject::File(file) => file.node().cloned().ok_or(Errno::EOPNOTSUPP),
    }
}

/// The error for an attribute of what has no file.
fn no_node(name: &[u8], error: Errno, wanted: u32) -> Errno {
    if name.starts_with(USER) { refusal(wanted) } else { error }
}

/// Finds what has an attribute that may be changed, and its file, to this value if it is not removed. `EINVAL`: those are no capabilities.
async fn changeable(
    base: &Base,
    process: &Rc<Process>,
    target: Target,
    name: &[u8],
    value: Option<&[u8]>,
) -> Result<(Subject, NodeRef), Errno> {
    let subject = find(base.files(), process, target).await?;
    let node = node_of(&subject).map_err(|error| no_node(name, error, WRITE))?;
    writable(&node)?;
    if name == CAPABILITY && value.is_some_and(|value| !value.is_empty() && !are_capabilities(value)) {
        return Err(Errno::EINVAL);
    }
    check(&process.caller.credentials(), &node, name, WRITE)?;
    Ok((subject, node))
}

/// The error for an attribute that this file, or this caller, cannot have.
fn refusal(wanted: u32) -> Errno {
    if wanted == WRITE { Errno::EPERM } else { Errno::ENODATA }
}

/// Checks that the caller may read or change an attribute.
fn check(who: &Credentials, node: &NodeRef, name: &[u8], wanted: u32) -> Result<(), Errno> {
    let attributes = node.attributes();
    if name.starts_with(TRUSTED) {
        return if who.has(Capability::SysAdmin) { Ok(()) } else { Err(refusal(wanted)) };
    }
    if name.starts_with(SECURITY) {
        let needed = if name == CAPABILITY { Capability::SetFileCapabilities } else { Capability::SysAdmin };
        return if wanted == READ || who.has(needed) { Ok(()) } else { Err(Errno::EPERM) };
    }
    if name.starts_with(USER) {
        if !node.is_regular() && !node.is_directory() {
            return Err(refusal(wanted));
        }
        let is_sticky = node.kind() == S_IFDIR && node.mode() & S_ISVTX != 0;
        if is_sticky && wanted == WRITE {
            permission::check_owner(who, attributes)?;
        }
    } else if name.starts_with(b"system.") {
        return Ok(());
    }
    permission::check(who, attributes, wanted)
}
