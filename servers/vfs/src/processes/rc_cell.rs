//! A place for a shared value, which costs less to look at than a `RefCell` with one: every call looks at several.

use alloc::rc::Rc;
use core::{cell::Cell, fmt, mem};

/// See the head of the file. While somebody looks at the value the place is empty, so nobody may look again meanwhile.
pub struct RcCell<T>(Cell<Option<Rc<T>>>);

impl<T> RcCell<T> {
    /// A place for this value; `None`: for one that comes later.
    pub const fn new(value: Option<Rc<T>>) -> RcCell<T> {
        RcCell(Cell::new(value))
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> Option<Rc<T>> {
        self.look(|value| value.cloned())
    }

    /// Lets `look` see the value. It must not use this place itself.
    #[inline]
    pub fn look<R>(&self, look: impl FnOnce(Option<&Rc<T>>) -> R) -> R {
        let value = self.0.take();
        let result = look(value.as_ref());
        let nothing = self.0.replace(value);
        debug_assert!(nothing.is_none(), "the place has been used meanwhile");
        // Nothing has to be dropped: to find that out would cost every call a few ticks.
        mem::forget(nothing);
        result
    }

    /// Puts another value here, and returns the former.
    pub fn replace(&self, value: Option<Rc<T>>) -> Option<Rc<T>> {
        self.0.replace(value)
    }
}

impl<T> Default for RcCell<T> {
    fn default() -> RcCell<T> {
        RcCell::new(None)
    }
}

impl<T: fmt::Debug> fmt::Debug for RcCell<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look(|value| value.fmt(formatter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_there_until_another_takes_its_place() {
        let place = RcCell::new(None);
        assert!(place.get().is_none());
        assert!(place.replace(Some(Rc::new(1))).is_none());
        let seen = place.get();
        assert_eq!((seen.as_deref(), place.look(|value| value.map(Rc::strong_count))), (Some(&1), Some(2)));
        assert_eq!(place.replace(None).as_deref(), Some(&1));
        assert_eq!(Rc::strong_count(&seen.unwrap()), 1, "nothing is leaked");
    }

    #[test]
    #[should_panic = "used meanwhile"]
    fn nobody_puts_a_value_where_somebody_looks() {
        let place = RcCell::new(Some(Rc::new(1)));
        place.look(|_| place.replace(Some(Rc::new(2))));
    }
}
