//! Records of the mounted volumes, in preserved memory.

use abi::{Endpoint, Name};
use sys::keep::Part;

use crate::device::Source;
use recover::check::check_word;
use recover::transaction::{self, Undo};

/// Bytes of a record.
pub const BYTES: usize = 128;

const WORDS: usize = 10;

const MOUNTED: u64 = 1 << 0;
const INCOMPLETE: u64 = 1 << 1;
const READ_ONLY: u64 = 1 << 2;
const HAS_SERVICE: u64 = 1 << 3;

/// What a successor needs to know of a mounted volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountRecord {
    /// The device.
    pub source: Source,
    /// Whether it was mounted read-only.
    pub read_only: bool,
    /// The incarnation of vfs that mounted it.
    pub owner: Endpoint,
    /// Whether the reply to the mount is still outstanding.
    pub incomplete: bool,
    /// `FileSystem::memo` of the volume.
    pub memo: [u64; 4],
}

/// The place of one record.
pub struct MountPlace {
    part: Part,
    undo: Undo,
}

impl MountPlace {
    /// Clears the memory and returns an empty record in it.
    pub fn clear(part: &mut Part) {
        part[..BYTES].fill(0);
    }

    /// The record in `part`.
    pub fn open(part: Part, undo: Undo) -> MountPlace {
        MountPlace { part, undo }
    }

    /// Returns the record, or `None` for no volume. Logs and ignores a corrupt record.
    pub fn get(&self) -> Option<MountRecord> {
        let words: [u64; WORDS] = core::array::from_fn(|word| self.part.word(8 * word));
        if words[0] & MOUNTED == 0 {
            return None;
        }
        if self.part.word(8 * WORDS) != check_word(0, words) {
            sys::log!("record of a mounted volume is corrupt; the volume is no longer mounted");
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

    /// Changes the record, as part of the open transaction.
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

    /// Restores `bytes` at `place` of the preserved memory, if the record covers it.
    pub fn restore(&mut self, place: usize, bytes: &[u8]) {
        transaction::put_back(&mut self.part, place, bytes);
    }
}
