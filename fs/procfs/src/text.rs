//! Texts as files show them.

use abi::Errno;
use alloc::vec::Vec;
use core::fmt;
pub use sys::text::Text;

/// A text that cannot be had is empty, unless memory is short.
///
/// # Errors
/// `ENOMEM`.
pub fn or_empty(text: Result<Vec<u8>, Errno>) -> Result<Vec<u8>, Errno> {
    match text {
        Err(error) if error != Errno::ENOMEM => Ok(Vec::new()),
        text => text,
    }
}

/// Parses a decimal number without leading zeros.
pub fn number(name: &[u8]) -> Option<u32> {
    let canonical = name == b"0" || name.first().is_some_and(|&digit| digit != b'0');
    let digits = name.iter().all(u8::is_ascii_digit);
    if canonical && digits { core::str::from_utf8(name).ok()?.parse().ok() } else { None }
}

/// Bytes that are mostly UTF-8; what is not is shown as U+FFFD.
pub struct Lossy<'a>(pub &'a [u8]);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            out.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                out.write_str("\u{fffd}")?;
            }
        }
        Ok(())
    }
}
