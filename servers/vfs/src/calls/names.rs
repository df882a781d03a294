//! Names: mkdir, link, symlink, readlink, mknod, rename, and the directories of a process.

use super::{
    Changes::{All, First},
    Entry, allow, call,
    call::Side,
    change, done,
    remove::{Removes, may_remove, remove},
    task,
};
use crate::{
    callers::permission::{self, EXECUTE, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK, WRITE},
    files::{Files, vnode::NodeRef},
    memory::{self as user, PATH_MAX},
    pathname,
    paths::{
        change::{make_node, may_change, new_file},
        own_program,
        walk::{self, Found, Last},
    },
    processes::{AT_FDCWD, Place, Process, Processes},
};
use abi::{Capability, Errno, fs, linux::nr};
use alloc::{rc::Rc, vec::Vec};
use sys::fallible::{TryVec, copied};

/// unlinkat: rmdir.
const AT_REMOVEDIR: u32 = 0x200;
/// linkat: follow the old name.
const AT_SYMLINK_FOLLOW: u32 = 0x400;
/// linkat: an empty old name means the descriptor's file.
const AT_EMPTY_PATH: u32 = 0x1000;
/// renameat2: fail when the new name exists.
const RENAME_NOREPLACE: u32 = 1;
/// renameat2: swap the two names.
const RENAME_EXCHANGE: u32 = 2;
/// renameat2: a whiteout gets the old name.
const RENAME_WHITEOUT: u32 = 4;
/// Longest target of a symbolic link.
const TARGET_MAX: usize = PATH_MAX - 1;

pub(super) const CALLS: &[Entry] = &[
    call(nr::CHDIR, |c| task(chdir(c.files(), c.process(), c.path(0)?))),
    call(nr::FCHDIR, |c| done(fchdir(c.process, c.int(0)))),
    call(nr::CHROOT, |c| task(chroot(c.files(), c.process(), c.path(0)?))),
    call(nr::GETCWD, |c| done(getcwd(c.process, c.words[0], c.words[1]))),
    call(nr::UMASK, |c| done(c.process.directories().map(|own| own.set_umask(c.flags(0) & 0o777) as u64))),
    change(nr::MKDIR, All, |c| task(mkdir(c.files(), c.process(), c.here(0)?, c.flags(1)))),
    change(nr::MKDIRAT, All, |c| task(mkdir(c.files(), c.process(), c.at(0)?, c.flags(2)))),
    change(nr::MKNOD, All, |c| task(mknod(c.files(), c.process(), c.here(0)?, c.flags(1), c.words[2]))),
    change(nr::MKNODAT, All, |c| task(mknod(c.files(), c.process(), c.at(0)?, c.flags(2), c.words[3]))),
    change(nr::RMDIR, All, |c| remove(c, c.here(0)?, Removes::Directory)),
    change(nr::UNLINK, All, |c| remove(c, c.here(0)?, Removes::File)),
    change(nr::UNLINKAT, All, |c| match c.flags(2) {
        0 => remove(c, c.at(0)?, Removes::File),
        AT_REMOVEDIR => remove(c, c.at(0)?, Removes::Directory),
        _ => Err(Errno::EINVAL),
    }),
    change(nr::RENAME, First, |c| task(rename_path(c.files(), c.processes(), c.process(), c.here(0)?, c.here(1)?, 0))),
    change(nr::RENAMEAT, First, |c| task(rename_path(c.files(), c.processes(), c.process(), c.at(0)?, c.at(2)?, 0))),
    change(nr::RENAMEAT2, First, |c| {
        task(rename_path(c.files(), c.processes(), c.process(), c.at(0)?, c.at(2)?, c.flags(4)))
    }),
    change(nr::LINK, All, |c| task(link_path(c.files(), c.process(), c.here(0)?, c.here(1)?, Last::Keep))),
    change(nr::LINKAT, All, |c| {
        allow(c.flags(4), AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)?;
        let last = if c.flags(4) & AT_SYMLINK_FOLLOW == 0 { Last::Keep } else { Last::Follow };
        let (old, new) = (c.at(0)?, c.at(2)?);
        match old.1.is_empty() && c.flags(4) & AT_EMPTY_PATH != 0 {
            true => task(link_descriptor(c.files(), c.process(), old.0, new)),
            false => task(link_path(c.files(), c.process(), old, new, last)),
        }
    }),
    change(nr::SYMLINK, All, |c| task(symlink(c.files(), c.process(), c.path(0)?, c.here(1)?))),
    change(nr::SYMLINKAT, All, |c| task(symlink(c.files(), c.process(), c.path(0)?, c.at(1)?))),
    call(nr::READLINK, |c| {
        let side = c.here(0)?;
        if side.1.is_empty() {
            return Err(Errno::ENOENT);
        }
        task(readlink(c.files(), c.process(), side, c.words[1], c.words[2]))
    }),
    call(nr::READLINKAT, |c| task(readlink(c.files(), c.process(), c.at(0)?, c.words[2], c.words[3]))),
];

