//! Lines that have left a terminal at its top, to be looked at again.
//!
//! They lie in preserved memory as a ring, and are not committed: a line's place follows from its number, and how many there have been is part of the
//! terminal's snapshot. A successor that shows bytes again puts the same lines into the same places.

use crate::cell::{Cell, Pen};
use crate::grid::MAX_COLUMNS;
use sys::keep::Keep;
use zerocopy::IntoBytes;

/// Lines of a terminal that are kept.
pub const LINES: usize = 200;
/// A line: how many cells it has, and these.
const LINE_WORDS: usize = 1 + MAX_COLUMNS;
const WORD: usize = size_of::<u64>();
/// Preserved memory of a terminal's lines, in bytes.
pub const BYTES: usize = LINES * LINE_WORDS * WORD;

/// See the head of the file.
#[derive(Default)]
pub struct History {
    /// `None`: lines are counted only.
    keep: Option<Keep>,
    /// Lines that have left since boot.
    count: u64,
}

impl History {
    /// After so many lines, which are nowhere yet.
    pub fn after(count: u64) -> History {
        History { keep: None, count }
    }

    /// The memory where the lines are: `BYTES`.
    pub fn set_memory(&mut self, keep: Keep) {
        self.keep = Some(keep);
    }

    /// Lines that have left since boot.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many lines back one can look.
    pub fn len(&self) -> usize {
        if self.keep.is_some() { self.count.min(LINES as u64) as usize } else { 0 }
    }

    /// Adds a line.
    pub fn push(&mut self, cells: &[Cell]) {
        if let Some(keep) = &self.keep {
            let mut line = [0; LINE_WORDS];
            line[0] = cells.len().min(MAX_COLUMNS) as u64;
            line[1..].iter_mut().zip(cells).for_each(|(word, cell)| *word = cell.0);
            keep.write(offset(self.count), line[..=cells.len().min(MAX_COLUMNS)].as_bytes());
        }
        self.count += 1;
    }

    /// Copies the line that left as the `back`-th last, from 1, and fills the rest with blanks.
    pub fn copy(&self, back: usize, into: &mut [Cell]) {
        into.fill(Cell::blank(Pen::PLAIN));
        let Some(keep) = self.keep.as_ref().filter(|_| (1..=self.len()).contains(&back)) else { return };
        let mut line = [0_u64; LINE_WORDS];
        keep.read(offset(self.count - back as u64), line.as_mut_bytes());
        let length = (line[0] as usize).min(MAX_COLUMNS);
        into.iter_mut().zip(&line[1..=length]).for_each(|(cell, word)| *cell = Cell(*word));
    }
}

fn offset(number: u64) -> usize {
    (number % LINES as u64) as usize * LINE_WORDS * WORD
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    fn memory() -> &'static [AtomicU64] {
        sys::host::zeroed(BYTES)
    }

    fn line(history: &History, back: usize) -> String {
        let mut cells = [Cell::blank(Pen::PLAIN); 4];
        history.copy(back, &mut cells);
        cells.iter().map(|cell| cell.character()).collect()
    }

    #[test]
    fn the_newest_lines_are_kept_and_a_successor_has_them() {
        let memory = memory();
        let mut history = History::default();
        history.set_memory(Keep::simulated(memory, u64::MAX));
        assert_eq!((history.len(), line(&history, 1)), (0, "    ".into()));
        for number in 0..LINES + 50 {
            let text: Vec<Cell> = format!("{number}").chars().map(|letter| Cell::new(letter, Pen::PLAIN)).collect();
            history.push(&text);
        }
        let mut successor = History::after(history.count());
        successor.set_memory(Keep::simulated(memory, u64::MAX));
        for history in [&history, &successor] {
            assert_eq!((history.len(), line(history, 1), line(history, LINES)), (LINES, "249 ".into(), "50  ".into()));
            assert_eq!(line(history, LINES + 1), "    ");
        }
    }
}
