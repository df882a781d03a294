//! What vfs knows of a program's thread: descriptors, directories, ids, and the call it is in.
//!
//! Threads are found by slot; a thread's entry is taken only when the whole endpoint agrees, generation included. Tables and directories
//! may be shared by several threads (CLONE_FILES, CLONE_FS). A thread has at most one call in hand, because it waits for the answer.

pub mod descriptors;
pub mod directories;
pub mod file_table;

use crate::{
    events::Event,
    files::{permission::Credentials, vnode::NodeRef},
    keep::{
        Store, Text,
        records::{NOWHERE, Note, ThreadRecord},
    },
    objects::OpenFile,
    pipes::Pipe,
    processes::{directories::Directories, file_table::FileTable},
};
use abi::{Endpoint, Errno, Message, endpoint::SLOTS, message::REPLY};
use alloc::{rc::Rc, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
};
use server::{OWN_TAG, Sleep};

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

/// What a thread is doing, as far as vfs is concerned.
#[derive(Debug)]
pub enum Call {
    /// Nothing, or what ends by itself soon.
    None,
    /// It waits in a pipe.
    Pipe(Rc<Pipe>),
    /// Its handler waits for `Process::event`, or for a device.
    Waiting,
    /// It has been sent SIGPIPE and waits for `Cancel`; bytes it has written.
    Signalled(u64),
}

/// One thread.
#[derive(Debug)]
pub struct Process {
    /// The thread.
    pub endpoint: Endpoint,
    /// The process it belongs to.
    pub pid: u32,
    /// Descriptors.
    pub files: RefCell<Rc<FileTable>>,
    /// Directories; `None` before the root file system is mounted.
    pub directories: RefCell<Option<Rc<Directories>>>,
    /// Ids.
    pub credentials: RefCell<Rc<Credentials>>,
    /// Session.
    pub session: Cell<u64>,
    /// Process group.
    pub group: Cell<u64>,
    /// The call in hand.
    pub call: RefCell<Call>,
    /// The call came before; what a predecessor has noted about it.
    pub note: Cell<Option<Note>>,
    /// The call came before: a file system's answer to its first change.
    pub recalled: RefCell<Option<Message>>,
    /// Supplementary groups, preserved.
    pub saved_groups: Cell<Text>,
    /// Preserved memory.
    pub store: Rc<Store>,
    /// What its handler waits for.
    pub event: Rc<Event>,
    /// The error a signal ends the call with.
    pub cancelled: Cell<Option<Errno>>,
    /// `Exit` has come: the entry is only kept by handlers under way.
    pub gone: Cell<bool>,
    /// Text of the last exec, for `ExecText`.
    pub exec_text: RefCell<Vec<u8>>,
    /// Images of the last exec, held until it is committed.
    pub exec_images: RefCell<Vec<u64>>,
    /// The first program: its descriptors 0 to 2 are still to be opened.
    pub first: Cell<bool>,
}

