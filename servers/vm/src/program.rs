//! The program: takes over free memory when the system starts, and makes the kernel calls that the rest of vm decides on.

use crate::memory::frames::{Frame, Frames, Run};
use crate::memory::kernel::{Kernel, PageBytes, Source};
use crate::memory::vdso::Clocks;
use crate::server::Server;
use abi::{
    Endpoint, Errno, Message, clock,
    endpoint::slot,
    info,
    kernel::{CopyFault, Fault},
    layout::{BOOT_HEAP_BYTES, MAX_COPY, PAGE_BYTES, SERVICE_DEVICES, SERVICE_STACK_BYTES, map},
    linux::nr,
    privilege::{MemoryRange, check},
};
use alloc::vec::Vec;
use sys::{
    copy, grant, heap, ipc, rights,
    space::{self, Space},
};

/// vm's own space: the kernel numbers the spaces it makes at boot like the slots.
const OWN: Space = Space(slot::VM as u64);
/// Where vm sees a frame that it reads.
const WINDOW: u64 = SERVICE_DEVICES;
/// Most ranges of free memory.
const MAX_RANGES: usize = 64;
/// Frames given to the pool of page tables before vm counts frames.
const FIRST_DONATION: u64 = 16;

/// Begins to serve.
pub fn main(_: sys::Start) {
    let (service, is_second_life) = recover::retained::state(|| Service(start().expect("vm cannot take over memory")));
    if is_second_life {
        service.0.recover(|process| recover::retained::waits_for(process, slot::VM));
    }
    ::server::run(service)
}

struct Service(Server<Calls>);

use ::server::SyncStep;

impl ::server::Service for Service {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        self.0.handle(message)
    }

    /// A fault that is refused ends its program, and brk has no error. `Memory::ensure_heap` says whether there is memory for them.
    fn is_exempt(&self, message: &Message) -> bool {
        matches!(message.label, Fault::LABEL | CopyFault::LABEL | nr::BRK) || ::server::is_exempt(message)
    }
}

/// Takes over free memory. The table of frames needs heap in proportion to it, so that comes first, off the end of the largest range.
fn start() -> Result<Server<Calls>, Errno> {
    let mut ranges = [MemoryRange::default(); MAX_RANGES];
    let ranges = sys::info::get_slice(info::FREE_MEMORY, 0, &mut ranges)?;
    let limit = ranges.iter().map(|range| (range.start + range.bytes) / PAGE_BYTES).max().ok_or(Errno::ENOMEM)?;
    let limit = usize::try_from(limit).map_err(|_| Errno::ENOMEM)?.min(u32::MAX as usize);
    let pages = (Frames::heap_bytes(limit) as u64).div_ceil(PAGE_BYTES) + 1;
    let largest = ranges.iter_mut().max_by_key(|range| range.bytes).ok_or(Errno::ENOMEM)?;
    donate(cut(largest, FIRST_DONATION)?)?;
    let table = cut(largest, pages)?;
    if space::map(OWN, heap::end(), table.first.address(), table.frames, map::WRITE)?.pages < pages {
        return Err(Errno::ENOMEM);
    }
    heap::grow(pages * PAGE_BYTES)?;
    let mut frames = Frames::new(limit);
    ranges.iter().for_each(|range| add(&mut frames, range));
    let own_frames = pages + FIRST_DONATION + (BOOT_HEAP_BYTES + SERVICE_STACK_BYTES) / PAGE_BYTES;
    Server::new(Calls, frames, own_frames, sys::info::kernel()?.total_bytes)
}

/// Cuts frames off the end of a range.
fn cut(range: &mut MemoryRange, frames: u64) -> Result<Run, Errno> {
    range.bytes = (range.bytes / PAGE_BYTES).checked_sub(frames).ok_or(Errno::ENOMEM)? * PAGE_BYTES;
    Ok(Run { first: Frame(((range.start + range.bytes) / PAGE_BYTES) as u32), frames })
}

fn add(frames: &mut Frames, range: &MemoryRange) {
    let first = range.start.div_ceil(PAGE_BYTES);
    let end = (range.start + range.bytes) / PAGE_BYTES;
    (first..end).for_each(|number| frames.add(Frame(number as u32)));
}

fn donate(run: Run) -> Result<(), Errno> {
    space::donate(run.first.address(), run.frames)
}

/// The real kernel.
#[derive(Debug)]
struct Calls;

impl Kernel for Calls {
    fn create(&mut self) -> Result<Space, Errno> {
        space::create()
    }

