//! The tree of /dev: which special files there are. Device numbers are Linux's (devices.txt), so that programs which look at
//! them find what they know; vfs maps the major number to the service that drives it.
//!
//! Nodes are numbered by their place in `ENTRIES` plus 2 (1 is the root), so that a number means the same to the next incarnation.
//! Mode and owner can be changed; they and the times outlive this process (`kept`).

use crate::kept::{Kept, Owner};
use alloc::vec::Vec;
use fs::Errno;
use fs::file_system::{
    Attributes, DataSink, EntrySink, FileSystem, NodeId, S_IFBLK, S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, Statistics,
    Timestamp,
};
use sys::keep::Keep;

/// The directory itself.
const ROOT: NodeId = 1;
const FIRST: NodeId = 2;
const ROOT_MODE: u32 = S_IFDIR | 0o755;
/// Magic number that statfs(2) reports for a tmpfs, which is what Linux's devtmpfs answers too.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// What an entry is.
enum Kind {
    /// Character device: major, minor, permissions.
    Character(u64, u64, u32),
    /// Block device: major, minor, permissions.
    Block(u64, u64, u32),
    /// Symbolic link.
    Link(&'static str),
    /// Empty directory, for mounting on.
    Folder,
}
use Kind::{Block, Character, Folder, Link};

const ENTRIES: &[(&str, Kind)] = &[
    ("null", Character(1, 3, 0o666)),
    ("zero", Character(1, 5, 0o666)),
    ("full", Character(1, 7, 0o666)),
    ("random", Character(1, 8, 0o666)),
    ("urandom", Character(1, 9, 0o666)),
    ("kmsg", Character(1, 11, 0o644)),
    ("tty", Character(5, 0, 0o666)),
    ("console", Character(5, 1, 0o600)),
    ("ttyS0", Character(4, 64, 0o660)),
    ("ttyS1", Character(4, 65, 0o660)),
    ("ttyS2", Character(4, 66, 0o660)),
    ("lp0", Character(6, 0, 0o660)),
    ("rtc0", Character(10, 135, 0o600)),
    ("rtc", Link("rtc0")),
    ("ram0", Block(1, 0, 0o660)),
    ("hda", Block(3, 0, 0o660)),
    ("hdb", Block(3, 64, 0o660)),
    ("hdc", Block(3, 128, 0o660)),
    ("hdd", Block(3, 192, 0o660)),
    ("vda", Block(254, 0, 0o660)),
    ("vdb", Block(254, 16, 0o660)),
    ("fd", Link("/proc/self/fd")),
    ("stdin", Link("/proc/self/fd/0")),
    ("stdout", Link("/proc/self/fd/1")),
    ("stderr", Link("/proc/self/fd/2")),
    ("shm", Folder),
];

/// The file system.
pub struct Devices {
    owners: Vec<Owner>,
    /// When the system's first devfs began: the nodes' times.
    began: Timestamp,
    kept: Kept,
}

impl Devices {
    /// /dev as a predecessor has left it in `keep`, or as it is at boot, which is `now`.
    pub fn new(keep: Keep, now: Timestamp) -> Self {
        let entries = ENTRIES.iter().map(|(_, kind)| mode_of(kind));
        let modes = core::iter::once(ROOT_MODE).chain(entries);
        let kept = Kept::open(keep, 1 + ENTRIES.len());
        let owner = |(index, mode)| kept.owner(index).unwrap_or(Owner { mode, uid: 0, gid: 0 });
        Devices { owners: modes.enumerate().map(owner).collect(), began: kept.began(now), kept }
    }

    fn owner(&self, node: NodeId) -> Result<Owner, Errno> {
        self.owners.get(index(node)?).copied().ok_or(Errno::ESTALE)
    }

    fn change(&mut self, node: NodeId, act: impl FnOnce(&mut Owner)) -> Result<(), Errno> {
        let index = index(node)?;
        let owner = self.owners.get_mut(index).ok_or(Errno::ESTALE)?;
        act(owner);
        self.kept.store(index, owner);
        Ok(())
    }
}

fn index(node: NodeId) -> Result<usize, Errno> {
    node.checked_sub(ROOT).map(|index| index as usize).ok_or(Errno::ESTALE)
}

impl FileSystem for Devices {
    fn is_volatile(&self) -> bool {
        true
    }

