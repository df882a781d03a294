//! Messages queued while a service waits for its device in the middle of a request.
//!
//! The service continues to answer heartbeats meanwhile, and the alarm ends the wait for a silent device. One alarm serves many
//! waits: it is set again only if it would fire too late.

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
    /// Time of the alarm; 0: none is set.
    alarm_ns: Cell<u64>,
}

impl Inbox {
    /// Returns the next message: a queued one, else receives one.
    pub fn receive(&self) -> Message {
        let held = self.inner.held.borrow_mut().pop_front();
        held.unwrap_or_else(|| self.receive_new())
    }

    /// Returns whether no message is queued.
    pub fn is_empty(&self) -> bool {
        self.inner.held.borrow().is_empty()
    }

    /// Waits for an interrupt of one of these hooks, at most until `deadline_ns`. Returns whether it came. Heartbeats are
    /// answered, all other messages are queued.
    ///
    /// # Panics
    /// If the service may not set alarms.
    pub fn wait_for_interrupt(&self, hooks: u64, deadline_ns: u64) -> bool {
        self.arm(deadline_ns);
        loop {
            let message = self.receive_new();
            let notify = (message.label == Notify::LABEL).then(|| Notify::from_message(&message));
            match (message.source, notify) {
                (Endpoint::HARDWARE, Some(notify)) if notify.bits & hooks != 0 => return true,
                (Endpoint::CLOCK, Some(_)) if time::now_ns() >= deadline_ns => return false,
                (Endpoint::CLOCK, Some(_)) => self.arm(deadline_ns),
                (from, Some(_)) if from.slot() == slot::RS => answer_heartbeat(from),
                _ => self.hold(message),
            }
        }
    }

    /// Waits for this duration.
    pub fn sleep_ns(&self, duration_ns: u64) {
        self.wait_for_interrupt(0, time::now_ns().saturating_add(duration_ns));
    }

    /// Inspects a message that was received elsewhere, and returns it.
    pub(crate) fn note(&self, message: Message) -> Message {
        if message.source == Endpoint::CLOCK {
            self.inner.alarm_ns.set(0);
        }
        message
    }

    /// Queues a message for [`Inbox::receive`].
    pub(crate) fn hold(&self, message: Message) {
        self.inner.held.borrow_mut().push_back(message);
    }

    /// Receives the next message, even if others are queued.
    pub(crate) fn receive_new(&self) -> Message {
        self.note(ipc::receive(Endpoint::ANY).expect("receiving from anybody does not fail"))
    }

    fn arm(&self, deadline_ns: u64) {
        let set = self.inner.alarm_ns.get();
        if set == 0 || set > deadline_ns {
            time::set_alarm(deadline_ns).expect("a driver that waits for its device needs the kernel call SetAlarm");
            self.inner.alarm_ns.set(deadline_ns);
        }
    }
}
