//! The waiters of futexes: buckets of threads, and the mutexes of futexes with inheritance. Neighbours: `futex`.

use crate::{Space, Thread, priority::FIRST_SHARED, sched::Threads, thread::list::List};

use abi::{layout::PAGE_BYTES, rt::SEMAPHORES};

/// Lists of waiters.
const BUCKETS: usize = 256;
/// Limit of futexes with inheritance that threads wait for at a time.
const FUTEXES: usize = 128;
/// Numbers of mutexes in `Inheritance`: the semaphores of MINIX4RT come first, then one that is none, then these.
pub const FIRST: usize = SEMAPHORES + 1;
pub const MUTEXES: usize = FIRST + FUTEXES;

/// Identifies a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// All waiters. Both kinds of futex hang in buckets by the offset in the page, which all their keys have in common.
#[derive(Debug)]
pub struct Futexes {
    buckets: [List; BUCKETS],
    keys: [Key; FUTEXES],
}

impl Futexes {
    /// No waiters. All bytes zero.
    pub const NEW: Futexes = Futexes { buckets: [List::EMPTY; BUCKETS], keys: [Key::UNKNOWN; FUTEXES] };

    fn bucket(&mut self, address: u64) -> &mut List {
        &mut self.buckets[(address % PAGE_BYTES) as usize / 4 % BUCKETS]
    }

    /// The first thread in the bucket of a futex; 0: it is empty. `Thread::next` leads on.
    pub fn first(&mut self, key: Key) -> usize {
        self.bucket(key.address).first as usize
    }

    /// Puts a thread into the bucket of a futex: a real-time one by priority, another behind all.
    pub fn enter(&mut self, threads: &mut Threads, slot: usize, key: Key) {
        let thread = &mut threads[slot];
        thread.futex_address = key.address;
        thread.futex_physical = key.physical;
        if thread.queue < FIRST_SHARED {
            self.bucket(key.address).insert_by_queue(threads, slot as u16);
        } else {
            self.bucket(key.address).push_back(threads, slot as u16);
        }
    }

    /// Takes a thread out of its bucket.
    pub fn leave(&mut self, threads: &mut Threads, slot: usize) {
        self.bucket(threads[slot].futex_address).remove(threads, slot as u16);
    }

    /// The numbers of the mutexes that may stand for a futex with inheritance.
    pub fn mutexes(&self, key: Key) -> impl Iterator<Item = u16> {
        (FIRST..MUTEXES).filter(move |id| key.is(self.keys[id - FIRST])).map(|id| id as u16)
    }

    /// Lets a mutex stand for a futex.
    pub fn set_mutex(&mut self, id: u16, key: Key) {
        self.keys[id as usize - FIRST] = key;
    }
}
