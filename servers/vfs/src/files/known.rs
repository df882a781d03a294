//! What vfs knows of a file's `struct stat`, so that it need not ask the file system again.
//!
//! Invariant: what is kept is what the file system would reply now. It holds because a file changes through vfs alone: each request that may
//! change it is made within a [`Change`], during which nothing is told, and a reply that was on its way meanwhile is not kept afterwards. What was
//! known before is forgotten, unless the change is one of attributes ([`AttributeChange`]), whose reply says what has become of them. What
//! a read changes, the time of last access, the file system tells in its reply; not if it has died in between and the successor has done the
//! read again, so that a reply of a successor counts as a change. Files that change by themselves (procfs, devpts) are never kept.
//! Neighbours: `inode` (which has one), `nodes` and `mappings` (whose requests change files).

use super::{inode::Inode, stat::Stat, vnode::NodeRef};
use abi::Endpoint;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};

/// What the file system has heard of reads of a file, which set its time of last access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// Nothing since the file is in use.
    Nothing,
    /// Nothing since the file has changed.
    NothingSince,
    /// A read in this hour of the page cache: another one in it would change nothing.
    Read(u64),
}

/// The `struct stat` of a file, if it is known.
#[derive(Debug)]
pub struct KnownStat {
    stat: RefCell<Option<Stat>>,
    /// The incarnation of the file system that has replied it.
    source: Cell<Endpoint>,
    /// Changes in progress.
    changes: Cell<u32>,
    /// Counts the changes that have ended, and the reads that were changes.
    version: Cell<u64>,
    heard: Cell<Heard>,
    /// When the dirty pages of the file were written last, in ns since 1970; 0: it has none.
    written_ns: Cell<u64>,
    /// Its size, if the file system has not heard of it: then its last page is dirty, and no other. Else 0.
    new_size: Cell<u64>,
}

impl Default for KnownStat {
    fn default() -> KnownStat {
        let (source, changes, version) = (Cell::new(Endpoint::NONE), Cell::new(0), Cell::new(0));
        let (heard, written_ns, new_size) = (Cell::new(Heard::Nothing), Cell::new(0), Cell::new(0));
        KnownStat { stat: RefCell::new(None), source, changes, version, heard, written_ns, new_size }
    }
}

impl KnownStat {
    /// A mark of this moment for [`KnownStat::learn`], before the file system is asked.
    pub fn version(&self) -> u64 {
        self.version.get()
    }

    /// Keeps the reply of `source` to a request made at this version, unless the file has changed since, or is changing.
    pub fn learn(&self, stat: &Stat, source: Endpoint, version: u64) {
        if self.changes.get() == 0 && self.version.get() == version {
            self.source.set(source);
            self.stat.replace(Some(self.corrected(*stat)));
        }
    }

    /// What a file system that has not heard of the dirty pages says, as it is.
    pub fn corrected(&self, mut stat: Stat) -> Stat {
        match self.written_ns.get() {
            0 => {}
            written_ns => stat.set_written(written_ns),
        }
        stat.lengthen(self.new_size.get());
        stat
    }

    /// A program has appended to the file, whose last page is dirty: it has this size now.
    pub(super) fn has_grown(&self, size: u64) {
        self.new_size.set(size);
        self.forget();
    }

    /// Its size, if the file system has not heard of it; else 0.
    pub(super) fn new_size(&self) -> u64 {
        self.new_size.get()
    }

    /// A program has written over pages that are dirty now. What is known stays known, but for the times.
    pub(super) fn was_written(&self, now_ns: u64) {
        self.written_ns.set(now_ns);
        self.begin_version();
        if let Some(stat) = self.stat.borrow_mut().as_mut() {
            stat.set_written(now_ns);
        }
    }

    /// That time; 0: the file has no dirty pages.
    pub(super) fn written_ns(&self) -> u64 {
        self.written_ns.get()
    }

    /// The file has no dirty pages any more.
    pub(super) fn is_written_back(&self) {
        self.written_ns.set(0);
        self.new_size.set(0);
    }

