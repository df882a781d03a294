//! What vm asks of the kernel. Implemented by `program` with real kernel calls, and by the tests' simulated machine.

use crate::memory::frames::{Frame, Run};
use crate::memory::vdso::Clocks;
use abi::{Endpoint, Errno, GrantId, Message, layout::PAGE_BYTES};
use sys::space::Space;

/// The content of a page.
pub type PageBytes = [u8; PAGE_BYTES as usize];

/// The kernel calls of `abi::call` that vm uses; see there for their errors.
pub trait Kernel {
    /// `SpaceCreate`.
    fn create(&mut self) -> Result<Space, Errno>;
    /// `SpaceDestroy`.
    fn destroy(&mut self, space: Space) -> Result<(), Errno>;
    /// `SpaceSet`.
    fn set(&mut self, thread: Endpoint, space: Space) -> Result<(), Errno>;
    /// `SpaceMap`. Returns the pages mapped; fewer than asked: the pool of page-table frames is empty.
    fn map(&mut self, space: Space, address: u64, frames: Run, flags: u64) -> Result<u64, Errno>;
    /// `SpaceUnmap`.
    fn unmap(&mut self, space: Space, address: u64, pages: u64) -> Result<(), Errno>;
    /// `SpaceProtect`.
    fn protect(&mut self, space: Space, address: u64, pages: u64, flags: u64) -> Result<(), Errno>;
    /// `SpaceCopy`. Returns the pages copied, as `map`.
    fn copy(&mut self, from: Space, to: Space, address: u64, pages: u64) -> Result<u64, Errno>;
    /// `Donate`.
    fn donate(&mut self, frames: Run) -> Result<(), Errno>;
    /// `Reclaim`.
    fn reclaim(&mut self) -> Result<Frame, Errno>;
    /// `FrameCopy`.
    fn copy_frame(&mut self, to: Frame, from: Frame) -> Result<(), Errno>;
    /// `FrameFill`: `bytes` from the grant into frames from `frame` on, `offset` bytes into them.
    fn fill(&mut self, frame: Frame, offset: u64, source: Source, bytes: u64) -> Result<(), Errno>;
    /// Reads a frame.
    fn read_frame(&mut self, frame: Frame, into: &mut PageBytes) -> Result<(), Errno>;
    /// Writes a frame.
    fn write_frame(&mut self, frame: Frame, from: &PageBytes) -> Result<(), Errno>;
    /// `SafeCopyFrom`.
    fn read_grant(&mut self, source: Source, into: &mut [u8]) -> Result<(), Errno>;
    /// `SafeCopyTo`.
    fn write_grant(&mut self, to: Source, from: &[u8]) -> Result<(), Errno>;
    /// `VirCopy` into a process; what it needs has been made present before.
    fn write_process(&mut self, process: Endpoint, address: u64, from: &[u8]) -> Result<(), Errno>;
    /// `PrivCheck` of physical memory.
    fn may_map(&mut self, process: Endpoint, physical: u64, bytes: u64) -> bool;
    /// Notifies a service.
    fn notify(&mut self, service: Endpoint);
    /// Answers a process that has been waiting for longer than its own request took.
    fn answer(&mut self, process: Endpoint, reply: &Message);
    /// Seconds since 1970.
    fn real_s(&mut self) -> u64;
    /// How the kernel computes the clocks, at this moment.
    fn clocks(&mut self) -> Result<Clocks, Errno>;
    /// vm's own space.
    fn own_space(&self) -> Space;
    /// Whether vm's heap has so many bytes together.
    fn has_heap(&self, bytes: usize) -> bool;
    /// Address after vm's heap.
    fn heap_end(&self) -> u64;
    /// `bytes` bytes have been mapped behind vm's heap: they are part of it from now on.
    fn grow_heap(&mut self, bytes: u64) -> Result<(), Errno>;
}

/// A place in a grant.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Who gave it.
    pub granter: Endpoint,
    /// Which.
    pub grant: GrantId,
    /// Offset in it, in bytes.
    pub offset: u64,
}

impl Source {
    /// The place `bytes` further on.
    pub fn plus(self, bytes: u64) -> Source {
        Source { offset: self.offset.saturating_add(bytes), ..self }
    }
}
