//! Measures the cost of register accesses, for `./skink bench io`: with the argument `measure=ports` each line's registers are
//! wrapped in [`Measured`]. Without it none of this code runs.
//!
//! A measurement lasts from one setting of the line's speed to the next, which writes its figures into the log:
//! `ports 0x2f8 at 38400 bit/s: IN count ticks squares, OUT count ticks squares`; ticks and squares are sums.

use crate::chip::{DIVISOR_ACCESS, Registers, register};
use crate::settings::BASE_RATE;
use abi::Errno;
use core::fmt;
use sys::time::ticks;

/// Accesses of one direction.
#[derive(Clone, Copy, Default)]
struct Tally {
    count: u64,
    ticks: u64,
    /// Sum of the squares, for the deviation.
    squares: u64,
}

impl Tally {
    fn add(&mut self, ticks: u64) {
        self.count += 1;
        self.ticks += ticks;
        self.squares += ticks * ticks;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.count, self.ticks, self.squares)
    }
}

/// Registers whose accesses are measured.
pub struct Measured<R> {
    registers: R,
    first_port: u16,
    input: Tally,
    output: Tally,
    divisor: [u8; 2],
    sets_divisor: bool,
    /// Ticks between two consecutive readings of the counter.
    reading: u64,
}

impl<R: Registers> Measured<R> {
    /// Wraps the registers behind the ports from `first_port` on.
    pub fn new(registers: R, first_port: u16) -> Self {
        let before = ticks();
        let reading = ticks() - before;
        let (input, output) = Default::default();
        Measured { registers, first_port, input, output, divisor: [0; 2], sets_divisor: false, reading }
    }

    /// Reports the measurement and starts a new one, at a change of speed.
    fn report(&mut self) {
        let (input, output) = (core::mem::take(&mut self.input), core::mem::take(&mut self.output));
        let rate = BASE_RATE / u32::from(u16::from_le_bytes(self.divisor)).max(1);
        sys::log!("ports {:#x} at {rate} bit/s: IN {input}, OUT {output}", self.first_port);
    }

    /// Returns the ticks since `before`, less the cost of reading the counter; 0 if that exceeds them, as it can where a tick is a
    /// unit of time, not an instruction.
    fn since(&self, before: u64) -> u64 {
        ticks().saturating_sub(before).saturating_sub(self.reading)
    }

    /// Returns whether this write is part of setting the speed.
    fn notices(&mut self, at: u16, value: u8) -> bool {
        if at == register::LINE_CONTROL {
            let begins = value & DIVISOR_ACCESS != 0;
            if begins {
                self.report();
            }
            return core::mem::replace(&mut self.sets_divisor, begins) || begins;
        }
        if self.sets_divisor
            && let Some(byte) = self.divisor.get_mut(usize::from(at))
        {
            *byte = value;
        }
        self.sets_divisor
    }
}

impl<R: Registers> Registers for Measured<R> {
    fn read(&mut self, at: u16) -> Result<u8, Errno> {
        let before = ticks();
        let result = self.registers.read(at);
        let taken = self.since(before);
        if !self.sets_divisor {
            self.input.add(taken);
        }
        result
    }

    fn write(&mut self, at: u16, value: u8) -> Result<(), Errno> {
        if self.notices(at, value) {
            return self.registers.write(at, value);
        }
        let before = ticks();
        let result = self.registers.write(at, value);
        self.output.add(self.since(before));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Registers that keep what was written last.
    struct Latch(u8);

    impl Registers for Latch {
        fn read(&mut self, _: u16) -> Result<u8, Errno> {
            Ok(self.0)
        }
        fn write(&mut self, _: u16, value: u8) -> Result<(), Errno> {
            self.0 = value;
            Ok(())
        }
    }

    #[test]
    fn accesses_go_through_and_are_counted() {
        let mut measured = Measured::new(Latch(0), 0x2f8);
        measured.write(register::DATA, 7).expect("writes");
        assert_eq!(measured.read(register::DATA), Ok(7));
        assert_eq!(measured.read(register::LINE_STATUS), Ok(7));
        assert_eq!((measured.input.count, measured.output.count), (2, 1));
    }

    #[test]
    fn setting_the_speed_begins_a_measurement_and_is_no_part_of_it() {
        let mut measured = Measured::new(Latch(0), 0x2f8);
        measured.write(register::DATA, 7).expect("writes");
        measured.write(register::LINE_CONTROL, DIVISOR_ACCESS).expect("writes");
        measured.write(register::DIVISOR_LOW, 3).expect("writes");
        measured.write(register::DIVISOR_HIGH, 0).expect("writes");
        measured.write(register::LINE_CONTROL, 3).expect("writes");
        assert_eq!((measured.output.count, measured.divisor), (0, [3, 0]));
        measured.write(register::DATA, 7).expect("writes");
        assert_eq!((measured.output.count, measured.divisor), (1, [3, 0]));
    }

    #[test]
    fn sums_are_those_of_the_accesses() {
        let mut tally = Tally::default();
        tally.add(3);
        tally.add(4);
        assert_eq!(std::format!("{tally}"), "2 7 25");
    }
}
