//! mremap: a mapping becomes longer, shorter, or lies elsewhere.

use crate::memory::Memory;
use crate::memory::frames::Run;
use crate::memory::kernel::Kernel;
use crate::operations::mmap::whole_pages;
use crate::space::AddressSpace;
use crate::space::region::{Backing, MMAP_TOP, Region, Rights};
use abi::{
    Errno,
    layout::{PAGE_BYTES, USER_END, USER_START, map},
};
use sys::fallible::{self, TryVec};

const MAY_MOVE: u64 = 1;
const FIXED: u64 = 2;
const DONT_UNMAP: u64 = 4;

/// The arguments, lengths in whole pages.
#[derive(Clone, Copy)]
struct Remap {
    old: u64,
    old_bytes: u64,
    new_bytes: u64,
    flags: u64,
    new: u64,
}

impl Remap {
    fn parse(words: &[u64; 7]) -> Result<Remap, Errno> {
        let [old, old_bytes, new_bytes, flags, new, ..] = *words;
        let remap = Remap {
            old,
            old_bytes: whole_pages(old_bytes, Errno::EINVAL)?,
            new_bytes: whole_pages(new_bytes, Errno::EINVAL)?,
            flags,
            new,
        };
        let needs_move = flags & (FIXED | DONT_UNMAP) != 0 && flags & MAY_MOVE == 0;
        let keeps_length = flags & DONT_UNMAP == 0 || remap.old_bytes == remap.new_bytes;
        let bad = flags & !(MAY_MOVE | FIXED | DONT_UNMAP) != 0 || needs_move || !keeps_length;
        if bad || !old.is_multiple_of(PAGE_BYTES) || remap.new_bytes == 0 || old > USER_END - remap.old_bytes {
            return Err(Errno::EINVAL);
        }
        if flags & FIXED != 0 { remap.check_target() } else { Ok(remap) }
    }

    /// What shows a device does not grow, and is not left behind empty.
    fn check_window(&self) -> Result<(), Errno> {
        match self {
            Remap { flags, .. } if flags & DONT_UNMAP != 0 => Err(Errno::EINVAL),
            Remap { old_bytes, new_bytes, .. } if new_bytes > old_bytes => Err(Errno::EFAULT),
            _ => Ok(()),
        }
    }

    fn check_target(self) -> Result<Remap, Errno> {
        let end = self.new.checked_add(self.new_bytes).filter(|&end| end <= USER_END).ok_or(Errno::EINVAL)?;
        let overlaps = self.new < self.old + self.old_bytes && self.old < end;
        if !self.new.is_multiple_of(PAGE_BYTES) || overlaps || self.new < USER_START {
            return Err(Errno::EINVAL);
        }
        Ok(self)
    }
}

/// A file that is mapped shared shows what vfs has brought: it grows only over what is here, or behind the end of the file.
fn may_grow<K>(memory: &Memory<K>, region: &Region, end: u64) -> bool {
    let Some((id, first)) = region.object_page(region.first_page()) else { return true };
    let Some(object) = memory.objects.get(id).filter(|object| object.content.is_shared_file()) else { return true };
    let file_pages = object.content.file_bytes().unwrap_or(0).div_ceil(PAGE_BYTES);
    let end = (first + (end - region.start) / PAGE_BYTES).min(file_pages);
    let is_here = |index: u64| object.pages.frame(index).is_some() || object.content.is_zeros(index);
    (first + region.pages()..end).all(is_here)
}

impl AddressSpace {
    /// mremap. Returns the new address.
    pub fn mremap<K: Kernel>(&mut self, memory: &mut Memory<K>, words: &[u64; 7]) -> Result<u64, Errno> {
        let remap = Remap::parse(words)?;
        self.regions.check_count()?;
        let region = self.regions.find(remap.old).ok_or(Errno::EFAULT)?;
        if region.backing == Backing::Device || remap.old_bytes == 0 && !region.shared {
            return Err(Errno::EINVAL);
        }
        if remap.old + remap.old_bytes > region.end {
            return Err(Errno::EFAULT);
        }
        if region.window(memory).is_some() {
            remap.check_window()?;
        }
        if remap.new_bytes > remap.old_bytes && remap.new_bytes > memory.frames.total() as u64 * PAGE_BYTES {
            return Err(Errno::ENOMEM);
        }
        if remap.new_bytes > remap.old_bytes && !may_grow(memory, &region, remap.old + remap.new_bytes) {
            return Err(Errno::ENOMEM);
        }
        let must_move = remap.flags & (FIXED | DONT_UNMAP) != 0 || remap.old_bytes == 0;
        if !must_move && self.resize_in_place(memory, &region, &remap)? {
            return Ok(remap.old);
        }
        if remap.flags & MAY_MOVE == 0 {
            return Err(Errno::ENOMEM);
        }
        self.move_region(memory, &region, &remap)
    }

