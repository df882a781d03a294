//! Loop devices: block devices whose content is that of a file (loop(4)). What is behind each of them, and who uses it.
//!
//! Invariant: the record of a device says the same as its heap form; a device that is to be cleared by itself (`LO_FLAGS_AUTOCLEAR`) is bound
//! only while somebody uses it. Neighbours: `base::loops` (reads and writes), `objects::block` (open ones), `calls::loops` (ioctl).

use super::{leases::Access, vnode::NodeRef};
use crate::keep::{
    ROOT, Store,
    records::{LoopRecord, NodeRecord},
};
use abi::{Errno, limits::LOOP_DEVICES};
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};

/// Major number of loop devices.
pub const LOOP_MAJOR: u32 = 7;
/// Positions and sizes are multiples of this.
const SECTOR: u64 = 512;

/// The device refuses writes.
pub const LO_FLAGS_READ_ONLY: u32 = 1;
/// The device is cleared when nobody uses it any more.
pub const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// Partitions are wanted; there are none.
pub const LO_FLAGS_PARTSCAN: u32 = 8;

/// What programs set of a device.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Where the device begins in the file.
    pub offset: u64,
    /// Most bytes that it has; 0: no limit.
    pub limit: u64,
    /// `LO_FLAGS_*`.
    pub flags: u32,
    /// `lo_file_name`.
    pub name: &'a [u8],
}

/// The file behind a device.
#[derive(Debug)]
pub struct Backing {
    node: NodeRef,
    record: Cell<LoopRecord>,
}

impl Backing {
    /// Counts the file as open, as by the one who gave it to the device.
    fn new(node: NodeRef, record: LoopRecord) -> Rc<Backing> {
        node.leases().opened(access(&record));
        Rc::new(Backing { node, record: Cell::new(record) })
    }

    /// The file.
    pub fn node(&self) -> &NodeRef {
        &self.node
    }

    /// What is preserved.
    pub fn record(&self) -> LoopRecord {
        self.record.get()
    }

    /// Size of the device.
    pub fn bytes(&self) -> u64 {
        self.record.get().bytes
    }

    /// `LO_FLAGS_*`.
    pub fn flags(&self) -> u32 {
        self.record.get().flags.into()
    }

    /// Whether the device refuses writes.
    pub fn is_read_only(&self) -> bool {
        self.flags() & LO_FLAGS_READ_ONLY != 0
    }

    /// Where these bytes of the device are in the file. `EINVAL`: beyond its end.
    pub fn locate(&self, position: u64, bytes: u64) -> Result<u64, Errno> {
        let end = position.checked_add(bytes).filter(|end| *end <= self.bytes());
        end.map(|_| self.record.get().offset + position).ok_or(Errno::EINVAL)
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        self.node.leases().closed(access(&self.record.get()));
    }
}

/// How the file is open: it was opened for writing unless the device refuses writes.
fn access(record: &LoopRecord) -> Access {
    if u32::from(record.flags) & LO_FLAGS_READ_ONLY != 0 { Access::Read } else { Access::Write }
}

/// Size of a device over a file of so many bytes.
fn size(file_bytes: u64, offset: u64, limit: u64) -> u64 {
    let rest = file_bytes.saturating_sub(offset);
    let bytes = if limit == 0 { rest } else { rest.min(limit) };
    bytes - bytes % SECTOR
}

/// One loop device.
#[derive(Debug)]
pub struct LoopDevice {
    number: usize,
    store: Rc<Store>,
    backing: RefCell<Option<Rc<Backing>>>,
    /// Open files of it, and the mount.
    users: Cell<u32>,
}

impl LoopDevice {
    /// Its minor number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// What is behind it. `ENXIO`: nothing.
    pub fn backing(&self) -> Result<Rc<Backing>, Errno> {
        self.backing.borrow().clone().ok_or(Errno::ENXIO)
    }

    /// Its size; 0: nothing is behind it.
    pub fn bytes(&self) -> u64 {
        self.backing.borrow().as_ref().map_or(0, |backing| backing.bytes())
    }

    /// How many open files and mounts use it.
    pub fn users(&self) -> u32 {
        self.users.get()
    }

    /// Puts a file behind it. `EBUSY`: there is one; `ENOMEM`.
    pub fn bind(&self, node: NodeRef, settings: &Settings<'_>, block_bytes: u16) -> Result<(), Errno> {
        if self.backing.borrow().is_some() {
            return Err(Errno::EBUSY);
        }
        let Settings { offset, limit, flags, name } = *settings;
        let record = LoopRecord {
            node: node.record(),
            seals: node.seals().map_or(0, |seals| seals.get() as u8),
            flags: flags as u8,
            block_bytes,
            offset,
            limit,
            bytes: size(node.size(), offset, limit),
            name: self.store.put_text(name, ROOT).map_err(|_| Errno::ENOMEM)?,
        };
        self.store.set_loop(self.number, Some(&record));
        self.backing.replace(Some(Backing::new(node, record)));
        Ok(())
    }

