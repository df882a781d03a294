//! Messages queued while a service waits in the middle of a request, and its alarm.
//!
//! The service continues to answer heartbeats meanwhile. One alarm serves the waits and the service itself: it is set again only if it
//! would fire too late.

use crate::service::answer_heartbeat;
use abi::endpoint::slot;
use abi::kernel::Notify;
use abi::{Endpoint, Message};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use sys::{ipc, time};

/// Received messages that are not handled yet. Clones share the inbox.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    inner: Rc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    held: RefCell<VecDeque<Message>>,
    /// Whether there are any: each reply looks.
    holds: Cell<bool>,
    /// Time of the alarm; 0: none is set.
    alarm_ns: Cell<u64>,
}

impl Inbox {
    /// Returns the next message: a queued one, else receives one.
    pub fn receive(&self) -> Message {
        if self.is_empty() { self.receive_new() } else { self.take_held() }
    }

    #[cold]
    fn take_held(&self) -> Message {
        let mut held = self.inner.held.borrow_mut();
        let message = held.pop_front().expect("one is queued");
        self.inner.holds.set(!held.is_empty());
        message
    }

    /// Returns whether no message is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.inner.holds.get()
    }

    /// Waits for this duration. Heartbeats are answered, alarms are not handed on (see [`Inbox::set_alarm`]), all other messages are
    /// queued.
    ///
    /// # Panics
    /// As [`Inbox::set_alarm`].
    pub fn sleep_ns(&self, duration_ns: u64) {
        let deadline_ns = time::now_ns().saturating_add(duration_ns);
        while time::now_ns() < deadline_ns {
            self.set_alarm(deadline_ns);
            let message = self.receive_new();
            match (message.source, message.label == Notify::LABEL) {
                (Endpoint::CLOCK, true) => {}
                (from, true) if from.slot() == slot::RS => answer_heartbeat(from),
                _ => self.hold(message),
            }
        }
    }

    /// Makes sure that the alarm fires at `deadline_ns` or before: a service looks at its own deadlines at each alarm and sets the
    /// next one here. It also does so after [`Inbox::sleep_ns`], which uses the same alarm.
    ///
    /// # Panics
    /// If the service may not set alarms.
    pub fn set_alarm(&self, deadline_ns: u64) {
        let set = self.inner.alarm_ns.get();
        if set == 0 || set > deadline_ns {
            time::set_alarm(deadline_ns).expect("a service that waits with an alarm needs the kernel call SetAlarm");
            self.inner.alarm_ns.set(deadline_ns);
        }
    }

    /// Inspects a message that was received elsewhere, and returns it.
    pub(crate) fn note(&self, message: Message) -> Message {
        if message.source == Endpoint::CLOCK {
            self.inner.alarm_ns.set(0);
        }
        message
    }

    /// Queues a message for [`Inbox::receive`].
    #[expect(clippy::disallowed_methods, reason = "one message of each service: from the heap's reserve")]
    pub(crate) fn hold(&self, message: Message) {
        self.inner.held.borrow_mut().push_back(message);
        self.inner.holds.set(true);
    }

    /// Receives the next message, even if others are queued.
    pub(crate) fn receive_new(&self) -> Message {
        self.note(ipc::receive(Endpoint::ANY).expect("receiving from anybody does not fail"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_messages_come_first_and_in_their_order() {
        let inbox = Inbox::default();
        assert!(inbox.is_empty());
        [1, 2].into_iter().for_each(|label| inbox.hold(Message::new(label)));
        assert_eq!((inbox.receive().label, inbox.is_empty()), (1, false));
        assert_eq!((inbox.receive().label, inbox.is_empty()), (2, true));
    }
}
