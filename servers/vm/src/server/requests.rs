//! The protocol of `abi::vm`: what pm, rs, vfs and drivers ask. Each request names who may make it; others get `EPERM`.

use crate::memory::frames::Payer;
use crate::memory::images;
use crate::memory::images::Stretch;
use crate::memory::kernel::{Kernel, Source};
use crate::memory::object::{FileId, ObjectId};
use crate::operations::spawn::{self, Recipe};
use crate::operations::{devices, exec};
use crate::server::Server;
use crate::space::{Limits, MemoryUse};
use abi::{
    Endpoint, Errno, Message,
    endpoint::slot,
    layout::PAGE_BYTES,
    linux::nr,
    vm::{self, MapRecord, Request},
};
use zerocopy::IntoBytes;

/// Limit of records of one reply to `Maps`.
const MAX_RECORDS: u64 = 512;

/// `EPERM` unless the sender is one of these services.
fn only(message: &Message, slots: &[usize]) -> Result<(), Errno> {
    if slots.contains(&message.source.slot()) { Ok(()) } else { Err(Errno::EPERM) }
}

/// 0 stands for none.
fn optional(image: u64) -> Option<ObjectId> {
    (image != 0).then_some(ObjectId(image))
}

impl<K: Kernel> Server<K> {
    /// Serves a request of a service.
    pub(crate) fn request(&mut self, message: &Message) -> Result<Message, Errno> {
        let request = Request::decode(message).ok_or(Errno::ENOSYS)?;
        match request {
            Request::Spawn(spawn) => only(message, &[slot::RS]).and_then(|()| self.spawn(message, &spawn)),
            Request::Renew(renew) => only(message, &[slot::RS]).and_then(|()| self.renew(message, &renew)),
            Request::Fork(fork) => only(message, &[slot::PM]).and_then(|()| self.fork(message, &fork)),
            Request::Exit(exit) => only(message, &[slot::PM, slot::RS])
                .and_then(|()| self.exit(exit.process))
                .map(|(faults, peak_bytes)| vm::Exit::reply(message, 0, faults, peak_bytes)),
            Request::Exec(exec) => only(message, &[slot::PM]).and_then(|()| self.exec(message, &exec)),
            Request::SetRights(rights) => only(message, &[slot::RS]).map(|()| {
                self.set_rights(&rights);
                message.reply(Ok(0))
            }),
            Request::DeviceLost(lost) => {
                only(message, &[slot::RS])?;
                self.device_lost(lost.slot).map(|()| message.reply(Ok(0)))
            }
            Request::OfferMemory(offer) => self.offer_memory(message.source, &offer).map(|()| message.reply(Ok(0))),
            Request::MapOffered(ask) => self.map_offered(message, ask.driver),
            Request::IsShown(_) => Ok(vm::IsShown::reply(message, 0, self.is_shown(message.source))),
            Request::MapPhysical(map) => self.map_physical(message, &map),
            Request::AllocateDma(allocate) => self.allocate_dma(message, &allocate),
            Request::DmaBlock(block) => self.dma_block(message, &block),
            Request::Discard(discard) => self
                .with_space(message.source, |space, memory| space.discard_own(memory, discard.address, discard.bytes))
                .map(|()| message.reply(Ok(0))),
            Request::MemoryInfo(_) => Ok(self.memory_info(message)),
            Request::ProcessMemory(ask) => {
                self.only_inspectors(message).and_then(|()| self.process_memory(message, ask.process))
            }
            Request::Maps(maps) => {
                self.only_inspectors(message)?;
                self.maps(&maps, message.source).map(|bytes| message.reply(Ok(bytes)))
            }
            Request::MappedName(ask) => {
                self.only_inspectors(message)?;
                let to = Source { granter: message.source, grant: ask.grant, offset: 0 };
                self.with_space(ask.process, |space, memory| {
                    space.write_mapped_name(memory, ask.address, to, ask.bytes)
                })
                .map(|bytes| message.reply(Ok(bytes)))
            }
            Request::SegmentAttach(attach) => only(message, &[slot::PM])
                .and_then(|()| self.attach_segment(&attach))
                .map(|address| vm::SegmentAttach::reply(message, 0, address)),
            Request::SegmentRelease(release) => only(message, &[slot::PM])
                .map(|()| self.release_segment(release.segment))
                .map(|attaches| vm::SegmentRelease::reply(message, 0, attaches)),
            Request::SegmentStatus(ask) => {
                only(message, &[slot::PM]).and_then(|()| self.segment_status(message, ask.segment))
            }
            Request::NextPresent(ask) => {
                only(message, &[slot::PM])?;
                let found =
                    self.with_space(ask.process, |space, memory| Ok(space.next_present(memory, ask.from, ask.end)))?;
                let (start, stop) = found.ok_or(Errno::ENOENT)?;
                Ok(vm::NextPresent::reply(message, 0, start, stop))
            }
            Request::Poke(poke) => {
                only(message, &[slot::PM])?;
                let source = Source { granter: message.source, grant: poke.grant, offset: 0 };
                self.with_space(poke.process, |space, memory| space.poke(memory, poke.address, source, poke.bytes))?;
                Ok(message.reply(Ok(0)))
            }
            Request::MemoryUse(ask) => {
                only(message, &[slot::PM])?;
                let (faults, peak_bytes) = self.memory_use(ask.process)?;
                Ok(vm::MemoryUse::reply(message, 0, faults, peak_bytes))
            }
            Request::SetContainer(set) => {
                only(message, &[slot::PM])?;
                self.set_container(&set).map(|()| message.reply(Ok(0)))
            }
            Request::ContainerMemory(ask) => {
                only(message, &[slot::PM])?;
                let pages = self.memory.frames.paid_by(Payer::container(ask.container)?);
                Ok(vm::ContainerMemory::reply(message, 0, pages))
            }
            Request::ClockChange(change) if message.source.is_service() => {
                self.memory.change_clock(change.done).map(|()| message.reply(Ok(0)))
            }
            Request::SetLimits(limits) => {
                only(message, &[slot::PM])?;
                self.processes.space(limits.process)?.set_limits(&limits);
                Ok(message.reply(Ok(0)))
            }
            of_vfs => only(message, &[slot::VFS]).and_then(|()| self.vfs_request(message, of_vfs)),
        }
    }

