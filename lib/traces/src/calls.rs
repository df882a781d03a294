//! Pairs requests with their replies, and follows who works for whom.
//!
//! A request from A to B begins a call; B works for it until it replies, turns to another message, or asks a further service, which then
//! works for the same program. What a thread does between is known by its chain: the frames from the program on.
//!
//! Requests without a reply (one-way messages) stay in the table until it is full; the older half is then dropped.

use crate::label::Label;
use abi::message::{LINUX_LABELS, REPLY};
use abi::trace::{Record, event};
use abi::{Endpoint, endpoint::slot};
use alloc::collections::BTreeMap;

/// Calls in progress that are kept.
const MAX_OPEN: usize = 4096;
/// Threads whose chain is kept.
const MAX_THREADS: usize = 4096;
/// Frames of a chain: longer ones lose their last.
pub const MAX_FRAMES: usize = 8;

/// A thread and the request on which it works; the first of a chain works on none.
pub type Frame = (Endpoint, Option<Label>);

/// The way from a program to the thread that works for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chain {
    frames: [Frame; MAX_FRAMES],
    used: usize,
}

impl Chain {
    /// That of a thread which works for itself.
    pub fn of(thread: Endpoint) -> Chain {
        let mut frames = [(Endpoint::NONE, None); MAX_FRAMES];
        frames[0] = (thread, None);
        Chain { frames, used: 1 }
    }

    /// Its frames, the program's first.
    pub fn frames(&self) -> &[Frame] {
        &self.frames[..self.used]
    }

    /// Who all of this is done for.
    pub fn origin(&self) -> Endpoint {
        self.frames[0].0
    }

    fn with(mut self, thread: Endpoint, label: Label) -> Chain {
        if let Some(place) = self.frames.get_mut(self.used) {
            *place = (thread, Some(label));
            self.used += 1;
        }
        self
    }
}

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who asked.
    pub caller: Endpoint,
    /// Whom.
    pub server: Endpoint,
    /// What.
    pub label: Label,
    /// The words of the request.
    pub words: [u64; 7],
    /// The words of the reply; the first is the result.
    pub reply: [u64; 7],
    /// Ticks from the delivery of the request to that of the reply.
    pub ticks: u64,
    /// Who it was done for in the end.
    pub origin: Endpoint,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    tsc: u64,
    label: Label,
    words: [u64; 7],
    /// The chain of the caller.
    chain: Chain,
}

/// From, to, and the tag; Linux calls have none.
type Key = (Endpoint, Endpoint, u64);

/// The calls in progress.
#[derive(Debug, Default)]
pub struct Calls {
    open: BTreeMap<Key, Open>,
    current: BTreeMap<Endpoint, Chain>,
    dropped: u64,
}

impl Calls {
    /// None.
    pub fn new() -> Calls {
        Calls::default()
    }

    /// Calls in progress that were dropped because there were too many; most of them will have been one-way messages.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// For whom a thread works now.
    pub fn chain(&self, thread: Endpoint) -> Chain {
        self.current.get(&thread).copied().unwrap_or(Chain::of(thread))
    }

    /// Records were lost: forgets the calls in progress, whose replies may be among them.
    pub fn forget(&mut self) {
        self.open.clear();
        self.current.clear();
    }

    /// Takes a record. Returns the call that it ends, if any.
    pub fn take(&mut self, record: &Record) -> Option<Call> {
        match record.event {
            event::MESSAGE if record.label & REPLY != 0 => self.end(record),
            event::MESSAGE => {
                self.begin(record);
                None
            }
            event::NOTIFY => {
                self.current.remove(&record.to);
                None
            }
            _ => None,
        }
    }

    fn begin(&mut self, record: &Record) {
        let Record { tsc, from, to, words, .. } = *record;
        let label = Label(record.label);
        let chain = self.chain(from);
        if self.open.len() >= MAX_OPEN {
            self.drop_older_half();
        }
        self.open.insert(key(from, to, label, &words), Open { tsc, label, words, chain });
        if self.current.len() >= MAX_THREADS {
            self.current.clear();
        }
        self.current.insert(to, chain.with(to, label));
    }

    fn end(&mut self, record: &Record) -> Option<Call> {
        let (caller, server) = (record.to, record.from);
        let open = self.open.remove(&key(caller, server, Label(record.label & !REPLY), &record.words))?;
        self.current.remove(&server);
        match open.chain.used {
            1 => self.current.remove(&caller),
            _ => self.current.insert(caller, open.chain),
        };
        let Open { label, words, tsc, .. } = open;
        let (ticks, origin) = (record.tsc.wrapping_sub(tsc), open.chain.origin());
        Some(Call { caller, server, label, words, reply: record.words, ticks, origin })
    }

    fn drop_older_half(&mut self) {
        let times = || self.open.values().map(|open| open.tsc);
        let (oldest, newest) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let middle = oldest + (newest - oldest) / 2;
        let before = self.open.len();
        self.open.retain(|_, open| open.tsc > middle);
        self.dropped += (before - self.open.len()) as u64;
    }
}

/// A Linux call may be answered with another label, and a program makes one at a time.
fn key(from: Endpoint, to: Endpoint, label: Label, words: &[u64; 7]) -> Key {
    let tag = if label.0 < LINUX_LABELS { 0 } else { words[6] };
    (from, to, tag)
}

