//! The transfers of a channel, for its two disks, in the order in which they came: a flush covers the writes before it.
//!
//! The first transfer of the queue is in progress, in commands of at most [`COMMAND_BYTES`]. After a command that fails or times out
//! the channel is reset and the command repeated, [`TRIES`] attempts in all; then the transfer fails with `EIO`.

use crate::channel::{COMMAND_BYTES, Channel, Failure, Memory, Progress, SECTOR_BYTES};
use crate::identity::Identity;
use crate::registers::{BusMaster, Registers};
use abi::Errno;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use driver::block::{Extent, Operation};

/// Attempts of a command.
pub const TRIES: usize = 3;

/// A transfer, as the caller provides it.
pub trait Work<B>: Extent {
    /// Fills the memory from `offset` of the caller's buffer.
    ///
    /// # Errors
    /// Those of the caller's buffer.
    fn fetch(&self, offset: u64, into: Memory<B>) -> Result<(), Errno>;
    /// Copies the memory to `offset` of the caller's buffer.
    ///
    /// # Errors
    /// As `fetch`.
    fn put(&self, offset: u64, from: Memory<B>) -> Result<(), Errno>;
}

/// A transfer and its progress.
struct Job<W> {
    unit: usize,
    work: W,
    done: u64,
    /// Failed attempts of the command in progress.
    failures: usize,
}

impl<W> Job<W> {
    /// Returns the length of the command in progress, in bytes.
    fn piece<B>(&self) -> usize
    where
        W: Work<B>,
    {
        (self.work.bytes() - self.done).min(COMMAND_BYTES as u64) as usize
    }

    fn start<R: Registers, B: BusMaster>(&self, channel: &mut Channel<R, B>) -> Result<Progress, Failure>
    where
        W: Work<B>,
    {
        let bytes = self.piece();
        if self.work.operation() == Operation::Write {
            self.work.fetch(self.done, channel.memory(self.unit, bytes))?;
        }
        let sector = (self.work.position() + self.done) / SECTOR_BYTES as u64;
        channel.start(self.unit, self.work.operation(), sector, bytes)
    }

    /// Ends a command. Returns whether it was the last of the transfer.
    fn finish_piece<R: Registers, B: BusMaster>(&mut self, channel: &mut Channel<R, B>) -> Result<bool, Errno>
    where
        W: Work<B>,
    {
        let bytes = self.piece();
        if self.work.operation() == Operation::Read {
            self.work.put(self.done, channel.memory(self.unit, bytes))?;
        }
        self.done += bytes as u64;
        self.failures = 0;
        Ok(self.done == self.work.bytes())
    }
}

/// A completed transfer and its result.
pub type Ended<W> = (W, Result<(), Errno>);

/// A channel and its transfers.
pub struct Queue<R, B, W> {
    channel: Channel<R, B>,
    /// The first one is in progress, or is repeated after the reset in progress.
    jobs: VecDeque<Job<W>>,
    ended: Vec<Ended<W>>,
}

impl<R: Registers, B: BusMaster, W: Work<B>> Queue<R, B, W> {
    /// Makes the empty queue of a channel.
    pub fn new(channel: Channel<R, B>) -> Self {
        Queue { channel, jobs: VecDeque::new(), ended: Vec::new() }
    }

    /// Returns the identity of the disk in `unit` (0 or 1).
    pub fn identity(&self, unit: usize) -> Option<Identity> {
        self.channel.identity(unit)
    }

    /// Queues a transfer of whole sectors within the disk in `unit`, and starts it if the channel is idle. Returns it if there is no
    /// memory for it.
    pub fn begin(&mut self, unit: usize, work: W) -> Result<(), W> {
        // Space to end all transfers, so that no later step allocates.
        let transfers = self.jobs.len() + 1;
        if self.jobs.try_reserve(1).is_err() || self.ended.try_reserve(transfers).is_err() {
            return Err(work);
        }
        self.jobs.push_back(Job { unit, work, done: 0, failures: 0 });
        if self.channel.is_idle() {
            self.go_on(Ok(Progress::Ready));
        }
        Ok(())
    }

    /// Handles an interrupt of the channel.
    pub fn interrupt(&mut self) {
        let progress = self.channel.interrupt();
        self.go_on(progress);
    }

    /// Handles the alarm, which may come early.
    pub fn alarm(&mut self) {
        let progress = self.channel.alarm();
        self.go_on(progress);
    }

    /// Returns when [`Queue::alarm`] has to be called. `None`: the channel is idle.
    pub fn wake_ns(&self) -> Option<u64> {
        self.channel.wake_ns()
    }

    /// Returns the transfers that have completed since the last call.
    pub fn take_ended(&mut self) -> impl Iterator<Item = Ended<W>> + '_ {
        self.ended.drain(..)
    }

    /// Starts commands until one, or a reset, is in progress, or the queue is empty.
    fn go_on(&mut self, mut progress: Result<Progress, Failure>) {
        loop {
            match progress {
                Ok(Progress::Pending) => return,
                Ok(Progress::Ended) => self.finish_piece(),
                Ok(Progress::Ready) => {}
                Err(failure) => self.fail(failure),
            }
            let Some(job) = self.jobs.front().filter(|_| self.channel.is_idle()) else { return };
            progress = job.start(&mut self.channel);
        }
    }

    fn finish_piece(&mut self) {
        match self.jobs.front_mut().map(|job| job.finish_piece(&mut self.channel)) {
            None | Some(Ok(false)) => {}
            Some(Ok(true)) => self.end(Ok(())),
            Some(Err(error)) => self.end(Err(error)),
        }
    }

    /// Repeats the command in progress after a reset, or ends its transfer.
    fn fail(&mut self, failure: Failure) {
        let Some(job) = self.jobs.front_mut() else {
            return sys::log!("channel failed: {failure}; the next transfer resets it");
        };
        if let Failure::Refused(error) = failure {
            return self.end(Err(error));
        }
        sys::log!("disk {}: command failed: {failure}; resetting the channel", job.unit);
        job.failures += 1;
        if job.failures == TRIES {
            self.end(Err(Errno::EIO));
        }
        if let Err(failure) = self.channel.reset() {
            sys::log!("reset failed: {failure}");
        }
    }

    fn end(&mut self, result: Result<(), Errno>) {
        self.ended.extend(self.jobs.pop_front().map(|job| (job.work, result)));
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
