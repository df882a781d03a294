//! The table of `service top`: for each pair of processes and label a histogram of the time from request to reply.
//!
//! Neighbours: `calls` (pairs requests with replies); who the threads are is the program's to know.

use crate::histogram::Histogram;
use crate::label::Label;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Rows that are kept: further ones are counted in [`Latencies::others`].
pub const MAX_ROWS: usize = 1024;

/// Who asked, whom, and what. `N` identifies a process.
pub type Row<N> = (N, N, Label);

/// The table.
#[derive(Debug)]
pub struct Latencies<N> {
    rows: BTreeMap<Row<N>, Histogram>,
    others: Histogram,
}

impl<N: Ord + Copy> Latencies<N> {
    /// An empty one.
    pub fn new() -> Latencies<N> {
        Latencies { rows: BTreeMap::new(), others: Histogram::new() }
    }

    /// Adds a call that took so long.
    pub fn add(&mut self, row: Row<N>, duration: u64) {
        let is_full = self.rows.len() >= MAX_ROWS;
        match self.rows.get_mut(&row) {
            Some(histogram) => histogram.add(duration),
            None if is_full => self.others.add(duration),
            None => {
                let mut histogram = Histogram::new();
                histogram.add(duration);
                self.rows.insert(row, histogram);
            }
        }
    }

    /// Calls for which there was no row left.
    pub fn others(&self) -> &Histogram {
        &self.others
    }

    /// The rows, those that took longest in sum first.
    pub fn sorted(&self) -> Vec<(&Row<N>, &Histogram)> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|(_, histogram)| core::cmp::Reverse(histogram.sum()));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_pair_and_label() {
        let mut table = Latencies::new();
        for (row, duration) in [((1, 2, Label(0)), 10), ((1, 2, Label(0)), 20), ((1, 3, Label(0)), 100)] {
            table.add(row, duration);
        }
        let rows: Vec<_> = table.sorted().into_iter().map(|(row, all)| (row.1, all.count(), all.sum())).collect();
        assert_eq!(rows, [(3, 1, 100), (2, 2, 30)]);
    }

    #[test]
    fn what_has_no_row_is_counted_with_the_others() {
        let mut table = Latencies::new();
        for from in 0..3 * MAX_ROWS {
            table.add((from, 0, Label(0)), 7);
        }
        assert_eq!((table.sorted().len(), table.others().count()), (MAX_ROWS, 2 * MAX_ROWS as u64));
        table.add((0, 0, Label(0)), 7);
        assert_eq!(table.others().count(), 2 * MAX_ROWS as u64, "known ones still have their row");
    }
}
