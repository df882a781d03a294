//! An address space: its regions, its present pages, and the kernel space that caches both.
//!
//! Invariants: every present page lies in a region; every page the kernel maps is present (device regions apart); an owned
//! page is writable in the kernel only while this space is its one user.
//! Neighbours: `fault` brings pages in, `fork`, `exec` and `spawn` make spaces, the Linux calls change regions.

use crate::memory::frames::{Payer, Run};
use crate::memory::kernel::Kernel;
use crate::memory::pages::{LEAF_HEAP_BYTES, Pages};
use crate::memory::vdso::{CLOCK_PAGE, IMAGE_PAGE};
use crate::memory::{Floor, Memory};
use crate::space::HotPages;
use crate::space::region::{Backing, MAX_STACK_BYTES, Purpose, REGION_HEAP_BYTES, Region, Regions, Rights};
use abi::{
    Errno,
    layout::{PAGE_BYTES, USER_END, USER_START, VDSO_BYTES, VDSO_OFFSET, map},
};
use alloc::vec::Vec;
use sys::space::Space;

/// A stack that may grow stays this far above whatever lies below it.
pub const STACK_GAP: u64 = 256 * PAGE_BYTES;
/// Default limit of a stack (RLIMIT_STACK).
pub const STACK_BYTES: u64 = 8 << 20;

/// What a stack has from the start.
const FIRST_BYTES: u64 = 0x21 * PAGE_BYTES;

/// What a process may have, in bytes: see `operations::limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of addresses.
    pub addresses: u64,
    /// Of private memory that may be written.
    pub data: u64,
    /// Of locked memory.
    pub locked: u64,
}

impl Limits {
    /// No limit.
    pub const INFINITY: u64 = u64::MAX;
    /// Those of a service, and of a program that pm has told nothing of.
    pub const NONE: Limits = Limits { addresses: Limits::INFINITY, data: Limits::INFINITY, locked: Limits::INFINITY };
}

/// An address space.
#[derive(Debug)]
pub struct AddressSpace {
    /// The kernel's.
    pub id: Space,
    /// Threads that use it.
    pub users: u32,
    /// What lies where.
    pub regions: Regions,
    /// The present pages.
    pub pages: Pages,
    /// Where brk began.
    pub heap_start: u64,
    /// Where brk stands.
    pub heap_end: u64,
    /// How far stacks grow.
    pub stack_bytes: u64,
    /// What the process may have.
    pub limits: Limits,
    /// New memory is locked (mlockall(2)).
    pub locks_new: bool,
    /// Some of it may be locked.
    pub has_locked: bool,
    /// Frames that page tables have taken for it.
    pub table_frames: u64,
    /// How many frames it must leave to others while it is small, and who pays for its memory.
    pub floor: Floor,
    /// The page a fault is expected at next, and how often that was right in a row.
    pub expected: (u64, u32),
    /// What is written first after a fork.
    pub hot: HotPages,
    /// What it has used so far.
    pub used: MemoryUse,
    /// The process that runs in it, 0: a service, or nobody yet.
    pub process: u32,
    /// It belongs to a service.
    pub is_service: bool,
    /// One of its threads became real-time: its pages stay writable when it is forked.
    pub is_resident: bool,
}

/// What the program in a space has used, over its execs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Page faults.
    pub faults: u64,
    /// Most pages that were present, as of the last time that some went.
    pub peak_pages: u64,
}

impl AddressSpace {
    /// Most pages that have been present at a time.
    pub fn peak_pages(&self) -> u64 {
        self.used.peak_pages.max(self.pages.count())
    }

    /// An empty space for one thread.
    pub fn new<K: Kernel>(memory: &mut Memory<K>) -> Result<AddressSpace, Errno> {
        Ok(AddressSpace {
            id: memory.create_space()?,
            users: 1,
            regions: Regions::default(),
            pages: Pages::default(),
            heap_start: 0,
            heap_end: 0,
            stack_bytes: STACK_BYTES,
            limits: Limits::NONE,
            locks_new: false,
            has_locked: false,
            table_frames: 0,
            floor: Floor::PROGRAM,
            expected: (0, 0),
            hot: HotPages::default(),
            used: MemoryUse::default(),
            process: 0,
            is_service: false,
            is_resident: false,
        })
    }

