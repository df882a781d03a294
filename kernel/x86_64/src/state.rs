//! The node's state: core's half and the hardware's. The only globals, apart from the few words that `entry.s` and the record of
//! interrupts need.
//!
//! With more than one node each will have its own page tables, in which these addresses lead to memory of its own: nothing here is shared.

use crate::hardware::Hardware;
use core::{cell::UnsafeCell, mem::MaybeUninit};
use kernel_core::Kernel;
use zerocopy::FromZeros;

/// Something that is used only while interrupts are off.
pub struct State<T>(pub UnsafeCell<T>);

// SAFETY: one CPU, and interrupts are off wherever the state is used.
unsafe impl<T> Sync for State<T> {}

static NODE: State<MaybeUninit<Kernel>> = zeroed();
static HARDWARE: State<Hardware> = State(UnsafeCell::new(Hardware::NEW));

/// State whose bytes are all zero, which is a value of its type.
pub const fn zeroed<T: FromZeros>() -> State<MaybeUninit<T>> {
    State(UnsafeCell::new(MaybeUninit::zeroed()))
}

/// Both halves.
///
/// # Safety
/// The caller holds the only references: it is the one entry into the kernel that is under way, or its last words.
#[inline(always)]
pub unsafe fn node_state() -> (&'static mut Kernel, &'static mut Hardware) {
    // SAFETY: promised by the caller; `zeroed` has initialised the node.
    unsafe { ((*NODE.0.get()).assume_init_mut(), &mut *HARDWARE.0.get()) }
}
