//! The whole state of a service as bytes, in parts that are written again when they have changed.
//!
//! A part has two places. It is written into the one that is not in use; then one change of the headers ([`records`](crate::records))
//! makes all parts of the save valid together. So a death leaves every part of a save old or every part new.
//! Beside the parts there may be *notes* of three words, which the same change makes valid: for what changes a little in each turn.

use crate::check::check_word;
use crate::records::{Area, Found, Record, Recover, Table};
use alloc::vec;
use alloc::vec::Vec;
use sys::keep::Keep;

const WORD_BYTES: usize = 8;

/// The header of a part has not been read yet.
const UNREAD: u8 = u8::MAX;

/// Words that saving a part changes: its header and the header's check word.
const CHANGES: usize = Header::WORDS + 1;

/// Which of its two places holds a part, how many bytes, and their check word.
#[derive(Clone, Copy, Debug)]
struct Header {
    place: usize,
    bytes: usize,
    check: u64,
}

impl Record for Header {
    const WORDS: usize = 2;

    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(&[(self.bytes << 1 | self.place) as u64, self.check]);
    }

    fn load(words: &[u64]) -> Self {
        Header { place: words[0] as usize & 1, bytes: words[0] as usize >> 1, check: words[1] }
    }
}

/// Three words beside the parts.
pub type Note = [u64; NOTE_WORDS];

const NOTE_WORDS: usize = 3;
/// Words that a note changes: its own and its check word.
const NOTE_CHANGES: usize = NOTE_WORDS + 1;

impl Record for Note {
    const WORDS: usize = NOTE_WORDS;

    fn store(&self, words: &mut [u64]) {
        words.copy_from_slice(self);
    }

    fn load(words: &[u64]) -> Self {
        [words[0], words[1], words[2]]
    }
}

/// How much there is of each: parts of at most so many bytes, smaller parts behind them, and notes.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Parts.
    pub parts: usize,
    /// Limit of a part, in bytes.
    pub part_bytes: usize,
    /// Small parts, numbered behind the others: for what changes at other times than a large part.
    pub small_parts: usize,
    /// Limit of a small part, in bytes.
    pub small_part_bytes: usize,
    /// Notes.
    pub notes: usize,
}

impl Size {
    /// Preserved memory that it takes.
    pub const fn bytes(self) -> usize {
        let tables = self.all() * (Header::WORDS + 1) + self.notes * NOTE_CHANGES;
        let large = self.parts * self.part_bytes.next_multiple_of(8);
        let small = self.small_parts * self.small_part_bytes.next_multiple_of(8);
        Recover::bytes(self.changes()) + 8 * tables + 2 * (large + small)
    }

    /// Parts of either size.
    const fn all(self) -> usize {
        self.parts + self.small_parts
    }

    /// Words that one save may change.
    const fn changes(self) -> usize {
        self.all() * CHANGES + self.notes * NOTE_CHANGES
    }

    /// Parts of equal size, and no notes.
    pub const fn equal(parts: usize, part_bytes: usize) -> Size {
        Size { parts, part_bytes, small_parts: 0, small_part_bytes: 0, notes: 0 }
    }
}

/// Preserved memory that holds snapshots.
#[derive(Debug)]
pub struct Snapshots {
    recover: Recover,
    headers: Table<Header>,
    notes: Table<Note>,
    size: Size,
    /// The places of the large parts, two for each, and those of the small ones.
    places: [Area; 2],
    /// Which of its two places each part is in, as its header says; `UNREAD` before it is needed.
    in_use: Vec<u8>,
    writer: Writer,
}

impl Snapshots {
    /// Preserved memory needed for `parts` parts of at most `part_bytes` each.
    pub const fn bytes(parts: usize, part_bytes: usize) -> usize {
        Size::equal(parts, part_bytes).bytes()
    }

    /// Opens the memory and lays out `parts` parts of equal size. `layout` is as for [`Recover::open`].
    ///
    /// # Panics
    /// When the memory is too small for the headers.
    pub fn open(keep: Keep, layout: u64, parts: usize) -> (Snapshots, Found) {
        let part_bytes = ((keep.len() - Snapshots::bytes(parts, 0)) / (2 * parts)) & !7;
        Snapshots::open_sized(keep, layout, Size::equal(parts, part_bytes))
    }

