//! The descriptor table of a process in both forms: as the handlers use it, and as records.
//!
//! Invariant: outside of these functions both say the same. Neighbours: `descriptors` (the numbers), `keep` (the records).

use crate::{
    base::closing::Closing,
    files::locks::Range,
    keep::{
        Store,
        records::{BLOCK, DIRECT, DescriptorRecord, LIST, ListRecord, NOWHERE, TableRecord},
    },
    objects::OpenFile,
    processes::descriptors::{DESCRIPTORS_MAX, Descriptors},
};
use abi::Errno;
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Ref, RefCell};
use sys::fallible::TryVec;

/// A descriptor table and its number, the owner of record locks.
#[derive(Debug)]
pub struct FileTable {
    number: u64,
    /// Its place in preserved memory.
    record: u16,
    descriptors: RefCell<Descriptors<OpenFile>>,
    /// Places of the blocks, by number / `BLOCK`, and of the lists that have those from `DIRECT` on.
    blocks: RefCell<Vec<u16>>,
    lists: RefCell<Vec<u16>>,
    store: Rc<Store>,
}

impl FileTable {
    /// A table with these descriptors. `EAGAIN`, `ENFILE`, `ENOMEM`: no room.
    pub fn new(closing: &Closing, descriptors: Descriptors<OpenFile>) -> Result<Rc<FileTable>, Errno> {
        let (store, number) = (closing.store(), closing.next_number());
        let record = store.new_table()?;
        let table = FileTable {
            number,
            record,
            descriptors: RefCell::new(descriptors),
            blocks: RefCell::default(),
            lists: RefCell::default(),
            store: store.clone(),
        };
        table.copy_in()?;
        Ok(Rc::new(table))
    }

    /// Writes the records of a table that nothing refers to yet.
    fn copy_in(&self) -> Result<(), Errno> {
        for (number, file, close_on_exec) in self.descriptors.borrow().marks(0, usize::MAX) {
            let record = DescriptorRecord { file: file.place(), close_on_exec };
            let block = match self.known_block(number / BLOCK) {
                NOWHERE => self.new_block(number / BLOCK)?,
                block => block,
            };
            self.store.put_descriptor(block, number % BLOCK, &record);
        }
        for list in 0..self.blocks.borrow().len().saturating_sub(DIRECT).div_ceil(LIST) {
            let place = self.store.new_list(&self.list_record(list))?;
            self.lists.borrow_mut().try_push(place)?;
        }
        self.store.put_table(self.record, &self.table_record());
        Ok(())
    }

    fn table_record(&self) -> TableRecord {
        let place = |places: &[u16], index: usize| places.get(index).copied().unwrap_or(NOWHERE);
        let (blocks, lists) = (self.blocks.borrow(), self.lists.borrow());
        TableRecord {
            number: self.number,
            blocks: core::array::from_fn(|index| place(&blocks, index)),
            lists: core::array::from_fn(|index| place(&lists, index)),
        }
    }

    fn list_record(&self, list: usize) -> ListRecord {
        let blocks = self.blocks.borrow();
        let first = DIRECT + list * LIST;
        ListRecord(core::array::from_fn(|index| blocks.get(first + index).copied().unwrap_or(NOWHERE)))
    }

