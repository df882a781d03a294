//! POSIX message queues (mq_overview(7)): messages in order of priority, and who waits to send or to receive.
//!
//! Everything happens inside one call: a sender hands its message to a receiver that waits, a receiver lets a waiting sender go on. Whoever
//! waits is a task with a [`Waiter`] in the queue; its result is set in the turn that its message goes over, so that both last together.
//! Invariants: receivers wait only while the queue is empty, senders only while it is full (but for the turn after a restart, when slots may
//! lack). Messages outlive vfs (`keep::queues`); those who wait come again by themselves.

pub mod names;
#[cfg(test)]
mod tests;

use crate::{
    callers::permission::{Attributes, S_IFREG},
    events::{
        Event, Watchers,
        poll::{POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM},
    },
    keep::{
        Kept, Store,
        queues::{Held, Slots},
        records::{Notification, QueueRecord},
    },
    memory as user,
};
use abi::{Endpoint, Errno};
use alloc::{collections::BTreeMap, rc::Rc, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    cmp::Reverse,
};

/// Priorities are below this.
pub const PRIORITIES: u64 = 32768;

/// One queue. It ends with its last owner: its name, or an open file.
#[derive(Debug)]
pub struct Queue {
    record: Kept<QueueRecord>,
    slots: Slots,
    /// In the order in which they go out.
    messages: RefCell<BTreeMap<(Reverse<u16>, u64), Held>>,
    next_number: Cell<u64>,
    senders: Waiters,
    receivers: Waiters,
    /// Those who poll.
    pub watchers: Watchers,
}

/// Threads that wait in a queue, in the order in which they go on.
#[derive(Debug, Default)]
struct Waiters(RefCell<Vec<Rc<Waiter>>>);

/// The transfer that a waiting thread has requested.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Transfer {
    Send(Letter),
    /// Message and priority go to these addresses; no priority to 0.
    Receive {
        address: u64,
        priority_address: u64,
    },
}

/// A message to be sent.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Letter {
    pub priority: u16,
    pub bytes: Vec<u8>,
}

/// A thread that waits in a queue.
#[derive(Debug)]
pub struct Waiter {
    /// The thread.
    pub who: Endpoint,
    /// Threads of smaller rank are served first, those of equal rank in order of arrival.
    pub rank: u32,
    /// Its transfer.
    pub transfer: Transfer,
    /// The result, once the transfer has ended.
    pub result: Cell<Option<Result<u64, Errno>>>,
    /// Fires when there is a result.
    pub event: Rc<Event>,
}

impl Waiter {
    fn finish(&self, result: Result<u64, Errno>) {
        self.result.set(Some(result));
        self.event.fire();
    }
}

impl Waiters {
    #[expect(clippy::disallowed_methods, reason = "small, of a call in progress: from the heap's reserve")]
    fn add(&self, waiter: Rc<Waiter>) {
        let mut all = self.0.borrow_mut();
        let place = all.partition_point(|other| other.rank <= waiter.rank);
        all.insert(place, waiter);
    }

    fn take_first(&self) -> Option<Rc<Waiter>> {
        let mut all = self.0.borrow_mut();
        (!all.is_empty()).then(|| all.remove(0))
    }

    fn remove(&self, waiter: &Rc<Waiter>) {
        self.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, waiter));
    }
}

/// Outcome of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// To a receiver that waited, or behind other messages.
    Done,
    /// Into an empty queue: who asked for it is to be told.
    First,
    /// There is no room.
    Full,
}

impl Queue {
    /// An empty queue. `ENOSPC`: too many queues, or no room for its messages.
    pub fn new(store: &Rc<Store>, mut record: QueueRecord, name: &[u8]) -> Result<Rc<Queue>, Errno> {
        let (place, slots) = store.new_queue(&mut record, name)?;
        Ok(Rc::new(Queue::with(store, place, record, slots, Vec::new())))
    }

    /// A queue as a predecessor has left it. `None`: it makes no sense.
    pub fn restore(store: &Rc<Store>, place: u16, record: QueueRecord) -> Option<Rc<Queue>> {
        let (slots, messages) = store.restore_queue(&record)?;
        Some(Rc::new(Queue::with(store, place, record, slots, messages)))
    }

    #[expect(clippy::disallowed_methods, reason = "none in a new queue, and as many as a predecessor had")]
    fn with(store: &Rc<Store>, place: u16, record: QueueRecord, slots: Slots, held: Vec<Held>) -> Queue {
        let next_number = held.iter().map(|held| held.number + 1).max().unwrap_or(0);
        let messages = held.into_iter().map(|held| ((Reverse(held.priority), held.number), held)).collect();
        Queue {
            record: Kept::new(store, place.into(), record),
            slots,
            messages: RefCell::new(messages),
            next_number: Cell::new(next_number),
            senders: Waiters::default(),
            receivers: Waiters::default(),
            watchers: Watchers::default(),
        }
    }

    /// Its place in preserved memory.
    pub fn place(&self) -> u16 {
        self.record.place() as u16
    }

    /// What it is.
    pub fn record(&self) -> QueueRecord {
        self.record.get()
    }

    /// Mode and owner.
    pub fn attributes(&self) -> Attributes {
        let QueueRecord { mode, uid, gid, .. } = self.record.get();
        Attributes { mode: S_IFREG | mode as u32, uid, gid }
    }