    /// Opens the memory and lays out parts and notes.
    ///
    /// # Panics
    /// When the memory is too small.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start")]
    pub fn open_sized(keep: Keep, layout: u64, size: Size) -> (Snapshots, Found) {
        let (recover, found) = Recover::open(keep, layout, size.changes());
        let headers = Table::lay_out(&recover, size.all());
        let notes = Table::lay_out(&recover, size.notes);
        let places = [(size.parts, size.part_bytes), (size.small_parts, size.small_part_bytes)]
            .map(|(parts, bytes)| Area::lay_out(&recover, 2 * parts * bytes.next_multiple_of(8)));
        let in_use = vec![UNREAD; size.all()];
        (Snapshots { recover, headers, notes, size, places, in_use, writer: Writer::default() }, found)
    }

    /// Returns the note in this place; `None`: there is none, or it is damaged.
    pub fn note(&self, index: usize) -> Option<Note> {
        self.notes.get(&self.recover, index).record()
    }

    /// Returns the memory of a part to vm that was saved without bytes and is rarely needed.
    pub fn discard(&self, part: usize) {
        for place in [0, 1] {
            let (area, start, bytes) = self.place(part, place);
            area.discard(&self.recover, start, bytes);
        }
    }

    /// Largest number of bytes in a large part.
    pub fn capacity(&self) -> usize {
        self.size.part_bytes.next_multiple_of(8)
    }

    /// Where one of the two places of a part is, and its length.
    #[inline]
    fn place(&self, part: usize, place: usize) -> (&Area, usize, usize) {
        let (areas, parts) = (&self.places, self.size.parts);
        let (area, index, bytes) = match part < parts {
            true => (&areas[0], part, self.size.part_bytes),
            false => (&areas[1], part - parts, self.size.small_part_bytes),
        };
        let bytes = bytes.next_multiple_of(8);
        (area, (2 * index + place) * bytes, bytes)
    }

    /// The part as `load` reads it; `None` when it was never saved, is damaged, or `load` makes no sense of it.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start")]
    pub fn load<T>(&self, part: usize, load: impl FnOnce(&mut Reader) -> Option<T>) -> Option<T> {
        let header = self.headers.get(&self.recover, part).record()?;
        let (area, start, limit) = self.place(part, header.place);
        let mut bytes = vec![0; header.bytes.min(limit)];
        area.read(&self.recover, start, &mut bytes);
        if check(&bytes) != header.check {
            sys::log!("part {part} of the preserved state is damaged");
            return None;
        }
        load(&mut Reader::new(&bytes))
    }

    /// Saves these parts, all or none of them.
    ///
    /// # Panics
    /// When a part is larger than the capacity.
    pub fn save(&mut self, parts: impl Iterator<Item = usize>, save: impl FnMut(usize, &mut Writer)) {
        self.save_with(parts, save, core::iter::empty());
    }

    /// Saves these parts and these notes, all or none of them.
    ///
    /// # Panics
    /// As [`Snapshots::save`], and when there is no such note.
    pub fn save_with(
        &mut self,
        parts: impl Iterator<Item = usize>,
        mut save: impl FnMut(usize, &mut Writer),
        notes: impl Iterator<Item = (usize, Note)>,
    ) {
        self.recover.begin();
        notes.for_each(|(index, note)| self.notes.set(&self.recover, index, &note));
        for part in parts {
            self.writer.clear();
            save(part, &mut self.writer);
            if self.in_use[part] == UNREAD {
                self.in_use[part] =
                    self.headers.get(&self.recover, part).record().map_or(1, |header| header.place as u8);
            }
            let (place, bytes) = (1 - usize::from(self.in_use[part]), self.writer.bytes());
            let (area, start, limit) = self.place(part, place);
            assert!(bytes.len() <= limit, "{} bytes are more than the {limit} of part {part}", bytes.len());
            area.write(&self.recover, start, bytes);
            let header = Header { place, bytes: bytes.len(), check: check(bytes) };
            self.headers.set(&self.recover, part, &header);
            self.in_use[part] = place as u8;
        }
        self.recover.commit();
    }
}

