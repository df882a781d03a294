//! The receive loop of block drivers (`abi::block`), with any number of requests in progress. Requests are checked here, so that a
//! driver sees only whole sectors within its device. It replies to each when it can, in any order, through [`Answers`].

use crate::{Answers, Client, Held};
use abi::block::{Flush, Open, Read, Request, Write};
use abi::{Errno, GrantId, Message};
use server::{Inbox, Service, SyncStep};
use sys::Result;

/// Unit of positions and lengths, in bytes.
pub const SECTOR_BYTES: u64 = 512;
/// Limit of one request, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// Properties of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size in bytes.
    pub bytes: u64,
    /// Physical sector size in bytes, a multiple of 512.
    pub sector_bytes: u64,
    /// Writes fail with `EROFS`.
    pub read_only: bool,
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Device to client.
    Read,
    /// Client to device.
    Write,
    /// Flushes earlier writes to the medium.
    Flush,
}

/// A valid request to read, write or flush. The driver carries it out and completes it by [`Transfer::end`].
#[derive(Debug)]
pub struct Transfer {
    held: Held,
    /// Direction.
    pub operation: Operation,
    /// Minor number of the device.
    pub minor: u64,
    /// Position on the device, in bytes.
    pub position: u64,
    /// The client's buffer; empty for a flush.
    pub client: Client,
}

impl Transfer {
    /// Completes the request and replies.
    pub fn end(self, result: Result<()>, answers: &mut Answers) {
        let bytes = self.client.bytes();
        answers.give(self.held, result.map(|()| bytes));
    }
}

/// Where a transfer goes, and how much it moves. A driver's queue asks for no more, so that tests can play its callers.
pub trait Extent {
    /// Direction.
    fn operation(&self) -> Operation;
    /// Position on the disk, in bytes.
    fn position(&self) -> u64;
    /// Length in bytes.
    fn bytes(&self) -> u64;
}

impl Extent for Transfer {
    fn operation(&self) -> Operation {
        self.operation
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn bytes(&self) -> u64 {
        self.client.bytes()
    }
}

/// What a block driver implements.
pub trait BlockDriver {
    /// Returns the device of a minor number.
    ///
    /// # Errors
    /// `ENXIO`: no such device.
    fn geometry(&self, minor: u64) -> Result<Geometry>;

    /// Starts a transfer, and ends it now or later. Errors of the device are reported as `EIO`, those of the client's grant as they are.
    fn begin(&mut self, transfer: Transfer, answers: &mut Answers);

    /// Handles interrupts: one bit for each hook.
    fn interrupt(&mut self, hooks: u64, answers: &mut Answers) {
        let _ = (hooks, answers);
    }

    /// Handles the alarm of `sys::time::set_alarm`.
    fn alarm(&mut self, now_ns: u64, answers: &mut Answers) {
        let _ = (now_ns, answers);
    }
}

/// Reports ready to rs and serves forever.
pub fn serve(driver: impl BlockDriver) -> ! {
    server::run(&mut Loop::new(driver))
}

/// Serves as [`serve`] does, for a driver that sleeps or sets its alarm by this inbox.
pub fn serve_from(driver: impl BlockDriver, inbox: &Inbox) -> ! {
    server::run_from(&mut Loop::new(driver), inbox)
}

struct Loop<D> {
    driver: D,
    answers: Answers,
}

impl<D: BlockDriver> Service for Loop<D> {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        if let Err(error) = self.take_in(message) {
            self.answers.give(Held::new(message), Err(error));
        }
        self.answers.send_around(message).into()
    }

    fn interrupt(&mut self, hooks: u64) {
        self.driver.interrupt(hooks, &mut self.answers);
        self.answers.send();
    }

    fn alarm(&mut self, now_ns: u64) {
        self.driver.alarm(now_ns, &mut self.answers);
        self.answers.send();
    }
}

impl<D: BlockDriver> Loop<D> {
    fn new(driver: D) -> Self {
        Loop { driver, answers: Answers::default() }
    }

