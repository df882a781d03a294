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
/// Number of ranges remembered as saved, so that they are not saved again.
const REMEMBERED: usize = 8;

/// The undo log of a service. Clones are the same log.
#[derive(Clone, Debug)]
pub struct Undo(Rc<RefCell<Log>>);

#[derive(Debug)]
struct Log {
    head: Part,
    log: Part,
    committed: u64,
    used: usize,
    /// Place and end of the ranges saved last.
    saved: [(usize, usize); REMEMBERED],
    next_saved: usize,
}

/// The log makes no sense: a wild store has hit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl Undo {
    /// The log in these parts, as its head describes it.
    pub fn open(head: Part, log: Part) -> Undo {
        assert!(log.len() < 1 << USED_BITS, "{} bytes are too long an undo log", log.len());
        let committed = head.word(COMMITTED);
        Undo(Rc::new(RefCell::new(Log { head, log, committed, used: 0, saved: Default::default(), next_saved: 0 })))
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
        log.reset();
        Ok(is_open)
    }

    /// Saves the `old` bytes at `place`, which are changed after this.
    ///
    /// # Panics
    /// When the log is full: large changes have to look at [`Undo::is_large`] in time.
    #[inline]
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
        log.reset();
    }
}

impl Log {
    fn reset(&mut self) {
        self.used = 0;
        self.saved = Default::default();
    }

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

    fn save(&mut self, place: usize, old: &[u8]) {
        let end = place + old.len();
        if self.saved.iter().any(|&(from, to)| from <= place && end <= to) {
            return;
        }
        let trailer = self.used + old.len().next_multiple_of(8);
        let top = trailer + TRAILER;
        assert!(top <= self.log.len(), "one request changes more than the undo log holds");
        self.log[self.used..self.used + old.len()].copy_from_slice(old);
        self.log[trailer..trailer + 8].copy_from_slice(&place.to_le_bytes());
        self.log[trailer + 8..top].copy_from_slice(&old.len().to_le_bytes());
        self.head.put_word(OPEN, (self.committed + 1) << USED_BITS | top as u64);
        self.head.order();
        self.used = top;
        self.saved[self.next_saved] = (place, end);
        self.next_saved = (self.next_saved + 1) % REMEMBERED;
    }
}

/// Copies `bytes` back to `place` of the preserved memory if that is within `part`: for the `restore` of [`Undo::roll_back`].
pub fn put_back(part: &mut Part, place: usize, bytes: &[u8]) {
    let Some(start) = place.checked_sub(part.place()) else { return };
    if let Some(old) = part.get_mut(start..start + bytes.len()) {
        old.copy_from_slice(bytes);
    }
}
