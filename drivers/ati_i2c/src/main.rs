//! ati_i2c: the bus of the display's cable (DDC) on a graphics card of ATI's (the first Radeons), as Linux's /dev/i2c-1. The display's EDID is at 0x50.
//!
//! The card has a register for the two wires, and the processor moves them; everything else is the kit's (`driver::i2c`).
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

use abi::Errno;
use driver::i2c::handles::{self, Handles};
use driver::i2c::{Bus, Wire, Wires};
use driver::{Region, pci};
use sys::keep::Keep;
use sys::time;

sys::program!(main);

/// Minor of the bus.
const BUS: u64 = 1;
/// The BAR with the registers, and how much of them is used.
const REGISTERS: u8 = 2;
const REGISTER_BYTES: usize = 0x1000;
/// Offset of the command register, and its bit that makes memory answer.
const COMMAND: u16 = 4;
const MEMORY_SPACE: u32 = 2;
/// Half a bit of 100,000 in a second.
const HALF_BIT_NS: u64 = 5_000;

/// The register of the wires of the DVI plug: for each wire the value that is driven, the value that is there, and whether it is driven.
const DVI_DDC: usize = 0x64;
const DATA_BIT: u32 = 0;
const CLOCK_BIT: u32 = 1;
const INPUT_SHIFT: u32 = 8;
const ENABLE_SHIFT: u32 = 16;
const WIRES: u32 = 1 << DATA_BIT | 1 << CLOCK_BIT;

fn main(_: sys::Start) {
    match set_up() {
        Ok(bus) => driver::chardev::serve(bus),
        Err(error) => server::not_ready(error),
    }
}

fn set_up() -> Result<Bus<Card<Region>>, Errno> {
    let handles = Handles::open(Keep::take(handles::KEEP_BYTES).expect("preserved memory is taken once"))?;
    let bar = pci::bar(REGISTERS)?;
    if bar.ports || bar.bytes < REGISTER_BYTES as u64 {
        return Err(Errno::ENODEV);
    }
    let command = pci::read(COMMAND, 2)?;
    pci::write(COMMAND, 2, command | MEMORY_SPACE)?;
    Bus::new(BUS, handles, Card::new(Region::registers(bar.start, REGISTER_BYTES)?))
}

/// The register.
trait Register {
    fn read(&self) -> u32;
    fn write(&self, value: u32);
}

impl Register for Region {
    fn read(&self) -> u32 {
        Region::read(self, DVI_DDC)
    }
    fn write(&self, value: u32) {
        Region::write(self, DVI_DDC, value);
    }
}

/// The wires at the register. A wire is pulled by driving the value 0, which is never changed, and released by not driving it.
struct Card<R> {
    register: R,
}

impl<R: Register> Card<R> {
    fn new(register: R) -> Self {
        let value = register.read();
        register.write(value & !WIRES & !(WIRES << ENABLE_SHIFT));
        Card { register }
    }
}

fn bit(wire: Wire) -> u32 {
    match wire {
        Wire::Clock => 1 << CLOCK_BIT,
        Wire::Data => 1 << DATA_BIT,
    }
}

impl<R: Register> Wires for Card<R> {
    fn pull(&mut self, wire: Wire, is_pulled: bool) {
        let (value, enable) = (self.register.read(), bit(wire) << ENABLE_SHIFT);
        self.register.write(if is_pulled { value | enable } else { value & !enable });
    }

    fn is_high(&mut self, wire: Wire) -> bool {
        self.register.read() & bit(wire) << INPUT_SHIFT != 0
    }

    fn pause(&mut self) {
        let end_ns = time::now_ns() + HALF_BIT_NS;
        while time::now_ns() < end_ns {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    impl Register for &Cell<u32> {
        fn read(&self) -> u32 {
            self.get()
        }
        fn write(&self, value: u32) {
            self.set(value);
        }
    }

    #[test]
    fn a_wire_is_driven_low_or_not_at_all() {
        let register = Cell::new(0xffff_0003);
        let mut card = Card::new(&register);
        assert_eq!(register.get(), 0xfffc_0000, "both are released, and what belongs to others stays");
        card.pull(Wire::Clock, true);
        assert_eq!(register.get(), 0xfffe_0000);
        card.pull(Wire::Data, true);
        card.pull(Wire::Clock, false);
        assert_eq!(register.get(), 0xfffd_0000);
        register.set(0x100);
        assert_eq!((card.is_high(Wire::Data), card.is_high(Wire::Clock)), (true, false));
    }
}
