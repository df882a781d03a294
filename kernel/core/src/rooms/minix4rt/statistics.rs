//! The state of the real-time world as a whole: mode, clock, counters.

use crate::{
    Machine, memory::copy::CHUNK_BYTES, rooms::Kernel, rooms::minix4rt::control::Words, rooms::minix4rt::interrupt,
};

use abi::{rt::CLOCK_HZ, rt::mode};
use zerocopy::FromZeros;

/// See `abi::rt::SystemValues` and `SystemStatistics`.
#[derive(Clone, Copy, Debug, FromZeros)]
pub(super) struct System {
    /// Real-time mode.
    pub is_on: bool,
    /// Options of `mode`.
    pub options: u64,
    pub harmonic: u64,
    pub refresh: u64,
    /// Ticks of the machine in one of the real-time clock; 1 in standard mode.
    pub tick_tsc: u64,
    /// When the real-time clock was started, in ticks of the machine.
    began: u64,
    /// Ticks of the machine in 2^20 ns.
    tsc_in_shifted_ns: u64,
    /// Real-time processes.
    pub active: u32,
    /// Messages received.
    pub messages: u64,
    /// `Node::switches` and `Node::interrupts` when they were cleared.
    base_switches: u64,
    base_interrupts: u64,
    /// Worst lateness of the timer, in ticks of the machine.
    pub lateness: u64,
}

const SHIFT: u32 = 20;

impl System {
    /// The real-time clock at a count of the machine's.
    pub fn tick_at(&self, ticks: u64) -> u64 {
        ticks.saturating_sub(self.began).checked_div(self.tick_tsc).unwrap_or(0)
    }

    /// What is left of a deadline in ticks of the real-time clock; 0 without one.
    pub fn laxity(&self, sent: u64, deadline: u64, now: u64) -> i64 {
        if deadline == 0 { 0 } else { deadline as i64 - self.tick_at(now).saturating_sub(self.tick_at(sent)) as i64 }
    }

    /// The time from `b` to `a`, counts of the machine, in ns.
    pub fn signed_ns(&self, a: u64, b: u64) -> i64 {
        let ns = (a.abs_diff(b) << SHIFT).checked_div(self.tsc_in_shifted_ns).unwrap_or(0) as i64;
        if a >= b { ns } else { -ns }
    }
}

/// Real-time mode with this clock; everything measured begins anew.
pub fn start_real_time_mode<M: Machine>(kernel: &mut Kernel, m: &mut M, harmonic: u64, refresh: u64) {
    kernel.node.chunk_bytes = CHUNK_BYTES / 16;
    let system = &mut kernel.mrt.system;
    system.is_on = true;
    system.harmonic = harmonic;
    system.refresh = refresh;
    system.tick_tsc = m.ns_to_ticks(1_000_000_000 / (CLOCK_HZ * harmonic)).max(1);
    system.tsc_in_shifted_ns = m.ns_to_ticks(1 << SHIFT).max(1);
    system.began = m.ticks();
    clear_system_statistics(kernel);
    interrupt::restart_interrupts(kernel, m, true);
}

/// Standard mode.
pub fn stop_real_time_mode<M: Machine>(kernel: &mut Kernel, m: &mut M) {
    interrupt::restart_interrupts(kernel, m, false);
    kernel.node.chunk_bytes = CHUNK_BYTES;
    kernel.mrt.system = System { options: kernel.mrt.system.options, ..System::new_zeroed() };
}

/// `CLRSSTAT`.
pub fn clear_system_statistics(kernel: &mut Kernel) {
    let system = &mut kernel.mrt.system;
    (system.base_switches, system.base_interrupts) = (kernel.node.threads.switches(), kernel.node.interrupts);
    (system.messages, system.lateness) = (0, 0);
}

/// `GETSSTAT`, but for idle times, which mrt knows.
pub fn system_statistics<M: Machine>(kernel: &mut Kernel, m: &mut M) -> Words {
    let s = &kernel.mrt.system;
    let (scheds, interrupts) =
        (kernel.node.threads.switches() - s.base_switches, kernel.node.interrupts - s.base_interrupts);
    let ticks = s.tick_at(m.ticks());
    [scheds, s.messages, interrupts, ticks, ticks >> 32, 0, 0, 0]
}

/// `GETSVAL`.
pub fn system_values(kernel: &Kernel) -> Words {
    let s = &kernel.mrt.system;
    let flags = s.options | if s.is_on { mode::RTMODE } else { 0 };
    let (harmonic, lateness_ns) = (s.harmonic.max(1), s.signed_ns(s.lateness, 0) as u64);
    let rate = CLOCK_HZ * harmonic;
    [flags, kernel.node.deferred_work.low_lines(), lateness_ns, s.tick_tsc, rate, harmonic, s.refresh, 0]
}