    /// Gives everything back. No thread uses it any more.
    pub fn destroy<K: Kernel>(mut self, memory: &mut Memory<K>) -> Result<(), Errno> {
        let result = self.retire(memory);
        memory.frames.refund_tables(self.table_frames, self.payer());
        let now_s = self.segment_time(memory, 0, USER_END);
        core::mem::take(&mut self.pages).release_all(&mut memory.frames);
        for region in self.regions.iter() {
            if let Backing::Object(id, _) = region.backing {
                self.count_attach(memory, region, false, now_s);
                memory.objects.unmap(&mut memory.frames, id, region.pages());
            }
        }
        result
    }

    /// Destroys the kernel's space, or empties it for the next process: for a small one that is less work.
    fn retire<K: Kernel>(&self, memory: &mut Memory<K>) -> Result<(), Errno> {
        const SMALL_PAGES: u64 = 2048;
        const SMALL_LEAVES: usize = 64;
        // It may have unmapped all pages of some tables, which the kernel keeps.
        let has_few_tables = self.pages.leaves() <= SMALL_LEAVES && self.table_frames <= SMALL_LEAVES as u64;
        let is_small = self.pages.count() <= SMALL_PAGES && has_few_tables;
        if self.is_service || !is_small || !memory.wants_spare() {
            return memory.destroy_space(self.id);
        }
        self.each_stretch(0, USER_END, |space, first, pages| memory.kernel.unmap(space, first, pages))?;
        memory.keep_spare(self.id);
        Ok(())
    }

    /// How many frames it must leave to others: more the larger it is.
    pub fn floor<K: Kernel>(&self, memory: &Memory<K>) -> Floor {
        if self.is_service {
            return Floor::SERVICE;
        }
        let total = memory.frames.total();
        let is_large = (self.pages.count() + self.table_frames) as usize > total / 8;
        self.floor.raised_by(if is_large { total / 64 } else { 0 })
    }

    /// Who pays for its memory.
    pub fn payer(&self) -> Payer {
        self.floor.payer()
    }

    /// The same for somebody who pays, before anything is in it.
    pub fn for_payer(self, payer: Payer) -> AddressSpace {
        AddressSpace { floor: self.floor.paid_by(payer), ..self }
    }

    /// From now on somebody else pays for what it takes, and for its page tables.
    pub fn set_payer<K>(&mut self, memory: &mut Memory<K>, payer: Payer) {
        memory.frames.refund_tables(self.table_frames, self.payer());
        memory.frames.charge_tables(self.table_frames, payer);
        self.floor = self.floor.paid_by(payer);
    }

    /// Estimate of vm's heap that the bookkeeping of this space takes.
    pub fn heap_bytes(&self) -> usize {
        self.pages.leaves() * LEAF_HEAP_BYTES + self.pages.growth_bytes() + self.regions.len() * REGION_HEAP_BYTES
    }

    /// Ensures that vm's heap has room to list and split the regions within a range.
    pub fn ensure_change<K: Kernel>(&self, memory: &mut Memory<K>, start: u64, end: u64) -> Result<(), Errno> {
        let regions = self.regions.overlapping(start, end).count();
        memory.ensure_heap(regions * 4 * size_of::<Region>())
    }

    /// Makes a region where there is none.
    pub fn add<K: Kernel>(&mut self, memory: &mut Memory<K>, region: Region) {
        if let Backing::Object(id, _) = region.backing {
            memory.objects.map(id, region.pages());
        }
        if region.purpose == Purpose::Segment {
            let now_s = memory.kernel.real_s();
            self.insert_attached(memory, region, now_s);
        } else {
            self.regions.insert(region);
        }
    }

    /// Adds a region that may show a System V segment, and counts that.
    fn insert_attached<K>(&mut self, memory: &mut Memory<K>, region: Region, now_s: u64) {
        self.count_attach(memory, &region, true, now_s);
        for _ in 0..self.regions.insert(region) {
            self.count_attach(memory, &region, false, now_s);
        }
    }

    /// The time, in seconds since 1970, if System V segments are attached within a range: it is asked for before anything changes.
    pub fn segment_time<K: Kernel>(&self, memory: &mut Memory<K>, start: u64, end: u64) -> u64 {
        let is_segment = |region: &Region| region.purpose == Purpose::Segment;
        let has_segment = self.regions.had_segments() && self.regions.overlapping(start, end).any(is_segment);
        if has_segment { memory.kernel.real_s() } else { 0 }
    }

    /// Counts a region that has come (`more`) or gone, if it shows a System V segment.
    pub fn count_attach<K>(&self, memory: &mut Memory<K>, region: &Region, more: bool, now_s: u64) {
        if let (Purpose::Segment, Backing::Object(id, _)) = (region.purpose, region.backing) {
            memory.objects.count_attach(id, more, self.process, now_s);
        }
    }

