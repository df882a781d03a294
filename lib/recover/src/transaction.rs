//! An undo log of bytes: makes all changes of one request a transaction, which happens as a whole or not at all.
//!
//! For large content that is used where it lies (`sys::keep::Parts`), such as cached blocks. Before bytes are changed, `save`
//! copies them to the log. `commit` is the store of one word. The successor of a service that died in a transaction copies the
//! saved bytes back, the last ones first. (The log of [`records`](crate::records) saves single words instead, which costs less.)
//!
//! Layout of the head (words): left to the user, number of the last committed transaction, the open one (its number and the bytes
//! used in the log), the last one that has begun an epoch. The log is a stack of entries: the saved bytes, filled up to whole
//! words, then their place and length.
//!
//! Invariant: the open transaction has the number after the committed one, or the log is void. So undoing can be repeated when
//! the service dies in it, and a commit empties the log by the same store.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::ops::Range;

use sys::keep::Part;

/// Bytes of the head.
pub const HEAD_BYTES: usize = 64;

const COMMITTED: usize = 8;
const OPEN: usize = 16;
const EPOCH: usize = 24;

/// Bits of the open transaction's word that tell the bytes used.
const USED_BITS: u32 = 24;
/// Bytes of an entry after the saved ones.
const TRAILER: usize = 16;
/// Bytes of a line: what lies in one line is mostly saved with one range.
const LINE: usize = 64;
/// Lines whose saved ranges are remembered, so that they are not saved again: each has one place.
const REMEMBERED: usize = 16;

/// The undo log of a service. Clones are the same log.
#[derive(Clone, Debug)]
pub struct Undo(Rc<RefCell<Log>>);

#[derive(Debug)]
struct Log {
    head: Part,
    log: Part,
    committed: u64,
    used: usize,
    /// Ranges saved last, by the lines in which they lie.
    saved: [Saved; REMEMBERED],
}

/// A range that was saved.
#[derive(Clone, Copy, Debug, Default)]
struct Saved {
    place: usize,
    end: usize,
    /// The last committed transaction then: it is saved for the next one alone.
    committed: u64,
}

/// The log makes no sense: a wild store has hit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl Undo {
    /// The log in these parts, as its head describes it.
    pub fn open(head: Part, log: Part) -> Undo {
        assert!(log.len() < 1 << USED_BITS, "{} bytes are too long an undo log", log.len());
        let committed = head.word(COMMITTED);
        Undo(Rc::new(RefCell::new(Log { head, log, committed, used: 0, saved: Default::default() })))
    }

    /// Makes the head that of an empty log.
    pub fn clear(head: &mut Part) {
        head.put_word(COMMITTED, 1);
        head.put_word(OPEN, 0);
        head.put_word(EPOCH, 0);
    }

    /// Undoes an unfinished transaction and returns whether there was one: `restore` gets places, all of them within `limits`, and
    /// their old bytes, in order. It may be repeated.
    pub fn roll_back(&self, limits: Range<usize>, mut restore: impl FnMut(usize, &[u8])) -> Result<bool, Damaged> {
        let mut log = self.0.borrow_mut();
        let open = log.head.word(OPEN);
        let used = (open & ((1 << USED_BITS) - 1)) as usize;
        let is_open = open >> USED_BITS == log.committed + 1 && used > 0;
        if is_open {
            log.walk(used, &limits, |_, _| ())?;
            log.walk(used, &limits, &mut restore)?;
            log.head.put_word(OPEN, 0);
        }
        (log.used, log.saved) = (0, Default::default());
        Ok(is_open)
    }

    /// Saves the `old` bytes at `place`, which are changed after this.
    ///
    /// # Panics
    /// When the log is full: large changes have to look at [`Undo::is_large`] in time.
    #[inline(always)]
    pub fn save(&self, place: usize, old: &[u8]) {
        self.0.borrow_mut().save(place, old);
    }

    /// Whether something has changed since the last commit.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.0.borrow().used > 0
    }

    /// Whether it is time to commit a part: half of the log is reserved for changes that cannot be divided.
    pub fn is_large(&self) -> bool {
        let log = self.0.borrow();
        log.used > log.log.len() / 2
    }

    /// Whether an undivided change has become larger than any sound one.
    pub fn is_excessive(&self) -> bool {
        let log = self.0.borrow();
        log.used > log.log.len() / 8 * 7
    }

    /// The number of the transaction that is committed next.
    #[inline]
    pub fn number(&self) -> u64 {
        self.0.borrow().committed + 1
    }

    /// The transaction that has begun the present epoch; 0 for none. What epochs mean is up to the user.
    #[inline]
    pub fn epoch(&self) -> u64 {
        let log = self.0.borrow();
        let epoch = log.head.word(EPOCH);
        if epoch <= log.committed { epoch } else { 0 }
    }

    /// The open transaction begins an epoch.
    pub fn begin_epoch(&self) {
        let log = &mut *self.0.borrow_mut();
        log.head.put_word(EPOCH, log.committed + 1);
    }

    /// Commits everything since the last commit.
    #[inline]
    pub fn commit(&self) {
        let log = &mut *self.0.borrow_mut();
        log.committed += 1;
        log.head.put_word(COMMITTED, log.committed);
        log.head.order();
        log.used = 0;
    }
}

