//! The records in vfs's preserved memory: what a successor needs, in as few words as possible.
//! This file is long because it has every kind of record, each with its packing.
//!
//! Records refer to each other by place. What nobody refers to, beginning with threads and mounts, is free; so only the words that
//! refer are changed under the undo log. Neighbours: `keep` (the tables), `recovery` (reads them).

use super::{
    layout::{ANCILLARIES, PIPE_PAGE},
    text::Text,
};
use abi::{CapabilitySet, Endpoint, Parts, Word, layout::PAGE_BYTES, limits, vfs::NO_ID_MAP};
use recover::records::{Record, VALUE_BITS};

/// "None" in a place of 16 bits.
pub const NOWHERE: u16 = u16::MAX;
/// Descriptors of one block.
pub const BLOCK: usize = 16;
/// "None" in a place of 32 bits.
pub const NO_PLACE: u32 = u32::MAX;
/// Blocks that a descriptor table refers to itself.
pub const DIRECT: usize = 16;
/// Registrations of epolls that a successor looks through at a time.
pub const INTEREST_STEP: usize = 256;
/// Blocks of a list.
pub const LIST: usize = 61;

fn halves(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The one user and the one group of a container, as `abi::vfs::SetIdMap` tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdMaps {
    /// The user.
    pub users: u64,
    /// The group.
    pub groups: u64,
}

impl IdMaps {
    /// Nobody.
    pub const NONE: IdMaps = IdMaps { users: NO_ID_MAP, groups: NO_ID_MAP };
}

/// A thread of a program; its place is its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ThreadRecord {
    pub endpoint: Endpoint,
    pub pid: u32,
    /// How many processes had the pid before: 31 bits.
    pub generation: u32,
    pub table: u16,
    /// `NOWHERE` before there is a root.
    pub directories: u16,
    pub first: bool,
    pub session: u32,
    pub group: u32,
    /// euid, egid, uid, gid.
    pub ids: [u32; 4],
    /// Effective ones, and those with which access(2) judges.
    pub capabilities: [CapabilitySet; 2],
    /// Supplementary groups, four bytes each.
    pub groups: Text,
    /// RLIMIT_NOFILE, RLIMIT_FSIZE and RLIMIT_MSGQUEUE.
    pub descriptors: u32,
    pub file_bytes: u64,
    pub message_bytes: u64,
    /// The file that it executes.
    pub program: NodeRecord,
    /// Its containers.
    pub parts: Parts,
    /// Whom it knows in its container.
    pub id_maps: IdMaps,
}

impl Record for ThreadRecord {
    const WORDS: usize = 15;

    fn store(&self, words: &mut [u64]) {
        words[0] = halves(self.endpoint.0, self.pid);
        let bits = self.first as u64 | (self.generation as u64) << 1;
        words[1] = self.table as u64 | (self.directories as u64) << 16 | bits << 32;
        words[2] = halves(self.session, self.group);
        words[3] = halves(self.ids[0], self.ids[1]);
        words[4] = halves(self.ids[2], self.ids[3]);
        words[5] = halves(self.groups.to_word() as u32, self.descriptors);
        words[6] = self.file_bytes;
        words[7] = self.program.mount as u64;
        words[8] = self.program.node;
        words[9] = self.capabilities[0].bits();
        words[10] = self.capabilities[1].bits();
        words[11] = self.message_bytes;
        words[12] = self.parts.to_word();
        words[13] = self.id_maps.users;
        words[14] = self.id_maps.groups;
    }

    fn load(words: &[u64]) -> Self {
        let half = |word: usize, shift: u32| (words[word] >> shift) as u32;
        ThreadRecord {
            endpoint: Endpoint(half(0, 0)),
            pid: half(0, 32),
            generation: half(1, 33),
            table: words[1] as u16,
            directories: (words[1] >> 16) as u16,
            first: words[1] >> 32 & 1 != 0,
            session: half(2, 0),
            group: half(2, 32),
            ids: [half(3, 0), half(3, 32), half(4, 0), half(4, 32)],
            groups: Text::from_word(words[5] & 0xffff_ffff),
            descriptors: half(5, 32),
            file_bytes: words[6],
            program: NodeRecord { mount: words[7] as u16, node: words[8] },
            capabilities: [words[9], words[10]].map(CapabilitySet::from_bits),
            message_bytes: words[11],
            parts: Parts::from_word(words[12]),
            id_maps: IdMaps { users: words[13], groups: words[14] },
        }
    }
}

/// What is known of a thread's call, beyond what the thread itself repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// It is over: the result in word 0 of the answer.
    Result(u64),
    /// It has moved so many bytes.
    Moved(u64),
    /// It writes from this position on.
    Start(u64),
    /// It waits until this monotonic time.
    Deadline(u64),
}

/// The note of a thread's last call that needed one; its place is the thread's slot. It counts from the commit with its stamp on, so that the
/// note of an earlier call is overwritten without log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// The call's number (`abi::message::REPEATED`).
    pub number: u64,
    /// What is known.
    pub note: Note,
    /// Of its commit.
    pub stamp: u64,
}

impl Record for CallRecord {
    const WORDS: usize = 3;

    #[inline]
    fn store(&self, words: &mut [u64]) {
        let (kind, value) = match self.note {
            Note::Result(value) => (0, value),
            Note::Moved(value) => (1, value),
            Note::Start(value) => (2, value),
            Note::Deadline(value) => (3, value),
        };
        words[0] = self.number << 2 | kind;
        words[1] = value;
        words[2] = self.stamp;
    }

    fn load(words: &[u64]) -> Self {
        let note = match words[0] & 3 {
            0 => Note::Result(words[1]),
            1 => Note::Moved(words[1]),
            2 => Note::Start(words[1]),
            _ => Note::Deadline(words[1]),
        };
        CallRecord { number: words[0] >> 2, note, stamp: words[2] }
    }
}

