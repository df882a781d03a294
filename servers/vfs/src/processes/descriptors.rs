//! The descriptor table of a process: small numbers for open files. Threads and vfork children may share one.
//!
//! Invariant: `lowest_free` is not above the lowest unused number.

use crate::keep::records::BLOCK;
use abi::{Errno, limits};
use alloc::{rc::Rc, vec::Vec};
use sys::fallible::{TryVec, copied};

/// Most descriptors of a table, whatever RLIMIT_NOFILE is.
pub const DESCRIPTORS_MAX: usize = limits::DESCRIPTORS as usize;

/// One descriptor.
#[derive(Debug)]
struct Entry<F: ?Sized> {
    file: Rc<F>,
    close_on_exec: bool,
}

impl<F: ?Sized> Clone for Entry<F> {
    fn clone(&self) -> Self {
        Entry { file: self.file.clone(), close_on_exec: self.close_on_exec }
    }
}

/// The table; `F` is the open file.
#[derive(Debug)]
pub struct Descriptors<F: ?Sized> {
    entries: Vec<Option<Entry<F>>>,
    lowest_free: usize,
}

impl<F: ?Sized> Default for Descriptors<F> {
    fn default() -> Self {
        Descriptors { entries: Vec::new(), lowest_free: 0 }
    }
}

impl<F: ?Sized> Descriptors<F> {
    /// A table with the same open files. `ENOMEM`.
    pub fn copy(&self) -> Result<Self, Errno> {
        let end = self.entries.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let entries = copied(&self.entries[..end])?;
        Ok(Descriptors { entries, lowest_free: self.lowest_free })
    }

    /// The open file behind a descriptor. `EBADF`.
    pub fn get(&self, descriptor: i32) -> Result<&Rc<F>, Errno> {
        self.entry(descriptor).map(|entry| &entry.file)
    }

    fn entry(&self, descriptor: i32) -> Result<&Entry<F>, Errno> {
        // A negative number becomes a huge index and is refused like any other that is too large.
        self.entries.get(descriptor as usize).and_then(Option::as_ref).ok_or(Errno::EBADF)
    }

    /// Numbers up to the highest that has been used.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The lowest free number from `first` up to below `limit`. `EINVAL`: `first` is not below `limit`; `EMFILE`: none is free.
    pub fn vacancy(&mut self, first: usize, limit: usize) -> Result<usize, Errno> {
        if first >= limit {
            return Err(Errno::EINVAL);
        }
        let number = self.free_from(first.max(self.lowest_free));
        if first <= self.lowest_free {
            self.lowest_free = number;
        }
        if number < limit { Ok(number) } else { Err(Errno::EMFILE) }
    }

    /// Makes `number` refer to `file`. Returns the file it referred to. `EBADF`: no such number; `ENOMEM`.
    #[inline]
    pub fn replace(&mut self, number: usize, file: Rc<F>, close_on_exec: bool) -> Result<Option<Rc<F>>, Errno> {
        if number >= DESCRIPTORS_MAX {
            return Err(Errno::EBADF);
        }
        if number >= self.entries.len() {
            self.grow(number + 1)?;
        }
        let old = self.entries[number].replace(Entry { file, close_on_exec });
        self.lowest_free += (number == self.lowest_free) as usize;
        Ok(old.map(|entry| entry.file))
    }

    /// Makes room for numbers below `count`, which are more than there are. `ENOMEM`.
    #[cold]
    #[expect(clippy::disallowed_methods, reason = "the room is there")]
    fn grow(&mut self, count: usize) -> Result<(), Errno> {
        let missing = count - self.entries.len();
        self.entries.try_make_room(missing)?;
        self.entries.extend(core::iter::repeat_with(|| None).take(missing));
        Ok(())
    }

    /// Frees a number. `EBADF`.
    pub fn remove(&mut self, descriptor: i32) -> Result<Rc<F>, Errno> {
        let index = descriptor as usize;
        let entry = self.entries.get_mut(index).and_then(Option::take).ok_or(Errno::EBADF)?;
        self.lowest_free = self.lowest_free.min(index);
        Ok(entry.file)
    }

    /// Frees the lowest number in `first ..= last` that is in use; with `marked` only one that is marked close-on-exec.
    pub fn remove_next(&mut self, first: usize, last: usize, marked: bool) -> Option<(usize, Rc<F>)> {
        let entries = self.entries.iter_mut().enumerate().skip(first).take_while(|(number, _)| *number <= last);
        let mut removed = entries.map(|(number, slot)| (number, slot.take_if(|entry| entry.close_on_exec || !marked)));
        let (number, file) = removed.find_map(|(number, entry)| Some((number, entry?.file)))?;
        self.lowest_free = self.lowest_free.min(number);
        Some((number, file))
    }

    /// Marks the numbers `first ..= last` close-on-exec.
    pub fn mark_range(&mut self, first: usize, last: usize) {
        let end = self.entries.len().min(last.saturating_add(1));
        for entry in self.entries.get_mut(first..end).unwrap_or_default().iter_mut().flatten() {
            entry.close_on_exec = true;
        }
    }

    /// The close-on-exec mark. `EBADF`.
    pub fn close_on_exec(&self, descriptor: i32) -> Result<bool, Errno> {
        self.entry(descriptor).map(|entry| entry.close_on_exec)
    }

    /// Sets the close-on-exec mark. `EBADF`.
    pub fn set_close_on_exec(&mut self, descriptor: i32, mark: bool) -> Result<(), Errno> {
        let entry = self.entries.get_mut(descriptor as usize).and_then(Option::as_mut).ok_or(Errno::EBADF)?;
        entry.close_on_exec = mark;
        Ok(())
    }

