//! System V segments of shared memory as data (shmget(2)). Their memory, and who maps it, is vm's: pm asks (ADR 55).
//!
//! Invariant: a segment is counted for the user who made it, by its number and by its pages, until vm has freed its memory. One that is
//! removed and still mapped keeps its identifier, and has no key.

use super::credentials::Credentials;
use super::ipc::{Head, Object, Objects};
use abi::Errno;
use abi::layout::PAGE_BYTES;
pub use abi::limits::{SEGMENT_BYTES as MOST_BYTES, SEGMENTS};
use server::quota::Quota;

/// Most segments of one user, and those that only root gets.
const SEGMENTS_OF_USER: usize = 128;
const RESERVED_SEGMENTS: usize = 16;

/// A segment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Key, identifier, owner and rights.
    pub head: Head,
    /// Its length, not rounded.
    pub bytes: u64,
    /// The process that made it.
    pub creator: u32,
    /// It goes when nobody has it attached any more (SHM_DEST).
    pub is_removed: bool,
    /// It must stay in memory (SHM_LOCK), where it is anyway.
    pub is_locked: bool,
}

impl Object for Segment {
    fn head(&self) -> &Head {
        &self.head
    }
}

impl Segment {
    /// Returns the number of its pages.
    pub fn pages(&self) -> u64 {
        self.bytes.div_ceil(PAGE_BYTES)
    }

    /// Returns the bits of `shm_perm.mode` beside the rights.
    pub fn marks(&self) -> u32 {
        const SHM_DEST: u32 = 0o1000;
        const SHM_LOCKED: u32 = 0o2000;
        (if self.is_removed { SHM_DEST } else { 0 }) | if self.is_locked { SHM_LOCKED } else { 0 }
    }
}

/// All segments.
#[derive(Debug)]
pub struct Segments {
    /// The segments.
    pub all: Objects<Segment>,
    /// Their pages by user. `None` until the size of memory is asked for.
    pages: Option<Quota>,
    most_pages: u64,
}

impl Default for Segments {
    fn default() -> Segments {
        let all = Objects::new(SEGMENTS, SEGMENTS_OF_USER, RESERVED_SEGMENTS);
        Segments { all, pages: None, most_pages: 0 }
    }
}

fn quota(most_pages: u64) -> Quota {
    let most = most_pages as usize;
    Quota::new(most, most / 2, most / 16)
}

impl Segments {
    /// Tells the size of memory: all segments together get half of it.
    pub fn set_memory(&mut self, total_bytes: u64) {
        self.most_pages = total_bytes / PAGE_BYTES / 2;
        self.pages.get_or_insert_with(|| quota(total_bytes / PAGE_BYTES / 2));
    }

    /// Returns the number of segments, of their pages, and of the pages that they may have.
    pub fn used(&self) -> (u64, u64, u64) {
        let count = self.all.iter().count() as u64;
        (count, self.all.iter().map(Segment::pages).sum(), self.most_pages)
    }

    /// Makes a segment and returns its identifier. `ENOSPC`: too many, or too many pages, of the user or at all; `ENOMEM`.
    pub fn make(
        &mut self,
        (key, mode, bytes): (u32, u32, u64),
        who: &Credentials,
        creator: u32,
        now_s: u64,
    ) -> Result<u32, Errno> {
        let pages = self.pages.as_mut().ok_or(Errno::ENOSPC)?;
        let (user, count) = (who.account(), usize::try_from(bytes.div_ceil(PAGE_BYTES)).map_err(|_| Errno::ENOSPC)?);
        pages.take(user, count).map_err(|refusal| refusal.errno(Errno::ENOSPC, Errno::ENOSPC))?;
        let made = self.all.make(key, mode, who, now_s, |head| Segment {
            head,
            bytes,
            creator,
            is_removed: false,
            is_locked: false,
        });
        made.inspect_err(|_| pages.give(user, count))
    }

    /// Forgets a segment, whose memory is freed. `EINVAL`.
    pub fn drop(&mut self, id: u32) -> Result<(), Errno> {
        let segment = self.all.take(id)?;
        if let Some(pages) = &mut self.pages {
            pages.give(segment.head.user(), segment.pages() as usize);
        }
        Ok(())
    }

    /// Counts again what users have, after the death of a predecessor.
    pub fn recount(&mut self) {
        self.all.recount();
        let Some(pages) = &mut self.pages else { return };
        *pages = quota(self.most_pages);
        for segment in self.all.iter() {
            // A predecessor had the memory.
            let _ = pages.restore(segment.head.user(), segment.pages() as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_users_until_the_segment_is_dropped() {
        let mut segments = Segments::default();
        segments.set_memory(64 * PAGE_BYTES);
        let user = Credentials { user: crate::state::credentials::Ids::all(1000), ..Credentials::default() };
        let make = |segments: &mut Segments, bytes| segments.make((0, 0o600, bytes), &user, 5, 0);
        let id = make(&mut segments, 15 * PAGE_BYTES + 1).unwrap();
        assert_eq!(make(&mut segments, 1), Err(Errno::ENOSPC), "half of all is a user's share");
        segments.recount();
        assert_eq!((make(&mut segments, 1), segments.used()), (Err(Errno::ENOSPC), (1, 16, 32)));
        segments.drop(id).unwrap();
        assert_eq!((segments.drop(id), segments.used()), (Err(Errno::EINVAL), (0, 0, 32)));
        assert!(make(&mut segments, 16 * PAGE_BYTES).is_ok());
        segments.make((0, 0o600, 16 * PAGE_BYTES), &Credentials::default(), 5, 0).unwrap();
    }
}
