//! Symbol tables of the boot archive: names and unwind rules of a program's functions, for backtraces in crash reports. xtask makes
//! one of each service's binary from its ELF symbols and `.debug_frame` (file `NAME` + [`SUFFIX`]); rs reads it.
//!
//! Layout, little endian: [`MAGIC`]; `u64` address of the ring of recent messages (`server::recent`), 0: none; `u32` count of functions;
//! `u32` length of the rules; for each function, ascending, three `u32`: address, offset of its rules, offset of its name; the rules;
//! the names, each with NUL behind it.
//!
//! The rules of a function are rows of three LEB128 numbers: address above the row before (the first: above the function); eighths of
//! the distance of the CFA from a register, doubled, plus 1 when that is `rbp` and not `rsp`; eighths of how far below the CFA the
//! caller's `rbp` is saved, 0: it is still in `rbp`. The CFA is the caller's `rsp`, and the return address is just below it. A function
//! without rows ends a backtrace.

use crate::layout::PAGE_BYTES;

/// First eight bytes.
pub const MAGIC: [u8; 8] = *b"SKINKSY1";
/// Suffix of the binary's name in the archive.
pub const SUFFIX: &str = ".symbols";
/// Name of the archive's file with the labels of all messages: lines of the label in hexadecimal, a blank, and `protocol::Message`.
pub const LABELS: &str = "labels";
/// Length of the header.
pub const HEADER_BYTES: usize = 24;
/// Length of a function's entry.
pub const ENTRY_BYTES: usize = 12;

/// A symbol table in memory.
#[derive(Clone, Copy, Debug)]
pub struct Symbols<'a> {
    recent: u64,
    entries: &'a [u8],
    rules: &'a [u8],
    names: &'a [u8],
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// First address.
    pub start: u64,
    /// Name.
    pub name: &'a str,
}

/// Unwind rule: the way from a stack frame to its caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The CFA is counted from `rbp`, not `rsp`.
    pub from_rbp: bool,
    /// Distance of the CFA.
    pub cfa_bytes: u64,
    /// Distance of the caller's saved `rbp` below the CFA; 0: still in the register.
    pub rbp_below: u64,
}

impl<'a> Symbols<'a> {
    /// Opens the table in these bytes; `None` if the header is not a table's. Offsets are checked when they are used.
    pub fn new(bytes: &'a [u8]) -> Option<Symbols<'a>> {
        let header = bytes.get(..HEADER_BYTES)?;
        if header[..8] != MAGIC {
            return None;
        }
        let recent = u64::from_le_bytes(header[8..16].try_into().ok()?);
        let [count, rule_bytes] = [number(header, 16)?, number(header, 20)?];
        let (entries, rest) = bytes[HEADER_BYTES..].split_at_checked(count.checked_mul(ENTRY_BYTES)?)?;
        let (rules, names) = rest.split_at_checked(rule_bytes)?;
        Some(Symbols { recent, entries, rules, names })
    }

    /// Returns the address of the ring of recent messages; 0: none.
    pub fn recent(&self) -> u64 {
        self.recent
    }

    /// Returns the last function that starts at or below this address.
    pub fn function(&self, address: u64) -> Option<Function<'a>> {
        let entry = self.entry(self.index(address)?)?;
        let name = self.names.get(entry[2]..)?;
        let length = name.iter().position(|&byte| byte == 0)?;
        Some(Function { start: entry[0] as u64, name: core::str::from_utf8(&name[..length]).ok()? })
    }

    /// Returns the unwind rule at this address.
    pub fn rule(&self, address: u64) -> Option<Rule> {
        let index = self.index(address)?;
        let [start, first, _] = self.entry(index)?;
        let end = self.entry(index + 1).map_or(self.rules.len(), |next| next[1]);
        let mut rows = Numbers(self.rules.get(first..end)?);
        let mut at = start as u64;
        let mut rule = None;
        while let Some(delta) = rows.next() {
            at = at.checked_add(delta)?;
            let (cfa, rbp) = (rows.next()?, rows.next()?);
            if at > address {
                break;
            }
            rule = Some(Rule {
                from_rbp: cfa & 1 != 0,
                cfa_bytes: (cfa >> 1).checked_mul(8)?,
                rbp_below: rbp.checked_mul(8)?,
            });
        }
        rule
    }

    fn index(&self, address: u64) -> Option<usize> {
        let count = self.entries.len() / ENTRY_BYTES;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            if self.entry(middle)?[0] as u64 <= address { low = middle + 1 } else { high = middle }
        }
        let index = low.checked_sub(1)?;
        // Beyond the last function is no code of this program.
        let is_near = index + 1 < count || address - (self.entry(index)?[0] as u64) < 16 * PAGE_BYTES;
        is_near.then_some(index)
    }

    fn entry(&self, index: usize) -> Option<[usize; 3]> {
        let entry = self.entries.get(index * ENTRY_BYTES..)?;
        Some([number(entry, 0)?, number(entry, 4)?, number(entry, 8)?])
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

/// Decoder of consecutive LEB128 numbers.
struct Numbers<'a>(&'a [u8]);

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= ((byte & 0x7f) as u64) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    /// Functions at 0x1000 (two rows, the second 0x10 above with a CFA of rbp+16 and rbp saved at -16) and at 0x2000 (no rows).
    fn table() -> Vec<u8> {
        let rules = [0, 1 << 1, 0, 0x10, 2 << 1 | 1, 2];
        let mut bytes = Vec::from(MAGIC);
        bytes.extend(0x5000u64.to_le_bytes());
        for number in [2, rules.len() as u32, 0x1000, 0, 0, 0x2000, rules.len() as u32, 6] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(rules);
        bytes.extend(b"first\0second\0");
        bytes
    }

    #[test]
    fn functions_are_found_by_address() {
        let bytes = table();
        let symbols = Symbols::new(&bytes).expect("is a table");
        assert_eq!(symbols.recent(), 0x5000);
        assert_eq!(symbols.function(0xfff), None);
        assert_eq!(symbols.function(0x1fff), Some(Function { start: 0x1000, name: "first" }));
        assert_eq!(symbols.function(0x2000), Some(Function { start: 0x2000, name: "second" }));
        assert_eq!(symbols.function(0x90_0000), None);
    }

    #[test]
    fn the_rule_of_the_last_row_at_or_below_holds() {
        let bytes = table();
        let symbols = Symbols::new(&bytes).expect("is a table");
        let entered = Rule { from_rbp: false, cfa_bytes: 8, rbp_below: 0 };
        let framed = Rule { from_rbp: true, cfa_bytes: 16, rbp_below: 16 };
        assert_eq!([0x1000, 0x100f, 0x1010].map(|at| symbols.rule(at)), [Some(entered), Some(entered), Some(framed)]);
        assert_eq!(symbols.rule(0x2000), None);
    }

    #[test]
    fn damaged_tables_are_refused_or_know_nothing() {
        let whole = table();
        for length in 0..whole.len() {
            if let Some(symbols) = Symbols::new(&whole[..length]) {
                let _ = (symbols.function(0x2000), symbols.rule(0x1010));
            }
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            if let Some(symbols) = Symbols::new(&damaged) {
                let _ = (symbols.function(0x1010), symbols.rule(0x1010));
            }
        }
    }
}
