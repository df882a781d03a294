//! Resource limits of memory (getrlimit(2)): `RLIMIT_AS`, `RLIMIT_DATA` and `RLIMIT_MEMLOCK`, which pm tells.
//!
//! What is limited is counted when a limit is set and something would grow: who has no limit pays nothing. Locked memory is no different from other
//! memory, which never leaves either; it is counted all the same.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::operations::mmap::user_range;
use crate::space::region::{Region, Rights};
use crate::space::{AddressSpace, Limits};
use abi::{
    Errno,
    layout::{PAGE_BYTES, USER_END},
    vm,
};
use core::ops::Range;

/// mlockall: what is mapped.
const MCL_CURRENT: u64 = 1;
/// mlockall: what will be mapped.
const MCL_FUTURE: u64 = 2;
/// mlockall: without filling it.
const MCL_ONFAULT: u64 = 4;

/// `error` when what is there, but for `replaced`, and `added` would be more than the limit.
fn check(limit: u64, there: impl Fn() -> u64, added: u64, error: Errno) -> Result<(), Errno> {
    let is_over = limit != Limits::INFINITY && there().saturating_add(added) > limit;
    if is_over { Err(error) } else { Ok(()) }
}

impl AddressSpace {
    /// Sets what pm tells. What there is already stays.
    pub fn set_limits(&mut self, told: &vm::SetLimits) {
        self.limits = Limits { addresses: told.addresses, data: told.data, locked: told.locked };
        self.set_stack_limit(told.stack);
    }

    fn bytes_of(&self, range: Range<u64>, test: impl Fn(&Region) -> bool) -> u64 {
        let (start, end) = (range.start, range.end);
        let counted = self.regions.overlapping(start, end).filter(|region| test(region));
        counted.map(|region| region.end.min(end) - region.start.max(start)).sum()
    }

    /// All such memory but what lies within `replaced`.
    fn bytes_beside(&self, replaced: &Range<u64>, test: impl Fn(&Region) -> bool + Copy) -> u64 {
        self.bytes_of(0..USER_END, test) - self.bytes_of(replaced.clone(), test)
    }

    /// Checks the limits for a region that comes in the place of what is within its range. `ENOMEM`; `EAGAIN`: too much is locked.
    pub fn check_new(&self, region: &Region) -> Result<(), Errno> {
        let (range, bytes) = (region.start..region.end, region.end - region.start);
        check(self.limits.addresses, || self.bytes_beside(&range, |_| true), bytes, Errno::ENOMEM)?;
        if region.is_data() {
            check(self.limits.data, || self.bytes_beside(&range, Region::is_data), bytes, Errno::ENOMEM)?;
        }
        if region.locked {
            check(self.limits.locked, || self.bytes_beside(&range, |region| region.locked), bytes, Errno::EAGAIN)?;
        }
        Ok(())
    }

    /// `ENOMEM`: with these rights a range would be too much private memory that may be written.
    pub fn check_rights(&self, range: Range<u64>, rights: Rights) -> Result<(), Errno> {
        let becomes_data = |region: &Region| !region.is_data() && Region { rights, ..*region }.is_data();
        let there = || self.bytes_of(0..USER_END, Region::is_data);
        check(self.limits.data, there, self.bytes_of(range, becomes_data), Errno::ENOMEM)
    }

    /// Whether new memory is locked. `EPERM`: the process may lock none.
    pub fn locks(&self, wanted: bool) -> Result<bool, Errno> {
        if wanted { self.check_may_lock().map(|()| true) } else { Ok(self.locks_new) }
    }

    fn check_may_lock(&self) -> Result<(), Errno> {
        if self.limits.locked == 0 { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// mlock and mlock2; with `populate` the memory is filled at once. `ENOMEM`: there is a hole, or too much is locked.
    pub fn mlock<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        address: u64,
        bytes: u64,
        populate: bool,
    ) -> Result<u64, Errno> {
        self.check_may_lock()?;
        let (start, end) = page_range(address, bytes)?;
        let there = || self.bytes_beside(&(start..end), |region| region.locked);
        check(self.limits.locked, there, end - start, Errno::ENOMEM)?;
        self.has_locked = true;
        self.set_locked(memory, start, end, true)?;
        if populate {
            self.populate(memory, start, end);
        }
        Ok(0)
    }

    /// munlock.
    pub fn munlock<K: Kernel>(&mut self, memory: &mut Memory<K>, address: u64, bytes: u64) -> Result<u64, Errno> {
        let (start, end) = page_range(address, bytes)?;
        self.set_locked(memory, start, end, false).map(|()| 0)
    }

    /// mlockall; fills nothing.
    pub fn mlockall<K: Kernel>(&mut self, memory: &mut Memory<K>, flags: u64) -> Result<u64, Errno> {
        if flags & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 || flags & (MCL_CURRENT | MCL_FUTURE) == 0 {
            return Err(Errno::EINVAL);
        }
        self.check_may_lock()?;
        self.has_locked = true;
        if flags & MCL_CURRENT != 0 {
            check(self.limits.locked, || self.bytes_of(0..USER_END, |_| true), 0, Errno::ENOMEM)?;
            self.lock_all(memory, true)?;
        }
        self.locks_new = flags & MCL_FUTURE != 0;
        Ok(0)
    }

    /// munlockall, and what fork leaves out.
    pub fn munlockall<K: Kernel>(&mut self, memory: &mut Memory<K>) -> Result<u64, Errno> {
        self.locks_new = false;
        if core::mem::take(&mut self.has_locked) {
            self.lock_all(memory, false)?;
        }
        Ok(0)
    }

    fn lock_all<K: Kernel>(&mut self, memory: &mut Memory<K>, locked: bool) -> Result<(), Errno> {
        self.ensure_change(memory, 0, USER_END)?;
        self.change(memory, 0, USER_END, |region| region.locked = locked);
        Ok(())
    }

    /// `ENOMEM`: there is a hole; what is before it has changed.
    fn set_locked<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        start: u64,
        end: u64,
        locked: bool,
    ) -> Result<(), Errno> {
        self.regions.check_count()?;
        let hole = self.regions.covered_until(start, end);
        if start < hole {
            self.ensure_change(memory, start, hole)?;
            self.change(memory, start, hole, |region| region.locked = locked);
        }
        if hole < end { Err(Errno::ENOMEM) } else { Ok(()) }
    }
}

/// The pages that some bytes lie in.
fn page_range(address: u64, bytes: u64) -> Result<(u64, u64), Errno> {
    let first = address / PAGE_BYTES * PAGE_BYTES;
    let bytes = bytes.checked_add(address - first).ok_or(Errno::EINVAL)?;
    user_range(first, bytes, Errno::ENOMEM)
}
