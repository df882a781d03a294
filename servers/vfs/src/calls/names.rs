//! Names: mkdir, rmdir, unlink, link, symlink, readlink, mknod, rename, and the directories of a process.

use super::{Changes::All, Entry, allow, call, call::Side, change, done, task};
use crate::{
    callers::permission::{self, EXECUTE, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK, WRITE},
    files::vnode::NodeRef,
    memory::{self as user, PATH_MAX},
    paths as path,
    paths::walk::{Found, Last, Name},
    processes::{AT_FDCWD, Place, Process},
    state::Vfs,
};
use abi::{Errno, linux::nr};
use alloc::{rc::Rc, vec::Vec};

/// unlinkat: rmdir.
const AT_REMOVEDIR: u32 = 0x200;
/// linkat: follow the old name.
const AT_SYMLINK_FOLLOW: u32 = 0x400;
/// renameat2: fail when the new name exists.
const RENAME_NOREPLACE: u32 = 1;
/// Longest target of a symbolic link.
const TARGET_MAX: usize = PATH_MAX - 1;

/// Checks that names in a directory may change.
fn may_change(process: &Process, directory: &NodeRef) -> Result<(), Errno> {
    if directory.mount().is_read_only() {
        return Err(Errno::EROFS);
    }
    permission::check(&process.caller.credentials(), directory.attributes(), WRITE | EXECUTE)
}

/// Checks that the name of this file may be taken out of its directory.
fn may_remove(process: &Process, directory: &NodeRef, node: &NodeRef) -> Result<(), Errno> {
    may_change(process, directory)?;
    permission::check_sticky(&process.caller.credentials(), directory.attributes(), node.attributes())?;
    let mounted = node.is_covered() || !Rc::ptr_eq(node.mount(), directory.mount());
    if mounted { Err(Errno::EBUSY) } else { Ok(()) }
}

pub(super) const CALLS: &[Entry] = &[
    call(nr::CHDIR, |c| task(c.vfs.chdir(c.process(), c.path(0)?))),
    call(nr::FCHDIR, |c| done(c.vfs.fchdir(c.process, c.int(0)))),
    call(nr::CHROOT, |c| task(c.vfs.chroot(c.process(), c.path(0)?))),
    call(nr::GETCWD, |c| done(c.vfs.getcwd(c.process, c.words[0], c.words[1]))),
    call(nr::UMASK, |c| done(c.process.directories().map(|own| own.set_umask(c.flags(0) & 0o777) as u64))),
    change(nr::MKDIR, All, |c| task(c.vfs.mkdir(c.process(), c.here(0)?, c.flags(1)))),
    change(nr::MKDIRAT, All, |c| task(c.vfs.mkdir(c.process(), c.at(0)?, c.flags(2)))),
    change(nr::MKNOD, All, |c| task(c.vfs.mknod(c.process(), c.here(0)?, c.flags(1), c.words[2]))),
    change(nr::MKNODAT, All, |c| task(c.vfs.mknod(c.process(), c.at(0)?, c.flags(2), c.words[3]))),
    change(nr::RMDIR, All, |c| task(c.vfs.rmdir(c.process(), c.here(0)?))),
    change(nr::UNLINK, All, |c| task(c.vfs.unlink_path(c.process(), c.here(0)?))),
    change(nr::UNLINKAT, All, |c| match c.flags(2) {
        0 => task(c.vfs.unlink_path(c.process(), c.at(0)?)),
        AT_REMOVEDIR => task(c.vfs.rmdir(c.process(), c.at(0)?)),
        _ => Err(Errno::EINVAL),
    }),
    change(nr::RENAME, All, |c| task(c.vfs.rename_path(c.process(), c.here(0)?, c.here(1)?, 0))),
    change(nr::RENAMEAT, All, |c| task(c.vfs.rename_path(c.process(), c.at(0)?, c.at(2)?, 0))),
    change(nr::RENAMEAT2, All, |c| task(c.vfs.rename_path(c.process(), c.at(0)?, c.at(2)?, c.flags(4)))),
    change(nr::LINK, All, |c| task(c.vfs.link_path(c.process(), c.here(0)?, c.here(1)?, Last::Keep))),
    change(nr::LINKAT, All, |c| {
        allow(c.flags(4), AT_SYMLINK_FOLLOW)?;
        let last = if c.flags(4) == 0 { Last::Keep } else { Last::Follow };
        task(c.vfs.link_path(c.process(), c.at(0)?, c.at(2)?, last))
    }),
    change(nr::SYMLINK, All, |c| task(c.vfs.symlink(c.process(), c.path(0)?, c.here(1)?))),
    change(nr::SYMLINKAT, All, |c| task(c.vfs.symlink(c.process(), c.path(0)?, c.at(1)?))),
    call(nr::READLINK, |c| {
        let side = c.here(0)?;
        if side.1.is_empty() {
            return Err(Errno::ENOENT);
        }
        task(c.vfs.readlink(c.process(), side, c.words[1], c.words[2]))
    }),
    call(nr::READLINKAT, |c| task(c.vfs.readlink(c.process(), c.at(0)?, c.words[2], c.words[3]))),
];

