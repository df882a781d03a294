//! Time: the time-stamp counter, calibrated once at boot, and the local APIC's timer in the same unit.
//!
//! Rates are kept as fixed-point factors with 32 bits of fraction, so that reading the clock needs no division.

use crate::{apic::Apic, cpu};

use abi::clock::{SECOND_NS, factor, scale};

/// Frequency of the PC's old timer.
const PIT_HZ: u64 = 1_193_182;
/// How long a calibration lasts, in PIT ticks: 2 ms.
const CALIBRATION_TICKS: u16 = 2386;
/// Calibrations until one is undisturbed.
const CALIBRATIONS: u32 = 10;
/// A calibration is disturbed when its two samples took more than this part of it: the machine paused (a host, or SMM) in one of them.
const DISTURBED: u64 = 32;
const PIT_CHANNEL_2: u16 = 0x42;
const PIT_COMMAND: u16 = 0x43;
/// Bit 0 lets channel 2 count, bit 1 is the speaker.
const PIT_GATE: u16 = 0x61;
/// Measured frequencies this close to a whole number of MHz are that number, one part in:
const ROUNDING: u64 = 5_000;
const MHZ: u64 = 1_000_000;

/// The clock of one CPU.
pub struct Clock {
    /// Ticks a second.
    pub tsc_hz: u64,
    /// TSC when the kernel was entered: monotonic time 0.
    pub entry_tsc: u64,
    ns_per_tick: u64,
    ticks_per_ns: u64,
    timer_per_tick: u64,
    deadline: u64,
}

impl Clock {
    /// A clock that stands still.
    pub const NEW: Self =
        Clock { tsc_hz: 0, entry_tsc: 0, ns_per_tick: 0, ticks_per_ns: 0, timer_per_tick: 0, deadline: u64::MAX };

    /// Measures the counter and the timer against the PIT.
    pub fn start(&mut self, apic: &Apic, entry_tsc: u64) {
        let mut left = CALIBRATIONS;
        let (ticks, timer_ticks, elapsed) = loop {
            apic.set_timer(u32::MAX);
            let (pit_first, tsc_first, timer_first, took_first) = sample(apic, start_pit());
            let (pit_last, tsc_last, timer_last, took_last) = sample(apic, pit_first.wrapping_sub(CALIBRATION_TICKS));
            apic.set_timer(0);
            left -= 1;
            if left == 0 || (took_first + took_last) * DISTURBED < tsc_last - tsc_first {
                break (tsc_last - tsc_first, timer_first - timer_last, pit_first.wrapping_sub(pit_last).max(1));
            }
        };
        let hz = |ticks: u64| round(ticks * PIT_HZ / elapsed as u64).max(1);
        self.tsc_hz = hz(ticks);
        let timer_hz = hz(timer_ticks as u64);
        self.entry_tsc = entry_tsc;
        self.ns_per_tick = factor(SECOND_NS, self.tsc_hz);
        self.ticks_per_ns = factor(self.tsc_hz, SECOND_NS);
        self.timer_per_tick = factor(timer_hz, self.tsc_hz);
    }

    /// Nanoseconds since the kernel was entered.
    pub fn to_ns(&self, ticks: u64) -> u64 {
        scale(ticks.saturating_sub(self.entry_tsc), self.ns_per_tick)
    }

    /// A duration in ticks, rounded up.
    pub fn to_ticks(&self, duration_ns: u64) -> u64 {
        scale(duration_ns, self.ticks_per_ns).saturating_add(1)
    }

    /// Makes the timer fire at this count, or never (`u64::MAX`).
    #[inline(always)]
    pub fn arm(&mut self, apic: &Apic, deadline: u64) {
        self.deadline = deadline;
        if deadline == u64::MAX {
            return apic.set_timer(0);
        }
        let wait = scale(deadline.saturating_sub(cpu::tsc()), self.timer_per_tick).saturating_add(1);
        apic.set_timer(u32::try_from(wait).unwrap_or(u32::MAX));
    }

    /// The timer fired: has the deadline come? If the timer is too short for it, it starts again.
    pub fn is_due(&mut self, apic: &Apic) -> bool {
        let due = self.deadline <= cpu::tsc();
        if !due {
            self.arm(apic, self.deadline);
        }
        due
    }
}

/// A quartz has a round frequency; what differs from it is the error of measurement.
fn round(hz: u64) -> u64 {
    let nearest = (hz + MHZ / 2) / MHZ * MHZ;
    if nearest.abs_diff(hz) < hz / ROUNDING { nearest } else { hz }
}

/// Lets channel 2 count down from its highest value and returns a count soon after.
fn start_pit() -> u16 {
    cpu::out8(PIT_GATE, cpu::in8(PIT_GATE) & !2 | 1);
    cpu::out8(PIT_COMMAND, 0xb0);
    cpu::out8(PIT_CHANNEL_2, 0xff);
    cpu::out8(PIT_CHANNEL_2, 0xff);
    read_pit().wrapping_sub(1)
}

fn read_pit() -> u16 {
    cpu::out8(PIT_COMMAND, 0x80);
    let low = cpu::in8(PIT_CHANNEL_2);
    u16::from_le_bytes([low, cpu::in8(PIT_CHANNEL_2)])
}

/// Waits until the PIT's count has come down to `target`, reads all three counters at that edge, and says how many ticks that took.
fn sample(apic: &Apic, target: u16) -> (u16, u64, u32, u64) {
    loop {
        let begin = cpu::tsc();
        let count = read_pit();
        if count <= target {
            return (count, cpu::tsc(), apic.timer_count(), cpu::tsc() - begin);
        }
    }
}