    fn set_rights(&mut self, rights: &vm::SetRights) {
        let slot = rights.process.slot();
        self.dma.limit(slot, rights.dma_bytes);
        if rights.inspects_memory {
            self.inspectors.insert(slot);
        } else {
            self.inspectors.remove(&slot);
        }
    }

    /// `EPERM` unless the sender may ask for the memory of other processes.
    fn only_inspectors(&self, message: &Message) -> Result<(), Errno> {
        if self.inspectors.contains(&message.source.slot()) { Ok(()) } else { Err(Errno::EPERM) }
    }

    fn vfs_request(&mut self, message: &Message, request: Request) -> Result<Message, Errno> {
        let done = message.reply(Ok(0));
        let source = |grant| Source { granter: message.source, grant, offset: 0 };
        match request {
            Request::ImageOpen(open) => {
                let file = FileId { device: open.device, inode: open.inode };
                let image = images::open(&mut self.memory, file, open.version, open.bytes)?;
                Ok(vm::ImageOpen::reply(message, 0, image.0, self.memory.objects.has_name(image)))
            }
            Request::ImageMissing(ask) => {
                let wanted = Stretch { offset: ask.offset, bytes: ask.bytes };
                let missing = images::missing(&self.memory, ObjectId(ask.image), wanted)?;
                let missing = missing.unwrap_or(Stretch { offset: 0, bytes: 0 });
                Ok(vm::ImageMissing::reply(message, missing.bytes, missing.offset))
            }
            Request::ImageFill(fill) => {
                let part = Stretch { offset: fill.offset, bytes: fill.bytes };
                images::fill(&mut self.memory, ObjectId(fill.image), part, source(fill.grant)).map(|()| done)
            }
            Request::ImageShow(show) => {
                let part = Stretch { offset: show.offset, bytes: show.bytes };
                images::show(&mut self.memory, ObjectId(show.image), part, show.first).map(|()| done)
            }
            Request::FileName(name) => {
                images::set_name(&mut self.memory, ObjectId(name.object), source(name.grant), name.bytes).map(|()| done)
            }
            Request::ImageClose(close) => {
                let memory = &mut self.memory;
                memory.objects.close(&mut memory.frames, ObjectId(close.image)).map(|()| done)
            }
            Request::ClaimImages(claim) => {
                images::claim(&mut self.memory, source(claim.grant), claim.images).map(|()| done)
            }
            Request::ImageForget(forget) => {
                let file = FileId { device: forget.device, inode: forget.inode };
                let (objects, frames) = (&mut self.memory.objects, &mut self.memory.frames);
                let in_use = objects.is_image_in_use(file);
                if forget.gone {
                    objects.orphan_images(frames, file)
                } else {
                    objects.forget_image(frames, file)
                }
                Ok(vm::ImageForget::reply(message, 0, in_use))
            }
            Request::ImageResize(resize) => Ok(vm::ImageResize::reply(message, 0, self.resize_images(&resize)?)),
            Request::CacheOpen(open) => {
                let address = self.with_space(message.source, |space, memory| space.open_cache(memory, open.pages))?;
                Ok(vm::CacheOpen::reply(message, 0, address))
            }
            Request::CacheTake(take) => self
                .with_space(message.source, |space, memory| space.take_cached(memory, take.first, take.pages))
                .map(|()| done),
            Request::PageMap(map) => {
                let address = self.map_page(map.process, map.call)?;
                Ok(vm::PageMap::reply(message, 0, address))
            }
            Request::PageUnmap(unmap) => self.unmap_page(unmap.process, unmap.call, unmap.address).map(|()| done),
            Request::SharedShow(show) => {
                let from = (ObjectId(show.object), show.offset);
                let (shown, zeros) = self.with_space(message.source, |space, memory| {
                    space.show_shared(memory, from, show.first, show.pages)
                })?;
                Ok(vm::SharedShow::reply(message, 0, shown, zeros))
            }
            Request::NextFileMap(_) => self.next_file_map(message),
            Request::FileMapDone(map) => self.file_map_done(&map).map(|()| done),
            Request::DeviceMapDone(map) => self.device_map_done(&map).map(|()| done),
            shared => self.shared_request(message, shared),
        }
    }