/// How far an exec has come; the place is the thread's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ExecRecord {
    /// It has been reported to pm (what follows is the report); else it is in progress.
    pub reported: bool,
    /// Reported: the text for `ExecText`; else the path to execute.
    pub text: Text,
    pub images: [u64; 2],
    /// Reported: the words of the report; else the directory that the path is relative to, and the flags of execveat.
    pub report: [u64; 4],
    /// The file that will be executed, once it has been found.
    pub program: NodeRecord,
}

impl Record for ExecRecord {
    const WORDS: usize = 9;

    fn store(&self, words: &mut [u64]) {
        words[0] = self.text.to_word() << 1 | self.reported as u64;
        words[1..3].copy_from_slice(&self.images);
        words[3..7].copy_from_slice(&self.report);
        words[7] = self.program.mount as u64;
        words[8] = self.program.node;
    }

    fn load(words: &[u64]) -> Self {
        ExecRecord {
            reported: words[0] & 1 != 0,
            text: Text::from_word(words[0] >> 1),
            images: [words[1], words[2]],
            report: [words[3], words[4], words[5], words[6]],
            program: NodeRecord { mount: words[7] as u16, node: words[8] },
        }
    }
}

/// Places of 32 bits, two to a word.
fn pack(places: impl IntoIterator<Item = u32>, words: &mut [u64]) {
    let mut places = places.into_iter();
    for word in words {
        *word = halves(places.next().unwrap_or(NO_PLACE), places.next().unwrap_or(NO_PLACE));
    }
}

fn unpack(words: &[u64], index: usize) -> u32 {
    (words[index / 2] >> (index % 2 * 32)) as u32
}

/// A descriptor table: its number, and where its blocks of descriptors are: the first ones, and the first list of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TableRecord {
    pub number: u64,
    /// Real uid of the one it is charged to.
    pub user: u32,
    pub list: u32,
    pub blocks: [u32; DIRECT],
}

impl Record for TableRecord {
    const WORDS: usize = 2 + DIRECT / 2;

    fn store(&self, words: &mut [u64]) {
        words[0] = self.number;
        words[1] = halves(self.user, self.list);
        pack(self.blocks, &mut words[2..]);
    }

    fn load(words: &[u64]) -> Self {
        TableRecord {
            number: words[0],
            user: words[1] as u32,
            list: (words[1] >> 32) as u32,
            blocks: core::array::from_fn(|index| unpack(&words[2..], index)),
        }
    }
}

/// Further blocks of a descriptor table, and the list after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ListRecord {
    pub next: u32,
    pub blocks: [u32; LIST],
}

impl Record for ListRecord {
    const WORDS: usize = (1 + LIST).div_ceil(2);

    fn store(&self, words: &mut [u64]) {
        pack(core::iter::once(self.next).chain(self.blocks), words);
    }

    fn load(words: &[u64]) -> Self {
        ListRecord { next: unpack(words, 0), blocks: core::array::from_fn(|index| unpack(words, 1 + index)) }
    }
}

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DescriptorRecord {
    pub file: u32,
    pub close_on_exec: bool,
}

impl DescriptorRecord {
    /// As a cell holds it.
    #[inline]
    pub fn to_value(self) -> u64 {
        self.file as u64 | (self.close_on_exec as u64) << 32
    }

    /// From a cell.
    pub fn from_value(value: u64) -> Self {
        DescriptorRecord { file: value as u32, close_on_exec: value >> 32 & 1 != 0 }
    }
}

/// A file of a file system: where it is mounted, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NodeRecord {
    /// `NOWHERE`: no node.
    pub mount: u16,
    pub node: u64,
}

impl NodeRecord {
    /// No node.
    pub const NONE: NodeRecord = NodeRecord { mount: NOWHERE, node: 0 };
}

/// What an open file is of, in words that its kind (`objects::Kind`) understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ObjectRecord {
    /// The kind's number.
    pub kind: u8,
    pub place: u16,
    pub minor: u32,
    pub more: u64,
}

impl ObjectRecord {
    /// Of a kind about which there is nothing more to know.
    pub const fn of(kind: u8) -> ObjectRecord {
        ObjectRecord { kind, place: 0, minor: 0, more: 0 }
    }
}

/// Bits of the kind in the record of an open file; those of the mount follow.
const KIND_BITS: u32 = 5;
/// The mount in the record of an open file: all ones for none.
const FILE_MOUNT: u64 = 0x7ff;

/// An open file, without what changes often: position and status flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FileRecord {
    pub object: ObjectRecord,
    pub node: NodeRecord,
    pub number: u64,
    pub path: Text,
    /// Real uid of the one who opened it, to whom it is charged.
    pub user: u32,
}

impl Record for FileRecord {
    const WORDS: usize = 5;

    #[inline]
    fn store(&self, words: &mut [u64]) {
        let ObjectRecord { kind, place, minor, more } = self.object;
        let mount = self.node.mount as u64 & FILE_MOUNT;
        words[0] = kind as u64 | mount << KIND_BITS | (place as u64) << 16 | (minor as u64) << 32;
        words[1] = self.node.node;
        words[2] = self.number;
        words[3] = more;
        words[4] = halves(self.path.to_word() as u32, self.user);
    }

    fn load(words: &[u64]) -> Self {
        let (place, minor) = ((words[0] >> 16) as u16, (words[0] >> 32) as u32);
        let kind = words[0] as u8 & ((1 << KIND_BITS) - 1);
        let object = ObjectRecord { kind, place, minor, more: words[3] };
        let mount = match words[0] >> KIND_BITS & FILE_MOUNT {
            FILE_MOUNT => NOWHERE,
            mount => mount as u16,
        };
        let path = Text::from_word(words[4] & 0xffff_ffff);
        let user = (words[4] >> 32) as u32;
        FileRecord { object, node: NodeRecord { mount, node: words[1] }, number: words[2], path, user }
    }
}

