//! What outlives vfs: its state as records in preserved memory, changed once a turn, all or nothing.
//!
//! The heap holds the same state in the form that the handlers work with; whoever changes one changes the other. At the end of a
//! turn, before any answer or request leaves, [`Store::end_turn`] notes the results of the calls that are being answered, and commits.
//! A death at any instruction leaves the state of the last commit: then the calls that were not answered come again, and those whose
//! results are noted are answered, the others done. See the book's chapter on files, "When vfs dies".
//!
//! `records` says what is kept, `pool` and `text` where; `found` reads it back, and `recovery` makes the heap from it again.

mod extents;
mod found;
mod pipes;
mod pool;
pub mod queues;
pub mod records;
mod text;
pub mod timers;

use abi::{Endpoint, Errno, Message, endpoint::SLOTS};
use alloc::{boxed::Box, vec::Vec};
use core::cell::{Cell, RefCell};
use extents::Extents;
pub use found::Used;
use pool::Pool;
use queues::{QueueRecord, SignalRecord};
use records::{
    BLOCK, CallRecord, DescriptorRecord, DirectoriesRecord, ExecRecord, FileRecord, GlobalRecord, LockRecord,
    MountRecord, NOWHERE, NextRecord, Note, ObjectRecord, PeerRecord, PipeRecord, TableRecord, ThreadRecord,
};
use recover::records::{Area, Cells, Found, Record, Recover, Table, VALUE_BITS};
use sys::keep::Keep;
pub use text::Text;
use text::Texts;
use timers::TimerRecord;

/// Bytes of preserved memory: `keep_bytes` of the system file is at least this.
pub const KEEP_BYTES: usize = 0xb0_0000 / SCALE;
/// Tests have smaller tables: they make and search them thousands of times.
const SCALE: usize = if cfg!(test) { 8 } else { 1 };
/// Which layout this is: to be changed with any table.
const LAYOUT: u64 = 5;
/// Words that change in one turn.
const LOG_CHANGES: usize = 16384 / SCALE;
/// Bytes of a page of a pipe.
pub const PIPE_PAGE: usize = 4096;

const TABLES: usize = SLOTS;
const DESCRIPTOR_BLOCKS: usize = 4096 / SCALE / SCALE;
const FILES: usize = 8192 / SCALE / SCALE;
const PIPES: usize = 1024 / SCALE;
const PIPE_PAGES: usize = 768 / SCALE / SCALE;
const LOCKS: usize = 2048 / SCALE / SCALE;
const MOUNTS: usize = 32;
/// Message queues (`queues_max` of mq_overview(7)).
pub const QUEUES: usize = 256 / SCALE;
const MESSAGE_PLACES: usize = 0x20_0000 / queues::PLACE_BYTES / SCALE;
const SIGNALS: usize = 256 / SCALE;
const TIMERS: usize = 2048 / SCALE;
const PEERS: usize = 32;

/// Places of one table, and which of them are free.
#[derive(Debug)]
pub struct Places<R> {
    table: Table<R>,
    pool: Pool,
}

impl<R: Record> Places<R> {
    fn lay_out(recover: &Recover, count: usize) -> Self {
        Places { table: Table::lay_out(recover, count), pool: Pool::new(count) }
    }
}

/// A thread's last call; numbers are those of `abi::message::REPEATED`, 0: none.
#[derive(Debug)]
struct LastCall {
    thread: Cell<Endpoint>,
    number: Cell<u64>,
    /// The last one of which something is noted.
    noted: Cell<u64>,
}

impl LastCall {
    fn none() -> LastCall {
        LastCall { thread: Cell::new(Endpoint::NONE), number: Cell::new(0), noted: Cell::new(0) }
    }

    #[inline]
    fn number_of(&self, thread: Endpoint) -> u64 {
        if self.thread.get() == thread { self.number.get() } else { 0 }
    }
}

/// See the head of the file.
#[derive(Debug)]
pub struct Store {
    recover: Recover,
    threads: Table<ThreadRecord>,
    calls: Table<CallRecord>,
    execs: Table<ExecRecord>,
    tables: Places<TableRecord>,
    descriptors: Cells,
    blocks: Pool,
    files: Places<FileRecord>,
    /// Positions and status flags of open files.
    positions: Cells,
    flags: Cells,
    directories: Places<DirectoriesRecord>,
    pipes: Places<PipeRecord>,
    pages: Places<NextRecord>,
    content: Area,
    locks: Places<LockRecord>,
    mounts: Table<MountRecord>,
    queues: Places<QueueRecord>,
    ended_queues: RefCell<Vec<(u16, QueueRecord)>>,
    runs: Extents,
    messages: Cells,
    /// What the messages consist of.
    slots: Area,
    signals: Places<SignalRecord>,
    timers: Places<TimerRecord>,
    peers: Table<PeerRecord>,
    global: Table<GlobalRecord>,
    texts: Texts,
    /// The last call of each thread, by slot.
    last_calls: Box<[LastCall]>,
    /// Results are to be noted although no record has changed.
    moved: Cell<bool>,
}