    /// Shrinks or grows the region in place. Returns false when another region is in the way.
    fn resize_in_place<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        remap: &Remap,
    ) -> Result<bool, Errno> {
        let old_end = remap.old + remap.old_bytes;
        let new_end = remap.old + remap.new_bytes;
        if new_end <= old_end {
            return self.remove(memory, new_end, old_end).map(|()| true);
        }
        let fits = old_end == region.end && new_end <= MMAP_TOP && self.regions.is_free(old_end, new_end);
        if fits {
            let longer = Region { end: new_end, ..*region };
            self.check_new(&longer.part(old_end, new_end))?;
            self.add(memory, longer.part(old_end, new_end));
        }
        Ok(fits)
    }

    /// Checks the limits for what a region that moves will have more.
    fn check_move(&self, region: &Region, remap: &Remap, new: u64) -> Result<(), Errno> {
        let kept = if remap.flags & DONT_UNMAP != 0 { 0 } else { remap.old_bytes };
        match remap.new_bytes.checked_sub(kept) {
            None | Some(0) => Ok(()),
            Some(more) => self.check_new(&Region { start: new, end: new + more, ..*region }),
        }
    }

    fn move_region<K: Kernel>(&mut self, memory: &mut Memory<K>, region: &Region, remap: &Remap) -> Result<u64, Errno> {
        let shorter = remap.old_bytes.min(remap.new_bytes);
        let (old, old_end) = (remap.old, remap.old + remap.old_bytes);
        let pages = self.pages.count_in(old / PAGE_BYTES, old_end / PAGE_BYTES) as usize;
        let mut moving = fallible::with_capacity(pages)?;
        memory.ensure_heap(self.heap_bytes())?;
        let new = match remap.flags & FIXED {
            0 => self.free_range(remap.new_bytes, self.regions.top())?,
            _ => remap.new,
        };
        self.check_move(region, remap, new)?;
        // From here on nothing needs memory: the pages are neither here nor there for a while.
        self.ensure_change(memory, old, old_end)?;
        self.remove(memory, new, new + remap.new_bytes)?;
        let moved = region.part(old, region.end);
        let moved = Region { start: new, end: new + remap.new_bytes, ..moved };
        self.hide(memory, old, old_end)?;
        let (first, end) = (old / PAGE_BYTES, (old + shorter) / PAGE_BYTES);
        self.pages.take(first, end, &mut memory.frames, |_, page, frame| moving.push_reserved((page, frame)));
        self.add(memory, moved);
        for (page, frame) in moving {
            self.pages.own(page - first + new / PAGE_BYTES, frame, &mut memory.frames);
        }
        if remap.flags & DONT_UNMAP == 0 {
            self.remove_ensured(memory, old, old_end)?;
        }
        self.show(memory, &moved);
        Ok(new)
    }

    /// Maps the owned pages of a region again, as far as that goes: faults do the rest.
    fn show<K: Kernel>(&mut self, memory: &mut Memory<K>, region: &Region) {
        if region.rights != Rights::READ_WRITE {
            return;
        }
        let mut page = region.first_page();
        while let Some((first, end)) = self.pages.stretch(page, region.end_page()) {
            page = first;
            while page < end {
                page += self.show_run(memory, page, end);
            }
        }
    }

    /// Maps the pages from `page` on whose frames are contiguous and unshared. Returns how many pages are done with: one at least.
    fn show_run<K: Kernel>(&mut self, memory: &mut Memory<K>, page: u64, end: u64) -> u64 {
        let Some(first) = self.pages.frame(page) else { return 1 };
        let is_next = |&next: &u64| self.pages.frame(next) == Some(first.plus(next - page));
        let is_sole = |&next: &u64| self.pages.is_sole(next, &memory.frames);
        let frames = (page..end).take_while(|next| is_next(next) && is_sole(next)).count() as u64;
        if frames == 0 {
            return 1;
        }
        match self.map_run(memory, page, Run { first, frames }, map::WRITE) {
            Ok(()) => frames,
            Err(_) => end - page,
        }
    }
}
