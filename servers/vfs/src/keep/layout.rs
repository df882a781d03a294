//! Which tables preserved memory has, how large they are, and in which order they lie.
//!
//! [`LAYOUT`] is computed from the text of this file and of those that say what a record or text consists of, without comments and
//! blanks. So a vfs whose layout differs never takes a predecessor's memory for its own.

use super::{
    LastCall,
    extents::Extents,
    pool::{Pool, RESERVE, SHARE, scaled},
    queues,
    records::*,
    text::Texts,
};
use abi::{
    container::CONTAINERS,
    endpoint::SLOTS,
    limits,
    vfs::{AIO_REQUESTS, INOTIFY_USER_INSTANCES},
};
use alloc::{boxed::Box, vec::Vec};
use core::cell::{Cell, RefCell};
use recover::records::{Area, Cells, Found, Record, Recover, Table};
use server::quota::{Quota, Shares};
use sys::keep::Keep;

/// Bytes of preserved memory: `keep_bytes` of the system file is at least this.
pub const KEEP_BYTES: usize = scaled(0x1010_0000, 0x70_0000);
/// Words that change in one turn.
const LOG_CHANGES: usize = scaled(32768, 4096);
/// Bytes of a page of a pipe.
pub const PIPE_PAGE: usize = 4096;
/// Bytes of a page of a file.
pub const FILE_PAGE: usize = abi::layout::PAGE_BYTES as usize;

const TABLES: usize = SLOTS;
const DESCRIPTOR_BLOCKS: usize = scaled(262_144, 512);
/// Enough for all blocks, if each table has one list that is not full.
const DESCRIPTOR_LISTS: usize = DESCRIPTOR_BLOCKS / LIST + TABLES;
const FILES: usize = scaled(131_072, 128);
/// Pipes, FIFOs that are open, and two for each pair of sockets.
const PIPES: usize = scaled(8192, 32);
/// Pages of pipes beyond the two that every pipe has: bytes of its least capacity may lie across a page's end.
const SHARED_PIPE_PAGES: usize = scaled(16384, 64);
/// Freed pages are used again in the next turn only; so many more let a read of one pipe admit the writers that wait for it.
const SPARE_PIPE_PAGES: usize = scaled(256, 4);
const PIPE_PAGES: usize = 2 * PIPES + SHARED_PIPE_PAGES + SPARE_PIPE_PAGES;
/// Pages of files that are written back later: 16 MiB.
const DIRTY_PAGES: usize = scaled(4096, 16);
const LOCKS: usize = scaled(2048, 32);
/// Owners of open files, with their leases.
const OWNERS: usize = scaled(2048, 32);
const MOUNTS: usize = scaled(1024, 64);
/// Message queues (`queues_max` of mq_overview(7)).
const QUEUES: usize = scaled(limits::POSIX_QUEUES, 32);
const MESSAGE_PLACES: usize = 0x20_0000 / queues::PLACE_BYTES / scaled(1, 8);
const SIGNALS: usize = scaled(2048, 32);
const TIMERS: usize = scaled(2048, 256);
/// Registrations of epolls.
const INTERESTS: usize = scaled(131_072, 512);
/// Of them, those of devices: each has a request at its device while somebody waits.
const DEVICE_INTERESTS: usize = 128;
/// Sockets, those of connections that nobody has accepted included.
const SOCKETS: usize = scaled(8192, 64);
/// What goes with bytes and messages of sockets: up to `CARRIED` open files each.
pub(super) const ANCILLARIES: usize = scaled(16_384, 64);
/// Watches of inotify instances; each keeps a file in use.
const WATCHES: usize = scaled(8192, 64);
/// Events that they have not given yet.
const FILE_EVENTS: usize = scaled(65_536, 256);
/// Inotify instances: `max_user_instances` for one user.
const INSTANCES: usize = 2 * INOTIFY_USER_INSTANCES as usize;
/// Requests of all contexts of asynchronous I/O, each with a place for its completion, and these contexts.
const REQUESTS: usize = scaled(AIO_REQUESTS as usize, 256);
const CONTEXTS: usize = scaled(1024, 32);
pub(super) const PEERS: usize = 32;