    fn shared_request(&mut self, message: &Message, request: Request) -> Result<Message, Errno> {
        let done = message.reply(Ok(0));
        let grant = |grant| Source { granter: message.source, grant, offset: 0 };
        self.memory.ensure_request_heap()?;
        match request {
            Request::SharedOpen(open) => {
                let file = FileId { device: open.device, inode: open.inode };
                let object = self.memory.objects.open_shared(file, open.bytes);
                Ok(vm::SharedOpen::reply(message, 0, object.0, self.memory.objects.has_name(object)))
            }
            Request::SharedTake(take) => {
                let wanted = Stretch { offset: take.offset, bytes: take.end.saturating_sub(take.offset) };
                let taken = self.take_changed(ObjectId(take.object), wanted, grant(take.grant), take.bytes)?;
                Ok(vm::SharedTake::reply(message, taken.bytes, taken.offset))
            }
            Request::SharedWritten(written) => {
                let part = Stretch { offset: written.offset, bytes: written.bytes };
                self.set_written(ObjectId(written.object), part).map(|()| done)
            }
            Request::SharedUpdate(update) => {
                let part = Stretch { offset: update.offset, bytes: update.bytes };
                self.update_shared(ObjectId(update.object), part, grant(update.grant), update.size).map(|()| done)
            }
            Request::SharedResize(resize) => self.resize_shared(ObjectId(resize.object), resize.bytes).map(|()| done),
            Request::SharedClose(close) => self.close_shared(ObjectId(close.object), close.lose).map(|()| done),
            Request::NextUnmapped(_) => {
                let object = self.memory.objects.next_unmapped().ok_or(Errno::ENOENT)?;
                Ok(vm::NextUnmapped::reply(message, 0, object.0))
            }
            Request::NextShared(next) => {
                let (object, file) = self.memory.objects.next_shared(ObjectId(next.after)).ok_or(Errno::ENOENT)?;
                Ok(vm::NextShared::reply(message, 0, object.0, file.device, file.inode))
            }
            Request::NextSync(_) => {
                let (process, object) = self.syncs.take_next(message.source).ok_or(Errno::ENOENT)?;
                Ok(vm::NextSync::reply(message, 0, process, object.0))
            }
            Request::SyncDone(sync) => self.sync_done(&sync).map(|()| done),
            _ => Err(Errno::ENOSYS),
        }
    }

    fn sync_done(&mut self, sync: &vm::SyncDone) -> Result<(), Errno> {
        if !self.syncs.finish(sync.process, sync.error != 0).ok_or(Errno::ESRCH)? {
            self.memory.kernel.notify(Endpoint::VFS);
            return Ok(());
        }
        let result = if sync.error == 0 { Ok(0) } else { Err(Errno(sync.error.saturating_abs())) };
        self.memory.kernel.answer(sync.process, &Message::new(nr::MSYNC).reply(result));
        Ok(())
    }