    /// Returns what `use_it` makes of it; `None`: the file system has to be asked.
    #[inline]
    pub fn with<R>(&self, use_it: impl FnOnce(&Stat) -> R) -> Option<R> {
        if self.changes.get() > 0 {
            return None;
        }
        self.stat.borrow().as_ref().map(use_it)
    }

    /// Another version begins, of which what is known may be true still.
    fn begin_version(&self) {
        self.version.set(self.version.get() + 1);
    }

    /// Forgets it: the file has changed.
    pub fn forget(&self) {
        self.begin_version();
        *self.stat.borrow_mut() = None;
    }

    /// The version before the file is read; `None`: it is changing.
    pub fn unchanging(&self) -> Option<u64> {
        (self.changes.get() == 0).then_some(self.version.get())
    }

    /// Whether the file system need not hear of another read in this hour: it would change nothing.
    #[inline]
    pub fn is_read_in(&self, hour: u64) -> bool {
        self.heard.get() == Heard::Read(hour)
    }

    /// Whether the file has changed, and was not read since.
    pub fn is_changed(&self) -> bool {
        self.heard.get() == Heard::NothingSince
    }

    /// As [`KnownStat::was_read`], in this hour. Returns whether the file has been the same since this version.
    pub fn was_read_since(&self, version: u64, hour: u64, source: Endpoint, accessed_ns: u64) -> bool {
        let is_same = self.was_read(Some(version), source, accessed_ns);
        self.heard.set(if is_same { Heard::Read(hour) } else { Heard::NothingSince });
        is_same
    }

    /// The file was read, as `source` replies, with the time of last access that `fs::Read` tells. `version`: before it was asked, if the file was
    /// not changing. Returns whether the file has been the same since.
    #[inline]
    pub fn was_read(&self, version: Option<u64>, source: Endpoint, accessed_ns: u64) -> bool {
        let is_same = version.is_some() && self.unchanging() == version;
        if source != self.source.get() || accessed_ns != u64::MAX && !is_same {
            self.forget();
        } else if accessed_ns != u64::MAX {
            self.was_accessed(accessed_ns);
        }
        is_same
    }

    /// The time of last access is another one. A reply that is on its way may still have the old one.
    fn was_accessed(&self, ns: u64) {
        self.version.set(self.version.get() + 1);
        if let Some(stat) = self.stat.borrow_mut().as_mut() {
            stat.set_accessed(ns);
        }
    }
}

/// What a change may do to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Anything; the file has been settled.
    Everything,
    /// It writes, and makes no holes; the file has been settled.
    Content,
    /// It writes a dirty page.
    DirtyPage,
    /// It takes a name of the file; dirty pages stay what they are.
    Name,
    /// Attributes that its reply tells; the file has been settled.
    Attributes,
}

/// Changes of a few files in progress, from before the request until after the reply.
#[derive(Debug)]
pub struct Change<const N: usize> {
    inodes: [Option<Rc<Inode>>; N],
    /// What it may take of the file system's room: see `room`.
    bytes: u64,
    /// What is known of the files is true, as the reply has it.
    was_told: bool,
}

impl<const N: usize> Change<N> {
    /// Begins changes of these files, which have been settled.
    pub fn new(nodes: [Option<&NodeRef>; N]) -> Change<N> {
        Change::begin(nodes, Extent::Everything, 0)
    }

    /// Begins changes that may give so many bytes of these files space.
    pub fn filling(nodes: [Option<&NodeRef>; N], bytes: u64) -> Change<N> {
        Change::begin(nodes, Extent::Everything, bytes)
    }

    /// Begins changes that take a name of these files.
    pub(super) fn removing(nodes: [Option<&NodeRef>; N]) -> Change<N> {
        Change::begin(nodes, Extent::Name, 0)
    }

