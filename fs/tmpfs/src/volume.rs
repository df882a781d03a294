//! A mounted tmpfs: mounting, time, and who uses an inode.
//!
//! The other modules add the methods of their topic: `data` (content), `naming` and `rename` (names), `xattr`, and `file_system` (the trait).

use fs::Errno;
use fs::file_system::{NodeId, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, Statistics};
use recover::transaction::Undo;
use sys::keep::Part;

use crate::entry::{self, Name};
use crate::inode::{self, Inode, ROOT, SHORT_TARGET};
use crate::map::{self, MAX_PAGES};
use crate::memory::Memory;
use crate::pages;
use crate::plan::Plan;

/// The kind in `statfs`.
const TMPFS_MAGIC: u64 = 0x0102_1994;
/// The root directory is every user's.
const ROOT_MODE: u32 = S_IFDIR | 0o1777;

/// What the area of a file system begins with.
const FORMAT: u64 = 0x736b_746d_7066_0001;
const FORMAT_PLACE: usize = 0;
const IDENTITY: usize = 8;

/// Maps that are taken apart after one request.
const RECLAIMED_AT_ONCE: usize = 32;
/// Free pages with which every request can begin: more than one transaction of a write takes.
const ENOUGH_PAGES: u32 = 256;

/// How to mount.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Refuse every change.
    pub read_only: bool,
    /// The time of day, in nanoseconds since 1970.
    pub clock: fn() -> u64,
}

/// What is new in a new file system.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its sizes.
    pub plan: Plan,
    /// Its identity in `statfs`.
    pub identity: u64,
    /// A number that no program knows.
    pub seed: u64,
}

/// A mounted file system.
pub struct Tmpfs {
    pub(crate) memory: Memory,
    options: Options,
    /// What a successor is told, to find the area.
    area: u64,
    /// The time of the current request, once it has been read.
    time: Option<u64>,
    /// The time of a recent request.
    recent: u64,
    /// The time of last access that the current request has set, of which vfs has not been told.
    accessed_ns: Option<u64>,
}

impl Tmpfs {
    /// Mounts a new, empty file system in `part`, which is area number `area`.
    pub fn mount(part: Part, area: u64, undo: Undo, options: Options, format: Format) -> Tmpfs {
        let mut volume = Tmpfs::of(part, area, undo, options, format.plan);
        let now = volume.now();
        let memory = &mut volume.memory;
        // What another file system has left there would count.
        memory.discard(0..format.plan.bytes());
        pages::format(memory);
        inode::format(memory);
        entry::format(memory, format.seed);
        let root = Inode::take(memory, ROOT_MODE, (0, 0), now);
        root.set_links(memory, 2);
        root.set_parent(memory, root);
        memory.put(IDENTITY, format.identity);
        memory.put(FORMAT_PLACE, FORMAT);
        volume
    }

    /// Goes on with the file system that a predecessor has mounted, and described by its memo. `EIO` if there is none.
    pub fn resume(part: Part, undo: Undo, options: Options, memo: [u64; 4]) -> Result<Tmpfs, Errno> {
        let [area, pages, ..] = memo;
        let volume = Tmpfs::of(part, area, undo, options, Plan::of_pages(pages as usize));
        if volume.memory.word(FORMAT_PLACE) == FORMAT { Ok(volume) } else { Err(Errno::EIO) }
    }

    fn of(part: Part, area: u64, undo: Undo, options: Options, plan: Plan) -> Tmpfs {
        let memory = Memory::new(part, undo, plan);
        Tmpfs { memory, options, area, time: None, recent: 0, accessed_ns: None }
    }

    /// Returns what a successor has to know.
    pub(crate) fn own_memo(&self) -> [u64; 4] {
        [self.area, self.memory.places().plan().pages() as u64, 0, 0]
    }

    /// Begins a request, whose time is not read yet. Commits the request before if its caller, a test without server, has not.
    #[inline]
    pub(crate) fn begin(&mut self) {
        (self.time, self.accessed_ns) = (None, None);
        if self.memory.is_changed() {
            self.memory.commit();
        }
    }

    /// Begins a request, unless it is the end of one that has changed something.
    pub(crate) fn begin_or_go_on(&mut self) {
        if !self.memory.is_changed() {
            self.begin();
        }
    }

    /// Begins a request that changes something. `EROFS` on a read-only file system.
    #[inline]
    pub(crate) fn begin_change(&mut self) -> Result<(), Errno> {
        self.begin();
        if self.options.read_only {
            return Err(Errno::EROFS);
        }
        while pages::free(&self.memory) < ENOUGH_PAGES && pages::is_reclaimable(&self.memory) {
            self.reclaim_some();
        }
        Ok(())
    }

    /// Commits what a long request has done so far, if that is much. The rest must make sense alone.
    pub(crate) fn pause(&mut self) {
        if self.memory.is_crowded() {
            self.memory.commit();
        }
    }

