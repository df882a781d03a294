//! madvise, msync, mincore and mlock: calls about pages that change no region, or only a mark on it.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::memory::object::ObjectId;
use crate::memory::pages::{LEAF_HEAP_BYTES, LEAF_PAGES, Page};
use crate::operations::fault::Access;
use crate::operations::mmap::user_range;
use crate::space::AddressSpace;
use crate::space::region::{Backing, OnFork, Region, Rights};
use abi::{Endpoint, Errno, layout::PAGE_BYTES};
use alloc::vec::Vec;
use sys::fallible::{self, TryVec};

const MS_ASYNC: u64 = 1;
const MS_INVALIDATE: u64 = 2;
const MS_SYNC: u64 = 4;
/// Most files of one msync: the rest is left to the next call.
const MAX_FILES: usize = LEAF_PAGES as usize;
/// Bytes of the answer of mincore that are written at a time.
const ANSWER_BYTES: usize = 4096;

/// What madvise is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Advice {
    /// How the program will use memory that nobody writes to a disk: no difference.
    Nothing,
    /// The content is not needed any more, not even where memory is locked.
    Drop {
        locked: bool,
    },
    /// The pages will be needed: read, or written.
    Populate {
        write: bool,
    },
    OnFork(OnFork),
}

impl Advice {
    fn parse(advice: u64) -> Result<Advice, Errno> {
        Ok(match advice {
            // NORMAL RANDOM SEQUENTIAL WILLNEED MERGEABLE UNMERGEABLE HUGEPAGE NOHUGEPAGE DONTDUMP DODUMP COLD PAGEOUT
            0..=3 | 12..=17 | 20 | 21 => Advice::Nothing,
            // DONTNEED FREE
            4 | 8 => Advice::Drop { locked: false },
            10 => Advice::OnFork(OnFork::Leave),
            11 | 19 => Advice::OnFork(OnFork::Copy),
            18 => Advice::OnFork(OnFork::Wipe),
            22 => Advice::Populate { write: false },
            23 => Advice::Populate { write: true },
            // DONTNEED_LOCKED
            24 => Advice::Drop { locked: true },
            _ => return Err(Errno::EINVAL),
        })
    }
}

impl AddressSpace {
    /// madvise. `EINVAL`: no such advice, or not for this memory; `ENOMEM`: a hole in the range.
    pub fn madvise<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        address: u64,
        bytes: u64,
        advice: u64,
    ) -> Result<u64, Errno> {
        let advice = Advice::parse(advice)?;
        let (start, end) = user_range(address, bytes, Errno::EINVAL)?;
        if !self.regions.is_covered(start, end) {
            return Err(Errno::ENOMEM);
        }
        match advice {
            Advice::Nothing => {}
            Advice::Drop { locked } => self.discard(memory, start, end, locked)?,
            Advice::Populate { write } => self.populate_all(memory, start, end, write)?,
            Advice::OnFork(on_fork) => self.set_on_fork(memory, start, end, on_fork)?,
        }
        Ok(0)
    }

    /// Private memory is as new afterwards; shared memory keeps its content. `EINVAL`: there is a device's, or with `locked` false locked memory.
    fn discard<K: Kernel>(&mut self, memory: &mut Memory<K>, start: u64, end: u64, locked: bool) -> Result<(), Errno> {
        let is_kept = |region: &Region| {
            region.backing == Backing::Device || region.window(memory).is_some() || region.locked && !locked
        };
        if self.regions.overlapping(start, end).any(is_kept) {
            return Err(Errno::EINVAL);
        }
        self.empty(memory, start, end)
    }

    fn populate_all<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        start: u64,
        end: u64,
        write: bool,
    ) -> Result<(), Errno> {
        let right = if write { Rights::WRITE } else { Rights::READ };
        if !self.regions.overlapping(start, end).all(|region| region.rights.has(right)) {
            return Err(Errno::EINVAL);
        }
        let pages = ((end - start) / PAGE_BYTES).min(memory.frames.total() as u64) as usize;
        memory.ensure_heap(pages / LEAF_PAGES as usize * LEAF_HEAP_BYTES)?;
        (start..end)
            .step_by(PAGE_BYTES as usize)
            .try_for_each(|address| self.fault(memory, address, Access::data(write)))
    }

    fn set_on_fork<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        start: u64,
        end: u64,
        on_fork: OnFork,
    ) -> Result<(), Errno> {
        self.ensure_change(memory, start, end)?;
        let is_private = |region: &Region| !region.shared && region.backing == Backing::Anonymous;
        if on_fork == OnFork::Wipe && !self.regions.overlapping(start, end).all(is_private) {
            return Err(Errno::EINVAL);
        }
        self.regions.check_count()?;
        self.change(memory, start, end, |region| region.on_fork = on_fork);
        Ok(())
    }

    /// msync. Returns the files to be written back: those that programs may have changed within the range; none without MS_SYNC.
    /// `EBUSY`: MS_INVALIDATE, and memory there is locked. `ENOMEM`: there is a hole.
    pub fn msync<K>(&self, memory: &Memory<K>, address: u64, bytes: u64, flags: u64) -> Result<Vec<ObjectId>, Errno> {
        let both = MS_ASYNC | MS_SYNC;
        if flags & !(MS_ASYNC | MS_INVALIDATE | MS_SYNC) != 0 || flags & both == both {
            return Err(Errno::EINVAL);
        }
        let (start, end) = user_range(address, bytes, Errno::ENOMEM)?;
        if flags & MS_INVALIDATE != 0 && self.regions.overlapping(start, end).any(|region| region.locked) {
            return Err(Errno::EBUSY);
        }
        if !self.regions.is_covered(start, end) {
            return Err(Errno::ENOMEM);
        }
        let mut files = Vec::new();
        for region in self.regions.overlapping(start, end) {
            match region.backing {
                Backing::Object(file, _)
                    if flags & MS_SYNC != 0
                        && region.shows_shared_file(memory)
                        && files.len() < MAX_FILES
                        && !files.contains(&file) =>
                {
                    files.try_push(file)?;
                }
                _ => {}
            }
        }
        Ok(files)
    }

    /// mincore: one byte a page, 1 when it is present, to `answer` in the process.
    pub fn mincore<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        process: Endpoint,
        [address, bytes, answer]: [u64; 3],
    ) -> Result<u64, Errno> {
        let (start, end) = user_range(address, bytes, Errno::ENOMEM)?;
        if !self.regions.is_covered(start, end) {
            return Err(Errno::ENOMEM);
        }
        let mut to = answer;
        let mut page = start / PAGE_BYTES;
        while page < end / PAGE_BYTES {
            let stop = (page + ANSWER_BYTES as u64).min(end / PAGE_BYTES);
            let bytes = fallible::collect((page..stop).map(|page| u8::from(self.is_resident(memory, page))))?;
            self.touch(memory, to, bytes.len() as u64, true).map_err(|_| Errno::EFAULT)?;
            memory.kernel.write_process(process, to, &bytes)?;
            to += bytes.len() as u64;
            page = stop;
        }
        Ok(0)
    }

    fn is_resident<K>(&mut self, memory: &Memory<K>, page: u64) -> bool {
        if self.pages.get(page) != Page::Absent {
            return true;
        }
        let shown = self.regions.find(page * PAGE_BYTES).and_then(|region| region.object_page(page));
        shown
            .is_some_and(|(id, index)| memory.objects.get(id).is_some_and(|object| object.pages.frame(index).is_some()))
    }
}
