//! Inodes: records of two lines.
//!
//! ```text
//! first    mode, links | owner, group | size | accessed | modified | changed | uses, first entry | generation, next free inode
//! second   pages of content, page of attributes | 14 pointers to pages (`map`), or the target of a short symbolic link,
//!          or a device number, or a directory's parent with its generation
//! ```
//! The size of a directory is the number of its names. Times are nanoseconds since 1970. An inode of mode 0 is free.
//!
//! A free inode keeps its generation.

use core::ops::Range;

use fs::Errno;
use fs::file_system::{Attributes, S_IFBLK, S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, Statistics};
use fs::linux::timestamp;

use crate::memory::{LINE, Memory, pair};
use crate::pages;
use crate::plan::PAGE;

/// The inode of the root directory.
pub const ROOT: u32 = 1;
/// Pointers of an inode.
pub const POINTERS: usize = 14;
/// Bytes of the longest symbolic link that is in its inode.
pub const SHORT_TARGET: usize = POINTERS * size_of::<u32>();

const MODE: usize = 0;
const LINKS: usize = 4;
const UID: usize = 8;
const GID: usize = 12;
const SIZE: usize = 16;
const ACCESSED: usize = 24;
const MODIFIED: usize = 32;
const CHANGED: usize = 40;
const USES: usize = 48;
const FIRST_ENTRY: usize = 52;
const GENERATION: usize = 56;
const NEXT_FREE: usize = 60;
const PAGES: usize = 64;
const ATTRIBUTES: usize = 68;
const POINTER: usize = 72;

/// The fields of the head (`pages`) about inodes.
const FREE_INODES: usize = 96;
const FRESH_INODE: usize = 100;
/// Names and inodes that may still be made: each name counts, and each inode without one.
const ROOM: usize = 112;

/// Bytes by which a directory grows for each name, as on Linux.
const NAME_SIZE: u64 = 20;

/// An inode in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    number: u32,
    place: usize,
}

/// Makes all inodes free, of a memory of zeros.
pub fn format(memory: &mut Memory) {
    let inodes = memory.places().plan().inodes();
    memory.put_half(FRESH_INODE, ROOT);
    memory.put_half(ROOM, inodes as u32);
}

/// Fills in the figures of `statfs` about inodes.
pub fn count(memory: &Memory, statistics: &mut Statistics) {
    statistics.nodes = memory.places().plan().inodes() as u64;
    statistics.nodes_free = memory.half(ROOM).into();
}

/// Returns the error of a name or an inode that is one too many.
#[inline]
pub fn require_room(memory: &Memory) -> Result<(), Errno> {
    if memory.half(ROOM) > 0 { Ok(()) } else { Err(Errno::ENOSPC) }
}

/// Notes that there are more names and inodes, by `change`.
#[inline]
pub fn count_room(memory: &mut Memory, change: i32) {
    pages::save_head(memory);
    memory.put_half(ROOM, memory.half(ROOM).wrapping_add_signed(-change));
}

impl Inode {
    /// Returns the inode of this number. `ESTALE` if it is free.
    #[inline]
    pub fn open(memory: &Memory, number: u64) -> Result<Inode, Errno> {
        let is_known = number > 0 && number < memory.half(FRESH_INODE).into();
        let inode = Inode::named(memory, number as u32);
        if is_known && inode.mode(memory) != 0 { Ok(inode) } else { Err(Errno::ESTALE) }
    }

    /// Returns the inode of this number, to which an entry or a parent refers.
    #[inline]
    pub fn named(memory: &Memory, number: u32) -> Inode {
        Inode { number, place: memory.places().inode(number) }
    }

    /// Returns the numbers of all inodes that were ever used.
    pub fn numbers(memory: &Memory) -> Range<u32> {
        ROOT..memory.half(FRESH_INODE)
    }

    /// Returns all inodes in use.
    pub fn all(memory: &Memory) -> impl Iterator<Item = Inode> {
        Inode::numbers(memory).filter_map(|number| Inode::open(memory, number.into()).ok())
    }