    /// A table as a predecessor has left it.
    pub fn restore(
        store: &Rc<Store>,
        place: u16,
        number: u64,
        descriptors: Descriptors<OpenFile>,
        (blocks, lists): (Vec<u16>, Vec<u16>),
    ) -> Rc<FileTable> {
        Rc::new(FileTable {
            number,
            record: place,
            descriptors: RefCell::new(descriptors),
            blocks: RefCell::new(blocks),
            lists: RefCell::new(lists),
            store: store.clone(),
        })
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

    /// The block with this index; `NOWHERE`: there is none.
    #[inline]
    fn known_block(&self, index: usize) -> u16 {
        self.blocks.borrow().get(index).copied().unwrap_or(NOWHERE)
    }

    /// The block of a number, made if there is none. `ENFILE`, `ENOMEM`: no room.
    #[inline]
    fn block(&self, number: usize) -> Result<u16, Errno> {
        match self.known_block(number / BLOCK) {
            NOWHERE => self.add_block(number / BLOCK),
            block => Ok(block),
        }
    }

    fn new_block(&self, index: usize) -> Result<u16, Errno> {
        let mut blocks = self.blocks.borrow_mut();
        let missing = (index + 1).saturating_sub(blocks.len());
        blocks.try_make_room(missing)?;
        let block = self.store.new_block()?;
        blocks.extend(core::iter::repeat_n(NOWHERE, missing));
        blocks[index] = block;
        Ok(block)
    }

    #[cold]
    fn add_block(&self, index: usize) -> Result<u16, Errno> {
        let block = self.new_block(index)?;
        let added = match index.checked_sub(DIRECT) {
            None => Ok(()),
            Some(further) => self.save_list(further / LIST),
        };
        if let Err(error) = added {
            self.blocks.borrow_mut()[index] = NOWHERE;
            self.store.release_block(block);
            return Err(error);
        }
        self.store.set_table(self.record, &self.table_record());
        Ok(block)
    }

    /// Preserves a list of blocks, made if there is none.
    fn save_list(&self, list: usize) -> Result<(), Errno> {
        let record = self.list_record(list);
        let mut lists = self.lists.borrow_mut();
        match lists.get(list).copied().unwrap_or(NOWHERE) {
            NOWHERE => {
                let missing = (list + 1).saturating_sub(lists.len());
                lists.try_make_room(missing)?;
                let place = self.store.new_list(&record)?;
                lists.extend(core::iter::repeat_n(NOWHERE, missing));
                lists[list] = place;
            }
            place => self.store.set_list(place, &record),
        }
        Ok(())
    }

    fn save(&self, number: usize, record: Option<&DescriptorRecord>) -> Result<(), Errno> {
        let block = self.block(number)?;
        self.store.set_descriptor(block, number % BLOCK, record);
        Ok(())
    }

    /// A number that is in use has a block already.
    fn clear(&self, number: usize) {
        let block = self.known_block(number / BLOCK);
        if block != NOWHERE {
            self.store.set_descriptor(block, number % BLOCK, None);
        }
    }

    /// [`Descriptors::insert`]. `ENFILE` besides.
    pub fn insert(&self, file: Rc<OpenFile>, first: usize, close_on_exec: bool) -> Result<i32, Errno> {
        let record = DescriptorRecord { file: file.place(), close_on_exec };
        let number = self.descriptors.borrow_mut().insert(file, first, close_on_exec)?;
        if let Err(error) = self.save(number as usize, Some(&record)) {
            let _ = self.descriptors.borrow_mut().remove(number);
            return Err(error);
        }
        Ok(number)
    }

    /// Makes `number` mean `file`, and closes what it meant before. `EBADF`, `ENFILE`.
    pub fn replace(&self, number: i32, file: Rc<OpenFile>, close_on_exec: bool) -> Result<(), Errno> {
        if number as usize >= DESCRIPTORS_MAX {
            return Err(Errno::EBADF);
        }
        self.save(number as usize, Some(&DescriptorRecord { file: file.place(), close_on_exec }))?;
        let replaced = self.descriptors.borrow_mut().replace(number, file, close_on_exec)?;
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

    fn close_removed(&self, removed: Vec<(usize, Rc<OpenFile>)>) {
        for (number, file) in removed {
            self.clear(number);
            self.forget(&file);
        }
    }

    /// Closes every number that is marked close-on-exec.
    pub fn close_marked(&self) {
        let removed = self.descriptors.borrow_mut().remove_close_on_exec();
        self.close_removed(removed);
    }

    /// Closes the numbers `first ..= last`.
    pub fn close_range(&self, first: usize, last: usize) {
        let removed = self.descriptors.borrow_mut().remove_range(first, last);
        self.close_removed(removed);
    }

    /// Closes every number of a table that no thread uses any more. Its records end with it.
    pub fn close_all(&self) {
        let descriptors = self.descriptors.take();
        descriptors.iter().for_each(|(_, file)| self.forget(file));
    }

    /// A closed number takes the table's record locks off the file, and its request to be notified of messages off the queue.
    fn forget(&self, file: &OpenFile) {
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
            let _ = self.save(number, Some(&DescriptorRecord { file: file.place(), close_on_exec }));
        }
    }

    /// [`Descriptors::set_close_on_exec`].
    pub fn set_close_on_exec(&self, number: i32, mark: bool) -> Result<(), Errno> {
        let mut descriptors = self.descriptors.borrow_mut();
        descriptors.set_close_on_exec(number, mark)?;
        let record = DescriptorRecord { file: descriptors.get(number)?.place(), close_on_exec: mark };
        self.save(number as usize, Some(&record))
    }
}

impl Drop for FileTable {
    fn drop(&mut self) {
        self.store.release_table(self.record, &self.lists.borrow(), &self.blocks.borrow());
    }
}
