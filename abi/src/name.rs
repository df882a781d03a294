//! Names of services, devices and keys: up to 16 bytes, so that one fits into two words of a message.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A name of at most 16 bytes, padded with zeros.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Name(pub [u8; 16]);

impl Name {
    /// Makes a name of `text`; `None` if it is empty, longer than 16 bytes or holds a zero byte.
    pub const fn new(text: &str) -> Option<Name> {
        let bytes = text.as_bytes();
        if bytes.is_empty() || bytes.len() > 16 {
            return None;
        }
        let mut name = [0; 16];
        let mut i = 0;
        while i < bytes.len() {
            if bytes[i] == 0 {
                return None;
            }
            name[i] = bytes[i];
            i += 1;
        }
        Some(Name(name))
    }

    /// Encodes the name as two words of a message.
    pub fn to_words(self) -> (u64, u64) {
        let bits = u128::from_le_bytes(self.0);
        (bits as u64, (bits >> 64) as u64)
    }

    /// Decodes a name from two words of a message.
    pub fn from_words(low: u64, high: u64) -> Name {
        Name((low as u128 | (high as u128) << 64).to_le_bytes())
    }

    /// Returns the text without padding; "?" if it is not UTF-8.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&b| b == 0).unwrap_or(16);
        core::str::from_utf8(&self.0[..length]).unwrap_or("?")
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::fmt::Debug for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}
