//! A made-up kernel for the tests: physical frames, page tables, grants; and programs that touch their memory.
//!
//! Frames are full of rubbish until they are zeroed or filled, and a frame that went to the page tables is gone, so that
//! what vm must not give out is noticed.

use crate::memory::frames::{Frame, Frames, Run};
use crate::memory::kernel::{Kernel, PageBytes, Source};
use crate::memory::vdso::Clocks;
use crate::server::Server;
use abi::{
    Endpoint, Errno, GrantId, Message,
    endpoint::slot,
    kernel::{ACCESS_EXECUTE, ACCESS_PRESENT, ACCESS_WRITE, Fault},
    layout::{PAGE_BYTES, SERVICE_HEAP, USER_END, map},
    vm,
};
use std::collections::{BTreeMap, BTreeSet};
use sys::space::Space;

/// Free frames that the pool of page tables keeps.
const KEPT_FRAMES: u64 = 4;

/// First frame that vm gets.
pub const FIRST_FRAME: u32 = 16;
const RUBBISH: u8 = 0xaa;
const PAGE: usize = PAGE_BYTES as usize;

/// How a program touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    Read,
    Write(u8),
    Execute,
}

/// The kernel.
#[derive(Debug, Default)]
pub struct Simulation {
    content: BTreeMap<Frame, Box<PageBytes>>,
    /// Page → frame and flags, by space.
    pub tables: BTreeMap<u64, BTreeMap<u64, (Frame, u64)>>,
    threads: BTreeMap<Endpoint, u64>,
    pub donated: BTreeSet<Frame>,
    table_frames: u64,
    last_space: u64,
    /// What is in which grant.
    pub grants: BTreeMap<u32, Vec<u8>>,
    pub answers: Vec<(Endpoint, Message)>,
    pub notified: Vec<Endpoint>,
    /// Physical memory that drivers may map.
    pub device: core::ops::Range<u64>,
    /// Calls made.
    pub calls: u64,
    /// Seconds since 1970.
    pub now_s: u64,
    /// vm dies at this many calls from now.
    pub dies_in: Option<u64>,
    /// The kernel refuses this call from now on, of those that may be refused.
    pub refuses_in: Option<u64>,
    /// What is left of vm's heap; `None`: it does not end.
    pub heap_bytes: Option<u64>,
    /// Pages for which `protect` was called.
    pub protected_pages: u64,
}

impl Simulation {
    /// A vm with this many frames.
    pub fn start(frames: u32) -> Server<Simulation> {
        let mut table = Frames::new((FIRST_FRAME + frames) as usize);
        (FIRST_FRAME..FIRST_FRAME + frames).for_each(|number| table.add(Frame(number)));
        Server::new(Simulation::default(), table, 0, u64::from(frames) * PAGE_BYTES).expect("enough memory")
    }

    /// A kernel call is made, which may be the last thing that vm does.
    fn enter(&mut self) {
        self.calls += 1;
        if let Some(left) = &mut self.dies_in {
            *left -= 1;
            if *left == 0 {
                self.dies_in = None;
                std::panic::resume_unwind(Box::new("vm dies"));
            }
        }
    }

    /// The same for a call that may be refused. `ENOMEM`: it is.
    fn enter_refusable(&mut self) -> Result<(), Errno> {
        self.enter();
        let Some(left) = &mut self.refuses_in else { return Ok(()) };
        *left -= 1;
        if *left > 0 {
            return Ok(());
        }
        self.refuses_in = None;
        Err(Errno::ENOMEM)
    }

    fn page(&mut self, frame: Frame) -> &mut PageBytes {
        assert!(!self.donated.contains(&frame), "{frame:?} holds page tables");
        self.content.entry(frame).or_insert_with(|| Box::new([RUBBISH; PAGE]))
    }

    /// The pages of a range of user addresses.
    fn pages(address: u64, pages: u64) -> core::ops::Range<u64> {
        assert!(address.is_multiple_of(PAGE_BYTES), "{address:#x} is within a page");
        let first = address / PAGE_BYTES;
        assert!(pages <= USER_END / PAGE_BYTES - first, "{pages} pages from {address:#x} on");
        first..first + pages
    }

    fn table(&mut self, space: Space) -> Result<&mut BTreeMap<u64, (Frame, u64)>, Errno> {
        self.tables.get_mut(&space.0).ok_or(Errno::EINVAL)
    }

    /// Each 2 MiB with a mapping need a table out of the pool.
    fn take_table(&mut self, space: Space, page: u64) -> Result<bool, Errno> {
        let first = page / 512 * 512;
        if self.table(space)?.range(first..first + 512).next().is_some() {
            return Ok(true);
        }
        let enough = self.table_frames > 0;
        self.table_frames -= u64::from(enough);
        Ok(enough)
    }

    pub fn mapping(&self, process: Endpoint, address: u64) -> Option<(Frame, u64)> {
        self.tables.get(self.threads.get(&process)?)?.get(&(address / PAGE_BYTES)).copied()
    }

