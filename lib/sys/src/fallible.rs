//! Allocation on behalf of a caller: it may fail, and then the caller gets `ENOMEM` and nobody else anything.
//!
//! Two rules make that so, for every service:
//! * What a program determines in size or number is allocated by the functions of this module. `clippy.toml` lists the
//!   infallible ones that they replace; a crate turns the lint on by `deny(clippy::disallowed_methods)`.
//! * The rest is small and bounded for each call: a boxed task, a shared object, a node of a map. It comes out of the heap's
//!   *reserve* when nothing else is left. The server loop asks [`admit`] before it begins a call, which refills the reserve or
//!   refuses the call.
//!
//! Tests fail the n-th of these allocations ([`fail_after`]; in the guest `service inject NAME fail-allocation N`).
//! Neighbours: `heap` (the reserve), `server` (admission).

use crate::Result;
use abi::Errno;
use alloc::collections::{TryReserveError, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

/// Countdown to the allocation that fails; 0: none does.
mod countdown {
    #[cfg(target_os = "none")]
    mod cell {
        use core::sync::atomic::{AtomicU64, Ordering};

        static LEFT: AtomicU64 = AtomicU64::new(0);

        #[inline]
        pub fn get() -> u64 {
            LEFT.load(Ordering::Relaxed)
        }

        pub fn set(left: u64) {
            LEFT.store(left, Ordering::Relaxed);
        }
    }

    /// Each thread of the tests is a machine of its own.
    #[cfg(not(target_os = "none"))]
    mod cell {
        use core::cell::Cell;

        std::thread_local! {
            static LEFT: Cell<u64> = const { Cell::new(0) };
        }

        pub fn get() -> u64 {
            LEFT.get()
        }

        pub fn set(left: u64) {
            LEFT.set(left);
        }
    }

    pub use cell::{get, set};
}

/// Makes the `n`-th allocation from now on fail, counted from 1, and no other; 0: none.
pub fn fail_after(n: u64) {
    countdown::set(n);
    #[cfg(target_os = "none")]
    crate::heap::end_calm();
}

/// Returns whether the allocation that [`fail_after`] chose is still to come.
pub fn is_failure_pending() -> bool {
    countdown::get() != 0
}

/// Counts an allocation of a kind that this module does not offer, for instance one that a library makes fallibly.
///
/// # Errors
/// `ENOMEM`: it is the one that is to fail.
#[inline]
pub fn permit() -> Result<()> {
    match countdown::get() {
        0 => Ok(()),
        left => {
            countdown::set(left - 1);
            if left == 1 { Err(Errno::ENOMEM) } else { Ok(()) }
        }
    }
}

/// Makes sure that the heap has its reserve, before a call begins that allocates.
///
/// # Errors
/// `ENOMEM`: the heap is exhausted.
#[inline]
pub fn admit() -> Result<()> {
    #[cfg(target_os = "none")]
    if crate::heap::is_calm() {
        return Ok(());
    }
    admit_after_look()
}

#[cold]
fn admit_after_look() -> Result<()> {
    permit()?;
    #[cfg(target_os = "none")]
    {
        if !crate::heap::refill_reserve() {
            return Err(Errno::ENOMEM);
        }
        if !is_failure_pending() {
            crate::heap::begin_calm();
        }
    }
    Ok(())
}

/// Returns how often this program and its predecessors in the same memory had no memory for an allocation that cannot fail.
pub fn exhaustions() -> u32 {
    #[cfg(target_os = "none")]
    return crate::heap::exhaustions();
    #[cfg(not(target_os = "none"))]
    0
}

/// Reserves memory by `reserve`, without touching the heap's reserve.
fn attempt(reserve: impl FnOnce() -> core::result::Result<(), TryReserveError>) -> Result<()> {
    permit()?;
    #[cfg(target_os = "none")]
    let result = crate::heap::without_reserve(reserve);
    #[cfg(not(target_os = "none"))]
    let result = reserve();
    result.map_err(|_| Errno::ENOMEM)
}

/// Returns an empty vector with room for `capacity` values.
///
/// # Errors
/// `ENOMEM`.
pub fn with_capacity<T>(capacity: usize) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    if capacity != 0 {
        attempt(|| vec.try_reserve_exact(capacity))?;
    }
    Ok(vec)
}

