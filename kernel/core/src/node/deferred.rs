//! Interrupts and clock work of the time-shared world that wait while a real-time thread is ready.
//!
//! A driver's interrupt that comes then is recorded; when no real-time thread is ready all are delivered in the order
//! of their arrival. Neighbours: `interrupts` (records and delivers), `dispatch` (runs deferred work).

use crate::node::lines::LINES;
use zerocopy::FromZeros;

/// What waits.
#[derive(Debug, FromZeros)]
pub struct Deferred {
    /// Lines that have fired, in order; each at most once.
    recorded: [u8; LINES],
    first: usize,
    count: usize,
    is_recorded: [u64; LINES / 64],
    /// Alarms and balance are due.
    clock: bool,
}

impl Deferred {
    /// Returns the recorded lines below 64, as bits.
    pub fn low_lines(&self) -> u64 {
        self.is_recorded[0]
    }

    /// Takes the first recorded line.
    pub fn take_line(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        let line = self.recorded[self.first] as usize;
        self.first = (self.first + 1) % LINES;
        self.is_recorded[line / 64] &= !(1 << (line % 64));
        Some(line)
    }

    /// Returns true when clock work waits, which it does no longer then.
    pub fn take_clock(&mut self) -> bool {
        core::mem::take(&mut self.clock)
    }

    /// Records that a line has fired.
    pub fn record_line(&mut self, line: usize) {
        let bit = 1 << (line % 64);
        if self.is_recorded[line / 64] & bit == 0 {
            self.is_recorded[line / 64] |= bit;
            self.recorded[(self.first + self.count) % LINES] = line as u8;
            self.count += 1;
        }
    }

    /// Records that clock work is due.
    pub fn record_clock(&mut self) {
        self.clock = true;
    }
}
