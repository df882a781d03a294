//! Fork: a second space with the same content. Nothing is copied but bookkeeping: both sides lose the right to write, and
//! the first write pays (`fault`). The fork of a space in which a thread is real-time is copied at once, and loses nothing.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::space::AddressSpace;
use crate::space::region::{Backing, OnFork, Region};
use abi::{
    Errno,
    layout::{PAGE_BYTES, USER_END},
};
use sys::fallible;

impl AddressSpace {
    /// A copy of this space for one thread.
    pub fn fork<K: Kernel>(&self, memory: &mut Memory<K>) -> Result<AddressSpace, Errno> {
        memory.ensure_heap(self.heap_bytes())?;
        let mut child = AddressSpace::new(memory)?.for_payer(self.payer());
        match self.copy_to(memory, &mut child) {
            Ok(()) => Ok(child),
            Err(error) => {
                child.destroy(memory)?;
                Err(error)
            }
        }
    }

    fn copy_to<K: Kernel>(&self, memory: &mut Memory<K>, child: &mut AddressSpace) -> Result<(), Errno> {
        if self.is_resident {
            self.copy_pages_to(memory, child)?;
        } else {
            self.share_pages_with(memory, child)?;
        }
        let now_s = self.segment_time(memory, 0, USER_END);
        for region in self.regions.iter() {
            if let Backing::Object(id, _) = region.backing {
                memory.objects.map(id, region.pages());
                self.count_attach(memory, region, true, now_s);
            }
        }
        *child = AddressSpace {
            id: child.id,
            users: 1,
            regions: self.regions.clone(),
            pages: core::mem::take(&mut child.pages),
            table_frames: child.table_frames,
            is_service: false,
            is_resident: false,
            ..*self
        };
        child.obey_fork_advice(memory)?;
        child.munlockall(memory).map(drop)
    }

    fn share_pages_with<K: Kernel>(&self, memory: &mut Memory<K>, child: &mut AddressSpace) -> Result<(), Errno> {
        let mut page = 0;
        while let Some((first, end)) = self.pages.stretch(page, u64::MAX) {
            let floor = |memory: &Memory<K>| self.floor(memory);
            match memory.copy(self.id, child.id, first, end - first, floor) {
                Ok(donated) => child.table_frames += donated,
                Err(error) => {
                    let copied = |_, first, pages| memory.kernel.unmap(child.id, first, pages);
                    self.each_stretch(0, end * PAGE_BYTES, copied)?;
                    return Err(error);
                }
            }
            page = end;
        }
        self.pages.owned().for_each(|(_, frame)| memory.frames.share(frame));
        child.pages = self.pages.clone();
        Ok(())
    }

    /// Gives the child frames of its own; faults map them. What objects show is found there.
    fn copy_pages_to<K: Kernel>(&self, memory: &mut Memory<K>, child: &mut AddressSpace) -> Result<(), Errno> {
        for (page, frame) in self.pages.owned() {
            let copy = memory.take_copy(frame, self.floor(memory))?;
            child.pages.own(page, copy);
        }
        Ok(())
    }

    /// Forgets what the parent has asked not to copy.
    fn obey_fork_advice<K: Kernel>(&mut self, memory: &mut Memory<K>) -> Result<(), Errno> {
        let special = |region: &&Region| region.on_fork != OnFork::Copy;
        let regions = fallible::collect(self.regions.iter().filter(special).copied())?;
        for region in regions {
            match region.on_fork {
                OnFork::Leave => self.remove(memory, region.start, region.end)?,
                _ => self.empty(memory, region.start, region.end)?,
            }
        }
        Ok(())
    }
}