/// Limit of the name cache, whatever the machine's memory: beyond it a larger one gains little.
const NAMES: usize = 1 << 17;
/// Limit of the page cache: 2 GiB.
const CACHED_PAGES: usize = scaled(1 << 19, 256);

/// How much of the tables is used: it grows with the machine's memory, so that a full table cannot exhaust that.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    descriptors: usize,
    files: usize,
    pipes: usize,
    pipe_pages: usize,
    interests: usize,
    names: usize,
    cached_pages: usize,
    dirty_pages: usize,
}

impl Sizes {
    /// What the tables have places for.
    pub const WHOLE: Sizes = Sizes {
        descriptors: DESCRIPTOR_BLOCKS * BLOCK,
        files: FILES,
        pipes: PIPES,
        pipe_pages: SHARED_PIPE_PAGES,
        interests: INTERESTS,
        names: NAMES,
        cached_pages: CACHED_PAGES,
        dirty_pages: DIRTY_PAGES,
    };

    /// Sizes for a machine with so many bytes of memory.
    pub fn for_memory(bytes: u64) -> Sizes {
        let within = |bytes_each: u64, places: usize| places.min((bytes / bytes_each) as usize);
        Sizes {
            descriptors: within(192, Sizes::WHOLE.descriptors),
            files: within(8 << 10, Sizes::WHOLE.files),
            pipes: within(64 << 10, Sizes::WHOLE.pipes),
            pipe_pages: within(128 << 10, Sizes::WHOLE.pipe_pages),
            interests: within(8 << 10, Sizes::WHOLE.interests),
            names: within(32 << 10, Sizes::WHOLE.names),
            cached_pages: within(8 << 10, Sizes::WHOLE.cached_pages),
            dirty_pages: within(64 << 10, Sizes::WHOLE.dirty_pages),
        }
    }

    /// Open files.
    pub fn files(&self) -> usize {
        self.files
    }

    /// Names in the cache.
    pub fn names(&self) -> usize {
        self.names
    }

    /// Pages in the page cache: half of the memory, of which vm takes back what programs need.
    pub fn cached_pages(&self) -> usize {
        self.cached_pages
    }

    /// Registrations of epolls.
    pub fn interests(&self) -> usize {
        self.interests
    }

    /// Pipes.
    pub fn pipes(&self) -> usize {
        self.pipes
    }

    /// Open files that may be in flight.
    pub fn in_flight(&self) -> usize {
        ANCILLARIES * CARRIED
    }

    /// Pages of pipes beyond those that every pipe has.
    pub fn pipe_pages(&self) -> usize {
        self.pipe_pages
    }
}

/// Which layout this is: 24 bits.
const LAYOUT: u64 = {
    let texts = [include_str!("layout.rs"), include_str!("records.rs"), include_str!("text.rs")];
    (hash(texts[0], hash(texts[1], hash(texts[2], 0xcbf2_9ce4_8422_2325))) >> 32) & 0xff_ffff
};

/// FNV-1a over the code of a source file: comments and blanks do not count.
const fn hash(text: &str, mut hash: u64) -> u64 {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'/' && at + 1 < bytes.len() && bytes[at + 1] == b'/' {
            while at < bytes.len() && bytes[at] != b'\n' {
                at += 1;
            }
        } else {
            if !bytes[at].is_ascii_whitespace() {
                hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
            }
            at += 1;
        }
    }
    hash
}

/// A quota of `limit` entries: half of them for one user, some for the superuser alone.
pub fn quota(limit: usize) -> Shares {
    Shares::new(Quota::new(limit, limit / SHARE, limit / RESERVE))
}

/// Places of one table, and which of them are free.
#[derive(Debug)]
pub struct Places<R> {
    pub(super) table: Table<R>,
    pub(super) pool: Pool,
}

