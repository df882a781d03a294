//! What a successor restores of locks, and of the owners of open files with their leases.

use super::Restoration;
use crate::{
    files::leases::FileOwner,
    keep::records::{LockRecord, OwnerRecord},
    objects::asynchronous,
};

impl Restoration {
    /// Restores a lock, or drops it when its owner has ended or its file is not open.
    pub(super) fn restore_lock(&mut self, place: u16, record: &LockRecord) {
        let owner = self.files.values().find(|file| file.number() == record.owner);
        let held = owner.is_some() || !record.whole && self.tables.values().any(|table| table.number() == record.owner);
        self.vfs.base().store().claim_lock(place, record.user);
        match self.node(record.node) {
            Some(node) if held => {
                node.locks().restore(place, record);
                owner.into_iter().for_each(|file| file.set_locked());
            }
            _ => self.vfs.base().store().release_lock(place),
        }
    }

    /// Restores the owner of an open file and its lease, or drops both when the file is not open any more.
    pub(super) fn restore_owner(&mut self, place: u16, record: OwnerRecord) {
        let store = self.vfs.base().store();
        store.claim_owner(place, record.user);
        let owner = FileOwner::restore(store, place, record);
        let Some(file) = self.files.get(&record.place).filter(|file| file.number() == record.number) else { return };
        if let (Some(_), Some(node)) = (record.lease, file.node()) {
            node.leases().restore(&owner);
            file.set_locked();
        }
        file.set_owner(owner.clone());
        if record.told_of.is_some() {
            self.lost += asynchronous::watch(self.vfs.base(), file, &owner).is_err() as usize;
        }
    }
}
