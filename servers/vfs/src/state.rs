//! Everything vfs knows, in one structure that lives as long as the server.
//!
//! There is one thread: handlers share this by reference and change it through cells. Rule: no borrow of a cell is held across an
//! `await`, and none while a vnode or an open file may be dropped whose end would borrow the same cell.

use crate::{
    base::Base, devices::Devices, events::Milestone, files::locks::Waits, keep::Store, processes::Processes,
    queues::names::QueueNames,
};
use core::cell::RefCell;

/// See the head of the file.
pub struct Vfs {
    /// What open files stand on.
    pub base: Base,
    /// The devices of this system.
    pub devices: Devices,
    /// Threads of programs, with their descriptors and directories.
    pub processes: Processes,
    /// Message queues by name.
    pub queues: QueueNames,
    /// Which owner of record locks waits for which.
    pub lock_waits: RefCell<Waits>,
    /// A predecessor's state has been restored: calls wait for that.
    pub recovered: Milestone,
    /// Everything that the arguments name is mounted: programs wait for that.
    pub mounted: Milestone,
}

impl Vfs {
    /// Nothing mounted, no programs. `generation`: of this incarnation.
    pub fn new(store: Store, generation: u32, devices: Devices) -> Vfs {
        let base = Base::new(store, generation);
        let recovered = Milestone::default();
        recovered.reach();
        Vfs {
            processes: Processes::new(base.callers.clone()),
            base,
            devices,
            queues: QueueNames::default(),
            lock_waits: RefCell::default(),
            recovered,
            mounted: Milestone::default(),
        }
    }
}
