//! mount(2), umount2(2) and pivot_root(2).
//!
//! Mounts are private: what is mounted in one namespace appears in no other, so MS_PRIVATE and MS_SLAVE ask for what is, and MS_SHARED is refused.
//! In a container with users of its own a process may mount what needs no rights outside, and changes only mounts of its namespace.

use super::{NewFileSystem, check_disk, mount, needs_no_device, options::Options, service_of, tree};
use crate::{
    base::Base,
    callers::permission::S_IFBLK,
    files::{
        mount::{MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REMOUNT, Mount},
        vnode::NodeRef,
    },
    pathname,
    paths::walk::{self, Found, Last},
    processes::{AT_FDCWD, Place, Process, Processes},
};
use abi::{Capability, Errno, Part, device::Kind, fs};
use alloc::{rc::Rc, vec::Vec};
use sys::fallible::copied;

/// Flags of mount(2) that stay with the mount.
const KEPT: u64 = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
const MS_BIND: u64 = 0x1000;
const MS_MOVE: u64 = 0x2000;
const MS_REC: u64 = 0x4000;
const MS_SILENT: u64 = 0x8000;
const MS_UNBINDABLE: u64 = 1 << 17;
const MS_PRIVATE: u64 = 1 << 18;
const MS_SLAVE: u64 = 1 << 19;
const MS_SHARED: u64 = 1 << 20;
const PROPAGATION: u64 = MS_UNBINDABLE | MS_PRIVATE | MS_SLAVE | MS_SHARED;
/// What the upper half of the flags was in old programs.
const MS_MGC_VAL: u64 = 0xc0ed_0000;
const MS_MGC_MASK: u64 = 0xffff_0000;

const MNT_FORCE: u64 = 1;
const MNT_DETACH: u64 = 2;
const MNT_EXPIRE: u64 = 4;
const UMOUNT_NOFOLLOW: u64 = 8;

/// The arguments of mount(2).
#[allow(missing_docs)]
pub struct Arguments {
    pub source: Vec<u8>,
    pub target: Vec<u8>,
    pub kind: Vec<u8>,
    pub flags: u64,
    pub options: Vec<u8>,
}

/// `EPERM`: the process may not change the mounts that it sees.
fn check_rights(base: &Base, process: &Process) -> Result<(), Errno> {
    let credentials = process.caller.credentials();
    let users = base.files().mounts.root(process.caller.mounts())?.mount().users();
    let is_own = users == process.caller.parts().of(Part::Users);
    let may = credentials.has(Capability::SysAdmin) || is_own && credentials.has_inside(Capability::SysAdmin);
    if may { Ok(()) } else { Err(Errno::EPERM) }
}

/// `EINVAL` unless the process sees the mount in its tree.
fn check_seen(process: &Process, mount: &Mount) -> Result<(), Errno> {
    let is_seen = mount.namespace() == process.caller.mounts() && !mount.is_detached();
    if is_seen { Ok(()) } else { Err(Errno::EINVAL) }
}

/// The mount whose root this is. `EINVAL`: of none, or of one that the process does not see.
fn mount_at(process: &Process, node: &NodeRef) -> Result<Rc<Mount>, Errno> {
    if !node.mount().is_root(node) {
        return Err(Errno::EINVAL);
    }
    check_seen(process, node.mount())?;
    Ok(node.mount().clone())
}

async fn find(base: &Base, process: &Process, path: Vec<u8>) -> Result<Found, Errno> {
    walk::resolve(base.files(), process, AT_FDCWD, path, Last::Follow).await
}