impl Store {
    /// Opens preserved memory.
    pub fn open(keep: Keep) -> (Store, Found) {
        let (recover, found) = Recover::open(keep, LAYOUT, LOG_CHANGES);
        let store = Store {
            threads: Table::lay_out(&recover, SLOTS),
            calls: Table::lay_out(&recover, SLOTS),
            execs: Table::lay_out(&recover, SLOTS),
            tables: Places::lay_out(&recover, TABLES),
            descriptors: Cells::lay_out(&recover, DESCRIPTOR_BLOCKS * BLOCK),
            blocks: Pool::new(DESCRIPTOR_BLOCKS),
            files: Places::lay_out(&recover, FILES),
            positions: Cells::lay_out(&recover, FILES),
            flags: Cells::lay_out(&recover, FILES),
            directories: Places::lay_out(&recover, TABLES),
            pipes: Places::lay_out(&recover, PIPES),
            pages: Places::lay_out(&recover, PIPE_PAGES),
            content: Area::lay_out(&recover, PIPE_PAGES * PIPE_PAGE),
            locks: Places::lay_out(&recover, LOCKS),
            mounts: Table::lay_out(&recover, MOUNTS),
            queues: Places::lay_out(&recover, QUEUES),
            ended_queues: RefCell::default(),
            runs: Extents::new(MESSAGE_PLACES),
            messages: Cells::lay_out(&recover, MESSAGE_PLACES),
            slots: Area::lay_out(&recover, MESSAGE_PLACES * queues::PLACE_BYTES),
            signals: Places::lay_out(&recover, SIGNALS),
            timers: Places::lay_out(&recover, TIMERS),
            peers: Table::lay_out(&recover, PEERS),
            global: Table::lay_out(&recover, 1),
            texts: Texts::lay_out(&recover),
            moved: Cell::new(false),
            last_calls: core::iter::repeat_with(LastCall::none).take(SLOTS).collect(),
            recover,
        };
        store.settle_notes();
        (store, found)
    }

    /// The end of a turn: see the head of the file.
    pub fn end_turn(&self, answers: &[(Endpoint, Message)]) {
        self.release_ended_queues();
        if !self.recover.is_changing() && !self.moved.get() {
            return;
        }
        for (to, message) in answers.iter().filter(|(to, _)| to.is_application()) {
            self.note(*to, Note::Result(message.words[0]));
        }
        self.commit();
    }

    /// A thread is in the call with this number from now on.
    #[inline]
    pub fn begin_call(&self, thread: Endpoint, number: u64) {
        let call = &self.last_calls[thread.slot()];
        call.thread.set(thread);
        call.number.set(number);
    }

    /// The number of the call that a thread is in, or was in last; 0: none.
    #[inline]
    pub fn call_of(&self, thread: Endpoint) -> u64 {
        self.last_calls[thread.slot()].number_of(thread)
    }

    /// What has been changed lasts from now on.
    pub fn commit(&self) {
        self.moved.set(false);
        self.recover.commit_stamp();
    }

    /// This turn, for the pools: what it gives back is not used before the next.
    #[inline]
    fn turn(&self) -> u64 {
        self.recover.stamp()
    }

    /// Data has been moved to or from a program: the results of this turn have to be noted.
    #[inline]
    pub fn has_moved(&self) {
        self.moved.set(true);
    }

    /// Notes something about the call that a thread is in.
    #[inline]
    pub fn note(&self, thread: Endpoint, note: Note) {
        let call = &self.last_calls[thread.slot()];
        let number = call.number_of(thread);
        if number == 0 {
            return;
        }
        self.moved.set(true);
        let record = CallRecord { number, note, stamp: self.recover.stamp() };
        if call.noted.replace(number) == number {
            // A note of the same call comes back when this turn is undone.
            self.calls.set(&self.recover, thread.slot(), &record);
        } else {
            self.calls.put_unreferenced(&self.recover, thread.slot(), &record);
        }
    }

    /// Before anything is committed: notes that a predecessor has not committed are none, and the others are known.
    fn settle_notes(&self) {
        for (slot, entry) in self.calls.entries(&self.recover) {
            match entry.record() {
                Some(call) if self.recover.is_committed(call.stamp) => self.last_calls[slot].noted.set(call.number),
                _ => self.calls.clear_unreferenced(&self.recover, slot),
            }
        }
    }

