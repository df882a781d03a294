//! What is preserved of the terminals: how it lies in memory, and which parts a turn has changed.
//!
//! A turn that changes some part saves it before its answers leave: nobody hears of anything that a death could undo.

use crate::ledger;
use crate::serial::TERMINALS;
use abi::tty::MAX_PTYS;
use alloc::vec::Vec;
use recover::records::Found;
use recover::snapshot::{Size, Snapshots};
use sys::fallible::{self, TryVec};
use sys::keep::Keep;

/// The part that all terminals share, behind those of the serial lines.
pub const SHARED: usize = TERMINALS;
/// The part with the queues of pseudo-terminal 0.
pub const QUEUES: usize = SHARED + 1;
/// The part with its settings, which most reads and writes do not change.
pub const SETTINGS: usize = QUEUES + MAX_PTYS;
/// Parts of a snapshot.
const PARTS: usize = SETTINGS + MAX_PTYS;
/// Limit of a part, in bytes: full queues in both directions.
const PART_BYTES: usize = 12 << 10;
/// Limit of the settings of a pseudo-terminal, in bytes.
const SETTINGS_BYTES: usize = 256;
/// Changes when the bytes of a part change their meaning.
const LAYOUT: u64 = 7;
/// `keep_bytes` of the system file is at least this.
const SIZE: Size = Size {
    parts: SETTINGS,
    part_bytes: PART_BYTES,
    small_parts: MAX_PTYS,
    small_part_bytes: SETTINGS_BYTES,
    notes: ledger::PLACES,
};

/// Opens the predecessor's terminals in preserved memory, so that they go on where it died.
pub fn open() -> Snapshots {
    let keep = Keep::take(SIZE.bytes()).expect("preserved memory is taken once");
    let (snapshots, found) = Snapshots::open_sized(keep, LAYOUT, SIZE);
    if found == Found::Damaged {
        sys::log!("the preserved state is damaged: all terminals are reset");
    }
    snapshots
}

/// The parts that the present turn has changed.
pub struct Dirty {
    parts: Vec<usize>,
    is_dirty: Vec<bool>,
}

impl Dirty {
    /// None.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn new() -> Dirty {
        let no_memory = "tty starts with memory for the list of changes";
        Dirty {
            parts: fallible::with_capacity(PARTS).expect(no_memory),
            is_dirty: fallible::filled(false, PARTS).expect(no_memory),
        }
    }

    /// Adds a part.
    pub fn add(&mut self, part: usize) {
        if !core::mem::replace(&mut self.is_dirty[part], true) {
            self.parts.push_reserved(part);
        }
    }

    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Takes the parts.
    pub fn take(&mut self) -> impl Iterator<Item = usize> + '_ {
        let is_dirty = &mut self.is_dirty;
        self.parts.drain(..).inspect(move |part| is_dirty[*part] = false)
    }
}