/// Root, working directory and umask of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DirectoriesRecord {
    pub root: (NodeRecord, Text),
    pub working: (NodeRecord, Text),
    pub umask: u32,
    /// Real uid of the one to whom the paths are charged.
    pub user: u32,
}

impl Record for DirectoriesRecord {
    const WORDS: usize = 5;

    fn store(&self, words: &mut [u64]) {
        let mounts = self.root.0.mount as u64 | (self.working.0.mount as u64) << 16;
        words[0] = mounts | (self.umask as u64) << 32;
        words[1] = self.root.0.node;
        words[2] = self.working.0.node;
        words[3] = self.root.1.to_word() | self.working.1.to_word() << 32;
        words[4] = self.user as u64;
    }

    fn load(words: &[u64]) -> Self {
        let place = |mount: u32, node: usize, text: u32| {
            let node = NodeRecord { mount: (words[0] >> mount) as u16, node: words[node] };
            (node, Text::from_word(words[3] >> text & 0xffff_ffff))
        };
        let (umask, user) = ((words[0] >> 32) as u32, words[4] as u32);
        DirectoriesRecord { root: place(0, 1, 0), working: place(16, 2, 32), umask, user }
    }
}

/// Bits of an [`Extent`], 48 together: where the bytes begin in a page, how many they are, and the place of what goes with them.
const START_BITS: u32 = 12;
const LENGTH_BITS: u32 = 21;
const ANCILLARY_BITS: u32 = 15;
const _: () = assert!(START_BITS + LENGTH_BITS + ANCILLARY_BITS == VALUE_BITS);
const _: () = assert!(PIPE_PAGE == 1 << START_BITS && limits::PIPE_BYTES < 1 << LENGTH_BITS);
const _: () = assert!(ANCILLARIES < 1 << ANCILLARY_BITS);

/// What every read and write of a pipe changes: a word of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Extent {
    /// Where the bytes begin in the first page.
    pub start: u32,
    /// Bytes in it.
    pub bytes: u32,
    /// The first of what goes with its bytes or messages; `NOWHERE`: nothing.
    pub ancillary: u16,
}

impl Extent {
    /// Nothing is in the pipe.
    pub const EMPTY: Extent = Extent { start: 0, bytes: 0, ancillary: NOWHERE };

    /// As a cell holds it.
    #[inline]
    pub fn to_value(self) -> u64 {
        let ancillary = self.ancillary as u64 & ((1 << ANCILLARY_BITS) - 1);
        self.start as u64 | (self.bytes as u64) << START_BITS | ancillary << (START_BITS + LENGTH_BITS)
    }

    /// From a cell.
    pub fn from_value(value: u64) -> Self {
        let ancillary = (value >> (START_BITS + LENGTH_BITS)) as u16;
        Extent {
            start: value as u32 & ((1 << START_BITS) - 1),
            bytes: (value >> START_BITS) as u32 & ((1 << LENGTH_BITS) - 1),
            ancillary: if ancillary == (1 << ANCILLARY_BITS) - 1 { NOWHERE } else { ancillary },
        }
    }
}

/// The ring of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PipeRecord {
    pub capacity: u32,
    /// First and last page; `NOWHERE`: none.
    pub first: u16,
    pub last: u16,
    /// Real uid of the one who made it, to whom it is charged.
    pub user: u32,
    /// [`MARK_RESET`], and above it how often, of a FIFO, it was opened for writing: tells a reader's POLLHUP before the first writer from
    /// one after it.
    pub marks: u32,
    /// In a cell of its own.
    pub extent: Extent,
}

/// The writer has closed its socket with unread data: the reader gets `ECONNRESET`.
pub const MARK_RESET: u32 = 1;
/// One opening of a FIFO for writing, in [`PipeRecord::marks`].
pub const MARK_WRITE_OPEN: u32 = 2;

impl PipeRecord {
    /// That of a pipe of a user in which nothing is, and nothing may be.
    pub const fn empty(user: u32) -> PipeRecord {
        PipeRecord { capacity: 0, first: NOWHERE, last: NOWHERE, user, marks: 0, extent: Extent::EMPTY }
    }
}

impl Record for PipeRecord {
    const WORDS: usize = 2;

    fn store(&self, words: &mut [u64]) {
        words[0] = halves(self.capacity, self.user);
        words[1] = halves(self.first as u32 | (self.last as u32) << 16, self.marks);
    }

    /// Without the extent.
    fn load(words: &[u64]) -> Self {
        PipeRecord {
            capacity: words[0] as u32,
            first: words[1] as u16,
            last: (words[1] >> 16) as u16,
            user: (words[0] >> 32) as u32,
            marks: (words[1] >> 32) as u32,
            extent: Extent::EMPTY,
        }
    }
}

/// The page that follows a page of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextRecord(pub u16);

impl Record for NextRecord {
    const WORDS: usize = 1;

    fn store(&self, words: &mut [u64]) {
        words[0] = self.0 as u64;
    }

    fn load(words: &[u64]) -> Self {
        NextRecord(words[0] as u16)
    }
}

/// Pages that programs have written to, and of which the file system has not heard; what they hold is in the area of such pages, from the place of
/// the record on. Several only at the end of a file that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DirtyRecord {
    pub node: NodeRecord,
    /// Number of the first one in the file.
    pub page: u32,
    /// Where in it begins what they hold: the file system has what is before.
    pub start: u16,
    /// Where, from its beginning on, ends what they hold, and what the file has of them.
    pub end: u16,
    pub user: u32,
}

