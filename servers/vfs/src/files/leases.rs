//! Leases of one file (fcntl(2), `F_SETLEASE`), and the owners to whom the signals of open files go (`F_SETOWN`).
//!
//! A lease is held by an open file. A conflicting open, or a truncation, *breaks* it: the owner is signalled, and the lease ends or is
//! downgraded by the holder, or by force at a deadline. An open file holds at most one lease, in its [`FileOwner`].
//! Invariants: a vnode lists exactly the owners that hold a lease on it, and counts its open files. Neighbours: `base::leases` (breaks
//! leases and waits), `calls::leases` (fcntl).

use crate::{
    events::{Watch, Watchers},
    keep::{
        Kept, Store,
        records::{LeaseRecord, OwnerRecord},
    },
};
use abi::{
    Errno,
    vfs::{LEASE_BREAK_S, OWNER_PROCESS},
};
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};
use sys::fallible::TryVec;

/// Time from the begin of a break to the end of the lease by force.
pub const BREAK_NS: u64 = LEASE_BREAK_S * 1_000_000_000;

/// What an open file may do, and the kind of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reads. A read lease conflicts with opens for writing.
    Read,
    /// Writes, or reads and writes. A write lease conflicts with every open.
    Write,
}

impl LeaseRecord {
    fn access(&self) -> Access {
        if self.exclusive { Access::Write } else { Access::Read }
    }

    fn conflicts(&self, with: Access) -> bool {
        self.exclusive || with == Access::Write
    }

    fn is_to_end(&self) -> bool {
        self.release_ns != 0
    }

    fn is_breaking(&self) -> bool {
        self.is_to_end() || self.downgrade_ns != 0
    }

    /// The monotonic time at which the lease changes by force; `None`: it is not being broken.
    fn deadline(&self) -> Option<u64> {
        [self.downgrade_ns, self.release_ns].into_iter().filter(|deadline_ns| *deadline_ns != 0).min()
    }

    /// The lease after a break for this access has begun; `None`: such a break has begun before.
    fn broken(self, wanted: Access, deadline_ns: u64) -> Option<LeaseRecord> {
        match wanted {
            Access::Write if !self.is_to_end() => Some(LeaseRecord { release_ns: deadline_ns, ..self }),
            Access::Read if !self.is_breaking() => Some(LeaseRecord { downgrade_ns: deadline_ns, ..self }),
            _ => None,
        }
    }

    /// The lease after the holder has set this kind. A downgrade ends a break by a reader, but not one by a writer.
    fn changed(self, access: Access) -> LeaseRecord {
        match access {
            Access::Read => LeaseRecord { exclusive: false, downgrade_ns: 0, ..self },
            Access::Write => LeaseRecord { exclusive: true, ..self },
        }
    }

    /// The lease at this monotonic time; `None`: it has ended by force.
    fn at(self, now_ns: u64) -> Option<LeaseRecord> {
        let is_past = |deadline_ns: u64| deadline_ns != 0 && deadline_ns <= now_ns;
        match self {
            lease if is_past(lease.release_ns) => None,
            lease if is_past(lease.downgrade_ns) => Some(lease.changed(Access::Read)),
            lease => Some(lease),
        }
    }
}

/// The owner of an open file, its signal, and the lease that the open file holds.
#[derive(Debug)]
pub struct FileOwner {
    record: Kept<OwnerRecord>,
    /// What tells the owner of what happens to the object of the open file (`O_ASYNC`).
    teller: RefCell<Option<Rc<dyn Watch>>>,
}

impl FileOwner {
    /// Makes an owner without id for the open file with this number and place, charged to a user. `ENOMEM`: no room.
    pub fn new(store: &Rc<Store>, number: u64, place: u32, user: u32) -> Result<Rc<FileOwner>, Errno> {
        let (kind, id, signal, named_by) = (0, 0, 0, [user; 2]);
        let record = OwnerRecord { number, place, user, kind, id, named_by, signal, told_of: None, lease: None };
        Ok(Rc::new(FileOwner { record: store.new_owner(record)?, teller: RefCell::default() }))
    }

    /// Restores the owner in this place of the records.
    pub fn restore(store: &Rc<Store>, place: u16, record: OwnerRecord) -> Rc<FileOwner> {
        Rc::new(FileOwner { record: Kept::new(store, place.into(), record), teller: RefCell::default() })
    }

    /// Returns what is preserved of it.
    pub fn record(&self) -> OwnerRecord {
        self.record.get()
    }

    /// Has the owner told by `teller` of what happens, as of the descriptor `told_of`; `None`: no more.
    pub fn set_teller(&self, told_of: Option<u32>, teller: Option<Rc<dyn Watch>>) {
        self.record.update(|record| record.told_of = told_of);
        self.teller.replace(teller);
    }

    /// Sets the kind of the id (`abi::vfs::OWNER_*`), the id (0: no owner), and the real and effective uid of the caller that names it.
    pub fn set_owner(&self, kind: u8, id: u32, named_by: [u32; 2]) {
        self.record.update(|record| (record.kind, record.id, record.named_by) = (kind, id, named_by));
    }

    /// Sets the signal; 0: SIGIO without details.
    pub fn set_signal(&self, signal: u8) {
        self.record.update(|record| record.signal = signal);
    }

    /// Whether its record can be freed: it has no id, no signal and no lease, and is not told of anything.
    pub fn is_unused(&self) -> bool {
        let OwnerRecord { id, signal, told_of, lease, .. } = self.record.get();
        (id, signal, told_of, lease) == (0, 0, None, None)
    }

    /// The lease as `F_GETLEASE` tells it: during a break, the lease that the break will leave.
    pub fn lease(&self) -> Option<Access> {
        let lease = self.record.get().lease.filter(|lease| !lease.is_to_end())?;
        Some(if lease.is_breaking() { Access::Read } else { lease.access() })
    }

