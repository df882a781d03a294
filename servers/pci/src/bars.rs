//! The address ranges of a function: how long they are, where they are, and a place for those that the firmware has not placed.

use crate::config::{Address, ConfigSpace, register};

/// Ranges of a function.
pub const BARS: usize = 6;

/// `COMMAND`: answers to ports, to memory.
pub const DECODE: u32 = 3;
/// A BAR of ports.
const PORTS: u32 = 1;
/// The bits of a BAR that tell what it is, for ports and for memory.
const PORT_FLAGS: u32 = 3;
const MEMORY_FLAGS: u32 = 15;
/// A memory BAR of 64 bits, which takes the next register too.
const WIDE: u32 = 4;

/// Where unplaced ranges go: below the local APIC and the firmware; and ports above those of old devices.
const MEMORY_WINDOW: (u64, u64) = (0xf000_0000, 0xfec0_0000);
const PORT_WINDOW: (u64, u64) = (0xd000, 0x1_0000);

/// One range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First physical address or port; 0: not placed.
    pub start: u64,
    /// Length, 0: there is none.
    pub bytes: u64,
    /// Ports, not memory.
    pub ports: bool,
    /// Its register takes 64 bits.
    pub wide: bool,
}

impl Range {
    /// It exists and the firmware has not placed it.
    pub fn is_unplaced(&self) -> bool {
        self.bytes > 0 && self.start == 0
    }

    fn overlaps(&self, start: u64, bytes: u64, ports: bool) -> bool {
        let placed = self.bytes > 0 && self.start > 0 && self.ports == ports;
        placed && start < self.start + self.bytes && self.start < start + bytes
    }
}

/// Lengths of a function's ranges in a word, for rs to keep while pci is restarted: in byte n the logarithm of range n, plus one; 0: no such
/// range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes(u64);

impl Sizes {
    /// Says that the ranges have been measured, if there are none either.
    const MEASURED: u64 = 1 << 63;

    /// The lengths of these ranges.
    pub fn of(ranges: &[Range; BARS]) -> Sizes {
        let words = (0..).zip(ranges).filter(|(_, range)| range.bytes > 0);
        Sizes(words.fold(Self::MEASURED, |sizes, (bar, range)| sizes | u64::from(range.bytes.ilog2() + 1) << (8 * bar)))
    }

    /// From [`Sizes::word`]; `None` unless the ranges have been measured.
    pub fn from_word(word: u64) -> Option<Sizes> {
        (word & Self::MEASURED != 0).then_some(Sizes(word))
    }

    /// The word.
    pub fn word(self) -> u64 {
        self.0
    }

    fn bytes(self, bar: usize) -> u64 {
        match self.0.to_le_bytes()[bar] {
            0 => 0,
            logarithm => 1u64.checked_shl(u32::from(logarithm) - 1).unwrap_or(0),
        }
    }
}

/// Measures all ranges of a function. It does not decode meanwhile, so nobody may be using it.
pub fn measure(config: &mut impl ConfigSpace, address: Address) -> [Range; BARS] {
    let command = config.read(address, register::COMMAND, 2);
    config.write(address, register::COMMAND, 2, command & !DECODE);
    let ranges = each(|bar| measure_one(config, address, bar, command & DECODE != 0));
    config.write(address, register::COMMAND, 2, command);
    ranges
}

/// The ranges of a function that has been measured before. Changes nothing, so that it may be in use.
pub fn read(config: &mut impl ConfigSpace, address: Address, sizes: Sizes) -> [Range; BARS] {
    each(|bar| {
        let low = config.read32(address, register_of(bar));
        let kind = Kind::of(low, bar);
        let high = if kind.wide { config.read32(address, register_of(bar + 1)) } else { 0 };
        kind.range(low, high, sizes.bytes(bar))
    })
}

