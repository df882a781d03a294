//! Requests that have missed a block: they wait until it has arrived, and run again.
//!
//! A request that has run in vain has changed nothing: what it had changed is undone. What a read or a write has moved, though, stays
//! moved, and it goes on behind that. A request that keeps missing blocks without moving anything may need more of them than the cache
//! holds among all others: it waits for its blocks in the end, and everything else waits with it.
//!
//! A request that finds no room while deleted files are still being freed waits until they are freed.

use abi::fs::{Create, Lookup, Mount, OpenHandle, StatFs};
use abi::{Endpoint, Errno, Message};
use alloc::vec::Vec;
use sys::ipc;

use super::{MountRequest, Server};
use crate::file_system::FileSystem;
use crate::flights::Arrival;
use crate::preserve::VolumeMemory;

/// Times that a request misses blocks without moving anything before it waits for them.
const MAX_MISSES: u32 = 32;

/// The request has missed a block, which arrives later.
#[derive(Clone, Debug)]
pub(super) struct Missed(pub Arrival);

/// How far a request has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Bytes that it has moved.
    pub done: u64,
    /// Times that it has missed a block since it moved or committed anything.
    misses: u32,
}

/// A request that waits.
struct Waiter {
    message: Message,
    progress: Progress,
    arrival: Arrival,
}

/// What waits for blocks.
#[derive(Default)]
pub(super) struct Waiting {
    requests: Vec<Waiter>,
    /// The work that requests leave behind.
    clean_up: Option<Arrival>,
    /// Times that this work has missed a block since it committed anything.
    clean_up_misses: u32,
}

impl Waiting {
    /// Drops the requests of earlier incarnations of vfs: nobody waits for their answers, and this one asks for what it wants itself.
    #[inline]
    pub fn forget_others(&mut self, vfs: Endpoint) {
        if !self.requests.is_empty() {
            self.requests.retain(|waiter| waiter.message.source == vfs);
        }
    }

    /// Postpones the work left behind, which waits for a block.
    pub fn postpone_clean_up(&mut self, arrival: Arrival, has_committed: bool) {
        self.clean_up = Some(arrival);
        self.clean_up_misses = if has_committed { 0 } else { self.clean_up_misses + 1 };
    }

    /// Notes that nothing is left behind.
    pub fn end_clean_up(&mut self) {
        self.clean_up_misses = 0;
    }

    /// Whether the work left behind shall wait for its blocks.
    pub fn is_clean_up_stuck(&self) -> bool {
        self.clean_up_misses >= MAX_MISSES
    }

    /// The block that the freeing of deleted files waits for, when `reply` depends on what is free.
    #[inline]
    pub fn room_to_come(&self, message: &Message, reply: &Message) -> Option<Arrival> {
        let arrival = self.clean_up.as_ref()?;
        let depends = message.label == StatFs::LABEL || reply.result() == Err(Errno::ENOSPC);
        depends.then(|| arrival.clone())
    }

    pub fn is_empty(&self) -> bool {
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
    /// Runs a request that has come so far. `None` when it waits for a block.
    #[expect(clippy::disallowed_methods, reason = "one of each request of vfs: from the heap's reserve")]
    pub(super) fn attempt(&mut self, message: &Message, mut progress: Progress) -> Option<Message> {
        let before = (progress.done, self.commits());
        let answered = if progress.misses < MAX_MISSES {
            self.answer_once(message, &mut progress.done)
        } else {
            self.while_blocking(|server| server.answer_once(message, &mut progress.done))
        };
        match answered {
            Ok(reply) => Some(reply),
            Err(Missed(arrival)) => {
                let has_progressed = before != (progress.done, self.commits());
                progress.misses = if has_progressed { 0 } else { progress.misses + 1 };
                self.waiting.requests.push(Waiter { message: *message, progress, arrival });
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
            while let Some(Waiter { message, progress, .. }) = self.waiting.next() {
                if let Some(reply) = self.attempt(&message, progress) {
                    // vfs receives soon: it waits for no file system. One that has died needs no answer.
                    let _ = ipc::send(message.source, &reply);
                }
            }
            if self.drivers.is_none() {
                return;
            }
        }
        self.send_requests();
    }

    /// A message that is no request of vfs: the answer of a driver, which may be vfs, or nothing that may be asked.
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
        self.undo_changes();
        Some(missed)
    }

    /// Transactions committed so far, of all requests.
    pub(super) fn commits(&self) -> u64 {
        self.preserved.as_ref().map_or(0, |preserved| preserved.undo.number())
    }

    fn send_requests(&self) {
        if let Some(drivers) = &self.drivers {
            drivers.peers().send();
        }
    }
}

/// Whether the reply to a request counts one more user of a node.
pub(super) fn counts_user(label: u32) -> bool {
    [Lookup::LABEL, Create::LABEL, Mount::LABEL, OpenHandle::LABEL].contains(&label)
}