    fn destroy(&mut self, space: Space) -> Result<(), Errno> {
        space::destroy(space)
    }

    fn set(&mut self, thread: Endpoint, space: Space) -> Result<(), Errno> {
        space::set(thread, space)
    }

    fn map(&mut self, space: Space, address: u64, run: Run, flags: u64) -> Result<u64, Errno> {
        space::map(space, address, run.first.address(), run.frames, flags).map(|progress| progress.pages)
    }

    fn unmap(&mut self, space: Space, address: u64, pages: u64) -> Result<(), Errno> {
        space::unmap(space, address, pages)
    }

    fn protect(&mut self, space: Space, address: u64, pages: u64, flags: u64) -> Result<(), Errno> {
        space::protect(space, address, pages, flags)
    }

    fn copy(&mut self, from: Space, to: Space, address: u64, pages: u64) -> Result<u64, Errno> {
        space::copy(from, to, address, pages).map(|progress| progress.pages)
    }

    fn donate(&mut self, run: Run) -> Result<(), Errno> {
        donate(run)
    }

    fn reclaim(&mut self) -> Result<Frame, Errno> {
        space::reclaim().map(|address| Frame((address / PAGE_BYTES) as u32))
    }

    fn copy_frame(&mut self, to: Frame, from: Frame) -> Result<(), Errno> {
        space::copy_frame(to.address(), from.address())
    }

    fn fill(&mut self, frame: Frame, offset: u64, source: Source, bytes: u64) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(MAX_COPY);
            let at = frame.address() + offset + done;
            let (first, within) = (at / PAGE_BYTES * PAGE_BYTES, at % PAGE_BYTES);
            space::fill_frames(first, within, source.granter, source.grant, source.offset + done, part)?;
            done += part;
        }
        Ok(())
    }

    fn read_frame(&mut self, frame: Frame, into: &mut PageBytes) -> Result<(), Errno> {
        if space::map(OWN, WINDOW, frame.address(), 1, 0)?.pages == 0 {
            return Err(Errno::ENOMEM);
        }
        copy::from_process(Endpoint::SELF, WINDOW, into)?;
        space::unmap(OWN, WINDOW, 1)
    }

    fn write_frame(&mut self, frame: Frame, from: &PageBytes) -> Result<(), Errno> {
        let own = sys::endpoint();
        grant::lend(from, own, |grant| space::fill_frames(frame.address(), 0, own, grant, 0, PAGE_BYTES))?
    }

    fn read_grant(&mut self, source: Source, into: &mut [u8]) -> Result<(), Errno> {
        copy::from_grant(source.granter, source.grant, source.offset, into)
    }

    fn write_grant(&mut self, to: Source, from: &[u8]) -> Result<(), Errno> {
        copy::to_grant(to.granter, to.grant, to.offset, from)
    }

    fn write_process(&mut self, process: Endpoint, address: u64, from: &[u8]) -> Result<(), Errno> {
        copy::to_process(process, address, from)
    }

    fn may_map(&mut self, process: Endpoint, physical: u64, bytes: u64) -> bool {
        rights::check(process, check::MEMORY, physical, bytes).is_ok()
    }

    fn notify(&mut self, service: Endpoint) {
        // A vfs that is just being restarted asks by itself when it is up.
        let _ = ipc::notify(service);
    }

    fn answer(&mut self, process: Endpoint, reply: &Message) {
        // A thread that does not wait any more has been interrupted or is dead.
        let _ = ipc::send_nonblocking(process, reply);
    }

    fn real_s(&mut self) -> u64 {
        sys::time::real_ns() / 1_000_000_000
    }

    fn clocks(&mut self) -> Result<Clocks, Errno> {
        let known = sys::info::kernel()?;
        let (monotonic_ns, real_ns) = sys::time::both_ns();
        Ok(Clocks {
            entry_tsc: known.entry_tsc,
            ns_per_tick: clock::factor(clock::SECOND_NS, known.tsc_hz),
            real_offset_ns: real_ns.wrapping_sub(monotonic_ns),
        })
    }

    fn own_space(&self) -> Space {
        OWN
    }

    fn has_heap(&self, bytes: usize) -> bool {
        let mut probe: Vec<u8> = Vec::new();
        let result = probe.try_reserve_exact(bytes);
        // Without this the compiler knows that nobody looks, and leaves the allocation out.
        core::hint::black_box(&probe);
        result.is_ok()
    }

    fn heap_end(&self) -> u64 {
        heap::end()
    }

    fn grow_heap(&mut self, bytes: u64) -> Result<(), Errno> {
        heap::grow(bytes)
    }
}
