//! All that core asks of hardware. Implemented by `kernel/x86_64`, and by a made-up machine in the tests.
//!
//! Rules for implementations: nothing here blocks or calls back into the node; interrupts stay off. Core has checked
//! user addresses before (`start + bytes <= layout::USER_END`), page counts and alignments likewise, unless said
//! otherwise.

use crate::Frame;

use abi::{Errno, Message, info::KernelInfo, layout::USER_END, registers::EXTENDED_BYTES, trace::Record};
use zerocopy::FromZeros;

/// An address space of the node: an index below `layout::SPACES`. The spaces of the services that the kernel starts
/// itself have the number of their slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
pub struct Space(pub u16);

/// `EFAULT` unless all of the range is user memory.
pub(crate) fn check_range(address: u64, bytes: u64) -> Result<(), Errno> {
    match address.checked_add(bytes) {
        Some(end) if end <= USER_END => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}

/// Which side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The memory read.
    From,
    /// The memory written.
    To,
}

/// Memory to copy from or to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// An address of this space.
    Space(Space, u64),
    /// A physical address.
    Physical(u64),
}

impl Memory {
    /// The memory `bytes` further on.
    pub fn after(self, bytes: u64) -> Memory {
        match self {
            Memory::Space(space, address) => Memory::Space(space, address + bytes),
            Memory::Physical(address) => Memory::Physical(address + bytes),
        }
    }
}

/// Why a copy stopped: a page that is not mapped so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Address within the page.
    pub address: u64,
    /// Bits of `abi::kernel::ACCESS_*`: `PRESENT` when the page is there but lacks the right, `WRITE` for writes.
    pub access: u64,
}

/// How far a copy came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Bytes copied, from the start of the range without a gap.
    pub bytes: u64,
    /// What stopped it; `None` when everything was copied.
    pub fault: Option<(Side, Fault)>,
}

/// A number of pages done, and the error that stopped the work before all were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Pages done.
    pub pages: u64,
    /// `Err(ENOMEM)`: the pool of page-table frames is empty.
    pub result: Result<(), Errno>,
}

/// A message-signalled interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msi {
    /// Its number as an interrupt line, as `Kernel::interrupt` will name it.
    pub line: usize,
    /// What the device writes to.
    pub address: u64,
    /// What it writes.
    pub data: u64,
}

/// What comes after a step of starting vm or rs again.
#[derive(Clone, Copy, Debug)]
pub enum Renewal {
    /// The next step.
    Step,
    /// It starts with these registers.
    Done(Frame),
    /// Its binary is not there.
    Impossible,
}

/// The hardware of one node.
pub trait Machine {
    /// The time-stamp counter.
    fn ticks(&mut self) -> u64;
    /// Monotonic nanoseconds since boot at this count of the time-stamp counter; never runs backwards.
    fn ticks_to_ns(&self, ticks: u64) -> u64;
    /// A number of nanoseconds as a number of ticks, rounded up; saturates.
    fn ns_to_ticks(&self, duration_ns: u64) -> u64;
    /// Makes `Kernel::timer` be called when the counter reaches `deadline` (at once if it has), in place of what
    /// was armed before; `u64::MAX`: never.
    fn arm_timer(&mut self, deadline: u64);
    /// True when an interrupt waits to be taken. Cheap: asked between the chunks of long work.
    fn interrupt_pending(&mut self) -> bool;

    /// Copies between two spaces (perhaps the same; overlapping ranges give unspecified content), at most
    /// [`crate::CHUNK_BYTES`], as user mode could: unmapped pages, and writes to read-only ones, stop it.
    /// Addresses may be anything below `USER_END`.
    fn copy(&mut self, from: Space, from_address: u64, to: Space, to_address: u64, bytes: u64) -> Copied;
    /// As `copy`, in constant time, if the bytes lie within one page of user memory on either side and nothing stops it. Returns false when
    /// it has copied nothing. Addresses and `bytes` may be anything.
    fn copy_within_pages(&mut self, from: (Space, u64), to: (Space, u64), bytes: u64) -> bool;
    /// Reads eight bytes in constant time, if they lie within one page of user memory that can be read. The address may be anything.
    fn word(&mut self, space: Space, address: u64) -> Option<u64>;
    /// Reads user memory, at most 4096 bytes.
    fn read(&mut self, space: Space, address: u64, out: &mut [u8]) -> Result<(), Fault>;
    /// Writes user memory, at most 4096 bytes: all of it or nothing.
    fn write(&mut self, space: Space, address: u64, bytes: &[u8]) -> Result<(), Fault>;
    /// Physical address of a mapped user address.
    fn translate(&mut self, space: Space, address: u64) -> Result<u64, Fault>;
    /// As `copy`, with physical memory on one side or both. `EINVAL` when that is no RAM outside the kernel.
    fn copy_memory(&mut self, from: Memory, to: Memory, bytes: u64) -> Result<Copied, Errno>;
    /// Copies one frame to another. `EINVAL` when either is no RAM outside the kernel.
    fn copy_frame(&mut self, to: u64, from: u64) -> Result<(), Errno>;

