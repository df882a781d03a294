//! mprotect: other rights for mapped memory.
//!
//! Rights that are taken are taken from the kernel's mappings at once; rights that are given come with the next fault.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::operations::mmap::user_range;
use crate::space::AddressSpace;
use crate::space::region::{Backing, Region, Rights};
use abi::Errno;
use sys::fallible;

const PROT_GROWSDOWN: u64 = 0x0100_0000;
const PROT_RIGHTS: u64 = 7;

impl AddressSpace {
    /// mprotect. `EACCES`: the file was not mapped for writing; `ENOMEM`: there is a hole in the range. What is before it has changed.
    pub fn mprotect<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        address: u64,
        bytes: u64,
        protection: u64,
    ) -> Result<u64, Errno> {
        if protection & !(PROT_RIGHTS | PROT_GROWSDOWN) != 0 {
            return Err(Errno::EINVAL);
        }
        let (mut start, end) = user_range(address, bytes, Errno::ENOMEM)?;
        if start == end {
            return Ok(0);
        }
        let region = self.regions.find(start);
        if protection & PROT_GROWSDOWN != 0 {
            start = region.filter(|region| region.grows_down).ok_or(Errno::EINVAL)?.start;
        }
        self.regions.check_count()?;
        let rights = Rights::from_linux(protection);
        self.check_rights(start..end, rights)?;
        let hole = self.regions.covered_until(start, end);
        let firm = self.regions.overlapping(start, hole).find(|region| !may_become(region, rights));
        let (reached, result) = match firm {
            Some(region) => (region.start.max(start), Err(Errno::EACCES)),
            None if hole < end => (hole, Err(Errno::ENOMEM)),
            None => (end, Ok(0)),
        };
        if start < reached {
            self.set_rights(memory, start, reached, rights)?;
        }
        result
    }

    /// Changes the rights of a range that has no holes.
    fn set_rights<K: Kernel>(
        &mut self,
        memory: &mut Memory<K>,
        start: u64,
        end: u64,
        rights: Rights,
    ) -> Result<(), Errno> {
        self.ensure_change(memory, start, end)?;
        let touched = self.regions.overlapping(start, end).map(|region| region.part(start, end));
        for region in &fallible::collect(touched)? {
            self.take_rights(memory, region, rights)?;
        }
        self.change(memory, start, end, |region| region.rights = rights);
        Ok(())
    }

    /// Sees to it that the kernel's mappings allow no more than `rights`.
    fn take_rights<K: Kernel>(&mut self, memory: &mut Memory<K>, region: &Region, rights: Rights) -> Result<(), Errno> {
        let (start, end) = (region.start, region.end);
        let executable_only = rights.has(Rights::EXECUTE) && !rights.has(Rights::WRITE);
        let is_less = !rights.has(region.rights) || executable_only;
        // A page of a device that the kernel's `SpaceProtect` has changed would be copyable: it is mapped anew.
        if rights == Rights::NONE || is_less && region.window(memory).is_some() {
            self.hide(memory, start, end)
        } else if is_less {
            self.restrict(memory, start, end, executable_only)
        } else {
            Ok(())
        }
    }
}

/// Shared pages of a file may become writable only if vfs said so when they were mapped. Devices stay as they are.
fn may_become(region: &Region, rights: Rights) -> bool {
    match region.backing {
        Backing::Anonymous => true,
        Backing::Device => false,
        Backing::Object(..) | Backing::Permanent(..) => region.may_write || !rights.has(Rights::WRITE),
    }
}
