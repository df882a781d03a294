//! A fair lock: tasks acquire it in the order of their arrival.

use super::wait::WaitList;
use core::cell::{Cell, RefCell, RefMut};
use core::fmt;
use core::ops::{Deref, DerefMut};

/// A value that one task at a time may use, even across its waits.
#[derive(Default)]
pub struct Lock<T> {
    value: RefCell<T>,
    held: Cell<bool>,
    waiters: WaitList,
}

impl<T> Lock<T> {
    /// Makes a free lock.
    pub const fn new(value: T) -> Self {
        Lock { value: RefCell::new(value), held: Cell::new(false), waiters: WaitList::new() }
    }

    /// Waits until the lock is free and acquires it.
    pub async fn lock(&self) -> LockGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            self.waiters.wait().await;
        }
    }

    /// Acquires the lock if it is free.
    pub fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        if self.held.replace(true) {
            return None;
        }
        Some(LockGuard { lock: self, value: Some(self.value.borrow_mut()) })
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Lock").field("held", &self.held).finish_non_exhaustive()
    }
}

/// Access to the value; dropping it releases the lock.
pub struct LockGuard<'a, T> {
    lock: &'a Lock<T>,
    /// `None` only while it is dropped.
    value: Option<RefMut<'a, T>>,
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_deref().expect("the guard holds the value while it lives")
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_deref_mut().expect("the guard holds the value while it lives")
    }
}

impl<T> Drop for LockGuard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.lock.held.set(false);
        self.lock.waiters.wake_one();
    }
}
