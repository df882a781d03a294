//! The descriptor table of a process in both forms: as the handlers use it, and as records.
//!
//! Invariant: outside of these functions both say the same. Its size is charged to the user who made it. Neighbours: `descriptors` (the
//! numbers), `keep` (the records).

use crate::{
    base::closing::Closing,
    files::locks::Range,
    keep::{
        Store,
        records::{BLOCK, DIRECT, DescriptorRecord, LIST, ListRecord, NO_PLACE, TableRecord},
    },
    objects::OpenFile,
    processes::descriptors::{DESCRIPTORS_MAX, Descriptors},
};
use abi::Errno;
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, Ref, RefCell};
use server::quota::Share;
use sys::fallible::TryVec;

/// A table is charged in steps of so many descriptors.
const CHARGE_STEP: usize = 64;

/// A descriptor table and its number, the owner of record locks.
#[derive(Debug)]
pub struct FileTable {
    number: u64,
    /// Its place in preserved memory.
    record: u16,
    descriptors: RefCell<Descriptors<OpenFile>>,
    /// Places of the blocks, by number / `BLOCK`, and of the lists that have those from `DIRECT` on.
    blocks: RefCell<Vec<u32>>,
    lists: RefCell<Vec<u32>>,
    charge: RefCell<Share>,
    /// It may own record locks, or have asked a queue for a notification: closed descriptors have to be looked at.
    owns: Cell<bool>,
    store: Rc<Store>,
}

impl FileTable {
    /// A table of a user with these descriptors. `EAGAIN`, `ENFILE`, `ENOMEM`: no room.
    pub fn new(closing: &Closing, user: u32, descriptors: Descriptors<OpenFile>) -> Result<Rc<FileTable>, Errno> {
        let (store, number) = (closing.store(), closing.next_number());
        let charge = store.charge_table(user, descriptors.len().next_multiple_of(CHARGE_STEP))?;
        let record = store.new_table()?;
        let table = FileTable {
            number,
            record,
            descriptors: RefCell::new(descriptors),
            blocks: RefCell::default(),
            lists: RefCell::default(),
            charge: RefCell::new(charge),
            owns: Cell::new(false),
            store: store.clone(),
        };
        table.copy_in()?;
        Ok(Rc::new(table))
    }

    /// Writes the records of a table that nothing refers to yet.
    fn copy_in(&self) -> Result<(), Errno> {
        let descriptors = self.descriptors.borrow();
        for block in 0..descriptors.len().div_ceil(BLOCK) {
            if descriptors.block(block).any(|entry| entry.is_some()) {
                let entries = descriptors.block(block);
                self.new_block(block, entries.map(|entry| entry.map(|(file, marked)| record(file, marked))))?;
            }
        }
        // The last list first: each refers to the next.
        let count = self.blocks.borrow().len().saturating_sub(DIRECT).div_ceil(LIST);
        self.lists.borrow_mut().try_resize(count, NO_PLACE)?;
        for list in (0..count).rev() {
            let place = self.store.new_list(&self.list_record(list))?;
            self.lists.borrow_mut()[list] = place;
        }
        self.store.put_table(self.record, &self.table_record());
        Ok(())
    }

    fn table_record(&self) -> TableRecord {
        let (blocks, lists) = (self.blocks.borrow(), self.lists.borrow());
        TableRecord {
            number: self.number,
            user: self.charge.borrow().user(),
            list: place(&lists, 0),
            blocks: core::array::from_fn(|index| place(&blocks, index)),
        }
    }

    fn list_record(&self, list: usize) -> ListRecord {
        let (blocks, lists) = (self.blocks.borrow(), self.lists.borrow());
        let first = DIRECT + list * LIST;
        ListRecord {
            next: place(&lists, list + 1),
            blocks: core::array::from_fn(|index| place(&blocks, first + index)),
        }
    }

    /// A table as a predecessor has left it. `ENOMEM`.
    pub fn restore(
        store: &Rc<Store>,
        place: u16,
        record: &TableRecord,
        descriptors: Descriptors<OpenFile>,
        (blocks, lists): (Vec<u32>, Vec<u32>),
    ) -> Result<Rc<FileTable>, Errno> {
        let charge = store.restore_charge(record.user, descriptors.len().next_multiple_of(CHARGE_STEP))?;
        Ok(Rc::new(FileTable {
            number: record.number,
            record: place,
            descriptors: RefCell::new(descriptors),
            blocks: RefCell::new(blocks),
            lists: RefCell::new(lists),
            charge: RefCell::new(charge),
            owns: Cell::new(true),
            store: store.clone(),
        }))
    }

