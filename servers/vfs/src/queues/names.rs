//! The names of message queues.

use super::Queue;
use abi::Errno;
use alloc::{collections::BTreeMap, rc::Rc, vec::Vec};
use core::cell::RefCell;
use sys::fallible::{TryVec, with_capacity};

/// Bytes before a name of a container.
const PREFIX_BYTES: usize = 2;

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

    /// The name by which a queue of a container is found: names have no slash.
    pub fn of_container(container: u8, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut full = with_capacity(PREFIX_BYTES + name.len())?;
        if container != 0 {
            full.try_extend_from_slice(&[b'/', container])?;
        }
        full.try_extend_from_slice(name)?;
        Ok(full)
    }

    /// A name as programs know it.
    pub fn shown(name: &[u8]) -> &[u8] {
        match name {
            [b'/', _, shown @ ..] => shown,
            name => name,
        }
    }

    /// Removes the names of a container that has ended.
    pub fn remove_all_of(&self, container: u8) {
        let is_of_it = |name: &[u8]| matches!(name, [b'/', number, ..] if *number == container);
        self.0.borrow_mut().retain(|name, queue| {
            let goes = is_of_it(name);
            if goes {
                queue.set_unnamed();
            }
            !goes
        });
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
