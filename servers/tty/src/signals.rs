//! The signals of terminals, from the key or the hang-up until pm fetches them.

use abi::tty::{CHANGES, TO_PROCESS};
use alloc::collections::VecDeque;
use recover::snapshot::{Reader, Writer};
use sys::fallible::{self, TryQueue};

/// Limit of signals that wait for pm.
const SIGNALS: usize = 128;

/// The signals that pm has not dealt with.
pub struct Signals {
    queue: VecDeque<Signal>,
    /// Number of the first signal.
    first: u64,
    /// pm has fetched the first signal, and perhaps dealt with it. It is kept until pm says so: a pm that dies meanwhile has a successor.
    first_is_told: bool,
}

/// Whom a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every process of a group.
    Group(u32),
    /// One process, by its pid.
    Process(u32),
    /// A process that wants to change a terminal from the background.
    Changes(u32),
}

impl Target {
    /// As pm is told.
    pub fn word(self) -> u64 {
        match self {
            Target::Group(group) => group.into(),
            Target::Process(pid) => TO_PROCESS | u64::from(pid),
            Target::Changes(pid) => TO_PROCESS | CHANGES | u64::from(pid),
        }
    }

    fn of(word: u64) -> Target {
        match (word & TO_PROCESS != 0, word & CHANGES != 0) {
            (false, _) => Target::Group(word as u32),
            (true, false) => Target::Process(word as u32),
            (true, true) => Target::Changes(word as u32),
        }
    }
}

/// A signal for a process or a group. The number 0 only asks whether the process exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    pub number: u32,
    pub target: Target,
}

impl Signals {
    pub fn new() -> Signals {
        let queue = fallible::queue(SIGNALS).expect("tty starts with memory for its queues");
        Signals { queue, first: 1, first_is_told: false }
    }

    /// Adds a signal for pm. One that pm has not fetched yet stands for both, as pending signals do; what a full queue drops is a
    /// key or a denial whose group gets too many already.
    pub fn add(&mut self, signal: Signal) {
        let untold = self.queue.iter().skip(self.first_is_told.into());
        if untold.clone().any(|other| *other == signal) || self.queue.len() == SIGNALS {
            return;
        }
        self.queue.push_back_reserved(signal);
    }

    pub fn save(&self, writer: &mut Writer) {
        writer.numbers([self.first, self.first_is_told.into(), self.queue.len() as u64]);
        for signal in &self.queue {
            writer.numbers([signal.number.into(), signal.target.word()]);
        }
    }

    pub fn load(reader: &mut Reader) -> Option<Signals> {
        let mut signals = Signals::new();
        (signals.first, signals.first_is_told) = (reader.number()?, reader.number()? != 0);
        for _ in 0..reader.number()?.min(SIGNALS as u64) {
            let (number, target) = (reader.number()? as u32, Target::of(reader.number()?));
            signals.queue.push_back_reserved(Signal { number, target });
        }
        Some(signals)
    }

    /// The first signal that pm has not dealt with, and its number; the last one that it has is number `done`.
    pub fn next(&mut self, done: u64) -> Option<(u64, &Signal)> {
        if done == self.first && self.first_is_told {
            self.queue.pop_front();
            self.first += 1;
        }
        self.first_is_told = !self.queue.is_empty();
        self.queue.front().map(|signal| (self.first, signal))
    }

    /// Returns whether pm has something to fetch.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