impl Process {
    /// A thread without directories, ids of the superuser.
    pub fn new(store: &Rc<Store>, endpoint: Endpoint, pid: u32, files: Rc<FileTable>) -> Process {
        Process {
            endpoint,
            pid,
            files: RefCell::new(files),
            directories: RefCell::new(None),
            credentials: RefCell::new(Rc::new(Credentials::default())),
            session: Cell::new(0),
            group: Cell::new(0),
            call: RefCell::new(Call::None),
            note: Cell::new(None),
            recalled: RefCell::default(),
            saved_groups: Cell::default(),
            store: store.clone(),
            event: Rc::new(Event::default()),
            cancelled: Cell::new(None),
            gone: Cell::new(false),
            exec_text: RefCell::default(),
            exec_images: RefCell::default(),
            first: Cell::new(true),
        }
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

    /// Its ids.
    pub fn credentials(&self) -> Rc<Credentials> {
        self.credentials.borrow().clone()
    }

    /// Preserves what has changed of it.
    pub fn save(&self) {
        if self.gone.get() {
            return;
        }
        let credentials = self.credentials.borrow();
        self.store.set_thread(&ThreadRecord {
            endpoint: self.endpoint,
            pid: self.pid,
            table: self.files.borrow().record,
            directories: self.directories.borrow().as_ref().map_or(NOWHERE, |directories| directories.record),
            first: self.first.get(),
            session: self.session.get() as u32,
            group: self.group.get() as u32,
            ids: [credentials.euid, credentials.egid, credentials.uid, credentials.gid],
            groups: self.saved_groups.get(),
        });
    }

    /// The tag of the next change that the call in hand asks of a file system: a call makes at most one that must not be made twice.
    /// `None`: no call of the program's is in hand.
    pub fn change_tag(&self) -> Option<u64> {
        let number = self.store.call_of(self.endpoint);
        (number != 0).then(|| OWN_TAG | (self.endpoint.0 as u64) << 32 | number & 0xffff_ffff)
    }

    /// The tag of a transfer from or to a terminal, when the call has moved so many bytes already.
    pub fn transfer_tag(&self, moved: u64) -> u64 {
        let which = self.store.call_of(self.endpoint) as u32 ^ (moved as u32).rotate_left(16);
        OWN_TAG | (self.endpoint.0 as u64) << 32 | which as u64
    }

    /// The answer that a file system gave to the change of this call when the call came before, if the change was of this kind (label of the
    /// request).
    pub fn recalled(&self, label: u32) -> Option<Message> {
        self.recalled.borrow_mut().take_if(|reply| reply.label == label | REPLY)
    }

    /// Notes something about the call in hand, for a successor that gets it again.
    pub fn note(&self, note: Note) {
        self.store.note(self.endpoint, note);
    }

    /// Waits for the event, or until a signal ends the call with its error.
    pub async fn wait(&self) -> Result<(), Errno> {
        self.wait_or_sleep(None).await.map(drop)
    }

    /// The same, or until the sleep is over: true then.
    pub async fn wait_or_sleep(&self, mut sleep: Option<&mut Sleep>) -> Result<bool, Errno> {
        if let Some(error) = self.cancelled.take() {
            return Err(error);
        }
        *self.call.borrow_mut() = Call::Waiting;
        let mut event = pin!(self.event.wait());
        let expired = poll_fn(|context| {
            if event.as_mut().poll(context).is_ready() {
                return Poll::Ready(false);
            }
            match sleep.as_mut().map(|sleep| Pin::new(&mut **sleep).poll(context)) {
                Some(Poll::Ready(())) => Poll::Ready(true),
                _ => Poll::Pending,
            }
        })
        .await;
        *self.call.borrow_mut() = Call::None;
        match self.cancelled.take() {
            Some(error) => Err(error),
            None => Ok(expired),
        }
    }
}

/// All threads, by slot.
#[derive(Debug)]
pub struct Processes(RefCell<Vec<Option<Rc<Process>>>>);

impl Default for Processes {
    fn default() -> Self {
        Processes(RefCell::new((0..SLOTS).map(|_| None).collect()))
    }
}

impl Processes {
    /// The thread with this endpoint. `ESRCH`.
    pub fn get(&self, endpoint: Endpoint) -> Result<Rc<Process>, Errno> {
        let table = self.0.borrow();
        let process = table.get(endpoint.slot()).and_then(Option::as_ref);
        process.filter(|process| process.endpoint == endpoint).cloned().ok_or(Errno::ESRCH)
    }

    /// Enters a thread, and gives back what was in its slot. `EINVAL`: not the slot of a thread.
    pub fn insert(&self, process: Rc<Process>) -> Result<Option<Rc<Process>>, Errno> {
        let mut table = self.0.borrow_mut();
        let slot = table.get_mut(process.endpoint.slot()).ok_or(Errno::EINVAL)?;
        Ok(slot.replace(process))
    }

    /// Takes a thread out. `ESRCH`.
    pub fn remove(&self, endpoint: Endpoint) -> Result<Rc<Process>, Errno> {
        self.get(endpoint)?;
        self.0.borrow_mut()[endpoint.slot()].take().ok_or(Errno::ESRCH)
    }

    /// All threads.
    pub fn all(&self) -> Vec<Rc<Process>> {
        self.0.borrow().iter().flatten().cloned().collect()
    }
}