/// Returns an empty queue with room for `capacity` values.
///
/// # Errors
/// `ENOMEM`.
pub fn queue<T>(capacity: usize) -> Result<VecDeque<T>> {
    let mut queue = VecDeque::new();
    if capacity != 0 {
        attempt(|| queue.try_reserve_exact(capacity))?;
    }
    Ok(queue)
}

/// Returns a vector of `count` times `value`.
///
/// # Errors
/// `ENOMEM`.
#[expect(clippy::disallowed_methods, reason = "the room is there")]
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut vec = with_capacity(count)?;
    vec.resize(count, value);
    Ok(vec)
}

/// Returns a vector with these values.
///
/// # Errors
/// `ENOMEM`.
pub fn copied<T: Clone>(values: &[T]) -> Result<Vec<T>> {
    let mut vec = with_capacity(values.len())?;
    vec.try_extend_from_slice(values)?;
    Ok(vec)
}

/// Returns a string with this text.
///
/// # Errors
/// `ENOMEM`.
pub fn string(text: &str) -> Result<String> {
    let mut string = String::new();
    string.try_push_str(text)?;
    Ok(string)
}

/// Collects the values of an iterator.
///
/// # Errors
/// `ENOMEM`.
pub fn collect<T>(values: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let values = values.into_iter();
    let mut vec = with_capacity(values.size_hint().0)?;
    for value in values {
        vec.try_push(value)?;
    }
    Ok(vec)
}

/// A vector that grows fallibly. Each method leaves it as it was when it fails.
pub trait TryVec<T> {
    /// Makes room for this many further values.
    ///
    /// # Errors
    /// `ENOMEM`.
    fn try_make_room(&mut self, further: usize) -> Result<()>;

    /// Appends a value.
    ///
    /// # Errors
    /// `ENOMEM`.
    fn try_push(&mut self, value: T) -> Result<()>;

    /// Inserts a value before the one at `at`.
    ///
    /// # Errors
    /// `ENOMEM`.
    ///
    /// # Panics
    /// If `at` is beyond the end.
    fn try_insert(&mut self, at: usize, value: T) -> Result<()>;

    /// Appends copies of these values.
    ///
    /// # Errors
    /// `ENOMEM`.
    fn try_extend_from_slice(&mut self, values: &[T]) -> Result<()>
    where
        T: Clone;

    /// Appends a value to a vector whose room was reserved before.
    ///
    /// # Panics
    /// In a debug build if there is no room.
    fn push_reserved(&mut self, value: T);

    /// Truncates the vector to `count` values, or extends it to that by copies of `value`.
    ///
    /// # Errors
    /// `ENOMEM`.
    fn try_resize(&mut self, count: usize, value: T) -> Result<()>
    where
        T: Clone;
}

#[expect(clippy::disallowed_methods, reason = "the room is there")]
impl<T> TryVec<T> for Vec<T> {
    #[inline]
    fn try_make_room(&mut self, further: usize) -> Result<()> {
        if further <= self.capacity() - self.len() {
            return Ok(());
        }
        attempt(|| self.try_reserve(further))
    }

    #[inline]
    fn try_push(&mut self, value: T) -> Result<()> {
        self.try_make_room(1)?;
        self.push(value);
        Ok(())
    }

    #[inline]
    fn push_reserved(&mut self, value: T) {
        debug_assert!(self.len() < self.capacity(), "room was to be reserved");
        self.push(value);
    }

    fn try_insert(&mut self, at: usize, value: T) -> Result<()> {
        self.try_make_room(1)?;
        self.insert(at, value);
        Ok(())
    }

    fn try_extend_from_slice(&mut self, values: &[T]) -> Result<()>
    where
        T: Clone,
    {
        self.try_make_room(values.len())?;
        self.extend_from_slice(values);
        Ok(())
    }

    fn try_resize(&mut self, count: usize, value: T) -> Result<()>
    where
        T: Clone,
    {
        self.try_make_room(count.saturating_sub(self.len()))?;
        self.resize(count, value);
        Ok(())
    }
}

