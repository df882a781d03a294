//! The block device behind a driver process, by the block protocol.
//!
//! Requests address the driver's slot, not an incarnation, and are idempotent: when the driver dies with one
//! in progress, its successor gets the request again, and the file system sees a delay only.
//! Reads may be in flight ([`BlockDevice::fetch`]); writes and flushes are waited for.

use abi::block::{Flush, Open, Read, Write};
use abi::{Endpoint, Errno, GrantId, Message, Name};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use server::{Inbox, Peer, Peers, Repeat, Request};
use sys::fallible::{self, TryVec};
use sys::grant::{self, Access, GrantedBuffer};

use crate::cache::RUN_BYTES;
use crate::device::{BlockDevice, Blocking, Fetch, SECTOR_SIZE};

/// Limit of one request, in bytes.
const MAX_REQUEST: usize = 1 << 20;
/// Limit of requests in flight per driver.
const WINDOW: usize = 16;

/// The drivers that a file system uses. Clones share them.
#[derive(Clone)]
pub struct Drivers {
    peers: Peers,
    blocking: Blocking,
    connected: Rc<RefCell<Vec<Peer>>>,
    /// Buffers for reuse.
    spare: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Drivers {
    /// Returns a set without drivers. `inbox` is the one that the file system receives from.
    pub fn new(inbox: &Inbox) -> Self {
        let (blocking, connected, spare) = Default::default();
        Drivers { peers: Peers::new(inbox), blocking, connected, spare }
    }

    /// Returns the peers, to which the server loop passes replies and notifications.
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Returns the switch between blocking and asynchronous reads.
    pub fn blocking(&self) -> &Blocking {
        &self.blocking
    }

    #[expect(clippy::disallowed_methods, reason = "one peer of each driver: from the heap's reserve")]
    fn connect(&self, name: Name) -> Result<Peer, Errno> {
        let mut connected = self.connected.borrow_mut();
        if let Some(peer) = connected.iter().find(|peer| peer.name() == name) {
            return Ok(peer.clone());
        }
        let peer = self.peers.connect(name, WINDOW)?;
        connected.push(peer.clone());
        Ok(peer)
    }
}

/// One minor device of a block driver.
pub struct BlockClient {
    drivers: Drivers,
    peer: Peer,
    /// The driver's slot, of any incarnation.
    driver: Endpoint,
    minor: u64,
    sectors: u64,
    read_only: bool,
}

impl BlockClient {
    /// Opens `minor` of the driver with this name. `ENOENT`: there is no such service; `EAGAIN`: it is down;
    /// `ENXIO`: it has no such minor.
    pub fn open(drivers: &Drivers, service: Name, minor: u64) -> Result<Self, Errno> {
        let peer = drivers.connect(service)?;
        if !peer.is_up() {
            return Err(Errno::EAGAIN);
        }
        let driver = Endpoint::current(peer.endpoint().slot());
        let opened = drivers.peers.wait(peer.request(Open { minor }.message(), Repeat::Yes))?;
        opened.result()?;
        let (bytes, _, read_only) = Open::results(&opened)?;
        Ok(BlockClient {
            drivers: drivers.clone(),
            peer,
            driver,
            minor,
            sectors: bytes / SECTOR_SIZE as u64,
            read_only,
        })
    }

    /// Resumes the device that the previous incarnation opened, from its `memo`. The driver need not be up.
    pub fn resume(drivers: &Drivers, service: Name, minor: u64, memo: [u64; 2]) -> Result<Self, Errno> {
        let [sectors, flags] = memo;
        let peer = drivers.connect(service)?;
        let driver = Endpoint::current((flags >> 1) as usize);
        Ok(BlockClient { drivers: drivers.clone(), peer, driver, minor, sectors, read_only: flags & 1 != 0 })
    }

    /// Whether the device refuses writes.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Sends a request and waits for the reply.
    fn transfer(&self, request: Message, bytes: u64) -> Result<(), Errno> {
        transferred(self.drivers.peers.wait(self.peer.request(request, Repeat::Yes)), bytes)
    }
}

impl BlockDevice for BlockClient {
    fn sector_count(&self) -> u64 {
        self.sectors
    }

    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let mut position = first_sector * SECTOR_SIZE as u64;
        for piece in buffer.chunks_mut(MAX_REQUEST) {
            let bytes = piece.len() as u64;
            let request = |grant: GrantId| Read { minor: self.minor, grant, position, bytes }.message();
            grant::lend_mut(piece, self.driver, |grant| self.transfer(request(grant), bytes))??;
            position += bytes;
        }
        Ok(())
    }

    fn is_blocking(&self) -> bool {
        self.drivers.blocking.is_on()
    }

    fn fetch(&mut self, first_sector: u64, bytes: usize) -> Option<Box<dyn Fetch>> {
        if bytes > MAX_REQUEST {
            return None;
        }
        let spare = self.drivers.spare.borrow_mut().pop();
        let content = spare
            .filter(|spare| spare.len() >= bytes)
            .map_or_else(|| fallible::filled(0, bytes.max(RUN_BYTES)), Ok)
            .ok()?;
        let buffer = GrantedBuffer::new(content, self.driver, Access::Write).ok()?;
        let (position, bytes) = (first_sector * SECTOR_SIZE as u64, bytes as u64);
        let read = Read { minor: self.minor, grant: buffer.id(), position, bytes };
        let request = self.peer.request(read.message(), Repeat::Yes);
        Some(Box::new(DriverFetch { request, buffer: Some(buffer), bytes }))
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        let mut spare = self.drivers.spare.borrow_mut();
        if spare.len() < WINDOW {
            // Without memory for the list, the buffer goes.
            let _ = spare.try_push(buffer);
        }
    }

    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        let mut position = first_sector * SECTOR_SIZE as u64;
        for piece in data.chunks(MAX_REQUEST) {
            let bytes = piece.len() as u64;
            let request = |grant: GrantId| Write { minor: self.minor, grant, position, bytes }.message();
            grant::lend(piece, self.driver, |grant| self.transfer(request(grant), bytes))??;
            position += bytes;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Errno> {
        self.transfer(Flush { minor: self.minor }.message(), 0)
    }

    fn memo(&self) -> [u64; 2] {
        [self.sectors, (self.driver.slot() as u64) << 1 | u64::from(self.read_only)]
    }
}

/// A read that is queued for the driver or in flight.
struct DriverFetch {
    request: Request,
    /// `None` after the end.
    buffer: Option<GrantedBuffer>,
    bytes: u64,
}

impl Fetch for DriverFetch {
    fn result(&mut self) -> Option<Result<Vec<u8>, Errno>> {
        let answer = self.request.result()?;
        let content = self.buffer.take().map(GrantedBuffer::take).ok_or(Errno::EIO);
        Some(transferred(answer, self.bytes).and(content))
    }
}

/// Maps the result of a transfer: any error but `EROFS`, and a short transfer, become `EIO`.
fn transferred(answer: Result<Message, Errno>, bytes: u64) -> Result<(), Errno> {
    match answer.and_then(|reply| reply.result()) {
        Ok(moved) if moved == bytes => Ok(()),
        Err(Errno::EROFS) => Err(Errno::EROFS),
        _ => Err(Errno::EIO),
    }
}
