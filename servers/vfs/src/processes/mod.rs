//! Threads of programs: their descriptors, directories, and the state of their exec.
//!
//! Threads are found by slot; a thread's entry is taken only when the whole endpoint agrees, generation included. Tables and directories
//! may be shared by several threads (CLONE_FILES, CLONE_FS).

pub mod descriptors;
pub mod directories;
pub mod file_table;
mod rc_cell;

use crate::{
    base::closing::Closing,
    callers::{Caller, Callers},
    files::{
        pages::close_image,
        vnode::{NodeRef, Running},
    },
    keep::records::NodeRecord,
    objects::OpenFile,
    pathname,
};
use abi::{Endpoint, Errno, endpoint::SLOTS};
use alloc::{boxed::Box, rc::Rc, vec::Vec};
use core::cell::{Ref, RefCell};
use directories::Directories;
use file_table::FileTable;
use rc_cell::RcCell;

/// Linux's number for "relative to the working directory".
pub const AT_FDCWD: i32 = -100;

/// A directory of a process, with the canonical path it was reached by.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory.
    pub node: NodeRef,
    /// Its path, as [`pathname::keep`] has made it.
    pub path: Rc<[u8]>,
}

impl Place {
    /// A directory with its canonical path.
    pub fn new(node: NodeRef, mut canonical: Vec<u8>) -> Place {
        pathname::keep(&mut canonical);
        Place { node, path: canonical.into() }
    }
}

/// One thread.
#[derive(Debug)]
pub struct Process {
    /// Who it is, and its call in progress.
    pub caller: Rc<Caller>,
    /// Never empty.
    files: RcCell<FileTable>,
    /// Empty before the root file system is mounted.
    directories: RcCell<Directories>,
    /// What it executes; `None` before its first exec.
    program: RefCell<Option<Running>>,
    /// What it will execute once its exec is committed.
    next_program: RefCell<Option<Running>>,
    /// Text of the last exec, for `ExecText`.
    exec_text: RefCell<Vec<u8>>,
    /// Images of the last exec, open until it is committed.
    exec_images: RefCell<Vec<u64>>,
}

impl Process {
    /// A thread with this descriptor table and these directories, as its record says.
    pub fn new(caller: Caller, files: Rc<FileTable>, directories: Option<Rc<Directories>>) -> Process {
        Process {
            caller: Rc::new(caller),
            files: RcCell::new(Some(files)),
            directories: RcCell::new(directories),
            program: RefCell::default(),
            next_program: RefCell::default(),
            exec_text: RefCell::default(),
            exec_images: RefCell::default(),
        }
    }

    /// Its descriptor table.
    pub fn files(&self) -> Rc<FileTable> {
        self.look_at_files(Rc::clone)
    }

    /// Lets `look` see its descriptor table.
    #[inline]
    fn look_at_files<R>(&self, look: impl FnOnce(&Rc<FileTable>) -> R) -> R {
        self.files.look(|files| look(files.expect("a thread has a descriptor table")))
    }

    /// Gives it another descriptor table.
    pub fn set_files(&self, files: Rc<FileTable>) {
        self.caller.update(|record| record.table = files.record());
        self.files.replace(Some(files));
    }

    /// Whether it uses this descriptor table.
    pub fn uses_files(&self, files: &Rc<FileTable>) -> bool {
        self.look_at_files(|own| Rc::ptr_eq(own, files))
    }

    /// Gives it a descriptor table of its own, unless it shares none. `EAGAIN`, `ENFILE`: no room.
    pub fn unshare_files(&self, closing: &Closing) -> Result<(), Errno> {
        let shared = self.files();
        // Two: the process's own and ours.
        if Rc::strong_count(&shared) > 2 {
            let descriptors = shared.descriptors().copy()?;
            self.set_files(FileTable::new(closing, self.caller.user(), descriptors)?);
        }
        Ok(())
    }

    /// Gives it directories of its own, unless it shares none. `ENOENT` before there is a root; `ENOMEM`: no room.
    pub fn unshare_directories(&self) -> Result<(), Errno> {
        let shared = self.directories()?;
        // Two: the process's own and ours.
        if Rc::strong_count(&shared) > 2 {
            self.set_directories(shared.copy(self.caller.user())?);
        }
        Ok(())
    }

    /// The open file behind a descriptor. `EBADF`.
    pub fn file(&self, descriptor: i32) -> Result<Rc<OpenFile>, Errno> {
        self.look_at_files(|files| files.descriptors().get(descriptor).cloned())
    }

    /// Lets `look` see the open file behind a descriptor, and whether others use it. `look` must not use the descriptor table. `EBADF`.
    #[inline]
    pub fn look_at_file<R>(&self, descriptor: i32, look: impl FnOnce(&OpenFile, Users) -> R) -> Result<R, Errno> {
        self.look_at_files(|files| {
            let descriptors = files.descriptors();
            let file = descriptors.get(descriptor)?;
            Ok(look(file, Users { file, files }))
        })
    }

    /// Gives an open file a descriptor. `EMFILE`, `ENFILE`.
    pub fn insert(&self, file: Rc<OpenFile>, close_on_exec: bool) -> Result<u64, Errno> {
        let number = self.files().insert(file, 0, self.caller.descriptor_limit(), close_on_exec)?;
        Ok(number as u64)
    }