impl Log {
    /// Gives all entries to `act`, the last one first.
    fn walk(&self, used: usize, limits: &Range<usize>, mut act: impl FnMut(usize, &[u8])) -> Result<(), Damaged> {
        let mut end = used;
        while end > 0 {
            let (start, place, length) = self.entry(end).ok_or(Damaged)?;
            if place < limits.start || place.checked_add(length).is_none_or(|end| end > limits.end) {
                return Err(Damaged);
            }
            act(place, &self.log[start..start + length]);
            end = start;
        }
        Ok(())
    }

    /// Start of the entry that ends at `end`, and place and length of what it saves.
    fn entry(&self, end: usize) -> Option<(usize, usize, usize)> {
        let trailer = end.checked_sub(TRAILER)?;
        if !end.is_multiple_of(8) || end > self.log.len() {
            return None;
        }
        let (place, length) = (self.log.word(trailer) as usize, self.log.word(trailer + 8) as usize);
        let start = trailer.checked_sub(length.checked_next_multiple_of(8)?)?;
        Some((start, place, length))
    }

    /// Inlined where the length is known: copying a line is then a few moves.
    #[inline(always)]
    fn save(&mut self, place: usize, old: &[u8]) {
        let end = place + old.len();
        let known = &self.saved[place / LINE % REMEMBERED];
        if known.place <= place && end <= known.end && known.committed == self.committed {
            return;
        }
        let trailer = old.len().next_multiple_of(8);
        let top = self.used + trailer + TRAILER;
        assert!(top <= self.log.len(), "one request changes more than the undo log holds");
        let entry = &mut self.log[self.used..][..trailer + TRAILER];
        entry[..old.len()].copy_from_slice(old);
        entry[trailer..trailer + 8].copy_from_slice(&place.to_le_bytes());
        entry[trailer + 8..].copy_from_slice(&old.len().to_le_bytes());
        self.head.put_word(OPEN, (self.committed + 1) << USED_BITS | top as u64);
        self.head.order();
        self.used = top;
        let saved = Saved { place, end, committed: self.committed };
        (place / LINE..end.div_ceil(LINE)).take(REMEMBERED).for_each(|line| self.saved[line % REMEMBERED] = saved);
    }
}

/// Copies `bytes` back to `place` of the preserved memory if that is within `part`: for the `restore` of [`Undo::roll_back`].
pub fn put_back(part: &mut Part, place: usize, bytes: &[u8]) {
    let Some(start) = place.checked_sub(part.place()) else { return };
    if let Some(old) = part.get_mut(start..start + bytes.len()) {
        old.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::keep::{Keep, Parts};

    /// Bytes of the log.
    const LOG: usize = 4096;

    fn open() -> (Undo, Part) {
        let parts = Parts::new(Keep::simulated(sys::host::zeroed(HEAD_BYTES + 2 * LOG), u64::MAX));
        let mut head = parts.lend(0..HEAD_BYTES).unwrap();
        Undo::clear(&mut head);
        let [log, content] = [HEAD_BYTES, HEAD_BYTES + LOG].map(|at| parts.lend(at..at + LOG).unwrap());
        (Undo::open(head, log), content)
    }

    /// Saves a range of the content and returns whether that was new to the log.
    fn save(undo: &Undo, content: &Part, range: Range<usize>) -> bool {
        let before = undo.0.borrow().used;
        undo.save(content.place() + range.start, &content[range]);
        undo.0.borrow().used > before
    }

    #[test]
    fn what_was_saved_is_saved_again_in_the_next_transaction_only() {
        let (undo, content) = open();
        for _ in 0..2 {
            assert!(save(&undo, &content, 128..192));
            assert!(!save(&undo, &content, 128..192) && !save(&undo, &content, 136..144));
            assert!(save(&undo, &content, 136..200), "more than was saved");
            assert!(save(&undo, &content, 320..512));
            assert!(!save(&undo, &content, 448..456), "in the last of several lines");
            undo.commit();
        }
    }

    #[test]
    fn a_roll_back_restores_what_was_first_and_forgets_what_was_saved() {
        let (undo, mut content) = open();
        for value in 1..3 {
            assert!(save(&undo, &content, 64..72));
            content[64] = value;
            // More ranges than are remembered, one of them in each line.
            for line in 0..LOG / LINE {
                save(&undo, &content, line * LINE + 8..line * LINE + 16);
            }
            save(&undo, &content, 64..72);
            content[64] = value + 100;
            let limits = content.place()..content.place() + LOG;
            assert_eq!(undo.roll_back(limits, |place, bytes| put_back(&mut content, place, bytes)), Ok(true));
            assert_eq!(content[64], 0);
        }
    }
}
