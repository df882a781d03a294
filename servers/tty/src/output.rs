//! What happens to bytes on their way to the screen: output processing (OPOST and its friends) and the cursor's column,
//! which erasing a tab needs. Bounded: a writer waits while the queue is full.
//!
//! Neighbours: `discipline` echoes through here, `terminal` takes bytes out for uart.

use crate::termios::{Termios, oflag};
use alloc::collections::VecDeque;

/// Writers wait when this many bytes are queued.
pub const HIGH_WATER: usize = 4096;
/// Echo may go somewhat above it, then it is dropped, as on Linux.
const ECHO_LIMIT: usize = HIGH_WATER + 1024;
/// Distance of tab stops.
const TAB: usize = 8;

/// Bytes waiting for the device.
#[derive(Default)]
pub struct Output {
    queue: VecDeque<u8>,
    column: usize,
    stopped: bool,
}

impl Output {
    /// The cursor's column.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Room for a writer, in bytes before processing.
    pub fn room(&self) -> usize {
        HIGH_WATER.saturating_sub(self.queue.len())
    }

    /// Bytes waiting.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Stops or restarts the flow (^S, ^Q, TCXONC).
    pub fn set_stopped(&mut self, stopped: bool) {
        self.stopped = stopped;
    }

    /// True while ^S holds the output back.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Drops what waits.
    pub fn flush(&mut self) {
        self.queue.clear();
    }

    /// Queues one byte that a program wrote.
    pub fn write(&mut self, termios: &Termios, byte: u8) {
        if !termios.has_output(oflag::OPOST) {
            return self.put(byte);
        }
        match byte {
            b'\n' if termios.has_output(oflag::ONLCR) => {
                self.put(b'\r');
                self.put(b'\n');
            }
            b'\n' => {
                if termios.has_output(oflag::ONLRET) {
                    self.column = 0;
                }
                self.put(b'\n');
            }
            b'\r' if termios.has_output(oflag::ONOCR) && self.column == 0 => {}
            b'\r' if termios.has_output(oflag::OCRNL) => self.put(b'\n'),
            b'\t' if termios.output & oflag::TABDLY == oflag::XTABS => {
                for _ in 0..tab_width(self.column) {
                    self.put(b' ');
                }
            }
            _ => self.put(byte),
        }
    }

    /// Queues one byte of echo; dropped when the queue is overfull.
    pub fn echo(&mut self, termios: &Termios, byte: u8) {
        if self.queue.len() < ECHO_LIMIT {
            self.write(termios, byte);
        }
    }

    /// Takes up to `buffer.len()` bytes for the device; none while stopped.
    pub fn take(&mut self, buffer: &mut [u8]) -> usize {
        if self.stopped {
            return 0;
        }
        let count = buffer.len().min(self.queue.len());
        for (slot, byte) in buffer.iter_mut().zip(self.queue.drain(..count)) {
            *slot = byte;
        }
        count
    }

    fn put(&mut self, byte: u8) {
        self.column = column_after(self.column, byte);
        self.queue.push_back(byte);
    }
}

/// Columns from `column` to the next tab stop.
pub fn tab_width(column: usize) -> usize {
    TAB - column % TAB
}

/// The column after `byte` was printed at `column`.
fn column_after(column: usize, byte: u8) -> usize {
    match byte {
        b'\r' => 0,
        b'\x08' => column.saturating_sub(1),
        b'\t' => column + tab_width(column),
        b' '..=b'~' => column + 1,
        // The first byte of a UTF-8 character takes a column, the rest none.
        0xc0.. => column + 1,
        _ => column,
    }
}