/// mkdir.
async fn mkdir(files: &Files, process: Rc<Process>, side: Side, mode: u32) -> Result<u64, Errno> {
    let found = walk::resolve(files, &process, side.0, side.1, Last::Keep).await?;
    if found.node.is_some() {
        return Err(Errno::EEXIST);
    }
    make_node(files, &process, &found, S_IFDIR | mode & 0o1777, 0).await?;
    Ok(0)
}

/// mknod.
async fn mknod(files: &Files, process: Rc<Process>, side: Side, mode: u32, device: u64) -> Result<u64, Errno> {
    let mode = if mode & S_IFMT == 0 { mode | S_IFREG } else { mode };
    let device = match mode & S_IFMT {
        S_IFREG | S_IFIFO | S_IFSOCK => 0,
        S_IFCHR | S_IFBLK => device,
        S_IFDIR => return Err(Errno::EPERM),
        _ => return Err(Errno::EINVAL),
    };
    let found = walk::resolve(files, &process, side.0, side.1, Last::Keep).await?;
    match found.node {
        Some(_) => return Err(Errno::EEXIST),
        None if found.slash => return Err(Errno::ENOENT),
        None => {}
    }
    may_change(&process, &found.parent)?;
    let is_whiteout = mode & S_IFMT == S_IFCHR && device == 0;
    let is_device = matches!(mode & S_IFMT, S_IFCHR | S_IFBLK) && !is_whiteout;
    if is_device && !process.caller.credentials().has(Capability::MakeNode) {
        return Err(process.caller.refuse("mknod of a device"));
    }
    make_node(files, &process, &found, mode & (S_IFMT | 0o7777), device).await?;
    Ok(0)
}

/// link; `last` says whether the old name is followed if it is a link.
async fn link_path(files: &Files, process: Rc<Process>, old: Side, new: Side, last: Last) -> Result<u64, Errno> {
    let old = walk::resolve(files, &process, old.0, old.1, last).await?;
    let node = old.existing()?.clone();
    link_node(files, &process, node, new).await
}

/// linkat with `AT_EMPTY_PATH`: links the file of a descriptor. `ENOENT`: without CAP_DAC_READ_SEARCH.
async fn link_descriptor(files: &Files, process: Rc<Process>, descriptor: i32, new: Side) -> Result<u64, Errno> {
    if !process.caller.credentials().has(Capability::DacReadSearch) {
        return Err(Errno::ENOENT);
    }
    let node = match descriptor {
        AT_FDCWD => process.directories()?.working().node.clone(),
        _ => process.file(descriptor)?.node().ok_or(Errno::EXDEV)?.clone(),
    };
    link_node(files, &process, node, new).await
}

async fn link_node(files: &Files, process: &Process, node: NodeRef, new: Side) -> Result<u64, Errno> {
    let new = walk::resolve(files, process, new.0, new.1, Last::Keep).await?;
    if new.node.is_some() {
        return Err(Errno::EEXIST);
    }
    if new.slash {
        return Err(Errno::ENOENT);
    }
    if !Rc::ptr_eq(new.parent.mount(), node.mount()) {
        return Err(Errno::EXDEV);
    }
    if node.is_directory() {
        return Err(Errno::EPERM);
    }
    if node.is_unlinked() && !node.is_linkable() {
        return Err(Errno::ENOENT);
    }
    may_change(process, &new.parent)?;
    files.link(&process.caller, &new.parent, new.component(Errno::EEXIST)?, &node).await?;
    node.set_linkable(false);
    Ok(0)
}

/// symlink.
async fn symlink(files: &Files, process: Rc<Process>, target: Vec<u8>, side: Side) -> Result<u64, Errno> {
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    let found = walk::resolve(files, &process, side.0, side.1, Last::Keep).await?;
    if found.node.is_some() {
        return Err(Errno::EEXIST);
    }
    if found.slash || found.parent.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    may_change(&process, &found.parent)?;
    let credentials = process.caller.credentials();
    let (_, gid) = permission::inherit(&credentials, found.parent.attributes(), 0);
    let ids = credentials.euid as u64 | (gid as u64) << 32;
    files.make_link(&process.caller, &found.parent, found.component(Errno::EEXIST)?, &target, ids).await?;
    Ok(0)
}

