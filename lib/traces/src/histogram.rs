//! Durations, or other numbers, in buckets by powers of two.

use core::fmt::{self, Write};

/// Widest bar, in letters.
const BAR: u64 = 40;

/// Count, sum, extremes, and how many fell into each bucket: bucket 0 has 0, bucket `n` has `2^(n-1)` to `2^n - 1`.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: [u32; 65],
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Histogram {
    /// An empty one.
    pub const fn new() -> Histogram {
        Histogram { buckets: [0; 65], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        let bucket = &mut self.buckets[(u64::BITS - value.leading_zeros()) as usize];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The smallest; 0 if there is none.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The largest.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Their mean, rounded down.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// The largest value of the bucket in which the value lies that `percent` of all do not exceed, or the largest of all if that is less.
    pub fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += count as u64;
            if seen >= rank {
                return last_of(bucket).min(self.max);
            }
        }
        self.max
    }

    /// Writes a line with a bar for each bucket from the first to the last that is not empty.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn draw(&self, out: &mut impl Write) -> fmt::Result {
        let used = |&bucket: &usize| self.buckets[bucket] > 0;
        let (Some(first), Some(last)) = ((0..65).find(used), (0..65).rfind(used)) else { return Ok(()) };
        let most = self.buckets.iter().copied().max().unwrap_or(1).max(1) as u64;
        for bucket in first..=last {
            let count = self.buckets[bucket];
            let bar = (count as u64 * BAR).div_ceil(most) as usize;
            writeln!(out, "  {:>12} .. {:<12} {count:>8} {:#<bar$}", first_of(bucket), last_of(bucket), "")?;
        }
        Ok(())
    }
}

fn first_of(bucket: usize) -> u64 {
    if bucket == 0 { 0 } else { 1 << (bucket - 1) }
}

fn last_of(bucket: usize) -> u64 {
    if bucket == 0 { 0 } else { u64::MAX >> (64 - bucket) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.add(value));
        histogram
    }

    #[test]
    fn an_empty_one_is_all_zeros() {
        let empty = of([]);
        assert_eq!((empty.count(), empty.min(), empty.max(), empty.mean(), empty.percentile(99)), (0, 0, 0, 0, 0));
        let mut text = String::new();
        empty.draw(&mut text).expect("a string takes all");
        assert_eq!(text, "");
    }

    #[test]
    fn a_percentile_is_never_below_the_value_and_less_than_twice_it() {
        let histogram = of(1..=1000);
        for (percent, exact) in [(1, 10), (50, 500), (99, 990), (100, 1000)] {
            let found = histogram.percentile(percent);
            assert!((exact..2 * exact).contains(&found), "{percent}: {found}");
        }
        assert_eq!((histogram.min(), histogram.max(), histogram.mean()), (1, 1000, 500));
    }

    #[test]
    fn extreme_values_have_buckets() {
        let histogram = of([0, 1, u64::MAX, u64::MAX]);
        assert_eq!((histogram.min(), histogram.max(), histogram.sum()), (0, u64::MAX, u64::MAX));
        assert_eq!((histogram.percentile(25), histogram.percentile(50), histogram.percentile(100)), (0, 1, u64::MAX));
    }

    #[test]
    fn bars_are_drawn_for_buckets_in_between_too() {
        let mut text = String::new();
        of([2, 3, 9]).draw(&mut text).expect("a string takes all");
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0][..4], ["2", "..", "3", "2"]);
        assert_eq!(lines[1][..4], ["4", "..", "7", "0"]);
        assert_eq!((lines[0][4].len(), lines[1].len(), lines[2][4].len()), (40, 4, 20));
    }
}
