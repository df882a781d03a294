//! What a service gives back of its own memory.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::memory::object::Content;
use crate::space::AddressSpace;
use crate::space::region::{Backing, Region};
use abi::{
    Errno,
    layout::{PAGE_BYTES, SERVICE_DEVICES, SERVICE_HEAP},
};

impl AddressSpace {
    /// Frees pages of a service's heap or preserved memory: faults fill them with zeros again.
    ///
    /// # Errors
    /// `EINVAL`: not a service, no whole pages, or not within one region of these two.
    pub fn discard_own<K: Kernel>(&mut self, memory: &mut Memory<K>, address: u64, bytes: u64) -> Result<(), Errno> {
        let end = address.checked_add(bytes).ok_or(Errno::EINVAL)?;
        let is_whole = bytes > 0 && address.is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES);
        if !is_whole || !self.is_service || address < SERVICE_HEAP || end > SERVICE_DEVICES {
            return Err(Errno::EINVAL);
        }
        let region = self.regions.find(address).filter(|region| end <= region.end).ok_or(Errno::EINVAL)?;
        self.empty(memory, address, end)?;
        discard_preserved(memory, &region, address, end)
    }
}

/// Frees the pages of the object behind a region.
fn discard_preserved<K>(memory: &mut Memory<K>, region: &Region, start: u64, end: u64) -> Result<(), Errno> {
    let Backing::Object(id, first) = region.backing else { return Ok(()) };
    let object = memory.objects.get_mut(id).filter(|object| object.content == Content::Anonymous);
    let pages = &mut object.ok_or(Errno::EINVAL)?.pages;
    let page = |address: u64| first + (address - region.start) / PAGE_BYTES;
    pages.release(page(start), page(end), &mut memory.frames);
    Ok(())
}
