//! One inotify instance: its watches by descriptor, and the queue of events that nobody has read.
//!
//! An event is a record in preserved memory, made in the turn of what it tells. When there is no room for one, the instance tells so
//! (`IN_Q_OVERFLOW`), for which it has a place from the beginning.

use super::{Watch, Watches, flag};
use crate::{
    events::{
        Watchers,
        poll::{POLLIN, POLLRDNORM},
    },
    keep::{
        Kept, Text,
        records::{FileEventRecord, WatchRecord},
    },
};
use abi::{Errno, vfs::INOTIFY_QUEUED_EVENTS};
use alloc::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    vec::Vec,
};
use core::{
    cell::{Cell, RefCell},
    fmt::{self, Write},
};
use server::quota::Share;
use sys::{
    fallible::{TryQueue, TryVec},
    text::Text as LineText,
};

/// Size of a `struct inotify_event` without name; names are padded to multiples of it.
const EVENT_BYTES: usize = 16;
/// Watches that /proc/PID/fdinfo shows, so that a read is short.
const MAX_DESCRIBED: usize = 128;

/// See the head of the file.
pub struct Inotify {
    home: Rc<Watches>,
    user: u32,
    /// Number of its open file, known from the first watch on.
    number: Cell<u64>,
    pub(super) watches: RefCell<BTreeMap<u32, Rc<Watch>>>,
    /// The descriptor that was given last.
    last: Cell<u32>,
    queue: RefCell<VecDeque<Kept<FileEventRecord>>>,
    /// The place for `IN_Q_OVERFLOW`, unless that is in the queue.
    spare: RefCell<Option<Kept<FileEventRecord>>>,
    watchers: Watchers,
    _charge: Option<Share>,
}

impl core::fmt::Debug for Inotify {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{} watches, {} events", self.watches.borrow().len(), self.queue.borrow().len())
    }
}

impl Inotify {
    /// Of a user, without watches. `EMFILE`: the user has too many.
    pub fn new(home: &Rc<Watches>, user: u32) -> Result<Rc<Inotify>, Errno> {
        let charge = home.store.charge_instance(user)?;
        let instance = Inotify::restore(home, user, 0, Some(charge));
        instance.make_spare().map_err(|_| Errno::ENOMEM)?;
        Ok(instance)
    }

    /// As a predecessor has left it, but for watches and events.
    pub fn restored(home: &Rc<Watches>, user: u32, last: u32) -> Rc<Inotify> {
        Inotify::restore(home, user, last, home.store.restore_instance(user))
    }

    fn restore(home: &Rc<Watches>, user: u32, last: u32, charge: Option<Share>) -> Rc<Inotify> {
        Rc::new(Inotify {
            home: home.clone(),
            user,
            number: Cell::new(0),
            watches: RefCell::default(),
            last: Cell::new(last),
            queue: RefCell::default(),
            spare: RefCell::default(),
            watchers: Watchers::default(),
            _charge: charge,
        })
    }

    /// Where watches are found.
    pub fn home(&self) -> &Rc<Watches> {
        &self.home
    }

    /// To whom it is charged.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// The descriptor that was given last.
    pub fn last_descriptor(&self) -> u32 {
        self.last.get()
    }

    /// Sets the number of its open file.
    pub fn set_number(&self, number: u64) {
        self.number.set(number);
    }

    pub(super) fn number(&self) -> u64 {
        self.number.get()
    }

    /// A descriptor that was not given before.
    pub(super) fn next_descriptor(&self) -> u32 {
        let next = self.last.get() % (i32::MAX as u32) + 1;
        self.last.set(next);
        next
    }

    /// Writes a line for each of the last watches, the last one first, as /proc/PID/fdinfo shows them.
    pub fn describe(&self, text: &mut LineText) -> fmt::Result {
        self.watches.borrow().values().rev().take(MAX_DESCRIBED).try_for_each(|watch| {
            let (inode, device) = (watch.node.number(), watch.node.mount().device());
            let WatchRecord { descriptor, mask, .. } = watch.record.get();
            let mask = mask & (flag::ALL_EVENTS | flag::EXCL_UNLINK | flag::ONESHOT);
            writeln!(text, "inotify wd:{descriptor:x} ino:{inode:x} sdev:{device:x} mask:{mask:x} ignored_mask:0 ")
        })
    }

    /// Fire when there is an event.
    pub fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    /// Whether a read gives something.
    pub fn has_events(&self) -> bool {
        !self.queue.borrow().is_empty()
    }

    /// Bytes of all events.
    pub fn bytes(&self) -> usize {
        self.queue.borrow().iter().map(|event| size_of_event(event.get().name)).sum()
    }

    fn record(&self, descriptor: u32, mask: u32, cookie: u32, name: Text) -> FileEventRecord {
        let (instance, sequence) = (self.number.get(), self.home.next_sequence());
        FileEventRecord { instance, sequence, descriptor, mask, cookie, name, user: self.user }
    }