fn check(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let rest = rest.iter().map(|&byte| u64::from(byte));
    check_word(bytes.len(), words.iter().map(|word| u64::from_le_bytes(*word)).chain(rest))
}

/// Writes state as numbers and runs of bytes, in the order in which [`Reader`] reads them. All begin at whole words.
#[derive(Debug, Default)]
pub struct Writer {
    words: Vec<[u8; WORD_BYTES]>,
}

impl Writer {
    /// Everything written since the last `clear`.
    pub fn bytes(&self) -> &[u8] {
        self.words.as_flattened()
    }

    /// Begins again, in the same memory.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Writes a number.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "a part is bounded: from the heap's reserve")]
    pub fn number(&mut self, number: u64) {
        self.words.push(number.to_le_bytes());
    }

    /// Writes several numbers, which costs less than one after the other.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "a part is bounded: from the heap's reserve")]
    pub fn numbers<const N: usize>(&mut self, numbers: [u64; N]) {
        self.words.extend_from_slice(&numbers.map(u64::to_le_bytes));
    }

    /// Writes a run of bytes that lies in two pieces.
    #[expect(clippy::disallowed_methods, reason = "a part is bounded: from the heap's reserve")]
    pub fn run(&mut self, (first, second): (&[u8], &[u8])) {
        let bytes = first.len() + second.len();
        self.number(bytes as u64);
        if bytes == 0 {
            return;
        }
        if second.is_empty() {
            let (words, rest) = first.as_chunks();
            self.words.extend_from_slice(words);
            if !rest.is_empty() {
                let mut last = [0; WORD_BYTES];
                last[..rest.len()].copy_from_slice(rest);
                self.words.push(last);
            }
            return;
        }
        let begin = self.words.len();
        self.words.resize(begin + bytes.div_ceil(WORD_BYTES), [0; WORD_BYTES]);
        let (one, other) = self.words[begin..].as_flattened_mut().split_at_mut(first.len());
        one.copy_from_slice(first);
        other[..second.len()].copy_from_slice(second);
    }
}

