//! Page faults: what a touched page must be, and how it comes to be there.
//!
//! Errors select the signal of the faulting thread: `EFAULT` nothing mapped or no right, `ENOMEM` no frame left, `EIO` no content (behind the
//! end of a file).

use crate::memory::Memory;
use crate::memory::content::Content;
use crate::memory::frames::{Frame, Run};
use crate::memory::kernel::{Kernel, Source};
use crate::memory::pages::{LEAF_PAGES, Page};
use crate::memory::shared_pages::{make_zeros, mark_changed};
use crate::space::region::{Backing, Purpose, Region, Rights};
use crate::space::{AddressSpace, STACK_GAP};
use abi::{
    Errno,
    kernel::{ACCESS_EXECUTE, ACCESS_PRESENT, ACCESS_WRITE},
    layout::{PAGE_BYTES, map},
};

/// Pages of an image that are mapped around the one touched, at most: those of its leaf.
const AROUND_PAGES: u64 = LEAF_PAGES;
/// Neighbours of the touched page that are not behind it in memory are mapped too when this many come together.
const WORTH_A_CALL: u64 = 4;
/// Pages of zeros that are mapped at a time when a program walks through new memory, at most.
const AHEAD_PAGES: u64 = 8;

/// How memory was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    write: bool,
    execute: bool,
    /// The kernel maps the page, but not so.
    present: bool,
    /// The kernel wants to copy from or to it.
    copy: bool,
}

impl Access {
    /// From the bits of `abi::kernel::ACCESS_*`.
    pub const fn from_bits(bits: u64) -> Access {
        Access {
            write: bits & ACCESS_WRITE != 0,
            execute: bits & ACCESS_EXECUTE != 0,
            present: bits & ACCESS_PRESENT != 0,
            copy: false,
        }
    }

    /// The same for the kernel, which copies from or to the page.
    pub const fn for_copy(self) -> Access {
        Access { copy: true, ..self }
    }

    /// A read or write of data.
    pub const fn data(write: bool) -> Access {
        Access { write, execute: false, present: false, copy: false }
    }

    /// The access after which no other that these rights allow can fault.
    pub const fn touching(rights: Rights) -> Access {
        let write = rights.has(Rights::WRITE);
        Access { write, execute: !write && rights.has(Rights::EXECUTE), present: false, copy: false }
    }

    /// The processor cannot write or execute what it cannot read, so any right lets it read.
    fn is_allowed(self, rights: Rights) -> bool {
        if self.write {
            rights.has(Rights::WRITE)
        } else if self.execute {
            rights.has(Rights::EXECUTE)
        } else {
            rights != Rights::NONE
        }
    }

    /// The kernel's flags for a page of a region; `writable`: nothing stands against writing if the region allows it.
    /// Where a region allows both, a page is executable after it was executed, and writable otherwise.
    fn flags(self, rights: Rights, writable: bool) -> u64 {
        let write = rights.has(Rights::WRITE);
        let execute = rights.has(Rights::EXECUTE);
        if execute && (self.execute || !write) {
            map::EXECUTE
        } else if write && writable {
            map::WRITE
        } else {
            0
        }
    }
}

/// Pages of an object around one that was touched: those that can be mapped with it.
#[derive(Clone, Copy)]
struct Around {
    /// First page of the window.
    first: u64,
    frames: [Frame; AROUND_PAGES as usize],
    bits: u64,
}

impl Around {
    /// The pages around `page`, which shows `frame`, whose frames are contiguous too. Returns the first page and the frames.
    fn run(&self, page: u64, frame: Frame) -> (u64, Run) {
        let at = (page - self.first) as usize;
        let fits = |other: usize| {
            self.bits >> other & 1 != 0 && self.frames[other].0 as usize + at == frame.0 as usize + other
        };
        let before = (0..at).rev().take_while(|&other| fits(other)).count();
        let behind = (at + 1..AROUND_PAGES as usize).take_while(|&other| fits(other)).count();
        let run = Run { first: Frame(frame.0 - before as u32), frames: (before + 1 + behind) as u64 };
        (page - before as u64, run)
    }

    /// What is left when these are mapped.
    fn without(mut self, first: u64, run: Run) -> Around {
        let bits = u64::MAX >> (AROUND_PAGES - run.frames);
        self.bits &= !(bits << (first - self.first));
        self
    }
}