    fn spawn(&mut self, message: &Message, request: &vm::Spawn) -> Result<Message, Errno> {
        let process = request.process;
        if !process.is_service() {
            return Err(Errno::EINVAL);
        }
        self.memory.ensure_request_heap()?;
        self.dma.inherit(process.slot());
        self.recheck_windows(process)?;
        self.processes.add(&mut self.memory, process, 0)?;
        let recipe = Recipe {
            image: Source { granter: message.source, grant: request.grant, offset: 0 },
            image_bytes: request.image_bytes,
            argument_bytes: request.argument_bytes,
            heap_bytes: request.heap_bytes,
            keep: (request.keep_bytes > 0).then(|| (self.kept(process.slot()), request.keep_bytes)),
        };
        let (space, spawned) = spawn::spawn(&mut self.memory, &recipe)?;
        self.processes.enter(&mut self.memory, process, space)?;
        Ok(vm::Spawn::reply(message, 0, spawned.entry, spawned.arguments, spawned.stack_end))
    }

    fn renew(&mut self, message: &Message, request: &vm::Renew) -> Result<Message, Errno> {
        let process = request.process;
        if !process.is_service() {
            return Err(Errno::EINVAL);
        }
        self.memory.ensure_request_heap()?;
        let recipe = Recipe {
            image: Source { granter: message.source, grant: request.grant, offset: 0 },
            image_bytes: request.image_bytes,
            argument_bytes: request.argument_bytes,
            heap_bytes: 0,
            keep: None,
        };
        self.processes.succeed(&mut self.memory, process)?;
        let space = self.processes.space(process)?;
        let spawned = spawn::renew(space, &mut self.memory, &recipe)?;
        Ok(vm::Renew::reply(message, 0, spawned.entry, spawned.arguments, spawned.stack_end))
    }

    /// The preserved memory of a slot, which vm holds for ever.
    fn kept(&mut self, slot: usize) -> ObjectId {
        *self.kept.entry(slot).or_insert_with(|| self.memory.objects.add_anonymous())
    }

    fn fork(&mut self, message: &Message, request: &vm::Fork) -> Result<Message, Errno> {
        let vm::Fork { parent, child, share, pid } = *request;
        if !child.is_application() {
            return Err(Errno::EINVAL);
        }
        self.memory.ensure_request_heap()?;
        self.processes.add(&mut self.memory, child, pid as u32)?;
        if parent == Endpoint::NONE {
            return Ok(message.reply(Ok(0)));
        }
        let result =
            if share { self.processes.share(&mut self.memory, child, parent) } else { self.copy(child, parent) };
        if result.is_err() {
            self.processes.remove(&mut self.memory, child)?;
        }
        result.map(|()| message.reply(Ok(0)))
    }

    fn copy(&mut self, child: Endpoint, parent: Endpoint) -> Result<(), Errno> {
        let space = self.processes.space(parent)?.fork(&mut self.memory)?;
        self.processes.enter(&mut self.memory, child, space)
    }

    fn exit(&mut self, process: Endpoint) -> Result<(u64, u64), Errno> {
        self.file_maps.forget(process);
        self.syncs.forget(process);
        let known = self.last_exit.filter(|(ended, _)| *ended == process).map(|(_, used)| used);
        let used = self.memory_use(process).ok().or(known).unwrap_or_default();
        if process.is_application() {
            self.last_exit = Some((process, used));
        }
        match self.processes.remove(&mut self.memory, process) {
            Err(Errno::ESRCH) if known.is_some() => Ok(used),
            removed => removed.map(|()| used),
        }
    }

    /// `MemoryUse`.
    fn memory_use(&mut self, process: Endpoint) -> Result<(u64, u64), Errno> {
        let space = self.processes.space(process)?;
        Ok((space.used.faults, space.peak_pages() * PAGE_BYTES))
    }

    fn exec(&mut self, message: &Message, request: &vm::Exec) -> Result<Message, Errno> {
        if !self.processes.knows(request.process) {
            return Err(Errno::ESRCH);
        }
        self.memory.ensure_request_heap()?;
        let image = ObjectId(request.image);
        // The first program has no memory yet.
        let (limits, used, payer) = match self.processes.space(request.process) {
            // After vfork it is the parent's.
            Ok(space) if space.users > 1 => (space.limits, MemoryUse::default(), space.payer()),
            Ok(space) => (space.limits, MemoryUse { peak_pages: space.peak_pages(), ..space.used }, space.payer()),
            Err(_) => (Limits::NONE, MemoryUse::default(), Payer::NOBODY),
        };
        let vm::Exec { stack_bytes, seed, .. } = *request;
        let (mut space, started) =
            exec::exec(&mut self.memory, image, optional(request.interpreter), stack_bytes, seed, payer)?;
        (space.limits, space.used) = (limits, used);
        self.processes.enter(&mut self.memory, request.process, space)?;
        Ok(vm::Exec::reply(
            message,
            0,
            started.start,
            started.entry,
            started.headers,
            started.header_count,
            started.interpreter_base,
            started.stack_end,
        ))
    }

