//! Log lines of services, on the kernel's console and in its log. Not for the output of programs.

use crate::raw;
use abi::call::KernelCall;
use core::fmt::{self, Write};

/// Limit of the text of one kernel call, in bytes; a line may take several.
const PIECE_BYTES: usize = 256;

/// Writes one line `NAME: text` to the kernel's console.
#[macro_export]
macro_rules! log {
    ($($text:tt)*) => { $crate::console::write_line(format_args!($($text)*)) };
}

pub use log;

/// Writes a line as [`log!`] does.
pub fn write_line(text: fmt::Arguments) {
    let mut line = Line { bytes: [0; PIECE_BYTES], used: 0 };
    let _ = writeln!(line, "{}: {text}", crate::name());
    line.flush();
}

/// Writes text to the kernel's log. Errors are ignored: a service that may not log has nowhere to report them.
#[cfg(target_os = "none")]
pub fn write(text: &[u8]) {
    for piece in text.chunks(abi::layout::MAX_DIAG as usize) {
        let _ = raw::kernel_reading(KernelCall::Diag, [0, piece.len() as u64, 0, 0, 0, 0], 0, piece);
    }
}

/// Writes text to the test's kernel, or to standard error.
#[cfg(not(target_os = "none"))]
pub fn write(text: &[u8]) {
    if raw::is_installed() {
        let _ = raw::kernel_reading(KernelCall::Diag, [0, text.len() as u64, 0, 0, 0, 0], 0, text);
    } else {
        std::eprint!("{}", std::string::String::from_utf8_lossy(text));
    }
}

struct Line {
    bytes: [u8; PIECE_BYTES],
    used: usize,
}

impl Line {
    fn flush(&mut self) {
        write(&self.bytes[..self.used]);
        self.used = 0;
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.used == PIECE_BYTES {
                self.flush();
            }
            self.bytes[self.used] = byte;
            self.used += 1;
        }
        Ok(())
    }
}