    fn root(&self) -> NodeId {
        ROOT
    }

    fn attributes(&mut self, node: NodeId) -> Result<Attributes, Errno> {
        let owner = self.owner(node)?;
        let kind = entry(node).map(|(_, kind)| kind);
        let device = match kind {
            Some(Character(major, minor, _) | Block(major, minor, _)) => device_number(*major, *minor),
            _ => 0,
        };
        let size = if let Some(Link(target)) = kind { target.len() as u64 } else { 0 };
        let links = if owner.mode & S_IFMT == S_IFDIR { 2 } else { 1 };
        let (mode, uid, gid) = (owner.mode, owner.uid, owner.gid);
        Ok(Attributes {
            node,
            mode,
            links,
            uid,
            gid,
            device,
            size,
            block_size: 4096,
            accessed: self.began,
            modified: self.began,
            changed: self.began,
            ..Attributes::default()
        })
    }

    fn lookup(&mut self, dir: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        if !is_directory(dir) {
            return Err(Errno::ENOTDIR);
        }
        if name == b".." || name == b"." && dir == ROOT {
            return Ok(ROOT);
        }
        if dir != ROOT {
            return if name == b"." { Ok(dir) } else { Err(Errno::ENOENT) };
        }
        let index = ENTRIES.iter().position(|(entry, _)| entry.as_bytes() == name).ok_or(Errno::ENOENT)?;
        Ok(FIRST + index as NodeId)
    }

    fn read(&mut self, node: NodeId, _: u64, _: usize, _: &mut dyn DataSink) -> Result<usize, Errno> {
        // Devices are read from their drivers, not from here.
        Err(if is_directory(node) { Errno::EISDIR } else { Errno::EINVAL })
    }

    fn read_dir(&mut self, dir: NodeId, position: u64, sink: &mut dyn EntrySink) -> Result<u64, Errno> {
        if !is_directory(dir) {
            return Err(Errno::ENOTDIR);
        }
        let dots = [(".", dir, S_IFDIR), ("..", ROOT, S_IFDIR)];
        let shown: &[_] = if dir == ROOT { ENTRIES } else { &[] };
        let entries = shown.iter().zip(FIRST..).map(|((name, kind), node)| (*name, node, mode_of(kind) & S_IFMT));
        let mut next = position;
        for (name, node, mode) in dots.into_iter().chain(entries).skip(position as usize) {
            if !sink.entry(node, next + 1, mode, name.as_bytes()) {
                break;
            }
            next += 1;
        }
        Ok(next)
    }

    fn read_link(&mut self, node: NodeId, target: &mut [u8]) -> Result<usize, Errno> {
        let Some((_, Link(text))) = entry(node) else { return Err(Errno::EINVAL) };
        let count = text.len().min(target.len());
        target[..count].copy_from_slice(&text.as_bytes()[..count]);
        Ok(count)
    }

    fn set_mode(&mut self, node: NodeId, mode: u32) -> Result<(), Errno> {
        self.change(node, |owner| owner.mode = owner.mode & S_IFMT | mode & 0o7777)
    }

    fn set_owner(&mut self, node: NodeId, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
        self.change(node, |owner| {
            owner.uid = uid.unwrap_or(owner.uid);
            owner.gid = gid.unwrap_or(owner.gid);
        })
    }

    fn statistics(&self) -> Statistics {
        Statistics { kind: TMPFS_MAGIC, block_size: 4096, ..Statistics::default() }
    }
}

fn entry(node: NodeId) -> Option<&'static (&'static str, Kind)> {
    ENTRIES.get(node.checked_sub(FIRST)? as usize)
}

fn mode_of(kind: &Kind) -> u32 {
    match kind {
        Character(_, _, permissions) => S_IFCHR | permissions,
        Block(_, _, permissions) => S_IFBLK | permissions,
        Link(_) => S_IFLNK | 0o777,
        Folder => S_IFDIR | 0o755,
    }
}

fn is_directory(node: NodeId) -> bool {
    node == ROOT || matches!(entry(node), Some((_, Folder)))
}

/// Linux's device number: makedev(3) for majors and minors below 256.
fn device_number(major: u64, minor: u64) -> u64 {
    major << 8 | minor
}