    /// Messages in it.
    pub fn len(&self) -> usize {
        self.messages.borrow().len()
    }

    /// Marks it as unlinked.
    pub fn set_unnamed(&self) {
        self.record.update(|record| record.named = false);
    }

    /// Registers for a notification. `EBUSY`: another process has.
    pub fn ask_notification(&self, notification: Notification) -> Result<(), Errno> {
        if self.record.get().notification.is_some() {
            return Err(Errno::EBUSY);
        }
        self.record.update(|record| record.notification = Some(notification));
        Ok(())
    }

    /// Cancels the notification that was registered through this descriptor table.
    pub fn forget_notification(&self, table: u64) {
        if self.record.get().notification.is_some_and(|asked| asked.table == table) {
            self.take_notification();
        }
    }

    /// Takes the registered notification: it is delivered once.
    pub fn take_notification(&self) -> Option<Notification> {
        let record = self.record.get();
        if record.notification.is_some() {
            self.record.update(|record| record.notification = None);
        }
        record.notification
    }

    /// Sends a message, if it need not wait. A receiver whose memory is bad gets its error, and the next one the message.
    pub fn send(&self, letter: &Letter) -> Sent {
        while let Some(receiver) = self.receivers.take_first() {
            let given = self.give(&receiver, letter);
            receiver.finish(given);
            if given.is_ok() {
                return Sent::Done;
            }
        }
        let was_empty = self.len() == 0;
        if !self.put(letter) {
            return Sent::Full;
        }
        self.watchers.fire_for(POLLIN | POLLRDNORM);
        if was_empty { Sent::First } else { Sent::Done }
    }

    /// Copies a message to a waiting receiver without queueing it.
    fn give(&self, receiver: &Waiter, letter: &Letter) -> Result<u64, Errno> {
        let Transfer::Receive { address, priority_address } = receiver.transfer else { return Err(Errno::EINVAL) };
        self.record.store().has_moved();
        user::store(receiver.who, address, &letter.bytes)?;
        store_priority(receiver.who, priority_address, letter.priority)?;
        Ok(letter.bytes.len() as u64)
    }

    fn put(&self, letter: &Letter) -> bool {
        let mut messages = self.messages.borrow_mut();
        if messages.len() >= self.record.get().most_messages as usize {
            return false;
        }
        let number = self.next_number.get();
        let Some(held) = self.record.store().put_message(&self.slots, number, letter.priority, &letter.bytes) else {
            return false;
        };
        self.next_number.set(number + 1);
        messages.insert((Reverse(letter.priority), number), held);
        true
    }

    /// Receives the first message, if there is one, and returns its length. A message that cannot be copied to the receiver stays.
    pub fn receive(&self, who: Endpoint, address: u64, priority_address: u64) -> Result<Option<u64>, Errno> {
        let first = self.messages.borrow().first_key_value().map(|(key, held)| (*key, *held));
        let Some((key, held)) = first else { return self.receive_directly(who, address, priority_address) };
        self.record.store().copy_message(&self.slots, &held, who, address).map_err(user::fault)?;
        store_priority(who, priority_address, held.priority)?;
        self.messages.borrow_mut().remove(&key);
        self.record.store().take_message(&self.slots, &held);
        self.admit_sender();
        self.watchers.fire_for(POLLOUT | POLLWRNORM);
        Ok(Some(held.bytes as u64))
    }

    /// From a sender that found no slot in an empty queue, which can be only in the turn after a restart.
    fn receive_directly(&self, who: Endpoint, address: u64, priority_address: u64) -> Result<Option<u64>, Errno> {
        let Some(sender) = self.senders.take_first() else { return Ok(None) };
        let Transfer::Send(letter) = &sender.transfer else { return Ok(None) };
        let transfer = Transfer::Receive { address, priority_address };
        let receiver = Waiter { who, rank: 0, transfer, result: Cell::default(), event: Rc::default() };
        let given = self.give(&receiver, letter);
        match given {
            Ok(_) => sender.finish(Ok(0)),
            Err(_) => self.senders.add(sender),
        }
        given.map(Some)
    }

    fn admit_sender(&self) {
        let Some(sender) = self.senders.take_first() else { return };
        match &sender.transfer {
            Transfer::Send(letter) if self.put(letter) => sender.finish(Ok(0)),
            _ => self.senders.add(sender),
        }
    }

    fn line(&self, transfer: &Transfer) -> &Waiters {
        match transfer {
            Transfer::Send(_) => &self.senders,
            Transfer::Receive { .. } => &self.receivers,
        }
    }

    /// Queues a waiter.
    pub fn wait(&self, waiter: &Rc<Waiter>) {
        self.line(&waiter.transfer).add(waiter.clone());
    }

    /// Removes a waiter.
    pub fn leave(&self, waiter: &Rc<Waiter>) {
        self.line(&waiter.transfer).remove(waiter);
    }

    /// Ready events (Linux POLL*).
    pub fn poll(&self) -> u32 {
        let len = self.len();
        let readable = if len > 0 { POLLIN | POLLRDNORM } else { 0 };
        let room = len < self.record.get().most_messages as usize;
        readable | if room { POLLOUT | POLLWRNORM } else { 0 }
    }
}

fn store_priority(who: Endpoint, address: u64, priority: u16) -> Result<(), Errno> {
    match address {
        0 => Ok(()),
        _ => user::store(who, address, &(priority as u32).to_le_bytes()),
    }
}
