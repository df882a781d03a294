//! What a program writes on its way to a file system, in pages of the cache, where it stays.
//!
//! The file system copies from these pages, and not from the program's memory: what it has got is what is known afterwards, whatever the program does with its
//! memory meanwhile. Should vm take the pages back before that, the write fails with `EFAULT`, and is made again without them.

use super::{Key, Memory, PageCache};
use crate::{
    files::{known::Change, vnode::NodeRef},
    memory::buffer::Piece,
};
use abi::{Endpoint, Errno, GrantId, layout::PAGE_BYTES, vm::CACHE_BATCH};
use alloc::rc::Rc;
use core::ops::Range;
use sys::grant::{Access, RangeGrant};

/// At most so many bytes go through the cache with one request.
pub const STAGED_BYTES: u64 = CACHE_BATCH * PAGE_BYTES;

/// See the head of the file. Dropping it forgets them.
pub struct Staged {
    cache: Rc<PageCache>,
    slots: Range<usize>,
    first: Key,
    bytes: u64,
    grant: RangeGrant,
    /// The file as the write began: see [`Change::alone`].
    version: u64,
}

impl PageCache {
    /// Whether whole pages that are written to a file are to be kept: they would have to be read from a disk. A file system in memory has them at hand.
    pub fn keeps_written(&self, node: &NodeRef) -> bool {
        self.memory.is_some() && !node.mount().is_volatile() && !node.mount().is_in_memory()
    }

    /// Whether so many bytes that are written at `position` are to be kept, some of them at least: whole pages, or all of a small file.
    pub fn may_stage(&self, node: &NodeRef, position: u64, bytes: u64) -> bool {
        let ends_file = position.saturating_add(bytes) >= node.size();
        let is_worth = position.is_multiple_of(PAGE_BYTES) && (bytes >= PAGE_BYTES || position == 0 && ends_file);
        is_worth && self.keeps_written(node)
    }

    /// Copies what a program writes within a change from `position` on, the first of it at least, and lets the file system have it. `None`: it is
    /// not to be kept, or cannot be now.
    pub fn stage(
        self: &Rc<Self>,
        (node, position): (&NodeRef, u64),
        (owner, piece): (Endpoint, Piece),
        change: &Change<1>,
    ) -> Option<Staged> {
        self.stage_by((node, position), piece.bytes, change, |memory, to| {
            let bytes = to.end - to.start;
            memory.pages.copy_from(to.start, owner, piece.address, bytes).map(|()| bytes)
        })
    }

    /// As [`PageCache::stage`], what is known of another file, as of now, from a position of it on.
    pub fn stage_copy(
        self: &Rc<Self>,
        (node, position): (&NodeRef, u64),
        (source, from): (&NodeRef, u64),
        bytes: u64,
        change: &Change<1>,
    ) -> Option<Staged> {
        let (content, _) = self.known(source)?;
        self.stage_by((node, position), bytes, change, |memory, to| memory.copy_within(content, from, to))
    }

    /// `fill` is given a range of the cache, and returns how many bytes of it it has filled.
    fn stage_by(
        self: &Rc<Self>,
        (node, position): (&NodeRef, u64),
        bytes: u64,
        change: &Change<1>,
        fill: impl FnOnce(&Memory, Range<u64>) -> Result<u64, Errno>,
    ) -> Option<Staged> {
        let memory = self.memory.as_ref()?;
        let ends_file = position.checked_add(bytes)? >= node.size();
        let version = change.alone().filter(|_| self.may_stage(node, position, bytes))?;
        let first = Key { content: self.content(node), page: u32::try_from(position / PAGE_BYTES).ok()? };
        let wanted = if ends_file { bytes.div_ceil(PAGE_BYTES) } else { bytes / PAGE_BYTES };
        let filling = memory.take(wanted.min(CACHE_BATCH)).ok()?;
        let (start, pages) = (filling.slots.start as u64 * PAGE_BYTES, filling.slots.len() as u64);
        let filled = fill(memory, start..start + bytes.min(pages * PAGE_BYTES));
        if filled.is_err() {
            memory.slots.borrow_mut().retake(filling.slots.clone());
        }
        let filled = filled.ok()?;
        let bytes = if filled < bytes { filled - filled % PAGE_BYTES } else { bytes };
        let grant = memory.pages.grant(start, bytes, node.service().endpoint(), Access::Read).ok()?;
        let slots = filling.into_slots();
        let staged = Staged { cache: self.clone(), slots, first, bytes, grant, version };
        (bytes > 0).then_some(staged)
    }
}

impl Staged {
    /// How much of it there is, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the file system copies from.
    pub fn grant(&self) -> GrantId {
        self.grant.id()
    }

    /// The file system has replied how much it has written. All of it is known from now on if the file has not changed otherwise. Returns whether the write has to be
    /// made again.
    pub fn end(mut self, written: Result<u64, Errno>, change: &Change<1>) -> bool {
        let Some(memory) = &self.cache.memory else { return false };
        match written {
            Ok(bytes) if bytes == self.bytes && change.alone() == Some(self.version) => {
                let slots = core::mem::replace(&mut self.slots, 0..0);
                memory.slots.borrow_mut().keep(slots, self.first, bytes);
                false
            }
            Err(Errno::EFAULT) => {
                memory.slots.borrow_mut().set_present(self.slots.clone(), false);
                true
            }
            _ => false,
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(memory) = &self.cache.memory {
            memory.slots.borrow_mut().give_back(self.slots.clone());
        }
    }
}