#[cfg(test)]
mod tests {
    //! The tree as vfs walks it.
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::string::String;

    fn memory() -> &'static [AtomicU64] {
        Vec::leak((0..crate::kept::BYTES / 8).map(|word| AtomicU64::new(word as u64 * 77)).collect())
    }

    fn devices(memory: &'static [AtomicU64]) -> Devices {
        Devices::new(Keep::simulated(memory, u64::MAX), Timestamp::default())
    }

    struct Listing(Vec<(NodeId, String)>, usize);

    impl EntrySink for Listing {
        fn entry(&mut self, node: NodeId, _: u64, _: u32, name: &[u8]) -> bool {
            if self.0.len() == self.1 {
                return false;
            }
            self.0.push((node, String::from_utf8(name.to_vec()).unwrap()));
            true
        }
    }

    #[test]
    fn every_listed_name_is_found_under_its_number() {
        let mut devices = devices(memory());
        let mut listing = Listing(Vec::new(), usize::MAX);
        devices.read_dir(ROOT, 0, &mut listing).unwrap();
        assert_eq!(listing.0.len(), ENTRIES.len() + 2);
        for (node, name) in listing.0 {
            assert_eq!(devices.lookup(ROOT, name.as_bytes()), Ok(node));
            assert_eq!(devices.attributes(node).unwrap().node, node);
        }
    }

    #[test]
    fn a_listing_in_pieces_is_complete() {
        let mut devices = devices(memory());
        let (mut position, mut names) = (0, 0);
        loop {
            let mut listing = Listing(Vec::new(), 3);
            position = devices.read_dir(ROOT, position, &mut listing).unwrap();
            if listing.0.is_empty() {
                break;
            }
            names += listing.0.len();
        }
        assert_eq!(names, ENTRIES.len() + 2);
    }

    #[test]
    fn null_is_the_character_device_that_programs_expect() {
        let mut devices = devices(memory());
        let node = devices.lookup(ROOT, b"null").unwrap();
        let attributes = devices.attributes(node).unwrap();
        assert_eq!((attributes.mode, attributes.device), (S_IFCHR | 0o666, 0x103));
    }

    #[test]
    fn a_folder_for_mounting_on_is_empty() {
        let mut devices = devices(memory());
        let shm = devices.lookup(ROOT, b"shm").unwrap();
        assert_eq!(devices.attributes(shm).unwrap().mode, S_IFDIR | 0o755);
        assert_eq!((devices.lookup(shm, b"."), devices.lookup(shm, b"..")), (Ok(shm), Ok(ROOT)));
        assert_eq!(devices.lookup(shm, b"null"), Err(Errno::ENOENT));
        let mut listing = Listing(Vec::new(), usize::MAX);
        devices.read_dir(shm, 0, &mut listing).unwrap();
        assert_eq!(listing.0.len(), 2);
    }

    #[test]
    fn changing_the_mode_keeps_the_kind() {
        let mut devices = devices(memory());
        let node = devices.lookup(ROOT, b"console").unwrap();
        devices.set_mode(node, 0o622).unwrap();
        devices.set_owner(node, Some(7), None).unwrap();
        let attributes = devices.attributes(node).unwrap();
        assert_eq!((attributes.mode, attributes.uid, attributes.gid), (S_IFCHR | 0o622, 7, 0));
    }

    #[test]
    fn a_successor_finds_modes_owners_and_times() {
        let memory = memory();
        let mut first = devices(memory);
        let node = first.lookup(ROOT, b"console").unwrap();
        first.set_mode(node, 0o622).unwrap();
        first.set_owner(node, Some(7), Some(8)).unwrap();
        let before = first.attributes(node).unwrap();
        drop(first);
        let later = Timestamp { seconds: 1000, nanos: 5 };
        let mut second = Devices::new(Keep::simulated(memory, u64::MAX), later);
        assert_eq!(second.attributes(node).unwrap(), before);
        assert_eq!(second.attributes(node + 1).unwrap().uid, 0);
    }

    #[test]
    fn nodes_that_never_were_are_stale() {
        let mut devices = devices(memory());
        for node in [0, 1000, u64::MAX] {
            assert_eq!(devices.attributes(node), Err(Errno::ESTALE));
            assert_eq!(devices.set_mode(node, 0), Err(Errno::ESTALE));
        }
    }
}