/// Whether this is no thread but the absence of one.
pub fn is_idle(thread: Endpoint) -> bool {
    thread == Endpoint::current(slot::IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::block;

    const PROGRAM: Endpoint = Endpoint::new(700, 3);
    const VFS: Endpoint = Endpoint::new(8, 1);
    const EXT2: Endpoint = Endpoint::new(20, 1);
    const READ: u32 = 0;

    fn message(tsc: u64, from: Endpoint, to: Endpoint, label: u32, first: u64, tag: u64) -> Record {
        Record { tsc, event: event::MESSAGE, label, from, to, words: [first, 2, 3, 4, 5, 6, tag] }
    }

    #[test]
    fn a_call_is_paired_with_its_reply() {
        let mut calls = Calls::new();
        assert_eq!(calls.take(&message(100, PROGRAM, VFS, READ, 3, 77)), None);
        let call = calls.take(&message(350, VFS, PROGRAM, REPLY, 512, 0)).expect("it has ended");
        assert_eq!((call.caller, call.server, call.label, call.ticks), (PROGRAM, VFS, Label(READ), 250));
        assert_eq!((call.words[0], call.reply[0]), (3, 512));
        assert_eq!(calls.take(&message(360, VFS, PROGRAM, REPLY, 512, 0)), None, "it ends once");
    }

    #[test]
    fn requests_of_a_service_are_told_apart_by_their_tags() {
        let mut calls = Calls::new();
        let read = block::Read::LABEL;
        calls.take(&message(100, VFS, EXT2, read, 0, 1));
        calls.take(&message(200, VFS, EXT2, read, 0, 2));
        let second = calls.take(&message(300, EXT2, VFS, read | REPLY, 0, 2)).expect("has ended");
        let first = calls.take(&message(400, EXT2, VFS, read | REPLY, 0, 1)).expect("has ended");
        assert_eq!((second.ticks, first.ticks), (100, 300));
    }

    #[test]
    fn the_chain_leads_from_the_program_to_who_works_for_it() {
        let mut calls = Calls::new();
        let read = block::Read::LABEL;
        calls.take(&message(1, PROGRAM, VFS, READ, 0, 0));
        calls.take(&message(2, VFS, EXT2, read, 0, 9));
        let chain = calls.chain(EXT2);
        assert_eq!(chain.frames(), [(PROGRAM, None), (VFS, Some(Label(READ))), (EXT2, Some(Label(read)))]);
        assert_eq!(chain.origin(), PROGRAM);
        // vfs takes another program's call meanwhile, and goes on with the first one's when ext2 replies.
        let other = Endpoint::new(701, 1);
        calls.take(&message(3, other, VFS, READ, 0, 0));
        assert_eq!(calls.chain(VFS).origin(), other);
        let call = calls.take(&message(4, EXT2, VFS, read | REPLY, 0, 9)).expect("has ended");
        assert_eq!((call.origin, calls.chain(VFS).origin()), (PROGRAM, PROGRAM));
        assert_eq!(calls.chain(EXT2), Chain::of(EXT2));
        calls.take(&message(5, VFS, PROGRAM, REPLY, 0, 0));
        assert_eq!(calls.chain(VFS), Chain::of(VFS));
    }

    #[test]
    fn what_a_notification_brings_about_is_done_for_nobody() {
        let mut calls = Calls::new();
        calls.take(&message(1, PROGRAM, VFS, READ, 0, 0));
        calls.take(&Record { event: event::NOTIFY, from: Endpoint::CLOCK, to: VFS, ..Record::default() });
        assert_eq!(calls.chain(VFS), Chain::of(VFS));
    }

    #[test]
    fn one_way_messages_do_not_fill_the_table_for_ever() {
        let mut calls = Calls::new();
        for tag in 0..10 * MAX_OPEN as u64 {
            calls.take(&message(tag, VFS, EXT2, block::Read::LABEL, 0, tag));
        }
        assert!(calls.open.len() <= MAX_OPEN);
        assert_eq!(calls.dropped() as usize + calls.open.len(), 10 * MAX_OPEN);
        let last = 10 * MAX_OPEN as u64 - 1;
        assert!(calls.take(&message(last, EXT2, VFS, block::Read::LABEL | REPLY, 0, last)).is_some());
    }

    #[test]
    fn a_chain_that_goes_round_is_bounded() {
        let mut calls = Calls::new();
        for tag in 0..100 {
            calls.take(&message(tag, VFS, EXT2, block::Read::LABEL, 0, tag));
            calls.take(&message(tag, EXT2, VFS, block::Read::LABEL, 0, tag));
        }
        assert_eq!(calls.chain(VFS).frames().len(), MAX_FRAMES);
    }

    #[test]
    fn a_thousand_threads_are_forgotten_rather_than_kept() {
        let mut calls = Calls::new();
        for thread in 0..3 * MAX_THREADS as u32 {
            calls.take(&message(1, Endpoint(thread << 12 | 800), Endpoint(thread << 12 | 9), READ, 0, 0));
        }
        assert!(calls.current.len() <= MAX_THREADS);
    }
}
