//! What outlives vfs: its state as records in preserved memory, changed once a turn, all or nothing.
//!
//! The heap holds the same state in the form that the handlers work with. Records that both hold as they are go through [`Kept`], which
//! changes both; descriptor tables, locks and rings are each written by one type that owns heap form and record. At the end of a turn, before any answer or request leaves, [`Store::end_turn`] notes the results of the calls that are being answered, and commits.
//! A death at any instruction leaves the state of the last commit: then the calls that were not answered come again, and those whose
//! results are noted are answered, the others done. See the book's chapter on files, "When vfs dies".
//!
//! `records` says what is kept, `layout`, `pool` and `text` where; `found` reads it back, and `recovery` makes the heap from it again.

mod contexts;
mod dirty;
mod extents;
mod found;
mod kept;
mod layout;
mod pipes;
mod pool;
pub mod queues;
pub mod records;
mod text;
mod trim;

use abi::{Endpoint, Errno};
use alloc::rc::Rc;
use core::cell::Cell;
pub use kept::Kept;
pub use layout::{FILE_PAGE, KEEP_BYTES, PIPE_PAGE, Sizes, Store, quota};
use layout::{PEERS, Places};
use pool::SHARE;
pub use pool::{ROOT, scaled};
use records::{
    BLOCK, CallRecord, DescriptorRecord, ExecRecord, FileRecord, GlobalRecord, LimitRecord, ListRecord, LockRecord,
    LoopRecord, MountRecord, NO_PLACE, Note, PeerRecord, TableRecord, Terms,
};
pub use recover::records::VALUE_BITS;
use recover::records::{Record, Recover, Table};
use server::quota::Share;
pub use text::Text;

/// Distance of two lines of the log about refusals.
const LOG_NS: u64 = 1_000_000_000;

/// The last call of a thread, by its number (`abi::message::REPEATED`); 0: none.
#[derive(Debug)]
struct LastCall {
    thread: Cell<Endpoint>,
    number: Cell<u64>,
    /// Number of the last call with a note.
    noted: Cell<u64>,
}

/// How much of the tables is in use, and what one user gets of some.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Open files.
    pub files: usize,
    /// Open files that there can be.
    pub files_max: usize,
    /// Bytes in pipes, beyond those that every pipe has, for one user.
    pub user_pipe_bytes: usize,
    /// Registrations in epolls for one user.
    pub user_interests: usize,
}

impl LastCall {
    const fn none() -> LastCall {
        LastCall { thread: Cell::new(Endpoint::NONE), number: Cell::new(0), noted: Cell::new(0) }
    }

    #[inline]
    fn number_of(&self, thread: Endpoint) -> u64 {
        if self.thread.get() == thread { self.number.get() } else { 0 }
    }
}

impl Store {
    /// Ends a turn: notes the results of the calls that are being answered, and commits.
    #[inline]
    pub fn end_turn(&self, results: impl Iterator<Item = (Endpoint, u64)>) {
        if !self.recover.is_changing() && !self.moved.get() {
            return;
        }
        if self.has_ended_queues.get() {
            self.release_ended_queues();
        }
        for (to, result) in results {
            self.note(to, Note::Result(result));
        }
        self.commit();
    }

    /// Sets the number of the call that a thread has in progress.
    #[inline]
    pub fn begin_call(&self, thread: Endpoint, number: u64) {
        let call = &self.last_calls[thread.slot()];
        call.thread.set(thread);
        call.number.set(number);
    }

    /// Returns the number of the call that a thread has in progress, or had last; 0: none.
    #[inline]
    pub fn call_of(&self, thread: Endpoint) -> u64 {
        self.last_calls[thread.slot()].number_of(thread)
    }

    /// Commits: a death does not undo what was changed before.
    pub fn commit(&self) {
        self.moved.set(false);
        self.recover.commit_stamp();
    }

    /// Identifies this turn to the pools: places freed in it are not reused before the next.
    #[inline]
    fn turn(&self) -> u64 {
        self.recover.stamp()
    }

    /// Data has been copied to or from a program, pm told that a call ends, or a queue has ended: this turn has to be ended in order.
    #[inline]
    pub fn has_moved(&self) {
        self.moved.set(true);
    }

    /// Notes something about the call that a thread has in progress. Services, which make no calls, have none.
    #[inline]
    pub fn note(&self, thread: Endpoint, note: Note) {
        let Some(call) = self.last_calls.get(thread.slot()) else { return };
        let number = call.number_of(thread);
        if number == 0 {
            return;
        }
        self.moved.set(true);
        if call.noted.replace(number) == number {
            return self.note_again(thread, number, note);
        }
        let record = CallRecord { number, note, stamp: self.recover.stamp() };
        self.calls.put_unreferenced(&self.recover, thread.slot(), &record);
    }

