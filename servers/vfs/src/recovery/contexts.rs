//! What a successor restores of asynchronous I/O.

use super::Restoration;
use crate::callers::lives::Identity;
use alloc::{collections::BTreeSet, vec::Vec};

impl Restoration {
    /// Restores the contexts of processes that live, with their completed requests.
    pub(super) fn restore_contexts(&mut self, living: &BTreeSet<Identity>) {
        let store = self.vfs.base().store().clone();
        let contexts: Vec<_> = store.contexts().collect();
        for (place, record) in contexts {
            if !living.contains(&Identity::from_word(record.identity)) {
                store.clear_context(place);
            } else if !self.vfs.contexts().restore(&store, place, record) {
                store.clear_context(place);
                self.lost += 1;
            }
        }
    }
}