/// readlink. An empty path means the link that the descriptor was opened on (O_PATH).
async fn readlink(files: &Files, process: Rc<Process>, side: Side, address: u64, bytes: u64) -> Result<u64, Errno> {
    let room = match usize::try_from(bytes as i32) {
        Err(_) | Ok(0) => return Err(Errno::EINVAL),
        Ok(room) => room.min(TARGET_MAX),
    };
    if let Some(target) = own_program::path(files, &process, &side.1) {
        return give_target(&process, address, &target, room);
    }
    let (node, parent) = if side.1.is_empty() {
        let node = process.file(side.0)?.node().filter(|node| node.is_link()).cloned();
        (node.ok_or(Errno::ENOENT)?, None)
    } else {
        let found = walk::resolve(files, &process, side.0, side.1, Last::Keep).await?;
        (found.existing()?.clone(), Some(found.parent))
    };
    if !node.is_link() {
        return Err(Errno::EINVAL);
    }
    let target = files.read_link(&node, TARGET_MAX, &process.caller).await?;
    if let Some(parent) = parent.filter(|_| target.process != process.caller.pid) {
        walk::check_link(&process.caller.credentials(), &parent, &node)?;
    }
    give_target(&process, address, target.text(&node)?, room)
}

/// Stores as much of a link's target as there is room for. Returns its length.
fn give_target(process: &Process, address: u64, target: &[u8], room: usize) -> Result<u64, Errno> {
    let target = &target[..target.len().min(room)];
    user::store(process.caller.endpoint, address, target)?;
    Ok(target.len() as u64)
}

/// rename.
async fn rename_path(
    files: &Files,
    processes: &Processes,
    process: Rc<Process>,
    old: Side,
    new: Side,
    flags: u32,
) -> Result<u64, Errno> {
    if flags & !(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT) != 0
        || flags & RENAME_EXCHANGE != 0 && flags != RENAME_EXCHANGE
    {
        return Err(Errno::EINVAL);
    }
    if process.caller.recalled(fs::Rename::LABEL).is_some() {
        // A predecessor has renamed it, and may not have corrected the paths.
        let _ = move_paths_again(files, processes, &process, old, new, flags).await;
        return Ok(0);
    }
    let old = walk::resolve(files, &process, old.0, old.1, Last::Keep).await?;
    let new = walk::resolve(files, &process, new.0, new.1, Last::Keep).await?;
    let node = old.existing()?.clone();
    if !Rc::ptr_eq(old.parent.mount(), new.parent.mount()) {
        return Err(Errno::EXDEV);
    }
    let names = (old.component(Errno::EBUSY)?, new.component(Errno::EBUSY)?);
    match flags {
        RENAME_EXCHANGE => return exchange(files, processes, &process, &old, &new).await,
        _ if flags & RENAME_NOREPLACE != 0 && new.node.is_some() => return Err(Errno::EEXIST),
        _ => {}
    }
    if new.slash && !node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    if new.node.as_ref().is_some_and(|replaced| replaced.is_same_file(&node)) {
        return Ok(0);
    }
    may_rename(&process, &old, &new, &node)?;
    let whiteout = match flags & RENAME_WHITEOUT {
        0 => None,
        _ => Some(new_file(&process, &old.parent, S_IFCHR)?.1),
    };
    let (from, to) = ((&old.parent, names.0), (&new.parent, names.1));
    files.rename(&process.caller, from, to, &node, new.node.as_ref(), whiteout).await?;
    // The path of an open file matters to those who watch its directory.
    if node.is_directory() || files.watches().any() {
        move_paths(files, processes, &old, &new, flags);
    }
    Ok(0)
}

/// renameat2 with `RENAME_EXCHANGE`.
async fn exchange(
    files: &Files,
    processes: &Processes,
    process: &Process,
    old: &Found,
    new: &Found,
) -> Result<u64, Errno> {
    let (node, other) = (old.existing()?.clone(), new.existing()?.clone());
    if node.is_same_file(&other) {
        return Ok(0);
    }
    may_leave(process, old, &node, new)?;
    may_leave(process, new, &other, old)?;
    may_change_parent(process, old, &node, new)?;
    may_change_parent(process, new, &other, old)?;
    let (from, to) = ((&old.parent, old.component(Errno::EBUSY)?), (&new.parent, new.component(Errno::EBUSY)?));
    files.exchange(&process.caller, from, to, &node, &other).await?;
    move_paths(files, processes, old, new, RENAME_EXCHANGE);
    Ok(0)
}

/// Corrects the paths after a rename of a predecessor.
async fn move_paths_again(
    files: &Files,
    processes: &Processes,
    process: &Process,
    old: Side,
    new: Side,
    flags: u32,
) -> Result<(), Errno> {
    let old = walk::resolve(files, process, old.0, old.1, Last::Keep).await?;
    let new = walk::resolve(files, process, new.0, new.1, Last::Keep).await?;
    move_paths(files, processes, &old, &new, flags);
    Ok(())
}

