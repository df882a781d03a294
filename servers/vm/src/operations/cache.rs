//! The cache of vfs (`memory::cache`): its place in vfs's addresses, and memory for its pages.

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
        let id = memory.objects.cache().ok_or(Errno::EINVAL)?;
        let end = first.checked_add(pages).filter(|_| pages <= CACHE_BATCH).ok_or(Errno::EINVAL)?;
        let region = self.regions.iter().find(|region| region.backing == Backing::Object(id, 0));
        let region = *region.filter(|region| end <= region.pages()).ok_or(Errno::EINVAL)?;
        memory.check_plenty(pages)?;
        let growth_bytes = memory.objects.get(id).map_or(0, |cache| cache.pages.growth_bytes());
        memory.ensure_heap(growth_bytes + self.pages.growth_bytes() + 4 * LEAF_HEAP_BYTES)?;
        self.replace_shown(memory, id, region.start, first..end)?;
        let mut page = first;
        while let Some((start, absent)) = memory.objects.get(id).and_then(|cache| cache.pages.absent(page, end)) {
            page = start + self.own_cached(memory, id, region.first_page(), start, absent)?;
        }
        Ok(())
    }

    /// Takes the pages that images show, too, out of the cache, whose first page is at `window`.
    fn replace_shown<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        id: ObjectId,
        window: u64,
        pages: Range<u64>,
    ) -> Result<(), Errno> {
        for page in pages {
            let Some(cache) = memory.objects.get_mut(id) else { return Ok(()) };
            let is_shown = cache.pages.frame(page).is_some_and(|frame| memory.frames.users(frame) > 1);
            if is_shown {
                memory.kernel.unmap(self.id, window + page * PAGE_BYTES, 1)?;
                cache.pages.release(page, page + 1, &mut memory.frames);
            }
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
