//! The kernel of programs that are built for the host: tests install an implementation of [`Kernel`].

pub mod machine;

use crate::Result;
use abi::call::KernelCall;
use abi::{Endpoint, Message};
use std::boxed::Box;
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;

/// A test's replacement of the kernel. Each thread has its own.
pub trait Kernel {
    /// Executes the primitive `number` of `abi::call`.
    fn primitive(&mut self, number: u64, to: Endpoint, message: &Message, from: Endpoint) -> Result<Message>;
    /// Executes a kernel call without buffer. Returns its result and two further ones.
    fn call(&mut self, call: KernelCall, arguments: [u64; 6]) -> Result<(u64, [u64; 2])>;
    /// Executes a kernel call that fills a buffer of the caller (argument `at` would be its address).
    fn filling(&mut self, call: KernelCall, arguments: [u64; 6], buffer: &mut [u8]) -> Result<u64>;
    /// Executes a kernel call that reads a buffer of the caller.
    fn reading(&mut self, call: KernelCall, arguments: [u64; 6], buffer: &[u8]) -> Result<u64>;
    /// Returns the caller's endpoint; `NONE`: it has none.
    fn endpoint(&self) -> Endpoint {
        Endpoint::NONE
    }
    /// Returns the caller's preserved memory of this length; `None`: it has none.
    fn preserved(&mut self, bytes: usize) -> Option<&'static [AtomicU64]> {
        let _ = bytes;
        None
    }
}

/// Memory that is zero, for [`crate::keep::Keep::simulated`]. What nobody writes to takes none of the host's.
pub fn zeroed(bytes: usize) -> &'static [AtomicU64] {
    let words: &'static mut [u64] = Box::leak(std::vec![0; bytes.div_ceil(8)].into_boxed_slice());
    // SAFETY: an atomic word has the size and alignment of a plain one on x86-64, and the slice is borrowed for good.
    unsafe { &*(words as *mut [u64] as *const [AtomicU64]) }
}

/// Frees what [`zeroed`] has returned.
///
/// # Safety
/// Nobody may use it any more.
unsafe fn free(memory: &'static [AtomicU64]) {
    let words = std::ptr::slice_from_raw_parts_mut(memory.as_ptr().cast_mut().cast::<u64>(), memory.len());
    // SAFETY: it was leaked as a box of that many words.
    drop(unsafe { Box::from_raw(words) });
}

std::thread_local! {
    static KERNEL: RefCell<Option<Box<dyn Kernel>>> = const { RefCell::new(None) };
}

/// Directs the calls of this thread to `kernel`.
pub fn install(kernel: impl Kernel + 'static) {
    KERNEL.with(|cell| *cell.borrow_mut() = Some(Box::new(kernel)));
}

fn with<R>(act: impl FnOnce(&mut dyn Kernel) -> R) -> R {
    KERNEL.with(|cell| act(cell.borrow_mut().as_mut().expect("this test has installed no kernel").as_mut()))
}

/// Returns whether this thread has a kernel.
pub(crate) fn is_installed() -> bool {
    KERNEL.with(|cell| cell.try_borrow().is_ok_and(|kernel| kernel.is_some()))
}

pub(crate) fn endpoint() -> Endpoint {
    KERNEL.with(|cell| cell.borrow().as_ref().map_or(Endpoint::NONE, |kernel| kernel.endpoint()))
}

pub(crate) fn primitive(number: u64, to: Endpoint, message: &Message, from: Endpoint) -> Result<Message> {
    with(|kernel| kernel.primitive(number, to, message, from))
}

pub(crate) fn kernel(call: KernelCall, arguments: [u64; 6]) -> Result<(u64, [u64; 2])> {
    with(|kernel| kernel.call(call, arguments))
}

pub(crate) fn kernel_filling(call: KernelCall, arguments: [u64; 6], _at: usize, buffer: &mut [u8]) -> Result<u64> {
    with(|kernel| kernel.filling(call, arguments, buffer))
}

pub(crate) fn kernel_reading(call: KernelCall, arguments: [u64; 6], _at: usize, buffer: &[u8]) -> Result<u64> {
    with(|kernel| kernel.reading(call, arguments, buffer))
}

pub(crate) fn preserved(bytes: usize) -> Option<&'static [AtomicU64]> {
    KERNEL.with(|cell| cell.borrow_mut().as_mut()?.preserved(bytes))
}

/// Panics: Skink's Linux calls do not exist on the host.
///
/// # Safety
/// None needed; as the real one.
pub(crate) unsafe fn linux(number: u64, _arguments: [u64; 6]) -> Result<u64> {
    panic!("Linux call {number} on the host")
}