impl AddressSpace {
    /// Makes the page at `address` such that the access succeeds.
    pub fn fault<K: Kernel>(&mut self, memory: &mut Memory<K>, address: u64, access: Access) -> Result<(), Errno> {
        let region = match self.regions.find(address) {
            Some(region) => region,
            None => self.grow_stack(memory, address)?,
        };
        if !access.is_allowed(region.rights) {
            return Err(Errno::EFAULT);
        }
        self.provide(memory, &region, address / PAGE_BYTES, access)
    }

    /// Makes a page of a region such that the access succeeds, whether the region allows it or not; the page gets no other rights.
    fn provide<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        page: u64,
        access: Access,
    ) -> Result<(), Errno> {
        match (self.pages.get(page), region.backing) {
            (Page::Owned(frame), _) => self.fault_owned(memory, region, page, frame, access),
            (_, Backing::Anonymous) => self.fault_zero(memory, region, page, access),
            (_, Backing::Object(..) | Backing::Permanent(..)) => self.fault_object(memory, region, page, access),
            (_, Backing::Device) => Err(Errno::EIO),
        }
    }

    /// Writes to a page of the process which that may not write itself, for its tracer: the page becomes its own. `EFAULT`: no memory that
    /// can be read, or shared memory; `EINVAL`: more than the page.
    pub fn poke<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        address: u64,
        source: Source,
        bytes: u64,
    ) -> Result<(), Errno> {
        let region = self.regions.find(address).ok_or(Errno::EFAULT)?;
        let is_fixed = region.backing == Backing::Device || region.purpose == Purpose::Clocks;
        if region.shared || region.rights == Rights::NONE || is_fixed {
            return Err(Errno::EFAULT);
        }
        let (page, offset) = (address / PAGE_BYTES, address % PAGE_BYTES);
        if bytes > PAGE_BYTES - offset {
            return Err(Errno::EINVAL);
        }
        self.provide(memory, &region, page, Access::data(true))?;
        let frame = self.pages.frame(page).ok_or(Errno::EFAULT)?;
        memory.kernel.fill(frame, offset, source, bytes)
    }

    /// The page has a frame of its own, which the kernel does not map so.
    fn fault_owned<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        page: u64,
        frame: Frame,
        access: Access,
    ) -> Result<(), Errno> {
        let is_sole = self.pages.is_sole(page, &memory.frames);
        if access.write && !is_sole {
            self.hot.note(page);
            return self.replace_by_copy(memory, region, page, frame, access);
        }
        let flags = access.flags(region.rights, is_sole);
        if flags & map::WRITE != 0 {
            self.pages.unseal(page);
        }
        if access.write && access.present && !region.rights.has(Rights::EXECUTE) {
            return self.make_writable_around(memory, region, page);
        }
        if access.present {
            return self.map_run(memory, page, Run { first: frame, frames: 1 }, flags);
        }
        // The kernel has lost, or never got, what a fork, a move or a death of vm has left to faults: mostly neighbours too.
        let users = memory.frames.users(frame);
        let fits = |other: u64, its: Frame| {
            u64::from(its.0) + page == u64::from(frame.0) + other && memory.frames.users(its) == users
        };
        let (first, end) = self.pages.owned_around(page, region.first_page(), region.end_page(), fits);
        let run = Run { first: Frame(frame.0 - (page - first) as u32), frames: end - first };
        self.map_run(memory, first, run, flags)
    }

    /// After the other users of a forked page have gone, its neighbours are mostly free to be written too.
    fn make_writable_around<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        page: u64,
    ) -> Result<(), Errno> {
        let is_sole = |_, frame| memory.frames.users(frame) == 1;
        let (first, end) = self.pages.owned_around(page, region.first_page(), region.end_page(), is_sole);
        memory.kernel.protect(self.id, first * PAGE_BYTES, end - first, map::WRITE)
    }

    /// Copy on write: from a frame that others use too.
    pub(super) fn replace_by_copy<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        page: u64,
        frame: Frame,
        access: Access,
    ) -> Result<(), Errno> {
        let copy = memory.take_copy(frame, self.floor(memory))?;
        let flags = access.flags(region.rights, true);
        let mapped = self.map_run(memory, page, Run { first: copy, frames: 1 }, flags);
        mapped.inspect_err(|_| memory.frames.release(copy))?;
        let had_own = self.pages.frame(page).is_some();
        self.pages.own(page, copy, &mut memory.frames);
        if had_own {
            memory.frames.release(frame);
        }
        Ok(())
    }

    /// Maps zeros at an absent page. A program that walks through new memory gets more and more at a time.
    fn fault_zero<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        page: u64,
        access: Access,
    ) -> Result<(), Errno> {
        let floor = self.floor(memory);
        let hits = if self.expected.0 == page { self.expected.1 + 1 } else { 0 };
        let most = (1 << hits.min(6)).min(AHEAD_PAGES).min(region.end_page() - page);
        let ahead = self.pages.absent_from(page, most);
        let run = memory.take_some(ahead, floor)?;
        self.own(memory, page, run, access.flags(region.rights, true) | map::ZERO)?;
        self.expected = (page + run.frames, hits);
        Ok(())
    }

    /// The page shows an object.
    fn fault_object<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        page: u64,
        access: Access,
    ) -> Result<(), Errno> {
        if self.is_service && self.fault_kept(memory, region, page, access)? {
            return Ok(());
        }
        let frame = match self.object_frame(memory, region, page) {
            Ok(frame) => frame,
            Err(Errno::EIO) => return self.fault_window(memory, region, page, access),
            Err(error) => return Err(error),
        };
        if access.write && !region.shared {
            return self.replace_by_copy(memory, region, page, frame, access);
        }
        let is_tracked = region.shows_shared_file(memory);
        if access.write && is_tracked {
            return self.fault_changing(memory, region, page, frame, access);
        }
        let flags = access.flags(region.rights, region.shared && !is_tracked);
        let around = self.around(memory, region, page);
        let (first, run) = around.run(page, frame);
        self.map_run(memory, first, run, flags)?;
        self.pages.borrow(first, run.frames, &mut memory.frames);
        self.map_others(memory, around.without(first, run), flags);
        Ok(())
    }

    /// Maps zeros at a page of a service's preserved memory that no incarnation has touched. With it as many absent pages behind it as there are
    /// present ones before it: a service that uses more and more of its memory faults once for several pages. False: it is another page.
    fn fault_kept<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        page: u64,
        access: Access,
    ) -> Result<bool, Errno> {
        let (id, index) = region.object_page(page).ok_or(Errno::EIO)?;
        let object = memory.objects.get(id).ok_or(Errno::EIO)?;
        if !matches!(object.content, Content::Anonymous) || object.pages.frame(index).is_some() {
            return Ok(false);
        }
        let most = object.pages.present_before(index).min(AHEAD_PAGES).min(region.end_page() - page);
        let absent = object.pages.absent_from(index, self.pages.absent_from(page, most).max(1));
        let growth_bytes = if object.pages.must_grow() { object.pages.growth_bytes() } else { 0 };
        if growth_bytes > 0 {
            memory.ensure_heap(growth_bytes)?;
        }
        let run = memory.take_some(absent, self.floor(memory))?;
        let flags = access.flags(region.rights, true) | map::ZERO;
        self.map_run(memory, page, run, flags).inspect_err(|_| memory.release_run(run))?;
        match memory.objects.get_mut(id) {
            Some(object) => object.pages.own_run(index, run, &mut memory.frames),
            None => memory.release_run(run),
        }
        self.pages.borrow(page, run.frames, &mut memory.frames);
        Ok(true)
    }

    /// The page shows memory of a device: all of it that is in the page's leaf is mapped. `EIO`: it shows nothing, or the device is lost, or
    /// this would make a copy; `EFAULT`: the kernel copies from and to DMA memory of drivers, but not their devices.
    #[cold]
    fn fault_window<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        page: u64,
        access: Access,
    ) -> Result<(), Errno> {
        let window = region.window(memory).filter(|_| region.shared || !access.write).ok_or(Errno::EIO)?;
        let is_memory = window.caching == 0 && memory.frames.manages(window.run.first);
        if access.copy && !is_memory {
            return Err(Errno::EFAULT);
        }
        let (_, index) = region.object_page(page).ok_or(Errno::EIO)?;
        let leaf = page / LEAF_PAGES * LEAF_PAGES;
        let (first, end) = (leaf.max(region.first_page()), (leaf + LEAF_PAGES).min(region.end_page()));
        let (from, run) = window.around(index, index - (page - first), index + (end - page)).ok_or(Errno::EIO)?;
        let flags = access.flags(region.rights, region.shared) | window.caching;
        let first = page - (index - from);
        self.map_run(memory, first, run, flags)?;
        self.pages.borrow(first, run.frames, &mut memory.frames);
        Ok(())
    }

    /// The first write to a page of a shared file since it was written back.
    fn fault_changing<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        region: &Region,
        page: u64,
        frame: Frame,
        access: Access,
    ) -> Result<(), Errno> {
        let (id, index) = region.object_page(page).ok_or(Errno::EIO)?;
        mark_changed(memory, id, index)?;
        let flags = access.flags(region.rights, true);
        self.map_run(memory, page, Run { first: frame, frames: 1 }, flags)?;
        self.pages.borrow(page, 1, &mut memory.frames);
        Ok(())
    }

    /// Maps what else is around, as far as it comes in long runs. What cannot be mapped now comes by a fault, if it is ever touched.
    fn map_others<K: Kernel>(&mut self, memory: &mut Memory<K>, mut around: Around, flags: u64) {
        while around.bits != 0 {
            let at = around.bits.trailing_zeros();
            let (first, run) = around.run(around.first + u64::from(at), around.frames[at as usize]);
            let worth = run.frames >= WORTH_A_CALL;
            if worth && self.map_run(memory, first, run, flags).is_ok() {
                self.pages.borrow(first, run.frames, &mut memory.frames);
            }
            around = around.without(first, run);
        }
    }

    /// The frame of the object's page; shared memory gets its zeros now.
    fn object_frame<K: Kernel>(&self, memory: &mut Memory<K>, region: &Region, page: u64) -> Result<Frame, Errno> {
        let floor = self.floor(memory);
        let (id, index) = region.object_page(page).ok_or(Errno::EIO)?;
        let object = memory.objects.get(id).ok_or(Errno::EIO)?;
        if let Some(frame) = object.pages.frame(index) {
            return Ok(frame);
        }
        if object.content.is_zeros(index) { make_zeros(memory, id, index, floor) } else { Err(Errno::EIO) }
    }

    /// The pages around the touched one which its object has and this space does not.
    fn around<K>(&self, memory: &Memory<K>, region: &Region, page: u64) -> Around {
        let first = page / AROUND_PAGES * AROUND_PAGES;
        let start = first.max(region.first_page());
        let end = (first + AROUND_PAGES).min(region.end_page());
        let mut around = Around { first, frames: [Frame(0); AROUND_PAGES as usize], bits: 0 };
        let Some((id, index)) = region.object_page(start) else { return around };
        let Some(object) = memory.objects.get(id) else { return around };
        let skipped = (start - first) as usize;
        let (frames, present) = object.pages.frames(index);
        around.frames[skipped..].copy_from_slice(&frames[..AROUND_PAGES as usize - skipped]);
        let within = u64::MAX >> (AROUND_PAGES - (end - first)) & u64::MAX << skipped;
        around.bits = present << skipped & within & !self.pages.window(first);
        around
    }

    /// Extends a stack down to an address below it. `EFAULT`: there is none, it is at its limit, or another region is in its way.
    fn grow_stack<K: Kernel>(&mut self, memory: &mut Memory<K>, address: u64) -> Result<Region, Errno> {
        let stack = self.regions.next(address).filter(|region| region.grows_down).ok_or(Errno::EFAULT)?;
        let start = address / PAGE_BYTES * PAGE_BYTES;
        let gap_start = start.checked_sub(STACK_GAP).ok_or(Errno::EFAULT)?;
        if stack.end - start > self.stack_bytes || !self.regions.is_free(gap_start, stack.start) {
            return Err(Errno::EFAULT);
        }
        let lower = Region { end: stack.start, start, ..stack };
        self.check_new(&lower).map_err(|_| Errno::EFAULT)?;
        self.add(memory, lower);
        self.regions.find(address).ok_or(Errno::EFAULT)
    }

    /// Makes the pages within a range such that the kernel can copy to or from them, as faults would; for ranges of data that vm itself copies.
    pub fn touch<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        address: u64,
        bytes: u64,
        write: bool,
    ) -> Result<(), Errno> {
        let end = address.checked_add(bytes).ok_or(Errno::EFAULT)?;
        let mut page = address / PAGE_BYTES * PAGE_BYTES;
        while page < end {
            self.fault(memory, page, Access::data(write))?;
            page += PAGE_BYTES;
        }
        Ok(())
    }
}