impl DirtyRecord {
    /// How many pages they are.
    pub fn pages(&self) -> usize {
        usize::from(self.end).div_ceil(PAGE_BYTES as usize)
    }
}

impl Record for DirtyRecord {
    const WORDS: usize = 3;

    fn store(&self, words: &mut [u64]) {
        words[0] = self.node.node;
        words[1] = halves(self.node.mount as u32, u32::from(self.start) << 16 | u32::from(self.end));
        words[2] = halves(self.page, self.user);
    }

    fn load(words: &[u64]) -> Self {
        let node = NodeRecord { mount: words[1] as u16, node: words[0] };
        let (start, end) = ((words[1] >> 48) as u16, (words[1] >> 32) as u16);
        DirtyRecord { node, page: words[2] as u32, start, end, user: (words[2] >> 32) as u32 }
    }
}

/// An advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LockRecord {
    pub node: NodeRecord,
    /// Of flock, else of fcntl.
    pub whole: bool,
    pub exclusive: bool,
    pub owner: u64,
    pub pid: u32,
    /// Real uid of the one to whom it is charged.
    pub user: u32,
    pub start: u64,
    pub last: u64,
}

impl Record for LockRecord {
    const WORDS: usize = 6;

    fn store(&self, words: &mut [u64]) {
        let bits = (self.node.mount as u64) << 32 | (self.whole as u64) << 48 | (self.exclusive as u64) << 49;
        let user = self.user as u64;
        words.copy_from_slice(&[self.pid as u64 | bits, self.node.node, self.owner, self.start, self.last, user]);
    }

    fn load(words: &[u64]) -> Self {
        LockRecord {
            node: NodeRecord { mount: (words[0] >> 32) as u16, node: words[1] },
            whole: words[0] >> 48 & 1 != 0,
            exclusive: words[0] >> 49 & 1 != 0,
            owner: words[2],
            pid: words[0] as u32,
            user: words[5] as u32,
            start: words[3],
            last: words[4],
        }
    }
}

/// A context of asynchronous I/O, and its ring of completed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ContextRecord {
    /// The process, as `callers::lives::Identity` has it in a word.
    pub identity: u64,
    /// Its id: the address of its page in the process.
    pub address: u64,
    /// The first place of its ring, and how many there are.
    pub first: u32,
    pub requests: u32,
    /// Where in the ring the completed requests begin, and how many wait there.
    pub head: u32,
    pub completed: u32,
    /// Real uid of the one to whom it is charged.
    pub user: u32,
}

impl Record for ContextRecord {
    const WORDS: usize = 5;

    fn store(&self, words: &mut [u64]) {
        words[0] = self.identity;
        words[1] = self.address;
        words[2] = halves(self.first, self.requests);
        words[3] = halves(self.head, self.completed);
        words[4] = self.user as u64;
    }

    fn load(words: &[u64]) -> Self {
        let high = |word: usize| (words[word] >> 32) as u32;
        ContextRecord {
            identity: words[0],
            address: words[1],
            first: words[2] as u32,
            requests: high(2),
            head: words[3] as u32,
            completed: high(3),
            user: words[4] as u32,
        }
    }
}

/// A completed request of asynchronous I/O: what `struct io_event` tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CompletionRecord {
    pub data: u64,
    pub object: u64,
    pub result: u64,
}

impl Record for CompletionRecord {
    const WORDS: usize = 3;

    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(&[self.data, self.object, self.result]);
    }

    fn load(words: &[u64]) -> Self {
        CompletionRecord { data: words[0], object: words[1], result: words[2] }
    }
}

/// How many requests of its last io_submit a thread has carried out; its place is the thread's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmissionRecord {
    /// The call's number (`abi::message::REPEATED`).
    pub number: u64,
    /// How many.
    pub done: u64,
}

impl Record for SubmissionRecord {
    const WORDS: usize = 2;

    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(&[self.number, self.done]);
    }

    fn load(words: &[u64]) -> Self {
        SubmissionRecord { number: words[0], done: words[1] }
    }
}

/// A lease that an open file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LeaseRecord {
    /// F_WRLCK, else F_RDLCK.
    pub exclusive: bool,
    /// The descriptor it was set by.
    pub descriptor: u32,
    /// During a break by a reader: the monotonic time at which it is downgraded by force; else 0.
    pub downgrade_ns: u64,
    /// During a break by a writer: the monotonic time at which it ends by force; else 0.
    pub release_ns: u64,
}

/// The owner of an open file (`F_SETOWN`), its signal (`F_SETSIG`) and its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OwnerRecord {
    /// Number of the open file, and its place in its table.
    pub number: u64,
    pub place: u32,
    /// Real uid of the one to whom it is charged.
    pub user: u32,
    /// `abi::vfs::OWNER_*`.
    pub kind: u8,
    /// 0: no owner.
    pub id: u32,
    /// Real and effective uid of the caller that named the owner.
    pub named_by: [u32; 2],
    /// 0: SIGIO without details.
    pub signal: u8,
    /// The descriptor by which `O_ASYNC` was set, which it is set for.
    pub told_of: Option<u32>,
    pub lease: Option<LeaseRecord>,
}

const NO_LEASE: LeaseRecord = LeaseRecord { exclusive: false, descriptor: 0, downgrade_ns: 0, release_ns: 0 };

impl Record for OwnerRecord {
    const WORDS: usize = 7;

