//! State that outlives its program: after a death the program is started again in the memory that it had (docs/book/recovery.md).
//!
//! Text and constants are new then, and so is the stack; data and heap are as the predecessor left them. So everything that is to
//! outlive it hangs from one root. Whoever was in the middle of a change when it died has left that half done: what to do about it
//! is the program's business, with one exception: a heap whose own lists were being changed is given up for a new one, and only its
//! blocks stay. Neighbours: `start` (begins each life), `heap`, `grant` (buffers on the old stack are lent no more).

use alloc::boxed::Box;
use core::any::TypeId;
use core::cell::UnsafeCell;

struct Root(UnsafeCell<Inner>);

struct Inner {
    /// The state, of this type.
    state: Option<(TypeId, *mut ())>,
    /// It has been handed out in this life.
    taken: bool,
}

// SAFETY: a native program has one thread and nothing interrupts it within itself.
unsafe impl Sync for Root {}

static ROOT: Root = Root(UnsafeCell::new(Inner { state: None, taken: false }));

/// The program's state: what the predecessor has left in this memory (`true`), or else what `make` makes.
///
/// # Panics
/// The second time in one life, and when the predecessor's state has another type.
pub fn state<T: 'static>(make: impl FnOnce() -> T) -> (&'static mut T, bool) {
    // SAFETY: one thread, and nothing below calls back into this module while the reference lives, but `make`, which comes first.
    let known = unsafe { (*ROOT.0.get()).state };
    let (id, state, is_old) = match known {
        Some((id, state)) => (id, state.cast::<T>(), true),
        None => (TypeId::of::<T>(), Box::into_raw(Box::new(make())), false),
    };
    // SAFETY: as above.
    let inner = unsafe { &mut *ROOT.0.get() };
    assert!(!inner.taken, "the retained state is in use");
    assert!(id == TypeId::of::<T>(), "the retained state has another type");
    inner.taken = true;
    inner.state = Some((id, state.cast()));
    // SAFETY: a leaked box of this type, handed out once in each life; the life before, with its references, is over.
    (unsafe { &mut *state }, is_old)
}

/// A life begins. → whether the memory is that of a predecessor.
#[cfg(target_os = "none")]
pub(crate) fn begin_life() -> bool {
    // SAFETY: the program's first steps: there is no other reference yet.
    let inner = unsafe { &mut *ROOT.0.get() };
    inner.taken = false;
    inner.state.is_some()
}