    /// Replaces a note of the same call, which comes back when this turn is undone.
    #[inline(never)]
    fn note_again(&self, thread: Endpoint, number: u64, note: Note) {
        let record = CallRecord { number, note, stamp: self.recover.stamp() };
        self.calls.set(&self.recover, thread.slot(), &record);
    }

    /// Drops the notes that a predecessor has not committed. Runs before the first commit.
    fn settle_notes(&self) {
        for (slot, entry) in self.calls.entries(&self.recover) {
            match entry.record() {
                Some(call) if self.recover.is_committed(call.stamp) => self.last_calls[slot].noted.set(call.number),
                _ => self.calls.clear_unreferenced(&self.recover, slot),
            }
        }
    }

    /// Returns the note about the call with this number.
    pub fn noted(&self, thread: Endpoint, number: u64) -> Option<Note> {
        let call = self.calls.get(&self.recover, thread.slot()).record()?;
        (call.number == number).then_some(call.note)
    }

    fn release<R>(&self, places: &Places<R>, place: usize) {
        places.pool.release(place, self.turn());
    }

    /// Returns how much of the tables is used.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Returns how much of the tables is in use.
    pub fn usage(&self) -> Usage {
        Usage {
            files: self.files.pool.taken(),
            files_max: self.sizes.files(),
            user_pipe_bytes: self.sizes.pipe_pages() / SHARE * PIPE_PAGE,
            user_interests: self.sizes.interests() / SHARE,
        }
    }

    /// Whether this turn has changed so much that it should end soon.
    pub fn is_turn_long(&self) -> bool {
        self.recover.is_long()
    }

    /// Commits when a turn has changed much already: for calls each part of which leaves a state that a successor can go on from.
    #[inline]
    pub fn commit_long(&self) {
        if self.recover.is_long() {
            self.commit();
        }
    }

    /// Writes a text of a user that a record is to refer to. `ENOMEM`: no room.
    pub fn put_text(&self, text: &[u8], user: u32) -> Result<Text, Errno> {
        self.texts.put(&self.recover, text, user, self.turn()).ok_or(Errno::ENOMEM)
    }

    /// Reads a text.
    pub fn text(&self, text: Text) -> alloc::vec::Vec<u8> {
        self.texts.get(&self.recover, text)
    }

    /// Frees a text that no record refers to any more.
    #[inline]
    pub fn release_text(&self, text: Text) {
        self.texts.release(text, self.turn());
    }