    fn store(&self, words: &mut [u64]) {
        let lease = self.lease.unwrap_or(NO_LEASE);
        let bits = (self.lease.is_some() as u32) << 16
            | (lease.exclusive as u32) << 17
            | (self.told_of.is_some() as u32) << 18;
        words[0] = self.number;
        words[1] = halves(self.place, self.user);
        words[2] = halves(self.id, self.kind as u32 | (self.signal as u32) << 8 | bits);
        words[3] = halves(self.named_by[0], self.named_by[1]);
        words[4] = halves(lease.descriptor, self.told_of.unwrap_or(0));
        words[5] = lease.downgrade_ns;
        words[6] = lease.release_ns;
    }

    fn load(words: &[u64]) -> Self {
        let high = |word: usize| (words[word] >> 32) as u32;
        let lease = LeaseRecord {
            exclusive: high(2) >> 17 & 1 != 0,
            descriptor: words[4] as u32,
            downgrade_ns: words[5],
            release_ns: words[6],
        };
        OwnerRecord {
            number: words[0],
            place: words[1] as u32,
            user: high(1),
            kind: high(2) as u8,
            id: words[2] as u32,
            named_by: [words[3] as u32, high(3)],
            signal: (high(2) >> 8) as u8,
            told_of: (high(2) >> 18 & 1 != 0).then_some(high(4)),
            lease: (high(2) >> 16 & 1 != 0).then_some(lease),
        }
    }
}

/// A mount. Those with the same device show the same file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MountRecord {
    pub service: u16,
    pub volatile: bool,
    pub fixed: bool,
    pub in_memory: bool,
    /// The volume has a journal.
    pub journal: bool,
    /// The file system refuses writes, whatever the flags of the mount say.
    pub read_only: bool,
    pub locked: bool,
    /// It is out of the tree, and ends with its last vnode.
    pub detached: bool,
    /// The container whose users may change it.
    pub users: u8,
    pub namespace: u16,
    pub flags: u32,
    pub device: u64,
    /// Of the mount, and of the file system.
    pub root: u64,
    pub file_system_root: u64,
    /// What it covers; none for the root of a namespace.
    pub covers: NodeRecord,
    pub source: Text,
    pub target: Text,
    pub subtree: Text,
    /// The user to whom its texts and its place are charged.
    pub user: u32,
}

impl Record for MountRecord {
    const WORDS: usize = 8;

    fn store(&self, words: &mut [u64]) {
        let kind =
            [self.volatile, self.in_memory, self.read_only, self.locked, self.detached, self.fixed, self.journal];
        let kind = kind.iter().rev().fold(0, |bits, bit| bits << 1 | u64::from(*bit));
        let places = (self.covers.mount as u64) << 32 | (self.namespace as u64) << 48;
        words[0] = self.service as u64 | kind << 16 | (self.users as u64) << 24 | places;
        words[1] = halves(self.flags, self.user);
        words[2] = self.device;
        words[3] = self.root;
        words[4] = self.covers.node;
        words[5] = self.source.to_word() | self.target.to_word() << 32;
        words[6] = self.subtree.to_word();
        words[7] = self.file_system_root;
    }

    fn load(words: &[u64]) -> Self {
        let has = |bit: u32| words[0] >> (16 + bit) & 1 != 0;
        MountRecord {
            service: words[0] as u16,
            volatile: has(0),
            fixed: has(5),
            in_memory: has(1),
            journal: has(6),
            read_only: has(2),
            locked: has(3),
            detached: has(4),
            users: (words[0] >> 24) as u8,
            namespace: (words[0] >> 48) as u16,
            flags: words[1] as u32,
            user: (words[1] >> 32) as u32,
            device: words[2],
            root: words[3],
            covers: NodeRecord { mount: (words[0] >> 32) as u16, node: words[4] },
            source: Text::from_word(words[5] & 0xffff_ffff),
            target: Text::from_word(words[5] >> 32),
            subtree: Text::from_word(words[6]),
            file_system_root: words[7],
        }
    }
}

/// The file behind a loop device; its place is the device's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LoopRecord {
    pub node: NodeRecord,
    /// Seals of the file, as records of open files have them.
    pub seals: u8,
    /// LO_FLAGS_*.
    pub flags: u8,
    /// Bytes of a block, as programs are told.
    pub block_bytes: u16,
    /// Where the device begins in the file, and the most bytes that it has; 0: no limit.
    pub offset: u64,
    pub limit: u64,
    /// Its size when that was last looked up.
    pub bytes: u64,
    /// `lo_file_name`.
    pub name: Text,
}

impl Record for LoopRecord {
    const WORDS: usize = 6;

    fn store(&self, words: &mut [u64]) {
        let small = self.seals as u64 | (self.flags as u64) << 8 | (self.block_bytes as u64) << 16;
        words[0] = self.node.mount as u64 | small << 16;
        words[1] = self.node.node;
        words[2..5].copy_from_slice(&[self.offset, self.limit, self.bytes]);
        words[5] = self.name.to_word();
    }

    fn load(words: &[u64]) -> Self {
        LoopRecord {
            node: NodeRecord { mount: words[0] as u16, node: words[1] },
            seals: (words[0] >> 16) as u8,
            flags: (words[0] >> 24) as u8,
            block_bytes: (words[0] >> 32) as u16,
            offset: words[2],
            limit: words[3],
            bytes: words[4],
            name: Text::from_word(words[5]),
        }
    }
}

/// What a container with limits may have; its place is its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRecord {
    /// Open files.
    pub files: u32,
    /// Pipes.
    pub pipes: u32,
}

impl LimitRecord {
    /// A limit as quotas have it; `None`: that of a user.
    pub fn limit(value: u32) -> Option<usize> {
        (value != u32::MAX).then_some(value as usize)
    }
}

impl Record for LimitRecord {
    const WORDS: usize = 1;

    fn store(&self, words: &mut [u64]) {
        words[0] = halves(self.files, self.pipes);
    }