/// mount(2).
pub async fn mount_call(base: &Base, process: Rc<Process>, mut arguments: Arguments) -> Result<u64, Errno> {
    check_rights(base, &process)?;
    if arguments.flags & MS_MGC_MASK == MS_MGC_VAL {
        arguments.flags &= !MS_MGC_MASK;
    }
    let flags = arguments.flags;
    let found = find(base, &process, core::mem::take(&mut arguments.target)).await?;
    let node = found.existing()?.clone();
    if flags & MS_REMOUNT != 0 {
        let mount = mount_at(&process, &node)?;
        return remount(base, &process, &mount, flags).await;
    }
    if flags & MS_BIND != 0 {
        return bind(base, &process, &found, arguments).await;
    }
    if flags & PROPAGATION != 0 {
        mount_at(&process, &node)?;
        let others = flags & !(PROPAGATION | MS_REC | MS_SILENT);
        let is_what_there_is = matches!(flags & PROPAGATION, MS_PRIVATE | MS_SLAVE);
        return if others == 0 && is_what_there_is { Ok(0) } else { Err(Errno::EINVAL) };
    }
    if flags & MS_MOVE != 0 {
        return move_mount(base, &process, &found, arguments.source).await;
    }
    mount_new(base, &process, found, arguments).await
}

/// MS_REMOUNT: of the mount alone with MS_BIND, else of the file system too.
async fn remount(base: &Base, process: &Process, mount: &Rc<Mount>, flags: u64) -> Result<u64, Errno> {
    let kept = flags & KEPT;
    if mount.is_locked() && mount.flags() & KEPT & !kept != 0 {
        return Err(Errno::EPERM);
    }
    if flags & MS_BIND == 0 {
        if !process.caller.credentials().has(Capability::SysAdmin) {
            return Err(Errno::EPERM);
        }
        base.files().settle_all(Some(mount)).await?;
        base.peers().ask(mount.service(), fs::Sync {}.message()).await?;
        let read_only = flags & MS_RDONLY != 0;
        mount.file_system().set_read_only(read_only);
        for other in mount.file_system().mounts() {
            base.store().update_mount(other.record(), |record| record.read_only = read_only);
        }
    }
    mount.set_flags(kept);
    base.store().update_mount(mount.record(), |record| record.flags = kept as u32);
    Ok(0)
}

/// `ENOTDIR`: one is a directory, the other is none.
fn check_kinds(source: &NodeRef, target: &NodeRef) -> Result<(), Errno> {
    if source.is_directory() == target.is_directory() { Ok(()) } else { Err(Errno::ENOTDIR) }
}

/// MS_BIND: the file or directory at `source` is seen at `target` too.
async fn bind(base: &Base, process: &Process, target: &Found, arguments: Arguments) -> Result<u64, Errno> {
    if arguments.source.is_empty() {
        return Err(Errno::EINVAL);
    }
    let source = find(base, process, arguments.source).await?;
    let (from, to) = (source.existing()?, target.existing()?);
    check_seen(process, from.mount())?;
    check_seen(process, to.mount())?;
    check_kinds(from, to)?;
    let recursive = arguments.flags & MS_REC != 0;
    let source_path = tree::path_in_mount(from.mount(), &source.canonical)?;
    if !recursive && tree::covers_something(base, from.mount(), &source_path) {
        // It would show what is below that.
        return Err(Errno::EINVAL);
    }
    let copying = tree::Copying {
        source: from,
        source_path: &source_path,
        recursive,
        namespace: process.caller.mounts(),
        users: to.mount().users(),
        locked: false,
        user: process.caller.user(),
    };
    let path = tree::path_in_mount(to.mount(), &target.canonical)?;
    tree::copy(base, &copying, Some(to.clone()), path)?;
    Ok(0)
}

/// MS_MOVE.
async fn move_mount(base: &Base, process: &Process, target: &Found, source: Vec<u8>) -> Result<u64, Errno> {
    if source.is_empty() {
        return Err(Errno::EINVAL);
    }
    let from = find(base, process, source).await?;
    let (from, to) = (from.existing()?, target.existing()?);
    let mount = mount_at(process, from)?;
    check_seen(process, to.mount())?;
    check_kinds(from, to)?;
    if mount.covers().is_none() || mount.is_locked() {
        return Err(Errno::EINVAL);
    }
    if base.files().mounts.below(&mount).iter().any(|below| Rc::ptr_eq(below, to.mount())) {
        return Err(Errno::ELOOP);
    }
    let path = tree::path_in_mount(to.mount(), &target.canonical)?;
    tree::move_over(base, &mount, to.clone(), path)?;
    Ok(0)
}

