//! Everything vfs knows: the parts, each of which owns its state, and lives as long as the server.
//!
//! Only the table of calls, recovery and `main` see the whole; whatever serves a call is given the parts it needs. There is one thread:
//! the parts are shared by reference and changed through cells. Rule: no borrow of a cell is held across an `await`, and none while a
//! vnode or an open file may be dropped whose end would borrow the same cell.

use crate::{
    aio::Contexts, base::Base, devices::Devices, events::Startup, files::locks::Waits, keep::Store,
    objects::garbage::InFlight, processes::Processes, queues::names::QueueNames, sockets::names::Names,
};
use alloc::rc::Rc;

/// See the head of the file.
pub struct Vfs {
    base: Base,
    processes: Processes,
    queues: QueueNames,
    sockets: Rc<Names>,
    in_flight: Rc<InFlight>,
    contexts: Contexts,
    lock_waits: Waits,
    startup: Startup,
}

impl Vfs {
    /// Nothing mounted, no programs. `generation`: of this incarnation.
    pub fn new(store: Store, generation: u32, devices: Devices) -> Vfs {
        let base = Base::new(store, generation, devices);
        Vfs {
            processes: Processes::new(base.callers().clone()),
            in_flight: Rc::new(InFlight::new(base.store().sizes())),
            base,
            queues: QueueNames::default(),
            sockets: Rc::default(),
            contexts: Contexts::default(),
            lock_waits: Waits::default(),
            startup: Startup::default(),
        }
    }

    /// What open files stand on.
    #[inline]
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Threads of programs, with their descriptors and directories.
    #[inline]
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Message queues by name.
    pub fn queues(&self) -> &QueueNames {
        &self.queues
    }

    /// Sockets by name.
    pub fn sockets(&self) -> &Rc<Names> {
        &self.sockets
    }

    /// Open files in flight.
    pub fn in_flight(&self) -> &Rc<InFlight> {
        &self.in_flight
    }

    /// Contexts of asynchronous I/O.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The wait-for graph of record locks.
    pub fn lock_waits(&self) -> &Waits {
        &self.lock_waits
    }

    /// How far the start of this incarnation has come.
    #[inline]
    pub fn startup(&self) -> &Startup {
        &self.startup
    }
}
