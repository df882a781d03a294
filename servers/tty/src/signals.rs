//! The signals of terminals, from the key or the hang-up until pm fetches them.

use alloc::collections::VecDeque;
use recover::snapshot::{Reader, Writer};
use sys::fallible::{self, TryQueue};

/// Limit of signals that wait for pm.
const SIGNALS: usize = 128;

/// The signals that pm has not fetched, or may not have got.
pub struct Signals {
    /// Signals that pm has not fetched yet.
    queue: VecDeque<Signal>,
    /// pm has fetched the first signal. It is kept until pm asks for the next: better twice than never.
    first_is_told: bool,
}

/// A signal for a process group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    pub number: u32,
    pub group: u32,
}

impl Signals {
    pub fn new() -> Signals {
        let queue = fallible::queue(SIGNALS).expect("tty starts with memory for its queues");
        Signals { queue, first_is_told: false }
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
        writer.number(self.queue.len() as u64);
        for signal in &self.queue {
            writer.number(u64::from(signal.number) << 32 | u64::from(signal.group));
        }
    }

    pub fn load(reader: &mut Reader) -> Option<Signals> {
        let mut signals = Signals::new();
        for _ in 0..reader.number()?.min(SIGNALS as u64) {
            let packed = reader.number()?;
            signals.queue.push_back_reserved(Signal { number: (packed >> 32) as u32, group: packed as u32 });
        }
        Some(signals)
    }

    /// The next signal, after pm has asked for it.
    pub fn next(&mut self) -> Option<&Signal> {
        if self.first_is_told {
            self.queue.pop_front();
        }
        self.first_is_told = !self.queue.is_empty();
        self.queue.front()
    }

    /// Returns whether pm has something to fetch.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
