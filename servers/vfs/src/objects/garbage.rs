//! Finds sockets in flight that nobody can receive any more: those that only the queues of such sockets refer to.
//!
//! Their open files keep each other alive. A collection looks first for *suspects*: sockets all references to which are in flight. From
//! every queue that is not a suspect's it then marks what it can reach, and ends the rest by discarding what waits in their queues. It is
//! done in steps, between which programs go on: a socket that is sent, or taken out of a queue, is marked at once. So whatever anybody
//! can still reach at the end is marked. A successor needs nothing of this, because it restores what threads can reach.

use super::{
    OpenFile,
    rights::{Carried, carried, socket_of},
};
use crate::{
    base::Base,
    events::Event,
    keep::{Sizes, quota},
    pipes::{Pipe, ancillary::Rights},
    sockets::Socket,
};
use abi::Errno;
use alloc::{
    rc::{Rc, Weak},
    vec::Vec,
};
use core::cell::RefCell;
use server::quota::{Share, Shares};
use sys::fallible::TryVec;

/// Sockets and queues that one step looks at.
const STEP: usize = 256;
/// Time between two steps.
const PAUSE_NS: u64 = 50_000;

/// What a collection knows of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// Somebody refers to it who is not in flight, or it was not looked at.
    #[default]
    Held,
    /// Only queues refer to it, and it has not been reached.
    Suspect,
    /// It was a suspect and has been reached.
    Reached,
}

/// A socket that is in flight, by its place.
#[derive(Clone, Debug, Default)]
struct Flying {
    file: Option<Weak<OpenFile>>,
    /// References from queues.
    references: usize,
    standing: Standing,
}

/// A pipe with sockets in flight, by its place.
#[derive(Clone, Debug, Default)]
struct Queue {
    pipe: Option<Weak<Pipe>>,
    /// Messages with sockets.
    messages: usize,
    /// It is a suspect's.
    suspect: bool,
}

/// How far a collection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    /// Looks for suspects, from this place on.
    Suspecting(usize),
    /// Looks for queues that are not suspects', from this place on.
    Entering(usize),
    /// Marks what is reached from what has been.
    Marking,
    /// Ends what was not reached, from this place on.
    Freeing(usize),
}

#[derive(Debug, Default)]
struct State {
    sockets: Vec<Flying>,
    queues: Vec<Queue>,
    /// Messages with sockets.
    messages: usize,
    phase: Phase,
    /// Reached sockets whose queues are to be looked at. Invariant: there is room for all suspects.
    reached: Vec<u16>,
}

/// What is in flight, of whom, and the collection in progress.
#[derive(Debug)]
pub struct InFlight {
    state: RefCell<State>,
    files: Shares,
    wanted: Event,
}

impl InFlight {
    /// Nothing is.
    pub fn new(sizes: Sizes) -> InFlight {
        InFlight { state: RefCell::default(), files: quota(sizes.in_flight()), wanted: Event::default() }
    }

    /// Charges a user for open files, until they have left; `limit`: how many he may have before. `ETOOMANYREFS`.
    pub(super) fn charge(&self, user: u32, files: usize, limit: Option<usize>) -> Result<Share, Errno> {
        if limit.is_some_and(|limit| self.files.held_by(user) > limit) {
            return Err(Errno::ETOOMANYREFS);
        }
        self.files.take(user, files).map_err(|refusal| refusal.errno(Errno::ETOOMANYREFS, Errno::ETOOMANYREFS))
    }

    /// Charges a user for open files that a predecessor has left. `ENOMEM`.
    pub(super) fn restore_charge(&self, user: u32, files: usize) -> Result<Share, Errno> {
        self.files.restore(user, files).map_err(|_| Errno::ENOMEM)
    }

    /// Makes room for a socket, and for a pipe that it is sent into. `ENOMEM`.
    pub(super) fn make_room(&self, socket: u16, pipe: u16) -> Result<(), Errno> {
        let State { sockets, queues, .. } = &mut *self.state.borrow_mut();
        let (socket_end, queue_end) = (sockets.len().max(socket as usize + 1), queues.len().max(pipe as usize + 1));
        sockets.try_resize(socket_end, Flying::default())?;
        queues.try_resize(queue_end, Queue::default())
    }

    /// A message with sockets is in a pipe.
    pub(super) fn enter(&self, carried: &Carried) {
        let state = &mut *self.state.borrow_mut();
        for (file, socket) in carried.sockets() {
            let flying = &mut state.sockets[socket.place() as usize];
            flying.references += 1;
            flying.file.get_or_insert_with(|| Rc::downgrade(file));
            state.reach(socket.place());
        }
        let (pipe, place) = carried.pipe();
        let queue = &mut state.queues[place as usize];
        // Messages of a pipe that has ended may still be counted here.
        queue.pipe = Some(pipe.clone());
        queue.messages += 1;
        state.messages += 1;
    }

