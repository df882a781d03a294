//! Recovery: brings the transactions in a journal home.
//!
//! Three passes. The *scan* finds the last transaction that was committed, and checks the homes of all contents before anything is
//! written. *Revoke* collects which contents must not be replayed. *Replay* writes the others home. It can be repeated when it is cut
//! short: the journal is emptied by its superblock, which the caller writes afterwards.

use alloc::vec::Vec;

use abi::Errno;
use sys::fallible::{self, TryVec};

use crate::format::{Header, Kind, Tag, revoked, tags, unescape};
use crate::superblock::Superblock;

/// Where a journal and the homes of its blocks are.
pub trait Device {
    /// Reads a block of the journal.
    fn read_log(&mut self, block: u32, bytes: &mut [u8]) -> Result<(), Errno>;

    /// Whether a transaction may hold this block of the file system.
    fn is_home(&self, block: u32) -> bool;

    /// Writes a block of the file system.
    fn write_home(&mut self, block: u32, bytes: &[u8]) -> Result<(), Errno>;
}

/// What a recovery has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Transactions in the log.
    pub transactions: u32,
    /// Blocks written home.
    pub blocks: u32,
    /// Sequence number of the next transaction. One is left out, of which the log may have a part.
    pub sequence: u32,
}

/// Recovers a journal with blocks of `block_size` bytes. `EUCLEAN` for a committed transaction that makes no sense: nothing is
/// written then. `ENOMEM`; errors of the device.
pub fn recover(superblock: &Superblock, block_size: usize, device: &mut impl Device) -> Result<Recovered, Errno> {
    let mut recovered = Recovered { transactions: 0, blocks: 0, sequence: superblock.sequence };
    if superblock.start == 0 {
        return Ok(recovered);
    }
    let mut pass = Pass { superblock, device, block: fallible::filled(0, block_size)?, end: None };
    let end = pass.walk(&mut |_, _, _| Ok(()))?;
    pass.end = Some(end);
    let mut revocations = Revocations::default();
    pass.walk(&mut |device, sequence, record| match record {
        Record::Content { tag, .. } if !device.is_home(tag.home) => Err(Errno::EUCLEAN),
        Record::Content { .. } => Ok(()),
        Record::Revoked(home) => revocations.add(home, sequence),
    })?;
    revocations.sort();
    let mut content = fallible::filled(0, block_size)?;
    pass.walk(&mut |device, sequence, record| {
        let Record::Content { tag, log_block } = record else { return Ok(()) };
        if revocations.covers(tag.home, sequence) {
            return Ok(());
        }
        device.read_log(log_block, &mut content)?;
        if tag.is_escaped {
            unescape(&mut content);
        }
        recovered.blocks = recovered.blocks.saturating_add(1);
        device.write_home(tag.home, &content)
    })?;
    recovered.transactions = end.wrapping_sub(superblock.sequence);
    recovered.sequence = end.wrapping_add(1);
    Ok(recovered)
}

/// What a transaction holds.
enum Record {
    /// A block of the log, and its home.
    Content { tag: Tag, log_block: u32 },
    /// A home whose earlier contents are not replayed.
    Revoked(u32),
}

struct Pass<'a, D> {
    superblock: &'a Superblock,
    device: &'a mut D,
    block: Vec<u8>,
    /// The first transaction that was not committed, once it is known.
    end: Option<u32>,
}

impl<D: Device> Pass<'_, D> {
    /// Calls `act` with what the transactions hold, in order. Returns the sequence number of the first one that was not committed.
    fn walk(&mut self, act: &mut dyn FnMut(&mut D, u32, Record) -> Result<(), Errno>) -> Result<u32, Errno> {
        let mut sequence = self.superblock.sequence;
        let mut at = self.superblock.start;
        let mut left = self.superblock.log_blocks();
        while left > 0 && self.end != Some(sequence) {
            self.device.read_log(at, &mut self.block)?;
            let header = Header::read(&self.block).filter(|header| header.sequence == sequence);
            (at, left) = (self.superblock.after(at), left - 1);
            match header.map(|header| header.kind) {
                Some(Kind::Descriptor) => {
                    for tag in tags(&self.block) {
                        if left == 0 {
                            return Ok(sequence);
                        }
                        // The scan does not know yet whether the transaction counts.
                        if self.end.is_some() {
                            act(self.device, sequence, Record::Content { tag, log_block: at })?;
                        }
                        (at, left) = (self.superblock.after(at), left - 1);
                    }
                }
                Some(Kind::Revoke) if self.end.is_some() => {
                    for home in revoked(&self.block).ok_or(Errno::EUCLEAN)? {
                        act(self.device, sequence, Record::Revoked(home))?;
                    }
                }
                Some(Kind::Revoke) => {}
                Some(Kind::Commit) => sequence = sequence.wrapping_add(1),
                Some(Kind::Other(_)) | None => break,
            }
        }
        Ok(sequence)
    }
}

/// Homes, and the last transaction that has revoked each.
#[derive(Default)]
struct Revocations(Vec<(u32, u32)>);

