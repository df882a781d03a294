//! tty's state in preserved memory, so that a successor goes on where this tty died, at whatever instruction.
//!
//! The state has parts: each terminal, and what they share. A part that a turn has changed is written whole, as bytes, into the one of its
//! two places that is not in use; then all headers change in one step (`server::recover`). That happens at the end of the turn, before
//! its answers leave: nobody hears of anything that a death could undo.

use crate::snapshot::{Reader, Writer};
use server::recover::{Area, Found, Record, Recover, Table};
use sys::keep::Keep;

/// Most bytes of a part: full queues in both directions, where a tab may have become eight blanks.
const PART_BYTES: usize = 40 << 10;
/// Parts.
pub const PARTS: usize = crate::TERMINALS + 1;
/// Preserved memory that this takes.
const KEEP_BYTES: usize = PARTS * 2 * PART_BYTES + 4096;
/// Changes when the bytes of a part change their meaning.
const LAYOUT: u64 = 1;
/// Words that one step changes: those of all headers.
const LOG_CHANGES: usize = PARTS * 3;

/// Which of its two places holds a part, and how many bytes.
#[derive(Clone, Copy, Debug)]
struct Header {
    place: usize,
    bytes: usize,
}

impl Record for Header {
    const WORDS: usize = 2;
    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(&[self.place as u64, self.bytes as u64]);
    }
    fn load(words: &[u64]) -> Self {
        Header { place: words[0] as usize % 2, bytes: (words[1] as usize).min(PART_BYTES) }
    }
}

/// The preserved memory.
pub struct Preserved {
    recover: Recover,
    headers: Table<Header>,
    places: [[Area; 2]; PARTS],
    writer: Writer,
}

impl Preserved {
    /// Opens it.
    pub fn open() -> Preserved {
        let keep = Keep::take(KEEP_BYTES).expect("preserved memory is taken once");
        let (recover, found) = Recover::open(keep, LAYOUT, LOG_CHANGES);
        if found == Found::Damaged {
            sys::log!("the preserved state is damaged: terminals begin anew");
        }
        Preserved::over(recover)
    }

    fn over(recover: Recover) -> Preserved {
        let headers = Table::lay_out(&recover, PARTS);
        let places = [(); PARTS].map(|()| [(); 2].map(|()| Area::lay_out(&recover, PART_BYTES)));
        Preserved { recover, headers, places, writer: Writer::default() }
    }

    /// What the predecessor left of a part, as `load` reads it; `None`: nothing that makes sense.
    pub fn load<T>(&self, part: usize, load: impl FnOnce(&mut Reader) -> Option<T>) -> Option<T> {
        let header = self.headers.get(&self.recover, part).record()?;
        let mut bytes = alloc::vec![0; header.bytes];
        self.places[part][header.place].read(&self.recover, 0, &mut bytes);
        load(&mut Reader::new(&bytes))
    }

    /// Writes these parts, all or none.
    pub fn save(&mut self, parts: impl Iterator<Item = usize>, mut save: impl FnMut(usize, &mut Writer)) {
        self.recover.begin();
        for part in parts {
            let used = self.headers.get(&self.recover, part).record().map_or(1, |header| header.place);
            let place = 1 - used;
            self.writer.clear();
            save(part, &mut self.writer);
            self.places[part][place].write(&self.recover, 0, self.writer.bytes());
            let header = Header { place, bytes: self.writer.bytes().len() };
            self.headers.set(&self.recover, part, &header);
        }
        self.recover.commit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicU64;

    fn memory() -> &'static [AtomicU64] {
        Box::leak((0..KEEP_BYTES / 8).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().into_boxed_slice())
    }

    fn open(memory: &'static [AtomicU64], writes: u64) -> Preserved {
        Preserved::over(Recover::open(Keep::simulated(memory, writes), LAYOUT, LOG_CHANGES).0)
    }

    fn state(preserved: &Preserved) -> Vec<Option<u64>> {
        (0..PARTS).map(|part| preserved.load(part, |reader| reader.number())).collect()
    }

    #[test]
    fn a_death_at_any_write_leaves_all_parts_old_or_all_new() {
        let mut outcomes = std::collections::BTreeSet::new();
        for writes in 0..200 {
            let memory = memory();
            open(memory, u64::MAX).save(0..PARTS, |part, writer| writer.number(part as u64));
            let mut preserved = open(memory, writes);
            let killed = catch_unwind(AssertUnwindSafe(|| {
                preserved.save(0..PARTS, |part, writer| writer.number(part as u64 + 100));
            }));
            let after = state(&open(memory, u64::MAX));
            let old: Vec<_> = (0..PARTS as u64).map(Some).collect();
            let new: Vec<_> = (100..100 + PARTS as u64).map(Some).collect();
            assert!(after == old || after == new, "{after:?} after {writes} writes");
            outcomes.insert((killed.is_ok(), after == new));
        }
        assert!(outcomes.contains(&(false, false)) && outcomes.contains(&(true, true)));
    }

    #[test]
    fn new_memory_holds_nothing() {
        assert_eq!(state(&open(memory(), u64::MAX)), vec![None; PARTS]);
    }
}
