//! Interrupts and clock work of the time-shared world that wait while a real-time thread is ready.
//!
//! A driver's interrupt that comes then is recorded, and its line masked as the driver wants it; when no real-time thread is ready all are
//! delivered in the order of their arrival. The bit of the SYSTEM task's queue in the scheduler's deferred work stands for it.
//! Neighbours: the parent (delivers), `dispatch` (runs deferred work).

use crate::{Machine, Node, interrupts, interrupts::LINES, priority::SYSTEM_QUEUE};

/// What waits.
#[derive(Debug)]
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
    /// Nothing waits. All bytes zero.
    pub const NEW: Deferred =
        Deferred { recorded: [0; LINES], first: 0, count: 0, is_recorded: [0; LINES / 64], clock: false };

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

    fn record(&mut self, line: usize) {
        let bit = 1 << (line % 64);
        if self.is_recorded[line / 64] & bit == 0 {
            self.is_recorded[line / 64] |= bit;
            self.recorded[(self.first + self.count) % LINES] = line as u8;
            self.count += 1;
        }
    }
}

/// Delivers an interrupt to the drivers of its line, or records it while a real-time thread is ready.
pub fn deliver_or_record<M: Machine>(node: &mut Node, m: &mut M, line: usize) {
    if node.threads.is_real_time_ready() {
        interrupts::mask_as_driver_wants(node, m, line);
        node.deferred_work.record(line);
        node.threads.defer(SYSTEM_QUEUE);
    } else {
        interrupts::deliver_interrupt(node, m, line);
    }
}

/// Puts clock work off until no real-time thread is ready.
pub fn defer_clock(node: &mut Node) {
    node.deferred_work.clock = true;
    node.threads.defer(SYSTEM_QUEUE);
}
