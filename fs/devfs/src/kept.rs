//! What devfs's successor must know: mode and owner of each node, and when the first incarnation began.

use fs::file_system::Timestamp;
use recover::records::{Record, Recover, Table};
use sys::keep::Keep;

/// Preserved memory, in bytes: `keep_bytes` of the system file.
pub const BYTES: usize = 4096;
/// Version of the layout.
const VERSION: u64 = 1;
/// Words that one change changes, check words included.
const CHANGES: usize = 8;

/// What can be changed of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Kind and permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Record for Owner {
    const WORDS: usize = 2;
    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(&[self.mode.into(), u64::from(self.uid) | u64::from(self.gid) << 32]);
    }
    fn load(words: &[u64]) -> Self {
        Owner { mode: words[0] as u32, uid: words[1] as u32, gid: (words[1] >> 32) as u32 }
    }
}

#[derive(Clone, Copy)]
struct Began(Timestamp);

impl Record for Began {
    const WORDS: usize = 2;
    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(&[self.0.seconds as u64, self.0.nanos.into()]);
    }
    fn load(words: &[u64]) -> Self {
        Began(Timestamp { seconds: words[0] as i64, nanos: words[1] as u32 })
    }
}

/// The records.
pub struct Kept {
    recover: Recover,
    owners: Table<Owner>,
    began: Table<Began>,
}

impl Kept {
    /// The records of `nodes` nodes in `keep`.
    pub fn open(keep: Keep, nodes: usize) -> Kept {
        let (recover, _) = Recover::open(keep, VERSION << 16 | nodes as u64, CHANGES);
        let owners = Table::lay_out(&recover, nodes);
        let began = Table::lay_out(&recover, 1);
        Kept { recover, owners, began }
    }

    /// What was stored of a node, if it was ever changed.
    pub fn owner(&self, index: usize) -> Option<Owner> {
        self.owners.get(&self.recover, index).record()
    }

    /// Keeps what a node is now.
    pub fn store(&self, index: usize, owner: &Owner) {
        self.recover.begin();
        self.owners.set(&self.recover, index, owner);
        self.recover.commit();
    }

    /// When the first incarnation began, if this is it: `now`.
    pub fn began(&self, now: Timestamp) -> Timestamp {
        if let Some(Began(began)) = self.began.get(&self.recover, 0).record() {
            return began;
        }
        self.recover.begin();
        self.began.set(&self.recover, 0, &Began(now));
        self.recover.commit();
        now
    }
}
