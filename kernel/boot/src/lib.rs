//! What firmware and boot loader tell the kernel, read and checked: memory, boot archive, command line, interrupt controllers.
//!
//! The kernel runs before any of this is known to be true, so nothing here trusts a length, an address or a sum: input that is cut
//! short or damaged loses what it damages and never panics (`tests/damaged.rs`). No allocation, no hardware: physical memory is
//! reached through a function that the caller passes. Neighbour: `kernel/x86_64` (`start.rs` calls [`read`] and [`Platform::read`]).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod acpi;
mod bytes;
pub mod info;
pub mod memory_map;
pub mod multiboot2;
pub mod pvh;

pub use {acpi::Platform, info::BootInfo, memory_map::MemoryMap};

/// Reads what the boot loader left at `address`; `magic` says which loader it was, `read(address, bytes)` gives physical memory,
/// shorter or empty where it is none. `None`: the loader is unknown.
pub fn read<'a>(magic: u64, address: u64, read: impl Fn(u64, u64) -> &'a [u8]) -> Option<BootInfo> {
    if magic != multiboot2::MAGIC {
        return pvh::parse(address, read);
    }
    let size = bytes::number(read(address, 4), 0, 4).unwrap_or(0);
    Some(multiboot2::parse(address, read(address, size)))
}
