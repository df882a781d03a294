//! A record in both its forms: in the heap, to be read, and in preserved memory. Whatever changes goes through this cell.

use super::{Store, Text, layout::Places, pool::ROOT, records::*};
use abi::Errno;
use alloc::rc::Rc;
use core::{cell::Cell, fmt};
use recover::records::{Record, Table};
use server::quota::Share;

/// A kind of record that is in use as [`Kept`].
pub trait Home: Record {
    /// Its table.
    fn table(store: &Store) -> &Table<Self>;

    /// The last one who used it is gone.
    fn release(&self, store: &Store, place: u32);
}

/// See the head of the file. The record's place is released with it.
pub struct Kept<R: Home> {
    record: Cell<R>,
    place: u32,
    store: Rc<Store>,
}

impl<R: Home> Kept<R> {
    /// The record at this place, which is preserved already, or will be by the first [`Kept::set`].
    pub fn new(store: &Rc<Store>, place: u32, record: R) -> Kept<R> {
        Kept { record: Cell::new(record), place, store: store.clone() }
    }

    /// The record.
    #[inline]
    pub fn get(&self) -> R {
        self.record.get()
    }

    /// Its place in its table.
    #[inline]
    pub fn place(&self) -> u32 {
        self.place
    }

    /// Preserved memory.
    #[inline]
    pub fn store(&self) -> &Rc<Store> {
        &self.store
    }

    /// Changes the record, here and in preserved memory.
    pub fn set(&self, record: R) {
        self.record.set(record);
        R::table(&self.store).set(&self.store.recover, self.place as usize, &record);
    }

    /// Sets the record where the state of the last commit does not refer to it: nothing has to be undone.
    pub fn put_unreferenced(&self, record: R) {
        self.record.set(record);
        R::table(&self.store).put_unreferenced(&self.store.recover, self.place as usize, &record);
    }

    /// Changes a part of it.
    pub fn update(&self, change: impl FnOnce(&mut R)) {
        let mut record = self.record.get();
        change(&mut record);
        self.set(record);
    }
}

impl<R: Home> Drop for Kept<R> {
    fn drop(&mut self) {
        self.record.get().release(&self.store, self.place);
    }
}

impl<R: Home + fmt::Debug> fmt::Debug for Kept<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} at {}", self.record.get(), self.place)
    }
}

/// A place of a table for a new record, which nothing refers to yet.
fn take<R: Record>(store: &Store, places: &Places<R>, record: &R, user: u32, full: Errno) -> Result<u32, Errno> {
    let place = places.pool.take(user, store.turn()).ok_or(full)?;
    places.table.put_unreferenced(&store.recover, place, record);
    Ok(place as u32)
}

impl Store {
    /// Makes a timer. `ENFILE`: no room.
    pub fn new_timer(self: &Rc<Self>, record: TimerRecord) -> Result<Kept<TimerRecord>, Errno> {
        Ok(Kept::new(self, take(self, &self.timers, &record, record.user, Errno::ENFILE)?, record))
    }

    /// Makes the owner of an open file. `ENOMEM`: no room.
    pub fn new_owner(self: &Rc<Self>, record: OwnerRecord) -> Result<Kept<OwnerRecord>, Errno> {
        let place = self.owners.pool.take(record.user, self.turn()).ok_or(Errno::ENOMEM)?;
        let kept = Kept::new(self, place as u32, record);
        kept.set(record);
        Ok(kept)
    }

    /// Makes a registration of an epoll, which counts from the commit on. `ENOSPC`: the user has his share, or no room.
    pub fn new_interest(self: &Rc<Self>, record: InterestRecord, terms: Terms) -> Result<Kept<InterestRecord>, Errno> {
        let place = self.interests.pool.take(record.user, self.turn()).ok_or(Errno::ENOSPC)?;
        let steps = (place / INTEREST_STEP + 1) as u16;
        if steps > self.global().interest_steps {
            self.set_global(&GlobalRecord { interest_steps: steps, ..self.global() });
        }
        self.interests.table.set(&self.recover, place, &record);
        self.set_terms(place as u32, terms);
        Ok(Kept::new(self, place as u32, record))
    }

    /// Makes a socket. `ENFILE`: no room.
    pub fn new_socket(self: &Rc<Self>, record: SocketRecord) -> Result<Kept<SocketRecord>, Errno> {
        Ok(Kept::new(self, take(self, &self.sockets, &record, record.user, Errno::ENFILE)?, record))
    }

    /// A place for what goes with bytes of a pipe; [`Kept::put_unreferenced`] sets it. `ETOOMANYREFS`: the user has his share, or no room.
    pub fn new_ancillary(self: &Rc<Self>, record: AncillaryRecord) -> Result<Kept<AncillaryRecord>, Errno> {
        let place = self.ancillaries.pool.take(record.user, self.turn()).ok_or(Errno::ETOOMANYREFS)?;
        Ok(Kept::new(self, place as u32, record))
    }

