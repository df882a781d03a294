//! shmat and shmdt: mappings of System V segments, in one address space.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::memory::object::{Content, ObjectId};
use crate::space::AddressSpace;
use crate::space::region::{Backing, Purpose, Region, Rights};
use abi::{
    Errno,
    layout::{PAGE_BYTES, USER_END, USER_START},
};
use sys::fallible;

/// What is to be attached, and where.
#[derive(Clone, Copy, Debug)]
pub struct Attach {
    /// The segment.
    pub object: ObjectId,
    /// Its length.
    pub pages: u64,
    /// Where; 0: anywhere.
    pub address: u64,
    /// With which rights.
    pub rights: Rights,
    /// What is mapped there is replaced (SHM_REMAP).
    pub replaces: bool,
}

impl AddressSpace {
    /// Whether the segment is attached at this address, from its beginning.
    pub fn shows(&mut self, address: u64, object: ObjectId) -> bool {
        self.regions.find(address).is_some_and(|region| {
            region.start == address
                && region.purpose == Purpose::Segment
                && region.backing == Backing::Object(object, 0)
        })
    }

    /// The address for a segment. `EINVAL`: something is mapped there; `ENOMEM`: no addresses of programs; `EPERM`: too low.
    pub fn choose_attach(&mut self, attach: &Attach) -> Result<u64, Errno> {
        let bytes = attach.pages.checked_mul(PAGE_BYTES).ok_or(Errno::EINVAL)?;
        if attach.address == 0 {
            return self.free_range(bytes, self.regions.top());
        }
        let end = attach.address.checked_add(bytes).filter(|_| attach.address.is_multiple_of(PAGE_BYTES));
        let end = end.ok_or(Errno::EINVAL)?;
        match () {
            () if !attach.replaces && !self.regions.is_free(attach.address, end) => Err(Errno::EINVAL),
            () if end > USER_END => Err(Errno::ENOMEM),
            () if attach.address < USER_START => Err(Errno::EPERM),
            () => Ok(attach.address),
        }
    }

    /// Maps a segment at the address that `choose_attach` has chosen.
    pub fn attach_segment<K: Kernel>(&mut self, memory: &mut Memory<K>, attach: &Attach) -> Result<(), Errno> {
        let (start, end) = (attach.address, attach.address + attach.pages * PAGE_BYTES);
        self.regions.check_count()?;
        let region = Region {
            shared: true,
            may_write: attach.rights.has(Rights::WRITE),
            locked: self.locks_new,
            purpose: Purpose::Segment,
            backing: Backing::Object(attach.object, 0),
            ..Region::anonymous(start, end, attach.rights)
        };
        self.check_new(&region)?;
        self.remove(memory, start, end)?;
        self.add(memory, region);
        Ok(())
    }

    /// shmdt: unmaps what is left of the segment that was attached at this address. `EINVAL`: none was.
    pub fn detach_segment<K: Kernel>(&mut self, memory: &mut Memory<K>, address: u64) -> Result<u64, Errno> {
        if !address.is_multiple_of(PAGE_BYTES) || address >= USER_END {
            return Err(Errno::EINVAL);
        }
        let (object, end) = self.attached_at(memory, address).ok_or(Errno::EINVAL)?;
        let regions = self.regions.overlapping(address, end).filter(|region| is_part(region, address, object)).copied();
        let regions = fallible::collect(regions)?;
        self.ensure_change(memory, address, end)?;
        regions.iter().try_for_each(|region| self.remove_ensured(memory, region.start, region.end)).map(|()| 0)
    }

    /// The segment that was attached at this address, and where it ends.
    fn attached_at<K>(&self, memory: &Memory<K>, address: u64) -> Option<(ObjectId, u64)> {
        self.regions.overlapping(address, USER_END).find_map(|region| {
            let Backing::Object(object, _) = region.backing else { return None };
            let Content::Segment { pages, .. } = memory.objects.get(object)?.content else { return None };
            is_part(region, address, object).then_some((object, address.saturating_add(pages * PAGE_BYTES)))
        })
    }
}

/// Whether a region shows that part of the segment which lies there if the segment begins at this address.
fn is_part(region: &Region, address: u64, object: ObjectId) -> bool {
    let offset = region.start.checked_sub(address).map(|bytes| bytes / PAGE_BYTES);
    region.purpose == Purpose::Segment && offset.is_some_and(|first| region.backing == Backing::Object(object, first))
}
