//! Events for pm: exec results, signals of threads, ends of sync. pm is notified and fetches them one by one.

use crate::keep::records::SignalRecord;
use abi::{Endpoint, Errno, Message, Word, vfs};
use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use sys::ipc;

/// Broken pipe.
pub const SIGPIPE: u64 = 13;
/// A file would become larger than RLIMIT_FSIZE.
const SIGXFSZ: u64 = 25;

/// One event, as `vfs::NextEvent` hands it over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Notice {
    pub kind: u64,
    pub process: Endpoint,
    pub a: u64,
    pub b: u64,
    pub c: u64,
    pub d: u64,
    /// Its record, if it outlives vfs.
    pub saved: Option<u16>,
}

/// Events that pm has not fetched yet. There are at most two of each thread, because it has one call in progress.
#[derive(Debug, Default)]
pub struct Notices {
    waiting: RefCell<VecDeque<Notice>>,
    /// The event handed over last, and to whom: when a successor of that pm asks, nobody knows what has become of it.
    last: Cell<Option<(Endpoint, Notice)>>,
}

impl Notices {
    /// Queues an event and notifies pm.
    #[expect(clippy::disallowed_methods, reason = "at most two of each thread")]
    fn put(&self, event: Notice) {
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

    /// Has pm send the signal that a message, or the break of a lease, calls for. Its record is preserved until pm has fetched the event.
    pub fn preserved(&self, place: u16, record: &SignalRecord) {
        let [a, b, c] = record.values;
        self.put(Notice { kind: record.event, a, b, c, saved: Some(place), ..Notice::default() });
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
        self.put(Notice { kind: vfs::EVENT_EXEC, process, a, b, c, d, saved: None });
    }

    /// Tells pm that a sync has ended.
    pub fn synced(&self, result: Result<(), Errno>) {
        let a = result.map(|()| 0u64).to_word();
        self.put(Notice { kind: vfs::EVENT_SYNCED, a, ..Notice::default() });
    }

    /// The answer to `NextEvent`, and the event in it. A new pm gets the event once more that its predecessor was given last.
    pub fn next(&self, request: &Message) -> (Message, Option<Notice>) {
        let pm = request.source;
        let again = self.last.take().filter(|(to, _)| *to != pm).map(|(_, event)| event);
        let next = again.or_else(|| self.waiting.borrow_mut().pop_front());
        let reply = match next {
            None => request.reply(Err(Errno::ENOENT)),
            Some(event) => {
                // Its record is released with the first reply.
                self.last.set(Some((pm, Notice { saved: None, ..event })));
                vfs::NextEvent::reply(request, 0, event.kind, event.process, event.a, event.b, event.c, event.d)
            }
        };
        (reply, next)
    }

    /// Drops the events of a thread that has ended.
    pub fn forget(&self, process: Endpoint) {
        self.waiting.borrow_mut().retain(|event| event.process != process);
    }
}