    fn access(&mut self, process: Endpoint, address: u64, touch: Touch) -> Result<u8, u64> {
        let bit = match touch {
            Touch::Read => 0,
            Touch::Write(_) => ACCESS_WRITE,
            Touch::Execute => ACCESS_EXECUTE,
        };
        let (frame, flags) = self.mapping(process, address).ok_or(bit)?;
        let allowed = match touch {
            Touch::Read => true,
            Touch::Write(_) => flags & map::WRITE != 0,
            Touch::Execute => flags & map::EXECUTE != 0,
        };
        if !allowed {
            return Err(bit | ACCESS_PRESENT);
        }
        let byte = &mut self.page(frame)[address as usize % PAGE];
        if let Touch::Write(value) = touch {
            *byte = value;
        }
        Ok(*byte)
    }
}

impl Server<Simulation> {
    /// A program (or service) touches its memory; faults go to vm. The error is that of the fault.
    pub fn touch(&mut self, process: Endpoint, address: u64, touch: Touch) -> Result<u8, Errno> {
        for _ in 0..4 {
            let access = match self.memory.kernel.access(process, address, touch) {
                Ok(byte) => return Ok(byte),
                Err(access) => access,
            };
            let fault = Message { source: process, ..Fault { address, access, ip: 0 }.message() };
            let reply = self.handle(&fault).done().expect("faults are answered at once");
            reply.result()?;
        }
        panic!("{process:?} faults at {address:#x} again and again ({touch:?})");
    }

    pub fn load(&mut self, process: Endpoint, address: u64) -> Result<u8, Errno> {
        self.touch(process, address, Touch::Read)
    }

    pub fn store(&mut self, process: Endpoint, address: u64, value: u8) -> Result<(), Errno> {
        self.touch(process, address, Touch::Write(value)).map(drop)
    }

    /// A request of a service.
    pub fn ask(&mut self, from: usize, request: Message) -> Message {
        let request = Message { source: Endpoint::new(from, 1), ..request };
        let reply = self.handle(&request).done().expect("requests are answered at once");
        let has_count = [vm::Maps::LABEL, vm::MappedName::LABEL, vm::ImageMissing::LABEL, vm::SharedTake::LABEL];
        let is_plain = reply.result().is_ok() && !has_count.contains(&request.label);
        assert!(!is_plain || reply.words[0] == 0, "request {:#x} succeeds with {:#x}", request.label, reply.words[0]);
        reply
    }

    /// A Linux call of a program.
    pub fn call(&mut self, process: Endpoint, number: u32, arguments: [u64; 6]) -> Result<u64, Errno> {
        let mut message = Message { source: process, ..Message::new(number) };
        message.words[..6].copy_from_slice(&arguments);
        self.handle(&message).done().expect("answered at once").result()
    }
}

impl Kernel for Simulation {
    fn create(&mut self) -> Result<Space, Errno> {
        self.enter_refusable()?;
        self.table_frames = self.table_frames.checked_sub(1).ok_or(Errno::ENOMEM)?;
        self.last_space += 1;
        self.tables.insert(self.last_space, BTreeMap::new());
        Ok(Space(self.last_space))
    }

    fn destroy(&mut self, space: Space) -> Result<(), Errno> {
        self.enter();
        assert!(!self.threads.values().any(|&used| used == space.0), "space {space:?} is in use");
        let table = self.tables.remove(&space.0).ok_or(Errno::EINVAL)?;
        let used: BTreeSet<u64> = table.keys().map(|page| page / 512).collect();
        self.table_frames += 1 + used.len() as u64;
        Ok(())
    }

    fn set(&mut self, thread: Endpoint, space: Space) -> Result<(), Errno> {
        self.enter_refusable()?;
        if space == Space::NONE {
            self.threads.remove(&thread);
        } else {
            self.table(space)?;
            self.threads.insert(thread, space.0);
        }
        Ok(())
    }

    fn map(&mut self, space: Space, address: u64, run: Run, flags: u64) -> Result<u64, Errno> {
        self.enter_refusable()?;
        assert!(flags & (map::WRITE | map::EXECUTE) != map::WRITE | map::EXECUTE, "writable and executable");
        for (frame, page) in run.iter().zip(Simulation::pages(address, run.frames)) {
            if !self.take_table(space, page)? {
                return Ok(page - address / PAGE_BYTES);
            }
            if flags & map::ZERO != 0 {
                self.page(frame).fill(0);
            }
            assert!(!self.donated.contains(&frame));
            let old = self.table(space)?.insert(page, (frame, flags));
            // A copy takes the place of what was shared.
            let may_be = |(known, flags): (Frame, u64)| known == frame || flags & map::WRITE == 0;
            assert!(old.is_none_or(may_be), "page {page:#x} is {old:?} already");
        }
        Ok(run.frames)
    }

    fn unmap(&mut self, space: Space, address: u64, pages: u64) -> Result<(), Errno> {
        self.enter();
        let pages = Simulation::pages(address, pages);
        self.table(space)?.retain(|page, _| !pages.contains(page));
        Ok(())
    }