    /// Takes a free inode, whose fields are all 0 but for the mode, owners, times, and a generation of its own. There is room.
    pub fn take(memory: &mut Memory, mode: u32, (uid, gid): (u32, u32), now: u64) -> Inode {
        let (top, fresh) = (memory.half(FREE_INODES), memory.half(FRESH_INODE));
        count_room(memory, 1);
        let inode = Inode::named(memory, if top == 0 { fresh } else { top });
        let place = inode.place;
        // It is free again after a roll-back.
        inode.save(memory);
        let next = memory.half(place + NEXT_FREE);
        if top == 0 {
            memory.put_half(FRESH_INODE, fresh + 1)
        } else {
            memory.put_half(FREE_INODES, next)
        }
        let generation = memory.half(place + GENERATION).wrapping_add(1);
        let words = [mode.into(), pair(uid, gid), 0, now, now, now, 0, pair(generation, next)];
        memory.put_line(place, words);
        memory.put_line(place + LINE, [0; LINE / 8]);
        inode
    }

    /// Frees the inode, to which nothing refers, and which has no pages.
    pub fn free(self, memory: &mut Memory) {
        self.save(memory);
        memory.put_half(self.place + MODE, 0);
        count_room(memory, -1);
        memory.put_half(self.place + NEXT_FREE, memory.half(FREE_INODES));
        memory.put_half(FREE_INODES, self.number);
    }

    /// Saves the first line: before the setters, except in the transaction that has taken the inode.
    #[inline]
    pub fn save(self, memory: &Memory) {
        memory.save_line(self.place);
    }

    /// Saves the second line.
    #[inline]
    pub fn save_pointers(self, memory: &Memory) {
        memory.save_line(self.place + LINE);
    }

    /// Returns the number.
    #[inline]
    pub fn number(self) -> u32 {
        self.number
    }

    /// Returns kind and permissions.
    #[inline]
    pub fn mode(self, memory: &Memory) -> u32 {
        memory.half(self.place + MODE)
    }

    /// Whether it is a directory.
    #[inline]
    pub fn is_directory(self, memory: &Memory) -> bool {
        self.mode(memory) & S_IFMT == S_IFDIR
    }

