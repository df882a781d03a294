//! Mounts of what is mounted already: at one more place (bind mounts), or in a namespace of a container's own.
//!
//! All of it happens within a turn, since no file system is asked: a copy is more of the same inodes. Neighbours: `files::mount`.

use crate::{
    base::Base,
    files::{
        mount::{Another, Mount},
        vnode::NodeRef,
    },
    keep::records::{MountRecord, NodeRecord},
    mounts::WITH_JOURNAL,
    pathname,
    processes::{Place, Process},
};
use abi::{Errno, Part, Parts};
use alloc::{rc::Rc, vec::Vec};
use sys::fallible::{TryVec, copied};

/// Preserves a mount with a root, and puts it into the tree: over a file, or as root of its namespace. `ENOSPC`: there are too many.
pub fn place(base: &Base, mount: &Rc<Mount>, covers: Option<NodeRef>, user: u32) -> Result<(), Errno> {
    let record = match save(base, mount, covers.as_ref(), user) {
        Ok(record) => record,
        Err(error) => {
            mount.abandon();
            return Err(error);
        }
    };
    mount.preserve_at(record);
    match covers {
        Some(covers) => mount.cover(covers),
        None => mount.become_root(),
    }
    base.files().mounts.add(mount.clone());
    Ok(())
}

fn save(base: &Base, mount: &Mount, covers: Option<&NodeRef>, user: u32) -> Result<u16, Errno> {
    let (store, file_system) = (base.store(), mount.file_system());
    let mut texts = [const { Vec::new() }; 3];
    let mut saved = Vec::new();
    texts[0] = copied(mount.source().as_bytes())?;
    texts[1] = mount.target();
    texts[2] = copied(mount.subtree())?;
    let result = texts.iter().try_for_each(|text| saved.try_push(store.put_text(text, user)?));
    let record = result.and_then(|()| {
        store.new_mount(&MountRecord {
            service: mount.service().slot() as u16,
            volatile: mount.is_volatile(),
            fixed: file_system.is_fixed(),
            in_memory: mount.is_in_memory(),
            journal: mount.kind() == WITH_JOURNAL,
            read_only: file_system.is_read_only(),
            locked: mount.is_locked(),
            detached: false,
            users: mount.users(),
            namespace: mount.namespace(),
            flags: mount.flags() as u32,
            device: mount.device(),
            root: mount.root().map_or(0, |root| root.number()),
            file_system_root: file_system.root(),
            covers: covers.map_or(NodeRecord::NONE, |covers| covers.record()),
            source: saved[0],
            target: saved[1],
            subtree: saved[2],
            user,
        })
    });
    record.inspect_err(|_| saved.into_iter().for_each(|text| store.release_text(text)))
}

/// The path of a file below the root of the mount that it is seen through. `ENAMETOOLONG`: it is not known.
pub fn path_in_mount(mount: &Mount, canonical: &[u8]) -> Result<Vec<u8>, Errno> {
    copied(pathname::below(pathname::known(canonical)?, &mount.path()).unwrap_or(canonical))
}

/// Whether a mount that may not be taken away is over a file at this path of another one, or below it.
pub fn covers_something(base: &Base, under: &Rc<Mount>, path: &[u8]) -> bool {
    let all = base.files().mounts.of(under.namespace());
    let mut locked = all.iter().filter(|mount| mount.is_locked());
    locked.any(|mount| {
        mount.covers().is_some_and(|covers| Rc::ptr_eq(covers.mount(), under))
            && pathname::below(&mount.target(), path).is_some()
    })
}

/// What to copy, and for whom.
pub struct Copying<'a> {
    /// What the copy shows, with its path below the root of its mount.
    pub source: &'a NodeRef,
    /// See `source`.
    pub source_path: &'a [u8],
    /// With what is mounted below it.
    pub recursive: bool,
    /// The namespace of the copy, and whose it is.
    pub namespace: u16,
    /// See `namespace`.
    pub users: u8,
    /// The copy is for less privileged users.
    pub locked: bool,
    /// Who is charged.
    pub user: u32,
}

/// A mount, and the copy of it.
pub type Copied = (Rc<Mount>, Rc<Mount>);

/// Copies a mount, or a directory or file of it, over `covers`, whose path below the root of its mount is `target`; `None`: as the root of a
/// namespace. `ENOSPC`: there are too many, and none was made.
pub fn copy(
    base: &Base,
    copying: &Copying<'_>,
    covers: Option<NodeRef>,
    target: Vec<u8>,
) -> Result<Vec<Copied>, Errno> {
    let mut made = Vec::new();
    let result = copy_into(base, copying, covers, target, &mut made);
    if result.is_err() {
        made.iter().rev().for_each(|(_, copy)| undo(base, copy));
    }
    result.map(|()| made)
}

fn undo(base: &Base, mount: &Rc<Mount>) {
    base.store().remove_mount(mount.record());
    base.files().mounts.remove(mount);
    mount.detach();
}