impl<R: Record> Places<R> {
    /// A table that users do not share.
    fn lay_out(recover: &Recover, count: usize) -> Self {
        Places { table: Table::lay_out(recover, count), pool: Pool::new(count) }
    }

    /// A table that users share, of which `limit` places are used.
    fn lay_out_shared(recover: &Recover, count: usize, limit: usize) -> Self {
        Places { table: Table::lay_out(recover, count), pool: Pool::shared(count, limit) }
    }
}

/// All tables, in the order in which they lie. What can be done with them is in `keep` and its other files.
#[derive(Debug)]
pub struct Store {
    pub(super) recover: Recover,
    pub(super) threads: Table<ThreadRecord>,
    pub(super) calls: Table<CallRecord>,
    pub(super) execs: Table<ExecRecord>,
    pub(super) tables: Places<TableRecord>,
    pub(super) lists: Places<ListRecord>,
    pub(super) descriptors: Cells,
    pub(super) blocks: Pool,
    pub(super) files: Places<FileRecord>,
    /// Of each open file its position, or what a kind without positions keeps there.
    pub(super) values: Cells,
    /// Of each open file its status flags.
    pub(super) flags: Cells,
    pub(super) directories: Places<DirectoriesRecord>,
    pub(super) pipes: Places<PipeRecord>,
    /// Of each pipe its extent.
    pub(super) pipe_extents: Cells,
    pub(super) pages: Places<NextRecord>,
    pub(super) content: Area,
    pub(super) dirty: Places<DirtyRecord>,
    /// What they hold.
    pub(super) dirty_content: Area,
    /// When they were written, in ns since 1970.
    pub(super) dirty_times: Area,
    pub(super) locks: Places<LockRecord>,
    pub(super) owners: Places<OwnerRecord>,
    pub(super) mounts: Places<MountRecord>,
    pub(super) queues: Places<QueueRecord>,
    pub(super) ended_queues: RefCell<Vec<(u16, QueueRecord)>>,
    /// Whether there are any: each turn that has changed something looks.
    pub(super) has_ended_queues: Cell<bool>,
    pub(super) runs: Extents,
    pub(super) messages: Cells,
    /// What the messages consist of.
    pub(super) slots: Area,
    pub(super) signals: Places<SignalRecord>,
    pub(super) timers: Places<TimerRecord>,
    pub(super) interests: Places<InterestRecord>,
    /// Of each registration its terms.
    pub(super) terms: Cells,
    /// Registrations of devices, by user.
    pub(super) device_interests: Shares,
    pub(super) sockets: Places<SocketRecord>,
    pub(super) ancillaries: Places<AncillaryRecord>,
    pub(super) watches: Places<WatchRecord>,
    pub(super) file_events: Places<FileEventRecord>,
    /// Inotify instances, by user.
    pub(super) instances: Shares,
    pub(super) contexts: Places<ContextRecord>,
    /// The rings of completed requests, which are runs of places.
    pub(super) completions: Table<CompletionRecord>,
    pub(super) rings: Extents,
    /// Places of rings, by user.
    pub(super) requests: Shares,
    pub(super) submissions: Table<SubmissionRecord>,
    pub(super) loops: Table<LoopRecord>,
    pub(super) limits: Table<LimitRecord>,
    pub(super) peers: Table<PeerRecord>,
    pub(super) global: Table<GlobalRecord>,
    pub(super) texts: Texts,
    pub(super) sizes: Sizes,
    /// Sizes of descriptor tables, by user.
    pub(super) table_sizes: Shares,
    /// The last call of each thread, by slot.
    pub(super) last_calls: Box<[LastCall; SLOTS]>,
    /// Results are to be noted although no record has changed.
    pub(super) moved: Cell<bool>,
    /// When a refusal was logged last, monotonic.
    pub(super) logged_ns: Cell<u64>,
}

