//! System V message queues as data: messages in their order, and which of them a receiver wants (msgop(2)).
//!
//! Invariants: nobody waits to receive a message that is in the queue; the bytes of a queue are those of its messages. Messages are
//! counted for the users who sent them, each with [`OVERHEAD`] bytes more than its text.

use super::credentials::Credentials;
use super::ipc::{Head, Object, Objects, Waiters};
use abi::{Errno, limits};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use server::quota::Quota;
use sys::fallible::TryQueue;

/// Most queues, of all and of one user, and those that only root gets.
pub const QUEUES: usize = limits::MESSAGE_QUEUES;
const QUEUES_OF_USER: usize = 64;
const RESERVED_QUEUES: usize = 16;
/// Longest text of a message, and bytes of a queue unless root allows more (Linux: MSGMAX, MSGMNB).
pub const MESSAGE_BYTES: usize = limits::MESSAGE_BYTES;
/// See [`MESSAGE_BYTES`].
pub const QUEUE_BYTES: usize = limits::MESSAGE_QUEUE_BYTES;
/// Bytes of all messages, of those that one user has sent, and of those that only root gets.
const BYTES: usize = 1 << 20;
const BYTES_OF_USER: usize = BYTES / 2;
const RESERVED_BYTES: usize = BYTES / 16;
/// What a message counts beyond its text: its place in the queue, and its heap block.
const OVERHEAD: usize = 64;

/// One message.
#[derive(Debug)]
pub struct Letter {
    /// Its type, at least 1.
    pub kind: i64,
    /// Its text.
    pub text: Vec<u8>,
    /// The real user it is counted for.
    user: u32,
}

/// Which message a receiver wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The first.
    Any,
    /// The first of this type.
    Kind(i64),
    /// The first of another type.
    Except(i64),
    /// The first of the lowest type up to this one.
    Lowest(i64),
}

impl Wanted {
    /// Decodes the type argument of `msgrcv`; `except`: the flag MSG_EXCEPT is set.
    pub fn new(kind: i64, except: bool) -> Wanted {
        match kind {
            0 => Wanted::Any,
            1.. if except => Wanted::Except(kind),
            1.. => Wanted::Kind(kind),
            _ => Wanted::Lowest(kind.saturating_neg()),
        }
    }

    /// Returns whether a message of this type satisfies the receiver, if it is the only one.
    pub fn accepts(self, kind: i64) -> bool {
        match self {
            Wanted::Any => true,
            Wanted::Kind(wanted) => kind == wanted,
            Wanted::Except(other) => kind != other,
            Wanted::Lowest(highest) => kind <= highest,
        }
    }

    /// Returns the position of the message that is wanted.
    fn find(self, letters: &VecDeque<Letter>) -> Option<usize> {
        let mut accepted = letters.iter().enumerate().filter(|(_, letter)| self.accepts(letter.kind));
        let found = match self {
            // Of several of the lowest type, the first one.
            Wanted::Lowest(_) => accepted.min_by_key(|(_, letter)| letter.kind),
            _ => accepted.next(),
        };
        found.map(|(position, _)| position)
    }
}

/// A queue.
#[derive(Debug)]
pub struct Queue {
    /// Key, identifier, owner and rights.
    pub head: Head,
    letters: VecDeque<Letter>,
    bytes: usize,
    /// Most bytes, and most messages.
    pub limit: usize,
    /// Process that sent last, and when, in seconds since 1970.
    pub sent: (u32, u64),
    /// Process that received last, and when.
    pub received: (u32, u64),
    /// Threads that wait for room.
    pub senders: Waiters,
    /// Threads that wait for a message.
    pub receivers: Waiters,
}

impl Object for Queue {
    fn head(&self) -> &Head {
        &self.head
    }
}

impl Queue {
    /// Returns the number of messages, and of their bytes.
    pub fn used(&self) -> (usize, usize) {
        (self.letters.len(), self.bytes)
    }

    /// Returns whether a message with a text of this length may be added.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.bytes + bytes <= self.limit && self.letters.len() < self.limit
    }

    /// Returns the position of the message that is wanted.
    pub fn find(&self, wanted: Wanted) -> Option<usize> {
        wanted.find(&self.letters)
    }

    /// Returns the message at this position.
    pub fn letter(&self, position: usize) -> Option<&Letter> {
        self.letters.get(position)
    }
}

/// All queues.
#[derive(Debug)]
pub struct Queues {
    /// The queues.
    pub all: Objects<Queue>,
    /// Bytes of messages by user.
    bytes: Quota,
}

impl Default for Queues {
    fn default() -> Queues {
        let all = Objects::new(QUEUES, QUEUES_OF_USER, RESERVED_QUEUES);
        Queues { all, bytes: Quota::new(BYTES, BYTES_OF_USER, RESERVED_BYTES) }
    }
}

impl Queues {
    /// Makes a queue and returns its identifier. `ENOSPC`: there are too many, of the user or at all; `ENOMEM`.
    pub fn make(&mut self, key: u32, mode: u32, who: &Credentials, now_s: u64) -> Result<u32, Errno> {
        self.all.make(key, mode, who, now_s, |head| Queue {
            head,
            letters: VecDeque::new(),
            bytes: 0,
            limit: QUEUE_BYTES,
            sent: (0, 0),
            received: (0, 0),
            senders: Waiters::default(),
            receivers: Waiters::default(),
        })
    }