/// The ranges in their places; a wide one takes its own and the next, which has none.
fn each(mut range_of: impl FnMut(usize) -> Range) -> [Range; BARS] {
    let mut ranges = [Range::default(); BARS];
    let mut bar = 0;
    while bar < BARS {
        ranges[bar] = range_of(bar);
        bar += if ranges[bar].wide { 2 } else { 1 };
    }
    ranges
}

fn register_of(bar: usize) -> u8 {
    register::FIRST_BAR + 4 * bar as u8
}

/// What the lowest bits of a BAR say of its range.
#[derive(Clone, Copy)]
struct Kind {
    ports: bool,
    wide: bool,
    flags: u32,
}

impl Kind {
    fn of(low: u32, bar: usize) -> Kind {
        let ports = low & PORTS != 0;
        let wide = !ports && low & 6 == WIDE && bar + 1 < BARS;
        Kind { ports, wide, flags: if ports { PORT_FLAGS } else { MEMORY_FLAGS } }
    }

    fn range(self, low: u32, high: u32, bytes: u64) -> Range {
        let start = u64::from(low & !self.flags) | u64::from(high) << 32;
        Range { start: if bytes > 0 { start } else { 0 }, bytes, ports: self.ports, wide: self.wide }
    }
}

/// Measures one range. `decoded`: the function answered before. If it did not, a predecessor may have died here: a range with all ones in
/// its register has no place.
fn measure_one(config: &mut impl ConfigSpace, address: Address, bar: usize, decoded: bool) -> Range {
    let (low, low_mask) = exchange(config, address, register_of(bar));
    let kind = Kind::of(low, bar);
    let (high, high_mask) = if kind.wide { exchange(config, address, register_of(bar + 1)) } else { (0, 0) };
    let mask = u64::from(low_mask & !kind.flags) | u64::from(high_mask) << 32;
    // The lowest bit that can be set is the length.
    let bytes = mask & mask.wrapping_neg();
    let was_left = |value: u32, mask: u32| !decoded && value == mask && mask & !kind.flags != 0;
    if was_left(low, low_mask) || was_left(high, high_mask) {
        return Range { start: 0, ..kind.range(low, high, bytes) };
    }
    kind.range(low, high, bytes)
}

/// Returns the register, and its value after writing all ones; restores it.
fn exchange(config: &mut impl ConfigSpace, address: Address, offset: u8) -> (u32, u32) {
    let value = config.read32(address, offset);
    config.write(address, offset, 4, !0);
    let mask = config.read32(address, offset);
    config.write(address, offset, 4, value);
    (value, mask)
}

/// Gives every range of a function that has no place one that no other range in `taken` has. A range for which there is no room is dropped.
pub fn place(config: &mut impl ConfigSpace, address: Address, ranges: &mut [Range; BARS], taken: &[Range]) {
    for bar in 0..BARS {
        let Range { bytes, ports, wide, .. } = ranges[bar];
        if !ranges[bar].is_unplaced() {
            continue;
        }
        let others = || taken.iter().chain(ranges.iter());
        let found =
            free_place(bytes, ports, |start| others().find(|other| other.overlaps(start, bytes, ports)).copied());
        let Some(start) = found else {
            ranges[bar] = Range { wide, ..Range::default() };
            continue;
        };
        config.write(address, register_of(bar), 4, start as u32);
        if wide {
            config.write(address, register_of(bar + 1), 4, (start >> 32) as u32);
        }
        ranges[bar].start = start;
    }
}

/// The first aligned place in the window that overlaps with nothing.
fn free_place(bytes: u64, ports: bool, in_the_way: impl Fn(u64) -> Option<Range>) -> Option<u64> {
    let (first, end) = if ports { PORT_WINDOW } else { MEMORY_WINDOW };
    let mut start = first.checked_next_multiple_of(bytes)?;
    while start.checked_add(bytes).is_some_and(|after| after <= end) {
        match in_the_way(start) {
            None => return Some(start),
            Some(other) => start = (other.start + other.bytes).checked_next_multiple_of(bytes)?,
        }
    }
    None
}
