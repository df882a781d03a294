//! The cache of vfs: pages at fixed addresses of vfs, which alone knows what is in them. Images and shared files may have the same frames (`images::show`, `SharedShow`).
//!
//! vm gives pages out as long as plenty of memory is free, and takes them back when memory is short, without asking and before it drops
//! images. vfs never touches them itself: a copy by the kernel from a page that is gone fails, and vfs has forgotten that page then.
//!
//! Invariant: a page that the kernel maps is one of the object's. So a page is unmapped before its frame is freed. Neighbour:
//! `operations::cache`, which makes pages present.

use crate::memory::Memory;
use crate::memory::frames::Frames;
use crate::memory::kernel::Kernel;
use crate::memory::object::{Content, Object};
use crate::memory::pages::LEAF_PAGES;
use abi::{Errno, layout::PAGE_BYTES};

/// So much of all memory stays free: beyond it the cache does not grow.
const FREE_SHARE: usize = 8;

impl Object {
    /// Pages whose frames nobody else uses: of the cache, those that no image or shared file has.
    pub(super) fn pages_alone(&self, frames: &Frames) -> u64 {
        self.pages.owned().filter(|&(_, frame)| frames.users(frame) == 1).count() as u64
    }
}

impl<K: Kernel> Memory<K> {
    /// Frees the first pages of the cache, at most as many as a leaf has. False: it has none.
    pub(super) fn drop_cached(&mut self) -> Result<bool, Errno> {
        let Some(id) = self.objects.cache() else { return Ok(false) };
        let Some(cache) = self.objects.get_mut(id) else { return Ok(false) };
        let Content::Cache { space, address } = cache.content else { return Ok(false) };
        let Some((first, stop)) = cache.pages.stretch(0, u64::MAX) else { return Ok(false) };
        let end = stop.min(first + LEAF_PAGES);
        self.kernel.unmap(space, address + first * PAGE_BYTES, end - first)?;
        cache.pages.release(first, end, &mut self.frames);
        Ok(true)
    }

    /// `ENOMEM` unless so many frames more leave plenty of free memory.
    pub fn check_plenty(&self, frames: u64) -> Result<(), Errno> {
        let left = (self.frames.free() as u64).checked_sub(frames);
        let is_plenty = left.is_some_and(|left| left >= (self.frames.total() / FREE_SHARE) as u64);
        if is_plenty { Ok(()) } else { Err(Errno::ENOMEM) }
    }
}
