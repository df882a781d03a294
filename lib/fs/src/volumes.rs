//! The file systems that one process has mounted, and the nodes that vfs knows of them.
//!
//! The protocol names files by node alone. So the upper bits of a node as vfs sees it are the volume, and
//! the lower bits are the file system's own node number.

use alloc::vec::Vec;

use abi::fs::{INODE_BITS, inode_of};
use abi::{Endpoint, Errno};

use crate::device::Source;
use crate::file_system::{FileSystem, NodeId};
use crate::preserve::mounts::{MountPlace, MountRecord};

/// Limit of volumes for a process whose preserved memory does not set one.
pub const MAX_VOLUMES: usize = 64;

/// A mounted file system.
pub struct Volume<F> {
    /// The file system.
    pub file_system: F,
    /// What it is mounted from.
    pub source: Source,
    /// The incarnation of vfs that mounted it.
    pub owner: Endpoint,
    /// Whether it was mounted read-only.
    pub read_only: bool,
    /// Whether the reply to the mount is still outstanding.
    pub incomplete: bool,
    /// The record for a successor; `None` for a process without preserved memory.
    pub place: Option<MountPlace>,
}

impl<F: FileSystem> Volume<F> {
    /// Updates the record for a successor, as part of the open transaction.
    pub fn record(&mut self) {
        let record = MountRecord {
            source: self.source,
            read_only: self.read_only,
            owner: self.owner,
            incomplete: self.incomplete,
            memo: self.file_system.memo(),
        };
        if let Some(place) = &mut self.place {
            place.set(Some(record));
        }
    }
}

/// All mounted file systems.
pub struct Volumes<F> {
    list: Vec<Option<Volume<F>>>,
}

impl<F: FileSystem> Volumes<F> {
    /// Returns an empty table.
    pub fn new() -> Self {
        Volumes { list: Vec::new() }
    }

    /// Returns a free volume number below `limit`. `ENFILE` if there is none.
    pub fn free_number(&self, limit: usize) -> Result<usize, Errno> {
        let number = self.list.iter().position(Option::is_none).unwrap_or(self.list.len());
        if number < limit.min(MAX_VOLUMES) { Ok(number) } else { Err(Errno::ENFILE) }
    }

    /// Adds a volume under a free number.
    #[expect(clippy::disallowed_methods, reason = "`MAX_VOLUMES`: from the heap's reserve")]
    pub fn put(&mut self, number: usize, volume: Volume<F>) {
        while self.list.len() <= number {
            self.list.push(None);
        }
        self.list[number] = Some(volume);
    }

    /// Returns the number of the volume mounted from `source`.
    pub fn mounted_from(&self, source: Source) -> Option<usize> {
        self.list.iter().position(|volume| volume.as_ref().is_some_and(|volume| volume.source == source))
    }

    /// The volume with this number.
    pub fn get(&mut self, number: usize) -> Option<&mut Volume<F>> {
        self.list.get_mut(number)?.as_mut()
    }

    /// Removes a volume, and its record as part of the open transaction.
    pub fn remove(&mut self, number: usize) {
        if let Some(volume) = self.list.get_mut(number)
            && let Some(mut volume) = volume.take()
            && let Some(place) = &mut volume.place
        {
            place.set(None);
        }
    }

    /// Returns the file system that a node of vfs belongs to, and its own number of the node. `ESTALE` if the
    /// volume is not mounted.
    pub fn find(&mut self, node: u64) -> Result<(&mut F, NodeId), Errno> {
        let volume = self.get(volume_of(node)).ok_or(Errno::ESTALE)?;
        Ok((&mut volume.file_system, number_of(node)))
    }

    /// As `find` for two nodes, which must be of one volume: `EXDEV`.
    pub fn find_two(&mut self, first: u64, second: u64) -> Result<(&mut F, NodeId, NodeId), Errno> {
        if volume_of(first) != volume_of(second) {
            return Err(Errno::EXDEV);
        }
        let (file_system, node) = self.find(first)?;
        Ok((file_system, node, number_of(second)))
    }

    /// All volumes.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Volume<F>> {
        self.list.iter_mut().flatten()
    }

    /// All file systems.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut F> {
        self.list.iter_mut().flatten().map(|volume| &mut volume.file_system)
    }
}

impl<F: FileSystem> Default for Volumes<F> {
    fn default() -> Self {
        Self::new()
    }
}

/// The file system's own number of a node of vfs.
pub fn number_of(node: u64) -> NodeId {
    inode_of(node)
}

/// The volume that a node of vfs belongs to.
pub fn volume_of(node: u64) -> usize {
    abi::fs::volume_of(node) as usize
}

/// The node as vfs sees it.
pub fn node_of(volume: usize, node: NodeId) -> u64 {
    (volume as u64) << INODE_BITS | node
}