    /// Takes some maps apart that no file needs any more, as a transaction of its own.
    pub(crate) fn reclaim_some(&mut self) {
        if !self.memory.may_have_maps() {
            return;
        }
        if !pages::is_reclaimable(&self.memory) {
            return self.memory.note_maps(self.memory.is_changed());
        }
        (0..RECLAIMED_AT_ONCE).for_each(|_| pages::reclaim(&mut self.memory));
        self.memory.commit();
    }

    /// Returns the time of the current request; reads the clock once per request.
    pub(crate) fn now(&mut self) -> u64 {
        let now = *self.time.get_or_insert_with(self.options.clock);
        self.recent = now;
        now
    }

    /// Sets the time of last access when it is due: reading a file seldom changes its inode (Linux's `relatime`).
    pub(crate) fn note_access(&mut self, inode: Inode) {
        const INTERVAL_NS: u64 = 24 * 60 * 60 * 1_000_000_000;
        let (accessed, changed) = inode.access_times(&self.memory);
        let is_due = accessed <= changed || self.recent.saturating_sub(accessed) >= INTERVAL_NS;
        if is_due && !self.options.read_only {
            let now = self.now();
            inode.save(&self.memory);
            inode.set_accessed(&mut self.memory, now);
            self.accessed_ns = Some(now);
        }
    }

    /// The time that `note_access` has set since the last call of this.
    pub(crate) fn take_accessed_ns(&mut self) -> Option<u64> {
        self.accessed_ns.take()
    }

    /// Returns the inode of a node. `ESTALE`.
    #[inline]
    pub(crate) fn inode(&self, node: NodeId) -> Result<Inode, Errno> {
        Inode::open(&self.memory, node)
    }

    /// Returns a name in a directory. `ESTALE`, `ENOTDIR`, `ENAMETOOLONG`.
    #[inline]
    pub(crate) fn name<'a>(&self, dir: NodeId, text: &'a [u8]) -> Result<Name<'a>, Errno> {
        Name::new(&self.memory, self.inode(dir)?, text)
    }

    /// Counts one user more. `ENFILE`.
    pub(crate) fn add_user(&mut self, inode: Inode) -> Result<(), Errno> {
        let uses = inode.uses(&self.memory).checked_add(1).ok_or(Errno::ENFILE)?;
        inode.save(&self.memory);
        inode.set_uses(&mut self.memory, uses);
        Ok(())
    }

    /// Subtracts users, and frees an inode without user and name. `EINVAL` if it has fewer.
    pub(crate) fn drop_users(&mut self, inode: Inode, count: u32) -> Result<(), Errno> {
        let uses = inode.uses(&self.memory).checked_sub(count).ok_or(Errno::EINVAL)?;
        inode.save(&self.memory);
        inode.set_uses(&mut self.memory, uses);
        self.delete_if_unused(inode);
        Ok(())
    }

    /// Whether an inode other than the root is in use.
    pub(crate) fn has_users(&self) -> bool {
        Inode::all(&self.memory).any(|inode| inode.number() != ROOT && inode.uses(&self.memory) > 0)
    }

    /// Replaces all use counts by those in `uses`, sorted by node.
    pub(crate) fn replace_uses(&mut self, uses: &[(NodeId, u32)]) {
        for number in Inode::numbers(&self.memory) {
            let Ok(inode) = self.inode(number.into()) else { continue };
            let found = uses.binary_search_by_key(&u64::from(inode.number()), |&(node, _)| node);
            let count = found.map_or(0, |at| uses[at].1);
            if inode.uses(&self.memory) != count {
                inode.save(&self.memory);
                inode.set_uses(&mut self.memory, count);
                self.delete_if_unused(inode);
                self.pause();
            }
        }
    }

    /// Frees an inode that has neither user nor name.
    pub(crate) fn delete_if_unused(&mut self, inode: Inode) {
        let memory = &mut self.memory;
        if inode.links(memory) > 0 || inode.uses(memory) > 0 {
            return;
        }
        let is_long_link = inode.size(memory) > SHORT_TARGET as u64;
        match inode.mode(memory) & S_IFMT {
            S_IFREG => map::clear(memory, inode, 0..MAX_PAGES),
            S_IFLNK if is_long_link => pages::release(memory, memory.half(inode.pointer(0)), 0),
            _ => {}
        }
        let attributes = inode.attribute_page(memory);
        if attributes != 0 {
            pages::release(memory, attributes, 0);
        }
        inode.free(memory);
    }

    /// Returns the figures for `statfs`.
    pub(crate) fn figures(&self) -> Statistics {
        let id = self.memory.word(IDENTITY);
        let mut figures =
            Statistics { kind: TMPFS_MAGIC, id, read_only: self.options.read_only, ..Statistics::default() };
        pages::count(&self.memory, &mut figures);
        inode::count(&self.memory, &mut figures);
        figures
    }
}
