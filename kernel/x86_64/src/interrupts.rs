//! Interrupt vectors: which is whose, and those that came while the kernel was waiting.
//!
//! In the kernel interrupts are off except in the two places below. What comes there is only recorded by its vector; the loop in
//! `entry` handles it as soon as they are off again. So no handler ever runs in the middle of core's work.

use core::{arch::asm, sync::atomic::AtomicU64, sync::atomic::Ordering::Relaxed};

/// Interrupt lines (ISA numbers, global system interrupts) have the numbers below this.
pub const LINES: usize = 64;
/// Message-signalled interrupts have line numbers from `LINES` to below this.
pub const ALL_LINES: usize = 128;
/// Vector of line 0.
const FIRST_LINE: u64 = 0x40;
const LAST_LINE: u64 = FIRST_LINE + ALL_LINES as u64 - 1;
/// Vector of the timer: above all lines.
pub const TIMER: u64 = 0xf0;
/// Vector of interrupts that were gone before the CPU could take them.
pub const SPURIOUS: u64 = 0xff;

/// Where an interrupt comes from.
pub enum Source {
    /// An interrupt line or a message-signalled interrupt.
    Line(usize),
    /// This CPU's timer.
    Timer,
    /// Nothing that wants an answer.
    Spurious,
}

/// One bit a vector: it came and nobody has handled it.
static RECORDED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
/// True when a bit is set there.
static ANY: AtomicU64 = AtomicU64::new(0);

/// The vector of a line.
pub fn vector_of_line(line: usize) -> u64 {
    FIRST_LINE + line as u64
}

/// Where the interrupt with this vector comes from.
pub fn source(vector: u64) -> Source {
    match vector {
        TIMER => Source::Timer,
        FIRST_LINE..=LAST_LINE => Source::Line((vector - FIRST_LINE) as usize),
        _ => Source::Spurious,
    }
}

/// Called by the handler in kernel mode.
pub fn record(vector: u64) {
    RECORDED[vector as usize / 64 % 4].fetch_or(1 << (vector % 64), Relaxed);
    ANY.store(1, Relaxed);
}

/// Has an interrupt come that nobody has handled?
pub fn recorded() -> bool {
    ANY.load(Relaxed) != 0
}

/// Takes the most urgent recorded vector.
pub fn next_recorded() -> Option<u64> {
    for (word, bits) in RECORDED.iter().enumerate().rev() {
        let value = bits.load(Relaxed);
        if value != 0 {
            let bit = 63 - value.leading_zeros() as u64;
            bits.store(value & !(1 << bit), Relaxed);
            return Some(word as u64 * 64 + bit);
        }
    }
    ANY.store(0, Relaxed);
    None
}

/// Halts the CPU until an interrupt has been recorded.
pub fn wait() {
    // SAFETY: the interrupt table is loaded; the handler touches nothing but the record. `sti` takes effect after `hlt` has begun.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) }
}

/// Lets interrupts that wait be recorded.
pub fn open_window() {
    // SAFETY: as in `wait`.
    unsafe { asm!("sti", "nop", "cli", options(nostack)) }
}