    /// It is in the pipe no more.
    pub(super) fn leave(&self, carried: &Carried) {
        let state = &mut *self.state.borrow_mut();
        for (_, socket) in carried.sockets() {
            let flying = &mut state.sockets[socket.place() as usize];
            flying.references -= 1;
            if flying.references == 0 {
                flying.file = None;
            }
            state.reach(socket.place());
        }
        let queue = &mut state.queues[carried.pipe().1 as usize];
        queue.messages -= 1;
        if queue.messages == 0 {
            queue.pipe = None;
        }
        state.messages -= 1;
    }

    /// Somebody gets open files that are in flight, or were.
    pub fn given(&self, carried: &Carried) {
        for (_, socket) in carried.sockets() {
            self.state.borrow_mut().reach(socket.place());
        }
    }

    /// A connection that has waited in a listening socket has an open file now.
    pub fn accepted(&self, socket: &Socket) {
        let state = &mut *self.state.borrow_mut();
        if state.phase != Phase::Idle {
            socket.for_each_queue(|pipe| state.enter_queue(pipe));
        }
    }

    /// Has a collection done, if sockets are in flight.
    pub fn collect(&self) {
        if self.state.borrow().messages > 0 {
            self.wanted.fire();
        }
    }

    /// Does the collections that are wanted, for ever.
    pub async fn serve(&self, base: &Base) {
        loop {
            self.wanted.wait().await;
            loop {
                let done = self.step(base);
                base.sweep();
                if done {
                    break;
                }
                base.runtime().sleep_ns(PAUSE_NS).await;
            }
        }
    }

    /// Does a part of a collection. Returns whether that was the last one.
    fn step(&self, base: &Base) -> bool {
        let state = &mut *self.state.borrow_mut();
        for _ in 0..STEP {
            state.phase = match state.phase {
                Phase::Idle => Phase::Suspecting(0),
                Phase::Suspecting(place) => state.suspect(place),
                Phase::Entering(place) => state.enter(place),
                Phase::Marking => state.mark(),
                Phase::Freeing(place) => state.free(base, place),
            };
            if state.phase == Phase::Idle {
                return true;
            }
        }
        false
    }
}

impl State {
    /// A socket that is a suspect is none: somebody has it, or may get it. Once the others are being freed nobody can.
    fn reach(&mut self, place: u16) {
        let freeing = matches!(self.phase, Phase::Freeing(_));
        if let Some(flying) = self.sockets.get_mut(place as usize).filter(|_| !freeing)
            && flying.standing == Standing::Suspect
        {
            flying.standing = Standing::Reached;
            self.note_reached(place);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "within the capacity, by the invariant")]
    fn note_reached(&mut self, place: u16) {
        self.reached.push(place);
    }

    fn suspect(&mut self, place: usize) -> Phase {
        let Some(flying) = self.sockets.get_mut(place) else { return Phase::Entering(0) };
        let only_queues = flying.file.as_ref().is_some_and(|file| file.strong_count() == flying.references);
        // Without memory to count with, it is held for this time.
        if only_queues && self.reached.try_make_room(place + 1 - self.reached.len()).is_ok() {
            flying.standing = Standing::Suspect;
            let queues = &mut self.queues;
            for_each_queue(flying, |pipe| {
                if let Some(queue) = queues.get_mut(pipe.record() as usize) {
                    queue.suspect = true;
                }
            });
        }
        Phase::Suspecting(place + 1)
    }

    fn enter(&mut self, place: usize) -> Phase {
        let Some(queue) = self.queues.get_mut(place) else { return Phase::Marking };
        let suspect = core::mem::take(&mut queue.suspect);
        if let Some(pipe) = queue.pipe.as_ref().filter(|_| !suspect).and_then(Weak::upgrade) {
            self.enter_queue(&pipe);
        }
        Phase::Entering(place + 1)
    }

    /// Reaches the sockets in a queue.
    fn enter_queue(&mut self, pipe: &Pipe) {
        pipe.for_each_rights(|rights: &Rc<dyn Rights>| {
            for (_, socket) in carried(rights).into_iter().flat_map(Carried::sockets) {
                self.reach(socket.place());
            }
        });
    }

    fn mark(&mut self) -> Phase {
        let Some(place) = self.reached.pop() else { return Phase::Freeing(0) };
        let flying = self.sockets[place as usize].clone();
        for_each_queue(&flying, |pipe| self.enter_queue(pipe));
        Phase::Marking
    }

    fn free(&mut self, base: &Base, place: usize) -> Phase {
        let Some(flying) = self.sockets.get_mut(place) else { return Phase::Idle };
        let standing = core::mem::take(&mut flying.standing);
        if standing == Standing::Suspect {
            for_each_queue(flying, |pipe| pipe.discard(base));
        }
        Phase::Freeing(place + 1)
    }
}

/// The queues in which a socket receives, and those of connections that wait in it.
fn for_each_queue(flying: &Flying, look: impl FnMut(&Rc<Pipe>)) {
    let file = flying.file.as_ref().and_then(Weak::upgrade);
    if let Some(socket) = file.as_deref().and_then(socket_of) {
        socket.for_each_queue(look);
    }
}

#[cfg(test)]
impl InFlight {
    /// Does a collection.
    pub fn collect_all(&self, base: &Base) {
        while !self.step(base) {}
    }
}