/// Reads what a [`Writer`] has written. Any bytes give a value or `None`, never a panic.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Begins at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// Reads a number.
    pub fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*number))
    }

    /// Reads a run of bytes.
    pub fn run(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (run, rest) = self.rest.split_at_checked(length.checked_next_multiple_of(WORD_BYTES)?)?;
        self.rest = rest;
        Some(&run[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering};
    use std::collections::BTreeSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const PARTS: usize = 3;
    const PART_BYTES: usize = 64;

    fn memory() -> &'static [AtomicU64] {
        sys::host::zeroed(Snapshots::bytes(PARTS, PART_BYTES))
    }

    fn open(memory: &'static [AtomicU64], writes: u64) -> Snapshots {
        Snapshots::open(Keep::simulated(memory, writes), 1, PARTS).0
    }

    fn state(snapshots: &Snapshots) -> Vec<Option<u64>> {
        (0..PARTS).map(|part| snapshots.load(part, |reader| reader.number())).collect()
    }

    fn save(snapshots: &mut Snapshots, from: u64) {
        snapshots.save(0..PARTS, |part, writer| {
            writer.number(part as u64 + from);
            writer.run((b"some", b"thing"));
        });
    }

    #[test]
    fn new_memory_holds_nothing() {
        let snapshots = open(memory(), u64::MAX);
        assert_eq!(snapshots.capacity(), PART_BYTES);
        assert_eq!(state(&snapshots), [None; PARTS]);
    }

    #[test]
    fn a_part_reads_back_as_it_was_written() {
        let memory = memory();
        save(&mut open(memory, u64::MAX), 5);
        let read = open(memory, u64::MAX).load(1, |reader| Some((reader.number()?, reader.run()?.to_vec())));
        assert_eq!(read, Some((6, b"something".to_vec())));
    }

    #[test]
    fn a_death_at_any_write_leaves_all_parts_old_or_all_new() {
        let mut outcomes = BTreeSet::new();
        for writes in 0..100 {
            let memory = memory();
            let mut first = open(memory, u64::MAX);
            save(&mut first, 50);
            save(&mut first, 0);
            let mut dying = open(memory, writes);
            let survived = catch_unwind(AssertUnwindSafe(|| save(&mut dying, 100))).is_ok();
            let after = state(&open(memory, u64::MAX));
            let is_new = after == [Some(100), Some(101), Some(102)];
            assert!(is_new || after == [Some(0), Some(1), Some(2)], "{after:?} after {writes} writes");
            outcomes.insert((survived, is_new));
        }
        assert!(outcomes.contains(&(false, false)) && outcomes.contains(&(true, true)), "{outcomes:?}");
    }

    #[test]
    fn a_damaged_part_is_not_loaded() {
        let memory = memory();
        save(&mut open(memory, u64::MAX), 0x77);
        let at = memory.iter().position(|word| word.load(Ordering::Relaxed) == 0x78).expect("part 1 was written");
        memory[at].fetch_xor(1, Ordering::Relaxed);
        assert_eq!(state(&open(memory, u64::MAX)), [Some(0x77), None, Some(0x79)]);
    }

    #[test]
    fn notes_change_together_with_parts() {
        let size = Size { notes: 4, ..Size::equal(PARTS, PART_BYTES) };
        let memory = sys::host::zeroed(size.bytes());
        let open = |writes| Snapshots::open_sized(Keep::simulated(memory, writes), 1, size).0;
        let save = |snapshots: &mut Snapshots, value: u64| {
            snapshots.save_with([1].into_iter(), |_, writer| writer.number(value), [(3, [value; 3])].into_iter());
        };
        save(&mut open(u64::MAX), 1);
        for writes in 0..40 {
            let mut dying = open(writes);
            let _ = catch_unwind(AssertUnwindSafe(|| save(&mut dying, writes + 2)));
            let after = open(u64::MAX);
            let value = after.load(1, |reader| reader.number()).expect("was saved");
            assert_eq!((after.note(3), after.note(0)), (Some([value; 3]), None));
        }
    }

    #[test]
    fn a_small_part_is_saved_by_itself_or_with_others() {
        let size = Size { small_parts: 2, small_part_bytes: 16, ..Size::equal(PARTS, PART_BYTES) };
        let memory = sys::host::zeroed(size.bytes());
        let open = || Snapshots::open_sized(Keep::simulated(memory, u64::MAX), 1, size).0;
        open().save([0, PARTS].into_iter(), |part, writer| writer.number(part as u64 + 1));
        open().save([PARTS + 1].into_iter(), |_, writer| writer.number(8));
        let mut again = open();
        again.save([PARTS].into_iter(), |_, writer| writer.number(9));
        again.save([PARTS].into_iter(), |_, writer| writer.number(10));
        let found = open();
        let value = |part| found.load(part, |reader| reader.number());
        assert_eq!([0, 1, PARTS, PARTS + 1].map(value), [Some(1), None, Some(10), Some(8)]);
    }

    #[test]
    #[should_panic(expected = "16 bytes are more than the 8 of part 3")]
    fn a_small_part_has_its_own_limit() {
        let size = Size { small_parts: 1, small_part_bytes: 8, ..Size::equal(PARTS, PART_BYTES) };
        let memory = sys::host::zeroed(size.bytes());
        let mut snapshots = Snapshots::open_sized(Keep::simulated(memory, u64::MAX), 1, size).0;
        snapshots.save([PARTS].into_iter(), |_, writer| (0..2).for_each(|number| writer.number(number)));
    }

    #[test]
    fn bytes_that_end_early_are_no_state() {
        let mut writer = Writer::default();
        writer.run((b"four", b""));
        assert_eq!(Reader::new(&writer.bytes()[..11]).run(), None);
        assert_eq!(Reader::new(&writer.bytes()[..7]).number(), None);
    }
}
