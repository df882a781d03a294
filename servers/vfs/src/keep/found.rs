//! What a successor finds: the records read back, and which places are in use.

use super::{Store, Text, get, records::*};
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
            + count(&self.mounts, &self.recover)
            + count(&self.locks.table, &self.recover)
            + count(&self.queues.table, &self.recover)
    }

    /// All mounts.
    pub fn mounts(&self) -> impl Iterator<Item = (u16, MountRecord)> + '_ {
        self.mounts.entries(&self.recover).filter_map(|(place, entry)| Some((place as u16, entry.record()?)))
    }

    /// All services that vfs asks.
    pub fn peers(&self) -> impl Iterator<Item = PeerRecord> + '_ {
        self.peers.entries(&self.recover).filter_map(|(_, entry)| entry.record())
    }

    /// All locks.
    pub fn locks(&self) -> impl Iterator<Item = (u16, LockRecord)> + '_ {
        self.locks.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u16, entry.record()?)))
    }

    /// A descriptor table.
    pub fn table(&self, place: u16) -> Option<TableRecord> {
        get(&self.tables.table, &self.recover, place)
    }

    /// A list of blocks.
    pub fn list(&self, place: u16) -> Option<ListRecord> {
        get(&self.lists.table, &self.recover, place)
    }

    /// A descriptor of a block.
    pub fn descriptor(&self, block: u16, index: usize) -> Option<DescriptorRecord> {
        let place = block as usize * BLOCK + index;
        if place >= self.descriptors.len() {
            return None;
        }
        self.descriptors.get(&self.recover, place).record().map(DescriptorRecord::from_value)
    }

    /// An open file, its position and its status flags.
    pub fn file(&self, place: u16) -> Option<(FileRecord, u64, u32)> {
        let record = get(&self.files.table, &self.recover, place)?;
        let position = self.positions.get(&self.recover, place as usize).record()?;
        let flags = self.flags.get(&self.recover, place as usize).record()?;
        Some((record, position, flags as u32))
    }

    /// Directories of a process.
    pub fn directories(&self, place: u16) -> Option<DirectoriesRecord> {
        get(&self.directories.table, &self.recover, place)
    }

    /// A pipe.
    pub fn pipe(&self, place: u16) -> Option<PipeRecord> {
        get(&self.pipes.table, &self.recover, place)
    }

    /// A timer.
    pub fn timer(&self, place: u16) -> Option<TimerRecord> {
        get(&self.timers.table, &self.recover, place)
    }

    /// The page after this one.
    pub fn next_page(&self, page: u16) -> Option<u16> {
        get(&self.pages.table, &self.recover, page).map(|next: NextRecord| next.0)
    }

    /// After a restart: frees all places but those in use.
    pub fn rebuild(&self, used: &Used) {
        self.tables.pool.rebuild(|place| used.tables.contains(&(place as u16)));
        self.lists.pool.rebuild(|place| used.lists.contains(&(place as u16)));
        self.blocks.rebuild(|place| used.blocks.contains(&(place as u16)));
        self.files.pool.rebuild(|place| used.files.contains(&(place as u16)));
        self.directories.pool.rebuild(|place| used.directories.contains(&(place as u16)));
        self.pipes.pool.rebuild(|place| used.pipes.contains(&(place as u16)));
        self.pages.pool.rebuild(|place| used.pages.contains(&(place as u16)));
        self.locks.pool.rebuild(|place| used.locks.contains(&(place as u16)));
        self.queues.pool.rebuild(|place| used.queues.contains(&(place as u16)));
        self.signals.pool.rebuild(|place| used.signals.contains(&(place as u16)));
        self.timers.pool.rebuild(|place| used.timers.contains(&(place as u16)));
        self.texts.rebuild(&used.texts);
    }
}

#[cfg(test)]
impl Store {
    /// Free places of every table.
    pub fn in_use(&self) -> [usize; 9] {
        let pools = [&self.tables.pool, &self.blocks, &self.files.pool, &self.directories.pool, &self.pipes.pool];
        let rooms = pools.map(|pool| pool.room(self.turn()));
        let others = [&self.pages.pool, &self.queues.pool, &self.signals.pool, &self.timers.pool];
        let others = others.map(|pool| pool.room(self.turn()));
        [rooms[0], rooms[1], rooms[2], rooms[3], rooms[4], others[0], others[1], others[2], others[3]]
    }
}

/// Places in use, by table.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Used {
    pub tables: alloc::collections::BTreeSet<u16>,
    pub lists: alloc::collections::BTreeSet<u16>,
    pub blocks: alloc::collections::BTreeSet<u16>,
    pub files: alloc::collections::BTreeSet<u16>,
    pub directories: alloc::collections::BTreeSet<u16>,
    pub pipes: alloc::collections::BTreeSet<u16>,
    pub pages: alloc::collections::BTreeSet<u16>,
    pub locks: alloc::collections::BTreeSet<u16>,
    pub queues: alloc::collections::BTreeSet<u16>,
    pub signals: alloc::collections::BTreeSet<u16>,
    pub timers: alloc::collections::BTreeSet<u16>,
    pub texts: alloc::vec::Vec<Text>,
}
