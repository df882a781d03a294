//! A text that is formatted on behalf of a program, so that it may fail.

use crate::fallible::TryVec;
use abi::Errno;
use alloc::vec::Vec;
use core::fmt;

/// A text that grows fallibly. Writing fails for lack of memory, or because its writer has failed.
#[derive(Debug, Default)]
pub struct Text {
    bytes: Vec<u8>,
    error: Option<Errno>,
}

impl Text {
    /// Returns the text that `write` writes.
    ///
    /// # Errors
    /// `ENOMEM`; else what the writer has [`failed`](Text::failed) with.
    pub fn of(write: impl FnOnce(&mut Text) -> fmt::Result) -> Result<Vec<u8>, Errno> {
        let mut text = Text::default();
        match write(&mut text) {
            Ok(()) => Ok(text.bytes),
            Err(fmt::Error) => Err(text.error.unwrap_or(Errno::ENOMEM)),
        }
    }

    /// Notes why the writer fails, which `fmt::Error` does not tell.
    pub fn failed(&mut self, error: Errno) -> fmt::Error {
        self.error = Some(error);
        fmt::Error
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends bytes, which need not be UTF-8.
    ///
    /// # Errors
    /// Lack of memory.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.bytes.try_extend_from_slice(bytes).map_err(|_| fmt::Error)
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write_bytes(text.as_bytes())
    }
}