/// A new file system. Those that are in memory, or show what is known anyway, may be mounted in a container too.
async fn mount_new(base: &Base, process: &Process, found: Found, arguments: Arguments) -> Result<u64, Errno> {
    let node = found.existing()?.clone();
    check_seen(process, node.mount())?;
    if !node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    let mut served = service_of(&arguments.kind).ok_or(Errno::ENODEV)?;
    if served.kind == "proc" {
        served.tree = fs::tree_of_container(process.caller.parts().of(Part::Processes));
    }
    let mut flags = arguments.flags & KEPT;
    let is_contained = process.caller.parts().of(Part::Users) != 0;
    if is_contained {
        match served.kind {
            // Nodes that somebody makes in it must mean nothing.
            "tmpfs" | "proc" | "sysfs" => flags |= MS_NODEV,
            "devpts" => {}
            _ => return Err(process.caller.refuse("mount of a disk or devices")),
        }
    }
    if served.kind == "tmpfs" && process.caller.parts().limited().is_some() {
        // Its memory is tmpfs's, which the container would not pay for.
        return Err(process.caller.refuse("mount of tmpfs"));
    }
    let target = tree::path_in_mount(node.mount(), &found.canonical)?;
    if needs_no_device(served.kind) {
        let options = match served.kind {
            "tmpfs" => owned_options(process, Options::parse(&arguments.options)?)?,
            _ => Options::default(),
        };
        let new = NewFileSystem { served, device: None, options, flags };
        mount(base, new, target, Some(node), Some(process)).await?;
        return Ok(0);
    }
    let special = find(base, process, arguments.source).await?.existing()?.clone();
    if special.kind() != S_IFBLK {
        return Err(Errno::ENOTBLK);
    }
    let device = base.devices().numbered(Kind::Block, special.special_device())?;
    if base.files().mounts.find(|mount| mount.device() == device.number()).is_some() {
        return Err(Errno::EBUSY);
    }
    check_disk(base, device, flags)?;
    let new = NewFileSystem { served, device: Some(device), options: Options::default(), flags };
    mount(base, new, target, Some(node), Some(process)).await?;
    Ok(0)
}

/// Options with the ids of the system; who mounts owns the root, unless he says who else.
fn owned_options(process: &Process, options: Options) -> Result<Options, Errno> {
    let credentials = process.caller.credentials();
    let (uid, gid) = credentials.meant(options.uid, options.gid)?;
    let own = |id: u32| (id != 0).then_some(id);
    Ok(Options { uid: uid.or(own(credentials.euid)), gid: gid.or(own(credentials.egid)), ..options })
}

/// umount2(2).
pub async fn unmount_call(base: &Base, process: Rc<Process>, target: Vec<u8>, flags: u64) -> Result<u64, Errno> {
    check_rights(base, &process)?;
    if flags & !(MNT_FORCE | MNT_DETACH | MNT_EXPIRE | UMOUNT_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL);
    }
    let last = if flags & UMOUNT_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
    let node = walk::resolve(base.files(), &process, AT_FDCWD, target, last).await?.existing()?.clone();
    let mount = mount_at(&process, &node)?;
    if mount.is_locked() {
        return Err(Errno::EINVAL);
    }
    if mount.covers().is_none() {
        return Err(Errno::EBUSY);
    }
    drop(node);
    if flags & MNT_DETACH != 0 {
        tree::detach(base, &mount);
        return Ok(0);
    }
    base.files().forget_names(|other| Rc::ptr_eq(other, &mount));
    base.mappings().release_maps(&mount).await;
    let root = mount.root().ok_or(Errno::EINVAL)?;
    // Two: the mount's own and ours.
    let (watched, watches_of_root) = base.files().watches().holds(&mount, &root);
    let in_use = mount.node_count() - watched > 1 || Rc::strong_count(&root) > 2 + watches_of_root;
    if mount.is_detached() || in_use {
        return Err(Errno::EBUSY);
    }
    base.files().watches().unmounted(&mount);
    base.files().put_dropped(&mount);
    if mount.file_system().mounts().len() == 1 {
        if process.caller.recalled(fs::Unmount::LABEL).is_none() {
            let request = fs::Unmount { node: mount.file_system().root(), force: false };
            base.peers().ask_once(&process.caller, mount.service(), request.message()).await?;
        }
        base.files().forget_mapped(mount.file_system());
        mount.file_system().release_disk();
    }
    base.store().remove_mount(mount.record());
    base.files().mounts.remove(&mount);
    mount.detach();
    Ok(0)
}