    /// Takes out the regions within a range. What remains of one that reaches beyond is a region of its own from here on.
    fn cut_out<K>(&mut self, memory: &mut Memory<K>, start: u64, end: u64, now_s: u64) -> Vec<Region> {
        if !self.regions.had_segments() {
            return self.regions.remove(start, end);
        }
        for remaining in self.regions.cut_by(start, end).iter().flatten() {
            self.count_attach(memory, remaining, true, now_s);
        }
        let regions = self.regions.remove(start, end);
        regions.iter().for_each(|region| self.count_attach(memory, region, false, now_s));
        regions
    }

    /// Changes the regions within a range, after `ensure_change`.
    pub fn change<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64, end: u64, change: impl Fn(&mut Region)) {
        let now_s = self.segment_time(memory, start, end);
        for mut region in self.cut_out(memory, start, end, now_s) {
            change(&mut region);
            self.insert_attached(memory, region, now_s);
        }
    }

    /// Removes regions and pages within a range.
    pub fn remove<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64, end: u64) -> Result<(), Errno> {
        self.ensure_change(memory, start, end)?;
        self.remove_ensured(memory, start, end)
    }

    /// As [`remove`](Self::remove), after `ensure_change` for a range that includes this one: needs no memory.
    pub fn remove_ensured<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64, end: u64) -> Result<(), Errno> {
        let now_s = self.segment_time(memory, start, end);
        let result = self.empty(memory, start, end);
        for region in self.cut_out(memory, start, end, now_s) {
            if let Backing::Object(id, _) = region.backing {
                memory.objects.unmap(&mut memory.frames, id, region.pages());
            }
        }
        result
    }

    /// Removes the pages within a range; the regions stay, and faults fill them again.
    pub fn empty<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64, end: u64) -> Result<(), Errno> {
        self.used.peak_pages = self.peak_pages();
        self.hide(memory, start, end)?;
        self.pages.release(start / PAGE_BYTES, end / PAGE_BYTES, &mut memory.frames);
        Ok(())
    }

    /// Takes the pages within a range out of the kernel's tables only: faults show them again.
    pub fn hide<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64, end: u64) -> Result<(), Errno> {
        let has_device = self.regions.overlapping(start, end).any(|region| region.backing == Backing::Device);
        if has_device {
            return memory.kernel.unmap(self.id, start, (end - start) / PAGE_BYTES);
        }
        self.each_stretch(start, end, |space, first, pages| memory.kernel.unmap(space, first, pages))
    }

    /// Takes the right to write (and to execute, unless `execute`) from the mapped pages within a range; faults give it back.
    pub fn restrict<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        start: u64,
        end: u64,
        execute: bool,
    ) -> Result<(), Errno> {
        let flags = if execute { map::EXECUTE } else { 0 };
        self.each_stretch(start, end, |space, first, pages| memory.kernel.protect(space, first, pages, flags))
    }

    /// Does something with each stretch of present pages within a range.
    pub fn each_stretch(
        &self,
        start: u64,
        end: u64,
        mut act: impl FnMut(Space, u64, u64) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let (mut page, end) = (start / PAGE_BYTES, end / PAGE_BYTES);
        while let Some((first, stop)) = self.pages.stretch(page, end) {
            act(self.id, first * PAGE_BYTES, stop - first)?;
            page = stop;
        }
        Ok(())
    }

    /// Maps frames at a page, all or none. What the page tables take is the space's, as pages are.
    pub fn map_run<K: Kernel>(&mut self, memory: &mut Memory<K>, page: u64, run: Run, flags: u64) -> Result<(), Errno> {
        match memory.map(self.id, page * PAGE_BYTES, run, flags, |memory| self.floor(memory)) {
            Ok(donated) => {
                self.table_frames += donated;
                Ok(())
            }
            Err(error) => {
                memory.kernel.unmap(self.id, page * PAGE_BYTES, run.frames)?;
                Err(error)
            }
        }
    }

    /// Maps frames that become the space's own, at a page where nothing is. Their content is theirs, or zeros with `map::ZERO` in `flags`.
    /// When it fails the frames are free again.
    pub fn own<K: Kernel>(&mut self, memory: &mut Memory<K>, page: u64, run: Run, flags: u64) -> Result<(), Errno> {
        self.map_run(memory, page, run, flags).inspect_err(|_| memory.release_run(run))?;
        self.pages.own_run(page, run, &mut memory.frames);
        Ok(())
    }

    /// Brings in zeroed pages for `first..end`, where nothing is, in runs as long as they come.
    pub fn own_zeros<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        first: u64,
        end: u64,
        flags: u64,
    ) -> Result<(), Errno> {
        let floor = self.floor(memory);
        let mut page = first;
        while page < end {
            let run = memory.take_some(end - page, floor)?;
            self.own(memory, page, run, flags | map::ZERO)?;
            page += run.frames;
        }
        Ok(())
    }

    /// False: a death has left its tables half changed.
    pub fn is_whole(&mut self) -> bool {
        self.regions.forget_caches();
        self.pages.is_whole() && self.regions.is_whole()
    }

    /// Unmaps everything that a fault can map again.
    pub fn hide_all<K: Kernel>(&self, memory: &mut Memory<K>) -> Result<(), Errno> {
        let visible = self.regions.iter().filter(|region| region.backing != Backing::Device);
        for region in visible {
            memory.kernel.unmap(self.id, region.start, region.pages())?;
        }
        Ok(())
    }

    /// Becomes an empty space. The memory of its corrupt tables is leaked.
    pub fn give_up<K: Kernel>(&mut self, memory: &mut Memory<K>) -> Result<(), Errno> {
        core::mem::forget(core::mem::take(&mut self.pages));
        core::mem::forget(core::mem::take(&mut self.regions));
        self.id = memory.create_space()?;
        Ok(())
    }

    /// The highest free range for mmap.
    pub fn free_range(&mut self, bytes: u64, top: u64) -> Result<u64, Errno> {
        self.regions.free_below(top, USER_START, bytes).ok_or(Errno::ENOMEM)
    }

    /// Sets how far stacks grow, as far as there is room.
    pub fn set_stack_limit(&mut self, bytes: u64) {
        let most = MAX_STACK_BYTES - 2 * STACK_GAP;
        self.stack_bytes = bytes.clamp(FIRST_BYTES, most) / PAGE_BYTES * PAGE_BYTES;
    }

    /// Makes the stack region of a program below `stack_end`, its top pages filled: they are written to at once.
    pub fn add_stack<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        stack_end: u64,
        stack_bytes: u64,
        rights: Rights,
    ) -> Result<(), Errno> {
        const FILLED_PAGES: u64 = 2;
        self.set_stack_limit(stack_bytes);
        self.add(
            memory,
            Region {
                grows_down: true,
                purpose: Purpose::Stack,
                ..Region::anonymous(stack_end - FIRST_BYTES, stack_end, rights)
            },
        );
        let end = stack_end / PAGE_BYTES;
        self.own_zeros(memory, end - FILLED_PAGES, end, map::WRITE)
    }

    /// Shows the page of the clocks at `start`, and behind it the vDSO, which is mapped at once: C libraries read it before they do anything.
    pub fn add_vdso<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64) -> Result<(), Errno> {
        let (object, frame) = memory.vdso_image();
        let code = start + VDSO_OFFSET;
        self.add_clock_region(memory, start);
        let image = Region::anonymous(code, start + VDSO_BYTES, Rights::READ.with(Rights::EXECUTE, true));
        self.add(memory, Region { purpose: Purpose::Vdso, backing: Backing::Permanent(object, IMAGE_PAGE), ..image });
        self.map_run(memory, code / PAGE_BYTES, Run { first: frame, frames: 1 }, map::EXECUTE)?;
        self.pages.borrow(code / PAGE_BYTES, 1, &mut memory.frames);
        Ok(())
    }

    /// Shows the page of the clocks at `start`, which is mapped at once: a driver keeps to its time from its first request on.
    pub fn add_clocks<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64) -> Result<(), Errno> {
        self.add_clock_region(memory, start);
        let (_, frame) = memory.vdso_clocks();
        self.map_run(memory, start / PAGE_BYTES, Run { first: frame, frames: 1 }, 0)?;
        self.pages.borrow(start / PAGE_BYTES, 1, &mut memory.frames);
        Ok(())
    }

    fn add_clock_region<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64) {
        let (object, _) = memory.vdso_clocks();
        let page = Region::anonymous(start, start + PAGE_BYTES, Rights::READ);
        let backing = Backing::Permanent(object, CLOCK_PAGE);
        self.add(memory, Region { may_write: false, purpose: Purpose::Clocks, backing, ..page });
    }
}
