//! Events for pm: exec results, signals of threads, ends of sync. pm is notified and fetches them one by one.
//!
//! An event stays the first until pm has dealt with it, which it says by the event's number when it asks for the next one. Until then a
//! successor of pm gets it again, and a successor of vfs has it if it is preserved; the others come of calls that are repeated. Numbers are
//! times, so that no incarnation gives one that another has given.

use crate::keep::records::SignalRecord;
use abi::{Endpoint, Errno, Message, Word, vfs};
use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use sys::{ipc, time};

/// Broken pipe.
pub const SIGPIPE: u64 = 13;
/// A file would become larger than RLIMIT_FSIZE.
const SIGXFSZ: u64 = 25;

/// One event, as `vfs::NextEvent` hands it over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Notice {
    /// By which pm says that it has dealt with it.
    pub number: u64,
    pub kind: u64,
    pub process: Endpoint,
    pub a: u64,
    pub b: u64,
    pub c: u64,
    pub d: u64,
    /// Its record, if it outlives vfs.
    pub saved: Option<u16>,
}

/// Events that pm has not dealt with yet. There are at most three of each thread, because it has one call in progress.
#[derive(Debug, Default)]
pub struct Notices {
    waiting: RefCell<VecDeque<Notice>>,
    last_number: Cell<u64>,
}

impl Notices {
    /// A number for an event: larger than all before.
    pub fn new_number(&self) -> u64 {
        self.last_number.set(time::now_ns().max(self.last_number.get() + 1));
        self.last_number.get()
    }

    /// Queues an event and notifies pm.
    fn put(&self, event: Notice) {
        self.queue(Notice { number: self.new_number(), ..event });
    }

    #[expect(clippy::disallowed_methods, reason = "at most three of each thread")]
    fn queue(&self, event: Notice) {
        self.waiting.borrow_mut().push_back(event);
        if let Err(error) = ipc::notify(Endpoint::PM) {
            sys::log!("pm cannot be notified of an event: {error}");
        }
    }

    /// Has pm send a thread a signal; its call now waits for `Cancel`.
    pub fn signal(&self, process: Endpoint, signal: u64) {
        self.put(Notice { kind: vfs::EVENT_SIGNAL, process, a: signal, ..Notice::default() });
    }

    /// Has pm send a thread SIGXFSZ; see [`Notices::signal`].
    pub fn too_large(&self, process: Endpoint) {
        self.signal(process, SIGXFSZ);
    }

    /// Has pm send the signal that a message, or the break of a lease, calls for. Its record is preserved until pm has dealt with it.
    pub fn preserved(&self, place: u16, record: &SignalRecord) {
        let [a, b, c] = record.values;
        self.queue(Notice {
            number: record.number,
            kind: record.event,
            a,
            b,
            c,
            saved: Some(place),
            ..Notice::default()
        });
    }

    /// Has pm put a signal mask in force while the call of a thread waits.
    pub fn mask(&self, process: Endpoint, mask: u64) {
        self.put(Notice { kind: vfs::EVENT_MASK, process, a: mask, ..Notice::default() });
    }

    /// Has pm end that, and send `Unmasked`.
    pub fn unmask(&self, process: Endpoint) {
        self.put(Notice { kind: vfs::EVENT_MASK_END, process, ..Notice::default() });
    }

    /// Reports the result of an exec.
    pub fn executed(&self, process: Endpoint, [a, b, c, d]: [u64; 4]) {
        self.put(Notice { kind: vfs::EVENT_EXEC, process, a, b, c, d, ..Notice::default() });
    }

    /// Tells pm that a sync has ended.
    pub fn synced(&self, result: Result<(), Errno>) {
        let a = result.map(|()| 0u64).to_word();
        self.put(Notice { kind: vfs::EVENT_SYNCED, a, ..Notice::default() });
    }

    /// The event with this number has been dealt with. Returns it if pm has not said so before.
    pub fn done(&self, number: u64) -> Option<Notice> {
        let mut waiting = self.waiting.borrow_mut();
        let at = waiting.iter().position(|event| event.number == number)?;
        waiting.remove(at)
    }

    /// The answer to `NextEvent`.
    pub fn next(&self, request: &Message) -> Message {
        match self.waiting.borrow().front() {
            None => request.reply(Err(Errno::ENOENT)),
            Some(Notice { number, kind, process, a, b, c, d, .. }) => {
                vfs::NextEvent::reply(request, *number, *kind, *process, *a, *b, *c, *d)
            }
        }
    }

    /// Drops the events of a thread that has ended.
    pub fn forget(&self, process: Endpoint) {
        self.waiting.borrow_mut().retain(|event| event.process != process);
    }
}
