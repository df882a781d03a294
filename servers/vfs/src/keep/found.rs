//! What a successor finds: the records read back, and which places are in use.

use super::{
    Store, Text, get, get_wide,
    pool::{Pool, ROOT},
    records::*,
};
use recover::records::{Entry, Record, Recover, Table};

impl Store {
    /// All threads, without corrupt records.
    pub fn threads(&self) -> impl Iterator<Item = ThreadRecord> + '_ {
        self.threads.entries(&self.recover).filter_map(|(slot, entry)| {
            let record = entry.record()?;
            (record.endpoint.slot() == slot).then_some(record)
        })
    }

    /// Counts the corrupt records.
    pub fn damaged(&self) -> usize {
        fn count<R: Record>(table: &Table<R>, recover: &Recover) -> usize {
            table.entries(recover).filter(|(_, entry)| matches!(entry, Entry::Damaged)).count()
        }
        count(&self.threads, &self.recover)
            + count(&self.mounts.table, &self.recover)
            + count(&self.loops, &self.recover)
            + count(&self.locks.table, &self.recover)
            + count(&self.owners.table, &self.recover)
            + count(&self.queues.table, &self.recover)
            + count(&self.contexts.table, &self.recover)
            + self.interest_entries().filter(|(_, entry)| matches!(entry, Entry::Damaged)).count()
    }

    /// All mounts.
    pub fn mounts(&self) -> impl Iterator<Item = (u16, MountRecord)> + '_ {
        self.mounts.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u16, entry.record()?)))
    }

    /// What containers may have, by number.
    pub fn limits(&self) -> impl Iterator<Item = (u8, LimitRecord)> + '_ {
        self.limits.entries(&self.recover).filter_map(|(place, entry)| Some((place as u8, entry.record()?)))
    }

    /// What is behind loop devices.
    pub fn loops(&self) -> impl Iterator<Item = (usize, LoopRecord)> + '_ {
        self.loops.entries(&self.recover).filter_map(|(place, entry)| Some((place, entry.record()?)))
    }

    /// All services that vfs asks.
    pub fn peers(&self) -> impl Iterator<Item = PeerRecord> + '_ {
        self.peers.entries(&self.recover).filter_map(|(_, entry)| entry.record())
    }

    /// All locks.
    pub fn locks(&self) -> impl Iterator<Item = (u16, LockRecord)> + '_ {
        self.locks.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u16, entry.record()?)))
    }

    /// All owners of open files.
    pub fn owners(&self) -> impl Iterator<Item = (u16, OwnerRecord)> + '_ {
        self.owners.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u16, entry.record()?)))
    }

    /// A descriptor table.
    pub fn table(&self, place: u16) -> Option<TableRecord> {
        get(&self.tables.table, &self.recover, place)
    }

    /// A list of blocks.
    pub fn list(&self, place: u32) -> Option<ListRecord> {
        get_wide(&self.lists.table, &self.recover, place)
    }

    /// A descriptor of a block.
    pub fn descriptor(&self, block: u32, index: usize) -> Option<DescriptorRecord> {
        let place = block as usize * BLOCK + index;
        if place >= self.descriptors.len() {
            return None;
        }
        self.descriptors.get(&self.recover, place).record().map(DescriptorRecord::from_value)
    }

    /// An open file, its value and its status flags.
    pub fn file(&self, place: u32) -> Option<(FileRecord, u64, u32)> {
        let record = get_wide(&self.files.table, &self.recover, place)?;
        let value = self.values.get(&self.recover, place as usize).record()?;
        let flags = self.flags.get(&self.recover, place as usize).record()?;
        Some((record, value, flags as u32))
    }

    /// Directories of a process.
    pub fn directories(&self, place: u16) -> Option<DirectoriesRecord> {
        get(&self.directories.table, &self.recover, place)
    }

    /// A pipe.
    pub fn pipe(&self, place: u16) -> Option<PipeRecord> {
        let record = get(&self.pipes.table, &self.recover, place)?;
        let extent = self.pipe_extents.get(&self.recover, place as usize).record()?;
        Some(PipeRecord { extent: Extent::from_value(extent), ..record })
    }

    /// A timer.
    pub fn timer(&self, place: u16) -> Option<TimerRecord> {
        get(&self.timers.table, &self.recover, place)
    }

    /// All registrations of epolls, those of open files that have ended among them.
    pub fn interests(&self) -> impl Iterator<Item = (u32, InterestRecord, Terms)> + '_ {
        self.interest_entries().filter_map(|(place, entry)| {
            let terms = self.terms.get(&self.recover, place).record()?;
            Some((place as u32, entry.record()?, Terms::from_value(terms)))
        })
    }

    /// The places of registrations that have ever been used.
    fn interest_entries(&self) -> impl Iterator<Item = (usize, Entry<InterestRecord>)> + '_ {
        let end = self.global().interest_steps as usize * INTEREST_STEP;
        let places = 0..end.min(self.interests.table.len());
        places.map(|place| (place, self.interests.table.get(&self.recover, place)))
    }

    /// All watches, those of instances that have ended among them.
    pub fn watches(&self) -> impl Iterator<Item = (u32, WatchRecord)> + '_ {
        self.watches.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u32, entry.record()?)))
    }

    /// All events of inotify instances, those of instances that have ended among them.
    pub fn file_events(&self) -> impl Iterator<Item = (u32, FileEventRecord)> + '_ {
        self.file_events.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u32, entry.record()?)))
    }

    /// A socket.
    pub fn socket(&self, place: u16) -> Option<SocketRecord> {
        get(&self.sockets.table, &self.recover, place)
    }

    /// The sockets that are in use.
    pub fn sockets_in_use(&self) -> impl Iterator<Item = (u16, SocketRecord)> + '_ {
        let taken = (0..self.sockets.table.len()).filter(|place| self.sockets.pool.is_taken(*place));
        taken.filter_map(|place| Some((place as u16, self.socket(place as u16)?)))
    }

    /// What goes with bytes of a pipe.
    pub fn ancillary(&self, place: u16) -> Option<AncillaryRecord> {
        get(&self.ancillaries.table, &self.recover, place)
    }

    /// The page after this one.
    pub fn next_page(&self, page: u16) -> Option<u16> {
        get(&self.pages.table, &self.recover, page).map(|next: NextRecord| next.0)
    }

    /// After a restart: a text is in use by a user.
    pub fn claim_text(&self, text: Text, user: u32) {
        self.texts.claim(text, user);
    }

    /// After a restart: a descriptor table is in use, with its lists and blocks.
    pub fn claim_table(&self, place: u16, lists: &[u32], blocks: &[u32]) {
        self.tables.pool.claim(place as usize, ROOT);
        lists.iter().for_each(|list| self.lists.pool.claim(*list as usize, ROOT));
        let blocks = blocks.iter().filter(|block| **block != NO_PLACE);
        blocks.for_each(|block| self.blocks.claim(*block as usize, ROOT));
    }

    /// After a restart: an open file is in use, with its path.
    pub fn claim_file(&self, place: u32, record: &FileRecord) {
        self.files.pool.claim(place as usize, record.user);
        self.claim_text(record.path, record.user);
    }

    /// After a restart: directories are in use, with their paths.
    pub fn claim_directories(&self, place: u16, record: &DirectoriesRecord) {
        self.directories.pool.claim(place as usize, ROOT);
        [record.root.1, record.working.1].into_iter().for_each(|text| self.claim_text(text, record.user));
    }

    /// After a restart: a pipe is in use, with its pages.
    pub fn claim_pipe(&self, place: u16, pages: impl Iterator<Item = u16>) {
        self.pipes.pool.claim(place as usize, ROOT);
        pages.for_each(|page| self.pages.pool.claim(page as usize, ROOT));
    }

    /// After a restart: a lock is in use.
    pub fn claim_lock(&self, place: u16, user: u32) {
        self.locks.pool.claim(place as usize, user);
    }

    /// After a restart: a mount is in use, with its texts.
    pub fn claim_mount(&self, place: u16, record: &MountRecord) {
        self.mounts.pool.claim(place as usize, record.user);
        [record.source, record.target, record.subtree].into_iter().for_each(|text| self.claim_text(text, record.user));
    }

    /// After a restart: an owner of an open file is in use.
    pub fn claim_owner(&self, place: u16, user: u32) {
        self.owners.pool.claim(place as usize, user);
    }

    /// After a restart: a queue is in use, with its name.
    pub fn claim_queue(&self, place: u16, record: &QueueRecord) {
        self.queues.pool.claim(place as usize, record.uid);
        self.claim_text(record.name, record.uid);
    }

    /// After a restart: a signal is in use.
    pub fn claim_signal(&self, place: u16, user: u32) {
        self.signals.pool.claim(place as usize, user);
    }

    /// After a restart: a timer is in use.
    pub fn claim_timer(&self, place: u16, user: u32) {
        self.timers.pool.claim(place as usize, user);
    }

    /// After a restart: a registration of an epoll is in use.
    pub fn claim_interest(&self, place: u32, user: u32) {
        self.interests.pool.claim(place as usize, user);
    }

    /// After a restart: a watch is in use, with its path.
    pub fn claim_watch(&self, place: u32, record: &WatchRecord) {
        self.watches.pool.claim(place as usize, record.user);
        self.claim_text(record.path, record.user);
    }

    /// After a restart: an event is in use, with its name.
    pub fn claim_file_event(&self, place: u32, record: &FileEventRecord) {
        self.file_events.pool.claim(place as usize, record.user);
        self.claim_text(record.name, record.user);
    }

    /// After a restart: a socket is in use, with its addresses.
    pub fn claim_socket(&self, place: u16, record: &SocketRecord) {
        self.sockets.pool.claim(place as usize, record.user);
        record.texts().into_iter().for_each(|text| self.claim_text(text, record.user));
    }

    /// After a restart: what goes with bytes of a pipe is in use.
    pub fn claim_ancillary(&self, place: u16, user: u32) {
        self.ancillaries.pool.claim(place as usize, user);
    }

    /// After a restart: frees all places that have not been claimed.
    pub fn settle(&self) {
        self.pools().into_iter().for_each(Pool::settle);
        self.texts.settle();
    }

    fn pools(&self) -> [&Pool; 19] {
        [
            &self.tables.pool,
            &self.lists.pool,
            &self.blocks,
            &self.files.pool,
            &self.directories.pool,
            &self.pipes.pool,
            &self.pages.pool,
            &self.dirty.pool,
            &self.locks.pool,
            &self.owners.pool,
            &self.queues.pool,
            &self.signals.pool,
            &self.timers.pool,
            &self.interests.pool,
            &self.sockets.pool,
            &self.ancillaries.pool,
            &self.watches.pool,
            &self.file_events.pool,
            &self.contexts.pool,
        ]
    }
}

#[cfg(test)]
impl Store {
    /// Free places of every table.
    pub fn in_use(&self) -> [usize; 19] {
        self.pools().map(|pool| pool.room(self.turn()))
    }
}
