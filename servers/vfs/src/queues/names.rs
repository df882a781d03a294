//! The names of message queues.

use super::Queue;
use alloc::{collections::BTreeMap, rc::Rc, vec::Vec};
use core::cell::RefCell;

/// Queues by name. A queue here lives until its name is removed.
#[derive(Debug, Default)]
pub struct QueueNames(RefCell<BTreeMap<Vec<u8>, Rc<Queue>>>);

impl QueueNames {
    /// The queue of this name.
    pub fn get(&self, name: &[u8]) -> Option<Rc<Queue>> {
        self.0.borrow().get(name).cloned()
    }

    /// Gives a queue a name, unless it has it.
    pub fn add(&self, name: Vec<u8>, queue: Rc<Queue>) {
        self.0.borrow_mut().entry(name).or_insert(queue);
    }

    /// Removes a name.
    pub fn remove(&self, name: &[u8]) {
        let queue = self.0.borrow_mut().remove(name);
        drop(queue);
    }

    /// All names.
    #[cfg(test)]
    pub fn all(&self) -> Vec<Vec<u8>> {
        self.0.borrow().keys().cloned().collect()
    }
}
