//! Requests that have missed a block: they wait until it has arrived, and run again.
//!
//! A request that has run in vain has changed nothing: what it had changed is undone. What a read or a write has moved, though, stays
//! moved, and it goes on behind that.

use abi::fs::{Create, Lookup, Mount};
use abi::{Endpoint, Errno, Message};
use alloc::vec::Vec;
use sys::ipc;

use super::{MountRequest, Server};
use crate::file_system::FileSystem;
use crate::flights::Arrival;
use crate::preserve::VolumeMemory;

/// The request has missed a block, which arrives later.
#[derive(Clone, Debug)]
pub(super) struct Missed(pub Arrival);

/// A request that waits.
struct Waiter {
    message: Message,
    /// Bytes that it has moved.
    done: u64,
    arrival: Arrival,
}

/// What waits for blocks.
#[derive(Default)]
pub(super) struct Waiting {
    requests: Vec<Waiter>,
    /// The work that requests leave behind.
    clean_up: Option<Arrival>,
}

impl Waiting {
    /// Drops the requests of earlier incarnations of vfs: nobody waits for their answers, and this one asks for what it wants itself.
    #[inline]
    pub fn forget_others(&mut self, vfs: Endpoint) {
        if !self.requests.is_empty() {
            self.requests.retain(|waiter| waiter.message.source == vfs);
        }
    }

    /// The work left behind waits for a block.
    pub fn postpone_clean_up(&mut self, arrival: Arrival) {
        self.clean_up = Some(arrival);
    }

    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.clean_up.is_none()
    }

    /// A request that can run again.
    fn next(&mut self) -> Option<Waiter> {
        let at = self.requests.iter().position(|waiter| waiter.arrival.has_come())?;
        Some(self.requests.remove(at))
    }
}

impl<F, M> Server<F, M>
where
    F: FileSystem,
    M: FnMut(&MountRequest, Option<VolumeMemory>) -> Result<F, Errno>,
{
    /// Runs a request of which `done` bytes are done. `None` when it waits for a block.
    pub(super) fn attempt(&mut self, message: &Message, mut done: u64) -> Option<Message> {
        match self.answer_once(message, &mut done) {
            Ok(reply) => Some(reply),
            Err(Missed(arrival)) => {
                self.waiting.requests.push(Waiter { message: *message, done, arrival });
                self.send_requests();
                None
            }
        }
    }

    /// Takes in blocks that have arrived, runs the requests that have waited for them, and sends their answers.
    pub fn go_on(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        while !self.waiting.is_empty() && self.drivers.as_ref().is_none_or(|drivers| drivers.peers().take_news()) {
            self.volumes.iter_mut().for_each(F::collect);
            if self.waiting.clean_up.take_if(|arrival| arrival.has_come()).is_some() {
                self.clean_up();
            }
            while let Some(Waiter { message, done, .. }) = self.waiting.next() {
                if let Some(reply) = self.attempt(&message, done) {
                    // vfs receives soon: it waits for no file system. One that has died needs no answer.
                    let _ = server::denied::note(message.source, ipc::send(message.source, &reply));
                }
            }
            if self.drivers.is_none() {
                return;
            }
        }
        self.send_requests();
    }

    /// A message that is not from vfs: the answer of a driver, or nothing that may be asked.
    #[cold]
    pub(super) fn hear(&mut self, message: &Message) -> Option<Message> {
        match &self.drivers {
            Some(drivers) if message.is_reply() => drivers.peers().take_reply(message),
            _ => return Some(message.reply(Err(Errno::EPERM))),
        }
        None
    }

    /// Does something that waits for each block it reads, with everything else.
    pub(super) fn while_blocking<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.blocking.set(true);
        let result = act(self);
        self.blocking.set(before);
        result
    }

    /// What the present request has missed, if it has; then it is undone.
    #[inline]
    pub(super) fn missed(&mut self) -> Option<Arrival> {
        let missed = self.volumes.iter_mut().filter_map(F::take_missed).last()?;
        if self.volumes.iter_mut().any(|file_system| file_system.is_changed()) {
            self.undo_request();
        }
        Some(missed)
    }

    fn send_requests(&self) {
        if let Some(drivers) = &self.drivers {
            drivers.peers().send();
        }
    }
}

/// Whether the reply to a request counts one more user of a node.
pub(super) fn counts_user(label: u32) -> bool {
    [Lookup::LABEL, Create::LABEL, Mount::LABEL].contains(&label)
}