    /// Its directories. `ENOENT` before there is a root.
    pub fn directories(&self) -> Result<Rc<Directories>, Errno> {
        self.directories.get().ok_or(Errno::ENOENT)
    }

    /// Gives it other directories.
    pub fn set_directories(&self, directories: Rc<Directories>) {
        self.caller.update(|record| record.directories = directories.record());
        let former = self.directories.replace(Some(directories));
        drop(former);
    }

    /// What it executes.
    pub fn program(&self) -> Option<Running> {
        self.program.borrow().clone()
    }

    /// Sets what it executes, as its record says already.
    pub fn restore_program(&self, program: Option<Running>) {
        self.program.replace(program);
    }

    /// Holds what it will execute until the exec is committed or [`Process::drop_exec`].
    pub fn set_next_program(&self, program: Running) {
        self.next_program.replace(Some(program));
    }

    /// What it will execute, as records refer to it.
    pub fn next_program(&self) -> NodeRecord {
        self.next_program.borrow().as_ref().map_or(NodeRecord::NONE, |program| program.node().record())
    }

    /// Its exec is committed: it executes what the exec has loaded.
    pub fn start_program(&self) {
        let Some(program) = self.next_program.take() else { return };
        self.caller.update(|record| record.program = program.node().record());
        self.program.replace(Some(program));
        self.drop_exec();
    }

    /// The text of its last exec.
    pub fn exec_text(&self) -> Ref<'_, Vec<u8>> {
        self.exec_text.borrow()
    }

    /// Sets the text of its last exec.
    pub fn set_exec_text(&self, text: Vec<u8>) {
        self.exec_text.replace(text);
    }

    /// The first and second image of its last exec; 0: there is none.
    pub fn exec_images(&self) -> [u64; 2] {
        let images = self.exec_images.borrow();
        core::array::from_fn(|index| images.get(index).copied().unwrap_or(0))
    }

    /// Holds an image until [`Process::drop_exec`].
    #[expect(clippy::disallowed_methods, reason = "two of an exec: from the heap's reserve")]
    pub fn hold_image(&self, image: u64) {
        self.exec_images.borrow_mut().push(image);
    }

    /// Releases what its last exec holds: the file, and images.
    pub fn drop_exec(&self) {
        drop(self.next_program.take());
        self.exec_images.take().into_iter().for_each(close_image);
    }

    /// Releases its directories and its program: it has ended.
    pub fn end(&self) {
        drop((self.directories.replace(None), self.program.take()));
    }
}

/// Who uses an open file that a descriptor of a thread means.
#[derive(Clone, Copy)]
pub struct Users<'a> {
    file: &'a Rc<OpenFile>,
    files: &'a Rc<FileTable>,
}

impl Users<'_> {
    /// Whether the file has no other descriptor, and the table no other thread.
    #[inline]
    pub fn is_one(self) -> bool {
        Rc::strong_count(self.file) == 1 && Rc::strong_count(self.files) == 1
    }
}

/// All threads, by slot.
#[derive(Debug)]
pub struct Processes {
    table: Box<[RcCell<Process>; SLOTS]>,
    callers: Rc<Callers>,
}

impl Processes {
    /// No threads yet; each is entered among the callers too.
    pub fn new(callers: Rc<Callers>) -> Processes {
        Processes { table: Box::new([const { RcCell::new(None) }; SLOTS]), callers }
    }

    /// The thread with this endpoint. `ESRCH`.
    #[inline]
    pub fn get(&self, endpoint: Endpoint) -> Result<Rc<Process>, Errno> {
        let is_meant = |process: &&Rc<Process>| process.caller.endpoint == endpoint;
        let place = self.table.get(endpoint.slot()).ok_or(Errno::ESRCH)?;
        place.look(|process| process.filter(is_meant).cloned()).ok_or(Errno::ESRCH)
    }

    /// Enters a thread, and returns the one that was in its slot. `EINVAL`: not the slot of a thread.
    pub fn insert(&self, process: Rc<Process>) -> Result<Option<Rc<Process>>, Errno> {
        let place = self.table.get(process.caller.endpoint.slot()).ok_or(Errno::EINVAL)?;
        self.callers.insert(process.caller.clone());
        Ok(place.replace(Some(process)))
    }

    /// Whether a process has this id.
    pub fn has_pid(&self, pid: u32) -> bool {
        self.any(|process| process.caller.pid == pid)
    }

    /// Takes a thread out. `ESRCH`.
    pub fn remove(&self, endpoint: Endpoint) -> Result<Rc<Process>, Errno> {
        self.get(endpoint)?;
        self.callers.remove(endpoint);
        self.table[endpoint.slot()].replace(None).ok_or(Errno::ESRCH)
    }

    /// Does something for each thread, which enters or removes none.
    pub fn for_each(&self, act: impl Fn(&Process)) {
        self.each().for_each(|process| act(&process));
    }

    /// Whether some thread satisfies `test`.
    pub fn any(&self, test: impl Fn(&Process) -> bool) -> bool {
        self.each().any(|process| test(&process))
    }

    /// All threads.
    #[expect(clippy::disallowed_methods, reason = "as many as there are threads: from the heap's reserve")]
    pub fn all(&self) -> Vec<Rc<Process>> {
        self.each().collect()
    }

    fn each(&self) -> impl Iterator<Item = Rc<Process>> {
        self.table.iter().filter_map(RcCell::get)
    }
}