    fn protect(&mut self, space: Space, address: u64, pages: u64, flags: u64) -> Result<(), Errno> {
        self.enter();
        self.protected_pages += pages;
        let pages = Simulation::pages(address, pages);
        self.table(space)?.range_mut(pages).for_each(|(_, mapping)| mapping.1 = flags);
        Ok(())
    }

    fn copy(&mut self, from: Space, to: Space, address: u64, pages: u64) -> Result<u64, Errno> {
        self.enter_refusable()?;
        let range = Simulation::pages(address, pages);
        for page in range.clone() {
            let Some(mapping) = self.table(from)?.get_mut(&page) else { continue };
            mapping.1 &= !map::WRITE;
            let mapping = *mapping;
            if !self.take_table(to, page)? {
                return Ok(page - range.start);
            }
            self.table(to)?.insert(page, mapping);
        }
        Ok(pages)
    }

    fn donate(&mut self, run: Run) -> Result<(), Errno> {
        self.enter_refusable()?;
        run.iter().for_each(|frame| assert!(self.donated.insert(frame)));
        self.table_frames += run.frames;
        Ok(())
    }

    fn reclaim(&mut self) -> Result<Frame, Errno> {
        let spare = if self.table_frames > KEPT_FRAMES { self.donated.pop_last() } else { None };
        self.table_frames -= u64::from(spare.is_some());
        spare.ok_or(Errno::EAGAIN)
    }

    fn copy_frame(&mut self, to: Frame, from: Frame) -> Result<(), Errno> {
        self.enter_refusable()?;
        let content = *self.page(from);
        *self.page(to) = content;
        Ok(())
    }

    fn fill(&mut self, frame: Frame, offset: u64, source: Source, bytes: u64) -> Result<(), Errno> {
        self.enter_refusable()?;
        let mut content = vec![0; bytes as usize];
        self.read_grant(source, &mut content)?;
        for (at, byte) in (offset as usize..).zip(content) {
            self.page(frame.plus((at / PAGE) as u64))[at % PAGE] = byte;
        }
        Ok(())
    }

    fn read_frame(&mut self, frame: Frame, into: &mut PageBytes) -> Result<(), Errno> {
        *into = *self.page(frame);
        Ok(())
    }

    fn write_frame(&mut self, frame: Frame, from: &PageBytes) -> Result<(), Errno> {
        self.enter_refusable()?;
        *self.page(frame) = *from;
        Ok(())
    }

    fn read_grant(&mut self, source: Source, into: &mut [u8]) -> Result<(), Errno> {
        assert!(source.granter.is_service(), "only services give grants to vm");
        let content = self.grants.get(&source.grant.0).ok_or(Errno::EPERM)?;
        let start = source.offset as usize;
        into.copy_from_slice(content.get(start..start + into.len()).ok_or(Errno::EPERM)?);
        Ok(())
    }

    fn write_grant(&mut self, to: Source, from: &[u8]) -> Result<(), Errno> {
        let content = self.grants.get_mut(&to.grant.0).ok_or(Errno::EPERM)?;
        let start = to.offset as usize;
        content.get_mut(start..start + from.len()).ok_or(Errno::EPERM)?.copy_from_slice(from);
        Ok(())
    }

    fn write_process(&mut self, process: Endpoint, address: u64, from: &[u8]) -> Result<(), Errno> {
        let mut bytes = from.iter().zip(address..);
        bytes
            .try_for_each(|(&byte, at)| self.access(process, at, Touch::Write(byte)).map(drop))
            .map_err(|_| Errno::EFAULT)
    }

    fn may_map(&mut self, _: Endpoint, physical: u64, bytes: u64) -> bool {
        self.device.start <= physical && physical + bytes <= self.device.end
    }

    fn notify(&mut self, service: Endpoint) {
        self.notified.push(service);
    }

    fn answer(&mut self, process: Endpoint, reply: &Message) {
        assert!(reply.is_reply(), "the kernel hands only a reply to a program that waits in a call");
        self.answers.push((process, *reply));
    }

    fn real_s(&mut self) -> u64 {
        self.enter();
        self.now_s
    }

    fn clocks(&mut self) -> Result<Clocks, Errno> {
        self.enter();
        Ok(Clocks { entry_tsc: 1000, ns_per_tick: 1 << 32, real_offset_ns: self.now_s * 1_000_000_000 })
    }

    fn own_space(&self) -> Space {
        Space(slot::VM as u64)
    }

    fn has_heap(&self, bytes: usize) -> bool {
        self.heap_bytes.is_none_or(|heap| bytes as u64 <= heap)
    }

    fn heap_end(&self) -> u64 {
        SERVICE_HEAP + self.heap_bytes.unwrap_or(0)
    }

    fn grow_heap(&mut self, bytes: u64) -> Result<(), Errno> {
        let heap = self.heap_bytes.as_mut().expect("a heap without end does not grow");
        *heap += bytes;
        Ok(())
    }
}

/// Puts content into a grant.
pub fn grant(server: &mut Server<Simulation>, content: Vec<u8>) -> GrantId {
    let number = server.memory.kernel.grants.len() as u32;
    server.memory.kernel.grants.insert(number, content);
    GrantId(number)
}
