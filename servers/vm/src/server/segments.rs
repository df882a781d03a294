//! System V segments, as far as pm asks for them: pm has their numbers, owners and rights, vm their memory and who maps it (ADR 55).
//!
//! A segment has no object before it is attached for the first time. From then on pm holds the object, until it releases the segment;
//! the object goes with its last mapping. All three requests may be repeated.

use crate::memory::kernel::Kernel;
use crate::operations::segments::Attach;
use crate::server::Server;
use crate::space::region::Rights;
use abi::{
    Errno, Message,
    vm::{self, ATTACH_MAKE, ATTACH_REPLACE},
};

impl<K: Kernel> Server<K> {
    /// Maps a segment. Returns its address.
    pub(crate) fn attach_segment(&mut self, request: &vm::SegmentAttach) -> Result<u64, Errno> {
        self.memory.ensure_request_heap()?;
        let vm::SegmentAttach { process, call, segment, pages, address, flags } = *request;
        let space = self.processes.space(process)?;
        let growth_bytes = space.pages.growth_bytes();
        self.memory.ensure_heap(growth_bytes)?;
        let object = match self.memory.objects.segment(segment) {
            Some(object) => object,
            None if flags & ATTACH_MAKE != 0 => self.memory.objects.add_segment(segment, pages),
            None => return Err(Errno::EINVAL),
        };
        if let Some(address) = self.processes.attached(process, call)
            && self.processes.space(process)?.shows(address, object)
        {
            return Ok(address);
        }
        let rights = Rights::from_linux(flags);
        let attach = Attach { object, pages, address, rights, replaces: flags & ATTACH_REPLACE != 0 };
        let address = self.processes.space(process)?.choose_attach(&attach)?;
        // Noted before it is mapped: after a death in between the same call finds nothing there, and maps it.
        self.processes.set_attached(process, call, address);
        self.processes.space(process)?.attach_segment(&mut self.memory, &Attach { address, ..attach })?;
        Ok(address)
    }

    /// Gives up pm's hold of a segment. Returns how many mappings keep it.
    pub(crate) fn release_segment(&mut self, number: u64) -> u64 {
        let Some(id) = self.memory.objects.segment(number) else { return 0 };
        let attaches = self.memory.objects.get(id).map_or(0, |object| object.attaches.count);
        // Nobody holds it: it was released before.
        let _ = self.memory.objects.close(&mut self.memory.frames, id);
        attaches
    }

    /// Tells about a segment.
    pub(crate) fn segment_status(&self, message: &Message, number: u64) -> Result<Message, Errno> {
        let id = self.memory.objects.segment(number).ok_or(Errno::ENOENT)?;
        let object = self.memory.objects.get(id).ok_or(Errno::ENOENT)?;
        let known = object.attaches;
        let (resident, process) = (object.pages.count(), u64::from(known.process));
        Ok(vm::SegmentStatus::reply(message, 0, known.count, resident, known.attached_s, known.detached_s, process))
    }
}
