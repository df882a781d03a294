//! A queue of values from many tasks to one.

use super::wait::WaitList;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::RefCell;

struct Shared<T> {
    values: RefCell<VecDeque<T>>,
    arrived: WaitList,
}

/// The sending end; may be cloned.
pub struct Sender<T>(Rc<Shared<T>>);

/// The receiving end.
pub struct Receiver<T>(Rc<Shared<T>>);

/// Makes a queue. It is unbounded: its users have to limit the values in it.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Rc::new(Shared { values: RefCell::new(VecDeque::new()), arrived: WaitList::new() });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(self.0.clone())
    }
}

impl<T> Sender<T> {
    /// Appends a value.
    #[expect(clippy::disallowed_methods, reason = "for values that are bounded: from the heap's reserve")]
    pub fn send(&self, value: T) {
        self.0.values.borrow_mut().push_back(value);
        self.0.arrived.wake_one();
    }
}

impl<T> Receiver<T> {
    /// Removes the first value, waiting for one.
    pub async fn receive(&self) -> T {
        loop {
            if let Some(value) = self.try_receive() {
                return value;
            }
            self.0.arrived.wait().await;
        }
    }

    /// Removes the first value if there is one.
    pub fn try_receive(&self) -> Option<T> {
        self.0.values.borrow_mut().pop_front()
    }
}
