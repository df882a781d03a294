//! State as bytes: numbers and runs of bytes, one after the other, in the order in which they are read again.

use alloc::vec::Vec;

/// Writes state.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// What has been written; the writer is empty afterwards, with its memory.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Begins again.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A number.
    pub fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Bytes, in two pieces.
    pub fn run(&mut self, (first, second): (&[u8], &[u8])) {
        self.number((first.len() + second.len()) as u64);
        self.bytes.extend_from_slice(first);
        self.bytes.extend_from_slice(second);
    }
}

/// Reads state. Whatever the bytes are, it gives something or `None`.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Of what a [`Writer`] has written.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// A number.
    pub fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*number))
    }

    /// Bytes.
    pub fn run(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (run, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(run)
    }
}
