//! Text of a native program for people. Neighbour: `linux`.

use crate::linux;
use core::fmt::{self, Write};

/// Standard output.
pub const STANDARD_OUTPUT: i32 = 1;
/// Standard error.
pub const STANDARD_ERROR: i32 = 2;
/// Text is written in pieces of this size.
const BUFFER_BYTES: usize = 512;

/// A descriptor with a buffer, written when it is full and when it is dropped.
pub struct Output {
    descriptor: i32,
    buffer: [u8; BUFFER_BYTES],
    used: usize,
}

impl Output {
    /// Makes a buffer for this descriptor.
    pub fn new(descriptor: i32) -> Output {
        Output { descriptor, buffer: [0; BUFFER_BYTES], used: 0 }
    }

    fn flush(&mut self) -> fmt::Result {
        let mut rest = &self.buffer[..core::mem::take(&mut self.used)];
        while !rest.is_empty() {
            match linux::write(self.descriptor, rest) {
                Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
                _ => return Err(fmt::Error),
            }
        }
        Ok(())
    }
}

impl Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.used == BUFFER_BYTES {
                self.flush()?;
            }
            self.buffer[self.used] = byte;
            self.used += 1;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Standard output and error have failed: there is nowhere to report it.
        let _ = self.flush();
    }
}
