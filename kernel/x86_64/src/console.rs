//! The kernel's own voice: the first serial line, polled, and a ring that keeps the newest text (`info::LOG`).
//!
//! The line belongs to the uart driver once that runs; the kernel then only adds what services say with `Diag`, and its last words.

use crate::{cpu::in8, cpu::out8};
use core::fmt;

/// Length of the ring.
pub const LOG_BYTES: usize = 16 * 1024;

const COM1: u16 = 0x3f8;
const LINE_STATUS: u16 = COM1 + 5;
const TRANSMITTER_EMPTY: u8 = 0x20;
/// A line that is not ready after so many looks is not there.
const PATIENCE: u32 = 100_000;

/// The console.
pub struct Console {
    log: [u8; LOG_BYTES],
    written: usize,
    /// Only the log gets text, unless the kernel panics.
    pub quiet: bool,
}

impl Console {
    /// A console with an empty log.
    pub const NEW: Self = Console { log: [0; LOG_BYTES], written: 0, quiet: false };

    /// Sets the line to 115200 baud, 8N1, no interrupts.
    pub fn start(&self) {
        for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 3)] {
            out8(COM1 + register, value);
        }
    }

    /// Writes text to the log and, unless quiet, the line.
    #[inline(always)]
    pub fn write(&mut self, text: &[u8]) {
        for &byte in text {
            self.log[self.written % LOG_BYTES] = byte;
            self.written += 1;
            if !self.quiet {
                send(byte);
            }
        }
    }

    /// Returns the log from byte `offset` of what it still holds to its end, or to that of the ring.
    pub fn log(&self, offset: usize) -> &[u8] {
        let count = self.written.min(LOG_BYTES).saturating_sub(offset);
        let start = (self.written - count) % LOG_BYTES;
        &self.log[start..LOG_BYTES.min(start + count)]
    }
}

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text.as_bytes());
        Ok(())
    }
}

fn send(byte: u8) {
    if byte == b'\n' {
        send(b'\r');
    }
    for _ in 0..PATIENCE {
        if in8(LINE_STATUS) & TRANSMITTER_EMPTY != 0 {
            break;
        }
    }
    out8(COM1, byte);
}