    /// Removes the record of a thread that starts or ends, with the notes of its calls.
    pub fn forget_thread(&self, slot: usize) {
        self.threads.clear(&self.recover, slot);
        self.calls.clear(&self.recover, slot);
        self.submissions.clear(&self.recover, slot);
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

    /// Takes a place for a descriptor table, to be filled by [`Store::put_table`]. `EAGAIN`: all are in use.
    pub fn new_table(&self) -> Result<u16, Errno> {
        self.tables.pool.take(ROOT, self.turn()).map(|place| place as u16).ok_or(Errno::EAGAIN)
    }

    /// Writes the list of blocks of a table that no record refers to yet.
    pub fn put_table(&self, place: u16, record: &TableRecord) {
        self.tables.table.put_unreferenced(&self.recover, place as usize, record);
    }

    /// Changes the list of blocks of a table.
    pub fn set_table(&self, place: u16, record: &TableRecord) {
        self.tables.table.set(&self.recover, place as usize, record);
    }

    /// Frees a table, its lists and its blocks.
    pub fn release_table(&self, place: u16, lists: &[u32], blocks: &[u32]) {
        self.release(&self.tables, place as usize);
        lists.iter().for_each(|list| self.release(&self.lists, *list as usize));
        let blocks = blocks.iter().filter(|block| **block != NO_PLACE);
        blocks.for_each(|block| self.blocks.release(*block as usize, self.turn()));
    }

    /// Charges a user for the size of a descriptor table. `ENFILE`: beyond the user's share.
    pub fn charge_table(&self, user: u32, descriptors: usize) -> Result<Share, Errno> {
        self.table_sizes.take(user, descriptors).map_err(|refusal| refusal.errno(Errno::ENFILE, Errno::ENFILE))
    }

    /// Charges a user for a descriptor table that a predecessor has left. `ENOMEM`.
    pub fn restore_charge(&self, user: u32, descriptors: usize) -> Result<Share, Errno> {
        self.table_sizes.restore(user, descriptors).map_err(|refusal| refusal.errno(Errno::ENOMEM, Errno::ENOMEM))
    }

    /// Makes a list of blocks that no table refers to yet. `ENFILE`: no place is free.
    pub fn new_list(&self, record: &ListRecord) -> Result<u32, Errno> {
        let place = self.lists.pool.take(ROOT, self.turn()).ok_or(Errno::ENFILE)?;
        self.lists.table.put_unreferenced(&self.recover, place, record);
        Ok(place as u32)
    }

    /// Changes a list of blocks.
    pub fn set_list(&self, place: u32, record: &ListRecord) {
        self.lists.table.set(&self.recover, place as usize, record);
    }

    /// Frees a block that no table has got.
    pub fn release_block(&self, block: u32) {
        self.blocks.release(block as usize, self.turn());
    }

    /// Makes a block of descriptors that no table has yet: these, and then free ones. `ENFILE`: no block is free.
    pub fn new_block(&self, mut records: impl Iterator<Item = Option<DescriptorRecord>>) -> Result<u32, Errno> {
        let block = self.blocks.take(ROOT, self.turn()).ok_or(Errno::ENFILE)?;
        for place in block * BLOCK..(block + 1) * BLOCK {
            match records.next().flatten() {
                Some(record) => self.descriptors.put_unreferenced(&self.recover, place, record.to_value()),
                None => self.descriptors.clear_unreferenced(&self.recover, place),
            }
        }
        Ok(block as u32)
    }

    /// Sets a descriptor; `None`: free.
    #[inline]
    pub fn set_descriptor(&self, block: u32, index: usize, record: Option<&DescriptorRecord>) {
        let place = block as usize * BLOCK + index;
        match record {
            Some(record) => self.descriptors.set(&self.recover, place, record.to_value()),
            None => self.descriptors.clear(&self.recover, place),
        }
    }

    /// Makes the record of an open file with this value, status flags and path. `ENFILE`: no place is free.
    pub fn new_file(
        self: &Rc<Self>,
        file: FileRecord,
        (value, flags): (u64, u32),
        path: &[u8],
    ) -> Result<Kept<FileRecord>, Errno> {
        let path = self.texts.put(&self.recover, path, file.user, self.turn()).ok_or(Errno::ENFILE)?;
        let Some(place) = self.files.pool.take(file.user, self.turn()) else {
            self.release_text(path);
            return Err(Errno::ENFILE);
        };
        let file = FileRecord { path, ..file };
        self.files.table.put_unreferenced(&self.recover, place, &file);
        self.values.put_unreferenced(&self.recover, place, value);
        self.flags.put_unreferenced(&self.recover, place, flags as u64);
        Ok(Kept::new(self, place as u32, file))
    }

    /// Sets the position of an open file.
    #[inline]
    pub fn set_position(&self, place: u32, position: u64) {
        self.set_value(place, preserved(position));
    }

    /// As [`Store::set_position`], for a call that does nothing else and may be made again. If it is alone in its turn, one word is written,
    /// and there is neither a result to note nor a change to commit.
    #[inline]
    pub fn set_position_again(&self, place: u32, position: u64) {
        if self.recover.is_changing() || self.moved.get() {
            self.set_position(place, position);
        } else {
            self.values.set_alone(&self.recover, place as usize, preserved(position));
        }
    }

    /// Sets the value of an open file: its position, or what its object keeps instead (`objects::Object::value`), below 2^48.
    #[inline]
    pub fn set_value(&self, place: u32, value: u64) {
        self.values.set(&self.recover, place as usize, value);
    }

    /// Sets the status flags of an open file.
    #[inline]
    pub fn set_flags(&self, place: u32, flags: u32) {
        self.flags.set(&self.recover, place as usize, flags as u64);
    }

    /// Checks that `further` locks of a user can be preserved, and `all` of a file rewritten. `ENOLCK`.
    pub fn check_lock_room(&self, user: u32, all: usize, further: usize) -> Result<(), Errno> {
        let locks = &self.locks.pool;
        if locks.room(self.turn()) < all || !locks.has_share(user, further) { Err(Errno::ENOLCK) } else { Ok(()) }
    }

    /// Preserves a lock. `ENOLCK`: no place is free.
    pub fn new_lock(&self, record: &LockRecord) -> Result<u16, Errno> {
        let place = self.locks.pool.take(record.user, self.turn()).ok_or(Errno::ENOLCK)?;
        self.locks.table.set(&self.recover, place, record);
        Ok(place as u16)
    }

    /// Removes a lock.
    pub fn release_lock(&self, place: u16) {
        self.locks.table.clear(&self.recover, place as usize);
        self.release(&self.locks, place as usize);
    }

    /// Sets the terms of a registration.
    #[inline]
    pub fn set_terms(&self, place: u32, terms: Terms) {
        self.terms.set(&self.recover, place as usize, terms.to_value());
    }

    /// Removes the record of a registration, whose open files go on.
    pub fn clear_interest(&self, place: u32) {
        self.interests.table.clear(&self.recover, place as usize);
    }

    /// Charges a user for a registration of a device. `ENOSPC`: beyond the user's share.
    pub fn charge_device_interest(&self, user: u32) -> Result<Share, Errno> {
        self.device_interests.take(user, 1).map_err(|refusal| refusal.errno(Errno::ENOSPC, Errno::ENOSPC))
    }

    /// Preserves a mount. `ENOSPC`: too many mounts, or the user has his share.
    pub fn new_mount(&self, record: &MountRecord) -> Result<u16, Errno> {
        let place = self.mounts.pool.take(record.user, self.turn()).ok_or(Errno::ENOSPC)?;
        self.mounts.table.set(&self.recover, place, record);
        Ok(place as u16)
    }

    /// Changes a mount. Texts that it had and has no more are for the caller to release.
    pub fn update_mount(&self, place: u16, change: impl FnOnce(&mut MountRecord)) {
        if let Some(mut record) = self.mounts.table.get(&self.recover, place as usize).record() {
            change(&mut record);
            self.mounts.table.set(&self.recover, place as usize, &record);
        }
    }

    /// Changes the path of what a mount covers. `ENOMEM`: no room.
    pub fn set_mount_target(&self, place: u16, target: &[u8]) -> Result<(), Errno> {
        let Some(record) = self.mounts.table.get(&self.recover, place as usize).record() else { return Ok(()) };
        let text = self.put_text(target, record.user)?;
        self.release_text(record.target);
        self.update_mount(place, |record| record.target = text);
        Ok(())
    }

    /// Removes a mount.
    pub fn remove_mount(&self, place: u16) {
        if let Some(record) = self.mounts.table.get(&self.recover, place as usize).record() {
            [record.source, record.target, record.subtree].into_iter().for_each(|text| self.release_text(text));
            self.mounts.table.clear(&self.recover, place as usize);
            self.release(&self.mounts, place as usize);
        }
    }

    /// Preserves what is behind a loop device; `None`: nothing.
    pub fn set_loop(&self, number: usize, record: Option<&LoopRecord>) {
        match record {
            Some(record) => self.loops.set(&self.recover, number, record),
            None => self.loops.clear(&self.recover, number),
        }
    }

    /// Preserves a service that vfs asks, unless it is preserved already.
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

    /// Whether a refusal may be logged now: one at a time.
    pub fn may_log(&self) -> bool {
        let now_ns = sys::time::now_ns();
        let may = self.logged_ns.get() == 0 || now_ns.saturating_sub(self.logged_ns.get()) >= LOG_NS;
        if may {
            self.logged_ns.set(now_ns);
        }
        may
    }

    /// Preserves what a container with limits may have.
    pub fn set_limits(&self, container: u8, record: &LimitRecord) {
        self.limits.set(&self.recover, container.into(), record);
    }

    /// Returns how many open files an account has.
    pub fn files_of(&self, account: u32) -> usize {
        self.files.pool.held_by(account)
    }

    /// Sets how many open files an account may have. `ENOMEM`.
    pub fn limit_files(&self, account: u32, limit: Option<usize>) -> Result<(), Errno> {
        self.files.pool.set_limit(account, limit).map_err(|_| Errno::ENOMEM)
    }

    /// Returns the record of which one exists.
    pub fn global(&self) -> GlobalRecord {
        self.global.get(&self.recover, 0).record().unwrap_or_default()
    }

    /// Changes it.
    pub fn set_global(&self, record: &GlobalRecord) {
        self.global.set(&self.recover, 0, record);
    }
}

fn get<R: Record>(table: &Table<R>, recover: &Recover, place: u16) -> Option<R> {
    get_wide(table, recover, place.into())
}

fn get_wide<R: Record>(table: &Table<R>, recover: &Recover, place: u32) -> Option<R> {
    if (place as usize) < table.len() { table.get(recover, place as usize).record() } else { None }
}

/// How a position is preserved: those beyond 2^48, which no file system has, as `fs::DIRECTORY_END`.
fn preserved(position: u64) -> u64 {
    position.min((1 << VALUE_BITS) - 1)
}
