//! When a dirty block may reach the disk, so that a power cut at any moment leaves a file system that a check mends without loss.
//!
//! A sync writes in steps, with a flush between:
//!
//! 1. content: file data, new blocks of directories and pointers, bitmaps;
//! 2. links: inodes, and the pointers of files;
//! 3. names: directories;
//! 4. names that have moved: the sectors of directories in which an old name of a node goes;
//! 5. what was freed: nothing on the disk refers to it any more.
//!
//! With a journal there are no such steps: content is written, then the transaction to the journal, and then what was in it goes home
//! (`Order::Running`, `Order::Logged`).
//!
//! Steps 4 and 5 are the *late* sectors of a block. Until their step comes, the disk keeps in them what it has, or what the file
//! system's `Merge` makes of both.

/// The kind of content of a block, in the order of the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// File data, or anything that no block on the disk refers to. It may be written at any time.
    #[default]
    Content,
    /// Refers to blocks.
    Link,
    /// Refers to inodes.
    Name,
    /// Counts that a check computes: they may be written at any time.
    Count,
    /// Bitmaps and extended attributes: content, unless there is a journal.
    Metadata,
    /// With a journal: it has the block, whose home may be written at any time; until then the journal keeps it.
    Logged,
    /// With a journal: of the running transaction. It stays here until that is committed.
    Running,
}

/// What is left to do for a dirty block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Its kind of content.
    pub order: Order,
    /// One bit for each of its sectors that is written late.
    pub late: u8,
}

impl Mark {
    /// Bits of an encoded mark.
    pub const BITS: u32 = 11;

    /// Returns the mark of a block with this mark that is changed again.
    pub fn and(self, change: Mark) -> Mark {
        // A new block, to which nothing refers yet, stays one.
        if self.order == Order::Content && change.order != Order::Content {
            return self;
        }
        Mark { order: self.order.max(change.order), late: self.late | change.late }
    }

    /// Returns the mark that a change with this one makes when there is a journal: what is no content belongs to the running transaction.
    pub fn journaled(self) -> Mark {
        let order = match self.order {
            Order::Content | Order::Logged => self.order,
            Order::Link | Order::Name | Order::Count | Order::Metadata | Order::Running => Order::Running,
        };
        Mark { order, late: 0 }
    }

    /// Whether the block may be written at any time, and then be evicted.
    pub fn is_free(self) -> bool {
        self.late == 0 && matches!(self.order, Order::Content | Order::Count | Order::Metadata)
    }

    /// Encodes the mark in `BITS` bits.
    pub fn to_bits(self) -> u64 {
        self.order as u64 | u64::from(self.late) << 3
    }

    /// Decodes a mark.
    pub fn from_bits(bits: u64) -> Mark {
        let order = match bits & 7 {
            0 => Order::Content,
            1 => Order::Link,
            2 => Order::Name,
            3 => Order::Count,
            4 => Order::Metadata,
            5 => Order::Logged,
            _ => Order::Running,
        };
        Mark { order, late: (bits >> 3) as u8 }
    }
}

/// What a file system knows of the late sectors of its blocks.
pub trait Merge {
    /// Turns `old`, a sector on the disk at byte `offset` of `block`, into what may take its place before the names are on the disk;
    /// `new` is what takes it in the end. By default the disk keeps what it has.
    fn merge(&self, _block: u64, _offset: usize, _old: &mut [u8], _new: &[u8]) {}
}

/// A file system without late sectors.
impl Merge for () {}