impl Vfs {
    /// Creates the file of a path that does not exist. The umask applies to `mode`.
    pub async fn make_node(&self, process: &Process, found: &Found, mode: u32, device: u64) -> Result<NodeRef, Errno> {
        let name = found.component(Errno::EEXIST)?;
        if found.parent.is_unlinked() {
            return Err(Errno::ENOENT);
        }
        may_change(process, &found.parent)?;
        let credentials = process.caller.credentials();
        let mode = mode & !process.directories()?.umask();
        let (mode, gid) = permission::inherit(&credentials, found.parent.attributes(), mode);
        let ids = credentials.euid as u64 | (gid as u64) << 32;
        self.base.files.create(&process.caller, &found.parent, name, mode, ids, device).await
    }

    /// mkdir.
    pub async fn mkdir(&self, process: Rc<Process>, side: Side, mode: u32) -> Result<u64, Errno> {
        let found = self.resolve(&process, side.0, side.1, Last::Keep).await?;
        if found.node.is_some() {
            return Err(Errno::EEXIST);
        }
        self.make_node(&process, &found, S_IFDIR | mode & 0o1777, 0).await?;
        Ok(0)
    }

    /// mknod.
    pub async fn mknod(&self, process: Rc<Process>, side: Side, mode: u32, device: u64) -> Result<u64, Errno> {
        let mode = if mode & S_IFMT == 0 { mode | S_IFREG } else { mode };
        let device = match mode & S_IFMT {
            S_IFREG | S_IFIFO | S_IFSOCK => 0,
            S_IFCHR | S_IFBLK => device,
            S_IFDIR => return Err(Errno::EPERM),
            _ => return Err(Errno::EINVAL),
        };
        let found = self.resolve(&process, side.0, side.1, Last::Keep).await?;
        match found.node {
            Some(_) => return Err(Errno::EEXIST),
            None if found.slash => return Err(Errno::ENOENT),
            None => {}
        }
        may_change(&process, &found.parent)?;
        if matches!(mode & S_IFMT, S_IFCHR | S_IFBLK) && !process.caller.credentials().is_root() {
            return Err(Errno::EPERM);
        }
        self.make_node(&process, &found, mode & (S_IFMT | 0o7777), device).await?;
        Ok(0)
    }

    /// unlink.
    pub async fn unlink_path(&self, process: Rc<Process>, side: Side) -> Result<u64, Errno> {
        let found = self.resolve(&process, side.0, side.1, Last::Keep).await?;
        let node = found.existing()?;
        let name = found.component(Errno::EISDIR)?;
        if node.is_directory() {
            return Err(Errno::EISDIR);
        }
        may_remove(&process, &found.parent, node)?;
        self.base.files.unlink(&process.caller, &found.parent, name, node).await?;
        Ok(0)
    }

    /// rmdir.
    pub async fn rmdir(&self, process: Rc<Process>, side: Side) -> Result<u64, Errno> {
        let found = self.resolve(&process, side.0, side.1, Last::Keep).await?;
        let node = found.existing()?;
        let name = found.component(match found.name {
            Name::Dot => Errno::EINVAL,
            Name::DotDot => Errno::ENOTEMPTY,
            _ => Errno::EBUSY,
        })?;
        if !node.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        may_remove(&process, &found.parent, node)?;
        self.base.files.unlink(&process.caller, &found.parent, name, node).await?;
        Ok(0)
    }

    /// link; `last` says whether the old name is followed if it is a link.
    pub async fn link_path(&self, process: Rc<Process>, old: Side, new: Side, last: Last) -> Result<u64, Errno> {
        let old = self.resolve(&process, old.0, old.1, last).await?;
        let node = old.existing()?.clone();
        let new = self.resolve(&process, new.0, new.1, Last::Keep).await?;
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
        if node.is_unlinked() {
            return Err(Errno::ENOENT);
        }
        may_change(&process, &new.parent)?;
        self.base.files.link(&process.caller, &new.parent, new.component(Errno::EEXIST)?, &node).await?;
        Ok(0)
    }

    /// symlink.
    pub async fn symlink(&self, process: Rc<Process>, target: Vec<u8>, side: Side) -> Result<u64, Errno> {
        if target.is_empty() {
            return Err(Errno::ENOENT);
        }
        let found = self.resolve(&process, side.0, side.1, Last::Keep).await?;
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
        self.base
            .files
            .make_link(&process.caller, &found.parent, found.component(Errno::EEXIST)?, &target, ids)
            .await?;
        Ok(0)
    }

    /// readlink. An empty path means the link that the descriptor was opened on (O_PATH).
    pub async fn readlink(&self, process: Rc<Process>, side: Side, address: u64, bytes: u64) -> Result<u64, Errno> {
        let room = match usize::try_from(bytes as i32) {
            Err(_) | Ok(0) => return Err(Errno::EINVAL),
            Ok(room) => room.min(TARGET_MAX),
        };
        let node = if side.1.is_empty() {
            process.file(side.0)?.node().cloned().ok_or(Errno::ENOENT)?
        } else {
            self.resolve(&process, side.0, side.1, Last::Keep).await?.existing()?.clone()
        };
        if !node.is_link() {
            return Err(Errno::EINVAL);
        }
        let mut target = self.base.files.read_link(&node, TARGET_MAX, process.caller.pid).await?;
        target.truncate(room);
        user::store(process.caller.endpoint, address, &target)?;
        Ok(target.len() as u64)
    }

