//! The calls for System V shared memory: `shmget`, `shmat`, `shmctl`; `shmdt` is vm's. The segments themselves are in `state::segments`.
//!
//! pm decides who may, vm maps. A segment that was removed while it was attached stays in the table until vm has freed it: pm learns that
//! when it asks, which it does whenever somebody looks at the segment, and when a table is full.

use crate::pm::Pm;
use crate::state::credentials::Credentials;
use crate::state::index::ThreadIndex;
use crate::state::ipc::{ALTER, READ};
use crate::state::segments::{MOST_BYTES, SEGMENTS, Segment};
use crate::system::{SegmentUse, System};
use crate::sysv::{IPC_64, PAGE_BYTES};
use abi::{Errno, vm};
use alloc::vec::Vec;
use sys::fallible;

type Result<T> = core::result::Result<T, Errno>;

/// Flag of shmget: large pages, of which there are none.
const SHM_HUGETLB: u64 = 0o4000;
/// Flags of shmat.
const SHM_RDONLY: u64 = 0o10000;
const SHM_RND: u64 = 0o20000;
const SHM_REMAP: u64 = 0o40000;
const SHM_EXEC: u64 = 0o100000;
/// Right to execute.
const EXECUTE: u32 = 1;

/// Commands of shmctl(2).
mod command {
    pub use crate::sysv::command::*;
    pub const LOCK: u64 = 11;
    pub const UNLOCK: u64 = 12;
    pub const SHM_STAT: u64 = 13;
    pub const SHM_INFO: u64 = 14;
    pub const SHM_STAT_ANY: u64 = 15;
}

/// Words of `struct shmid_ds`, `struct shminfo` and `struct shm_info`.
const STATUS_WORDS: usize = 14;
const LIMITS_WORDS: usize = 9;
const USE_WORDS: usize = 6;

impl<S: System> Pm<S> {
    /// `shmget(key, bytes, flags)`: returns the identifier.
    pub fn shmget(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let (key, bytes, flags) = (a[0] as u32, a[1], a[2]);
        let now_s = self.programs.now_s();
        let fits = |segment: &Segment| if segment.bytes < bytes { Err(Errno::EINVAL) } else { Ok(()) };
        if let Some(id) = self.segments.all.find(key, flags, self.programs.credentials_of(t), fits)? {
            return Ok(id.into());
        }
        if bytes == 0 || bytes > MOST_BYTES {
            return Err(Errno::EINVAL);
        }
        if flags & SHM_HUGETLB != 0 {
            return Err(Errno::ENOMEM);
        }
        self.segments.set_memory(self.programs.system.memory().total);
        let what = (key, flags as u32, bytes);
        let made = self.make_segment(t, what, now_s);
        if made != Err(Errno::ENOSPC) || self.drop_freed_segments()? == 0 {
            return made;
        }
        self.make_segment(t, what, now_s)
    }

    fn make_segment(&mut self, t: ThreadIndex, what: (u32, u32, u64), now_s: u64) -> Result<u64> {
        let (who, pid) = (self.programs.credentials_of(t), self.programs.pid_of(t));
        self.segments.make(what, who, pid, now_s).map(u64::from)
    }

    /// `shmat(id, address, flags)`: returns the address.
    pub fn shmat(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let (id, flags) = (a[0] as u32, a[2]);
        let address = match a[1] % PAGE_BYTES {
            0 => a[1],
            beyond if flags & SHM_RND != 0 => a[1] - beyond,
            _ => return Err(Errno::EINVAL),
        };
        if address == 0 && flags & SHM_REMAP != 0 {
            return Err(Errno::EINVAL);
        }
        let mut rights = READ;
        let mut how = vm::ATTACH_READ;
        if flags & SHM_RDONLY == 0 {
            rights |= ALTER;
            how |= vm::ATTACH_WRITE;
        }
        if flags & SHM_EXEC != 0 {
            rights |= EXECUTE;
            how |= vm::ATTACH_EXECUTE;
        }
        if flags & SHM_REMAP != 0 {
            how |= vm::ATTACH_REPLACE;
        }
        self.segment_use(id)?;
        let segment = self.segments.all.get(id)?;
        if !segment.head.allows(self.programs.credentials_of(t), rights) {
            return Err(Errno::EACCES);
        }
        if !segment.is_removed {
            how |= vm::ATTACH_MAKE;
        }
        let (process, call) = (self.programs.table[t].endpoint(), self.programs.table[t].serial);
        let (segment, pages) = (id.into(), segment.pages());
        self.programs.system.vm_attach(vm::SegmentAttach { process, call, segment, pages, address, flags: how })
    }