/// pivot_root(2): the mount at `new_root` becomes the root, and what was the root is seen at `put_old`.
pub async fn pivot_call(
    base: &Base,
    processes: &Processes,
    process: Rc<Process>,
    new_root: Vec<u8>,
    put_old: Vec<u8>,
) -> Result<u64, Errno> {
    check_rights(base, &process)?;
    let new = find(base, &process, new_root).await?;
    let old = find(base, &process, put_old).await?;
    let root = process.directories()?.root().clone();
    let (new_node, old_node) = (new.existing()?.clone(), old.existing()?.clone());
    if !new_node.is_directory() || !old_node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    let (new_mount, root_mount) = (new_node.mount().clone(), root.node.mount().clone());
    for mount in [&new_mount, &root_mount, old_node.mount()] {
        check_seen(&process, mount)?;
    }
    if Rc::ptr_eq(&new_mount, &root_mount) || Rc::ptr_eq(old_node.mount(), &root_mount) {
        return Err(Errno::EBUSY);
    }
    let are_roots = new_mount.is_root(&new_node) && root_mount.is_root(&root.node);
    let put_path = copied(pathname::below(&old.canonical, &new.canonical).ok_or(Errno::EINVAL)?)?;
    if !are_roots || new_mount.covers().is_none() || new_mount.is_locked() {
        return Err(Errno::EINVAL);
    }
    let target_of_root = tree::path_in_mount(old_node.mount(), &old.canonical)?;
    tree::pivot(base, &new_mount, &root_mount, old_node, target_of_root)?;
    let changed = |path: &[u8]| match pathname::below(path, &new.canonical) {
        Some(below) => Some(joined(&[&root.path, below])),
        None => pathname::below(path, &root.path).map(|below| joined(&[&root.path, &put_path, below])),
    };
    move_processes(processes, &process, (&root, &new_node), changed);
    Ok(0)
}

/// Absolute paths, each below the one before, as one.
#[expect(clippy::disallowed_methods, reason = "a path: from the heap's reserve")]
fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let path = parts.iter().filter(|part| **part != b"/").fold(Vec::new(), |path, part| [&path[..], part].concat());
    if path.is_empty() { b"/".to_vec() } else { path }
}

/// Processes that see the same mounts and had the old root as root or working directory have the new one; the paths of the others change.
fn move_processes(
    processes: &Processes,
    caller: &Process,
    (old_root, new_root): (&Place, &NodeRef),
    changed: impl Fn(&[u8]) -> Option<Vec<u8>>,
) {
    let namespace = caller.caller.mounts();
    for process in processes.all().iter().filter(|process| process.caller.mounts() == namespace) {
        let Ok(directories) = process.directories() else { continue };
        let (root, working) = (directories.root().clone(), directories.working().clone());
        let moved = |place: &Place| {
            if Rc::ptr_eq(&place.node, &old_root.node) {
                return Place { node: new_root.clone(), path: old_root.path.clone() };
            }
            changed(&place.path).map_or_else(|| place.clone(), |path| Place::new(place.node.clone(), path))
        };
        let result = directories.set_root(moved(&root)).and_then(|()| directories.set_working(moved(&working)));
        if let Err(error) = result {
            sys::log!("process {} keeps its root through pivot_root: {error}", process.caller.pid);
        }
    }
}