    /// rename.
    pub async fn rename_path(&self, process: Rc<Process>, old: Side, new: Side, flags: u32) -> Result<u64, Errno> {
        if flags & !RENAME_NOREPLACE != 0 {
            return Err(Errno::EINVAL);
        }
        let old = self.resolve(&process, old.0, old.1, Last::Keep).await?;
        let new = self.resolve(&process, new.0, new.1, Last::Keep).await?;
        let node = old.existing()?.clone();
        if !Rc::ptr_eq(old.parent.mount(), new.parent.mount()) {
            return Err(Errno::EXDEV);
        }
        let names = (old.component(Errno::EBUSY)?, new.component(Errno::EBUSY)?);
        if flags & RENAME_NOREPLACE != 0 && new.node.is_some() {
            return Err(Errno::EEXIST);
        }
        if new.slash && !node.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        if new.node.as_ref().is_some_and(|replaced| Rc::ptr_eq(replaced, &node)) {
            return Ok(0);
        }
        may_rename(&process, &old, &new, &node)?;
        self.base
            .files
            .rename(&process.caller, (&old.parent, names.0), (&new.parent, names.1), &node, new.node.as_ref())
            .await?;
        if node.is_directory() {
            self.move_paths(&old.canonical, &new.canonical);
        }
        Ok(0)
    }

    /// The paths that processes and open directories remember, after a directory was renamed.
    fn move_paths(&self, old: &[u8], new: &[u8]) {
        for process in self.processes.all() {
            for (_, file) in process.files().descriptors().iter() {
                let moved = path::renamed(&file.path(), old, new);
                if let Some(moved) = moved {
                    file.set_path(moved);
                }
            }
            let Ok(directories) = process.directories() else { continue };
            let moved = |place: &Place| {
                let path = path::renamed(&place.path, old, new)?;
                Some(Place { node: place.node.clone(), path: path.into() })
            };
            let (working, root) = (moved(&directories.working()), moved(&directories.root()));
            // Without room for the new path the old one stays.
            let _ = working.map(|place| directories.set_working(place));
            let _ = root.map(|place| directories.set_root(place));
        }
    }

    /// chdir.
    pub async fn chdir(&self, process: Rc<Process>, text: Vec<u8>) -> Result<u64, Errno> {
        let place = self.directory_at(&process, text).await?;
        process.directories()?.set_working(place)?;
        Ok(0)
    }

    /// chroot.
    pub async fn chroot(&self, process: Rc<Process>, text: Vec<u8>) -> Result<u64, Errno> {
        let place = self.directory_at(&process, text).await?;
        if !process.caller.credentials().is_root() {
            return Err(Errno::EPERM);
        }
        process.directories()?.set_root(place)?;
        Ok(0)
    }

    async fn directory_at(&self, process: &Process, text: Vec<u8>) -> Result<Place, Errno> {
        let found = self.resolve(process, AT_FDCWD, text, Last::Follow).await?;
        let node = found.existing()?.clone();
        if !node.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        permission::check(&process.caller.credentials(), node.attributes(), EXECUTE)?;
        Ok(Place { node, path: found.canonical.into() })
    }

    /// fchdir.
    pub fn fchdir(&self, process: &Process, descriptor: i32) -> Result<u64, Errno> {
        process.file(descriptor)?;
        let place = self.place(process, descriptor)?;
        permission::check(&process.caller.credentials(), place.node.attributes(), EXECUTE)?;
        process.directories()?.set_working(place)?;
        Ok(0)
    }

    /// getcwd: returns the length with the NUL.
    pub fn getcwd(&self, process: &Process, address: u64, bytes: u64) -> Result<u64, Errno> {
        let directories = process.directories()?;
        let working = directories.working();
        if working.node.is_unlinked() {
            return Err(Errno::ENOENT);
        }
        let root = directories.root();
        let mut text = match path::below(&working.path, &root.path) {
            Some(text) => text.to_vec(),
            None => [b"(unreachable)", &working.path[..]].concat(),
        };
        text.push(0);
        if text.len() as u64 > bytes {
            return Err(Errno::ERANGE);
        }
        user::store(process.caller.endpoint, address, &text)?;
        Ok(text.len() as u64)
    }
}

fn may_rename(process: &Process, old: &Found, new: &Found, node: &NodeRef) -> Result<(), Errno> {
    let into_itself = path::renamed(&new.canonical, &old.canonical, b"").is_some();
    if node.is_directory() && into_itself {
        return Err(Errno::EINVAL);
    }
    may_remove(process, &old.parent, node)?;
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
    // Moving a directory changes its `..`.
    if node.is_directory() && !Rc::ptr_eq(&old.parent, &new.parent) {
        permission::check(&process.caller.credentials(), node.attributes(), WRITE)?;
    }
    Ok(())
}
