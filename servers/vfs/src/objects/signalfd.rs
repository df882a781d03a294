//! Descriptors that signals are read from (signalfd(2)): those pending for the thread that reads, and for its process.
//!
//! The object is a set of signals, no more. A read asks pm for signals of the set, which writes them into the program's memory
//! (`pm::TakeSignals`): vfs never has one, so none is lost with it. While such a request is out, a signal does not end the call, which would
//! lose what pm has taken. Poll and epoll ask pm as they ask a device; one question of a thread is out at a time (`callers::signals`).

use super::{Asking, Done, End, Inheritance, Kind, Object, OpenFile, Operation, Seek, Wanted, no_position};
use crate::{
    base::{Base, Flow},
    callers::{Caller, signals},
    events::{
        Watch, Watchers,
        poll::{ANY, POLLIN},
    },
    files::{stat::Summary, vnode::NodeRef},
    keep::records::ObjectRecord,
    memory::buffer::UserBuffer,
    peers::{PROCESS_MANAGER, Peers},
};
use abi::{Errno, Message, chardev, pm};
use alloc::{boxed::Box, rc::Rc};
use core::{
    cell::{Cell, RefCell},
    fmt::{self, Write},
};
use sys::text::Text;

/// Size of a `struct signalfd_siginfo`.
const INFO_BYTES: u64 = 128;

/// See the head of the file.
#[derive(Debug)]
pub struct SignalFile {
    mask: Cell<u64>,
    /// Fire when the set is another, and when signals have been read.
    watchers: Watchers,
}

impl SignalFile {
    /// For these signals.
    pub fn new(mask: u64) -> SignalFile {
        SignalFile { mask: Cell::new(mask), watchers: Watchers::default() }
    }

    /// Changes the set; who waits looks again.
    pub fn set_mask(&self, file: &OpenFile, mask: u64) {
        self.mask.set(mask);
        file.save_object();
        self.watchers.fire();
    }
}

/// Reads up to `count` signals to `address`.
async fn read(
    base: &'static Base,
    caller: Rc<Caller>,
    file: Rc<OpenFile>,
    address: u64,
    count: u64,
) -> Result<u64, Errno> {
    let signals: &SignalFile = file.object().ok_or(Errno::EINVAL)?;
    let (process, call, watch) = (caller.endpoint, caller.call_number(), !file.nonblocking());
    loop {
        let mask = signals.mask.get();
        let request = pm::TakeSignals { process, call, mask, address, count, watch };
        match base.peers().ask(PROCESS_MANAGER, request.message()).await {
            Ok(reply) => {
                signals.watchers.fire_for(0);
                return Ok(reply.words[0] * INFO_BYTES);
            }
            Err(Errno::EAGAIN) if watch => caller.signals().set_quiet(mask),
            Err(error) => return Err(error),
        }
        signals.wait(&caller, mask).await?;
    }
}

impl SignalFile {
    /// Waits until a signal of this set may have arrived, or the set is another.
    async fn wait(&self, caller: &Caller, mask: u64) -> Result<(), Errno> {
        self.watchers.add(caller.event());
        let is_over = || !caller.signals().is_quiet(mask) || self.mask.get() != mask;
        let waited = caller.wait_until(caller.signals().watchers(), is_over).await;
        self.watchers.remove(caller.event());
        waited
    }
}

/// Somebody asks whether signals of a set are pending for a thread: now, or (`stays`) when one is; with `since`, whether any signal has
/// arrived after the one with this number besides.
struct Question {
    caller: Rc<Caller>,
    peers: Rc<Peers>,
    mask: u64,
    since: u32,
    stays: bool,
    done: RefCell<Option<Done>>,
}

impl fmt::Debug for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "signals {:#x} of {:?}", self.mask, self.caller.endpoint)
    }
}

impl Question {
    fn answer(&self, events: u32, arrivals: u32) {
        if let Some(done) = self.done.take() {
            let mut reply = Message::default();
            reply.words[0] = u64::from(events) | u64::from(arrivals) << chardev::ARRIVALS_SHIFT;
            done(Ok(reply));
        }
    }

    /// Answers it, or leaves it until more is known.
    fn look(&self) {
        let signals = self.caller.signals();
        if let Some(last) = signals.found(self.mask).filter(|last| *last != self.since) {
            return self.answer(POLLIN, last);
        }
        let is_quiet = signals.is_quiet(self.mask) || signals.is_last(self.since);
        if self.caller.is_gone() || !self.stays && is_quiet {
            // Of a thread that has ended: another one asks again.
            self.answer(0, 0);
        } else if !is_quiet && signals.ask(signals::Question { mask: self.mask, any: self.since != 0 }) {
            ask(self.peers.clone(), self.caller.clone());
        }
    }
}

impl Watch for Question {
    fn changed(self: Rc<Self>, _: u32) {
        if self.done.borrow().is_some() {
            self.look();
        }
    }

    fn height(&self) -> usize {
        0
    }
}

/// Asks pm about the signals of a thread until everything is answered.
fn ask(peers: Rc<Peers>, caller: Rc<Caller>) {
    peers.clone().run(async move {
        while let Some(question) = caller.signals().question() {
            let signals::Question { mask, any } = question;
            let request = pm::AwaitSignals { process: caller.endpoint, mask, any };
            let reply = peers.ask(PROCESS_MANAGER, request.message()).await;
            // ESRCH: it ends, and its watchers are told.
            let (pending, last) = reply.and_then(|reply| pm::AwaitSignals::results(&reply)).unwrap_or_default();
            caller.signals().answered(question, pending, last as u32);
        }
    });
}

impl Object for SignalFile {
    fn record(&self) -> ObjectRecord {
        ObjectRecord { more: self.mask.get(), ..ObjectRecord::of(Self::NUMBER) }
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: 1, mode: 0o600, ..Summary::default() })
    }

    fn describe(&self, text: &mut Text) -> fmt::Result {
        writeln!(text, "sigmask:\t{:016x}", self.mask.get())
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        let piece = buffer.piece();
        let count = piece.bytes / INFO_BYTES;
        if count == 0 {
            return Err(Errno::EINVAL);
        }
        Ok(Flow::task(read(on.base, on.caller.clone(), on.file.clone(), piece.address, count)))
    }

    /// Accepted and without effect, as on Linux.
    fn seek(&self, _: &Seek) -> Result<u64, Errno> {
        Ok(0)
    }

    fn poll(&self) -> u32 {
        0
    }

    fn has_device(&self) -> bool {
        true
    }

    fn ask_ready(&self, by: &Asking, wanted: Wanted, stay: bool, done: Done) -> Result<End, Errno> {
        let (caller, peers, mask) = (by.caller.clone(), by.peers.clone(), self.mask.get());
        let (since, done) = (wanted.since, RefCell::new(Some(done)));
        let question = Rc::new(Question { caller, peers, mask, since, stays: stay, done });
        let watch: Rc<dyn Watch> = question.clone();
        by.caller.signals().watchers().add_watch(&watch, ANY)?;
        question.look();
        // It is told of changes as long as it exists.
        Ok(Box::new(move || drop(question)))
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((&self.watchers, ANY)), None]
    }
}

impl Kind for SignalFile {
    const NUMBER: u8 = 13;

    fn restore(record: &ObjectRecord, _: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        Some(SignalFile::new(record.more))
    }
}
