//! The cache of vfs (`memory::cache`): its place in vfs's addresses, and memory for its pages.

use crate::memory::frames::{Frame, Run};
use crate::memory::kernel::Kernel;
use crate::memory::object::ObjectId;
use crate::memory::pages::{LEAF_HEAP_BYTES, LEAF_PAGES};
use crate::memory::{Floor, Memory};
use crate::operations::devices::DEVICES_END;
use crate::space::AddressSpace;
use crate::space::region::{Backing, Region, Rights};
use abi::{
    Errno,
    layout::{PAGE_BYTES, SERVICE_DEVICES, map},
    vm::CACHE_BATCH,
};
use core::ops::Range;

/// Pages of the cache, and where it begins in vfs's addresses.
#[derive(Clone)]
struct Window {
    id: ObjectId,
    start: u64,
    pages: Range<u64>,
}

impl AddressSpace {
    /// `CacheOpen`. Returns the address.
    pub fn open_cache<K: Kernel>(&mut self, memory: &mut Memory<K>, pages: u64) -> Result<u64, Errno> {
        if memory.objects.cache().is_some() {
            return Err(Errno::EEXIST);
        }
        let bytes = pages.checked_mul(PAGE_BYTES).filter(|&bytes| bytes > 0).ok_or(Errno::EINVAL)?;
        let start = self.regions.free_above(SERVICE_DEVICES, DEVICES_END, bytes).ok_or(Errno::ENOMEM)?;
        memory.ensure_request_heap()?;
        let cache = memory.objects.add_cache(self.id, start);
        let rights = Rights::READ.with(Rights::WRITE, true);
        let backing = Backing::Object(cache, 0);
        self.add(memory, Region { shared: true, backing, ..Region::anonymous(start, start + bytes, rights) });
        // The region keeps it from here on.
        memory.objects.close(&mut memory.frames, cache)?;
        Ok(start)
    }

    /// `CacheTake`.
    pub fn take_cached<K: Kernel>(&mut self, memory: &mut Memory<K>, first: u64, pages: u64) -> Result<(), Errno> {
        let window = self.cache_window(memory, first, pages)?;
        let Window { id, pages: Range { start: first, end }, .. } = window.clone();
        memory.check_plenty(pages)?;
        for page in first..end {
            let shown = memory.objects.get(id).and_then(|cache| cache.pages.frame(page));
            if shown.is_some_and(|frame| memory.frames.users(frame) > 1) {
                self.take_out(memory, &window, page)?;
            }
        }
        let mut page = first;
        while let Some((start, absent)) = memory.objects.get(id).and_then(|cache| cache.pages.absent(page, end)) {
            page = start + self.own_cached(memory, id, window.start / PAGE_BYTES, start, absent)?;
        }
        Ok(())
    }

    /// `SharedShow`. Returns which of the pages are shown now, and which are zeros that nobody has made.
    pub fn show_shared<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        (object, offset): (ObjectId, u64),
        first: u64,
        pages: u64,
    ) -> Result<(u64, u64), Errno> {
        let window = self.cache_window(memory, first, pages)?;
        let is_whole = offset.is_multiple_of(PAGE_BYTES) && offset.checked_add(pages * PAGE_BYTES).is_some();
        let (mut shown, mut zeros) = (0, 0);
        for (bit, page) in window.pages.clone().enumerate() {
            let file = memory.objects.get(object).filter(|file| is_whole && file.content.is_shared_file());
            let file = file.ok_or(Errno::EINVAL)?;
            let index = offset / PAGE_BYTES + bit as u64;
            if let Some(frame) = file.pages.frame(index) {
                self.show_frame(memory, &window, page, frame)?;
                shown |= 1 << bit;
            } else if file.content.is_zeros(index) {
                zeros |= 1 << bit;
            }
        }
        Ok((shown, zeros))
    }

    /// These pages of the cache, with heap for what is to become of them. `EINVAL`: they are not within it, or too many.
    fn cache_window<K: Kernel>(&self, memory: &mut Memory<K>, first: u64, pages: u64) -> Result<Window, Errno> {
        let id = memory.objects.cache().ok_or(Errno::EINVAL)?;
        let end = first.checked_add(pages).filter(|_| pages <= CACHE_BATCH).ok_or(Errno::EINVAL)?;
        let region = self.regions.iter().find(|region| region.backing == Backing::Object(id, 0));
        let start = region.filter(|region| end <= region.pages()).ok_or(Errno::EINVAL)?.start;
        let growth_bytes = memory.objects.get(id).map_or(0, |cache| cache.pages.growth_bytes());
        memory.ensure_heap(growth_bytes + self.pages.growth_bytes() + 4 * LEAF_HEAP_BYTES)?;
        Ok(Window { id, start, pages: first..end })
    }

    /// Takes a page out of the cache: if nobody else has its frame, that is free.
    fn take_out<K: Kernel>(&mut self, memory: &mut Memory<K>, window: &Window, page: u64) -> Result<(), Errno> {
        if let Some(cache) = memory.objects.get_mut(window.id).filter(|cache| cache.pages.frame(page).is_some()) {
            memory.kernel.unmap(self.id, window.start + page * PAGE_BYTES, 1)?;
            cache.pages.release(page, page + 1, &mut memory.frames);
        }
        Ok(())
    }

    /// Puts a frame that a shared file has into the cache, in place of what is there.
    fn show_frame<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        window: &Window,
        page: u64,
        frame: Frame,
    ) -> Result<(), Errno> {
        self.take_out(memory, window, page)?;
        let at = window.start / PAGE_BYTES + page;
        self.map_run(memory, at, Run { first: frame, frames: 1 }, map::WRITE)?;
        self.pages.borrow(at, 1, &mut memory.frames);
        memory.frames.share(frame);
        if let Some(cache) = memory.objects.get_mut(window.id) {
            cache.pages.own(page, frame, &mut memory.frames);
        }
        Ok(())
    }

    /// Makes the first of these pages present, all of which are absent. Returns how many.
    fn own_cached<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        id: ObjectId,
        window: u64,
        page: u64,
        absent: u64,
    ) -> Result<u64, Errno> {
        let at = window + page;
        let within_leaf = absent.min(LEAF_PAGES - at % LEAF_PAGES);
        let run = memory.take_some(within_leaf, Floor::SERVICE)?;
        self.map_run(memory, at, run, map::WRITE).inspect_err(|_| memory.release_run(run))?;
        self.pages.borrow(at, run.frames, &mut memory.frames);
        if let Some(cache) = memory.objects.get_mut(id) {
            cache.pages.own_run(page, run, &mut memory.frames);
        }
        Ok(run.frames)
    }
}