impl Store {
    /// Opens preserved memory.
    pub fn open(keep: Keep, sizes: Sizes) -> (Store, Found) {
        let (recover, found) = Recover::open(keep, LAYOUT, LOG_CHANGES);
        let store = Store {
            threads: Table::lay_out(&recover, SLOTS),
            calls: Table::lay_out(&recover, SLOTS),
            execs: Table::lay_out(&recover, SLOTS),
            tables: Places::lay_out(&recover, TABLES),
            lists: Places::lay_out(&recover, DESCRIPTOR_LISTS),
            descriptors: Cells::lay_out(&recover, DESCRIPTOR_BLOCKS * BLOCK),
            blocks: Pool::new(DESCRIPTOR_BLOCKS),
            files: Places::lay_out_shared(&recover, FILES, sizes.files),
            values: Cells::lay_out(&recover, FILES),
            flags: Cells::lay_out(&recover, FILES),
            directories: Places::lay_out(&recover, TABLES),
            pipes: Places::lay_out(&recover, PIPES),
            pipe_extents: Cells::lay_out(&recover, PIPES),
            pages: Places::lay_out(&recover, PIPE_PAGES),
            content: Area::lay_out(&recover, PIPE_PAGES * PIPE_PAGE),
            dirty: Places::lay_out_shared(&recover, DIRTY_PAGES, sizes.dirty_pages),
            dirty_content: Area::lay_out_pages(&recover, DIRTY_PAGES),
            dirty_times: Area::lay_out(&recover, DIRTY_PAGES * size_of::<u64>()),
            locks: Places::lay_out_shared(&recover, LOCKS, LOCKS),
            owners: Places::lay_out_shared(&recover, OWNERS, OWNERS),
            mounts: Places::lay_out_shared(&recover, MOUNTS, MOUNTS),
            queues: Places::lay_out_shared(&recover, QUEUES, QUEUES),
            ended_queues: RefCell::default(),
            has_ended_queues: Cell::new(false),
            runs: Extents::new(MESSAGE_PLACES),
            messages: Cells::lay_out(&recover, MESSAGE_PLACES),
            slots: Area::lay_out(&recover, MESSAGE_PLACES * queues::PLACE_BYTES),
            signals: Places::lay_out_shared(&recover, SIGNALS, SIGNALS),
            timers: Places::lay_out_shared(&recover, TIMERS, TIMERS),
            interests: Places::lay_out_shared(&recover, INTERESTS, sizes.interests),
            terms: Cells::lay_out(&recover, INTERESTS),
            device_interests: quota(DEVICE_INTERESTS),
            sockets: Places::lay_out_shared(&recover, SOCKETS, SOCKETS),
            ancillaries: Places::lay_out_shared(&recover, ANCILLARIES, ANCILLARIES),
            watches: Places::lay_out_shared(&recover, WATCHES, WATCHES),
            file_events: Places::lay_out_shared(&recover, FILE_EVENTS, FILE_EVENTS),
            instances: quota(INSTANCES),
            contexts: Places::lay_out_shared(&recover, CONTEXTS, CONTEXTS),
            completions: Table::lay_out(&recover, REQUESTS),
            rings: Extents::new(REQUESTS),
            requests: quota(REQUESTS),
            submissions: Table::lay_out(&recover, SLOTS),
            loops: Table::lay_out(&recover, limits::LOOP_DEVICES),
            limits: Table::lay_out(&recover, CONTAINERS),
            peers: Table::lay_out(&recover, PEERS),
            global: Table::lay_out(&recover, 1),
            texts: Texts::lay_out(&recover, 2 * sizes.files),
            sizes,
            table_sizes: quota(sizes.descriptors),
            moved: Cell::new(false),
            logged_ns: Cell::new(0),
            last_calls: Box::new([const { LastCall::none() }; SLOTS]),
            recover,
        };
        store.settle_notes();
        (store, found)
    }
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn comments_and_blanks_do_not_change_the_layout_but_a_field_does() {
        let bare = hash("struct A { x: u64, y: u8 }", 1);
        assert_eq!(hash("// What it is.\nstruct A {\n    x: u64, // why\n    y: u8\n}", 1), bare);
        assert_ne!(hash("struct A { y: u8, x: u64 }", 1), bare);
    }
}
