//! Memory that is all there: of a process that becomes real-time, and must not fault any more.

use crate::memory::Memory;
use crate::memory::kernel::Kernel;
use crate::operations::fault::Access;
use crate::space::AddressSpace;
use crate::space::region::{Backing, Rights};
use abi::{Errno, layout::PAGE_BYTES};
use sys::fallible;

/// Limit of a stack that is resident. One that may grow further faults there.
const STACK_BYTES: u64 = 1 << 20;

impl AddressSpace {
    /// Fills every page, for writing where that is allowed: nothing is left to copy. The stack with the stack pointer `stack` grows as far
    /// as its limit, or `STACK_BYTES`, allows.
    ///
    /// # Errors
    /// `ENOMEM`. What is filled stays.
    pub fn make_resident<K: Kernel>(&mut self, memory: &mut Memory<K>, stack: u64) -> Result<(), Errno> {
        self.is_resident = true;
        if let Some(region) = self.regions.find(stack).filter(|region| region.grows_down) {
            let bytes = self.stack_bytes.min(STACK_BYTES) / PAGE_BYTES * PAGE_BYTES;
            // Where another region is in its way it stays as it is.
            let _ = self.fault(memory, region.end.saturating_sub(bytes), Access::data(true));
        }
        let regions = fallible::collect(self.regions.iter().copied())?;
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