    fn set_container(&mut self, request: &vm::SetContainer) -> Result<(), Errno> {
        let payer = Payer::container(request.container)?;
        self.memory.frames.set_limit(payer, request.pages);
        self.processes.space(request.process)?.set_payer(&mut self.memory, payer);
        Ok(())
    }

    fn next_file_map(&mut self, message: &Message) -> Result<Message, Errno> {
        let map = self.file_maps.take_next(message.source).ok_or(Errno::ENOENT)?;
        let request = map.request;
        let flags = request.flags_word();
        Ok(vm::NextFileMap::reply(message, 0, map.process, request.descriptor, request.offset, request.bytes, flags))
    }

    fn file_map_done(&mut self, done: &vm::FileMapDone) -> Result<(), Errno> {
        let map = self.file_maps.finish(done.process).ok_or(Errno::ESRCH)?;
        let result = match done.error {
            0 => self.with_space(done.process, |space, memory| {
                space.mmap(memory, &map.request, optional(done.image), done.may_write)
            }),
            error => Err(Errno(error.saturating_abs())),
        };
        self.memory.objects.report_unmapped(ObjectId(done.image));
        self.memory.kernel.answer(done.process, &Message::new(nr::MMAP).reply(result));
        Ok(())
    }

    fn map_physical(&mut self, message: &Message, request: &vm::MapPhysical) -> Result<Message, Errno> {
        let process = message.source;
        let vm::MapPhysical { physical, bytes, flags } = *request;
        let address = self.with_space(process, |space, memory| {
            devices::map_physical(space, memory, process, physical, bytes, flags)
        })?;
        Ok(vm::MapPhysical::reply(message, 0, address))
    }

    fn allocate_dma(&mut self, message: &Message, request: &vm::AllocateDma) -> Result<Message, Errno> {
        let process = message.source;
        if !process.is_service() {
            return Err(Errno::EPERM);
        }
        self.memory.ensure_request_heap()?;
        let space = self.processes.space(process)?;
        let vm::AllocateDma { bytes, flags } = *request;
        let (address, physical) = self.dma.allocate(space, &mut self.memory, process.slot(), bytes, flags)?;
        Ok(vm::AllocateDma::reply(message, 0, address, physical))
    }

    fn dma_block(&self, message: &Message, request: &vm::DmaBlock) -> Result<Message, Errno> {
        only(message, &[slot::PCI])?;
        let place = |number: u64| usize::try_from(number).map_err(|_| Errno::EINVAL);
        let run = self.dma.block(place(request.slot)?, place(request.index)?).ok_or(Errno::ENOENT)?;
        Ok(vm::DmaBlock::reply(message, 0, run.first.address(), run.frames * PAGE_BYTES))
    }

    fn memory_info(&self, message: &Message) -> Message {
        let free = self.memory.frames.free() as u64 * PAGE_BYTES;
        let cached = self.memory.objects.cached_pages(&self.memory.frames) * PAGE_BYTES;
        let own = self.memory.own_frames() * PAGE_BYTES;
        vm::MemoryInfo::reply(message, 0, self.total_bytes, free, cached, own)
    }

    fn process_memory(&mut self, message: &Message, process: Endpoint) -> Result<Message, Errno> {
        let (faults, peak) = self.memory_use(process)?;
        let sizes = self.processes.space(process)?.sizes();
        let (resident, data, stack) = (sizes.resident, sizes.data, sizes.stack);
        Ok(vm::ProcessMemory::reply(message, 0, sizes.all, resident, data, stack, faults, peak))
    }

    fn maps(&mut self, request: &vm::Maps, granter: Endpoint) -> Result<u64, Errno> {
        let most = (request.bytes / size_of::<MapRecord>() as u64).min(MAX_RECORDS);
        let to = Source { granter, grant: request.grant, offset: 0 };
        self.with_space(request.process, |space, memory| {
            let records = space.records(memory, request.first, most as usize)?;
            let bytes = records.as_bytes();
            memory.kernel.write_grant(to, bytes).map(|()| bytes.len() as u64)
        })
    }
}
