//! Grants: the right of another process to copy from or to a buffer (`abi::grant`).
//!
//! Safe code must not let a process write into memory that Rust assumes unshared. So there are these forms:
//! [`lend`] and [`lend_mut`] borrow a buffer while a closure runs (for calls that wait), [`GrantedBuffer`] owns its buffer
//! (for requests in flight), and [`MagicGrant`] grants a program's memory. Leaking one of the last two leaks its buffer too,
//! so the grant stays sound. [`RangeGrant`] grants memory that Rust never sees.

use crate::{Result, raw};
use abi::call::KernelCall;
use abi::grant::{MAGIC, READ, USED, WRITE};
use abi::{Endpoint, Errno, GrantId};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};

/// Limit of grants of one program at a time.
const ENTRIES: usize = 1024;

/// Rights of the grantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Copy from the buffer.
    Read,
    /// Copy into the buffer.
    Write,
    /// Copy from and into the buffer.
    ReadWrite,
}

impl Access {
    const fn flags(self) -> u32 {
        match self {
            Access::Read => READ,
            Access::Write => WRITE,
            Access::ReadWrite => READ | WRITE,
        }
    }
}

/// Runs `act` while `grantee` may copy from `buffer`.
///
/// # Errors
/// `ENOSPC`: too many grants; `ECALLDENIED`: this program may not use grants.
pub fn lend<R>(buffer: &[u8], grantee: Endpoint, act: impl FnOnce(GrantId) -> R) -> Result<R> {
    let lent = Entry::new(READ, grantee, Endpoint::SELF, buffer.as_ptr() as u64, buffer.len() as u64)?;
    Ok(act(lent.id))
}

/// Runs `act` while `grantee` may copy into `buffer`.
///
/// # Errors
/// As [`lend`].
pub fn lend_mut<R>(buffer: &mut [u8], grantee: Endpoint, act: impl FnOnce(GrantId) -> R) -> Result<R> {
    let lent = Entry::new(WRITE, grantee, Endpoint::SELF, buffer.as_mut_ptr() as u64, buffer.len() as u64)?;
    Ok(act(lent.id))
}

/// A buffer that another process may copy from or to, until it is reclaimed.
#[derive(Debug)]
pub struct GrantedBuffer {
    // Declared first: dropped before the buffer, which revokes the grant.
    entry: Entry,
    buffer: Vec<u8>,
}

impl GrantedBuffer {
    /// Grants all of `buffer` to `grantee`.
    ///
    /// # Errors
    /// As [`lend`].
    pub fn new(mut buffer: Vec<u8>, grantee: Endpoint, access: Access) -> Result<GrantedBuffer> {
        let address = buffer.as_mut_ptr() as u64;
        let entry = Entry::new(access.flags(), grantee, Endpoint::SELF, address, buffer.len() as u64)?;
        Ok(GrantedBuffer { entry, buffer })
    }

    /// Returns the grant's number, for the request.
    pub fn id(&self) -> GrantId {
        self.entry.id
    }

    /// Revokes the grant and returns the buffer.
    pub fn take(self) -> Vec<u8> {
        let GrantedBuffer { entry, buffer } = self;
        drop(entry);
        buffer
    }
}

/// A grant of an application's memory, made in its name (privilege flag `MAGIC_GRANTS`). Dropping it revokes it.
#[derive(Debug)]
pub struct MagicGrant {
    entry: Entry,
}

impl MagicGrant {
    /// Grants `grantee` access to `bytes` bytes at `address` of `owner`. The copy fails if they are not mapped.
    ///
    /// # Errors
    /// As [`lend`]; `EINVAL`: `owner` is not an application thread.
    pub fn new(owner: Endpoint, address: u64, bytes: u64, grantee: Endpoint, access: Access) -> Result<MagicGrant> {
        if !owner.is_application() {
            return Err(Errno::EINVAL);
        }
        let entry = Entry::new(MAGIC | access.flags(), grantee, owner, address, bytes)?;
        Ok(MagicGrant { entry })
    }

    /// Returns the grant's number, for the request.
    pub fn id(&self) -> GrantId {
        self.entry.id
    }
}

