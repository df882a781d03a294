//! Processes that descriptors mean (pidfd_open(2)): whether each has ended, and who waits for that.
//!
//! A process has ended when vfs has no thread of it any more: pm takes the threads out one by one, and only then tells the parent. So nothing
//! about it is preserved: a successor compares with the threads that it finds. Nobody pays for processes that no descriptor means.

use crate::events::{
    Watchers,
    poll::{POLLIN, POLLRDNORM},
};
use alloc::{
    collections::BTreeMap,
    rc::{Rc, Weak},
};
use core::cell::{Cell, RefCell};

/// A process. A later one with the same pid has another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Its id.
    pub pid: u32,
    /// How many processes had the id before.
    pub generation: u32,
}

impl Identity {
    /// As in messages of pm.
    pub fn from_word(word: u64) -> Identity {
        Identity { pid: word as u32, generation: (word >> 32) as u32 }
    }

    /// As in messages to pm.
    pub fn to_word(self) -> u64 {
        u64::from(self.pid) | u64::from(self.generation) << 32
    }
}

/// The processes that descriptors mean.
#[derive(Debug, Default)]
pub struct Lives(RefCell<BTreeMap<Identity, Weak<Life>>>);

/// One process.
#[derive(Debug)]
pub struct Life {
    identity: Identity,
    ended: Cell<bool>,
    watchers: Watchers,
    home: Weak<Lives>,
}

impl Life {
    /// Which process.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether it has ended: it may be a zombie.
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Fire when it ends.
    pub fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    fn end(&self) {
        self.ended.set(true);
        self.watchers.fire_for(POLLIN | POLLRDNORM);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.0.borrow_mut().remove(&self.identity);
        }
    }
}

impl Lives {
    /// The life of a process; `lives`: whether it has a thread, asked if nobody knows yet.
    pub fn of(self: &Rc<Self>, identity: Identity, lives: impl FnOnce() -> bool) -> Rc<Life> {
        if let Some(known) = self.find(identity) {
            return known;
        }
        let ended = Cell::new(!lives());
        let life = Rc::new(Life { identity, ended, watchers: Watchers::default(), home: Rc::downgrade(self) });
        self.0.borrow_mut().insert(identity, Rc::downgrade(&life));
        life
    }

    fn find(&self, identity: Identity) -> Option<Rc<Life>> {
        self.0.borrow().get(&identity).and_then(Weak::upgrade)
    }

    /// A thread of a process is gone; `lives`: whether there is another one.
    pub fn thread_ended(&self, identity: Identity, lives: impl FnOnce() -> bool) {
        if let Some(life) = self.find(identity)
            && !lives()
        {
            life.end();
        }
    }

    /// Finds out which processes have ended, when all threads are restored.
    pub fn settle(&self, lives: impl Fn(&Identity) -> bool) {
        let lives_on = |life: &Rc<Life>| lives(&life.identity);
        self.0.borrow().values().filter_map(Weak::upgrade).filter(|life| !lives_on(life)).for_each(|life| life.end());
    }
}
