//! The block device behind a driver process, by the block protocol.
//!
//! Requests name whoever holds the driver's slot, and all of them may be repeated: when the driver dies
//! with one in hand, its successor gets it again, and the file system only sees that it took longer.

use abi::block::{Flush, Open, Read, Write};
use abi::{Endpoint, Errno, GrantId, Message, Name};
use sys::{grant, ipc};

use crate::device::{BlockDevice, SECTOR_SIZE};

/// Most bytes of one request.
const MAX_REQUEST: usize = 1 << 20;

/// One minor device of a block driver.
#[derive(Clone, Copy, Debug)]
pub struct BlockClient {
    driver: Endpoint,
    minor: u64,
    sectors: u64,
    read_only: bool,
}

impl BlockClient {
    /// Opens `minor` of the driver with this name. `ENOENT`: there is no such service; `EAGAIN`: it is down;
    /// `ENXIO`: it has no such minor.
    pub fn open(service: Name, minor: u64) -> Result<Self, Errno> {
        let driver = Endpoint::current(server::names::lookup(service)?.slot());
        let opened = ipc::call_repeating(driver, &Open { minor }.message())?;
        let (bytes, _, read_only) = Open::results(&opened)?;
        Ok(BlockClient { driver, minor, sectors: bytes / SECTOR_SIZE as u64, read_only })
    }

    /// Goes on with the device that a predecessor has opened, whose `memo` this is. The driver need not be up.
    pub fn resume(minor: u64, memo: [u64; 2]) -> Self {
        let [sectors, flags] = memo;
        let driver = Endpoint::current((flags >> 1) as usize);
        BlockClient { driver, minor, sectors, read_only: flags & 1 != 0 }
    }

    /// Whether the device refuses writes.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn transfer(&self, request: Message, bytes: usize) -> Result<(), Errno> {
        let reply = ipc::call_repeating(self.driver, &request).map_err(device_error)?;
        if reply.result() == Ok(bytes as u64) { Ok(()) } else { Err(Errno::EIO) }
    }
}

impl BlockDevice for BlockClient {
    fn sector_count(&self) -> u64 {
        self.sectors
    }

    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let mut position = first_sector * SECTOR_SIZE as u64;
        for piece in buffer.chunks_mut(MAX_REQUEST) {
            let bytes = piece.len();
            let request = |grant: GrantId| Read { minor: self.minor, grant, position, bytes: bytes as u64 }.message();
            grant::lend_mut(piece, self.driver, |grant| self.transfer(request(grant), bytes))??;
            position += bytes as u64;
        }
        Ok(())
    }

    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        let mut position = first_sector * SECTOR_SIZE as u64;
        for piece in data.chunks(MAX_REQUEST) {
            let bytes = piece.len();
            let request = |grant: GrantId| Write { minor: self.minor, grant, position, bytes: bytes as u64 }.message();
            grant::lend(piece, self.driver, |grant| self.transfer(request(grant), bytes))??;
            position += bytes as u64;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Errno> {
        ipc::call_repeating(self.driver, &Flush { minor: self.minor }.message()).map_err(device_error)?;
        Ok(())
    }

    fn memo(&self) -> [u64; 2] {
        [self.sectors, (self.driver.slot() as u64) << 1 | u64::from(self.read_only)]
    }
}

/// What a driver's error means to those above: only that it is read-only is worth telling.
fn device_error(error: Errno) -> Errno {
    if error == Errno::EROFS { error } else { Errno::EIO }
}
