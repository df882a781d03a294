//! The exact profile of a guest: how many instructions each process executed, for which program, in which function.
//!
//! The emulator reports every block of instructions before it executes it (`tools/qemu_plugin`). From these reports, and from the registers
//! that the kernel saves on entry, a [`Recorder`] knows which thread runs, which calls and requests it makes, and whose request a service
//! handles. So the ticks of a driver are attributed to the program whose call caused them. The guest is not changed: it takes the ticks that it
//! takes unobserved.
//!
//! * `block`: the blocks that the emulator executes;
//! * `tree`: contexts: stacks that go through processes, one frame each;
//! * `stack`: the function calls that a thread, or the kernel, has not returned from;
//! * `thread`, `requests`, `slots`: the threads, their outstanding requests, and how a slot is found;
//! * `naming`: the names of programs;
//! * `recorder`: one method for each event in the guest;
//! * `recording`: the result, which `./skink profile` reads;
//! * `counter`: beside all that, what `./skink bench compare` counts, of any kernel.
#![forbid(unsafe_code)]

pub mod block;
pub mod counter;
mod naming;
pub mod recorder;
pub mod recording;
mod requests;
mod slots;
mod stack;
mod thread;
mod tree;

pub use block::{Block, Blocks};
pub use recorder::{Kernel, Recorder};
pub use recording::Recording;

/// Where the kernel's image is linked, minus where it is loaded.
pub const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;

/// The guest's state while the kernel is entered or left.
pub trait Guest {
    /// Returns the address at which the registers of the current thread are saved, and the saved registers.
    fn current(&self) -> Option<(u64, kernel_core::Frame)>;
    /// Reads memory of the loaded address space. Returns the bytes read: fewer where it is not mapped.
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize;
}
