//! The regions of an address space: what lies where, with which rights. Pages come and go within regions.
//!
//! Invariants: regions are page-aligned, not empty, ascending and disjoint; neighbours that could be one are one.
//! Neighbours: `space`, which keeps pages and regions in step.

use crate::memory::Memory;
use crate::memory::object::ObjectId;
use crate::space::dense::Dense;
use abi::{
    Errno,
    layout::{PAGE_BYTES, USER_END},
};
use alloc::{collections::BTreeMap, vec::Vec};

/// Rights, with the bits of PROT_*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights(pub u8);

impl Rights {
    /// PROT_NONE.
    pub const NONE: Rights = Rights(0);
    /// PROT_READ.
    pub const READ: Rights = Rights(1);
    /// PROT_WRITE.
    pub const WRITE: Rights = Rights(2);
    /// PROT_EXEC.
    pub const EXECUTE: Rights = Rights(4);
    /// PROT_READ and PROT_WRITE.
    pub const READ_WRITE: Rights = Rights(3);

    /// The rights in the argument of a Linux call.
    pub const fn from_linux(protection: u64) -> Rights {
        Rights(protection as u8 & 7)
    }

    /// True when it includes all of `other`.
    pub const fn has(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`, if `also`.
    pub const fn with(self, other: Rights, also: bool) -> Rights {
        if also { Rights(self.0 | other.0) } else { self }
    }
}

/// Where the content of a region comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Zeros.
    Anonymous,
    /// The pages of an object, from this one on.
    Object(ObjectId, u64),
    /// The same of an object that vm holds for ever: forks, execs and exits need not count who shows it.
    Permanent(ObjectId, u64),
    /// Physical memory, mapped for good when the region was made.
    Device,
}

/// What fork does with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFork {
    /// The child gets it too.
    Copy,
    /// The child does not get it (MADV_DONTFORK).
    Leave,
    /// The child gets it empty (MADV_WIPEONFORK).
    Wipe,
}

/// What a region is for, as `MapRecord` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Anything.
    Other,
    /// The heap that brk moves.
    Heap,
    /// The stack of the main thread.
    Stack,
    /// A System V segment.
    Segment,
    /// The page of the clocks: nobody writes there, not even its program's tracer.
    Clocks,
    /// The vDSO.
    Vdso,
}

/// A range of addresses of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// What may be done there.
    pub rights: Rights,
    /// Shared: writes are seen in every mapping of the object, and fork shares it. Else private.
    pub shared: bool,
    /// It may become writable: of a shared file only if the descriptor was open for writing.
    pub may_write: bool,
    /// Grows downwards when touched below.
    pub grows_down: bool,
    /// It counts for RLIMIT_MEMLOCK (mlock(2)).
    pub locked: bool,
    /// See [`OnFork`].
    pub on_fork: OnFork,
    /// See [`Purpose`].
    pub purpose: Purpose,
    /// See [`Backing`].
    pub backing: Backing,
}

impl Region {
    /// Private anonymous memory.
    pub fn anonymous(start: u64, end: u64, rights: Rights) -> Region {
        Region {
            start,
            end,
            rights,
            shared: false,
            may_write: true,
            grows_down: false,
            locked: false,
            on_fork: OnFork::Copy,
            purpose: Purpose::Other,
            backing: Backing::Anonymous,
        }
    }

    /// Private memory that may be written, but for stacks: what RLIMIT_DATA limits.
    pub fn is_data(&self) -> bool {
        !self.shared && !self.grows_down && self.rights.has(Rights::WRITE)
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        (self.end - self.start) / PAGE_BYTES
    }

    /// Number of the first page.
    pub fn first_page(&self) -> u64 {
        self.start / PAGE_BYTES
    }

    /// Number of the page after the last.
    pub fn end_page(&self) -> u64 {
        self.end / PAGE_BYTES
    }

    /// The page of the object that page `page` of the space shows.
    pub fn object_page(&self, page: u64) -> Option<(ObjectId, u64)> {
        match self.backing {
            Backing::Object(id, first) | Backing::Permanent(id, first) => {
                Some((id, first + (page - self.first_page())))
            }
            _ => None,
        }
    }

    /// Whether it is a shared mapping of a file.
    pub fn shows_shared_file<K>(&self, memory: &Memory<K>) -> bool {
        let Backing::Object(id, _) = self.backing else { return false };
        memory.objects.get(id).is_some_and(|object| object.content.is_shared_file())
    }

    /// The part of it within `start..end`, which overlaps it.
    pub fn part(&self, start: u64, end: u64) -> Region {
        let (start, end) = (start.max(self.start), end.min(self.end));
        let backing = match self.backing {
            Backing::Object(id, first) => Backing::Object(id, first + (start - self.start) / PAGE_BYTES),
            Backing::Permanent(id, first) => Backing::Permanent(id, first + (start - self.start) / PAGE_BYTES),
            other => other,
        };
        Region { start, end, backing, ..*self }
    }

    /// True when `next` continues this region so that the two may be one.
    fn continues_in(&self, next: &Region) -> bool {
        let alike = Region { start: next.start, end: next.end, backing: next.backing, ..*self } == *next;
        let backing = match (self.backing, next.backing) {
            (Backing::Anonymous, Backing::Anonymous) => true,
            (Backing::Object(a, first), Backing::Object(b, second)) => a == b && first + self.pages() == second,
            _ => false,
        };
        self.end == next.start && alike && backing
    }
}

/// Most regions of a space: bounds the heap and the time that one call may cost vm.
pub const MAX_REGIONS: usize = abi::limits::MAPPINGS;

/// Estimate of the heap that one region takes.
pub const REGION_HEAP_BYTES: usize = 2 * size_of::<(u64, Region)>();

/// mmap takes addresses downwards from here, or from a random place below; above is the stack's.
pub const MMAP_TOP: u64 = USER_END - MAX_STACK_BYTES;

/// Address space that is kept for the stack.
pub const MAX_STACK_BYTES: u64 = 128 << 20;

/// The regions of one space.
#[derive(Clone, Debug)]
pub struct Regions {
    by_start: BTreeMap<u64, Region>,
    /// The region found last: faults come in clusters.
    last: Option<Region>,
    /// Where the search for free addresses need not look below the top, where mmap begins.
    dense: Dense,
    /// A region has been of a System V segment once.
    had_segments: bool,
    /// Whether any was ever not just to be copied by a fork.
    had_fork_advice: bool,
    /// Pages of the longest there has ever been.
    longest: u64,
}

impl Default for Regions {
    fn default() -> Self {
        Regions::below(MMAP_TOP)
    }
}

impl Regions {
    /// No regions; mmap takes addresses downwards from `top`, which is at most `MMAP_TOP`.
    pub fn below(top: u64) -> Regions {
        Regions {
            by_start: BTreeMap::new(),
            last: None,
            dense: Dense::below(top),
            had_segments: false,
            had_fork_advice: false,
            longest: 0,
        }
    }

    /// Where mmap begins, downwards.
    pub fn top(&self) -> u64 {
        self.dense.top()
    }

    /// What a search for free addresses knows.
    #[cfg(test)]
    pub fn dense(&self) -> &Dense {
        &self.dense
    }

    /// False: no region has ever been of a System V segment.
    pub fn had_segments(&self) -> bool {
        self.had_segments
    }

    /// True when they are what they must be.
    pub fn is_whole(&self) -> bool {
        let mut end = 0;
        self.by_start.iter().all(|(&start, region)| {
            let follows = start == region.start && start >= end && region.end > start;
            end = region.end;
            follows
        })
    }

    /// What a death in the middle of a change may leave behind: a region where it is not looked for, or upon another one.
    #[cfg(test)]
    pub fn break_entry(&mut self, start: u64, region: Region) {
        self.by_start.insert(start, region);
    }

    /// Forgets what only saves time.
    pub fn forget_caches(&mut self) {
        self.last = None;
        self.dense = Dense::below(self.top());
    }

    /// The region that holds `address`.
    pub fn find(&mut self, address: u64) -> Option<Region> {
        if let Some(last) = self.last
            && address >= last.start
            && address < last.end
        {
            return Some(last);
        }
        let found = self.by_start.range(..=address).next_back().map(|(_, region)| *region)?;
        if address >= found.end {
            return None;
        }
        self.last = Some(found);
        Some(found)
    }

    /// The first region that starts at or above `address`.
    pub fn next(&self, address: u64) -> Option<Region> {
        self.by_start.range(address..).next().map(|(_, region)| *region)
    }

    /// Regions.
    pub fn len(&self) -> usize {
        self.by_start.len()
    }

    /// Those of more than so many pages; found at once if there has never been one.
    pub fn longer_than(&self, pages: u64) -> impl Iterator<Item = &Region> {
        let all = (self.longest > pages).then(|| self.by_start.values());
        all.into_iter().flatten().filter(move |region| region.pages() > pages)
    }

    /// Those that a fork does not just copy; found at once if there has never been one.
    pub fn with_fork_advice(&self) -> impl Iterator<Item = &Region> {
        let all = self.had_fork_advice.then(|| self.by_start.values());
        all.into_iter().flatten().filter(|region| region.on_fork != OnFork::Copy)
    }

    /// All, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Region> {
        self.by_start.values()
    }

    /// The regions that overlap `start..end`, whole. Quick within the region that was found last: most calls ask several times about one.
    pub fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = &Region> {
        let last = self.last.as_ref().filter(|last| last.start <= start && start < end && end <= last.end);
        let others = last.is_none().then(|| {
            let from = self.by_start.range(..=start).next_back().filter(|(_, region)| region.end > start);
            let from = from.map_or(start, |(&first, _)| first);
            self.by_start.range(from..end.max(from)).map(|(_, region)| region)
        });
        last.into_iter().chain(others.into_iter().flatten())
    }

    /// True when nothing lies within `start..end`.
    pub fn is_free(&self, start: u64, end: u64) -> bool {
        self.overlapping(start, end).next().is_none()
    }

    /// True when there is no hole within `start..end`.
    pub fn is_covered(&self, start: u64, end: u64) -> bool {
        self.covered_until(start, end) == end
    }

    /// Where the first hole within `start..end` begins, or the end.
    pub fn covered_until(&self, start: u64, end: u64) -> u64 {
        let step = |reached, region: &Region| if region.start > reached { Err(reached) } else { Ok(region.end) };
        let (Ok(reached) | Err(reached)) = self.overlapping(start, end).try_fold(start, step);
        reached.min(end)
    }

    /// `ENOMEM` when the few more regions that a change may bring would be too many.
    pub fn check_count(&self) -> Result<(), Errno> {
        if self.len() + 3 > MAX_REGIONS { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// `ENOMEM` when taking out `start..end` would split a region, and that is one region too many.
    pub fn check_cut(&self, start: u64, end: u64) -> Result<(), Errno> {
        let cuts = self.overlapping(start, end).next().is_some_and(|region| region.start < start && region.end > end);
        if cuts && self.len() >= MAX_REGIONS { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// Adds a region where there is none, and joins it with its neighbours. Returns with how many.
    pub fn insert(&mut self, region: Region) -> u32 {
        self.last = None;
        self.had_segments |= region.purpose == Purpose::Segment;
        self.had_fork_advice |= region.on_fork != OnFork::Copy;
        self.longest = self.longest.max(region.pages());
        self.by_start.insert(region.start, region);
        let joins = match region.backing {
            // Such regions never fit together.
            Backing::Device | Backing::Permanent(..) => 0,
            _ => u32::from(self.join(region.start)) + u32::from(self.join(region.end)),
        };
        self.dense.cover(region.start, region.end);
        joins
    }

    /// Removes what lies within `start..end`; regions that reach beyond are truncated.
    #[expect(clippy::disallowed_methods, reason = "`ensure_heap` has made room")]
    pub fn remove(&mut self, start: u64, end: u64) -> Vec<Region> {
        self.last = None;
        self.open(end);
        let touched: Vec<Region> = self.overlapping(start, end).copied().collect();
        for region in &touched {
            self.by_start.remove(&region.start);
            if region.start < start {
                self.by_start.insert(region.start, region.part(region.start, start));
            }
            if region.end > end {
                self.by_start.insert(end, region.part(end, region.end));
            }
        }
        touched.iter().map(|region| region.part(start, end)).collect()
    }

    /// The regions that reach into `start..end` from below, and out of it: both may be the same.
    pub fn cut_by(&self, start: u64, end: u64) -> [Option<Region>; 2] {
        let over = |edge: u64| self.by_start.range(..edge).next_back().map(|(_, region)| *region);
        [over(start).filter(|region| region.end > start), over(end).filter(|region| region.end > end)]
    }

    /// Something below `end` becomes free.
    fn open(&mut self, end: u64) {
        if self.dense.reaches(end) {
            let is_held = self.overlapping(end, end + 1).next().is_some();
            let next = if is_held { end } else { self.next(end).map_or(self.top(), |region| region.start) };
            self.dense.open(end, next);
        }
    }

    /// The highest free range of `bytes` below `top` and not below `bottom`.
    pub fn free_below(&mut self, top: u64, bottom: u64, bytes: u64) -> Option<u64> {
        let from = self.dense.search_from(top, bytes);
        let (mut end, mut first_gap) = (from, None);
        for region in self.by_start.range(..end).rev().map(|(_, region)| region) {
            if region.end < end {
                first_gap.get_or_insert(end);
                if end - region.end >= bytes {
                    break;
                }
            }
            end = end.min(region.start);
        }
        if top == self.top() {
            self.dense.found(from, first_gap.unwrap_or(end), end, bytes);
        }
        end.checked_sub(bytes).filter(|&start| start >= bottom)
    }

    /// The lowest free range of `bytes` from `bottom` on and below `top`.
    pub fn free_above(&self, bottom: u64, top: u64, bytes: u64) -> Option<u64> {
        let mut start = bottom;
        for region in self.overlapping(bottom, top) {
            if region.start > start && region.start - start >= bytes {
                break;
            }
            start = region.end;
        }
        start.checked_add(bytes).filter(|&end| end <= top).map(|_| start)
    }

    /// Joins the region that starts at `start` with the one before, where they fit together. Returns whether they do.
    fn join(&mut self, start: u64) -> bool {
        let Some(&next) = self.by_start.get(&start) else { return false };
        let Some((_, before)) = self.by_start.range_mut(..start).next_back() else { return false };
        let fits = before.continues_in(&next);
        if fits {
            before.end = next.end;
            self.longest = self.longest.max(before.pages());
            self.by_start.remove(&start);
        }
        fits
    }
}
