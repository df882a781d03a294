//! The loop of block drivers: `abi::block`, one request at a time. Requests are checked here, so that a driver sees only
//! whole sectors within its device.

use crate::Client;
use abi::block::{Flush, Open, Read, Request, Write};
use abi::{Errno, Message};
use server::{Inbox, Service, SyncStep};
use sys::Result;

/// What positions and lengths are multiples of.
pub const SECTOR_BYTES: u64 = 512;
/// Most bytes of one request.
pub const MAX_BYTES: u64 = 1 << 20;

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size.
    pub bytes: u64,
    /// What the device itself writes at once; a multiple of 512.
    pub sector_bytes: u64,
    /// It refuses writes.
    pub read_only: bool,
}

/// A block driver's own part.
pub trait BlockDriver {
    /// The device behind a minor.
    ///
    /// # Errors
    /// `ENXIO`: none.
    fn geometry(&self, minor: u64) -> Result<Geometry>;

    /// Reads `client.bytes()` bytes at `position` into the client's buffer.
    ///
    /// # Errors
    /// `EIO`; errors of the client's grant.
    fn read(&mut self, minor: u64, position: u64, client: &Client) -> Result<()>;

    /// Writes `client.bytes()` bytes from the client's buffer to `position`.
    ///
    /// # Errors
    /// As `read`.
    fn write(&mut self, minor: u64, position: u64, client: &Client) -> Result<()>;

    /// Everything written is on the medium when this returns.
    ///
    /// # Errors
    /// `EIO`.
    fn flush(&mut self, minor: u64) -> Result<()>;

    /// An interrupt between requests.
    fn interrupt(&mut self, hooks: u64) {
        let _ = hooks;
    }
}

/// Reports ready and serves for ever.
pub fn serve(driver: impl BlockDriver) -> ! {
    server::run(&mut Loop(driver))
}

/// As [`serve`], for a driver that waits for its device with this inbox.
pub fn serve_from(driver: impl BlockDriver, inbox: &Inbox) -> ! {
    server::run_from(&mut Loop(driver), inbox)
}

struct Loop<D>(D);

impl<D: BlockDriver> Service for Loop<D> {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        SyncStep::Done(self.answer(message).unwrap_or_else(|error| message.reply(Err(error))))
    }

    fn interrupt(&mut self, hooks: u64) {
        self.0.interrupt(hooks);
    }
}

impl<D: BlockDriver> Loop<D> {
    fn answer(&mut self, message: &Message) -> Result<Message> {
        match Request::decode(message).ok_or(Errno::ENOSYS)? {
            Request::Open(Open { minor }) => {
                let geometry = self.0.geometry(minor)?;
                Ok(Open::reply(message, 0, geometry.bytes, geometry.sector_bytes, geometry.read_only))
            }
            Request::Read(Read { minor, grant, position, bytes }) => {
                check(&self.0.geometry(minor)?, position, bytes)?;
                self.0.read(minor, position, &Client::new(message.source, grant, bytes))?;
                Ok(message.reply(Ok(bytes)))
            }
            Request::Write(Write { minor, grant, position, bytes }) => {
                let geometry = self.0.geometry(minor)?;
                if geometry.read_only {
                    return Err(Errno::EROFS);
                }
                check(&geometry, position, bytes)?;
                self.0.write(minor, position, &Client::new(message.source, grant, bytes))?;
                Ok(message.reply(Ok(bytes)))
            }
            Request::Flush(Flush { minor }) => {
                self.0.geometry(minor)?;
                self.0.flush(minor)?;
                Ok(message.reply(Ok(0)))
            }
        }
    }
}

/// Whole sectors within the device, and not too many.
fn check(geometry: &Geometry, position: u64, bytes: u64) -> Result<()> {
    let aligned = position.is_multiple_of(SECTOR_BYTES) && bytes.is_multiple_of(SECTOR_BYTES);
    let within = position.checked_add(bytes).is_some_and(|end| end <= geometry.bytes);
    if aligned && within && bytes <= MAX_BYTES { Ok(()) } else { Err(Errno::EINVAL) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::GrantId;

    /// A device of four sectors that counts what reaches it.
    #[derive(Default)]
    struct Disk {
        reads: u64,
        read_only: bool,
    }

    impl BlockDriver for Disk {
        fn geometry(&self, minor: u64) -> Result<Geometry> {
            let geometry = Geometry { bytes: 2048, sector_bytes: 512, read_only: self.read_only };
            if minor == 0 { Ok(geometry) } else { Err(Errno::ENXIO) }
        }
        fn read(&mut self, _: u64, _: u64, client: &Client) -> Result<()> {
            self.reads += client.bytes();
            Ok(())
        }
        fn write(&mut self, _: u64, _: u64, _: &Client) -> Result<()> {
            Ok(())
        }
        fn flush(&mut self, _: u64) -> Result<()> {
            Ok(())
        }
    }

    fn read(minor: u64, position: u64, bytes: u64) -> Message {
        Read { minor, grant: GrantId::NONE, position, bytes }.message()
    }

    #[test]
    fn whole_sectors_within_the_device_are_read() {
        let mut driver = Loop(Disk::default());
        assert_eq!(driver.answer(&read(0, 512, 1536)).and_then(|reply| reply.result()), Ok(1536));
        assert_eq!(driver.0.reads, 1536);
    }

    #[test]
    fn what_is_misaligned_or_beyond_the_end_never_reaches_the_driver() {
        let mut driver = Loop(Disk::default());
        for (position, bytes) in [(1, 512), (0, 511), (512, 2048), (u64::MAX - 511, 512), (u64::MAX, 512)] {
            assert_eq!(driver.answer(&read(0, position, bytes)).err(), Some(Errno::EINVAL));
        }
        assert_eq!(driver.answer(&read(1, 0, 512)).err(), Some(Errno::ENXIO));
        assert_eq!(driver.0.reads, 0);
    }

    #[test]
    fn a_read_only_device_refuses_writes() {
        let mut driver = Loop(Disk { read_only: true, ..Disk::default() });
        let write = Write { minor: 0, grant: GrantId::NONE, position: 0, bytes: 512 };
        assert_eq!(driver.answer(&write.message()).err(), Some(Errno::EROFS));
    }

    #[test]
    fn a_message_of_another_protocol_is_not_implemented() {
        assert_eq!(Loop(Disk::default()).answer(&Message::new(1)).err(), Some(Errno::ENOSYS));
    }
}
