//! Everything vfs knows, in one structure that lives as long as the server, and what happens between requests.
//!
//! There is one thread: handlers share this by reference and change it through cells. Rule: no borrow of a cell is held across an
//! `await`, and none while a vnode or an open file may be dropped whose end would borrow the same cell.

use crate::{
    events::notices::Events,
    files::{
        locks::{Range, Waits},
        names::Names,
        vnode::NodeRef,
    },
    keep::{
        Store,
        records::{Note, PipeRecord},
    },
    mappings::SharedMap,
    memory as user,
    mounts::{Mount, Shared},
    objects::{Closed, Closing},
    peers::Peers,
    pipes::{Pipe, World, ring::Pages},
    processes::{Call, Processes},
    queues::Queue,
};
use abi::{Endpoint, Errno, Message, fs, vm};
use alloc::{collections::BTreeMap, rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};
use server::Runtime;
use sys::{copy, ipc};

/// See the head of the file.
pub struct Vfs {
    /// The executor.
    pub runtime: Runtime,
    /// What outlives this process.
    pub store: Rc<Store>,
    /// A predecessor's state is being restored: calls wait until it is there.
    pub recovering: Cell<bool>,
    /// Those who wait for that.
    pub recovery_watchers: crate::events::Watchers,
    /// File systems and drivers.
    pub peers: Peers,
    /// Threads of programs.
    pub processes: Processes,
    /// Mounts; the first one is the root.
    pub mounts: RefCell<Vec<Rc<Mount>>>,
    /// Names of files.
    pub names: RefCell<Names<NodeRef>>,
    /// Files that are mapped shared.
    pub shared_maps: RefCell<Vec<Rc<SharedMap>>>,
    /// Open files that have ended.
    pub closing: Rc<Closing>,
    /// What all mounts and open files share.
    pub shared: Rc<Shared>,
    /// Which owner of record locks waits for which.
    pub lock_waits: RefCell<Waits>,
    /// What pm has to be told.
    pub events: Events,
    /// Message queues by name.
    pub queues: RefCell<BTreeMap<Vec<u8>, Rc<Queue>>>,
    /// Number of the next pipe, for fstat.
    pub next_pipe: Cell<u64>,
    /// Pipes with a writer that lacks pages.
    pub starving: RefCell<Vec<Rc<Pipe>>>,
    /// Fires when there is one more.
    pub hungry: crate::events::Event,
    /// The root file system is there.
    pub mounted: Cell<bool>,
    /// Those who wait for that.
    pub mounted_watchers: crate::events::Watchers,
}

impl Vfs {
    /// Nothing mounted, no programs. `generation`: of this incarnation.
    pub fn new(store: Store, generation: u32) -> Vfs {
        let store = Rc::new(store);
        // Numbers that no predecessor has given.
        let first_number = (generation as u64) << 40;
        let shared = Rc::new(Shared::new(first_number + 1));
        Vfs {
            runtime: Runtime::new(),
            store: store.clone(),
            recovering: Cell::new(false),
            recovery_watchers: crate::events::Watchers::default(),
            peers: Peers::default(),
            processes: Processes::default(),
            mounts: RefCell::default(),
            names: RefCell::default(),
            shared_maps: RefCell::default(),
            closing: Rc::new(Closing::new(store, first_number, shared.clone())),
            shared,
            lock_waits: RefCell::default(),
            events: Events::default(),
            queues: RefCell::default(),
            next_pipe: Cell::new(1),
            starving: RefCell::default(),
            hungry: crate::events::Event::default(),
            mounted: Cell::new(false),
            mounted_watchers: crate::events::Watchers::default(),
        }
    }

    /// Answers a call of a program that waits.
    pub fn answer(&self, who: Endpoint, result: Result<u64, Errno>) {
        self.runtime.answer(who, answer(result));
    }

    /// Does what the ends of open files and vnodes have left to do. Called after each request.
    #[inline]
    pub fn sweep(&self) {
        if self.shared.wants_sweep.get() {
            self.sweep_all();
        }
    }

    fn sweep_all(&self) {
        while self.shared.wants_sweep.take() {
            while let Some(closed) = self.closing.take() {
                self.close(closed);
            }
            self.mounts.borrow().iter().filter(|mount| mount.wants_sweep()).for_each(|mount| self.put_dropped(mount));
        }
    }