    /// The numbers `first ..= last` in use, with their marks.
    pub fn marks(&self, first: usize, last: usize) -> impl Iterator<Item = (usize, &Rc<F>, bool)> {
        let entries = self.entries.iter().enumerate().skip(first).take_while(move |(number, _)| *number <= last);
        entries.filter_map(|(number, entry)| entry.as_ref().map(|entry| (number, &entry.file, entry.close_on_exec)))
    }

    /// The numbers of a block, with their marks.
    pub fn block(&self, block: usize) -> impl Iterator<Item = Option<(&Rc<F>, bool)>> {
        let entries = self.entries.iter().skip(block * BLOCK).take(BLOCK);
        entries.map(|entry| entry.as_ref().map(|entry| (&entry.file, entry.close_on_exec)))
    }

    /// The numbers in use and their files, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Rc<F>)> {
        self.entries.iter().enumerate().filter_map(|(number, entry)| Some((number, &entry.as_ref()?.file)))
    }

    fn free_from(&self, first: usize) -> usize {
        let used = self.entries.iter().skip(first).take_while(|entry| entry.is_some()).count();
        first + used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u32) -> Rc<u32> {
        Rc::new(number)
    }

    /// Takes the lowest free number from `first` on.
    fn insert(table: &mut Descriptors<u32>, first: usize) -> Result<usize, Errno> {
        let number = table.vacancy(first, DESCRIPTORS_MAX)?;
        assert!(table.replace(number, file(9), false)?.is_none(), "it was free");
        Ok(number)
    }

    #[test]
    fn the_lowest_free_number_is_given() {
        let mut table = Descriptors::default();
        for number in 0..5 {
            assert_eq!(insert(&mut table, 0), Ok(number));
        }
        table.remove(3).unwrap();
        table.remove(1).unwrap();
        assert_eq!(insert(&mut table, 2), Ok(3));
        assert_eq!([0, 0, 100, 0].map(|first| insert(&mut table, first)), [Ok(1), Ok(5), Ok(100), Ok(6)]);
    }

    #[test]
    fn a_replaced_number_is_not_given_again() {
        let mut table = Descriptors::default();
        assert!(table.replace(0, file(1), false).unwrap().is_none());
        assert_eq!(table.vacancy(0, 8), Ok(1));
        assert!(table.replace(1, file(2), false).unwrap().is_none());
        assert_eq!(table.replace(1, file(3), false).unwrap().as_deref(), Some(&2));
        assert_eq!(table.replace(DESCRIPTORS_MAX, file(3), false), Err(Errno::EBADF));
        assert_eq!(table.replace(-1i32 as usize, file(3), false), Err(Errno::EBADF));
    }

    #[test]
    fn unknown_numbers_are_refused() {
        let mut table: Descriptors<u32> = Descriptors::default();
        for number in [0, -1, i32::MIN, 5000] {
            assert_eq!(table.get(number), Err(Errno::EBADF));
            assert_eq!(table.remove(number), Err(Errno::EBADF));
        }
    }

    #[test]
    fn a_table_is_full_at_its_limit() {
        let mut table = Descriptors::default();
        assert!((0..700).all(|_| insert(&mut table, 0).is_ok()));
        assert_eq!((table.vacancy(0, 700), table.vacancy(0, 701)), (Err(Errno::EMFILE), Ok(700)));
        assert_eq!(table.vacancy(700, 700), Err(Errno::EINVAL));
        table.remove(300).unwrap();
        assert_eq!((table.vacancy(0, 700), table.vacancy(0, 300)), (Ok(300), Err(Errno::EMFILE)));
        assert_eq!((table.vacancy(0, 700), table.len()), (Ok(300), 700), "asking takes nothing");
    }

    #[test]
    fn a_table_has_a_million_numbers() {
        let mut table = Descriptors::default();
        assert_eq!(insert(&mut table, DESCRIPTORS_MAX - 1), Ok(1_048_575));
        assert_eq!(insert(&mut table, DESCRIPTORS_MAX - 1), Err(Errno::EMFILE));
        table.remove(1_048_575).unwrap();
        assert_eq!(table.copy().unwrap().len(), 0, "a copy is as long as it must be");
    }

    #[test]
    fn what_is_marked_or_in_a_range_is_removed_one_by_one() {
        let mut table = Descriptors::default();
        assert!((0..8).all(|_| insert(&mut table, 0).is_ok()));
        table.set_close_on_exec(2, true).unwrap();
        table.mark_range(6, usize::MAX);
        table.mark_range(20, 30);
        let mut removed = |first, last, marked| table.remove_next(first, last, marked).map(|(number, _)| number);
        assert_eq!([0, 3, 7, 8].map(|first| removed(first, 9, true)), [Some(2), Some(6), Some(7), None]);
        assert_eq!([(3, 4), (3, 4), (3, 4)].map(|(first, last)| removed(first, last, false)), [Some(3), Some(4), None]);
        assert_eq!(table.iter().map(|(number, _)| number).collect::<Vec<_>>(), [0, 1, 5]);
        assert_eq!(table.vacancy(0, 9), Ok(2));
    }

    #[test]
    fn a_copy_shares_the_open_files() {
        let mut table = Descriptors::default();
        table.replace(0, file(7), true).unwrap();
        let copy = table.copy().unwrap();
        table.remove(0).unwrap();
        assert_eq!(copy.get(0).map(|f| **f), Ok(7));
        assert_eq!(copy.close_on_exec(0), Ok(true));
        assert_eq!(copy.block(0).map(|entry| entry.map(|(_, marked)| marked)).collect::<Vec<_>>(), [Some(true)]);
    }
}
