//! A text that grows fallibly, and names in it.

use abi::Errno;
use alloc::vec::Vec;
use core::fmt;
use sys::fallible::TryVec;

/// The content of a file. Writing fails only for lack of memory.
#[derive(Debug, Default)]
pub struct Text(Vec<u8>);

impl Text {
    /// Returns the text that `write` writes.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn of(write: impl FnOnce(&mut Text) -> fmt::Result) -> Result<Vec<u8>, Errno> {
        let mut text = Text::default();
        write(&mut text).map_err(|_| Errno::ENOMEM)?;
        Ok(text.0)
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.try_extend_from_slice(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

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
