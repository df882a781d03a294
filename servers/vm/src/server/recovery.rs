//! Recovery: vm has died, and its tables are as it left them (docs/book/recovery.md).
//!
//! Counts are recomputed: users of frames and spaces, pages that show an object. The kernel's page tables, which are a cache of vm's, are
//! emptied for the spaces that the message in progress concerned; faults fill them again. Leaks are freed: frames that were taken and not
//! entered, spaces that were being created, images that no region shows. A space whose own tables were being changed is emptied, which
//! ends its program. Then outstanding requests are sent again.

use crate::memory::kernel::Kernel;
use crate::server::Server;
use crate::space::region::{Backing, Purpose};
use abi::{
    Endpoint, Message,
    kernel::{CopyFault, Fault},
    message::LINUX_LABELS,
    vm::Request,
};
use sys::space::Space;

impl<K: Kernel> Server<K> {
    /// Makes the predecessor's tables consistent. `waits`: whether a process waits for vm's reply.
    pub fn recover(&mut self, waits: impl FnOnce(Endpoint) -> bool) {
        let in_progress = self.in_progress.died(waits);
        self.file_maps.forget_all();
        self.syncs.forget_all();
        let concerned = in_progress.map_or([Endpoint::NONE; 2], |message| concerned(&message));
        // A space that cannot be made whole is empty from here on, so that nothing below trips over it.
        for process in concerned {
            if self.processes.knows(process)
                && let Err(error) = self.processes.renew(&mut self.memory, process)
                && error != abi::Errno::ESRCH
            {
                sys::log!("the memory of {:#x} cannot be renewed: {error}", process.0);
            }
        }
        self.count_pages_of_objects();
        self.count_users_of_frames();
        self.processes.recount(&mut self.memory);
        self.memory.objects.end_recount(&mut self.memory.frames);
        let processes = &self.processes;
        let is_known = |space: Space| processes.spaces().any(|known| known.id == space);
        self.memory.drop_unknown_spaces(is_known);
        if let Err(error) = self.memory.show_clocks() {
            sys::log!("programs cannot be told the time: {error}");
        }
    }

    fn count_pages_of_objects(&mut self) {
        self.memory.objects.begin_recount();
        for region in self.processes.spaces().flat_map(|space| space.regions.iter()) {
            if let Backing::Object(id, _) = region.backing {
                self.memory.objects.map(id, region.pages());
                if region.purpose == Purpose::Segment {
                    self.memory.objects.recount_attach(id);
                }
            }
        }
    }

    fn count_users_of_frames(&mut self) {
        let (frames, objects) = (&mut self.memory.frames, &self.memory.objects);
        frames.begin_recount();
        self.processes.spaces().for_each(|space| space.pages.begin_recount());
        let owned = self.processes.spaces().flat_map(|space| space.pages.recount());
        let in_objects = objects.iter().flat_map(|object| object.pages.owned()).map(|(_, frame)| frame);
        let tails = objects.iter().filter_map(|object| object.loaded.as_deref()).flat_map(|loaded| loaded.tails);
        let reserved = objects.iter().flat_map(|object| object.unused_reserve());
        let all = owned.chain(in_objects).chain(tails.flatten()).chain(reserved);
        let lost = all.chain(self.dma.frames()).filter(|&frame| !frames.claim(frame)).count();
        frames.end_recount();
        self.processes.spaces().for_each(|space| frames.charge_tables(space.table_frames, space.payer()));
        if lost > 0 {
            sys::log!("{lost} frames in use are not vm's to give");
        }
    }
}

/// The processes whose memory the message may have changed.
fn concerned(message: &Message) -> [Endpoint; 2] {
    let source = message.source;
    match message.label {
        CopyFault::LABEL => [CopyFault::from_message(message).owner, Endpoint::NONE],
        label if label == Fault::LABEL || label < LINUX_LABELS => [source, Endpoint::NONE],
        _ => match Request::decode(message) {
            Some(Request::Fork(fork)) => [fork.parent, fork.child],
            Some(Request::Poke(poke)) => [poke.process, Endpoint::NONE],
            Some(Request::Exec(exec)) => [exec.process, Endpoint::NONE],
            Some(Request::Spawn(spawn)) => [spawn.process, Endpoint::NONE],
            Some(Request::Renew(renew)) => [renew.process, Endpoint::NONE],
            Some(Request::Exit(exit)) => [exit.process, Endpoint::NONE],
            Some(Request::SegmentAttach(attach)) => [attach.process, Endpoint::NONE],
            Some(Request::NextPresent(ask)) => [ask.process, Endpoint::NONE],
            Some(Request::FileMapDone(map)) => [map.process, Endpoint::NONE],
            Some(Request::DeviceMapDone(map)) => [map.process, Endpoint::NONE],
            _ => [source, Endpoint::NONE],
        },
    }
}
