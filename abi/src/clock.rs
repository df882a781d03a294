//! How ticks of the time-stamp counter become nanoseconds, and the page in which programs find what they need to read the clocks without a
//! call. The kernel, vm, which writes the page, and the vDSO compute with the same functions, so that nobody sees a clock go backwards.
//!
//! This file stands alone: `lib/vdso` compiles it into the image, too.

use core::sync::atomic::{AtomicU64, Ordering, fence};

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Returns `numerator / denominator` as a factor for [`scale`], with 32 bits of fraction: reading a clock needs no division.
pub const fn factor(numerator: u64, denominator: u64) -> u64 {
    (((numerator as u128) << 32) / denominator as u128) as u64
}

/// Multiplies by a [`factor`]; what does not fit is `u64::MAX`.
#[inline(always)]
pub const fn scale(value: u64, factor: u64) -> u64 {
    let scaled = (value as u128 * factor as u128) >> 32;
    if scaled > u64::MAX as u128 { u64::MAX } else { scaled as u64 }
}

/// One moment on both clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since the kernel was entered.
    pub monotonic_ns: u64,
    /// Since 1970.
    pub real_ns: u64,
}

/// The page that every program sees, for reading: its words are `SEQUENCE` and those after it, which are valid while the sequence is even and
/// stays as it is.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct ClockPage([AtomicU64; 4]);

/// Odd: the real-time clock is being set.
const SEQUENCE: usize = 0;
/// The tick that is monotonic time 0.
const ENTRY_TSC: usize = 1;
/// A factor for [`scale`].
const NS_PER_TICK: usize = 2;
/// Real time less monotonic time.
const REAL_OFFSET_NS: usize = 3;

impl ClockPage {
    /// Bytes of the page that mean something.
    pub const BYTES: usize = size_of::<ClockPage>();

    /// Returns the content of a page. Programs that find an odd `sequence` make the system call.
    pub fn content(sequence: u64, entry_tsc: u64, ns_per_tick: u64, real_offset_ns: u64) -> [u8; Self::BYTES] {
        let words = [sequence, entry_tsc, ns_per_tick, real_offset_ns];
        core::array::from_fn(|at| words[at / 8].to_le_bytes()[at % 8])
    }

    /// Reads the clocks. `None`: the real-time clock is being set, only the kernel knows. `ticks` reads the counter.
    #[inline(always)]
    pub fn read(&self, ticks: impl FnOnce() -> u64) -> Option<Moment> {
        let word = |at: usize| self.0[at].load(Ordering::Relaxed);
        let sequence = word(SEQUENCE);
        fence(Ordering::Acquire);
        if sequence % 2 != 0 {
            return None;
        }
        let monotonic_ns = scale(ticks().saturating_sub(word(ENTRY_TSC)), word(NS_PER_TICK));
        let real_ns = monotonic_ns.wrapping_add(word(REAL_OFFSET_NS));
        fence(Ordering::Acquire);
        // It is not tried again: a program that keeps to its time would wait for who sets the clock.
        (word(SEQUENCE) == sequence).then_some(Moment { monotonic_ns, real_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: [u64; 4]) -> ClockPage {
        ClockPage(words.map(AtomicU64::new))
    }

    /// Marsaglia's xorshift64*.
    fn next(state: &mut u64) -> u64 {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    #[test]
    fn ticks_become_nanoseconds_as_exact_arithmetic_has_them() {
        let mut state = 1;
        for _ in 0..100_000 {
            let hz = next(&mut state) % 10_000_000_000 + 1_000_000;
            let ticks = next(&mut state) >> (next(&mut state) % 40 + 8);
            let exact = u128::from(ticks) * u128::from(SECOND_NS) / u128::from(hz);
            let scaled = u128::from(scale(ticks, factor(SECOND_NS, hz)));
            let error = exact - scaled;
            assert!(error <= (u128::from(ticks) >> 32) + 1, "{ticks} ticks of {hz} Hz: {scaled}, not {exact}");
            assert!(scale(ticks + 1, factor(SECOND_NS, hz)) as u128 >= scaled, "it never goes backwards");
        }
        assert_eq!(scale(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(scale(7, factor(1, 1)), 7);
    }

    #[test]
    fn the_page_shows_both_clocks() {
        let page = page([2, 1000, factor(SECOND_NS, 2 * SECOND_NS), 5_000_000]);
        assert_eq!(page.read(|| 3000), Some(Moment { monotonic_ns: 1000, real_ns: 5_001_000 }));
        // Before 1970, by the offset, and before the kernel was entered.
        page.0[REAL_OFFSET_NS].store(0u64.wrapping_sub(600), Ordering::Relaxed);
        assert_eq!(page.read(|| 3000), Some(Moment { monotonic_ns: 1000, real_ns: 400 }));
        assert_eq!(page.read(|| 7).map(|moment| moment.monotonic_ns), Some(0));
    }

    #[test]
    fn a_clock_that_is_being_set_is_not_read() {
        let unfinished = page([3, 0, 1 << 32, 0]);
        assert_eq!(unfinished.read(|| 5), None);
        let changing = page([4, 0, 1 << 32, 0]);
        let set = || {
            changing.0[SEQUENCE].store(6, Ordering::Release);
            changing.0[REAL_OFFSET_NS].store(9, Ordering::Relaxed);
            5
        };
        assert_eq!(changing.read(set), None);
        assert_eq!(changing.read(|| 5).map(|moment| moment.real_ns), Some(14));
    }

    #[test]
    fn the_words_lie_where_the_reader_looks() {
        let bytes = ClockPage::content(2, 3, 4, 5);
        let words: [u64; 4] =
            core::array::from_fn(|word| u64::from_le_bytes(core::array::from_fn(|byte| bytes[8 * word + byte])));
        assert_eq!(words, [2, 3, 4, 5]);
    }
}
