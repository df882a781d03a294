//! Structures in the memory of the calling program: read and written as little-endian words, with `EFAULT` on bad pointers.

use crate::index::ThreadIndex;
use crate::manager::Pm;
use crate::system::System;
use abi::Errno;

impl<S: System> Pm<S> {
    /// Bytes at `address` of the program.
    pub fn read_bytes<const N: usize>(&mut self, t: ThreadIndex, address: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.system.read(self.table[t].endpoint, address, &mut bytes)?;
        Ok(bytes)
    }

    /// Words at `address` of the program.
    pub fn read_words<const N: usize>(&mut self, t: ThreadIndex, address: u64) -> Result<[u64; N], Errno> {
        let mut words = [0; N];
        let mut bytes = [[0; 8]; N];
        self.system.read(self.table[t].endpoint, address, bytes.as_flattened_mut())?;
        for (word, bytes) in words.iter_mut().zip(bytes) {
            *word = u64::from_le_bytes(bytes);
        }
        Ok(words)
    }

    /// A word at `address` of the program.
    pub fn read_word(&mut self, t: ThreadIndex, address: u64) -> Result<u64, Errno> {
        self.read_words::<1>(t, address).map(|[word]| word)
    }

    /// Writes bytes to `address` of the program.
    pub fn write_bytes(&mut self, t: ThreadIndex, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.system.write(self.table[t].endpoint, address, bytes)
    }

    /// Writes words to `address` of the program.
    pub fn write_words<const N: usize>(&mut self, t: ThreadIndex, address: u64, words: [u64; N]) -> Result<(), Errno> {
        let bytes = words.map(u64::to_le_bytes);
        self.write_bytes(t, address, bytes.as_flattened())
    }

    /// Writes 32 bits to `address` of the program.
    pub fn write_u32(&mut self, t: ThreadIndex, address: u64, value: u32) -> Result<(), Errno> {
        self.write_bytes(t, address, &value.to_le_bytes())
    }
}