    /// What is noted about the call with this number.
    pub fn noted(&self, thread: Endpoint, number: u64) -> Option<Note> {
        let call = self.calls.get(&self.recover, thread.slot()).record()?;
        (call.number == number).then_some(call.note)
    }

    fn release<R>(&self, places: &Places<R>, place: usize) {
        places.pool.release(place, self.turn());
    }

    /// Writes a text that a record is to refer to. `ENOMEM`: no room.
    pub fn put_text(&self, text: &[u8]) -> Result<Text, Errno> {
        self.texts.put(&self.recover, text, self.turn()).ok_or(Errno::ENOMEM)
    }

    /// Reads one.
    pub fn text(&self, text: Text) -> alloc::vec::Vec<u8> {
        self.texts.get(&self.recover, text)
    }

    /// No record refers to this text any more.
    #[inline]
    pub fn release_text(&self, text: Text) {
        self.texts.release(text, self.turn());
    }

    /// Sets what is known of a thread; a new one in a slot has made no call yet.
    pub fn set_thread(&self, record: &ThreadRecord) {
        self.threads.set(&self.recover, record.endpoint.slot(), record);
    }

    /// A thread begins or ends: nothing is known of calls in its slot. Its groups are released with its record.
    pub fn forget_thread(&self, slot: usize) {
        self.threads.clear(&self.recover, slot);
        self.calls.clear(&self.recover, slot);
        self.last_calls[slot].number.set(0);
        self.last_calls[slot].noted.set(0);
        self.set_exec(slot, None);
    }

    /// Sets how far a thread's exec has come. Its former text is released.
    pub fn set_exec(&self, slot: usize, record: Option<&ExecRecord>) {
        let former = self.execs.get(&self.recover, slot).record();
        match record {
            Some(record) => self.execs.set(&self.recover, slot, record),
            None => self.execs.clear(&self.recover, slot),
        }
        if let Some(former) = former.filter(|former| record.is_none_or(|record| record.text != former.text)) {
            self.release_text(former.text);
        }
    }

    /// How far a thread's exec has come.
    pub fn exec(&self, slot: usize) -> Option<ExecRecord> {
        self.execs.get(&self.recover, slot).record()
    }

    /// A place for a descriptor table, to be filled by [`Store::put_table`]. `EAGAIN`: all are in use.
    pub fn new_table(&self) -> Result<u16, Errno> {
        self.tables.pool.take(self.turn()).map(|place| place as u16).ok_or(Errno::EAGAIN)
    }

    /// Sets the list of blocks of a table that nothing refers to yet.
    pub fn put_table(&self, place: u16, record: &TableRecord) {
        self.tables.table.put_unreferenced(&self.recover, place as usize, record);
    }

    /// Changes the list of blocks of a table.
    pub fn set_table(&self, place: u16, record: &TableRecord) {
        self.tables.table.set(&self.recover, place as usize, record);
    }

    /// Ends a table.
    pub fn release_table(&self, place: u16, blocks: impl Iterator<Item = u16>) {
        self.release(&self.tables, place as usize);
        blocks.filter(|block| *block != NOWHERE).for_each(|block| self.blocks.release(block as usize, self.turn()));
    }

    /// A block of descriptors, all free. `ENFILE`: no room.
    pub fn new_block(&self) -> Result<u16, Errno> {
        let block = self.blocks.take(self.turn()).ok_or(Errno::ENFILE)?;
        for place in block * BLOCK..(block + 1) * BLOCK {
            self.descriptors.clear_unreferenced(&self.recover, place);
        }
        Ok(block as u16)
    }

    /// Sets a descriptor; `None`: free.
    #[inline]
    pub fn set_descriptor(&self, block: u16, index: usize, record: Option<&DescriptorRecord>) {
        let place = block as usize * BLOCK + index;
        match record {
            Some(record) => self.descriptors.set(&self.recover, place, record.to_value()),
            None => self.descriptors.clear(&self.recover, place),
        }
    }

    /// Sets a descriptor of a block that is not yet a table's.
    pub fn put_descriptor(&self, block: u16, index: usize, record: &DescriptorRecord) {
        self.descriptors.put_unreferenced(&self.recover, block as usize * BLOCK + index, record.to_value());
    }

    /// Makes an open file at position 0; the record's path is `path`'s. `ENFILE`: no room.
    pub fn new_file(&self, file: &FileRecord, flags: u32, path: &[u8]) -> Result<(u16, Text), Errno> {
        let path = self.texts.put(&self.recover, path, self.turn()).ok_or(Errno::ENFILE)?;
        let Some(place) = self.files.pool.take(self.turn()) else {
            self.release_text(path);
            return Err(Errno::ENFILE);
        };
        self.files.table.put_unreferenced(&self.recover, place, &FileRecord { path, ..*file });
        self.positions.put_unreferenced(&self.recover, place, 0);
        self.flags.put_unreferenced(&self.recover, place, flags as u64);
        Ok((place as u16, path))
    }

