//! Memory of free places goes back to vm when rs's heartbeat comes.
//!
//! Preserved memory costs frames where it has been written. After a peak of use the tables would keep theirs for good.

use super::{FILE_PAGE, PIPE_PAGE, Store, layout::Places, pool::scaled, records::BLOCK};
use core::ops::Range;
use recover::records::{Record, Recover};

/// A table returns memory when free places of this size in all, in bytes, have been used since the last time.
const TRIM_BYTES: usize = scaled(256 << 10, 4096);
/// Bytes of a cell.
const CELL_BYTES: usize = 8;

impl Store {
    /// Returns memory of free places to vm, after a peak of use.
    pub fn trim(&self) {
        let (recover, turn) = (&self.recover, self.turn());
        self.files.trim(recover, turn, 2 * CELL_BYTES, |run| {
            self.values.discard(recover, run.clone());
            self.flags.discard(recover, run);
        });
        self.pages.trim(recover, turn, PIPE_PAGE, |run| {
            self.content.discard(recover, run.start * PIPE_PAGE, run.len() * PIPE_PAGE);
        });
        self.dirty.trim(recover, turn, FILE_PAGE, |run| {
            // The times stay: all of them are 32 KiB.
            self.dirty_content.discard(recover, run.start * FILE_PAGE, run.len() * FILE_PAGE);
        });
        self.pipes.trim(recover, turn, 0, |_| {});
        self.lists.trim(recover, turn, 0, |_| {});
        self.interests.trim(recover, turn, CELL_BYTES, |run| self.terms.discard(recover, run));
        self.ancillaries.trim(recover, turn, 0, |_| {});
        self.blocks.compact(TRIM_BYTES / (BLOCK * CELL_BYTES), turn, |run| {
            self.descriptors.discard(recover, run.start * BLOCK..run.end * BLOCK);
        });
        self.texts.trim(recover, TRIM_BYTES, turn);
    }
}

impl<R: Record> Places<R> {
    /// Discards records of free places, and by `other` the `other_bytes` that each has elsewhere.
    fn trim(&self, recover: &Recover, turn: u64, other_bytes: usize, mut other: impl FnMut(Range<usize>)) {
        let least = TRIM_BYTES / ((R::WORDS + 1) * CELL_BYTES + other_bytes);
        self.pool.compact(least, turn, |run| {
            self.table.discard(recover, run.clone());
            other(run);
        });
    }
}