    /// Sets the lease. Its end clears owner and signal, as on Linux.
    fn set_lease(&self, lease: Option<LeaseRecord>) {
        self.record.update(|record| {
            record.lease = lease;
            if lease.is_none() {
                (record.kind, record.id, record.signal) = (OWNER_PROCESS as u8, 0, 0);
            }
        });
    }
}

/// The leases of one file, the number of its open files, and the handlers that wait for the end of a lease.
#[derive(Debug, Default)]
pub struct FileLeases {
    holders: RefCell<Vec<Rc<FileOwner>>>,
    readers: Cell<u32>,
    writers: Cell<u32>,
    changed: Watchers,
}

impl FileLeases {
    fn count(&self, access: Access) -> &Cell<u32> {
        match access {
            Access::Read => &self.readers,
            Access::Write => &self.writers,
        }
    }

    /// Counts one more open file.
    #[inline]
    pub fn opened(&self, access: Access) {
        self.count(access).update(|count| count + 1);
    }

    /// Counts one open file less.
    #[inline]
    pub fn closed(&self, access: Access) {
        self.count(access).update(|count| count - 1);
    }

    /// Whether the file is open.
    pub fn is_open(&self) -> bool {
        self.readers.get() + self.writers.get() != 0
    }

    /// Whether the file is open for writing.
    pub fn is_written(&self) -> bool {
        self.writers.get() != 0
    }

    /// Whether there are any.
    #[inline]
    pub fn has_any(&self) -> bool {
        !self.holders.borrow().is_empty()
    }

    /// Fire when a lease ends or changes.
    pub fn watchers(&self) -> &Watchers {
        &self.changed
    }

    /// Sets or changes the lease of an open file whose own access is `own`. Its signal will tell `descriptor`. `EAGAIN`: other open files
    /// or leases conflict; `ENOMEM`.
    pub fn set(&self, owner: &Rc<FileOwner>, own: Access, wanted: Access, descriptor: u32) -> Result<(), Errno> {
        self.check_opens(own, wanted)?;
        let mut holders = self.holders.borrow_mut();
        let mut others = holders.iter().filter(|holder| !Rc::ptr_eq(holder, owner));
        if others.any(|other| other.record().lease.is_some_and(|lease| lease.is_to_end())) {
            return Err(Errno::EAGAIN);
        }
        let known = owner.record().lease;
        if known.is_none() {
            holders.try_push(owner.clone())?;
        }
        let lease = known.unwrap_or(LeaseRecord { exclusive: false, descriptor: 0, downgrade_ns: 0, release_ns: 0 });
        owner.set_lease(Some(LeaseRecord { descriptor, ..lease.changed(wanted) }));
        self.changed.fire();
        Ok(())
    }

    /// `EAGAIN` for a read lease while the file is open for writing, and for a write lease while it is open more than once.
    fn check_opens(&self, own: Access, wanted: Access) -> Result<(), Errno> {
        let opens = (self.readers.get(), self.writers.get());
        let alone = match (wanted, own) {
            (Access::Read, _) => opens.1 == 0,
            (Access::Write, Access::Read) => opens == (1, 0),
            (Access::Write, Access::Write) => opens == (0, 1),
        };
        if alone { Ok(()) } else { Err(Errno::EAGAIN) }
    }

    /// Ends the lease of the open file with this number. Returns whether it held one.
    pub fn release(&self, number: u64) -> bool {
        self.change(|record| record.lease.filter(|_| record.number != number))
    }

    /// Removes the lease of the open file with this number, which has been closed.
    pub fn forget(&self, number: u64) {
        let mut holders = self.holders.borrow_mut();
        let before = holders.len();
        holders.retain(|holder| holder.record().number != number);
        if holders.len() != before {
            self.changed.fire();
        }
    }

    /// Downgrades and ends the leases whose deadline has passed.
    pub fn expire(&self, now_ns: u64) {
        self.change(|record| record.lease.and_then(|lease| lease.at(now_ns)));
    }

    /// Replaces each lease by what `change` makes of it. Returns whether any has become another.
    fn change(&self, change: impl Fn(&OwnerRecord) -> Option<LeaseRecord>) -> bool {
        let mut changed = false;
        self.holders.borrow_mut().retain(|holder| {
            let (old, new) = (holder.record(), change(&holder.record()));
            if new != old.lease {
                holder.set_lease(new);
                changed = true;
            }
            new.is_some()
        });
        if changed {
            self.changed.fire();
        }
        changed
    }

    /// Begins a break of each lease that conflicts with this access, unless one has begun. Calls `announce` for each that begins.
    pub fn begin_break(&self, wanted: Access, deadline_ns: u64, announce: impl Fn(&OwnerRecord)) {
        for holder in self.holders.borrow().iter() {
            let conflicting = holder.record().lease.filter(|lease| lease.conflicts(wanted));
            if let Some(broken) = conflicting.and_then(|lease| lease.broken(wanted, deadline_ns)) {
                holder.set_lease(Some(broken));
                announce(&holder.record());
            }
        }
    }

    /// The first deadline of the leases that conflict with this access, all of which are being broken; `None`: no lease conflicts.
    pub fn deadline(&self, wanted: Access) -> Option<u64> {
        let holders = self.holders.borrow();
        let leases = holders.iter().filter_map(|holder| holder.record().lease);
        leases.filter(|lease| lease.conflicts(wanted)).filter_map(|lease| lease.deadline()).min()
    }

    /// Restores the lease of an owner that a predecessor has left.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub fn restore(&self, owner: &Rc<FileOwner>) {
        self.holders.borrow_mut().push(owner.clone());
    }
}