    /// Sets the path of an open file.
    pub fn set_path(&self, place: u16, path: Text) {
        if let Some(file) = get(&self.files.table, &self.recover, place) {
            self.files.table.set(&self.recover, place as usize, &FileRecord { path, ..file });
        }
    }

    /// Sets what an open file is of.
    pub fn set_object(&self, place: u16, object: ObjectRecord) {
        if let Some(file) = get(&self.files.table, &self.recover, place) {
            self.files.table.set(&self.recover, place as usize, &FileRecord { object, ..file });
        }
    }

    /// Sets the position of an open file. One beyond 2^48, which no file system has, is preserved as that.
    #[inline]
    pub fn set_position(&self, place: u16, position: u64) {
        self.positions.set(&self.recover, place as usize, position.min((1 << VALUE_BITS) - 1));
    }

    /// Sets the status flags of an open file.
    #[inline]
    pub fn set_flags(&self, place: u16, flags: u32) {
        self.flags.set(&self.recover, place as usize, flags as u64);
    }

    /// Ends an open file.
    #[inline]
    pub fn release_file(&self, place: u16, path: Text) {
        self.release(&self.files, place as usize);
        self.release_text(path);
    }

    /// Makes directories of a process. `ENOMEM`: no room.
    pub fn new_directories(&self, record: &DirectoriesRecord) -> Result<u16, Errno> {
        let place = self.directories.pool.take(self.turn()).ok_or(Errno::ENOMEM)?;
        self.directories.table.put_unreferenced(&self.recover, place, record);
        Ok(place as u16)
    }

    /// Changes them.
    pub fn set_directories(&self, place: u16, record: &DirectoriesRecord) {
        self.directories.table.set(&self.recover, place as usize, record);
    }

    /// Ends them.
    pub fn release_directories(&self, place: u16, texts: [Text; 2]) {
        self.release(&self.directories, place as usize);
        texts.into_iter().for_each(|text| self.release_text(text));
    }

    /// Locks that may still be set.
    pub fn lock_room(&self) -> usize {
        self.locks.pool.room(self.turn())
    }

    /// Sets a lock. `ENOLCK`: no room.
    pub fn new_lock(&self, record: &LockRecord) -> Result<u16, Errno> {
        let place = self.locks.pool.take(self.turn()).ok_or(Errno::ENOLCK)?;
        self.locks.table.set(&self.recover, place, record);
        Ok(place as u16)
    }

    /// Takes a lock off.
    pub fn release_lock(&self, place: u16) {
        self.locks.table.clear(&self.recover, place as usize);
        self.release(&self.locks, place as usize);
    }

    /// Enters a mount. `ENOSPC`: there are too many.
    pub fn new_mount(&self, record: &MountRecord) -> Result<u16, Errno> {
        let mut places = 0..MOUNTS;
        let free =
            places.find(|&place| matches!(self.mounts.get(&self.recover, place), recover::records::Entry::Empty));
        let place = free.ok_or(Errno::ENOSPC)?;
        self.mounts.set(&self.recover, place, record);
        Ok(place as u16)
    }

    /// Changes the flags of a mount.
    pub fn set_mount_flags(&self, place: u16, flags: u64) {
        if let Some(record) = self.mounts.get(&self.recover, place as usize).record() {
            self.mounts.set(&self.recover, place as usize, &MountRecord { flags, ..record });
        }
    }

    /// Takes a mount out.
    pub fn remove_mount(&self, place: u16) {
        if let Some(record) = self.mounts.get(&self.recover, place as usize).record() {
            self.release_text(record.source);
            self.release_text(record.target);
        }
        self.mounts.clear(&self.recover, place as usize);
    }

    /// Enters a service that vfs asks, unless it is known.
    pub fn add_peer(&self, record: &PeerRecord) {
        let all = (0..PEERS).map(|place| (place, self.peers.get(&self.recover, place).record()));
        for (place, known) in all {
            match known {
                Some(known) if known == *record => return,
                Some(_) => {}
                None => return self.peers.set(&self.recover, place, record),
            }
        }
    }

    /// What there is once.
    pub fn global(&self) -> GlobalRecord {
        self.global.get(&self.recover, 0).record().unwrap_or_default()
    }

    /// Changes it.
    pub fn set_global(&self, record: &GlobalRecord) {
        self.global.set(&self.recover, 0, record);
    }
}

fn get<R: Record>(table: &Table<R>, recover: &Recover, place: u16) -> Option<R> {
    if (place as usize) < table.len() { table.get(recover, place as usize).record() } else { None }
}
