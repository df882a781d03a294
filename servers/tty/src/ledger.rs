//! Results of requests, by sender and tag: a request that is repeated because this tty's predecessor died before the reply arrived gets
//! the same reply, and a write continues where it was.
//!
//! Each entry has a place that its tag determines, so that none is searched for. A thread of a program has one call in progress, whose
//! tags name it: its entry is replaced by its next request, which it would not make without the reply to the last. The tags of vfs's other
//! requests number those in flight. So an entry is replaced only when its reply has arrived.

use abi::endpoint::SLOTS;
use abi::{Endpoint, Errno, Message, Word};
use alloc::vec::Vec;
use recover::snapshot::Note;
use sys::fallible::{self, TryVec};

/// Places for requests that no thread has a tag of its own for: more than vfs has in flight.
const OTHERS: usize = 4096;
/// Places of the ledger, and preserved notes.
pub const PLACES: usize = SLOTS + OTHERS;
/// The bit of tags that name a thread: its endpoint is in the high half.
const NAMES_THREAD: u64 = 1 << 63;

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// So many bytes of a write have been queued; it waits for room.
    Progress(u64),
    /// Its reply.
    Result(Result<u64, Errno>),
    /// The reply to an open, which [`Ledger::forget_opens`] drops.
    Opened(Result<u64, Errno>),
}

#[derive(Clone, Copy)]
struct Entry {
    slot: u64,
    tag: u64,
    outcome: Outcome,
}

impl Entry {
    fn to_note(self) -> Note {
        let (kind, value) = match self.outcome {
            Outcome::Progress(bytes) => (0, bytes),
            Outcome::Result(result) => (1, result.to_word()),
            Outcome::Opened(result) => (2, result.to_word()),
        };
        [self.slot << 2 | kind, self.tag, value]
    }

    fn from_note([first, tag, value]: Note) -> Option<Entry> {
        let outcome = match first & 3 {
            0 => Outcome::Progress(value),
            1 => Outcome::Result(Result::from_word(value)),
            2 => Outcome::Opened(Result::from_word(value)),
            _ => return None,
        };
        Some(Entry { slot: first >> 2, tag, outcome })
    }
}

/// The requests, by place.
pub struct Ledger {
    entries: Vec<Option<Entry>>,
    /// Places that have changed in this turn, each once.
    changed: Vec<usize>,
    is_changed: Vec<bool>,
}

impl Ledger {
    /// The ledger of a predecessor, from its notes.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn load(note: impl Fn(usize) -> Option<Note>) -> Ledger {
        let no_memory = "tty starts with memory for its ledger";
        let entries = fallible::collect((0..PLACES).map(|place| note(place).and_then(Entry::from_note)));
        Ledger {
            entries: entries.expect(no_memory),
            changed: fallible::with_capacity(PLACES).expect(no_memory),
            is_changed: fallible::filled(false, PLACES).expect(no_memory),
        }
    }

    /// Finds the state of a request; requests without a tag have none.
    pub fn find(&self, request: &Message) -> Option<Outcome> {
        let entry = self.entries[place_of(request.tag())].as_ref()?;
        (entry.tag == request.tag() && entry.slot == request.source.slot() as u64).then_some(entry.outcome)
    }

    /// Remembers the state of a request.
    pub fn note(&mut self, request: &Message, outcome: Outcome) {
        if request.tag() != 0 {
            let entry = Entry { slot: request.source.slot() as u64, tag: request.tag(), outcome };
            self.set(place_of(request.tag()), entry);
        }
    }

    /// Drops the replies to opens: a restarted vfs has said what is open, and repeats the opens that it wants still.
    pub fn forget_opens(&mut self) {
        for place in 0..PLACES {
            if let Some(Entry { slot, tag: _, outcome: Outcome::Opened(_) }) = self.entries[place] {
                self.set(place, Entry { slot, tag: 0, outcome: Outcome::Progress(0) });
            }
        }
    }

    /// Whether something has changed in this turn.
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes what has changed in this turn, as notes.
    pub fn take_changes(&mut self) -> impl Iterator<Item = (usize, Note)> + '_ {
        let (entries, is_changed) = (&self.entries, &mut self.is_changed);
        self.changed.drain(..).filter_map(|place| {
            is_changed[place] = false;
            Some((place, entries[place]?.to_note()))
        })
    }

    fn set(&mut self, place: usize, entry: Entry) {
        self.entries[place] = Some(entry);
        if !core::mem::replace(&mut self.is_changed[place], true) {
            self.changed.push_reserved(place);
        }
    }
}

