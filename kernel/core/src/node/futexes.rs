//! The waiters of futexes: buckets of threads, and the mutexes of futexes with inheritance. Neighbours: `futex`.

use crate::{Space, Thread, priority::FIRST_SHARED, sched::Threads, thread::list::List};

use abi::{layout::PAGE_BYTES, rt::SEMAPHORES};
use zerocopy::FromZeros;

/// Lists of waiters.
const BUCKETS: usize = 256;
/// Buckets between those of the same address in one space and the next: odd, so that all are reached.
const SPREAD: u64 = 31;
/// Limit of futexes with inheritance that threads wait for at a time.
const FUTEXES: usize = 128;
/// Numbers of mutexes in `Inheritance`: the semaphores of MINIX4RT come first, then one that is none, then these.
pub const FIRST: usize = SEMAPHORES + 1;
pub const MUTEXES: usize = FIRST + FUTEXES;

/// Identifies a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
pub struct Key {
    space: Space,
    address: u64,
    /// Physical address of a shared futex; 0: it is private.
    physical: u64,
}

impl Key {
    /// The key of no futex.
    pub const UNKNOWN: Key = Key { space: Space(0), address: 0, physical: 0 };

    /// The key of the futex at this address; `physical` is 0 for a private one.
    pub fn new(space: Space, address: u64, physical: u64) -> Key {
        Key { space, address, physical }
    }

    /// The key of the futex that a thread waits for.
    pub fn of(waiter: &Thread) -> Key {
        Key { space: waiter.space, address: waiter.futex_address, physical: waiter.futex_physical }
    }

    fn bucket(self) -> usize {
        let number = match self.physical {
            0 => self.address / 4 + self.address / PAGE_BYTES + self.space.0 as u64 * SPREAD,
            _ => self.address % PAGE_BYTES / 4,
        };
        number as usize % BUCKETS
    }

    /// Its address in its space.
    pub fn address(self) -> u64 {
        self.address
    }

    /// The key under which a waiter in `space` waits for this futex. Its address there is unknown if the spaces differ; the
    /// offset in the page, which is the address of no futex, stands for it then.
    pub fn seen_from(self, space: Space) -> Key {
        if space == self.space { self } else { Key { address: self.address % PAGE_BYTES, ..self } }
    }

    /// Both mean the same futex. A page of private memory may get another frame while a thread waits: then the address tells.
    pub fn is(self, waiter: Key) -> bool {
        let same_place = self.space == waiter.space && self.address == waiter.address;
        match (self.physical, waiter.physical) {
            (0, 0) => same_place,
            (0, _) | (_, 0) => false,
            (one, other) => same_place || one == other,
        }
    }
}

/// All waiters. Shared futexes hang in buckets by the offset in the page, which all their keys have in common; private ones, which no other
/// space can name, by space and address.
#[derive(Debug, FromZeros)]
pub struct Futexes {
    buckets: [List; BUCKETS],
    keys: [Key; FUTEXES],
    /// Those of `keys` that stand for a futex.
    used: u128,
    /// The walk that was preempted last: by the thread in which slot, and the waiter it goes on with.
    walker: u16,
    cursor: u16,
}

impl Futexes {
    /// The first thread in the bucket of a futex; 0: it is empty. `Thread::next` leads on.
    pub fn first(&self, key: Key) -> usize {
        self.buckets[key.bucket()].first as usize
    }

    /// The thread with which the preempted walk of `walker` goes on: with the first, if another walk has been preempted since.
    pub fn resume(&self, key: Key, walker: usize) -> usize {
        if self.walker == walker as u16 { self.cursor as usize } else { self.first(key) }
    }

    /// Keeps the waiter with which a preempted walk goes on.
    pub fn suspend(&mut self, walker: usize, next: usize) {
        (self.walker, self.cursor) = (walker as u16, next as u16);
    }

    /// Puts a thread into the bucket of a futex: a real-time one by priority, another behind all.
    pub fn enter(&mut self, threads: &mut Threads, slot: usize, key: Key) {
        let thread = &mut threads[slot];
        thread.futex_address = key.address;
        thread.futex_physical = key.physical;
        thread.futex_bucket = key.bucket() as u8;
        let bucket = &mut self.buckets[key.bucket()];
        if thread.queue < FIRST_SHARED {
            bucket.insert_by_queue(threads, slot as u16);
        } else {
            bucket.push_back(threads, slot as u16);
        }
    }

    /// Takes a thread out of its bucket.
    pub fn leave(&mut self, threads: &mut Threads, slot: usize) {
        if self.cursor == slot as u16 {
            self.cursor = threads[slot].next;
        }
        self.buckets[threads[slot].futex_bucket as usize].remove(threads, slot as u16);
    }

    /// The mutex that stands for a futex with inheritance.
    pub fn mutex(&self, key: Key) -> Option<u16> {
        let others = |&left: &u128| Some(left & left.wrapping_sub(1));
        let used = core::iter::successors(Some(self.used), others).take_while(|&left| left != 0);
        let mut indices = used.map(|left| left.trailing_zeros() as usize);
        indices.find(|&index| key.is(self.keys[index])).map(|index| (FIRST + index) as u16)
    }

    /// Lets a mutex stand for a futex; `None`: for none any more.
    pub fn set_mutex(&mut self, id: u16, key: Option<Key>) {
        let index = id as usize - FIRST;
        self.keys[index] = key.unwrap_or(Key::UNKNOWN);
        self.used = self.used & !(1 << index) | (key.is_some() as u128) << index;
    }
}
