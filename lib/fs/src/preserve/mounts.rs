//! What is mounted: one record for each volume, in preserved memory.

use abi::{Endpoint, Name};
use sys::keep::Part;

use crate::volumes::Source;
use recover::check::check_word;
use recover::transaction::{self, Undo};

/// Bytes of a record.
pub const BYTES: usize = 128;

const WORDS: usize = 10;

const MOUNTED: u64 = 1 << 0;
const INCOMPLETE: u64 = 1 << 1;
const READ_ONLY: u64 = 1 << 2;
const HAS_SERVICE: u64 = 1 << 3;

/// A mounted volume, as its successor needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountRecord {
    /// What it is mounted from.
    pub source: Source,
    /// Whether the mount asked for refusing changes.
    pub read_only: bool,
    /// Who mounted it.
    pub owner: Endpoint,
    /// The mount has not been answered yet.
    pub incomplete: bool,
    /// What the file system wants to know again.
    pub memo: [u64; 4],
}

/// The place of one record.
pub struct MountPlace {
    part: Part,
    undo: Undo,
}

impl MountPlace {
    /// No volume, in memory that may hold anything.
    pub fn clear(part: &mut Part) {
        part[..BYTES].fill(0);
    }

    /// The record in `part`.
    pub fn open(part: Part, undo: Undo) -> MountPlace {
        MountPlace { part, undo }
    }

    /// The record; `None` when no volume is there. A damaged one is reported and is none.
    pub fn get(&self) -> Option<MountRecord> {
        let words: [u64; WORDS] = core::array::from_fn(|word| self.part.word(8 * word));
        if words[0] & MOUNTED == 0 {
            return None;
        }
        if self.part.word(8 * WORDS) != check_word(0, words) {
            sys::log!("the preserved record of a mounted file system is damaged: it is no longer mounted");
            return None;
        }
        let [flags, low, high, minor, owner, memo @ ..] = words;
        let service = (flags & HAS_SERVICE != 0).then(|| Name::from_words(low, high));
        Some(MountRecord {
            source: Source { service, minor },
            read_only: flags & READ_ONLY != 0,
            owner: Endpoint(owner as u32),
            incomplete: flags & INCOMPLETE != 0,
            memo: [memo[0], memo[1], memo[2], memo[3]],
        })
    }

    /// Changes the record, as part of the transaction.
    pub fn set(&mut self, record: Option<MountRecord>) {
        let mut words = [0; WORDS];
        if let Some(record) = record {
            let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
            let (low, high) = record.source.service.map_or((0, 0), Name::to_words);
            let flags = MOUNTED
                | flag(record.source.service.is_some(), HAS_SERVICE)
                | flag(record.read_only, READ_ONLY)
                | flag(record.incomplete, INCOMPLETE);
            words[..5].copy_from_slice(&[flags, low, high, record.source.minor, record.owner.0.into()]);
            words[5..9].copy_from_slice(&record.memo);
        }
        self.undo.save(self.part.place(), &self.part[..BYTES]);
        for (word, bytes) in words.iter().chain([&check_word(0, words)]).zip(self.part.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Puts `bytes` back to `place` of the preserved memory, if that is here.
    pub fn restore(&mut self, place: usize, bytes: &[u8]) {
        transaction::put_back(&mut self.part, place, bytes);
    }
}
