//! Units of time, and the structures in which programs give and get times.

use abi::Errno;

type Result<T> = core::result::Result<T, Errno>;

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;
/// Nanoseconds in a microsecond.
pub const MICRO_NS: u64 = 1_000;
/// Ticks a second of `times` and /proc.
pub const CLOCK_TICKS: u64 = 100;
/// Nanoseconds in such a tick.
pub const CLOCK_TICK_NS: u64 = SECOND_NS / CLOCK_TICKS;

/// Nanoseconds of a `timespec`. `EINVAL`: negative or too many nanoseconds. Far times count as the end of time.
pub fn from_timespec([seconds, nanoseconds]: [u64; 2]) -> Result<u64> {
    if (seconds as i64) < 0 || nanoseconds >= SECOND_NS {
        return Err(Errno::EINVAL);
    }
    Ok(seconds.saturating_mul(SECOND_NS).saturating_add(nanoseconds))
}

/// Nanoseconds of a `timeval`. `EINVAL` as above.
pub fn from_timeval([seconds, microseconds]: [u64; 2]) -> Result<u64> {
    from_timespec([seconds, microseconds.saturating_mul(MICRO_NS)])
}

/// A `timespec`.
pub fn to_timespec(ns: u64) -> [u64; 2] {
    [ns / SECOND_NS, ns % SECOND_NS]
}

/// A `timeval`.
pub fn to_timeval(ns: u64) -> [u64; 2] {
    [ns / SECOND_NS, ns % SECOND_NS / MICRO_NS]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_checked_and_far_ones_saturate() {
        assert_eq!(from_timespec([1, 5]), Ok(SECOND_NS + 5));
        assert_eq!(from_timespec([1, SECOND_NS]), Err(Errno::EINVAL));
        assert_eq!(from_timespec([u64::MAX, 0]), Err(Errno::EINVAL));
        assert_eq!(from_timespec([i64::MAX as u64, 0]), Ok(u64::MAX));
        assert_eq!(from_timeval([2, 3]), Ok(2 * SECOND_NS + 3000));
        assert_eq!(to_timeval(2 * SECOND_NS + 3999), [2, 3]);
    }
}