    fn make_spare(&self) -> Result<(), Errno> {
        if self.spare.borrow().is_none() {
            let place = self.home.store.new_file_event(self.record(u32::MAX, flag::Q_OVERFLOW, 0, Text::EMPTY))?;
            self.queue.borrow_mut().try_make_room(1)?;
            self.spare.replace(Some(place));
        }
        Ok(())
    }

    /// Queues an event, unless it is the same as the last one.
    pub(super) fn push(&self, descriptor: u32, mask: u32, cookie: u32, name: &[u8]) {
        if self.repeats_last(descriptor, mask, name) {
            return;
        }
        if self.try_push(descriptor, mask, cookie, name).is_err() {
            self.overflow();
        }
        self.watchers.fire_for(POLLIN | POLLRDNORM);
    }

    fn repeats_last(&self, descriptor: u32, mask: u32, name: &[u8]) -> bool {
        self.queue.borrow().back().is_some_and(|last| {
            let last = last.get();
            (last.descriptor, last.mask) == (descriptor, mask) && self.home.store.text(last.name) == name
        })
    }

    #[expect(clippy::disallowed_methods, reason = "room was made")]
    fn try_push(&self, descriptor: u32, mask: u32, cookie: u32, name: &[u8]) -> Result<(), Errno> {
        let store = &self.home.store;
        let count = self.queue.borrow().len();
        if count as u64 >= INOTIFY_QUEUED_EVENTS {
            return Err(Errno::ENOSPC);
        }
        // One more for the overflow.
        self.queue.borrow_mut().try_make_room(count + 2)?;
        let event = store.new_file_event(self.record(descriptor, mask, cookie, Text::EMPTY))?;
        let name = store.put_text(name, self.user)?;
        event.set(FileEventRecord { name, ..event.get() });
        self.queue.borrow_mut().push_back(event);
        Ok(())
    }

    /// Tells that events are lost, unless that is told already.
    #[expect(clippy::disallowed_methods, reason = "room was made")]
    pub(super) fn overflow(&self) {
        let Some(event) = self.spare.take() else { return };
        event.set(self.record(u32::MAX, flag::Q_OVERFLOW, 0, Text::EMPTY));
        self.queue.borrow_mut().push_back(event);
        self.watchers.fire_for(POLLIN | POLLRDNORM);
    }

    /// The first events as programs see them, as many as fit, and how many they are. `EINVAL`: the first does not fit.
    pub fn peek(&self, room: usize) -> Result<(Vec<u8>, usize), Errno> {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for event in self.queue.borrow().iter() {
            let event = event.get();
            if bytes.len() + size_of_event(event.name) > room {
                break;
            }
            let name = self.home.store.text(event.name);
            let padded = padded(name.len());
            for word in [event.descriptor, event.mask, event.cookie, padded as u32] {
                bytes.try_extend_from_slice(&word.to_le_bytes())?;
            }
            let end = bytes.len() + padded;
            bytes.try_extend_from_slice(&name)?;
            bytes.try_resize(end, 0)?;
            count += 1;
        }
        if count == 0 { Err(Errno::EINVAL) } else { Ok((bytes, count)) }
    }

    /// Drops the first events, which have been read.
    pub fn drop_first(&self, count: usize) {
        for _ in 0..count {
            let Some(event) = self.queue.borrow_mut().pop_front() else { return };
            self.home.store.clear_file_event(event.place());
            if event.get().mask == flag::Q_OVERFLOW {
                self.spare.replace(Some(event));
            }
        }
        // Of one that was restored without.
        let _ = self.make_spare();
    }

    /// Enters the events of a predecessor, in order. `ENOMEM`.
    pub fn restore_events(&self, events: Vec<Kept<FileEventRecord>>) -> Result<(), Errno> {
        let mut queue = self.queue.borrow_mut();
        queue.try_make_room(events.len() + 1)?;
        events.into_iter().try_for_each(|event| queue.try_push_back(event))
    }

    /// Takes the place for `IN_Q_OVERFLOW` again that a predecessor had, once all events are restored. `ENOMEM`.
    pub fn restore_spare(&self) -> Result<(), Errno> {
        let is_told = self.queue.borrow().iter().any(|event| event.get().mask == flag::Q_OVERFLOW);
        if is_told { Ok(()) } else { self.make_spare() }
    }
}

impl Drop for Inotify {
    fn drop(&mut self) {
        for watch in self.watches.take().into_values() {
            self.home.leave(&watch);
        }
    }
}

/// Bytes that a name of this length takes: with a zero behind it, if there is one.
fn padded(length: usize) -> usize {
    if length == 0 { 0 } else { (length + 1).next_multiple_of(EVENT_BYTES) }
}

fn size_of_event(name: Text) -> usize {
    EVENT_BYTES + padded(name.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_padded_behind_a_zero() {
        assert_eq!([0, 1, 15, 16, 255].map(padded), [0, 16, 16, 32, 256]);
    }
}
