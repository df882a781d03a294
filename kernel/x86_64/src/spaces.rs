//! The address spaces of processes: tables of four levels, whose upper half is the kernel's.
//!
//! Invariants: entries of upper levels allow everything, the rights are in the last level; no user page is writable and executable;
//! no user entry points to a frame of the kernel. Loading another space forgets all translations, unless the CPU keeps them apart by the
//! numbers of spaces: then they are forgotten as the tables change, whichever space is loaded.

use crate::{
    cpu, frames::Frames, page_tables, page_tables::LARGE_PAGE_BYTES, page_tables::bit, page_tables::index,
    page_tables::read, page_tables::write, physical, physical::FRAME_WORDS, recent::Recent,
};
use abi::{
    Errno, kernel::ACCESS_PRESENT, kernel::ACCESS_WRITE, layout::PAGE_BYTES, layout::SPACES, layout::USER_END,
    layout::map,
};
use kernel_core::{Space, machine::Fault, machine::Mapped};

/// More pages than this, and all translations are forgotten instead of one after the other.
const FEW_PAGES: u64 = 32;
/// Tables of the last level given back at once.
const TABLES_AT_ONCE: usize = 32;
/// Rights of the upper levels.
const TABLE: u64 = bit::PRESENT | bit::WRITE | bit::USER;
/// Top-level entries of user addresses.
const USER_ENTRIES: usize = FRAME_WORDS / 2;
/// A power of two, so that any number is an index.
pub const ROOTS: usize = SPACES.next_power_of_two();

/// All address spaces, and the one the CPU uses.
#[repr(C)]
pub struct Spaces {
    kernel_root: u64,
    loaded: u64,
    /// The bits of a load beside the root: all, or none if the CPU does not keep translations apart.
    tags: u64,
    /// What CR3 is loaded with for each: the root, and on a CPU that keeps translations apart the number of the space.
    loads: [u64; ROOTS],
    /// Top-level tables, the kernel's own where there is no space.
    roots: [u64; ROOTS],
    recent: Recent,
}

/// A stretch of a range within one table of the last level.
struct Run {
    address: u64,
    first: usize,
    pages: u64,
}

impl Spaces {
    /// No space but the kernel's, which is not known yet.
    pub const NEW: Self =
        Spaces { roots: [0; ROOTS], loads: [0; ROOTS], kernel_root: 0, loaded: 0, tags: 0, recent: Recent::NEW };

    /// Leaves the boot loader's tables for the kernel's own. `keeps`: the CPU is to keep translations apart, if it can.
    ///
    /// # Safety
    /// `root` maps the kernel as it runs.
    pub unsafe fn start(&mut self, root: u64, keeps: bool) {
        self.kernel_root = root;
        self.roots.fill(root);
        self.loads.fill(root);
        self.loaded = root;
        // SAFETY: promised by the caller.
        unsafe { cpu::write_cr3(root) };
        self.tags = if keeps && cpu::number_spaces() { u64::MAX } else { 0 };
    }

    /// Makes this space the CPU's. A thread without a space never runs; should it, it has no memory.
    pub fn load(&mut self, space: Space) {
        self.load_root(self.loads[number(space)]);
    }

    /// Makes an empty space.
    pub fn create(&mut self, frames: &mut Frames, space: Space) -> Result<(), Errno> {
        let root = frames.take().ok_or(Errno::ENOMEM)?;
        page_tables::share_kernel_half(self.kernel_root, root);
        self.roots[number(space)] = root;
        self.loads[number(space)] = root | self.tags & (cpu::KEEP_TRANSLATIONS | number(space) as u64);
        Ok(())
    }