impl Revocations {
    fn add(&mut self, home: u32, sequence: u32) -> Result<(), Errno> {
        self.0.try_push((home, sequence))
    }

    /// Sorts the homes; of each the last transaction remains.
    fn sort(&mut self) {
        let mut order = 0;
        let by_age = |one: u32, other: u32| (one.wrapping_sub(other) as i32).cmp(&0);
        self.0.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| by_age(one.1, other.1)));
        for at in 0..self.0.len() {
            let is_last = self.0.get(at + 1).is_none_or(|next| next.0 != self.0[at].0);
            if is_last {
                self.0[order] = self.0[at];
                order += 1;
            }
        }
        self.0.truncate(order);
    }

    /// Whether the content that transaction `sequence` has for `home` is revoked: by itself, or by a later one.
    fn covers(&self, home: u32, sequence: u32) -> bool {
        let found = self.0.binary_search_by_key(&home, |&(home, _)| home);
        found.is_ok_and(|at| (self.0[at].1.wrapping_sub(sequence) as i32) >= 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{escape, must_escape, write_commit, write_descriptor, write_revocation};
    use std::collections::BTreeMap;

    const BLOCK: usize = 1024;
    const LENGTH: u32 = 1024;
    const HOMES: u32 = 5000;

    struct Memory {
        log: Vec<[u8; BLOCK]>,
        homes: BTreeMap<u32, u8>,
        next: u32,
        superblock: Superblock,
    }

    impl Memory {
        /// A journal that begins at `start`.
        fn new(start: u32, sequence: u32) -> Memory {
            let superblock = Superblock { length: LENGTH, first: 1, sequence, start, error: 0, is_version_2: true };
            Memory { log: vec![[0; BLOCK]; LENGTH as usize], homes: BTreeMap::new(), next: start, superblock }
        }

        fn append(&mut self, fill: impl FnOnce(&mut [u8])) {
            fill(&mut self.log[self.next as usize]);
            self.next = self.superblock.after(self.next);
        }

        fn contents(&mut self, sequence: u32, contents: &[(u32, [u8; BLOCK])]) {
            let tag = |&(home, ref content): &(u32, [u8; BLOCK])| Tag { home, is_escaped: must_escape(content) };
            self.append(|block| write_descriptor(block, sequence, contents.iter().map(tag)));
            for (_, content) in contents {
                self.append(|block| {
                    block.copy_from_slice(content);
                    if must_escape(content) {
                        escape(block);
                    }
                });
            }
        }

        fn revoke(&mut self, sequence: u32, homes: &[u32]) {
            self.append(|block| write_revocation(block, sequence, homes));
        }

        fn commit(&mut self, sequence: u32) {
            self.append(|block| write_commit(block, sequence));
        }

        fn recover(&mut self) -> Result<Recovered, Errno> {
            let superblock = self.superblock;
            recover(&superblock, BLOCK, self)
        }
    }

    impl Device for Memory {
        fn read_log(&mut self, block: u32, bytes: &mut [u8]) -> Result<(), Errno> {
            bytes.copy_from_slice(&self.log[block as usize]);
            Ok(())
        }

        fn is_home(&self, block: u32) -> bool {
            (1..HOMES).contains(&block)
        }

        fn write_home(&mut self, block: u32, bytes: &[u8]) -> Result<(), Errno> {
            assert!(self.is_home(block));
            assert_eq!(bytes.len(), BLOCK);
            self.homes.insert(block, bytes[BLOCK - 1]);
            Ok(())
        }
    }

    fn of(value: u8) -> [u8; BLOCK] {
        [value; BLOCK]
    }

    #[test]
    fn transactions_count_with_their_commit() {
        let mut journal = Memory::new(1, 40);
        journal.contents(40, &[(7, of(1)), (8, of(2))]);
        journal.commit(40);
        journal.contents(41, &[(7, of(3))]);
        journal.contents(41, &[(9, of(4))]);
        journal.commit(41);
        journal.contents(42, &[(7, of(5))]);
        assert_eq!(journal.recover(), Ok(Recovered { transactions: 2, blocks: 4, sequence: 43 }));
        assert_eq!(journal.homes, BTreeMap::from([(7, 3), (8, 2), (9, 4)]));
    }

    #[test]
    fn a_log_goes_round_and_so_do_sequence_numbers() {
        let mut journal = Memory::new(LENGTH - 2, u32::MAX);
        journal.contents(u32::MAX, &[(7, of(1)), (8, of(2)), (9, of(3))]);
        journal.commit(u32::MAX);
        journal.revoke(0, &[8]);
        journal.contents(0, &[(7, of(4))]);
        journal.commit(0);
        assert_eq!(journal.recover(), Ok(Recovered { transactions: 2, blocks: 3, sequence: 2 }));
        assert_eq!(journal.homes, BTreeMap::from([(7, 4), (9, 3)]));
    }

    #[test]
    fn what_is_revoked_is_replayed_only_from_later_transactions() {
        let mut journal = Memory::new(1, 5);
        journal.contents(5, &[(7, of(1)), (8, of(1)), (9, of(1))]);
        journal.commit(5);
        journal.revoke(6, &[7, 8, 4_000_000]);
        journal.contents(6, &[(8, of(2))]);
        journal.commit(6);
        journal.contents(7, &[(7, of(3))]);
        journal.commit(7);
        journal.revoke(8, &[9]);
        assert_eq!(journal.recover(), Ok(Recovered { transactions: 3, blocks: 2, sequence: 9 }));
        // The revocation of 9 was not committed; that of 8 covers its own transaction.
        assert_eq!(journal.homes, BTreeMap::from([(7, 3), (9, 1)]));
    }

    #[test]
    fn a_content_that_looks_like_the_journal_is_restored() {
        let mut journal = Memory::new(1, 1);
        let mut content = of(9);
        write_commit(&mut content, 1);
        content[BLOCK - 1] = 77;
        journal.contents(1, &[(70, content)]);
        journal.commit(1);
        assert_eq!(journal.recover().unwrap().blocks, 1);
        assert_eq!(journal.homes, BTreeMap::from([(70, 77)]));
    }

    #[test]
    fn an_impossible_home_or_revocation_writes_nothing() {
        let mut journal = Memory::new(1, 1);
        journal.contents(1, &[(7, of(1)), (HOMES, of(2))]);
        journal.commit(1);
        assert_eq!(journal.recover(), Err(Errno::EUCLEAN));
        let mut other = Memory::new(1, 1);
        other.contents(1, &[(7, of(1))]);
        other.revoke(1, &[1]);
        crate::format::put_be32(&mut other.log[3], 12, 5000);
        other.commit(1);
        assert_eq!(other.recover(), Err(Errno::EUCLEAN));
        assert!(journal.homes.is_empty() && other.homes.is_empty());
    }

    #[test]
    fn a_log_without_end_is_walked_once() {
        let mut journal = Memory::new(1, 0);
        for block in &mut journal.log {
            // Content whose tags never end, for every block.
            write_descriptor(block, 0, (0..100).map(|home| Tag { home, is_escaped: false }));
        }
        assert_eq!(journal.recover(), Ok(Recovered { transactions: 0, blocks: 0, sequence: 1 }));
        for (number, block) in journal.log.iter_mut().enumerate().skip(1) {
            write_commit(block, number as u32 - 1);
        }
        assert_eq!(journal.recover().unwrap().transactions, LENGTH - 1);
    }

    #[test]
    fn a_journal_that_is_no_longer_in_use_is_left_alone() {
        let mut journal = Memory::new(0, 3);
        journal.next = 1;
        journal.contents(3, &[(7, of(1))]);
        journal.commit(3);
        assert_eq!(journal.recover(), Ok(Recovered { transactions: 0, blocks: 0, sequence: 3 }));
    }

    /// xorshift64*.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
        }
    }

    #[test]
    fn a_mutated_log_ends_in_an_error_that_writes_nothing_or_in_a_recovery() {
        let mut journal = Memory::new(LENGTH - 9, 40);
        for sequence in 40..46 {
            journal.revoke(sequence, &[sequence, sequence * 2, 77]);
            journal.contents(sequence, &[(7, of(1)), (sequence, of(2)), (77, of(3))]);
            journal.contents(sequence, &[(sequence * 2 - 1, of(4))]);
            journal.commit(sequence);
        }
        let used: Vec<u32> = (LENGTH - 9..LENGTH).chain(1..journal.next).collect();
        let mut first = [0; BLOCK];
        for (at, value) in [(0, crate::format::MAGIC), (4, 4), (12, 1024), (16, LENGTH), (20, 1), (24, 40)] {
            crate::format::put_be32(&mut first, at, value);
        }
        crate::format::put_be32(&mut first, 28, journal.superblock.start);
        journal.log[0] = first;
        let base = journal.log.clone();
        let mut random = Random(1);
        let (mut recovered, mut refused) = (0, 0);
        for _ in 0..100_000 {
            let mut touched = vec![0];
            for _ in 0..1 + random.below(4) {
                let block = if random.below(8) == 0 { 0 } else { used[random.below(used.len() as u64) as usize] };
                let range = if random.below(2) == 0 { 48 } else { BLOCK as u64 };
                let offset = random.below(range) as usize;
                let any = random.below(256);
                let value = [0, 1, 2, 5, 8, 0xff, any][random.below(7) as usize];
                journal.log[block as usize][offset] = value as u8;
                touched.push(block);
            }
            journal.homes.clear();
            let outcome = Superblock::read(&journal.log[0], BLOCK, LENGTH.into()).and_then(|superblock| {
                journal.superblock = superblock;
                journal.recover()
            });
            match outcome {
                Ok(_) => recovered += 1,
                Err(error) => {
                    assert!([Errno::EUCLEAN, Errno::EINVAL].contains(&error), "{error}");
                    assert!(journal.homes.is_empty());
                    refused += 1;
                }
            }
            touched.into_iter().for_each(|block| journal.log[block as usize] = base[block as usize]);
        }
        assert!(recovered > 10_000 && refused > 10_000, "{recovered} recovered, {refused} refused");
    }
}
