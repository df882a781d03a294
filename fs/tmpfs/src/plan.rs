//! Where the tables and the pages of a file system lie in its area.
//!
//! ```text
//! head       page 0: what it is (constant), then the counts and lists that change (`HEAD`, one line of 64 bytes)
//! buckets    the first entry of each hash of a name, 4 bytes each
//! links      8 bytes for each page: the next one of its list, and the pages of files below it (`pages`)
//! inodes     128 bytes each
//! entries    64 bytes for each name, with its first 32 bytes
//! tails      224 bytes for each name: what the entry does not hold
//! pages      4096 bytes each: content of files, and their maps
//! ```
//! Inodes, entries and pages count from 1: 0 means none. Only what has been used takes memory.

use fs::file_system::NAME_MAX;

/// Bytes of a page, the unit of space.
pub const PAGE: usize = abi::layout::PAGE_BYTES as usize;
/// Bytes of an inode.
const INODE: usize = 128;
/// Bytes of an entry.
const ENTRY: usize = 64;
/// Bytes of a name that its entry holds.
pub const SHORT_NAME: usize = 32;
/// Bytes of the rest of a name.
const TAIL: usize = (NAME_MAX - SHORT_NAME).next_multiple_of(8);
/// Inodes of the smallest file system.
const MIN_INODES: usize = 64;
/// Number 0 of a table. As the root has no name, there is one entry for a name that moves.
const UNUSED: usize = 1;

/// The sizes of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pages: usize,
    inodes: usize,
}

impl Plan {
    /// Plans for this many bytes of content, in whole pages, and an inode for each page, so that files of any size fill it.
    pub const fn new(content: u64) -> Plan {
        let pages = content.div_ceil(PAGE as u64) as usize;
        Plan::of_pages(if pages == 0 { 1 } else { pages })
    }

    /// Plans for this many pages.
    pub const fn of_pages(pages: usize) -> Plan {
        Plan { pages, inodes: if pages < MIN_INODES { MIN_INODES } else { pages } }
    }

    /// Returns the number of pages.
    pub const fn pages(&self) -> usize {
        self.pages
    }

    /// Returns the limit of inodes.
    pub const fn inodes(&self) -> usize {
        self.inodes
    }

    /// Returns the bytes of everything.
    pub const fn bytes(&self) -> usize {
        self.first_page() + self.pages * PAGE
    }

    const fn links(&self) -> usize {
        PAGE + self.buckets() * size_of::<u32>()
    }

    const fn inode_table(&self) -> usize {
        (self.links() + (self.pages + UNUSED) * size_of::<u64>()).next_multiple_of(PAGE)
    }

    const fn entries(&self) -> usize {
        self.inode_table() + (self.inodes + UNUSED) * INODE
    }

    const fn tails(&self) -> usize {
        self.entries() + (self.inodes + UNUSED) * ENTRY
    }

    const fn first_page(&self) -> usize {
        (self.tails() + (self.inodes + UNUSED) * TAIL).next_multiple_of(PAGE)
    }

    const fn buckets(&self) -> usize {
        self.inodes.next_power_of_two()
    }
}

/// The same, with the starts of all tables computed once.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    plan: Plan,
    links: usize,
    inodes: usize,
    entries: usize,
    tails: usize,
    pages: usize,
}

impl Places {
    /// Computes the places of a plan.
    pub const fn new(plan: Plan) -> Places {
        let (links, inodes) = (plan.links(), plan.inode_table());
        Places { plan, links, inodes, entries: plan.entries(), tails: plan.tails(), pages: plan.first_page() - PAGE }
    }

    /// Returns the plan.
    pub const fn plan(&self) -> Plan {
        self.plan
    }

    /// Returns a hash of each bucket.
    #[cfg(test)]
    pub fn hashes(&self) -> impl Iterator<Item = u32> {
        let buckets = self.plan.buckets() as u64;
        (0..buckets).map(move |bucket| (bucket << 32).div_ceil(buckets) as u32)
    }

    /// Returns the place of the first entry of a hash, 4 bytes. The upper bits of a hash are those that every byte of the name has changed.
    #[inline]
    pub const fn bucket(&self, hash: u32) -> usize {
        let bucket = (hash as u64 * self.plan.buckets() as u64) >> 32;
        PAGE + bucket as usize * size_of::<u32>()
    }

    /// Returns the place of the link of a page, 4 bytes, with its count behind it.
    #[inline]
    pub const fn link(&self, page: u32) -> usize {
        self.links + page as usize * size_of::<u64>()
    }

    /// Returns the place of an inode.
    #[inline]
    pub const fn inode(&self, number: u32) -> usize {
        self.inodes + number as usize * INODE
    }

    /// Returns the place of an entry.
    #[inline]
    pub const fn entry(&self, number: u32) -> usize {
        self.entries + number as usize * ENTRY
    }

    /// Returns the place of the rest of an entry's name.
    #[inline]
    pub const fn tail(&self, number: u32) -> usize {
        self.tails + number as usize * TAIL
    }

    /// Returns the place of a page.
    #[inline]
    pub const fn page(&self, number: u32) -> usize {
        self.pages + number as usize * PAGE
    }
}