/// A grant of memory that stays where it is as long as the service: of a [`PageCache`](crate::page_cache::PageCache), or preserved
/// ([`Keep`](crate::keep::Keep)). Dropping it revokes it.
#[derive(Debug)]
pub struct RangeGrant {
    entry: Entry,
}

impl RangeGrant {
    pub(crate) fn new(address: u64, bytes: u64, grantee: Endpoint, access: Access) -> Result<RangeGrant> {
        Ok(RangeGrant { entry: Entry::new(access.flags(), grantee, Endpoint::SELF, address, bytes)? })
    }

    /// Returns the grant's number, for the request.
    pub fn id(&self) -> GrantId {
        self.entry.id
    }
}

/// A used entry of the table; private, because it does not keep the buffer alive.
#[derive(Debug)]
struct Entry {
    id: GrantId,
}

impl Entry {
    fn new(flags: u32, grantee: Endpoint, owner: Endpoint, address: u64, bytes: u64) -> Result<Entry> {
        with_table(|table| {
            table.register()?;
            let id = table.insert(flags, grantee, owner, address, bytes).ok_or(Errno::ENOSPC)?;
            Ok(Entry { id })
        })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        with_table(|table| table.remove(self.id));
    }
}

/// Revokes all grants of the previous incarnation: their buffers were on its stack, or have no owner.
#[cfg(target_os = "none")]
pub(crate) fn revoke_all() {
    with_table(Table::revoke_all);
}

#[cfg(target_os = "none")]
fn with_table<R>(act: impl FnOnce(&Table<ENTRIES>) -> R) -> R {
    static TABLE: Table<ENTRIES> = Table::new();
    act(&TABLE)
}

/// In tests each thread is a program of its own.
#[cfg(not(target_os = "none"))]
fn with_table<R>(act: impl FnOnce(&Table<ENTRIES>) -> R) -> R {
    std::thread_local! {
        static TABLE: Table<ENTRIES> = const { Table::new() };
    }
    TABLE.with(act)
}

/// An `abi::grant::GrantEntry` that the kernel reads while we write. In entries without `USED`, `bytes` is
/// one more than the index of the next free one, 0: none.
#[repr(C, align(32))]
struct Slot {
    flags: AtomicU32,
    sequence: AtomicU32,
    grantee: AtomicU32,
    owner: AtomicU32,
    address: AtomicU64,
    bytes: AtomicU64,
}

const _: () = assert!(size_of::<Slot>() == size_of::<abi::grant::GrantEntry>());

/// The grant table. Atomics only because it is a static that the kernel reads; one thread writes.
struct Table<const N: usize> {
    slots: [Slot; N],
    registered: AtomicBool,
    /// Entries from here on have never been used.
    fresh: AtomicU64,
    /// One more than the index of the first free entry below `fresh`; 0: none. (All zeros make the table part of .bss.)
    free: AtomicU64,
}

impl<const N: usize> Table<N> {
    const fn new() -> Self {
        let slots = [const {
            Slot {
                flags: AtomicU32::new(0),
                sequence: AtomicU32::new(0),
                grantee: AtomicU32::new(0),
                owner: AtomicU32::new(0),
                address: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
            }
        }; N];
        Table { slots, registered: AtomicBool::new(false), fresh: AtomicU64::new(0), free: AtomicU64::new(0) }
    }