fn copy_into(
    base: &Base,
    copying: &Copying<'_>,
    covers: Option<NodeRef>,
    target: Vec<u8>,
    made: &mut Vec<Copied>,
) -> Result<(), Errno> {
    let top = copying.source.mount();
    // Looked for first: the copy may lie below its source.
    let all = if copying.recursive { base.files().mounts.below(top) } else { Vec::new() };
    let mut subtree = copied(top.subtree())?;
    if copying.source_path.len() > 1 {
        subtree.try_extend_from_slice(copying.source_path)?;
    }
    let locked = copying.locked && covers.is_some();
    let first = copy_one(base, top, copying, covers, (target, subtree, locked), copying.source)?;
    made.try_push((top.clone(), first))?;
    for mount in all.iter().skip(1) {
        let Some(covers) = mount.covers() else { continue };
        let is_on_top = Rc::ptr_eq(covers.mount(), top);
        let Some((_, parent)) = made.iter().find(|(original, _)| Rc::ptr_eq(original, covers.mount())) else {
            continue;
        };
        let path = mount.target();
        let path = if is_on_top { pathname::below(&path, copying.source_path) } else { Some(&path[..]) };
        let (Some(path), Some(root)) = (path, mount.root()) else { continue };
        let covers = parent.show(&covers);
        let place = (copied(path)?, copied(mount.subtree())?, copying.locked || mount.is_locked());
        let copy = copy_one(base, mount, copying, Some(covers), place, &root)?;
        made.try_push((mount.clone(), copy))?;
    }
    Ok(())
}

fn copy_one(
    base: &Base,
    original: &Rc<Mount>,
    copying: &Copying<'_>,
    covers: Option<NodeRef>,
    (target, subtree, locked): (Vec<u8>, Vec<u8>, bool),
    root: &NodeRef,
) -> Result<Rc<Mount>, Errno> {
    let (flags, namespace, users) = (original.flags(), copying.namespace, copying.users);
    let copy = Mount::another(original.file_system(), Another { target, subtree, flags, namespace, users, locked });
    copy.set_root(copy.show(root));
    place(base, &copy, covers, copying.user)?;
    Ok(copy)
}

/// Makes a namespace for containers in which there is none yet, with copies of the mounts that a process sees. `ENOSPC`: there are too many.
pub fn copy_namespace(base: &Base, of: &Process, parts: Parts, locked: bool) -> Result<Vec<Copied>, Errno> {
    let source = base.files().mounts.root(of.caller.mounts())?;
    let copying = Copying {
        source: &source,
        source_path: b"/",
        recursive: true,
        namespace: parts.of(Part::Mounts).into(),
        users: parts.of(Part::Users),
        locked,
        user: of.caller.user(),
    };
    copy(base, &copying, None, copied(b"/")?)
}

/// The same directory in a copy of a namespace; in none of its mounts, it stays what it is.
pub fn place_in_copy(copies: &[Copied], place: &Place) -> Place {
    let copy = copies.iter().find(|(original, _)| Rc::ptr_eq(original, place.node.mount()));
    let node = copy.map_or_else(|| place.node.clone(), |(_, copy)| copy.show(&place.node));
    Place { node, path: place.path.clone() }
}

/// Takes a mount, and what is mounted below it, out of the tree. Each ends when nothing of it is in use any more.
pub fn detach(base: &Base, top: &Rc<Mount>) {
    let mounts = base.files().mounts.below(top);
    for mount in mounts.iter().rev() {
        base.store().update_mount(mount.record(), |record| {
            record.detached = true;
            record.covers = NodeRecord::NONE;
        });
        mount.detach();
    }
    // The name cache may be large: one look for all of them, and none where no file is in use.
    if mounts.iter().any(|mount| mount.node_count() > 0) {
        base.files().forget_names(|mount| mount.is_detached());
    }
}

/// Ends a namespace that nobody sees any more.
pub fn end_namespace(base: &Base, namespace: u16) {
    if let Ok(root) = base.files().mounts.root(namespace) {
        detach(base, root.mount());
    }
}

/// Moves a mount over another file. `ENOMEM`: no room for the path.
pub fn move_over(base: &Base, mount: &Rc<Mount>, covers: NodeRef, target: Vec<u8>) -> Result<(), Errno> {
    base.store().set_mount_target(mount.record(), &target)?;
    mount.lift();
    settle(base, mount, Some(covers), target);
    Ok(())
}

/// Puts a mount in the place of another, and that one over `put_old`, whose path below the root of its mount is `target`. `ENOMEM`.
pub fn pivot(base: &Base, new: &Rc<Mount>, old: &Rc<Mount>, put_old: NodeRef, target: Vec<u8>) -> Result<(), Errno> {
    let (place, place_target) = (old.covers(), old.target());
    let target_before = new.target();
    base.store().set_mount_target(new.record(), &place_target)?;
    if let Err(error) = base.store().set_mount_target(old.record(), &target) {
        base.store().set_mount_target(new.record(), &target_before)?;
        return Err(error);
    }
    new.lift();
    old.lift();
    settle(base, new, place, place_target);
    settle(base, old, Some(put_old), target);
    Ok(())
}

/// Puts a mount that was lifted somewhere else.
fn settle(base: &Base, mount: &Rc<Mount>, covers: Option<NodeRef>, target: Vec<u8>) {
    let record = covers.as_ref().map_or(NodeRecord::NONE, |covers| covers.record());
    base.store().update_mount(mount.record(), |saved| saved.covers = record);
    mount.set_target(target);
    match covers {
        Some(covers) => mount.cover(covers),
        None => mount.become_root(),
    }
}