    fn begin(nodes: [Option<&NodeRef>; N], extent: Extent, content_bytes: u64) -> Change<N> {
        let room = nodes.iter().flatten().next().map(|node| node.file_system().room());
        // A dirty page has its space, or was counted when it was written; to remove a name takes none.
        let room = room.filter(|_| !matches!(extent, Extent::DirtyPage | Extent::Name));
        let bytes = room.map_or(0, |room| room.begin(content_bytes));
        let inodes = nodes.map(|node| {
            let inode = node?.inode().clone();
            let is_settled = matches!(extent, Extent::DirtyPage | Extent::Name) || !inode.dirty().is_any();
            debug_assert!(is_settled, "what changes a file settles it before");
            inode.dirty().change_begins(matches!(extent, Extent::Content | Extent::DirtyPage));
            let known = inode.known_stat();
            known.changes.set(known.changes.get() + 1);
            match extent {
                Extent::Attributes => known.begin_version(),
                _ => known.forget(),
            }
            known.heard.set(Heard::NothingSince);
            inode.file_system().shared().note_change();
            Some(inode)
        });
        Change { inodes, bytes, was_told: false }
    }
}

impl Change<1> {
    /// Begins a change of one file, which has been settled.
    pub fn of(node: &NodeRef) -> Change<1> {
        Change::new([Some(node)])
    }

    /// Begins a write of so many bytes, which makes no holes.
    pub fn writing(node: &NodeRef, bytes: u64) -> Change<1> {
        Change::begin([Some(node)], Extent::Content, bytes)
    }

    /// The version of the file, if no other change of it is in progress, and nobody has mapped it shared: until this is another one, the file has changed in no other way.
    pub fn alone(&self) -> Option<u64> {
        let inode = self.inodes[0].as_ref().filter(|inode| inode.shared_object().is_none())?;
        let known = inode.known_stat();
        (known.changes.get() == 1).then_some(known.version.get())
    }

    /// Begins a write of a dirty page.
    pub(super) fn of_dirty(node: &NodeRef) -> Change<1> {
        Change::begin([Some(node)], Extent::DirtyPage, 0)
    }
}

impl<const N: usize> Drop for Change<N> {
    fn drop(&mut self) {
        if let Some(inode) = self.inodes.iter().flatten().next() {
            inode.file_system().room().end(self.bytes);
        }
        for inode in self.inodes.iter().flatten() {
            let known = inode.known_stat();
            known.changes.set(known.changes.get() - 1);
            match self.was_told {
                true => known.begin_version(),
                false => known.forget(),
            }
            inode.file_system().shared().note_change();
        }
    }
}

/// A change of a file's attributes in progress, whose reply says what they are since.
#[derive(Debug)]
pub struct AttributeChange {
    change: Change<1>,
    /// When it began.
    version: u64,
}

impl AttributeChange {
    /// Begins a change of a file that has been settled.
    pub fn of(node: &NodeRef) -> AttributeChange {
        let change = Change::begin([Some(node)], Extent::Attributes, 0);
        AttributeChange { change, version: node.known_stat().version() }
    }

    /// Ends the change: `update` sets what `source` has replied, which is links, mode, owner, space and times. All else stays as it was known before; of a regular file of
    /// which nothing was known, all is known then. Nothing is known afterwards if the file has changed otherwise meanwhile, if another incarnation has told what was
    /// known before, or without this.
    pub fn told(mut self, source: Endpoint, update: impl FnOnce(&mut Stat)) {
        let [Some(inode)] = &self.change.inodes else { return };
        let known = inode.known_stat();
        let mut kept = known.stat.borrow_mut();
        self.change.was_told = known.version.get() == self.version && (kept.is_none() || known.source.get() == source);
        if !self.change.was_told {
            return;
        }
        if kept.is_none() {
            *kept = inode.stat_of_content();
            known.source.set(source);
        }
        if let Some(stat) = kept.as_mut() {
            update(stat);
        }
    }
}

/// The moment before a file is asked for by its name, when it is not known yet which one it is.
pub struct Moment {
    changes: u64,
    asked: Endpoint,
}

impl Moment {
    /// The present one; `asked`: the incarnation of the file system of `directory`.
    pub fn now(directory: &NodeRef, asked: Endpoint) -> Moment {
        Moment { changes: directory.file_system().shared().changes(), asked }
    }

    /// Keeps what `source` has replied of a file, unless any file has changed since, or it was another incarnation.
    pub fn learn(&self, node: &NodeRef, source: Endpoint, stat: &Stat) {
        if self.changes == node.file_system().shared().changes() && self.asked == source {
            node.known_stat().learn(stat, source, node.known_stat().version());
        }
    }
}

#[cfg(test)]
mod tests;