    /// Gives back some tables of a space, of addresses from `from` times 2 MiB on: the next few, or one that has become empty. → where to go
    /// on; `None`: the space is gone.
    pub fn destroy(&mut self, frames: &mut Frames, space: Space, from: u64) -> Option<u64> {
        let root = self.roots[number(space)];
        if root == self.kernel_root {
            return None;
        }
        if self.loads[number(space)] == self.loaded {
            self.load_root(self.kernel_root);
        }
        let at_level = |level: u32| index(from * LARGE_PAGE_BYTES, level);
        let (mut upper, mut table, mut level) = (root, root, 3);
        while level > 1
            && let Some(lower) = present(table, at_level(level))
        {
            (upper, table, level) = (table, lower, level - 1);
        }
        let end = if level == 3 { USER_ENTRIES } else { FRAME_WORDS };
        match first_present(table, at_level(level), end) {
            Some(at) if level == 1 => {
                let next = at..(at + TABLES_AT_ONCE).min(end);
                next.for_each(|at| release(frames, table, at));
                Some(from)
            }
            Some(at) => {
                let shift = 9 * (level - 1);
                Some(((from >> shift) + (at - at_level(level)) as u64) << shift)
            }
            None if level < 3 => {
                release(frames, upper, at_level(level + 1));
                Some(from)
            }
            None => {
                self.forget(space, 0, u64::MAX);
                self.roots[number(space)] = self.kernel_root;
                self.loads[number(space)] = self.kernel_root;
                frames.give_back(root);
                None
            }
        }
    }

    /// Maps `pages` frames from `frame` on, filled with zeros before if the flags say so.
    pub fn map(&mut self, pool: &mut Frames, space: Space, address: u64, frame: u64, pages: u64, flags: u64) -> Mapped {
        let wanted = (0..pages).map(|page| frame + page * PAGE_BYTES);
        let is_memory = wanted.clone().all(|frame| pool.is_user_ram(frame));
        if !is_memory && (flags & map::ZERO != 0 || !wanted.clone().all(|frame| pool.may_map(frame))) {
            return Mapped { pages: 0, result: Err(Errno::EINVAL) };
        }
        if flags & map::ZERO != 0 {
            // SAFETY: RAM outside the kernel, to which no reference exists.
            wanted.for_each(|frame| unsafe { physical::zero_frame(frame) });
        }
        let rights = rights_of(flags)[is_memory as usize];
        let mut done = 0;
        for run in runs(address, pages) {
            let Some(table) = self.make_leaf_table(pool, space, run.address) else {
                return Mapped { pages: done, result: Err(Errno::ENOMEM) };
            };
            for page in 0..run.pages {
                let at = run.first + page as usize;
                let old = read(table, at);
                write(table, at, (frame + (done + page) * PAGE_BYTES) | rights);
                if old & bit::PRESENT != 0 {
                    self.forget(space, run.address + page * PAGE_BYTES, 1);
                }
            }
            done += run.pages;
        }
        Mapped { pages: done, result: Ok(()) }
    }

    /// Changes the rights of what is mapped in a range, or removes it, without flags.
    pub fn change(&mut self, space: Space, address: u64, pages: u64, flags: Option<u64>) {
        // Uncached and combined pages stay so, and no other page becomes copyable: that is a matter of the memory, not of the rights.
        let (kept, rights) = (bit::FRAME | bit::UNCACHED, flags.map(rights_of));
        for run in runs(address, pages) {
            let Some(table) = self.leaf_table(space, run.address) else { continue };
            let Some(rights) = rights else {
                // SAFETY: entries of one table of this space.
                unsafe { physical::pointer::<u64>(table).add(run.first).write_bytes(0, run.pages as usize) };
                continue;
            };
            for at in run.first..run.first + run.pages as usize {
                if let entry @ 1.. = read(table, at) {
                    write(table, at, entry & kept | rights[(entry & bit::MEMORY != 0) as usize]);
                }
            }
        }
        self.forget(space, address, pages);
    }

