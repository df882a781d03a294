//! Everything vfs knows, in one structure that lives as long as the server, and what happens between requests.
//!
//! There is one thread: handlers share this by reference and change it through cells. Rule: no borrow of a cell is held across an
//! `await`, and none while a vnode or an open file may be dropped whose end would borrow the same cell.

use crate::{
    events::Events,
    file::{Closed, Closing},
    locks::{Range, Waits},
    mount::Mount,
    names::Names,
    peers::Peers,
    pipe::World,
    process::{Call, Processes},
    user,
    vnode::NodeRef,
};
use abi::{Endpoint, Errno, Message, fs, vm};
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};
use server::Runtime;
use sys::{copy, ipc};

/// See the head of the file.
pub struct Vfs {
    /// The executor.
    pub runtime: Runtime,
    /// File systems and drivers.
    pub peers: Peers,
    /// Threads of programs.
    pub processes: Processes,
    /// Mounts; the first one is the root.
    pub mounts: RefCell<Vec<Rc<Mount>>>,
    /// Names of files.
    pub names: RefCell<Names<NodeRef>>,
    /// Open files that have ended.
    pub closing: Rc<Closing>,
    /// Numbers for vnodes.
    pub serials: Rc<Cell<u64>>,
    /// Which owner of record locks waits for which.
    pub lock_waits: RefCell<Waits>,
    /// What pm has to be told.
    pub events: Events,
    /// Number of the next pipe, for fstat.
    pub next_pipe: Cell<u64>,
    /// The root file system is there.
    pub mounted: Cell<bool>,
    /// Those who wait for that.
    pub mounted_watchers: crate::event::Watchers,
}

impl Vfs {
    /// Nothing mounted, no programs.
    pub fn new() -> Vfs {
        Vfs {
            runtime: Runtime::new(),
            peers: Peers::default(),
            processes: Processes::default(),
            mounts: RefCell::default(),
            names: RefCell::default(),
            closing: Rc::default(),
            serials: Rc::new(Cell::new(1)),
            lock_waits: RefCell::default(),
            events: Events::default(),
            next_pipe: Cell::new(1),
            mounted: Cell::new(false),
            mounted_watchers: crate::event::Watchers::default(),
        }
    }

    /// Answers a call of a program that waits.
    pub fn answer(&self, who: Endpoint, result: Result<u64, Errno>) {
        let mut reply = Message::new(abi::message::REPLY);
        reply.words[0] = abi::Word::to_word(result);
        // A program that was killed in the meantime needs no answer.
        let _ = ipc::send_nonblocking(who, &reply);
    }

    /// Does what the ends of open files and vnodes have left to do. Called after each request.
    pub fn sweep(&self) {
        while let Some(closed) = self.closing.take() {
            self.close(closed);
        }
        for mount in self.mounts.borrow().iter() {
            if mount.wants_sweep() {
                self.put_dropped(mount);
            }
        }
    }

    fn close(&self, closed: Closed) {
        match closed {
            Closed::Pipe { pipe, reads, writes } => pipe.close(self, reads, writes),
            Closed::Device { service, minor } => self.tell(service, abi::chardev::Close { minor }.message()),
            Closed::Flock { node, number } => {
                if node.locks.whole.borrow_mut().release(number, Range::ALL) {
                    node.locks.released.fire();
                }
            }
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

/// Tells vm something that has no result worth waiting for. vm answers at once, and it never refuses these.
fn vm_call(message: &Message) {
    if let Err(error) = ipc::call(Endpoint::VM, message) {
        sys::log!("vm refuses request {:#x}: {error}", message.label);
    }
}

impl World for Vfs {
    fn copy(&self, from: Endpoint, from_address: u64, to: Endpoint, to_address: u64, bytes: u64) -> Result<(), Errno> {
        copy::between(from, from_address, to, to_address, bytes)
    }

    fn fetch(&self, from: Endpoint, address: u64, to: &mut [u8]) -> Result<(), Errno> {
        user::fetch(from, address, to)
    }

    fn store(&self, to: Endpoint, address: u64, from: &[u8]) -> Result<(), Errno> {
        user::store(to, address, from)
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
            self.events.signal(who, crate::events::SIGPIPE);
        }
    }
}
