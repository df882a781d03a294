//! Wait lists: tasks that wait for a condition.

use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// A list of waiting tasks. A task checks its condition, waits if it does not hold, and checks again:
/// ```text
/// while pipe.is_empty() { pipe.changed.wait().await; }
/// ```
/// Nothing runs between the check and the wait, so no wake-up is lost.
#[derive(Default)]
pub struct WaitList {
    waiters: RefCell<VecDeque<(u64, Waker)>>,
    next_ticket: Cell<u64>,
}

impl WaitList {
    /// Makes an empty list.
    pub const fn new() -> Self {
        WaitList { waiters: RefCell::new(VecDeque::new()), next_ticket: Cell::new(0) }
    }

    /// Waits until the list is woken.
    pub fn wait(&self) -> Wait<'_> {
        Wait { list: self, ticket: None }
    }

    /// Wakes the task that has waited longest. Returns false if none waits.
    pub fn wake_one(&self) -> bool {
        let first = self.waiters.borrow_mut().pop_front();
        first.map(|(_, waker)| waker.wake()).is_some()
    }

    /// Wakes all tasks.
    pub fn wake_all(&self) {
        while self.wake_one() {}
    }

    /// Returns whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.waiters.borrow().is_empty()
    }
}

/// See [`WaitList::wait`].
pub struct Wait<'a> {
    list: &'a WaitList,
    ticket: Option<u64>,
}

impl Future for Wait<'_> {
    type Output = ();

    #[expect(clippy::disallowed_methods, reason = "bounded by the tasks: from the heap's reserve")]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut waiters = self.list.waiters.borrow_mut();
        if let Some(ticket) = self.ticket {
            if let Some(waiter) = waiters.iter_mut().find(|waiter| waiter.0 == ticket) {
                waiter.1.clone_from(context.waker());
                return Poll::Pending;
            }
            drop(waiters);
            self.ticket = None;
            return Poll::Ready(());
        }
        let ticket = self.list.next_ticket.get();
        self.list.next_ticket.set(ticket + 1);
        waiters.push_back((ticket, context.waker().clone()));
        drop(waiters);
        self.ticket = Some(ticket);
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut waiters = self.list.waiters.borrow_mut();
        match waiters.iter().position(|waiter| waiter.0 == ticket) {
            Some(at) => drop(waiters.remove(at)),
            None => {
                // Woken, but dropped before it ran: the wake-up passes to the next task.
                drop(waiters);
                self.list.wake_one();
            }
        }
    }
}
