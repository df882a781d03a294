//! adjtimex(2) and clock_adjtime(2): the state of a clock that nobody disciplines.

use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::state::time::SECOND_NS;
use crate::system::System;
use abi::{Capability, Errno};

type Result<T> = core::result::Result<T, Errno>;

/// Size of `struct timex`.
const BYTES: usize = 208;
/// Places of its fields.
mod field {
    pub const MAX_ERROR: usize = 24;
    pub const ESTIMATED_ERROR: usize = 32;
    pub const STATUS: usize = 40;
    pub const CONSTANT: usize = 48;
    pub const PRECISION: usize = 56;
    pub const TOLERANCE: usize = 64;
    pub const SECONDS: usize = 72;
    pub const FRACTION: usize = 80;
    pub const TICK: usize = 88;
}

/// Bits of `modes`.
mod mode {
    pub const SINGLE_SHOT: u32 = 1;
    pub const NANO: u32 = 0x2000;
    pub const ADJTIME: u32 = 0x8000;
    /// adjtime(3) without a new offset (`ADJ_OFFSET_SS_READ`).
    pub const READ_SINGLE_SHOT: u32 = ADJTIME | NANO | SINGLE_SHOT;
}

/// What a clock has that has never been adjusted: errors as large as they get, a tick of 10 ms, and a frequency that may be off by 500 ppm.
const STATE: [(usize, u64); 7] = [
    (field::MAX_ERROR, 16_000_000),
    (field::ESTIMATED_ERROR, 16_000_000),
    (field::STATUS, STA_UNSYNC),
    (field::CONSTANT, 2),
    (field::PRECISION, 1),
    (field::TOLERANCE, 32_768_000),
    (field::TICK, 10_000),
];
const STA_UNSYNC: u64 = 0x40;
/// The result for a clock that is not synchronised.
const TIME_ERROR: u64 = 5;

impl<S: System> Programs<S> {
    /// `clock_adjtime(clock, timex)`: shows the state of the wall clock, which can be set, but not be adjusted. `EINVAL`, `EPERM`;
    /// `EOPNOTSUPP`: another clock.
    pub fn clock_adjtime(&mut self, t: ThreadIndex, clock: i32, address: u64) -> Result<u64> {
        match clock {
            0 => {}
            1..=9 | 11 => return Err(Errno::EOPNOTSUPP),
            _ => return Err(Errno::EINVAL),
        }
        let mut timex = [0; BYTES];
        let endpoint = self.table[t].endpoint();
        self.system.read(endpoint, address, &mut timex)?;
        let modes = u32::from_le_bytes([timex[0], timex[1], timex[2], timex[3]]);
        if modes & mode::ADJTIME != 0 && modes & mode::SINGLE_SHOT == 0 {
            return Err(Errno::EINVAL);
        }
        let only_reads = modes == 0 || modes == mode::READ_SINGLE_SHOT;
        if !only_reads && !self.credentials_of(t).has(Capability::SysTime) {
            return Err(Errno::EPERM);
        }
        if !only_reads {
            return Err(Errno::EINVAL);
        }
        let modes = modes.to_le_bytes();
        timex = [0; BYTES];
        timex[..4].copy_from_slice(&modes);
        let now_ns = self.system.time_ns().1;
        let time = [(field::SECONDS, now_ns / SECOND_NS), (field::FRACTION, now_ns % SECOND_NS / 1000)];
        for (at, value) in STATE.into_iter().chain(time) {
            timex[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        self.write_bytes(t, address, &timex)?;
        Ok(TIME_ERROR)
    }
}