    /// `shmctl(id, command, buffer)`.
    pub fn shmctl(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let (id, address) = (a[0] as u32, a[2]);
        match a[1] & 0xffff_ffff & !IPC_64 {
            command::RMID => self.remove_segment(t, id),
            command::SET => self.set_segment_owner(t, id, address),
            command::STAT => self.segment_status(t, id, address, true).map(|()| 0),
            command::LOCK => self.lock_segment(t, id, true),
            command::UNLOCK => self.lock_segment(t, id, false),
            command::IPC_INFO => self.segment_limits(t, address),
            command::SHM_INFO => self.segments_use(t, address),
            any @ (command::SHM_STAT | command::SHM_STAT_ANY) => {
                let id = self.segments.all.at(id as usize)?.head.id();
                self.segment_status(t, id, address, any == command::SHM_STAT).map(|()| id.into())
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// What vm knows of a segment. `EINVAL`: there is no such segment, or none any more.
    pub fn segment_use(&mut self, id: u32) -> Result<SegmentUse> {
        let is_removed = self.segments.all.get(id)?.is_removed;
        match self.programs.system.vm_segment(id) {
            Some(known) => Ok(known),
            // Nobody has attached it yet.
            None if !is_removed => Ok(SegmentUse::default()),
            None => self.segments.drop(id).and(Err(Errno::EINVAL)),
        }
    }

    /// Forgets the segments that vm has freed. Returns how many. `ENOMEM`.
    pub fn drop_freed_segments(&mut self) -> Result<usize> {
        let removed = self.removed_segments()?;
        Ok(removed.into_iter().filter(|id| self.segment_use(*id).is_err()).count())
    }

    fn removed_segments(&self) -> Result<Vec<u32>> {
        let removed = self.segments.all.iter().filter(|segment| segment.is_removed);
        fallible::collect(removed.map(|segment| segment.head.id()))
    }

    /// IPC_RMID: at once if nobody has it attached.
    fn remove_segment(&mut self, t: ThreadIndex, id: u32) -> Result<u64> {
        self.segment_use(id)?;
        let segment = self.segments.all.get(id)?;
        if !segment.head.is_owned_by(self.programs.credentials_of(t)) {
            return Err(Errno::EPERM);
        }
        segment.is_removed = true;
        segment.head.make_private();
        // If pm dies before vm knows, the successor tells vm, and this call has succeeded.
        self.programs.note_done(t);
        self.release_segment(id).map(|()| 0)
    }

    fn release_segment(&mut self, id: u32) -> Result<()> {
        match self.programs.system.vm_release_segment(id) {
            0 => self.segments.drop(id),
            _ => Ok(()),
        }
    }

    /// After a death of pm: vm may not know yet that segments were removed.
    pub fn release_segments_again(&mut self) {
        for index in 0..self.segments.all.places() {
            if let Ok(segment) = self.segments.all.at(index)
                && segment.is_removed
            {
                let id = segment.head.id();
                // It is in the table.
                let _ = self.release_segment(id);
            }
        }
    }

    fn set_segment_owner(&mut self, t: ThreadIndex, id: u32, address: u64) -> Result<u64> {
        let (owner, mode) = self.programs.read_owner(t, address)?;
        let now_s = self.programs.now_s();
        self.segment_use(id)?;
        let segment = self.segments.all.get(id)?;
        segment.head.change(self.programs.credentials_of(t), owner, mode, now_s).map(|()| 0)
    }

    fn lock_segment(&mut self, t: ThreadIndex, id: u32, locks: bool) -> Result<u64> {
        self.segment_use(id)?;
        let segment = self.segments.all.get(id)?;
        if !segment.head.is_owned_by(self.programs.credentials_of(t)) {
            return Err(Errno::EPERM);
        }
        segment.is_locked = locks;
        Ok(0)
    }

    /// `struct shmid_ds` of a segment, which the caller must be allowed to read if `checks`.
    fn segment_status(&mut self, t: ThreadIndex, id: u32, address: u64, checks: bool) -> Result<()> {
        let known = self.segment_use(id)?;
        let segment = self.segments.all.get(id)?;
        let who: &Credentials = self.programs.credentials_of(t);
        if checks && !segment.head.allows(who, READ) {
            return Err(Errno::EACCES);
        }
        let words = status(segment, &known);
        self.programs.write_words(t, address, words)
    }

    /// `struct shminfo`: the limits. Returns the highest index in use.
    fn segment_limits(&mut self, t: ThreadIndex, address: u64) -> Result<u64> {
        self.drop_freed_segments()?;
        self.segments.set_memory(self.programs.system.memory().total);
        let (_, _, most_pages) = self.segments.used();
        let mut words = [0; LIMITS_WORDS];
        // shmmax, shmmin, shmmni, shmseg, shmall
        words[..5].copy_from_slice(&[MOST_BYTES, 1, SEGMENTS as u64, SEGMENTS as u64, most_pages]);
        self.programs.write_words(t, address, words)?;
        Ok(self.segments.all.highest_index() as u64)
    }

    /// `struct shm_info`: what is used. Returns the highest index in use.
    fn segments_use(&mut self, t: ThreadIndex, address: u64) -> Result<u64> {
        self.drop_freed_segments()?;
        let (count, pages, _) = self.segments.used();
        let ids = fallible::collect(self.segments.all.iter().map(|segment| segment.head.id()))?;
        let resident = ids.into_iter().filter_map(|id| self.programs.system.vm_segment(id));
        let resident_pages = resident.map(|known| known.resident_pages).sum();
        let mut words = [0; USE_WORDS];
        // used_ids, shm_tot, shm_rss; shm_swp and what was swapped are 0.
        words[..3].copy_from_slice(&[count, pages, resident_pages]);
        self.programs.write_words(t, address, words)?;
        Ok(self.segments.all.highest_index() as u64)
    }
}

/// A `struct shmid_ds`.
fn status(segment: &Segment, known: &SegmentUse) -> [u64; STATUS_WORDS] {
    let mut words = [0; STATUS_WORDS];
    words[..3].copy_from_slice(&segment.head.words());
    words[2] |= u64::from(segment.marks()) << 32;
    words[6..10].copy_from_slice(&[segment.bytes, known.attached_s, known.detached_s, segment.head.changed_s]);
    words[10..12].copy_from_slice(&[u64::from(segment.creator) | known.pid << 32, known.attaches]);
    words
}
