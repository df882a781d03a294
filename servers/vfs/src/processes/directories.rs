//! Root directory, working directory and umask of a process; several may share them (CLONE_FS).

use crate::{
    keep::{
        Kept, Store, Text,
        records::{DirectoriesRecord, NodeRecord},
    },
    processes::Place,
};
use abi::Errno;
use alloc::rc::Rc;
use core::cell::{Ref, RefCell};

/// See the head of the file. Invariant: the record says the same as root and working directory, outside of these functions.
#[derive(Debug)]
pub struct Directories {
    root: RefCell<Place>,
    working: RefCell<Place>,
    record: Kept<DirectoriesRecord>,
}

impl Directories {
    /// New ones of a user. `ENOMEM`: no room.
    pub fn new(
        store: &Rc<Store>,
        user: u32,
        root: Place,
        working: Place,
        umask: u32,
    ) -> Result<Rc<Directories>, Errno> {
        let of_root = record_of(store, &root, user)?;
        let of_working = record_of(store, &working, user).inspect_err(|_| store.release_text(of_root.1))?;
        let record = DirectoriesRecord { root: of_root, working: of_working, umask, user };
        let kept = store.new_directories(record).inspect_err(|_| record.release_texts(store))?;
        Ok(Directories::restore(kept, root, working))
    }

    /// As a predecessor has left them.
    pub fn restore(record: Kept<DirectoriesRecord>, root: Place, working: Place) -> Rc<Directories> {
        Rc::new(Directories { root: RefCell::new(root), working: RefCell::new(working), record })
    }

    /// The same for a process of its own, of a user. `ENOMEM`: no room.
    pub fn copy(&self, user: u32) -> Result<Rc<Directories>, Errno> {
        Directories::new(self.record.store(), user, self.root().clone(), self.working().clone(), self.umask())
    }

    /// Its place in preserved memory.
    pub fn record(&self) -> u16 {
        self.record.place() as u16
    }

    /// Where absolute paths begin.
    pub fn root(&self) -> Ref<'_, Place> {
        self.root.borrow()
    }

    /// Where relative paths begin.
    pub fn working(&self) -> Ref<'_, Place> {
        self.working.borrow()
    }

    /// Permission bits that new files do not get.
    pub fn umask(&self) -> u32 {
        self.record.get().umask
    }

    /// Changes the root. `ENOMEM`: no room.
    pub fn set_root(&self, place: Place) -> Result<(), Errno> {
        self.set(&self.root, place, |record| &mut record.root)
    }

    /// Changes the working directory. `ENOMEM`: no room.
    pub fn set_working(&self, place: Place) -> Result<(), Errno> {
        self.set(&self.working, place, |record| &mut record.working)
    }

    /// Changes the umask; returns the old one.
    pub fn set_umask(&self, umask: u32) -> u32 {
        let old = self.umask();
        if umask != old {
            self.record.update(|record| record.umask = umask);
        }
        old
    }

    fn set(
        &self,
        which: &RefCell<Place>,
        place: Place,
        part: impl Fn(&mut DirectoriesRecord) -> &mut (NodeRecord, Text),
    ) -> Result<(), Errno> {
        let store = self.record.store();
        let new = record_of(store, &place, self.record.get().user)?;
        self.record.update(|record| store.release_text(core::mem::replace(part(record), new).1));
        let former = which.replace(place);
        drop(former);
        Ok(())
    }
}

fn record_of(store: &Store, place: &Place, user: u32) -> Result<(NodeRecord, Text), Errno> {
    Ok((place.node.record(), store.put_text(&place.path, user)?))
}