    /// Makes an empty space under this free number. `ENOMEM`: page-table pool empty.
    fn space_create(&mut self, space: Space) -> Result<(), Errno>;
    /// Gives a bounded part of its page-table frames back to the pool, beginning with 0. No thread uses it, but the CPU may still have it
    /// loaded. → where to go on; `None`: it is gone.
    fn space_destroy(&mut self, space: Space, from: u64) -> Option<u64>;
    /// `KernelCall::SpaceMap`, `pages` at most [`crate::PAGES_AT_ONCE`]. Flags (`layout::map`) are checked;
    /// `EINVAL` when the frames belong to the kernel (its image, tables, pool), or when `ZERO` is asked for what is no
    /// RAM. May do fewer pages than asked without an error.
    fn space_map(&mut self, space: Space, address: u64, frame: u64, pages: u64, flags: u64) -> Mapped;
    /// `KernelCall::SpaceProtect` with these flags; `None`: `KernelCall::SpaceUnmap`.
    fn space_change(&mut self, space: Space, address: u64, pages: u64, flags: Option<u64>);
    /// `KernelCall::SpaceCopy`; `pages` likewise bounded.
    fn space_copy(&mut self, from: Space, to: Space, address: u64, pages: u64) -> Mapped;
    /// `KernelCall::Donate`. `EINVAL` when that is no RAM outside the kernel.
    fn donate(&mut self, frame: u64, pages: u64) -> Result<(), Errno>;
    /// `KernelCall::Reclaim`.
    fn reclaim(&mut self) -> Result<u64, Errno>;

    /// The FPU state of a thread; false (and `out` untouched) when it has not used the FPU.
    fn extended(&mut self, slot: usize, out: &mut [u8; EXTENDED_BYTES]) -> bool;
    /// Replaces the FPU state of a thread; `None`: the initial state. Must accept anything: header and MXCSR are
    /// sanitised.
    fn set_extended(&mut self, slot: usize, state: Option<&[u8; EXTENDED_BYTES]>);
    /// Gives `to` a copy of the FPU state of `from`.
    fn copy_extended(&mut self, from: usize, to: usize);

    /// Reads a port; `width` is 1, 2 or 4.
    fn port_in(&mut self, port: u16, width: u64) -> u32;
    /// Writes a port.
    fn port_out(&mut self, port: u16, width: u64, value: u32);
    /// Fills a buffer, whose length is a multiple of `width`, by reading one port again and again.
    fn port_in_string(&mut self, port: u16, width: u64, out: &mut [u8]);
    /// Writes such a buffer to one port.
    fn port_out_string(&mut self, port: u16, width: u64, bytes: &[u8]);

    /// The privileges of the thread in this slot have changed: what the CPU still allows it beyond them ends now.
    fn rights_changed(&mut self, slot: usize);

    /// Prepares an interrupt line, masked. `EINVAL`: there is no such line.
    fn line_open(&mut self, line: usize) -> Result<(), Errno>;
    /// Masks or unmasks a line (nothing to do for MSI).
    fn line_mask(&mut self, line: usize, masked: bool);
    /// Allocates a message-signalled interrupt. `EAGAIN`: none left.
    fn msi_open(&mut self) -> Result<Msi, Errno>;
    /// A line or MSI opened before is not used any more.
    fn line_close(&mut self, line: usize);

    /// Writes to the kernel's console and log.
    fn console(&mut self, text: &[u8]);
    /// What `GetInfo` tells about boot and hardware (`COMMAND_LINE`, `FREE_MEMORY`, `LOG`, `ARCHIVE`, `FRAMEBUFFER`,
    /// `ACPI`): some bytes of the answer from `offset` on; none past its end. `ENOENT`: there is no such thing.
    fn info(&self, what: u64, offset: usize) -> Result<&[u8], Errno>;
    /// Fills in what the hardware half knows: `tsc_hz`, `entry_tsc`, `kernel_bytes`, `total_bytes`, `pool_frames`.
    fn kernel_info(&mut self, info: &mut KernelInfo);
    /// Puts a record into the trace ring. Called only while tracing is on.
    fn trace(&mut self, record: &Record);

    /// Powers off, reboots or halts (`KernelCall::Shutdown`).
    fn shutdown(&mut self, mode: u64, status: u64) -> !;
    /// Writes one byte of a service's memory, though it may only read it; the page is mapped.
    fn poke(&mut self, space: Space, address: u64, byte: u8);
    /// Goes on with starting vm or rs (its space is `Space(slot)`) again, which has failed with `message` in these registers: first says
    /// so, then writes its text and constants anew, a line or a page in each step, from 0 on.
    fn renew(&mut self, slot: usize, step: u64, frame: &Frame, message: &Message) -> Renewal;
    /// The system cannot go on: vm or rs, which everything stands on, has failed with `message` in these registers.
    fn fatal(&mut self, slot: usize, frame: &Frame, message: &Message) -> !;
}