    fn take_in(&mut self, message: &Message) -> Result<()> {
        let held = Held::new(message);
        let (operation, minor, position, grant, bytes) = match Request::decode(message).ok_or(Errno::ENOSYS)? {
            Request::Open(Open { minor }) => {
                let Geometry { bytes, sector_bytes, read_only } = self.driver.geometry(minor)?;
                self.answers.give_message(&held, Open::reply(message, 0, bytes, sector_bytes, read_only));
                return Ok(());
            }
            Request::Read(Read { minor, grant, position, bytes }) => (Operation::Read, minor, position, grant, bytes),
            Request::Write(Write { minor, grant, position, bytes }) => {
                (Operation::Write, minor, position, grant, bytes)
            }
            Request::Flush(Flush { minor }) => (Operation::Flush, minor, 0, GrantId::NONE, 0),
        };
        let geometry = self.driver.geometry(minor)?;
        if operation == Operation::Write && geometry.read_only {
            return Err(Errno::EROFS);
        }
        check(&geometry, position, bytes)?;
        let client = Client::new(message.source, grant, bytes);
        self.driver.begin(Transfer { held, operation, minor, position, client }, &mut self.answers);
        Ok(())
    }
}

/// Checks that a request covers whole sectors within the device, and not too many.
fn check(geometry: &Geometry, position: u64, bytes: u64) -> Result<()> {
    let aligned = position.is_multiple_of(SECTOR_BYTES) && bytes.is_multiple_of(SECTOR_BYTES);
    let within = position.checked_add(bytes).is_some_and(|end| end <= geometry.bytes);
    if aligned && within && bytes <= MAX_BYTES { Ok(()) } else { Err(Errno::EINVAL) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// A device of four sectors that ends transfers when it is interrupted, the last one first.
    #[derive(Default)]
    struct Disk {
        begun: Vec<Transfer>,
        read_only: bool,
    }

    impl BlockDriver for Disk {
        fn geometry(&self, minor: u64) -> Result<Geometry> {
            let geometry = Geometry { bytes: 2048, sector_bytes: 512, read_only: self.read_only };
            if minor == 0 { Ok(geometry) } else { Err(Errno::ENXIO) }
        }
        fn begin(&mut self, transfer: Transfer, _: &mut Answers) {
            self.begun.push(transfer);
        }
        fn interrupt(&mut self, _: u64, answers: &mut Answers) {
            self.begun.drain(..).rev().for_each(|transfer| transfer.end(Ok(()), answers));
        }
    }

    fn disk(read_only: bool) -> Loop<Disk> {
        Loop::new(Disk { read_only, ..Disk::default() })
    }

    fn read(minor: u64, position: u64, bytes: u64) -> Message {
        Read { minor, grant: GrantId::NONE, position, bytes }.message()
    }

    #[test]
    fn transfers_within_the_device_are_held_and_end_in_any_order() {
        let mut disk = disk(false);
        for (tag, request) in [(1, read(0, 512, 1536)), (2, read(0, 0, 512)), (3, Flush { minor: 0 }.message())] {
            let mut request = request;
            request.words[6] = tag;
            assert_eq!(disk.request(&request).done(), None);
        }
        disk.driver.interrupt(1, &mut disk.answers);
        let given: Vec<_> = disk.answers.given().iter().map(|answer| (answer.tag(), answer.result())).collect();
        assert_eq!(given, [(3, Ok(0)), (2, Ok(512)), (1, Ok(1536))]);
    }

    #[test]
    fn what_is_misaligned_or_beyond_the_end_never_reaches_the_driver() {
        let mut disk = disk(false);
        for (position, bytes) in [(1, 512), (0, 511), (512, 2048), (u64::MAX - 511, 512), (u64::MAX, 512)] {
            assert_eq!(disk.take_in(&read(0, position, bytes)).err(), Some(Errno::EINVAL));
        }
        assert_eq!(disk.take_in(&read(1, 0, 512)).err(), Some(Errno::ENXIO));
        assert_eq!(disk.take_in(&Flush { minor: 1 }.message()).err(), Some(Errno::ENXIO));
        assert!(disk.driver.begun.is_empty());
    }

    #[test]
    fn a_read_only_device_refuses_writes() {
        let write = Write { minor: 0, grant: GrantId::NONE, position: 0, bytes: 512 };
        assert_eq!(disk(true).take_in(&write.message()).err(), Some(Errno::EROFS));
        assert_eq!(disk(false).take_in(&write.message()), Ok(()));
    }

    #[test]
    fn a_message_of_another_protocol_is_not_implemented() {
        let answer = disk(false).request(&Message::new(1)).done().expect("is answered");
        assert_eq!(answer.result(), Err(Errno::ENOSYS));
    }
}
