//! The exact profile of a guest: who executed how many instructions, on whose behalf, in which function.
//!
//! The emulator tells of every block of instructions that it executes (`tools/qemu_plugin`). From that, and from the registers that the
//! kernel saves when it is entered, a [`Recorder`] knows which thread runs, what it asks of whom, and whose request a service works on. So
//! a tick of a driver counts for the program whose call caused it. Nothing in the guest is changed, and nothing there takes a tick more.
//!
//! * `block`: what the emulator executes at once;
//! * `tree`: contexts, each of which is its caller's and one frame more;
//! * `stack`: the calls of functions that one thread, or the kernel, is in;
//! * `thread`, `requests`, `slots`: what is known of the threads;
//! * `naming`: what programs are called;
//! * `recorder`: what happens in the guest, one method for each event;
//! * `recording`: the outcome, which `./skink profile` reads.
#![forbid(unsafe_code)]

pub mod block;
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

/// What can be seen of the guest while it enters or leaves the kernel.
pub trait Guest {
    /// Where the registers of the current thread are saved, and those that are.
    fn current(&self) -> Option<(u64, kernel_core::Frame)>;
    /// Reads memory of the current thread's space; returns how many bytes are there.
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize;
}