    fn load(words: &[u64]) -> Self {
        LimitRecord { files: words[0] as u32, pipes: (words[0] >> 32) as u32 }
    }
}

/// A service that vfs asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PeerRecord {
    pub name: (u64, u64),
    pub slot: u16,
    pub role: u8,
}

impl Record for PeerRecord {
    const WORDS: usize = 3;

    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(&[self.name.0, self.name.1, self.slot as u64 | (self.role as u64) << 16]);
    }

    fn load(words: &[u64]) -> Self {
        PeerRecord { name: (words[0], words[1]), slot: words[2] as u16, role: (words[2] >> 16) as u8 }
    }
}

/// What there is once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct GlobalRecord {
    /// Everything that the arguments name has been mounted.
    pub mounted: bool,
    /// A `SyncAll` that pm has not been told the end of: 1, with unmount 2; else 0.
    pub sync: u8,
    /// Places of registrations that have ever been used are below so many times `INTEREST_STEP`.
    pub interest_steps: u16,
}

impl Record for GlobalRecord {
    const WORDS: usize = 1;

    fn store(&self, words: &mut [u64]) {
        words[0] = self.mounted as u64 | (self.sync as u64) << 8 | (self.interest_steps as u64) << 16;
    }

    fn load(words: &[u64]) -> Self {
        let interest_steps = (words[0] >> 16) as u16;
        GlobalRecord { mounted: words[0] & 1 != 0, sync: (words[0] >> 8) as u8, interest_steps }
    }
}

/// The process to be notified when a message comes to an empty queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Notification {
    /// Number of the descriptor table through which it was asked for.
    pub table: u64,
    pub pid: u32,
    /// 0: none, it only keeps others from asking.
    pub signal: u8,
    pub value: u64,
}

/// A queue, without its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct QueueRecord {
    pub most_messages: u32,
    pub message_bytes: u32,
    pub uid: u32,
    pub gid: u32,
    /// Permission bits.
    pub mode: u16,
    /// It can be opened; else it ends with its last open file.
    pub named: bool,
    pub name: Text,
    /// First place of its run.
    pub first: u32,
    pub notification: Option<Notification>,
}

/// An empty record to begin with.
pub const NO_QUEUE: QueueRecord = QueueRecord {
    most_messages: 0,
    message_bytes: 0,
    uid: 0,
    gid: 0,
    mode: 0,
    named: true,
    name: Text::EMPTY,
    first: 0,
    notification: None,
};

impl Record for QueueRecord {
    const WORDS: usize = 6;

    fn store(&self, words: &mut [u64]) {
        let notification = self.notification;
        let Notification { table, pid, signal, value } =
            notification.unwrap_or(Notification { table: 0, pid: 0, signal: 0, value: 0 });
        let bits = (self.named as u32) << 16 | (notification.is_some() as u32) << 17 | (signal as u32) << 24;
        words[0] = halves(self.most_messages, self.message_bytes);
        words[1] = halves(self.uid, self.gid);
        words[2] = halves(self.mode as u32 | bits, self.name.to_word() as u32);
        words[3] = halves(self.first, pid);
        words[4] = value;
        words[5] = table;
    }

    fn load(words: &[u64]) -> Self {
        let high = |word: usize| (words[word] >> 32) as u32;
        let notification =
            Notification { table: words[5], pid: high(3), signal: (words[2] >> 24) as u8, value: words[4] };
        QueueRecord {
            most_messages: words[0] as u32,
            message_bytes: high(0),
            uid: words[1] as u32,
            gid: high(1),
            mode: words[2] as u16,
            named: words[2] >> 16 & 1 != 0,
            name: Text::from_word(words[2] >> 32),
            first: words[3] as u32,
            notification: (words[2] >> 17 & 1 != 0).then_some(notification),
        }
    }
}

/// A signal that pm is to send, as the event that tells of it: its kind (`abi::vfs::EVENT_*`) and the values a, b and c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SignalRecord {
    /// Number of the event.
    pub number: u64,
    pub event: u64,
    pub values: [u64; 3],
}

impl SignalRecord {
    /// Real uid of the one to whom it is charged: who named the owner of an open file, which may be told often.
    pub fn user(&self) -> u32 {
        if self.event == abi::vfs::EVENT_OWNER { self.values[2] as u32 } else { super::ROOT }
    }
}

impl Record for SignalRecord {
    const WORDS: usize = 5;

    fn store(&self, words: &mut [u64]) {
        [words[0], words[1]] = [self.event, self.number];
        words[2..].copy_from_slice(&self.values);
    }

    fn load(words: &[u64]) -> Self {
        SignalRecord { event: words[0], number: words[1], values: [words[2], words[3], words[4]] }
    }
}

/// A timer. Expirations that nobody has read follow from the time: see `timerfd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TimerRecord {
    /// It was made for the wall clock.
    pub of_wall: bool,
    /// `next_ns` is a time of the wall clock, else monotonic.
    pub on_wall: bool,
    /// When the first expiration that nobody has read is; 0: never.
    pub next_ns: u64,
    /// From one to the next; 0: there is only one.
    pub interval_ns: u64,
    /// Real uid of the one who made it, to whom it is charged.
    pub user: u32,
}

impl Record for TimerRecord {
    const WORDS: usize = 3;

    fn store(&self, words: &mut [u64]) {
        let kind = self.of_wall as u32 | (self.on_wall as u32) << 1;
        words.copy_from_slice(&[halves(kind, self.user), self.next_ns, self.interval_ns]);
    }

    fn load(words: &[u64]) -> Self {
        let (of_wall, on_wall) = (words[0] & 1 != 0, words[0] & 2 != 0);
        TimerRecord { of_wall, on_wall, next_ns: words[1], interval_ns: words[2], user: (words[0] >> 32) as u32 }
    }
}

