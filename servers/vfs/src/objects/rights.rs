//! Open files in flight: what `SCM_RIGHTS` carries from one process to another, alive although no descriptor refers to it.
//!
//! Neighbours: `pipes::ancillary` queues them, `garbage` finds sockets that only queues of such sockets refer to.

use super::{OpenFile, garbage::InFlight, socket::SocketFile};
use crate::{
    pipes::{Pipe, ancillary::Rights},
    sockets::Socket,
};
use abi::Errno;
use alloc::{
    rc::{Rc, Weak},
    vec::Vec,
};
use core::{any::Any, cell::Cell};
use server::quota::Share;

/// Most open files of one message (`SCM_MAX_FD`).
pub const MAX_FILES: usize = 253;

/// Open files of one message.
#[derive(Debug)]
pub struct Carried {
    files: Vec<Rc<OpenFile>>,
    pipe: Weak<Pipe>,
    /// That pipe's place.
    place: u16,
    flight: Rc<InFlight>,
    has_sockets: bool,
    queued: Cell<bool>,
    _charge: Share,
}

impl Carried {
    /// Files that a user sends into a pipe; `limit`: how many he may have in flight before, if there is one. `ETOOMANYREFS`, `ENOMEM`.
    pub fn new(
        flight: &Rc<InFlight>,
        files: Vec<Rc<OpenFile>>,
        pipe: &Rc<Pipe>,
        user: u32,
        limit: Option<usize>,
    ) -> Result<Rc<Carried>, Errno> {
        let charge = flight.charge(user, files.len(), limit)?;
        Carried::with(flight, files, pipe, charge)
    }

    /// Files that a predecessor has left in a pipe. `ENOMEM`.
    pub fn restore(
        flight: &Rc<InFlight>,
        files: Vec<Rc<OpenFile>>,
        pipe: &Rc<Pipe>,
        user: u32,
    ) -> Result<Rc<Carried>, Errno> {
        let charge = flight.restore_charge(user, files.len())?;
        Carried::with(flight, files, pipe, charge)
    }

    fn with(
        flight: &Rc<InFlight>,
        files: Vec<Rc<OpenFile>>,
        pipe: &Rc<Pipe>,
        charge: Share,
    ) -> Result<Rc<Carried>, Errno> {
        let mut has_sockets = false;
        for file in &files {
            if let Some(socket) = socket_of(file) {
                flight.make_room(socket.place(), pipe.record())?;
                has_sockets = true;
            }
        }
        let (place, pipe, flight) = (pipe.record(), Rc::downgrade(pipe), flight.clone());
        Ok(Rc::new(Carried { files, pipe, place, flight, has_sockets, queued: Cell::new(false), _charge: charge }))
    }

    /// The files.
    pub fn files(&self) -> &[Rc<OpenFile>] {
        &self.files
    }

    /// The sockets among them, with their open files.
    pub fn sockets(&self) -> impl Iterator<Item = (&Rc<OpenFile>, &Rc<Socket>)> {
        let files = if self.has_sockets { &self.files[..] } else { &[] };
        files.iter().filter_map(|file| Some((file, socket_of(file)?)))
    }

    /// The pipe that they are sent into, and its place.
    pub fn pipe(&self) -> (&Weak<Pipe>, u16) {
        (&self.pipe, self.place)
    }
}

impl Rights for Carried {
    fn count(&self) -> usize {
        self.files.len()
    }

    fn place(&self, index: usize) -> u32 {
        self.files[index].place()
    }

    fn enter(&self) {
        self.queued.set(true);
        if self.has_sockets {
            self.flight.enter(self);
        }
    }

    fn leave(&self) {
        if self.queued.take() && self.has_sockets {
            self.flight.leave(self);
        }
    }
}

/// The socket that an open file is of.
pub fn socket_of(file: &OpenFile) -> Option<&Rc<Socket>> {
    file.object::<SocketFile>().map(|socket| &socket.0)
}

/// The files that a pipe has given.
pub fn carried(rights: &Rc<dyn Rights>) -> Option<&Carried> {
    let rights: &dyn Any = &**rights;
    rights.downcast_ref()
}
