//! Root directory, working directory and umask of a process; several may share them (CLONE_FS).

use crate::{
    keep::{Store, Text, records::DirectoriesRecord},
    processes::Place,
};
use abi::Errno;
use alloc::rc::Rc;
use core::cell::{Cell, Ref, RefCell};

/// See the head of the file. Invariant: what is preserved says the same, outside of these functions.
#[derive(Debug)]
pub struct Directories {
    root: RefCell<Place>,
    working: RefCell<Place>,
    umask: Cell<u32>,
    /// Its place in preserved memory.
    record: u16,
    /// The preserved paths of root and working directory.
    paths: [Cell<Text>; 2],
    store: Rc<Store>,
}

impl Directories {
    /// New ones. `ENOMEM`: no room.
    pub fn new(store: &Rc<Store>, root: Place, working: Place, umask: u32) -> Result<Rc<Directories>, Errno> {
        let paths = [store.put_text(&root.path)?, store.put_text(&working.path)?];
        let record = record(&root, &working, paths, umask);
        let record = store.new_directories(&record)?;
        Ok(Rc::new(Directories {
            root: RefCell::new(root),
            working: RefCell::new(working),
            umask: Cell::new(umask),
            record,
            paths: paths.map(Cell::new),
            store: store.clone(),
        }))
    }

    /// As a predecessor has left them.
    pub fn restore(
        store: &Rc<Store>,
        place: u16,
        record: &DirectoriesRecord,
        (root, working): (Place, Place),
    ) -> Rc<Directories> {
        Rc::new(Directories {
            root: RefCell::new(root),
            working: RefCell::new(working),
            umask: Cell::new(record.umask),
            record: place,
            paths: [Cell::new(record.root.1), Cell::new(record.working.1)],
            store: store.clone(),
        })
    }

    /// The same for a process of its own. `ENOMEM`: no room.
    pub fn copy(&self) -> Result<Rc<Directories>, Errno> {
        Directories::new(&self.store, self.root().clone(), self.working().clone(), self.umask.get())
    }

    /// Its place in preserved memory.
    pub fn record(&self) -> u16 {
        self.record
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
        self.umask.get()
    }

    /// Changes the root. `ENOMEM`: no room.
    pub fn set_root(&self, place: Place) -> Result<(), Errno> {
        self.set(0, &self.root, place)
    }

    /// Changes the working directory. `ENOMEM`: no room.
    pub fn set_working(&self, place: Place) -> Result<(), Errno> {
        self.set(1, &self.working, place)
    }

    /// Changes the umask. → the old one.
    pub fn set_umask(&self, umask: u32) -> u32 {
        let old = self.umask.replace(umask);
        self.save();
        old
    }

    fn set(&self, index: usize, which: &RefCell<Place>, place: Place) -> Result<(), Errno> {
        let text = self.store.put_text(&place.path)?;
        self.store.release_text(self.paths[index].replace(text));
        let former = which.replace(place);
        self.save();
        drop(former);
        Ok(())
    }

    fn save(&self) {
        let paths = [self.paths[0].get(), self.paths[1].get()];
        let record = record(&self.root.borrow(), &self.working.borrow(), paths, self.umask.get());
        self.store.set_directories(self.record, &record);
    }
}

fn record(root: &Place, working: &Place, paths: [Text; 2], umask: u32) -> DirectoriesRecord {
    DirectoriesRecord { root: (root.node.record(), paths[0]), working: (working.node.record(), paths[1]), umask }
}

impl Drop for Directories {
    fn drop(&mut self) {
        self.store.release_directories(self.record, [self.paths[0].get(), self.paths[1].get()]);
    }
}
