//! All pipes: their numbers, and those with a writer that waits for pages.

use super::{DEFAULT_BYTES, Pipe, World, ring::Ring};
use crate::{events::Event, keep::Store};
use abi::Errno;
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};

/// See the head of the file.
#[derive(Debug)]
pub struct Pipes {
    store: Rc<Store>,
    next_inode: Cell<u64>,
    /// Pipes with a writer that lacks pages.
    starving: RefCell<Vec<Rc<Pipe>>>,
    /// Fires when there is one more.
    hungry: Event,
}

impl Pipes {
    /// There are none.
    pub fn new(store: Rc<Store>) -> Pipes {
        Pipes { store, next_inode: Cell::new(1), starving: RefCell::default(), hungry: Event::default() }
    }

    /// A pipe that nobody has opened. `ENFILE`: there are too many.
    pub fn make(&self) -> Result<Rc<Pipe>, Errno> {
        let record = self.store.new_pipe(DEFAULT_BYTES)?;
        Ok(Rc::new(Pipe::new(record, Ring::new(DEFAULT_BYTES))))
    }

    /// The first of `count` inode numbers, for fstat, that nothing has had.
    pub fn new_inodes(&self, count: u64) -> u64 {
        self.next_inode.replace(self.next_inode.get() + count)
    }

    /// An inode number that a predecessor has given.
    pub fn has_inode(&self, inode: u64) {
        self.next_inode.set(self.next_inode.get().max(inode + 1));
    }

    /// A writer of this pipe waits for pages.
    pub fn wants_pages(&self, pipe: &Rc<Pipe>) {
        self.starving.borrow_mut().push(pipe.clone());
        self.hungry.fire();
    }

    /// Waits until a writer lacks pages.
    pub async fn wait_hungry(&self) {
        self.hungry.wait().await;
    }

    /// Retries those writers.
    pub fn feed(&self, world: &impl World) {
        let pipes = self.starving.take();
        pipes.iter().for_each(|pipe| pipe.retry(world));
    }
}
