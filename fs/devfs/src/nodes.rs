//! The tree of /dev: a node for each device that the system file declares, its links, and a few entries that every system has.
//!
//! Nodes are numbered by their place in the tree plus 1 (1 is the root). The table of devices comes with the arguments, which are the
//! same for every incarnation, so a number means the same to the successor. Mode and owner can be changed; they and the times outlive
//! this process (`kept`).

use crate::kept::{Kept, Owner};
use abi::device::{Device, Kind};
use alloc::vec::Vec;
use fs::Errno;
use fs::file_system::{
    Attributes, DataSink, EntrySink, FileSystem, NodeId, S_IFBLK, S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, Statistics,
    Timestamp,
};
use sys::keep::Keep;

/// The directory itself.
const ROOT: NodeId = 1;
const ROOT_MODE: u32 = S_IFDIR | 0o755;
/// Magic number that statfs(2) reports for a tmpfs, which is what Linux's devtmpfs answers too.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// An entry of the directory, or of a folder in it: then its name has the folder's before it, and a slash.
struct Entry {
    name: &'static str,
    content: Content,
}

impl Entry {
    /// The folder that it is in; `""`: the directory itself.
    fn folder(&self) -> &'static str {
        self.name.split_once('/').map_or("", |(folder, _)| folder)
    }

    /// Its name in the folder.
    fn own_name(&self) -> &'static str {
        self.name.split_once('/').map_or(self.name, |(_, name)| name)
    }
}