/// A registration of an epoll. It counts while the open files with both numbers exist: it is not cleared with them. Its [`Terms`] are beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct InterestRecord {
    /// Numbers of the epoll and of what is registered, as open files.
    pub epoll: u64,
    pub target: u64,
    pub descriptor: i32,
    /// Of `struct epoll_event`.
    pub data: u64,
    /// Real uid of the one who made it, to whom it is charged.
    pub user: u32,
}

impl Record for InterestRecord {
    const WORDS: usize = 4;

    fn store(&self, words: &mut [u64]) {
        let both = halves(self.descriptor as u32, self.user);
        words.copy_from_slice(&[self.epoll, self.target, both, self.data]);
    }

    fn load(words: &[u64]) -> Self {
        let (descriptor, user) = (words[2] as i32, (words[2] >> 32) as u32);
        InterestRecord { epoll: words[0], target: words[1], descriptor, data: words[3], user }
    }
}

/// What a registration of an epoll is to report: what reports change of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Of `struct epoll_event`: those of [`Terms::EVENTS`].
    pub events: u32,
    /// What was reported as an edge.
    pub told: Told,
}

/// What was reported as an edge: events of an object that has not changed since, events of a device that no transfer has used up, or up to
/// which arrival a device was asked that counts them. 28 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told(u32);

impl Told {
    /// Nothing.
    pub const NOTHING: Told = Told(0);
    const COUNTS: u32 = 1 << 27;
    const EVENTS: u32 = 0xffff;

    /// Up to this number of arrivals (`chardev::Poll`), which is not 0.
    pub fn up_to(arrivals: u32) -> Told {
        Told(arrivals & (Told::COUNTS - 1) | Told::COUNTS)
    }

    /// These events, too.
    #[must_use]
    pub fn and(self, events: u32) -> Told {
        Told(self.events() | events & Told::EVENTS)
    }

    /// Whether nothing was reported.
    pub fn is_nothing(self) -> bool {
        self == Told::NOTHING
    }

    /// The events, if they are known by themselves.
    pub fn events(self) -> u32 {
        if self.0 & Told::COUNTS == 0 { self.0 } else { 0 }
    }

    /// The number of arrivals; 0: they are not counted.
    pub fn arrivals(self) -> u32 {
        if self.0 & Told::COUNTS == 0 { 0 } else { self.0 & !Told::COUNTS }
    }
}

impl Terms {
    /// What a program may ask for: poll(2) bits, and how they are reported.
    pub const EVENTS: u32 = 0xf000_ffff;

    /// As the value of a cell.
    #[inline]
    pub fn to_value(self) -> u64 {
        let events = self.events & 0xffff | self.events >> 28 << 16;
        u64::from(events) | u64::from(self.told.0) << 20
    }

    /// From the value of a cell.
    pub fn from_value(value: u64) -> Terms {
        let events = value as u32 & 0xffff | (value as u32 >> 16) << 28;
        Terms { events, told: Told((value >> 20) as u32) }
    }
}

/// Ids of a process as it connects or listens (`struct ucred`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Ucred {
    pub pid: u32,
    pub uid: u32,
    pub gid: u32,
}

impl Ucred {
    /// Of nobody: a socket without peer.
    pub const NONE: Ucred = Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
}

/// Open files of one [`AncillaryRecord`].
pub const CARRIED: usize = 8;

/// What goes with a message, or with bytes of a stream, in a pipe: open files in flight, and of a stream the sender's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AncillaryRecord {
    /// What goes with later bytes of the same pipe, and a record with further files of the same message; `NOWHERE`: nothing.
    pub next: u16,
    pub more: u16,
    /// Places of open files, as many as `count`.
    pub files: [u32; CARRIED],
    pub count: u8,
    /// Its bytes are a packet of a pipe (`O_DIRECT`).
    pub packet: bool,
    /// Of a stream: how many bytes there are between the one before and this one, and with how many bytes this one goes.
    pub before: u32,
    pub bytes: u32,
    pub sender: Option<Ucred>,
    /// Real uid of the one who sends it, to whom it is charged.
    pub user: u32,
}

impl Record for AncillaryRecord {
    const WORDS: usize = 4 + CARRIED / 2;

    fn store(&self, words: &mut [u64]) {
        let sender = self.sender.unwrap_or(Ucred::NONE);
        let bits = self.count as u32 | (self.sender.is_some() as u32) << 8 | (self.packet as u32) << 9;
        words[0] = halves(self.next as u32 | (self.more as u32) << 16, bits);
        words[1] = halves(self.before, self.bytes);
        words[2] = halves(sender.pid, sender.uid);
        words[3] = halves(sender.gid, self.user);
        pack(self.files, &mut words[4..]);
    }

    fn load(words: &[u64]) -> Self {
        let high = |word: usize| (words[word] >> 32) as u32;
        let sender = Ucred { pid: words[2] as u32, uid: high(2), gid: words[3] as u32 };
        AncillaryRecord {
            next: words[0] as u16,
            more: (words[0] >> 16) as u16,
            files: core::array::from_fn(|index| unpack(&words[4..], index)),
            count: high(0) as u8,
            packet: high(0) >> 9 & 1 != 0,
            before: words[1] as u32,
            bytes: high(1),
            sender: (high(0) >> 8 & 1 != 0).then_some(sender),
            user: high(3),
        }
    }
}

