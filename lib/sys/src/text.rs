//! A text that is formatted on behalf of a program, so that it may fail.

use crate::fallible::TryVec;
use abi::Errno;
use alloc::vec::Vec;
use core::fmt;

/// A text that grows fallibly. Writing fails only for lack of memory.
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

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends bytes, which need not be UTF-8.
    ///
    /// # Errors
    /// Lack of memory.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.0.try_extend_from_slice(bytes).map_err(|_| fmt::Error)
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write_bytes(text.as_bytes())
    }
}
