//! One value from one task (or from the receive loop) to another.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

struct Shared<T> {
    value: Option<T>,
    waker: Option<Waker>,
    closed: bool,
}

/// The sending end.
pub struct Reply<T>(Rc<RefCell<Shared<T>>>);

/// The receiving end, a future of the value: `None` if the sending end was dropped without one.
pub struct Waiting<T>(Rc<RefCell<Shared<T>>>);

/// Makes both ends.
pub fn oneshot<T>() -> (Reply<T>, Waiting<T>) {
    let shared = Rc::new(RefCell::new(Shared { value: None, waker: None, closed: false }));
    (Reply(shared.clone()), Waiting(shared))
}

impl<T> Reply<T> {
    /// Sends the value.
    pub fn give(self, value: T) {
        self.0.borrow_mut().value = Some(value);
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        let waker = {
            let mut shared = self.0.borrow_mut();
            shared.closed = true;
            shared.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Waiting<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut shared = self.0.borrow_mut();
        if let Some(value) = shared.value.take() {
            return Poll::Ready(Some(value));
        }
        if shared.closed {
            return Poll::Ready(None);
        }
        shared.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