    /// Copies what is mapped in a range to the same addresses of another space; neither may write it afterwards.
    pub fn copy_range(&mut self, frames: &mut Frames, from: Space, to: Space, address: u64, pages: u64) -> Mapped {
        let mut done = 0;
        let mut result = Ok(());
        for run in runs(address, pages) {
            if let Some(source) = self.leaf_table(from, run.address) {
                let Some(target) = self.make_leaf_table(frames, to, run.address) else {
                    result = Err(Errno::ENOMEM);
                    break;
                };
                for at in run.first..run.first + run.pages as usize {
                    let entry = read(source, at);
                    if entry != 0 {
                        write(source, at, entry & !bit::WRITE);
                        write(target, at, entry & !bit::WRITE);
                    }
                }
            }
            done += run.pages;
        }
        self.forget(from, address, done);
        self.forget(to, address, done);
        Mapped { pages: done, result }
    }

    /// Translates addresses that user mode could read, or write.
    pub fn walk<const WRITE: bool>(&self, space: Space) -> Walk<'_, WRITE> {
        Walk { spaces: self, space, region: u64::MAX, table: 0 }
    }

    /// Physical address of bytes within a page, at least one, if user mode could read or write them; mostly without a walk.
    #[inline(always)]
    pub fn within_page<const WRITE: bool>(&mut self, space: Space, address: u64, bytes: u64) -> Option<u64> {
        let kept = self.recent.find::<WRITE>(number(space), address, bytes);
        kept.or_else(|| self.walk_within_page::<WRITE>(space, address, bytes))
    }

    #[inline(never)]
    fn walk_within_page<const WRITE: bool>(&mut self, space: Space, address: u64, bytes: u64) -> Option<u64> {
        let fits = address < USER_END && bytes <= PAGE_BYTES - address % PAGE_BYTES;
        let physical = if fits { self.walk::<WRITE>(space).translate(address).ok()? } else { return None };
        self.recent.keep::<WRITE>(number(space), address, physical);
        Some(physical)
    }

    #[inline(always)]
    fn load_root(&mut self, root: u64) {
        if root != self.loaded {
            self.loaded = root;
            // SAFETY: every root has the kernel's half.
            unsafe { cpu::write_cr3(root) };
        }
    }

    /// The table of the last level for this address, if there is one.
    #[inline(always)]
    fn leaf_table(&self, space: Space, address: u64) -> Option<u64> {
        let mut table = self.roots[number(space)];
        for level in [3, 2, 1] {
            table = present(table, index(address, level))?;
        }
        Some(table)
    }

    /// The same, made when it is missing; `None` when the pool is empty.
    fn make_leaf_table(&mut self, frames: &mut Frames, space: Space, address: u64) -> Option<u64> {
        let mut table = self.roots[number(space)];
        if table == self.kernel_root {
            return None;
        }
        for level in [3, 2, 1] {
            let at = index(address, level);
            if read(table, at) & bit::PRESENT == 0 {
                write(table, at, frames.take()? | TABLE);
            }
            table = read(table, at) & bit::FRAME;
        }
        Some(table)
    }

    fn forget(&mut self, space: Space, address: u64, pages: u64) {
        self.recent.forget(number(space));
        match (self.loads[number(space)] == self.loaded, pages) {
            (false, _) if self.tags == 0 => {}
            (false, _) => cpu::invalidate_space(number(space)),
            (true, ..=FEW_PAGES) => (0..pages).for_each(|at| cpu::invalidate_page(address + at * PAGE_BYTES)),
            // SAFETY: the root in use, loaded again.
            (true, _) => unsafe { cpu::write_cr3(self.loaded & !cpu::KEEP_TRANSLATIONS) },
        }
    }
}

/// Translates addresses of one space, for reading or for writing, and remembers the last table it went through.
pub struct Walk<'a, const WRITE: bool> {
    spaces: &'a Spaces,
    space: Space,
    /// What the table maps: address divided by that size.
    region: u64,
    table: u64,
}

