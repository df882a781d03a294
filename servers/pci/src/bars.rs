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

/// Measures all ranges of a function. It does not decode meanwhile, so nobody may be using it.
pub fn measure(config: &mut impl ConfigSpace, address: Address) -> [Range; BARS] {
    let command = config.read(address, register::COMMAND, 2);
    config.write(address, register::COMMAND, 2, command & !DECODE);
    let mut ranges = [Range::default(); BARS];
    let mut bar = 0;
    while bar < BARS {
        ranges[bar] = measure_one(config, address, bar);
        bar += if ranges[bar].wide { 2 } else { 1 };
    }
    config.write(address, register::COMMAND, 2, command);
    ranges
}

fn register_of(bar: usize) -> u8 {
    register::FIRST_BAR + 4 * bar as u8
}

fn measure_one(config: &mut impl ConfigSpace, address: Address, bar: usize) -> Range {
    let (low, low_mask) = exchange(config, address, register_of(bar));
    let ports = low & PORTS != 0;
    let flags = if ports { PORT_FLAGS } else { MEMORY_FLAGS };
    let wide = !ports && low & 6 == WIDE && bar + 1 < BARS;
    let mut start = u64::from(low & !flags);
    // Ports may leave the upper half of the register without function.
    let mut mask = u64::from(low_mask & !flags) | if ports && low_mask >> 16 == 0 { 0xffff_0000 } else { 0 };
    if wide {
        let (high, high_mask) = exchange(config, address, register_of(bar + 1));
        start |= u64::from(high) << 32;
        mask |= u64::from(high_mask) << 32;
    } else {
        mask |= 0xffff_ffff << 32;
    }
    let implemented = low_mask & !flags != 0 || (wide && mask >> 32 != 0);
    let bytes = if implemented { (!mask).wrapping_add(1) } else { 0 };
    Range { start: if bytes > 0 { start } else { 0 }, bytes, ports, wide }
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