    /// Its number, for something that it is about to own: record locks, or a request for a notification.
    pub fn owner(&self) -> u64 {
        self.owns.set(true);
        self.number
    }

    /// Its number, the owner of record locks.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its place in preserved memory.
    pub fn record(&self) -> u16 {
        self.record
    }

    /// The descriptors, to be read.
    pub fn descriptors(&self) -> Ref<'_, Descriptors<OpenFile>> {
        self.descriptors.borrow()
    }

    /// Checks that there is a number below `limit` to insert at. `EMFILE`.
    pub fn check_room(&self, limit: usize) -> Result<(), Errno> {
        match self.descriptors.borrow_mut().vacancy(0, limit) {
            Ok(_) => Ok(()),
            Err(_) => Err(Errno::EMFILE),
        }
    }

    /// The block with this index; `NO_PLACE`: there is none.
    #[inline]
    fn known_block(&self, index: usize) -> u32 {
        place(&self.blocks.borrow(), index)
    }

    /// The block of a number, made if there is none. `ENFILE`, `ENOMEM`: no room.
    #[inline]
    fn block(&self, number: usize) -> Result<u32, Errno> {
        match self.known_block(number / BLOCK) {
            NO_PLACE => self.add_block(number / BLOCK),
            block => Ok(block),
        }
    }

    fn new_block(&self, index: usize, records: impl Iterator<Item = Option<DescriptorRecord>>) -> Result<u32, Errno> {
        let mut blocks = self.blocks.borrow_mut();
        let end = blocks.len().max(index + 1);
        blocks.try_resize(end, NO_PLACE)?;
        blocks[index] = self.store.new_block(records)?;
        Ok(blocks[index])
    }

    #[cold]
    fn add_block(&self, index: usize) -> Result<u32, Errno> {
        let block = self.new_block(index, core::iter::empty())?;
        let added = match index.checked_sub(DIRECT) {
            None => Ok(()),
            Some(further) => self.save_list(further / LIST),
        };
        if let Err(error) = added {
            self.blocks.borrow_mut()[index] = NO_PLACE;
            self.store.release_block(block);
            return Err(error);
        }
        self.store.set_table(self.record, &self.table_record());
        Ok(block)
    }

    /// Preserves a list of blocks; makes it, and those before it, if there is none.
    fn save_list(&self, list: usize) -> Result<(), Errno> {
        let first_new = self.lists.borrow().len();
        for new in first_new..=list {
            self.lists.borrow_mut().try_make_room(1)?;
            let place = self.store.new_list(&self.list_record(new))?;
            self.lists.borrow_mut().try_push(place)?;
            if let Some(before) = new.checked_sub(1) {
                self.set_list(before);
            }
        }
        if list < first_new {
            self.set_list(list);
        }
        Ok(())
    }

    fn set_list(&self, list: usize) {
        let place = place(&self.lists.borrow(), list);
        self.store.set_list(place, &self.list_record(list));
    }

    fn save(&self, number: usize, record: Option<&DescriptorRecord>) -> Result<(), Errno> {
        let block = self.block(number)?;
        self.store.set_descriptor(block, number % BLOCK, record);
        Ok(())
    }

    /// A number that is in use has a block already.
    fn clear(&self, number: usize) {
        let block = self.known_block(number / BLOCK);
        if block != NO_PLACE {
            self.store.set_descriptor(block, number % BLOCK, None);
        }
    }

    /// Charges the user for a table that has this number. `ENFILE`.
    #[inline]
    fn charge_for(&self, number: usize) -> Result<(), Errno> {
        if number < self.descriptors.borrow().len() { Ok(()) } else { self.charge_further(number) }
    }

    fn charge_further(&self, number: usize) -> Result<(), Errno> {
        let needed = (number + 1).next_multiple_of(CHARGE_STEP);
        self.charge.borrow_mut().resize(needed).map_err(|refusal| refusal.errno(Errno::ENFILE, Errno::ENFILE))
    }

    /// Gives the file the lowest free number from `first` up to below `limit`. `EINVAL`: `first` is not below it; `EMFILE`: there is none;
    /// `ENFILE`, `ENOMEM`: no room.
    pub fn insert(&self, file: Rc<OpenFile>, first: usize, limit: usize, close_on_exec: bool) -> Result<i32, Errno> {
        let number = self.descriptors.borrow_mut().vacancy(first, limit.min(DESCRIPTORS_MAX))?;
        self.put(number, file, close_on_exec)?;
        Ok(number as i32)
    }

    /// Makes `number`, which is below `limit`, mean `file`, and closes what it meant before. `EBADF`, `ENFILE`, `ENOMEM`.
    pub fn replace(&self, number: i32, file: Rc<OpenFile>, limit: usize, close_on_exec: bool) -> Result<(), Errno> {
        if number as usize >= limit.min(DESCRIPTORS_MAX) {
            return Err(Errno::EBADF);
        }
        self.put(number as usize, file, close_on_exec)
    }

    fn put(&self, number: usize, file: Rc<OpenFile>, close_on_exec: bool) -> Result<(), Errno> {
        self.charge_for(number)?;
        // The block first: once the descriptor is there, nothing fails.
        let block = self.block(number)?;
        let record = record(&file, close_on_exec);
        let replaced = self.descriptors.borrow_mut().replace(number, file, close_on_exec)?;
        self.store.set_descriptor(block, number % BLOCK, Some(&record));
        if let Some(replaced) = replaced {
            self.forget(&replaced);
        }
        Ok(())
    }

    /// Closes a number. `EBADF`.
    pub fn close(&self, number: i32) -> Result<(), Errno> {
        let file = self.descriptors.borrow_mut().remove(number)?;
        self.clear(number as usize);
        self.forget(&file);
        Ok(())
    }

    /// Closes the numbers `first ..= last`; with `marked` only those that are marked close-on-exec.
    fn close_each(&self, mut first: usize, last: usize, marked: bool) {
        loop {
            let removed = self.descriptors.borrow_mut().remove_next(first, last, marked);
            let Some((number, file)) = removed else { return };
            self.clear(number);
            self.forget(&file);
            self.store.commit_long();
            first = number + 1;
        }
    }

    /// Closes every number that is marked close-on-exec.
    pub fn close_marked(&self) {
        self.close_each(0, usize::MAX, true);
    }

    /// Closes the numbers `first ..= last`.
    pub fn close_range(&self, first: usize, last: usize) {
        self.close_each(first, last, false);
    }

    /// Closes every number of a table that no thread uses any more. Its records end with it.
    pub fn close_all(&self) {
        let descriptors = self.descriptors.take();
        if self.owns.get() {
            descriptors.iter().for_each(|(_, file)| self.forget(file));
        }
    }

    /// A closed number takes the table's record locks off the file, and its request to be notified of messages off the queue.
    #[inline]
    fn forget(&self, file: &OpenFile) {
        if !self.owns.get() {
            return;
        }
        file.any().forget(self.number);
        if let Some(node) = file.node() {
            node.locks().release_records(&self.store, node.record(), self.number, Range::ALL);
        }
    }

    /// [`Descriptors::mark_range`].
    pub fn mark_range(&self, first: usize, last: usize) {
        let mut descriptors = self.descriptors.borrow_mut();
        descriptors.mark_range(first, last);
        for (number, file, close_on_exec) in descriptors.marks(first, last) {
            // It has a block: nothing can fail.
            let _ = self.save(number, Some(&record(file, close_on_exec)));
            self.store.commit_long();
        }
    }

    /// [`Descriptors::set_close_on_exec`].
    pub fn set_close_on_exec(&self, number: i32, mark: bool) -> Result<(), Errno> {
        let mut descriptors = self.descriptors.borrow_mut();
        descriptors.set_close_on_exec(number, mark)?;
        let record = record(descriptors.get(number)?, mark);
        self.save(number as usize, Some(&record))
    }
}

impl Drop for FileTable {
    fn drop(&mut self) {
        let lists = self.lists.get_mut();
        // Those that could not be made.
        lists.retain(|list| *list != NO_PLACE);
        self.store.release_table(self.record, lists, self.blocks.get_mut());
    }
}

fn place(places: &[u32], index: usize) -> u32 {
    places.get(index).copied().unwrap_or(NO_PLACE)
}

fn record(file: &OpenFile, close_on_exec: bool) -> DescriptorRecord {
    DescriptorRecord { file: file.place(), close_on_exec }
}
