//! The server: every message to vm comes here and is told apart.
//!
//! Nothing here waits for anybody, and nothing a client sends is trusted. `requests` of services, `shared_files` and `own_pages` of vfs, and `segments` of pm
//! have files of their own, and so have `windows` of devices; `file_maps` and `syncs` remember programs that wait for vfs; `recovery` comes after a death of vm.

mod file_maps;
mod own_pages;
mod recovery;
mod requests;
mod segments;
mod shared_files;
mod syncs;
mod windows;

use crate::memory::Memory;
use crate::memory::frames::Frames;
use crate::memory::kernel::Kernel;
use crate::memory::object::ObjectId;
use crate::operations::devices::Dma;
use crate::operations::fault::Access;
use crate::operations::mmap::MapRequest;
use crate::server::file_maps::FileMaps;
use crate::server::syncs::Syncs;
use crate::server::windows::Offer;
use crate::space::AddressSpace;
use crate::space::processes::Processes;
use ::server::SyncStep;
use abi::{
    Endpoint, Errno, Message,
    kernel::{CopyFault, Fault, Resident},
    linux::nr,
    message::LINUX_LABELS,
};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use recover::in_progress::{InProgress, Recall};

/// Flags of mlock2 and mlockall that exist.
const MLOCK_ONFAULT: u64 = 1;

/// The memory server.
#[derive(Debug)]
pub struct Server<K> {
    pub(crate) memory: Memory<K>,
    pub(crate) processes: Processes,
    pub(crate) file_maps: FileMaps,
    pub(crate) syncs: Syncs,
    pub(crate) dma: Dma,
    /// Slots of the services that may ask for the memory of other processes.
    pub(crate) inspectors: BTreeSet<usize>,
    /// Memory that drivers let other services map.
    pub(crate) offers: Vec<Offer>,
    /// Preserved memory by slot.
    pub(crate) kept: BTreeMap<usize, ObjectId>,
    pub(crate) total_bytes: u64,
    /// The program that has ended last, and what it had used: pm may die before it knows, and asks again.
    pub(crate) last_exit: Option<(Endpoint, (u64, u64))>,
    /// The message in progress.
    pub(crate) in_progress: InProgress,
}

impl<K: Kernel> Server<K> {
    /// Takes over all free memory, of a machine that has `total_bytes`. Of the frames, vm's own `own_frames` are out already.
    pub fn new(kernel: K, frames: Frames, own_frames: u64, total_bytes: u64) -> Result<Server<K>, Errno> {
        Ok(Server {
            memory: Memory::new(kernel, frames, own_frames)?,
            processes: Processes::new(),
            file_maps: FileMaps::default(),
            syncs: Syncs::default(),
            dma: Dma::default(),
            inspectors: BTreeSet::new(),
            offers: Vec::new(),
            kept: BTreeMap::new(),
            total_bytes,
            last_exit: None,
            in_progress: InProgress::default(),
        })
    }

    /// Serves one message.
    pub fn handle(&mut self, message: &Message) -> SyncStep<Message> {
        match self.in_progress.recall(message) {
            Recall::New => {}
            Recall::Answered(reply) => return SyncStep::Done(reply),
            Recall::Refused => return SyncStep::Done(message.reply(Err(Errno::EIO))),
        }
        self.in_progress.begin(message);
        let reply = self.serve(message);
        if self.memory.objects.take_news() {
            self.memory.kernel.notify(Endpoint::VFS);
        }
        self.in_progress.end(reply.as_done());
        reply
    }

    fn serve(&mut self, message: &Message) -> SyncStep<Message> {
        match message.label {
            Fault::LABEL => {
                let fault = Fault::from_message(message);
                let served = self.fault(message.source, fault.address, Access::from_bits(fault.access));
                let served = served.map_err(|error| self.refusal(message.source, fault.address, error));
                SyncStep::Done(message.reply(served))
            }
            CopyFault::LABEL => {
                let fault = CopyFault::from_message(message);
                let access = Access::from_bits(fault.access).for_copy();
                SyncStep::Done(message.reply(self.fault(fault.owner, fault.address, access)))
            }
            Resident::LABEL => {
                let Resident { stack } = Resident::from_message(message);
                let made = self.with_space(message.source, |space, memory| space.make_resident(memory, stack));
                SyncStep::Done(message.reply(made.map(|()| 0)))
            }
            nr::BRK => SyncStep::Done(message.reply(self.brk(message))),
            nr::MMAP => self.mmap(message).map(|result| message.reply(result)),
            nr::MSYNC => self.msync(message).map(|result| message.reply(result)),
            number if number < LINUX_LABELS => SyncStep::Done(message.reply(self.linux_call(message))),
            _ => SyncStep::Done(self.request(message).unwrap_or_else(|error| message.reply(Err(error)))),
        }
    }

