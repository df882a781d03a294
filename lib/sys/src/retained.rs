//! Retained state: after a crash the program is restarted in its predecessor's memory (docs/book/recovery.md).
//!
//! Text, constants and stack are fresh; data and heap are as the predecessor left them. Everything that survives is reachable from
//! one root. A change that the crash interrupted is left half done, and the program has to repair it. The exception is the heap: if
//! its own lists were being changed, it is replaced by a new arena, and only its blocks remain valid.
//! Neighbours: `start` (begins each incarnation), `heap`, `grant` (grants of buffers on the old stack are revoked).

use alloc::boxed::Box;
use core::any::TypeId;
use core::cell::UnsafeCell;

struct Root(UnsafeCell<Inner>);

struct Inner {
    /// The state, of this type.
    state: Option<(TypeId, *mut ())>,
    /// Whether this incarnation has fetched it.
    taken: bool,
}

// SAFETY: a native program has one thread and nothing interrupts it within itself.
unsafe impl Sync for Root {}

static ROOT: Root = Root(UnsafeCell::new(Inner { state: None, taken: false }));

/// Returns the program's state: the predecessor's (`true`), or the result of `make`.
///
/// # Panics
/// At the second call of one incarnation, and if the predecessor's state has another type.
pub fn state<T: 'static>(make: impl FnOnce() -> T) -> (&'static mut T, bool) {
    // SAFETY: one thread, and nothing below calls back into this module while the reference lives, but `make`, which comes first.
    let known = unsafe { (*ROOT.0.get()).state };
    let (id, state, is_old) = match known {
        Some((id, state)) => (id, state.cast::<T>(), true),
        None => (TypeId::of::<T>(), Box::into_raw(Box::new(make())), false),
    };
    // SAFETY: as above.
    let inner = unsafe { &mut *ROOT.0.get() };
    assert!(!inner.taken, "the retained state was fetched before");
    assert!(id == TypeId::of::<T>(), "the retained state has another type");
    inner.taken = true;
    inner.state = Some((id, state.cast()));
    // SAFETY: a leaked box of this type, returned once in each incarnation; the previous one has ended, with its references.
    (unsafe { &mut *state }, is_old)
}

/// Begins an incarnation. Returns whether the memory is that of a predecessor.
#[cfg(target_os = "none")]
pub(crate) fn begin_life() -> bool {
    // SAFETY: the program's first steps: there is no other reference yet.
    let inner = unsafe { &mut *ROOT.0.get() };
    inner.taken = false;
    inner.state.is_some()
}
