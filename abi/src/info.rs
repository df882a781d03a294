//! Information that `GetInfo` returns: `(what, index, own address, bytes)`.

use crate::{Endpoint, Name};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The kernel command line, text.
pub const COMMAND_LINE: u64 = 0;
/// Free physical memory: array of `privilege::MemoryRange`. vm.
pub const FREE_MEMORY: u64 = 1;
/// `ThreadInfo` of the slot `index`; `ESRCH` when it is free.
pub const THREAD: u64 = 2;
/// What the thread with the endpoint `index` waits for, in the call's result: `ThreadInfo::state`, and `ThreadInfo::blocked_on` in the upper
/// half. Nothing is written. `EDEADSRCDST` when it has ended.
pub const WAIT: u64 = 9;
/// `KernelInfo`.
pub const KERNEL: u64 = 3;
/// The kernel's log, text, newest 16 KiB.
pub const LOG: u64 = 4;
/// `privilege::MemoryRange` of the boot archive.
pub const ARCHIVE: u64 = 5;
/// `Framebuffer`; `ENOENT` when the boot loader gave none.
pub const FRAMEBUFFER: u64 = 6;
/// `privilege::Privileges` of the slot `index`: rs any, others their own.
pub const PRIVILEGES: u64 = 7;
/// Address of the ACPI RSDP, a u64; 0 when unknown.
pub const ACPI: u64 = 8;

/// Bytes of the trace ring (`trace`) from the offset `what - TRACE` on. Only who may make the kernel call `Trace`.
pub const TRACE: u64 = 1 << 32;

/// States of a thread in `ThreadInfo::state`.
pub mod state {
    #![allow(missing_docs)]
    pub const READY: u32 = 0;
    pub const SENDING: u32 = 1;
    /// It waits for a message.
    pub const RECEIVING: u32 = 2;
    pub const STOPPED: u32 = 3;
    /// It waits for the answer to a message that the kernel has sent in its name.
    pub const FAULTING: u32 = 4;
    /// Its message was received, and it waits for the answer: that of a successor, perhaps, which is to receive the message again.
    pub const ANSWERING: u32 = 5;
}

/// One thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ThreadInfo {
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// One of `state`.
    pub state: u32,
    /// Endpoint that it waits for, or `NONE`.
    pub blocked_on: Endpoint,
    /// Queue, inheritance included: as in the kernel call `Schedule`.
    pub queue: u32,
    /// Time spent in user mode and in the kernel on its behalf.
    pub run_ns: u64,
    /// Messages it has sent and received.
    pub messages: u64,
    /// Name, for services.
    pub name: Name,
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Number of the messages, kernel calls and ports that the kernel has refused it.
    pub denials: u64,
}

/// The kernel as a whole.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct KernelInfo {
    /// Monotonic time.
    pub now_ns: u64,
    /// Time without a ready thread.
    pub idle_ns: u64,
    /// TSC ticks per second.
    pub tsc_hz: u64,
    /// TSC when the kernel was entered.
    pub entry_tsc: u64,
    /// Messages delivered since boot.
    pub messages: u64,
    /// Context switches since boot.
    pub switches: u64,
    /// Interrupts since boot.
    pub interrupts: u64,
    /// Memory used by the kernel itself, page tables included.
    pub kernel_bytes: u64,
    /// All usable physical memory.
    pub total_bytes: u64,
    /// Page-table frames left in the pool.
    pub pool_frames: u64,
    /// Threads that exist.
    pub threads: u64,
}

/// The boot loader's frame buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Framebuffer {
    /// Physical address.
    pub address: u64,
    /// Bytes per line.
    pub pitch: u32,
    /// Pixels per line.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Bits per pixel.
    pub depth: u32,
}
