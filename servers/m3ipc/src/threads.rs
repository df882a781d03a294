//! What m3ipc knows of each thread that has called it: where it is bound, and how far its call came.

use crate::system::Identity;
use abi::Endpoint;
use abi::endpoint::{SERVICE_SLOTS, SLOTS};
use alloc::vec::Vec;
use m3ipc::endpoint::{Endpoint as Name, Number};
use m3ipc::message::Message;

/// Application slots of the kernel.
const THREADS: usize = SLOTS - SERVICE_SLOTS;

/// A slot of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the container.
    pub container: u8,
    /// The slot.
    pub number: Number,
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// An end in the container's rendezvous; a message goes to this address.
    Message { address: u64 },
    /// The caller is bound by another process.
    Bound,
    /// This endpoint is bound in the container.
    BoundOf(u8, Name),
    /// This endpoint is not bound in the container any more.
    UnboundOf(u8, Name),
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its result.
    pub result: i64,
    /// What it received, and for which address.
    pub received: Option<(u64, Message)>,
}

/// How far the last call of a thread came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// It was begun, or there was none.
    #[default]
    Nothing,
    /// It waits.
    Waiting(Wait),
    /// It has ended; its caller may not know.
    Ended(Outcome),
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// The kernel's name.
    pub endpoint: Endpoint,
    /// Where it is bound, or the thread whose endpoint it shares.
    pub place: Option<Place>,
    /// Its process as pm has last told: pm tells when that changes.
    pub process: Option<Identity>,
    /// The containers that it has been in, a bit each.
    pub was_in: u32,
    /// Number of its last call, by the kernel's count of its Linux calls.
    pub serial: u64,
    /// How far that came.
    pub doing: Doing,
    /// When its wait ends at the latest; 0: never.
    pub deadline_ns: u64,
}

impl Thread {
    const NONE: Thread = Thread {
        endpoint: Endpoint::NONE,
        place: None,
        process: None,
        was_in: 0,
        serial: u64::MAX,
        doing: Doing::Nothing,
        deadline_ns: 0,
    };
}

/// All threads, by slot.
pub struct Threads {
    all: Vec<Thread>,
    /// Indexes of the entries in use, in no order, and how many these are: most are not, and searches are many.
    known: Vec<u16>,
    count: usize,
    /// No thread has a deadline before this time; 0: none has one.
    next_deadline_ns: u64,
}

impl Threads {
    /// Nobody has called.
    ///
    /// # Panics
    /// When there is no memory for the table, at the start.
    pub fn new() -> Threads {
        let all = sys::fallible::filled(Thread::NONE, THREADS).expect("memory for all threads");
        let known = sys::fallible::filled(0, THREADS).expect("memory for all threads");
        Threads { all, known, count: 0, next_deadline_ns: 0 }
    }

    fn index(thread: Endpoint) -> Option<usize> {
        thread.slot().checked_sub(SERVICE_SLOTS).filter(|&index| index < THREADS)
    }

    /// Returns what is known of a thread.
    pub fn get(&self, thread: Endpoint) -> Option<&Thread> {
        self.all.get(Self::index(thread)?).filter(|known| known.endpoint == thread)
    }

    /// As [`Threads::get`].
    pub fn get_mut(&mut self, thread: Endpoint) -> Option<&mut Thread> {
        self.all.get_mut(Self::index(thread)?).filter(|known| known.endpoint == thread)
    }

    /// The thread that had the slot of this one before it, if that is known.
    pub fn predecessor(&self, thread: Endpoint) -> Option<Endpoint> {
        let known = self.all[Self::index(thread)?].endpoint;
        (known != thread && known != Endpoint::NONE).then_some(known)
    }

    /// Returns the entry of a thread, a new one if it is not known.
    pub fn enter(&mut self, thread: Endpoint) -> Option<&mut Thread> {
        let index = Self::index(thread)?;
        let known = self.all.get_mut(index)?;
        if known.endpoint != thread {
            if known.endpoint == Endpoint::NONE {
                self.known[self.count] = index as u16;
                self.count += 1;
            }
            *known = Thread { endpoint: thread, ..Thread::NONE };
        }
        Some(known)
    }

    /// Forgets a thread.
    pub fn remove(&mut self, thread: Endpoint) {
        if let Some(known) = self.get_mut(thread) {
            *known = Thread::NONE;
            let is_it = |index: &u16| Self::index(thread) == Some(usize::from(*index));
            if let Some(at) = self.known[..self.count].iter().position(is_it) {
                self.count -= 1;
                self.known.swap(at, self.count);
            }
        }
    }

    /// The threads that are known.
    pub fn iter(&self) -> impl Iterator<Item = &Thread> {
        self.known[..self.count].iter().map(|index| &self.all[usize::from(*index)])
    }

    /// The first thread of which this is true.
    pub fn find(&self, is_it: impl Fn(&Thread) -> bool) -> Option<Thread> {
        self.iter().find(|known| is_it(known)).copied()
    }

    /// Changes all threads that are known.
    pub fn for_each(&mut self, mut change: impl FnMut(&mut Thread)) {
        for index in &self.known[..self.count] {
            change(&mut self.all[usize::from(*index)]);
        }
    }

    /// A predecessor may have died while it changed the list: makes it anew.
    pub fn recover(&mut self) {
        self.count = 0;
        for (index, _) in self.all.iter().enumerate().filter(|(_, known)| known.endpoint != Endpoint::NONE) {
            self.known[self.count] = index as u16;
            self.count += 1;
        }
        self.for_each(|known| known.process = None);
    }

    /// Limits the wait of a thread; 0: not any more.
    pub fn set_deadline(&mut self, thread: Endpoint, deadline_ns: u64) {
        let Some(known) = self.get_mut(thread) else { return };
        known.deadline_ns = deadline_ns;
        if deadline_ns != 0 && (self.next_deadline_ns == 0 || deadline_ns < self.next_deadline_ns) {
            self.next_deadline_ns = deadline_ns;
        }
    }

    /// The next time at which a wait may end; 0: there is none.
    pub fn next_deadline_ns(&self) -> u64 {
        self.next_deadline_ns
    }

    /// The deadlines before this time are taken care of.
    pub fn deadlines_passed(&mut self) {
        let deadlines = self.iter().map(|known| known.deadline_ns).filter(|&deadline| deadline != 0);
        self.next_deadline_ns = deadlines.min().unwrap_or(0);
    }
}