/// Corrects the paths that processes, open files and watches remember, after `old` was renamed to `new`, or exchanged with it.
fn move_paths(files: &Files, processes: &Processes, old: &Found, new: &Found, flags: u32) {
    let (old, new) = (&old.canonical, &new.canonical);
    let renamed = |path: &[u8]| match flags & RENAME_EXCHANGE {
        0 => pathname::renamed(path, old, new),
        // Neither is above the other, so that a path is concerned at most once.
        _ => pathname::renamed(path, old, new).or_else(|| pathname::renamed(path, new, old)),
    };
    files.watches().move_paths(renamed);
    for process in processes.all() {
        for (_, file) in process.files().descriptors().iter() {
            let moved = renamed(&file.path());
            if let Some(moved) = moved {
                file.set_path(moved);
            }
        }
        let Ok(directories) = process.directories() else { continue };
        let moved = |place: &Place| {
            let path = renamed(&place.path)?;
            Some(Place::new(place.node.clone(), path))
        };
        let (working, root) = (moved(&directories.working()), moved(&directories.root()));
        // Without room for the new path the old one stays.
        let _ = working.map(|place| directories.set_working(place));
        let _ = root.map(|place| directories.set_root(place));
    }
}

/// chdir.
async fn chdir(files: &Files, process: Rc<Process>, text: Vec<u8>) -> Result<u64, Errno> {
    let place = directory_at(files, &process, text).await?;
    process.directories()?.set_working(place)?;
    Ok(0)
}

/// chroot.
async fn chroot(files: &Files, process: Rc<Process>, text: Vec<u8>) -> Result<u64, Errno> {
    let place = directory_at(files, &process, text).await?;
    if !process.caller.credentials().has_inside(Capability::SysChroot) {
        return Err(Errno::EPERM);
    }
    process.directories()?.set_root(place)?;
    Ok(0)
}

async fn directory_at(files: &Files, process: &Process, text: Vec<u8>) -> Result<Place, Errno> {
    let found = walk::resolve(files, process, AT_FDCWD, text, Last::Follow).await?;
    let node = found.existing()?.clone();
    if !node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    permission::check(&process.caller.credentials(), node.attributes(), EXECUTE)?;
    Ok(Place::new(node, found.canonical))
}

/// fchdir.
fn fchdir(process: &Process, descriptor: i32) -> Result<u64, Errno> {
    process.file(descriptor)?;
    let place = walk::place(process, descriptor)?;
    permission::check(&process.caller.credentials(), place.node.attributes(), EXECUTE)?;
    process.directories()?.set_working(place)?;
    Ok(0)
}

/// getcwd: returns the length with the NUL. `ENAMETOOLONG`: the path is not known.
fn getcwd(process: &Process, address: u64, bytes: u64) -> Result<u64, Errno> {
    let directories = process.directories()?;
    let working = directories.working();
    if working.node.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    let root = directories.root();
    let mut text = match pathname::below(pathname::known(&working.path)?, &root.path) {
        Some(text) => copied(text)?,
        None => [b"(unreachable)", &working.path[..]].concat(),
    };
    text.try_push(0)?;
    if text.len() as u64 > bytes {
        return Err(Errno::ERANGE);
    }
    user::store(process.caller.endpoint, address, &text)?;
    Ok(text.len() as u64)
}

/// Checks that a file may move from the name `old` to `new`.
fn may_rename(process: &Process, old: &Found, new: &Found, node: &NodeRef) -> Result<(), Errno> {
    may_leave(process, old, node, new)?;
    match &new.node {
        None => may_change(process, &new.parent)?,
        Some(replaced) => {
            may_remove(process, &new.parent, replaced)?;
            match (node.is_directory(), replaced.is_directory()) {
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                _ => {}
            }
        }
    }
    may_change_parent(process, old, node, new)
}

/// Checks that the file at the name `old` may leave it for `new`, whatever that name is for now.
fn may_leave(process: &Process, old: &Found, node: &NodeRef, new: &Found) -> Result<(), Errno> {
    // Where paths are too long to tell, the file system finds out.
    let into_itself = pathname::renamed(&new.canonical, &old.canonical, b"").is_some();
    if node.is_directory() && into_itself {
        return Err(Errno::EINVAL);
    }
    may_remove(process, &old.parent, node)
}

/// Checks that the `..` of a file that moves from `old` to `new` may change, if it has one.
fn may_change_parent(process: &Process, old: &Found, node: &NodeRef, new: &Found) -> Result<(), Errno> {
    if !node.is_directory() || Rc::ptr_eq(&old.parent, &new.parent) {
        return Ok(());
    }
    permission::check(&process.caller.credentials(), node.attributes(), WRITE)
}