    /// Removes the queues of containers that have ended.
    pub fn forget(&mut self, is_lost: impl Fn(u8) -> bool) {
        let Queues { all, bytes } = self;
        for queue in all.iter().filter(|queue| is_lost(queue.head().container())) {
            queue.letters.iter().for_each(|letter| bytes.give(letter.user, charge(letter.text.len())));
        }
        all.take_where(|queue| is_lost(queue.head().container()));
    }

    /// Removes a queue with its messages. `EINVAL`, `EPERM`.
    pub fn remove(&mut self, id: u32, who: &Credentials) -> Result<Queue, Errno> {
        let queue = self.all.remove(id, who)?;
        queue.letters.iter().for_each(|letter| self.bytes.give(letter.user, charge(letter.text.len())));
        Ok(queue)
    }

    /// Adds a message of a process and its real user, for which the queue has room. `EINVAL`: no such queue; `ENOMEM`, also for a
    /// user whose messages have his share of all bytes.
    pub fn add(&mut self, id: u32, kind: i64, text: Vec<u8>, (pid, user): (u32, u32), now_s: u64) -> Result<(), Errno> {
        let queue = self.all.get(id)?;
        let bytes = text.len();
        queue.letters.try_make_room(1)?;
        self.bytes.take(user, charge(bytes)).map_err(|_| Errno::ENOMEM)?;
        queue.letters.try_push_back(Letter { kind, text, user })?;
        queue.bytes += bytes;
        queue.sent = (pid, now_s);
        Ok(())
    }

    /// Takes the message at this position out, for a process. `EINVAL`: there is none.
    pub fn take(&mut self, id: u32, position: usize, pid: u32, now_s: u64) -> Result<Letter, Errno> {
        let queue = self.all.get(id)?;
        let letter = queue.letters.remove(position).ok_or(Errno::EINVAL)?;
        queue.bytes -= letter.text.len();
        queue.received = (pid, now_s);
        self.bytes.give(letter.user, charge(letter.text.len()));
        Ok(letter)
    }

    /// Returns the number of queues, of all messages, and of their bytes.
    pub fn used(&self) -> (usize, usize, usize) {
        let all = self.all.iter().map(Queue::used);
        all.fold((0, 0, 0), |(queues, letters, bytes), (more, longer)| (queues + 1, letters + more, bytes + longer))
    }

    /// Makes the tables consistent after the death of a predecessor: counts again.
    pub fn recount(&mut self) {
        self.all.recount();
        self.bytes = Quota::new(BYTES, BYTES_OF_USER, RESERVED_BYTES);
        for index in 0..self.all.places() {
            let Some(queue) = self.all.at_mut(index) else { continue };
            queue.bytes = queue.letters.iter().map(|letter| letter.text.len()).sum();
            for letter in &queue.letters {
                // A predecessor had the memory.
                let _ = self.bytes.restore(letter.user, charge(letter.text.len()));
            }
        }
    }
}

fn charge(bytes: usize) -> usize {
    bytes + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_of(kinds: &[i64]) -> (Queues, u32) {
        let mut queues = Queues::default();
        let id = queues.make(7, 0o600, &Credentials::default(), 0).unwrap();
        for (kind, length) in kinds.iter().zip(1..) {
            queues.add(id, *kind, alloc::vec![0; length], (9, 1000), 5).unwrap();
        }
        (queues, id)
    }

    #[test]
    fn a_receiver_gets_the_first_message_that_it_wants() {
        let (mut queues, id) = queue_of(&[5, 3, 9, 3, 5]);
        let queue = queues.all.get(id).unwrap();
        let find = |kind, except| queue.find(Wanted::new(kind, except));
        assert_eq!([0, 3, 9, 4].map(|kind| find(kind, false)), [Some(0), Some(1), Some(2), None]);
        assert_eq!((find(5, true), find(0, true)), (Some(1), Some(0)));
        assert_eq!([-9, -4, -2, i64::MIN].map(|kind| find(kind, false)), [Some(1), Some(1), None, Some(1)]);
    }

    #[test]
    fn bytes_are_given_back_with_the_message_and_with_the_queue() {
        let (mut queues, id) = queue_of(&[1, 1, 1]);
        assert_eq!((queues.used(), queues.bytes.total()), ((1, 3, 6), 6 + 3 * OVERHEAD));
        assert_eq!(queues.take(id, 1, 8, 6).unwrap().text.len(), 2);
        assert_eq!(queues.bytes.total(), 4 + 2 * OVERHEAD);
        queues.recount();
        assert_eq!((queues.used(), queues.bytes.total()), ((1, 2, 4), 4 + 2 * OVERHEAD));
        queues.remove(id, &Credentials::default()).unwrap();
        assert_eq!((queues.used(), queues.bytes.total()), ((0, 0, 0), 0));
    }

    #[test]
    fn a_user_gets_half_of_all_bytes() {
        let (mut queues, id) = queue_of(&[]);
        queues.all.get(id).unwrap().limit = BYTES;
        let send = |queues: &mut Queues, user| queues.add(id, 1, alloc::vec![0; MESSAGE_BYTES], (9, user), 5);
        let count = core::iter::from_fn(|| send(&mut queues, 1000).ok()).count();
        assert_eq!(count, BYTES_OF_USER / charge(MESSAGE_BYTES));
        assert_eq!((send(&mut queues, 1000), send(&mut queues, 1001)), (Err(Errno::ENOMEM), Ok(())));
    }
}
