//! Memory that is all there: of a process that becomes real-time, and must not fault any more.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::operations::fault::Access;
use crate::space::AddressSpace;
use crate::space::region::{Backing, Rights};
use abi::{Errno, layout::PAGE_BYTES};
use alloc::vec::Vec;

/// How far below the stack pointer the stack is to be there.
const STACK_BYTES: u64 = 64 * 1024;

impl AddressSpace {
    /// Fills every page, for writing where that is allowed: nothing is left to copy. `stack`: the stack pointer, 0 for none.
    ///
    /// # Errors
    /// `ENOMEM`. What is filled stays.
    pub fn make_resident<K: Kernel>(&mut self, memory: &mut Memory<K>, stack: u64) -> Result<(), Errno> {
        if stack > STACK_BYTES {
            // A stack that may not grow so far is as long as it gets.
            let _ = self.fault(memory, stack - STACK_BYTES, Access::data(true));
        }
        let regions: Vec<_> = self.regions.iter().copied().collect();
        for region in regions.iter().filter(|region| region.rights != Rights::NONE && region.backing != Backing::Device)
        {
            let access = Access::touching(region.rights);
            for page in region.first_page()..region.end_page() {
                memory.ensure_heap(self.pages.growth_bytes())?;
                match self.fault(memory, page * PAGE_BYTES, access) {
                    // Behind the end of a file.
                    Ok(()) | Err(Errno::EIO) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}
