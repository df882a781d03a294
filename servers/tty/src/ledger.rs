//! Results of requests, by sender and tag: a request that is repeated because this tty's predecessor died before the reply arrived gets
//! the same reply, and a write continues where it was.

use abi::{Errno, Message, Word};
use alloc::collections::VecDeque;
use recover::snapshot::{Reader, Writer};
use sys::fallible::{self, TryQueue};

/// Requests that are remembered: more than are ever in flight.
const ENTRIES: usize = 512;

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// So many bytes of a write have been queued; it waits for room.
    Progress(u64),
    /// Its reply.
    Result(Result<u64, Errno>),
}

#[derive(Clone, Copy)]
struct Entry {
    slot: u64,
    tag: u64,
    outcome: Outcome,
}

/// The requests, oldest first.
pub struct Ledger {
    entries: VecDeque<Entry>,
}

impl Ledger {
    /// Remembers nothing yet.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn new() -> Ledger {
        Ledger { entries: fallible::queue(ENTRIES).expect("tty starts with memory for its queues") }
    }

    /// Finds the state of a request; requests without a tag have none.
    pub fn find(&self, request: &Message) -> Option<Outcome> {
        self.position(request).map(|at| self.entries[at].outcome)
    }

    /// Remembers the state of a request. When full, forgets the oldest finished one.
    pub fn note(&mut self, request: &Message, outcome: Outcome) {
        if request.tag() == 0 {
            return;
        }
        if let Some(at) = self.position(request) {
            self.entries.remove(at);
        } else if self.entries.len() == ENTRIES {
            let finished = self.entries.iter().position(|entry| matches!(entry.outcome, Outcome::Result(_)));
            self.entries.remove(finished.unwrap_or(0));
        }
        self.entries.push_back_reserved(Entry { slot: request.source.slot() as u64, tag: request.tag(), outcome });
    }

    /// Saves the ledger into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        writer.number(self.entries.len() as u64);
        for Entry { slot, tag, outcome } in &self.entries {
            let (kind, value) = match outcome {
                Outcome::Progress(bytes) => (0, *bytes),
                Outcome::Result(result) => (1, result.to_word()),
            };
            [slot << 1 | kind, *tag, value].into_iter().for_each(|number| writer.number(number));
        }
    }

    /// Loads the ledger from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Ledger> {
        let count = reader.number()?.min(ENTRIES as u64);
        let mut ledger = Ledger::new();
        for _ in 0..count {
            let (first, tag, value) = (reader.number()?, reader.number()?, reader.number()?);
            let outcome =
                if first & 1 == 0 { Outcome::Progress(value) } else { Outcome::Result(Result::from_word(value)) };
            ledger.entries.push_back_reserved(Entry { slot: first >> 1, tag, outcome });
        }
        Some(ledger)
    }

    fn position(&self, request: &Message) -> Option<usize> {
        let is_it = |entry: &Entry| entry.tag == request.tag() && entry.slot == request.source.slot() as u64;
        if request.tag() == 0 { None } else { self.entries.iter().position(is_it) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::Endpoint;

    fn request(slot: usize, generation: u32, tag: u64) -> Message {
        let mut message = Message { source: Endpoint::new(slot, generation), ..Message::new(0) };
        message.words[6] = tag;
        message
    }

    #[test]
    fn a_repeated_request_is_known_even_from_a_successor() {
        let mut ledger = Ledger::new();
        ledger.note(&request(9, 1, 5), Outcome::Progress(10));
        ledger.note(&request(9, 1, 5), Outcome::Result(Ok(20)));
        assert_eq!(ledger.find(&request(9, 2, 5)), Some(Outcome::Result(Ok(20))));
        assert_eq!(ledger.find(&request(9, 2, 6)), None);
        assert_eq!(ledger.find(&request(8, 1, 5)), None);
    }

    #[test]
    fn old_answers_are_forgotten_before_what_is_under_way() {
        let mut ledger = Ledger::new();
        ledger.note(&request(9, 1, 1), Outcome::Progress(7));
        for tag in 2..2 + 2 * ENTRIES as u64 {
            ledger.note(&request(9, 1, tag), Outcome::Result(Ok(tag)));
        }
        assert_eq!(ledger.find(&request(9, 1, 1)), Some(Outcome::Progress(7)));
        assert_eq!(ledger.find(&request(9, 1, 2)), None);
        let last = 1 + 2 * ENTRIES as u64;
        assert_eq!(ledger.find(&request(9, 1, last)), Some(Outcome::Result(Ok(last))));
    }

    #[test]
    fn it_reads_back_what_it_wrote() {
        let mut ledger = Ledger::new();
        ledger.note(&request(9, 1, 1), Outcome::Progress(7));
        ledger.note(&request(9, 1, u64::MAX), Outcome::Result(Err(Errno::EINTR)));
        let mut writer = Writer::default();
        ledger.save(&mut writer);
        let read = Ledger::load(&mut Reader::new(writer.bytes())).expect("is whole");
        assert_eq!(read.find(&request(9, 1, 1)), Some(Outcome::Progress(7)));
        assert_eq!(read.find(&request(9, 1, u64::MAX)), Some(Outcome::Result(Err(Errno::EINTR))));
        assert!(Ledger::load(&mut Reader::new(&writer.bytes()[..20])).is_none());
    }
}