    /// `EISDIR` for a directory, `EINVAL` for anything else without content.
    pub fn require_regular(self, memory: &Memory) -> Result<(), Errno> {
        match self.mode(memory) & S_IFMT {
            S_IFREG => Ok(()),
            S_IFDIR => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Changes the mode.
    pub fn set_mode(self, memory: &mut Memory, mode: u32) {
        memory.put_half(self.place + MODE, mode);
    }

    /// Returns the number of names; of a directory, 2 and one for each in it.
    #[inline]
    pub fn links(self, memory: &Memory) -> u32 {
        memory.half(self.place + LINKS)
    }

    /// Changes the number of names.
    pub fn set_links(self, memory: &mut Memory, links: u32) {
        memory.put_half(self.place + LINKS, links);
    }

    /// Returns owner and group.
    pub fn owners(self, memory: &Memory) -> (u32, u32) {
        (memory.half(self.place + UID), memory.half(self.place + GID))
    }

    /// Changes owner and group.
    pub fn set_owners(self, memory: &mut Memory, (uid, gid): (u32, u32)) {
        memory.put(self.place + UID, pair(uid, gid));
    }

    /// Returns the bytes of a file or target, or the names of a directory.
    #[inline]
    pub fn size(self, memory: &Memory) -> u64 {
        memory.word(self.place + SIZE)
    }

    /// Changes the size.
    pub fn set_size(self, memory: &mut Memory, size: u64) {
        memory.put(self.place + SIZE, size);
    }

    /// Returns the time of last access, and of the last change of content or inode.
    pub fn access_times(self, memory: &Memory) -> (u64, u64) {
        let time = |field| memory.word(self.place + field);
        (time(ACCESSED), time(MODIFIED).max(time(CHANGED)))
    }

    /// Changes the time of last access.
    pub fn set_accessed(self, memory: &mut Memory, ns: u64) {
        memory.put(self.place + ACCESSED, ns);
    }

    /// Changes the time of modification.
    pub fn set_modified(self, memory: &mut Memory, ns: u64) {
        memory.put(self.place + MODIFIED, ns);
    }

    /// Changes the time of change.
    pub fn set_changed(self, memory: &mut Memory, ns: u64) {
        memory.put(self.place + CHANGED, ns);
    }

    /// Sets the times of a change of the content.
    pub fn touch(self, memory: &mut Memory, ns: u64) {
        self.set_modified(memory, ns);
        self.set_changed(memory, ns);
    }

    /// Returns the number of users.
    #[inline]
    pub fn uses(self, memory: &Memory) -> u32 {
        memory.half(self.place + USES)
    }

    /// Changes the number of users.
    pub fn set_uses(self, memory: &mut Memory, uses: u32) {
        memory.put_half(self.place + USES, uses);
    }

    /// Returns the latest entry of a directory, or 0.
    #[inline]
    pub fn first_entry(self, memory: &Memory) -> u32 {
        memory.half(self.place + FIRST_ENTRY)
    }

    /// Changes the latest entry of a directory.
    pub fn set_first_entry(self, memory: &mut Memory, entry: u32) {
        memory.put_half(self.place + FIRST_ENTRY, entry);
    }

    /// Returns what no other inode of this number has.
    pub fn generation(self, memory: &Memory) -> u32 {
        memory.half(self.place + GENERATION)
    }

    /// Returns the number of pages with content.
    pub fn pages(self, memory: &Memory) -> u32 {
        memory.half(self.place + PAGES)
    }

    /// Changes the number of pages with content.
    pub fn set_pages(self, memory: &mut Memory, pages: u32) {
        memory.put_half(self.place + PAGES, pages);
    }

    /// Returns the page of extended attributes, or 0.
    #[inline]
    pub fn attribute_page(self, memory: &Memory) -> u32 {
        memory.half(self.place + ATTRIBUTES)
    }

    /// Changes the page of extended attributes.
    pub fn set_attribute_page(self, memory: &mut Memory, page: u32) {
        memory.put_half(self.place + ATTRIBUTES, page);
    }

    /// Returns the place of a pointer.
    #[inline]
    pub fn pointer(self, number: usize) -> usize {
        self.place + POINTER + 4 * number
    }

    /// Changes the number of a device.
    pub fn set_device(self, memory: &mut Memory, device: u64) {
        memory.put(self.place + POINTER, device);
    }

    /// Returns the directory in which a directory is, also after it was removed, as long as that exists. `ENOENT`.
    pub fn parent(self, memory: &Memory) -> Result<Inode, Errno> {
        let (number, generation) = (memory.half(self.pointer(0)), memory.half(self.pointer(1)));
        let parent = Inode::open(memory, number.into()).map_err(|_| Errno::ENOENT)?;
        if parent.generation(memory) == generation { Ok(parent) } else { Err(Errno::ENOENT) }
    }

    /// Changes the directory in which a directory is.
    pub fn set_parent(self, memory: &mut Memory, parent: Inode) {
        memory.put(self.place + POINTER, pair(parent.number, parent.generation(memory)));
    }

    /// Returns what `stat` tells.
    pub fn attributes(self, memory: &Memory) -> Attributes {
        let mode = self.mode(memory);
        let (uid, gid) = self.owners(memory);
        let size = self.size(memory);
        let time = |field| timestamp(memory.word(self.place + field));
        let is_device = matches!(mode & S_IFMT, S_IFCHR | S_IFBLK);
        let is_long_link = mode & S_IFMT == S_IFLNK && size > SHORT_TARGET as u64;
        let pages = self.pages(memory) + u32::from(self.attribute_page(memory) != 0) + u32::from(is_long_link);
        Attributes {
            node: self.number.into(),
            mode,
            links: self.links(memory),
            uid,
            gid,
            device: if is_device { memory.word(self.place + POINTER) } else { 0 },
            size: if self.is_directory(memory) { NAME_SIZE * (2 + size) } else { size },
            block_size: PAGE as u32,
            blocks: u64::from(pages) * (PAGE as u64 / 512),
            accessed: time(ACCESSED),
            modified: time(MODIFIED),
            changed: time(CHANGED),
        }
    }
}

#[cfg(test)]
pub use looks::{free_list, room};

/// What only the tests look at.
#[cfg(test)]
mod looks {
    use super::*;

    /// Returns how many names and inodes may still be made.
    pub fn room(memory: &Memory) -> u32 {
        memory.half(ROOM)
    }

    /// Returns the free inodes that were used before.
    pub fn free_list(memory: &Memory) -> alloc::vec::Vec<u32> {
        let is_inode = |number: &u32| *number != 0;
        let next = |&number: &u32| Some(memory.half(memory.places().inode(number) + NEXT_FREE)).filter(is_inode);
        core::iter::successors(Some(memory.half(FREE_INODES)).filter(is_inode), next).collect()
    }
}
