//! Numbers in foreign structures.

/// Reads a little-endian number; `None` past the end of `bytes`.
pub(crate) fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(length)?)?;
    Some(field.iter().rev().fold(0, |value, &byte| value << 8 | byte as u64))
}