    /// Changes what programs set. `ENXIO`: nothing is behind it; `ENOMEM`.
    pub fn set(&self, settings: &Settings<'_>) -> Result<(), Errno> {
        let backing = self.backing()?;
        let old = backing.record();
        let Settings { offset, limit, flags, name } = *settings;
        let name = self.store.put_text(name, ROOT).map_err(|_| Errno::ENOMEM)?;
        self.store.release_text(old.name);
        let is_moved = (old.offset, old.limit) != (offset, limit);
        let bytes = if is_moved { size(backing.node.size(), offset, limit) } else { old.bytes };
        self.update(&backing, LoopRecord { offset, limit, flags: flags as u8, bytes, name, ..old });
        Ok(())
    }

    /// Looks up the size of the file again. `ENXIO`.
    pub fn measure(&self) -> Result<(), Errno> {
        let backing = self.backing()?;
        let old = backing.record();
        let bytes = size(backing.node.size(), old.offset, old.limit);
        self.update(&backing, LoopRecord { bytes, ..old });
        Ok(())
    }

    /// Sets the size of a block, as programs are told. `ENXIO`.
    pub fn set_block_bytes(&self, block_bytes: u16) -> Result<(), Errno> {
        let backing = self.backing()?;
        self.update(&backing, LoopRecord { block_bytes, ..backing.record() });
        Ok(())
    }

    /// `LOOP_CLR_FD` by one of its users: at once if there is no other, else when the last one goes. `ENXIO`.
    pub fn clear(&self) -> Result<(), Errno> {
        let backing = self.backing()?;
        if self.users() > 1 {
            let old = backing.record();
            self.update(&backing, LoopRecord { flags: old.flags | LO_FLAGS_AUTOCLEAR as u8, ..old });
        } else {
            self.unbind();
        }
        Ok(())
    }

    fn update(&self, backing: &Backing, record: LoopRecord) {
        backing.record.set(record);
        self.store.set_loop(self.number, Some(&record));
    }

    fn unbind(&self) {
        let Some(backing) = self.backing.take() else { return };
        self.store.release_text(backing.record().name);
        self.store.set_loop(self.number, None);
    }

    fn unbind_if_unused(&self) {
        let clears = self.backing.borrow().as_ref().is_some_and(|backing| backing.flags() & LO_FLAGS_AUTOCLEAR != 0);
        if clears && self.users() == 0 {
            self.unbind();
        }
    }

    /// Puts the file behind it that a predecessor had there.
    fn restore(&self, node: NodeRef, record: LoopRecord) {
        if let Some(seals) = node.seals() {
            seals.set(record.seals.into());
        }
        self.backing.replace(Some(Backing::new(node, record)));
    }
}

/// A use of a device, by an open file or a mount.
#[derive(Debug)]
pub struct LoopUse(Rc<LoopDevice>);

impl LoopUse {
    /// Counts a use.
    pub fn new(device: Rc<LoopDevice>) -> LoopUse {
        device.users.set(device.users.get() + 1);
        LoopUse(device)
    }

    /// The device.
    pub fn device(&self) -> &Rc<LoopDevice> {
        &self.0
    }
}

impl Drop for LoopUse {
    fn drop(&mut self) {
        self.0.users.set(self.0.users.get() - 1);
        self.0.unbind_if_unused();
    }
}

/// All loop devices.
pub struct Loops([Rc<LoopDevice>; LOOP_DEVICES]);

impl Loops {
    /// Nothing is behind any of them.
    pub fn new(store: &Rc<Store>) -> Loops {
        Loops(core::array::from_fn(|number| {
            let (backing, users) = (RefCell::new(None), Cell::new(0));
            Rc::new(LoopDevice { number, store: store.clone(), backing, users })
        }))
    }

    /// The device with this minor number. `ENXIO`.
    pub fn device(&self, number: u64) -> Result<Rc<LoopDevice>, Errno> {
        self.0.get(number as usize).cloned().ok_or(Errno::ENXIO)
    }

    /// The number of the first one with nothing behind it. `ENOSPC`.
    pub fn first_free(&self) -> Result<u64, Errno> {
        let free = self.0.iter().position(|device| device.backing.borrow().is_none());
        free.map(|number| number as u64).ok_or(Errno::ENOSPC)
    }

    /// Puts the files behind them that a predecessor had there, after its mounts. Returns how many could not be found.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub fn restore(&self, store: &Store, node: impl Fn(NodeRecord) -> Option<NodeRef>) -> usize {
        let found: Vec<(usize, LoopRecord)> = store.loops().collect();
        let mut lost = 0;
        for (number, record) in found {
            match node(record.node) {
                Some(node) => {
                    store.claim_text(record.name, ROOT);
                    self.0[number].restore(node, record);
                }
                None => {
                    store.set_loop(number, None);
                    lost += 1;
                }
            }
        }
        lost
    }

    /// After a restoration: clears those that nobody uses although they were to be cleared then.
    pub fn settle(&self) {
        self.0.iter().for_each(|device| device.unbind_if_unused());
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn a_device_has_the_whole_sectors_between_offset_and_limit() {
        assert_eq!(size(10_000, 0, 0), 9728);
        assert_eq!(size(10_000, 1000, 0), 8704);
        assert_eq!(size(10_000, 1000, 4096), 4096);
        assert_eq!(size(10_000, 1000, 100_000), 8704);
        assert_eq!(size(10_000, 20_000, 0), 0);
    }
}
