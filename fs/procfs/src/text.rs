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