    fn close(&self, closed: Closed) {
        match closed {
            Closed::Pipe { pipe, reads, writes } => pipe.close(self, reads, writes),
            Closed::Device { service, minor } => self.tell(service, abi::chardev::Close { minor }.message()),
            Closed::Flock { node, number } => {
                if node.locks.whole.borrow_mut().release(number, Range::ALL) {
                    self.save_locks(&node);
                    node.locks.released.fire();
                }
            }
        }
    }

    /// The end of a turn: what has happened lasts from now on.
    pub fn end_turn(&self, answers: &[(Endpoint, Message)]) {
        self.store.end_turn(answers);
    }

    /// Lets writers go on that lacked pages, as soon as there are some; for ever.
    pub async fn feed_pipes(&self) {
        const PAUSE_NS: u64 = 1_000_000;
        loop {
            self.hungry.wait().await;
            self.runtime.sleep_ns(PAUSE_NS).await;
            let pipes = self.starving.take();
            pipes.iter().for_each(|pipe| pipe.retry(self));
        }
    }

    /// Takes the uses of ended vnodes back, and has vm forget their pages.
    pub fn put_dropped(&self, mount: &Mount) {
        for dropped in mount.take_dropped() {
            if dropped.image {
                vm_call(&vm::ImageForget { device: mount.device, inode: dropped.node }.message());
            }
            self.tell(mount.service, fs::Put { node: dropped.node, count: dropped.uses }.message());
        }
    }

    /// The content of a file has changed: vm's pages of it are for nobody new.
    pub fn forget_image(&self, node: &NodeRef) {
        if node.has_image.replace(false) {
            vm_call(&vm::ImageForget { device: node.mount.device, inode: node.node }.message());
        }
    }
}

/// The answer to a Linux call: only word 0 counts.
pub fn answer(result: Result<u64, Errno>) -> Message {
    let mut reply = Message::new(abi::message::REPLY);
    reply.words[0] = abi::Word::to_word(result);
    reply
}

/// Tells vm something that has no result worth waiting for. vm answers at once, and it never refuses these.
fn vm_call(message: &Message) {
    if let Err(error) = ipc::call(Endpoint::VM, message) {
        sys::log!("vm refuses request {:#x}: {error}", message.label);
    }
}

impl Pages for Vfs {
    fn take(&self) -> Option<u16> {
        self.store.new_page()
    }

    fn free(&self) -> usize {
        self.store.free_pages()
    }

    fn give(&self, page: u16) {
        self.store.release_page(page);
    }

    fn link(&self, before: u16, page: u16) {
        self.store.link_page(before, page);
    }

    fn fill(&self, page: u16, at: usize, bytes: usize, from: Endpoint, address: u64) -> Result<(), Errno> {
        self.store.fetch(page, at, bytes, from, address).map_err(user::fault)
    }

    fn drain(&self, page: u16, at: usize, bytes: usize, to: Endpoint, address: u64) -> Result<(), Errno> {
        self.store.store(page, at, bytes, to, address).map_err(user::fault)
    }

    fn save(&self, pipe: u16, record: &PipeRecord) {
        self.store.set_pipe(pipe, record);
    }

    fn end(&self, pipe: u16) {
        self.store.release_pipe(pipe);
    }
}

impl World for Vfs {
    fn copy(&self, from: Endpoint, from_address: u64, to: Endpoint, to_address: u64, bytes: u64) -> Result<(), Errno> {
        self.store.has_moved();
        copy::between(from, from_address, to, to_address, bytes)
    }

    fn is_mapped(&self, who: Endpoint, address: u64) -> bool {
        user::fetch(who, address, &mut [0]).is_ok()
    }

    fn note_moved(&self, who: Endpoint, moved: u64) {
        if let Ok(process) = self.processes.get(who) {
            process.note(Note::Moved(moved));
        }
    }

    fn wants_pages(&self, pipe: &Rc<Pipe>) {
        self.starving.borrow_mut().push(pipe.clone());
        self.hungry.fire();
    }

    fn finish(&self, who: Endpoint, result: Result<u64, Errno>) {
        if let Ok(process) = self.processes.get(who) {
            *process.call.borrow_mut() = Call::None;
            self.answer(who, result);
        }
    }

    fn broken(&self, who: Endpoint, moved: u64) {
        if let Ok(process) = self.processes.get(who) {
            *process.call.borrow_mut() = Call::Signalled(moved);
            self.events.signal(who, crate::events::notices::SIGPIPE);
        }
    }
}
