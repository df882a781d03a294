//! Pages that vfs maps into programs: each stands for a context of asynchronous I/O, whose id is its address (ADR 170).

use crate::memory::kernel::Kernel;
use crate::server::Server;
use abi::{Endpoint, Errno, layout::PAGE_BYTES};

/// What is known of a call whose page has been unmapped: no page is there.
const UNMAPPED: u64 = 0;

impl<K: Kernel> Server<K> {
    /// Maps a page of zeros for a call of a thread. Returns its address: the same one for the same call.
    pub(crate) fn map_page(&mut self, process: Endpoint, call: u64) -> Result<u64, Errno> {
        self.memory.ensure_request_heap()?;
        let growth_bytes = self.processes.space(process)?.pages.growth_bytes();
        self.memory.ensure_heap(growth_bytes)?;
        if let Some(address) = self.processes.attached(process, call)
            && self.processes.space(process)?.regions.find(address).is_some()
        {
            return Ok(address);
        }
        let space = self.processes.space(process)?;
        let address = space.choose_page()?;
        // Noted before it is mapped, as in `attach_segment`.
        self.processes.set_attached(process, call, address);
        self.processes.space(process)?.map_page(&mut self.memory, address)?;
        Ok(address)
    }

    /// Unmaps such a page for a call of a thread; once: what is there when the call comes again may be something else.
    pub(crate) fn unmap_page(&mut self, process: Endpoint, call: u64, address: u64) -> Result<(), Errno> {
        if self.processes.attached(process, call) != Some(UNMAPPED) {
            self.with_space(process, |space, memory| space.munmap(memory, address, PAGE_BYTES))?;
            self.processes.set_attached(process, call, UNMAPPED);
        }
        Ok(())
    }
}