/// A socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SocketRecord {
    /// `SOCK_*`.
    pub kind: u8,
    pub listening: bool,
    /// It is found by its name: not so one that was accepted, which has that of the listening socket.
    pub bound: bool,
    /// Not shut down for receiving, for sending.
    pub reads: bool,
    pub writes: bool,
    /// Options that are on or off: a bit for each number `SO_*`.
    pub options: u32,
    /// The pipes that it receives from and sends to; `NOWHERE`: it is not connected.
    pub incoming: u16,
    pub outgoing: u16,
    /// Of a listening socket: connections that wait beyond the first.
    pub backlog: u16,
    /// Of a listening socket: the first connection that waits. Of a connection that waits: the one behind it. Of a datagram socket:
    /// `first` is the one that it is connected to, with that one's inode number.
    pub first: u16,
    pub next: u16,
    pub peer_inode: u64,
    pub inode: u64,
    /// Real uid of the one who made it, to whom it is charged.
    pub user: u32,
    /// Addresses without their family: its own, and that of its peer.
    pub name: Text,
    pub peer_name: Text,
    /// The special file that it is bound to.
    pub node: NodeRecord,
    pub peer: Ucred,
    /// Supplementary groups of the peer, four bytes each.
    pub peer_groups: Text,
    /// `SO_RCVTIMEO` and `SO_SNDTIMEO`; 0: none.
    pub receive_ns: u64,
    pub send_ns: u64,
    /// `SO_RCVBUF` and `SO_SNDBUF`.
    pub receive_bytes: u32,
    pub send_bytes: u32,
}

impl Record for SocketRecord {
    const WORDS: usize = 12;

    fn store(&self, words: &mut [u64]) {
        let flags =
            self.listening as u32 | (self.reads as u32) << 1 | (self.writes as u32) << 2 | (self.bound as u32) << 3;
        words[0] = halves(self.kind as u32 | flags << 8, self.incoming as u32 | (self.outgoing as u32) << 16);
        words[1] = self.inode;
        words[2] = halves(self.user, self.name.to_word() as u32);
        words[3] = self.node.node;
        words[4] = halves(self.node.mount as u32 | (self.backlog as u32) << 16, self.peer_name.to_word() as u32);
        words[5] = halves(self.first as u32 | (self.next as u32) << 16, self.peer.pid);
        words[6] = halves(self.peer.uid, self.peer.gid);
        words[7] = self.receive_ns;
        words[8] = self.send_ns;
        words[9] = halves(self.receive_bytes, self.send_bytes);
        words[10] = halves(self.options, self.peer_groups.to_word() as u32);
        words[11] = self.peer_inode;
    }

    fn load(words: &[u64]) -> Self {
        let half = |word: usize, shift: u32| (words[word] >> shift) as u32;
        let short = |word: usize, shift: u32| (words[word] >> shift) as u16;
        let flag = |number: u32| words[0] >> (8 + number) & 1 != 0;
        SocketRecord {
            kind: words[0] as u8,
            listening: flag(0),
            reads: flag(1),
            writes: flag(2),
            bound: flag(3),
            options: half(10, 0),
            incoming: short(0, 32),
            outgoing: short(0, 48),
            backlog: short(4, 16),
            first: short(5, 0),
            next: short(5, 16),
            peer_inode: words[11],
            inode: words[1],
            user: half(2, 0),
            name: Text::from_word(half(2, 32).into()),
            peer_name: Text::from_word(half(4, 32).into()),
            node: NodeRecord { mount: short(4, 0), node: words[3] },
            peer: Ucred { pid: half(5, 32), uid: half(6, 0), gid: half(6, 32) },
            peer_groups: Text::from_word(half(10, 32).into()),
            receive_ns: words[7],
            send_ns: words[8],
            receive_bytes: half(9, 0),
            send_bytes: half(9, 32),
        }
    }
}

/// A watch of an inotify instance: for which events of which file. It counts while the open file with the instance's number exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WatchRecord {
    /// Number of the instance's open file.
    pub instance: u64,
    /// The watch descriptor.
    pub descriptor: u32,
    /// `IN_*`.
    pub mask: u32,
    pub node: NodeRecord,
    /// Of a directory.
    pub path: Text,
    /// Real uid of the one to whom it is charged.
    pub user: u32,
}

impl Record for WatchRecord {
    const WORDS: usize = 5;

    fn store(&self, words: &mut [u64]) {
        words[0] = self.instance;
        words[1] = halves(self.descriptor, self.mask);
        words[2] = self.node.mount as u64;
        words[3] = self.node.node;
        words[4] = halves(self.path.to_word() as u32, self.user);
    }

    fn load(words: &[u64]) -> Self {
        WatchRecord {
            instance: words[0],
            descriptor: words[1] as u32,
            mask: (words[1] >> 32) as u32,
            node: NodeRecord { mount: words[2] as u16, node: words[3] },
            path: Text::from_word(words[4] & 0xffff_ffff),
            user: (words[4] >> 32) as u32,
        }
    }
}

/// An event that an inotify instance has not given yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FileEventRecord {
    /// Number of the instance's open file.
    pub instance: u64,
    /// Events are given in this order.
    pub sequence: u64,
    pub descriptor: u32,
    pub mask: u32,
    pub cookie: u32,
    /// Of a file in a watched directory.
    pub name: Text,
    /// Real uid of the one to whom it is charged.
    pub user: u32,
}

impl Record for FileEventRecord {
    const WORDS: usize = 5;

    fn store(&self, words: &mut [u64]) {
        words[0] = self.instance;
        words[1] = self.sequence;
        words[2] = halves(self.descriptor, self.mask);
        words[3] = halves(self.cookie, self.name.to_word() as u32);
        words[4] = self.user as u64;
    }

    fn load(words: &[u64]) -> Self {
        FileEventRecord {
            instance: words[0],
            sequence: words[1],
            descriptor: words[2] as u32,
            mask: (words[2] >> 32) as u32,
            cookie: words[3] as u32,
            name: Text::from_word(words[3] >> 32),
            user: words[4] as u32,
        }
    }
}