enum Content {
    Device(Device<'static>),
    /// Symbolic link to a path.
    Link(&'static str),
    /// Directory: empty, for mounting on, or with the devices whose names begin with its own.
    Folder,
}
use Content::{Folder, Link};

/// What /dev has in every system.
const FIXED: [Entry; 6] = [
    Entry { name: "fd", content: Link("/proc/self/fd") },
    Entry { name: "stdin", content: Link("/proc/self/fd/0") },
    Entry { name: "stdout", content: Link("/proc/self/fd/1") },
    Entry { name: "stderr", content: Link("/proc/self/fd/2") },
    Entry { name: "shm", content: Folder },
    Entry { name: "pts", content: Folder },
];

/// The entries of a device: its node, and its links.
fn entries_of(device: Device<'static>) -> impl Iterator<Item = Entry> {
    let links = device.links().map(move |name| Entry { name, content: Link(device.name) });
    core::iter::once(Entry { name: device.name, content: Content::Device(device) }).chain(links)
}

/// The file system.
pub struct Devices {
    entries: Vec<Entry>,
    owners: Vec<Owner>,
    /// When the system's first devfs began: the nodes' times.
    began: Timestamp,
    kept: Kept,
}

impl Devices {
    /// /dev of the devices in `arguments`, as a predecessor has left it in `keep`, or as it is at boot, which is `now`.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new(arguments: &'static str, keep: Keep, now: Timestamp) -> Self {
        let mut entries: Vec<Entry> = Device::table(arguments).flat_map(entries_of).chain(FIXED).collect();
        for index in 0..entries.len() {
            let name = entries[index].folder();
            if !name.is_empty() && !entries.iter().any(|entry| entry.name == name) {
                entries.push(Entry { name, content: Folder });
            }
        }
        let modes = core::iter::once(ROOT_MODE).chain(entries.iter().map(|entry| entry.content.mode()));
        let kept = Kept::open(keep, 1 + entries.len());
        let owner = |(index, mode)| kept.owner(index).unwrap_or(Owner { mode, uid: 0, gid: 0 });
        Devices { owners: modes.enumerate().map(owner).collect(), began: kept.began(now), entries, kept }
    }

    /// The content of a node; `None` for the root and for nodes that do not exist.
    fn content(&self, node: NodeId) -> Option<&Content> {
        self.entries.get(node.checked_sub(ROOT + 1)? as usize).map(|entry| &entry.content)
    }

    fn is_directory(&self, node: NodeId) -> bool {
        node == ROOT || matches!(self.content(node), Some(Folder))
    }

    /// The entries of a directory with their nodes.
    fn numbered(&self, dir: NodeId) -> impl Iterator<Item = (&Entry, NodeId)> {
        let folder = dir.checked_sub(ROOT + 1).and_then(|index| self.entries.get(index as usize));
        let folder = folder.map_or("", |folder| folder.name);
        self.entries.iter().zip(ROOT + 1..).filter(move |(entry, _)| entry.folder() == folder)
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

    fn is_fixed(&self) -> bool {
        true
    }

    fn root(&self) -> NodeId {
        ROOT
    }

    fn attributes(&mut self, node: NodeId) -> Result<Attributes, Errno> {
        let owner = self.owner(node)?;
        let (device, size) = match self.content(node) {
            Some(Content::Device(device)) => (device.number(), 0),
            Some(Link(target)) => (0, target.len() as u64),
            Some(Folder) | None => (0, 0),
        };
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
        if !self.is_directory(dir) {
            return Err(Errno::ENOTDIR);
        }
        if name == b".." || name == b"." && dir == ROOT {
            return Ok(ROOT);
        }
        if name == b"." {
            return Ok(dir);
        }
        let found = self.numbered(dir).find(|(entry, _)| entry.own_name().as_bytes() == name);
        found.map(|(_, node)| node).ok_or(Errno::ENOENT)
    }

    fn read(&mut self, node: NodeId, _: u64, _: usize, _: &mut dyn DataSink) -> Result<usize, Errno> {
        // Devices are read from their drivers, not from here.
        Err(if self.is_directory(node) { Errno::EISDIR } else { Errno::EINVAL })
    }

    fn read_dir(&mut self, dir: NodeId, position: u64, sink: &mut dyn EntrySink) -> Result<u64, Errno> {
        if !self.is_directory(dir) {
            return Err(Errno::ENOTDIR);
        }
        let dots = [(".", dir, S_IFDIR), ("..", ROOT, S_IFDIR)];
        let entries = self.numbered(dir).map(|(entry, node)| (entry.own_name(), node, entry.content.mode() & S_IFMT));
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
        let Some(Link(text)) = self.content(node) else { return Err(Errno::EINVAL) };
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

impl Content {
    fn mode(&self) -> u32 {
        match self {
            Content::Device(device) if device.kind == Kind::Block => S_IFBLK | u32::from(device.mode),
            Content::Device(device) => S_IFCHR | u32::from(device.mode),
            Link(_) => S_IFLNK | 0o777,
            Folder => S_IFDIR | 0o755,
        }
    }
}

#[cfg(test)]
mod tests {
    //! The tree as vfs walks it.
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::string::String;

    const TABLE: &str = "dev:null=char,1,3,666,vfs dev:console=char,5,1,600,tty dev:rtc0=char,10,135,600,rtc,rtc \
                         dev:hdb=block,3,64,660,ata";
    /// 4 devices, 1 link.
    const NAMES: usize = 5 + FIXED.len();

    fn memory() -> &'static [AtomicU64] {
        Vec::leak((0..crate::kept::BYTES / 8).map(|word| AtomicU64::new(word as u64 * 77)).collect())
    }

    fn devices(memory: &'static [AtomicU64]) -> Devices {
        Devices::new(TABLE, Keep::simulated(memory, u64::MAX), Timestamp::default())
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
        assert_eq!(listing.0.len(), NAMES + 2);
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
        assert_eq!(names, NAMES + 2);
    }

    #[test]
    fn a_node_has_kind_mode_and_number_of_its_declaration() {
        let mut devices = devices(memory());
        let mut shown = |name: &[u8]| {
            let node = devices.lookup(ROOT, name).unwrap();
            let attributes = devices.attributes(node).unwrap();
            (attributes.mode, attributes.device)
        };
        assert_eq!(shown(b"null"), (S_IFCHR | 0o666, 0x103));
        assert_eq!(shown(b"hdb"), (S_IFBLK | 0o660, 0x340));
    }

    #[test]
    fn a_link_of_a_device_leads_to_its_node() {
        let mut devices = devices(memory());
        let link = devices.lookup(ROOT, b"rtc").unwrap();
        let mut target = [0; 10];
        assert_eq!(devices.read_link(link, &mut target), Ok(4));
        assert_eq!(&target[..4], b"rtc0");
    }

    #[test]
    fn the_preserved_memory_has_room_for_the_largest_table() {
        let device = |index| std::format!("dev:d{index}=char,60,{index},666,d ");
        let table: String = (0..abi::device::MAX_NAMES).map(device).collect();
        let mut devices = Devices::new(table.leak(), Keep::simulated(memory(), u64::MAX), Timestamp::default());
        assert!(devices.lookup(ROOT, b"d127").is_ok());
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
    fn a_device_with_a_folder_in_its_name_is_in_that_folder() {
        let table = "dev:input/mice=char,13,63,660,input dev:input/event0=char,13,64,660,input,input/first";
        let mut devices = Devices::new(table, Keep::simulated(memory(), u64::MAX), Timestamp::default());
        let folder = devices.lookup(ROOT, b"input").unwrap();
        assert_eq!(devices.attributes(folder).unwrap().mode & S_IFMT, S_IFDIR);
        let mut listing = Listing(Vec::new(), usize::MAX);
        devices.read_dir(folder, 0, &mut listing).unwrap();
        let names: Vec<&str> = listing.0.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, [".", "..", "mice", "event0", "first"]);
        let mice = devices.lookup(folder, b"mice").unwrap();
        assert_eq!(devices.attributes(mice).unwrap().device, 13 << 8 | 63);
        assert_eq!(devices.lookup(ROOT, b"mice"), Err(Errno::ENOENT));
        assert_eq!(devices.lookup(mice, b"mice"), Err(Errno::ENOTDIR));
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
        let mut second = Devices::new(TABLE, Keep::simulated(memory, u64::MAX), later);
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