impl<const WRITE: bool> Walk<'_, WRITE> {
    const ACCESS: u64 = if WRITE { ACCESS_WRITE } else { 0 };
    /// What is copyable is present.
    const NEEDED: u64 = if WRITE { bit::COPYABLE | bit::WRITE } else { bit::COPYABLE };

    /// Physical address of a user address, if user mode could access it so, and it is memory.
    #[inline(always)]
    pub fn translate(&mut self, address: u64) -> Result<u64, Fault> {
        if address / LARGE_PAGE_BYTES != self.region {
            self.table = self.spaces.leaf_table(self.space, address).ok_or(Fault { address, access: Self::ACCESS })?;
            self.region = address / LARGE_PAGE_BYTES;
        }
        let entry = read(self.table, index(address, 0));
        if entry & Self::NEEDED != Self::NEEDED {
            return Err(Fault { address, access: ((entry & bit::PRESENT) * ACCESS_PRESENT) | Self::ACCESS });
        }
        Ok((entry & bit::FRAME) | (address % PAGE_BYTES))
    }

    /// How many pages from the one of `address`, which was translated last, the same table maps at most.
    pub fn pages_left(&self, address: u64) -> u64 {
        (FRAME_WORDS - index(address, 0)) as u64
    }

    /// The frame `page` pages after the one of `address`, which was translated last; `page` is less than `pages_left`.
    #[inline(always)]
    pub fn frame_after(&self, address: u64, page: u64) -> Option<u64> {
        let entry = read(self.table, index(address, 0) + page as usize);
        (entry & Self::NEEDED == Self::NEEDED).then_some(entry & bit::FRAME)
    }
}

fn number(space: Space) -> usize {
    space.0 as usize % ROOTS
}

/// Cuts a range where tables of the last level end.
fn runs(address: u64, pages: u64) -> impl Iterator<Item = Run> {
    let mut next = address;
    let end = address + pages * PAGE_BYTES;
    core::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let first = index(next, 0);
        let pages = ((end - next) / PAGE_BYTES).min((FRAME_WORDS - first) as u64);
        let run = Run { address: next, first, pages };
        next += pages * PAGE_BYTES;
        Some(run)
    })
}

/// The bits of an entry for these flags of `layout::map`: when its frame is no RAM that processes may have, and when it is.
fn rights_of(flags: u64) -> [u64; 2] {
    let bits = |is_set: bool, bits: u64| if is_set { bits } else { 0 };
    let memory = bits(flags & (map::UNCACHED | map::COMBINED) == 0, bit::MEMORY);
    if flags & map::NONE != 0 {
        return [bit::KEPT, bit::KEPT | memory];
    }
    let caching = bits(flags & map::UNCACHED != 0, bit::UNCACHED) | bits(flags & map::COMBINED != 0, bit::COMBINED);
    let rights = bits(flags & map::WRITE != 0, bit::WRITE) | bits(flags & map::EXECUTE == 0, bit::NO_EXECUTE);
    let all = bit::PRESENT | bit::USER | rights | caching;
    [all, all | memory | memory >> 1]
}

/// The table that an entry of a table leads to.
fn present(table: u64, at: usize) -> Option<u64> {
    let entry = read(table, at);
    (entry & bit::PRESENT != 0).then_some(entry & bit::FRAME)
}

/// The first entry from `first` on that leads to a table; none before `first` in its block of eight does. Most tables are nearly empty.
fn first_present(table: u64, first: usize, end: usize) -> Option<usize> {
    const BLOCK: usize = 8;
    let entries = |block: usize| block * BLOCK..(block + 1) * BLOCK;
    let is_used = |block: &usize| entries(*block).fold(0, |all, at| all | read(table, at)) & bit::PRESENT != 0;
    let block = (first / BLOCK..end / BLOCK).find(is_used)?;
    entries(block).find(|&at| present(table, at).is_some())
}

/// Gives back the table that an entry leads to, if there is one; nothing is below it any more.
fn release(frames: &mut Frames, table: u64, at: usize) {
    if let Some(lower) = present(table, at) {
        frames.give_back(lower);
        write(table, at, 0);
    }
}