    /// Registers the table with the kernel, at the first call.
    #[inline]
    fn register(&self) -> Result<()> {
        if !self.registered.load(Ordering::Relaxed) {
            let address = self.slots.as_ptr() as u64;
            raw::kernel(KernelCall::SetGrants, [address, N as u64, 0, 0, 0, 0])?;
            self.registered.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn insert(&self, flags: u32, grantee: Endpoint, owner: Endpoint, address: u64, bytes: u64) -> Option<GrantId> {
        let index = self.pop_free()?;
        let slot = &self.slots[index];
        slot.grantee.store(grantee.0, Ordering::Relaxed);
        slot.owner.store(owner.0, Ordering::Relaxed);
        slot.address.store(address, Ordering::Relaxed);
        slot.bytes.store(bytes, Ordering::Relaxed);
        slot.flags.store(flags | USED, Ordering::Release);
        Some(GrantId::new(index as u16, slot.sequence.load(Ordering::Relaxed) as u16))
    }

    fn remove(&self, id: GrantId) {
        let slot = &self.slots[id.index()];
        slot.flags.store(0, Ordering::Relaxed);
        // The buffer is read only after the grant has been revoked.
        compiler_fence(Ordering::SeqCst);
        slot.sequence.store(id.sequence().wrapping_add(1) as u32, Ordering::Relaxed);
        slot.bytes.store(self.free.load(Ordering::Relaxed), Ordering::Relaxed);
        self.free.store(id.index() as u64 + 1, Ordering::Relaxed);
    }

    fn pop_free(&self) -> Option<usize> {
        let free = (self.free.load(Ordering::Relaxed) as usize).wrapping_sub(1);
        if let Some(slot) = self.slots.get(free) {
            self.free.store(slot.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
            return Some(free);
        }
        let fresh = self.fresh.load(Ordering::Relaxed) as usize;
        if fresh == N {
            return None;
        }
        self.fresh.store(fresh as u64 + 1, Ordering::Relaxed);
        Some(fresh)
    }

    /// Revokes all grants; the next one registers the table again.
    #[cfg(any(target_os = "none", test))]
    fn revoke_all(&self) {
        self.registered.store(false, Ordering::Relaxed);
        self.free.store(0, Ordering::Relaxed);
        let fresh = (self.fresh.load(Ordering::Relaxed) as usize).min(N);
        for (index, slot) in self.slots[..fresh].iter().enumerate() {
            self.remove(GrantId::new(index as u16, slot.sequence.load(Ordering::Relaxed) as u16));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    fn insert<const N: usize>(table: &Table<N>) -> Option<GrantId> {
        table.insert(READ, Endpoint::VM, Endpoint::SELF, 0x1000, 16)
    }

    #[test]
    fn live_grants_have_different_entries_until_the_table_is_full() {
        let table = Table::<8>::new();
        let indexes: BTreeSet<usize> = (0..8).map(|_| insert(&table).expect("there is room").index()).collect();
        assert_eq!(indexes.len(), 8);
        assert_eq!(insert(&table), None);
    }

    #[test]
    fn a_revoked_number_never_names_the_next_grant_in_the_same_entry() {
        let table = Table::<1>::new();
        let first = insert(&table).expect("there is room");
        table.remove(first);
        assert_eq!(table.slots[0].flags.load(Ordering::Relaxed), 0);
        let second = insert(&table).expect("there is room again");
        assert_eq!(second.index(), first.index());
        assert_ne!(second.sequence(), first.sequence());
    }

    #[test]
    fn entries_freed_in_any_order_are_all_used_again() {
        let table = Table::<4>::new();
        let ids: Vec<GrantId> = (0..4).map(|_| insert(&table).expect("there is room")).collect();
        for at in [2, 0, 3, 1] {
            table.remove(ids[at]);
        }
        assert_eq!((0..4).filter_map(|_| insert(&table)).count(), 4);
        assert_eq!(insert(&table), None);
    }

    #[test]
    fn after_a_life_no_grant_of_it_is_valid_and_all_entries_are_free() {
        let table = Table::<4>::new();
        let old: Vec<GrantId> = (0..3).filter_map(|_| insert(&table)).collect();
        table.remove(old[1]);
        table.revoke_all();
        assert!(table.slots.iter().all(|slot| slot.flags.load(Ordering::Relaxed) & USED == 0));
        let new: Vec<GrantId> = (0..4).filter_map(|_| insert(&table)).collect();
        assert_eq!(new.len(), 4);
        assert!(new.iter().all(|id| !old.contains(id)));
    }

    #[test]
    fn sequence_numbers_wrap_within_sixteen_bits() {
        let table = Table::<1>::new();
        for _ in 0..0x1_0002 {
            table.remove(insert(&table).expect("there is room"));
        }
        assert_eq!(table.slots[0].sequence.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn only_memory_of_applications_can_be_granted_by_magic() {
        let service = Endpoint::new(9, 1);
        let refused = MagicGrant::new(service, 0x1000, 1, Endpoint::VM, Access::Write);
        assert_eq!(refused.err(), Some(Errno::EINVAL));
    }
}