fn place_of(tag: u64) -> usize {
    if tag & NAMES_THREAD != 0 {
        Endpoint((tag >> 32) as u32 & !(1 << 31)).slot().min(SLOTS - 1)
    } else {
        SLOTS + tag as usize % OTHERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(generation: u32, tag: u64) -> Message {
        let mut message = Message { source: Endpoint::new(9, generation), ..Message::new(0) };
        message.words[6] = tag;
        message
    }

    fn tag_of(slot: usize, call: u64) -> u64 {
        NAMES_THREAD | u64::from(Endpoint::new(slot, 3).0) << 32 | call
    }

    fn empty() -> Ledger {
        Ledger::load(|_| None)
    }

    #[test]
    fn a_repeated_request_is_known_even_from_a_successor() {
        let mut ledger = empty();
        ledger.note(&request(1, 5), Outcome::Progress(10));
        ledger.note(&request(1, 5), Outcome::Result(Ok(20)));
        assert_eq!(ledger.find(&request(2, 5)), Some(Outcome::Result(Ok(20))));
        assert_eq!(ledger.find(&request(2, 6)), None);
        assert_eq!(ledger.find(&Message { source: Endpoint::new(8, 1), ..request(1, 5) }), None);
    }

    #[test]
    fn a_thread_has_one_request_and_others_are_not_touched() {
        let mut ledger = empty();
        let wait = Outcome::Progress(7);
        ledger.note(&request(1, tag_of(200, 1)), wait);
        ledger.note(&request(1, tag_of(201, 1)), Outcome::Result(Ok(1)));
        ledger.note(&request(1, tag_of(201, 2)), Outcome::Result(Ok(2)));
        (1..=OTHERS as u64).for_each(|tag| ledger.note(&request(1, tag), Outcome::Result(Ok(tag))));
        assert_eq!(ledger.find(&request(1, tag_of(200, 1))), Some(wait));
        assert_eq!(ledger.find(&request(1, tag_of(201, 1))), None);
        assert_eq!(ledger.find(&request(1, tag_of(201, 2))), Some(Outcome::Result(Ok(2))));
        assert_eq!(ledger.find(&request(1, 1)), Some(Outcome::Result(Ok(1))));
    }

    #[test]
    fn it_reads_back_what_it_noted() {
        let mut ledger = empty();
        ledger.note(&request(1, 1), Outcome::Progress(7));
        ledger.note(&request(1, tag_of(300, 9)), Outcome::Result(Err(Errno::EINTR)));
        ledger.note(&request(1, tag_of(301, 9)), Outcome::Opened(Ok(3)));
        let mut notes = [None; PLACES];
        ledger.take_changes().for_each(|(place, note)| notes[place] = Some(note));
        assert!(!ledger.has_changes());
        let mut read = Ledger::load(|place| notes[place]);
        assert_eq!(read.find(&request(1, 1)), Some(Outcome::Progress(7)));
        assert_eq!(read.find(&request(1, tag_of(300, 9))), Some(Outcome::Result(Err(Errno::EINTR))));
        assert_eq!(read.find(&request(1, tag_of(301, 9))), Some(Outcome::Opened(Ok(3))));
        read.forget_opens();
        assert_eq!(read.find(&request(1, tag_of(301, 9))), None);
        assert_eq!(read.find(&request(1, 1)), Some(Outcome::Progress(7)));
    }
}
