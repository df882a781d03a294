//! What vfs knows of a thread of a program besides its calls: descriptors, directories, and how far its exec has come.
//!
//! Threads are found by slot; a thread's entry is taken only when the whole endpoint agrees, generation included. Tables and directories
//! may be shared by several threads (CLONE_FILES, CLONE_FS).

pub mod descriptors;
pub mod directories;
pub mod file_table;

use crate::{
    callers::{Caller, Callers},
    files::vnode::NodeRef,
    keep::{
        Store, Text,
        records::{NOWHERE, ThreadRecord},
    },
    objects::OpenFile,
};
use abi::{Endpoint, Errno, endpoint::SLOTS};
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};
use directories::Directories;
use file_table::FileTable;

/// Linux's number for "relative to the working directory".
pub const AT_FDCWD: i32 = -100;

/// A directory of a process, with the canonical path it was reached by.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory.
    pub node: NodeRef,
    /// Its path.
    pub path: Rc<[u8]>,
}

/// One thread.
#[derive(Debug)]
pub struct Process {
    /// Who it is, and its call in progress.
    pub caller: Rc<Caller>,
    files: RefCell<Rc<FileTable>>,
    /// `None` before the root file system is mounted.
    directories: RefCell<Option<Rc<Directories>>>,
    /// Supplementary groups, preserved.
    groups: Cell<Text>,
    /// Text of the last exec, for `ExecText`.
    pub exec_text: RefCell<Vec<u8>>,
    /// Images of the last exec, held until it is committed.
    pub exec_images: RefCell<Vec<u64>>,
    /// The first program: its descriptors 0 to 2 are still to be opened.
    pub first: Cell<bool>,
    store: Rc<Store>,
}

impl Process {
    /// A thread with this descriptor table and these directories. It is preserved by [`Process::save`].
    pub fn new(
        store: &Rc<Store>,
        caller: Caller,
        files: Rc<FileTable>,
        directories: Option<Rc<Directories>>,
        groups: Text,
    ) -> Process {
        Process {
            caller: Rc::new(caller),
            files: RefCell::new(files),
            directories: RefCell::new(directories),
            groups: Cell::new(groups),
            exec_text: RefCell::default(),
            exec_images: RefCell::default(),
            first: Cell::new(true),
            store: store.clone(),
        }
    }

    /// Its descriptor table.
    pub fn files(&self) -> Rc<FileTable> {
        self.files.borrow().clone()
    }

    /// Gives it another descriptor table.
    pub fn set_files(&self, files: Rc<FileTable>) {
        self.files.replace(files);
        self.save();
    }

    /// Whether it uses this descriptor table.
    pub fn uses_files(&self, files: &Rc<FileTable>) -> bool {
        Rc::ptr_eq(&self.files.borrow(), files)
    }

    /// The open file behind a descriptor. `EBADF`.
    pub fn file(&self, descriptor: i32) -> Result<Rc<OpenFile>, Errno> {
        self.files.borrow().descriptors().get(descriptor).cloned()
    }

    /// Gives an open file a descriptor. `EMFILE`, `ENFILE`.
    pub fn insert(&self, file: Rc<OpenFile>, close_on_exec: bool) -> Result<u64, Errno> {
        let number = self.files.borrow().insert(file, 0, close_on_exec)?;
        Ok(number as u64)
    }

    /// Its directories. `ENOENT` before there is a root.
    pub fn directories(&self) -> Result<Rc<Directories>, Errno> {
        self.directories.borrow().clone().ok_or(Errno::ENOENT)
    }

    /// Gives it other directories.
    pub fn set_directories(&self, directories: Rc<Directories>) {
        let former = self.directories.replace(Some(directories));
        self.save();
        drop(former);
    }

    /// It has ended: its directories are let go.
    pub fn drop_directories(&self) {
        let former = self.directories.replace(None);
        drop(former);
    }

    /// Preserves other supplementary groups; returns the text of the former ones, which is to be released.
    pub fn set_groups(&self, groups: Text) -> Text {
        self.groups.replace(groups)
    }

    /// Preserves what has changed of it.
    pub fn save(&self) {
        let caller = &self.caller;
        if caller.is_gone() {
            return;
        }
        let credentials = caller.credentials();
        self.store.set_thread(&ThreadRecord {
            endpoint: caller.endpoint,
            pid: caller.pid,
            table: self.files.borrow().record(),
            directories: self.directories.borrow().as_ref().map_or(NOWHERE, |directories| directories.record()),
            first: self.first.get(),
            session: caller.session() as u32,
            group: caller.group() as u32,
            ids: [credentials.euid, credentials.egid, credentials.uid, credentials.gid],
            groups: self.groups.get(),
        });
    }
}

/// All threads, by slot.
#[derive(Debug)]
pub struct Processes {
    table: RefCell<Vec<Option<Rc<Process>>>>,
    callers: Rc<Callers>,
}

impl Processes {
    /// No threads yet; each is entered among the callers too.
    pub fn new(callers: Rc<Callers>) -> Processes {
        Processes { table: RefCell::new((0..SLOTS).map(|_| None).collect()), callers }
    }

    /// The thread with this endpoint. `ESRCH`.
    pub fn get(&self, endpoint: Endpoint) -> Result<Rc<Process>, Errno> {
        let table = self.table.borrow();
        let process = table.get(endpoint.slot()).and_then(Option::as_ref);
        process.filter(|process| process.caller.endpoint == endpoint).cloned().ok_or(Errno::ESRCH)
    }

    /// Enters a thread, and gives back what was in its slot. `EINVAL`: not the slot of a thread.
    pub fn insert(&self, process: Rc<Process>) -> Result<Option<Rc<Process>>, Errno> {
        let mut table = self.table.borrow_mut();
        let slot = table.get_mut(process.caller.endpoint.slot()).ok_or(Errno::EINVAL)?;
        self.callers.insert(process.caller.clone());
        Ok(slot.replace(process))
    }

    /// Takes a thread out. `ESRCH`.
    pub fn remove(&self, endpoint: Endpoint) -> Result<Rc<Process>, Errno> {
        self.get(endpoint)?;
        self.callers.remove(endpoint);
        self.table.borrow_mut()[endpoint.slot()].take().ok_or(Errno::ESRCH)
    }

    /// All threads.
    pub fn all(&self) -> Vec<Rc<Process>> {
        self.table.borrow().iter().flatten().cloned().collect()
    }
}