    fn fault(&mut self, thread: Endpoint, address: u64, access: Access) -> Result<u64, Errno> {
        let space = self.processes.space(thread).map_err(|_| Errno::EFAULT)?;
        space.used.faults += 1;
        let growth_bytes = if space.pages.must_grow() { space.pages.growth_bytes() } else { 0 };
        let has_heap = self.memory.ensure_heap(growth_bytes);
        if !space.is_service {
            // A service uses the reserve: it needs little.
            has_heap?;
        }
        space.fault(&mut self.memory, address, access).map(|()| 0)
    }

    /// The error of a fault as its thread learns it by the signal: `EACCES` where memory is mapped, but without the right.
    fn refusal(&mut self, thread: Endpoint, address: u64, error: Errno) -> Errno {
        let space = self.processes.space(thread);
        let is_mapped = space.is_ok_and(|space| space.regions.find(address).is_some());
        if error == Errno::EFAULT && is_mapped { Errno::EACCES } else { error }
    }

    /// brk. Its one error is that the heap ends where it did.
    fn brk(&mut self, message: &Message) -> Result<u64, Errno> {
        let space = self.processes.space(message.source)?;
        let has_heap = self.memory.ensure_heap(space.pages.growth_bytes()).is_ok();
        Ok(if has_heap { space.brk(&mut self.memory, message.words[0]) } else { space.heap_end })
    }

    /// mmap; with a file the program waits until vfs has filled the image.
    fn mmap(&mut self, message: &Message) -> SyncStep<Result<u64, Errno>> {
        let request = match self.map_request(message) {
            Ok(request) => request,
            Err(error) => return error.into(),
        };
        if request.is_anonymous() {
            return self.with_space(message.source, |space, memory| space.mmap(memory, &request, None, true)).into();
        }
        self.file_maps.add(message.source, request);
        self.memory.kernel.notify(Endpoint::VFS);
        SyncStep::Later
    }

    /// msync; when a file has to be written back the program waits.
    fn msync(&mut self, message: &Message) -> SyncStep<Result<u64, Errno>> {
        let [address, bytes, flags, ..] = message.words;
        match self.with_space(message.source, |space, memory| space.msync(memory, address, bytes, flags)) {
            Ok(files) if files.is_empty() => SyncStep::Done(Ok(0)),
            Ok(files) => {
                self.syncs.add(message.source, files);
                self.memory.kernel.notify(Endpoint::VFS);
                SyncStep::Later
            }
            Err(error) => error.into(),
        }
    }

    fn map_request(&mut self, message: &Message) -> Result<MapRequest, Errno> {
        let request = MapRequest::parse(&message.words)?;
        self.with_space(message.source, |_, _| Ok(request))
    }

    fn linux_call(&mut self, message: &Message) -> Result<u64, Errno> {
        let process = message.source;
        self.with_space(process, |space, memory| linux_call(space, memory, process, message))
    }

    /// Does something with the space of a process, with enough heap to fill pages.
    pub(crate) fn with_space<T>(
        &mut self,
        process: Endpoint,
        act: impl FnOnce(&mut AddressSpace, &mut Memory<K>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let space = self.processes.space(process)?;
        self.memory.ensure_heap(space.pages.growth_bytes())?;
        act(space, &mut self.memory)
    }
}

/// The Linux calls but mmap and msync.
fn linux_call<K: Kernel>(
    space: &mut AddressSpace,
    memory: &mut Memory<K>,
    process: Endpoint,
    message: &Message,
) -> Result<u64, Errno> {
    let words = &message.words;
    let [address, bytes, third, ..] = *words;
    match message.label {
        nr::SHMDT => space.detach_segment(memory, address),
        nr::MUNMAP => space.munmap(memory, address, bytes),
        nr::MPROTECT => space.mprotect(memory, address, bytes, third),
        nr::MREMAP => space.mremap(memory, words),
        nr::MADVISE => space.madvise(memory, address, bytes, third),
        nr::MINCORE => space.mincore(memory, process, [address, bytes, third]),
        nr::MLOCK => space.mlock(memory, address, bytes, true),
        nr::MLOCK2 if third & !MLOCK_ONFAULT == 0 => space.mlock(memory, address, bytes, third & MLOCK_ONFAULT == 0),
        nr::MLOCK2 => Err(Errno::EINVAL),
        nr::MLOCKALL => space.mlockall(memory, address),
        nr::MUNLOCK => space.munlock(memory, address, bytes),
        nr::MUNLOCKALL => space.munlockall(memory),
        _ => Err(Errno::ENOSYS),
    }
}
