//! Fork: a second space with the same content. Nothing is copied but page tables: both sides lose the right to write, and the first
//! write pays (`fault`). Those of large regions are not copied either: the child's faults show what it touches, mostly little.
//! The fork of a space in which a thread is real-time is copied at once, and loses nothing.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::memory::pages::Page;
use crate::operations::fault::Access;
use crate::space::region::{Backing, OnFork, Region, Rights};
use crate::space::{AddressSpace, HotPage};
use abi::{
    Errno,
    layout::{PAGE_BYTES, USER_END, map},
};
use sys::fallible;

/// Pages of a region whose mappings the child gets at once, at most; in tests so few that both ways are taken.
const COPIED_PAGES: u64 = if cfg!(test) { 16 } else { 1024 };

impl AddressSpace {
    /// A copy of this space for one thread.
    pub fn fork<K: Kernel>(&mut self, memory: &mut Memory<K>) -> Result<AddressSpace, Errno> {
        memory.ensure_heap(self.heap_bytes())?;
        let mut child = AddressSpace::new(memory)?.for_payer(self.payer());
        match self.copy_to(memory, &mut child) {
            Ok(()) => {
                self.copy_hot_pages(memory, &mut child);
                Ok(child)
            }
            Err(error) => {
                child.destroy(memory)?;
                Err(error)
            }
        }
    }

    fn copy_to<K: Kernel>(&mut self, memory: &mut Memory<K>, child: &mut AddressSpace) -> Result<(), Errno> {
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
            hot: self.hot.fork(),
            is_service: false,
            is_resident: false,
            ..*self
        };
        child.obey_fork_advice(memory)?;
        child.munlockall(memory).map(drop)
    }

    fn share_pages_with<K: Kernel>(&self, memory: &mut Memory<K>, child: &mut AddressSpace) -> Result<(), Errno> {
        let mut page = 0;
        let is_large = |region: &&Region| self.pages.count_in(region.first_page(), region.end_page()) > COPIED_PAGES;
        for region in self.regions.longer_than(COPIED_PAGES).filter(is_large) {
            self.copy_mappings(memory, child, page, region.first_page())?;
            if region.rights.has(Rights::WRITE) && !region.shared {
                self.protect_written(memory, region)?;
            }
            page = region.end_page();
        }
        self.copy_mappings(memory, child, page, USER_END / PAGE_BYTES)?;
        child.pages = self.pages.share();
        Ok(())
    }

    /// Takes the right to write from the pages of a region in leaves that may have been written to since the last fork.
    fn protect_written<K: Kernel>(&self, memory: &mut Memory<K>, region: &Region) -> Result<(), Errno> {
        let mut page = region.first_page();
        while let Some((first, stop)) = self.pages.unsealed_stretch(page, region.end_page()) {
            memory.kernel.protect(self.id, first * PAGE_BYTES, stop - first, 0)?;
            page = stop;
        }
        Ok(())
    }

    /// Has the kernel map in the child what it maps here, within a range of pages, for both to read.
    fn copy_mappings<K: Kernel>(
        &self,
        memory: &mut Memory<K>,
        child: &mut AddressSpace,
        mut page: u64,
        end: u64,
    ) -> Result<(), Errno> {
        while let Some((first, stop)) = self.pages.stretch(page, end) {
            let floor = |memory: &Memory<K>| self.floor(memory);
            match memory.copy(self.id, child.id, first, stop - first, floor) {
                Ok(donated) => child.table_frames += donated,
                Err(error) => {
                    let copied = |_, first, pages| memory.kernel.unmap(child.id, first, pages);
                    self.each_stretch(0, stop * PAGE_BYTES, copied)?;
                    return Err(error);
                }
            }
            page = stop;
        }
        Ok(())
    }

    /// Gives the child its own copies of what is likely to be written soon, as far as there is memory.
    fn copy_hot_pages<K: Kernel>(&self, memory: &mut Memory<K>, child: &mut AddressSpace) {
        for HotPage { page, by_parent } in child.hot.pages() {
            let Page::Owned(frame) = child.pages.get(page) else { continue };
            let region = child.regions.find(page * PAGE_BYTES).filter(|region| region.rights == Rights::READ_WRITE);
            let Some(region) = region.filter(|_| !child.pages.is_sole(page, &memory.frames)) else { continue };
            if child.replace_by_copy(memory, &region, page, frame, Access::data(true)).is_err() {
                return;
            }
            if by_parent && self.pages.is_sole(page, &memory.frames) {
                // A fault makes it writable otherwise.
                self.pages.unseal(page);
                let _ = memory.kernel.protect(self.id, page * PAGE_BYTES, 1, map::WRITE);
            }
        }
    }

    /// Gives the child frames of its own; faults map them. What objects show is found there.
    fn copy_pages_to<K: Kernel>(&self, memory: &mut Memory<K>, child: &mut AddressSpace) -> Result<(), Errno> {
        for (page, frame) in self.pages.owned() {
            let copy = memory.take_copy(frame, self.floor(memory))?;
            child.pages.own(page, copy, &mut memory.frames);
        }
        Ok(())
    }

    /// Forgets what the parent has asked not to copy.
    fn obey_fork_advice<K: Kernel>(&mut self, memory: &mut Memory<K>) -> Result<(), Errno> {
        let regions = fallible::collect(self.regions.with_fork_advice().copied())?;
        for region in regions {
            match region.on_fork {
                OnFork::Leave => self.remove(memory, region.start, region.end)?,
                _ => self.empty(memory, region.start, region.end)?,
            }
        }
        Ok(())
    }
}