    /// Makes a watch. `ENOSPC`: the user has his share, or no room.
    pub fn new_watch(self: &Rc<Self>, record: WatchRecord) -> Result<Kept<WatchRecord>, Errno> {
        let place = self.watches.pool.take(record.user, self.turn()).ok_or(Errno::ENOSPC)?;
        let kept = Kept::new(self, place as u32, record);
        kept.set(record);
        Ok(kept)
    }

    /// Removes a watch whose instance goes on.
    pub fn clear_watch(&self, place: u32) {
        self.watches.table.clear(&self.recover, place as usize);
    }

    /// Makes a place for an event, which is none yet. `ENOSPC`: the user has his share, or no room.
    pub fn new_file_event(self: &Rc<Self>, record: FileEventRecord) -> Result<Kept<FileEventRecord>, Errno> {
        let place = self.file_events.pool.take(record.user, self.turn()).ok_or(Errno::ENOSPC)?;
        Ok(Kept::new(self, place as u32, record))
    }

    /// Removes an event that its instance has given.
    pub fn clear_file_event(&self, place: u32) {
        self.file_events.table.clear(&self.recover, place as usize);
    }

    /// Charges a user for an inotify instance. `EMFILE`.
    pub fn charge_instance(&self, user: u32) -> Result<Share, Errno> {
        self.instances.take(user, 1).map_err(|refusal| refusal.errno(Errno::EMFILE, Errno::EMFILE))
    }

    /// Charges a user for the inotify instance that a predecessor had.
    pub fn restore_instance(&self, user: u32) -> Option<Share> {
        self.instances.restore(user, 1).ok()
    }

    /// Makes directories of a process. `ENOMEM`: no room.
    pub fn new_directories(self: &Rc<Self>, record: DirectoriesRecord) -> Result<Kept<DirectoriesRecord>, Errno> {
        Ok(Kept::new(self, take(self, &self.directories, &record, ROOT, Errno::ENOMEM)?, record))
    }
}

impl Home for TimerRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.timers.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.release(&store.timers, place as usize);
    }
}

/// No record refers to an owner: a successor reads the whole table, so a place is cleared when it is freed.
impl Home for OwnerRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.owners.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.owners.table.clear(&store.recover, place as usize);
        store.release(&store.owners, place as usize);
    }
}

/// A context is cleared by [`Store::clear_context`] when it ends; calls in progress may hold it longer.
impl Home for ContextRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.contexts.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.release(&store.contexts, place as usize);
        store.rings.release(self.first, store.turn());
    }
}

/// A registration that ends by itself is cleared by [`Store::clear_interest`]; one that ends with an open file needs no change.
impl Home for InterestRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.interests.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.release(&store.interests, place as usize);
    }
}

/// A watch or an event of an instance that has ended needs no change: no other instance has its number.
impl Home for WatchRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.watches.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.release(&store.watches, place as usize);
        store.release_text(self.path);
    }
}

impl Home for FileEventRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.file_events.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.release(&store.file_events, place as usize);
        store.release_text(self.name);
    }
}

impl Home for SocketRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.sockets.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.release(&store.sockets, place as usize);
        self.texts().into_iter().for_each(|text| store.release_text(text));
    }
}

impl SocketRecord {
    /// The texts that it refers to.
    pub fn texts(&self) -> [Text; 3] {
        [self.name, self.peer_name, self.peer_groups]
    }
}

impl Home for AncillaryRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.ancillaries.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.release(&store.ancillaries, place as usize);
    }
}

impl Home for DirectoriesRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.directories.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.release(&store.directories, place as usize);
        self.release_texts(store);
    }
}

impl DirectoriesRecord {
    /// Frees the paths.
    pub fn release_texts(&self, store: &Store) {
        [self.root.1, self.working.1].into_iter().for_each(|text| store.release_text(text));
    }
}

impl Home for QueueRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.queues.table
    }

    fn release(&self, store: &Store, place: u32) {
        store.release_queue(place as u16, *self);
    }
}

impl Home for FileRecord {
    #[inline]
    fn table(store: &Store) -> &Table<Self> {
        &store.files.table
    }

    #[inline]
    fn release(&self, store: &Store, place: u32) {
        store.release(&store.files, place as usize);
        store.release_text(self.path);
    }
}

/// A thread's place is its slot: `Store::forget_thread` empties it when the thread ends, although handlers may still hold the record.
impl Home for ThreadRecord {
    fn table(store: &Store) -> &Table<Self> {
        &store.threads
    }

    fn release(&self, _: &Store, _: u32) {}
}
