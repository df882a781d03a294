//! The circle of blocks to which transactions are appended.
//!
//! The log is emptied as a whole, by a *checkpoint*: when every block in it is at home, the superblock says that it begins where it
//! ends. Invariant: `used` blocks before `next` belong to transactions since the last checkpoint.

use crate::format::{revocations_in, tags_in};
use crate::superblock::Superblock;

/// The log of a journal in use.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    superblock: Superblock,
    block_size: usize,
    /// Where the next transaction goes.
    next: u32,
    /// Its sequence number.
    sequence: u32,
    used: u32,
}

impl Log {
    /// An empty log, whose next transaction has the superblock's sequence number.
    pub fn new(superblock: Superblock, block_size: usize) -> Log {
        Log { superblock, block_size, next: superblock.first, sequence: superblock.sequence, used: 0 }
    }

    /// Returns the sequence number of the next transaction.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Returns how many blocks are free.
    pub fn free(&self) -> usize {
        (self.superblock.log_blocks() - self.used) as usize
    }

    /// Whether the log holds nothing.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns how many blocks a transaction takes.
    pub fn blocks_for(&self, contents: usize, revocations: usize) -> usize {
        let descriptors = contents.div_ceil(tags_in(self.block_size));
        contents + descriptors + revocations.div_ceil(revocations_in(self.block_size)) + 1
    }

    /// Returns the limit of blocks that a transaction may change before it is committed.
    pub fn wanted_limit(&self) -> usize {
        self.superblock.log_blocks() as usize / 8
    }

    /// Returns how many blocks must be free when a transaction begins: those that it may change before it is committed, those of a
    /// request that begins then, and what describes both.
    pub fn reserve(&self, request: usize) -> usize {
        let contents = self.wanted_limit() + request;
        self.blocks_for(contents, contents) + 1
    }

    /// Takes the next block of the log. The caller has checked that the transaction fits.
    pub fn append(&mut self) -> u32 {
        let block = self.next;
        self.next = self.superblock.after(block);
        self.used += 1;
        block
    }

    /// Ends the transaction, which is on the disk.
    pub fn committed(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Empties the log, whose blocks are at home. Returns the superblock that says so.
    pub fn checkpointed(&mut self) -> Superblock {
        self.used = 0;
        Superblock { start: self.next, sequence: self.sequence, ..self.superblock }
    }

    /// Empties the log for the last time. Returns the superblock that says that it is out of use.
    pub fn closed(&mut self) -> Superblock {
        Superblock { start: 0, ..self.checkpointed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_a_circle_and_a_transaction_that_is_begun_fits() {
        let superblock = Superblock { length: 1024, first: 1, sequence: 3, start: 0, error: 0, is_version_2: true };
        let mut log = Log::new(superblock, 1024);
        assert_eq!(log.blocks_for(1, 0), 3);
        assert_eq!(log.blocks_for(124, 252), 127);
        assert_eq!(log.blocks_for(125, 253), 130);
        assert!(log.reserve(256) < log.free() / 2);
        for _ in 0..1022 {
            log.append();
        }
        assert_eq!((log.free(), log.is_empty()), (1, false));
        log.committed();
        let checkpoint = log.checkpointed();
        assert_eq!((checkpoint.start, checkpoint.sequence), (1023, 4));
        assert_eq!((log.append(), log.append(), log.free()), (1023, 1, 1021));
        assert_eq!(log.closed().start, 0);
    }
}