/// A queue that grows fallibly. Each method leaves it as it was when it fails.
pub trait TryQueue<T> {
    /// Makes room for this many further values.
    ///
    /// # Errors
    /// `ENOMEM`.
    fn try_make_room(&mut self, further: usize) -> Result<()>;

    /// Adds a value at the end.
    ///
    /// # Errors
    /// `ENOMEM`.
    fn try_push_back(&mut self, value: T) -> Result<()>;

    /// Adds a value at the end of a queue whose room was reserved before.
    ///
    /// # Panics
    /// In a debug build if there is no room.
    fn push_back_reserved(&mut self, value: T);

    /// Copies the first `count` values.
    ///
    /// # Errors
    /// `ENOMEM`.
    ///
    /// # Panics
    /// When there are fewer.
    fn try_front(&self, count: usize) -> Result<Vec<T>>
    where
        T: Clone;
}

#[expect(clippy::disallowed_methods, reason = "the room is there")]
impl<T> TryQueue<T> for VecDeque<T> {
    #[inline]
    fn try_make_room(&mut self, further: usize) -> Result<()> {
        if further <= self.capacity() - self.len() {
            return Ok(());
        }
        attempt(|| self.try_reserve(further))
    }

    #[inline]
    fn try_push_back(&mut self, value: T) -> Result<()> {
        self.try_make_room(1)?;
        self.push_back(value);
        Ok(())
    }

    #[inline]
    fn push_back_reserved(&mut self, value: T) {
        debug_assert!(self.len() < self.capacity(), "room was to be reserved");
        self.push_back(value);
    }

    fn try_front(&self, count: usize) -> Result<Vec<T>>
    where
        T: Clone,
    {
        let (first, second) = self.as_slices();
        let split = count.min(first.len());
        let mut front = with_capacity(count)?;
        front.extend_from_slice(&first[..split]);
        front.extend_from_slice(&second[..count - split]);
        Ok(front)
    }
}

/// A string that grows fallibly.
pub trait TryString {
    /// Appends text; leaves the string as it was when that fails.
    ///
    /// # Errors
    /// `ENOMEM`.
    fn try_push_str(&mut self, text: &str) -> Result<()>;
}

#[expect(clippy::disallowed_methods, reason = "the room is there")]
impl TryString for String {
    fn try_push_str(&mut self, text: &str) -> Result<()> {
        if text.len() > self.capacity() - self.len() {
            attempt(|| self.try_reserve(text.len()))?;
        }
        self.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    /// Runs `work` with each of its allocations failing in turn; returns how many there are.
    fn fail_each(work: impl Fn() -> Result<()>) -> u64 {
        for n in 1.. {
            fail_after(n);
            let result = work();
            if is_failure_pending() {
                fail_after(0);
                assert_eq!(result, Ok(()));
                return n - 1;
            }
            assert_eq!(result, Err(Errno::ENOMEM), "allocation {n}");
        }
        unreachable!()
    }

    #[test]
    fn each_allocation_fails_when_its_turn_comes() {
        let count = fail_each(|| {
            let mut bytes = copied(b"abc")?;
            bytes.try_resize(100, 0)?;
            assert_eq!((&bytes[..3], bytes.len()), (&b"abc"[..], 100));
            assert_eq!(string("text")?, "text".to_string());
            assert_eq!(filled(7, 3)?, [7; 3]);
            assert_eq!(collect(0..3)?, [0, 1, 2]);
            VecDeque::new().try_push_back(1)?;
            admit()
        });
        assert_eq!(count, 7);
    }

    #[test]
    fn what_has_room_does_not_allocate() {
        let mut values = with_capacity(2).unwrap();
        fail_after(1);
        assert_eq!(values.try_push(1), Ok(()));
        assert_eq!(values.try_insert(0, 2), Ok(()));
        assert_eq!(values.try_push(3), Err(Errno::ENOMEM));
        assert_eq!(values, [2, 1]);
        assert_eq!(values.try_push(3), Ok(()), "only one allocation fails");
    }

    #[test]
    fn too_large_a_size_is_an_error() {
        assert_eq!(with_capacity::<u64>(usize::MAX / 4), Err(Errno::ENOMEM));
    }
}
