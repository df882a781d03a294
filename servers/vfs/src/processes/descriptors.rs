//! The descriptor table of a process: small numbers for open files. Threads and vfork children may share one.
//!
//! Invariant: `lowest_free` is not above the lowest unused number.

use abi::Errno;
use alloc::{rc::Rc, vec::Vec};
use sys::fallible::{TryVec, with_capacity};

/// Most descriptors of a table: the hard limit of RLIMIT_NOFILE.
pub const DESCRIPTORS_MAX: usize = 4096;

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
        let mut entries = with_capacity(self.entries.len())?;
        entries.extend(self.entries.iter().cloned());
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

    /// True when an [`Descriptors::insert`] would succeed.
    pub fn has_room(&self) -> bool {
        self.free_from(self.lowest_free) < DESCRIPTORS_MAX
    }

    /// Gives the file the lowest free number not below `first`. `EINVAL`: `first` is no descriptor; `EMFILE`: none free; `ENOMEM`.
    pub fn insert(&mut self, file: Rc<F>, first: usize, close_on_exec: bool) -> Result<i32, Errno> {
        if first >= DESCRIPTORS_MAX {
            return Err(Errno::EINVAL);
        }
        let number = self.free_from(first.max(self.lowest_free));
        if number >= DESCRIPTORS_MAX {
            return Err(Errno::EMFILE);
        }
        self.make_room(number)?;
        if first <= self.lowest_free {
            self.lowest_free = number + 1;
        }
        self.put(number, Entry { file, close_on_exec });
        Ok(number as i32)
    }

    /// Makes `number` refer to `file`. Returns the file it referred to. `EBADF`: no such number; `ENOMEM`.
    pub fn replace(&mut self, number: i32, file: Rc<F>, close_on_exec: bool) -> Result<Option<Rc<F>>, Errno> {
        let index = number as usize;
        if index >= DESCRIPTORS_MAX {
            return Err(Errno::EBADF);
        }
        self.make_room(index)?;
        let old = self.entries.get_mut(index).and_then(Option::take);
        self.put(index, Entry { file, close_on_exec });
        Ok(old.map(|entry| entry.file))
    }

    /// Frees a number. `EBADF`.
    pub fn remove(&mut self, descriptor: i32) -> Result<Rc<F>, Errno> {
        let index = descriptor as usize;
        let entry = self.entries.get_mut(index).and_then(Option::take).ok_or(Errno::EBADF)?;
        self.lowest_free = self.lowest_free.min(index);
        Ok(entry.file)
    }

    /// Frees every number that is marked close-on-exec. Returns the numbers with their files.
    pub fn remove_close_on_exec(&mut self) -> Vec<(usize, Rc<F>)> {
        self.remove_where(|_, entry| entry.close_on_exec)
    }

    /// Frees the numbers `first ..= last`.
    pub fn remove_range(&mut self, first: usize, last: usize) -> Vec<(usize, Rc<F>)> {
        self.remove_where(|number, _| number >= first && number <= last)
    }

    fn remove_where(&mut self, condition: impl Fn(usize, &Entry<F>) -> bool) -> Vec<(usize, Rc<F>)> {
        let mut removed = Vec::new();
        for (number, slot) in self.entries.iter_mut().enumerate() {
            if let Some(entry) = slot.take_if(|entry| condition(number, entry)) {
                self.lowest_free = self.lowest_free.min(number);
                removed.push((number, entry.file));
            }
        }
        removed
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

    /// The numbers in use and their files, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Rc<F>)> {
        self.entries.iter().enumerate().filter_map(|(number, entry)| Some((number, &entry.as_ref()?.file)))
    }

    fn free_from(&self, first: usize) -> usize {
        let used = self.entries.iter().skip(first).take_while(|entry| entry.is_some()).count();
        first + used
    }

    /// Makes sure that [`Descriptors::put`] does not allocate. `ENOMEM`.
    fn make_room(&mut self, index: usize) -> Result<(), Errno> {
        self.entries.try_make_room((index + 1).saturating_sub(self.entries.len()))
    }

    fn put(&mut self, index: usize, entry: Entry<F>) {
        if index >= self.entries.len() {
            self.entries.resize_with(index + 1, || None);
        }
        self.entries[index] = Some(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u32) -> Rc<u32> {
        Rc::new(number)
    }

    #[test]
    fn the_lowest_free_number_is_given() {
        let mut table = Descriptors::default();
        for number in 0..5 {
            assert_eq!(table.insert(file(number), 0, false), Ok(number as i32));
        }
        table.remove(3).unwrap();
        table.remove(1).unwrap();
        assert_eq!(table.insert(file(9), 2, false), Ok(3));
        assert_eq!(table.insert(file(9), 0, false), Ok(1));
        assert_eq!(table.insert(file(9), 0, false), Ok(5));
        assert_eq!(table.insert(file(9), 100, false), Ok(100));
        assert_eq!(table.insert(file(9), 0, false), Ok(6));
    }

    #[test]
    fn a_replaced_number_is_not_given_again() {
        let mut table = Descriptors::default();
        assert!(table.replace(0, file(1), false).unwrap().is_none());
        assert_eq!(table.insert(file(2), 0, false), Ok(1));
        assert_eq!(table.replace(1, file(3), false).unwrap().as_deref(), Some(&2));
        assert_eq!(table.replace(4096, file(3), false), Err(Errno::EBADF));
        assert_eq!(table.replace(-1, file(3), false), Err(Errno::EBADF));
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
    fn a_full_table_says_so() {
        let mut table = Descriptors::default();
        for _ in 0..DESCRIPTORS_MAX {
            table.insert(file(0), 0, false).unwrap();
        }
        assert!(!table.has_room());
        assert_eq!(table.insert(file(0), 0, false), Err(Errno::EMFILE));
        assert_eq!(table.insert(file(0), DESCRIPTORS_MAX, false), Err(Errno::EINVAL));
        table.remove(700).unwrap();
        assert_eq!(table.insert(file(0), 0, false), Ok(700));
    }

    #[test]
    fn exec_closes_what_is_marked() {
        let mut table = Descriptors::default();
        table.insert(file(0), 0, false).unwrap();
        table.insert(file(1), 0, true).unwrap();
        table.insert(file(2), 0, false).unwrap();
        table.set_close_on_exec(2, true).unwrap();
        assert_eq!(table.remove_close_on_exec().len(), 2);
        assert!(table.get(0).is_ok());
        assert_eq!(table.insert(file(3), 0, false), Ok(1));
    }

    #[test]
    fn ranges_are_closed_or_marked() {
        let mut table = Descriptors::default();
        for number in 0..8 {
            table.insert(file(number), 0, false).unwrap();
        }
        table.mark_range(6, usize::MAX);
        table.mark_range(20, 30);
        assert!(table.close_on_exec(7).unwrap() && !table.close_on_exec(5).unwrap());
        assert_eq!(table.remove_range(3, 5).len(), 3);
        assert_eq!(table.iter().map(|(number, _)| number).collect::<Vec<_>>(), [0, 1, 2, 6, 7]);
    }

    #[test]
    fn a_copy_shares_the_open_files() {
        let mut table = Descriptors::default();
        table.insert(file(7), 0, true).unwrap();
        let copy = table.copy().unwrap();
        table.remove(0).unwrap();
        assert_eq!(copy.get(0).map(|f| **f), Ok(7));
        assert_eq!(copy.close_on_exec(0), Ok(true));
    }
}
