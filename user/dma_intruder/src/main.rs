//! dma_intruder: a virtio disk's driver that has its device read and write memory that is not the driver's DMA memory (systems
//! `dma_attack` and `iommu_attack`), and logs the results: lines `trial: …`.
//!
//! The memory it aims at is a file of the boot archive, the ramdisk's image, which it may map and so look at, but has not got for DMA. Its
//! last sector belongs to no file.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

use abi::{Endpoint, Errno};
use driver::virtio::{self, Buffer, Chain, Dma, Memory, PciTransport, Queue, Setup, Transport, Window};
use driver::{Region, module, pci};
use sys::{Result, ipc, time};

sys::program!(main);

const SECTOR: usize = 512;
/// Where the data of a request lies: behind the page with rings, header and status.
const DATA: usize = 4096;
const MEMORY_BYTES: usize = DATA + 4096;
const QUEUE_SIZE: u16 = 4;
const HEADER_BYTES: usize = 16;
/// Kinds of requests.
const READ: u32 = 0;
const WRITE: u32 = 1;
/// The sector of the disk that has ext2's superblock, and one that is free.
const SUPERBLOCK: u64 = 2;
const FREE: u64 = 4000;
/// ext2's magic number, and where it is in the superblock.
const MAGIC: [u8; 2] = [0x53, 0xef];
const MAGIC_AT: usize = 56;
/// What the memory aimed at holds before.
const SECRET: [u8; SECTOR] = [0xa5; SECTOR];
/// Time for the device to answer.
const PATIENCE_NS: u64 = 1_000_000_000;

fn main(start: sys::Start) {
    server::ready();
    if let Err(error) = try_all(&start) {
        sys::log!("trial: {error}");
    }
    loop {
        if ipc::receive(Endpoint::ANY).is_ok_and(|message| message.source.slot() == Endpoint::RS.slot()) {
            // The reply to a heartbeat. An error means that rs has died, and is ignored.
            let _ = ipc::notify(Endpoint::RS);
        }
    }
}

fn try_all(start: &sys::Start) -> Result<()> {
    let foreign = module(start)?;
    let mut disk = Disk { transport: Some(virtio::find(1)?.0) };
    let last = foreign.len() - SECTOR;
    let target = foreign.physical(last);
    let looks = |expected: &[u8], at: usize| {
        let mut found = [0; SECTOR];
        foreign.copy_out(last, &mut found);
        found[at..at + expected.len()] == *expected
    };
    tell("reads into its own memory", disk.own_magic()?);
    foreign.copy_in(last, &SECRET);
    disk.request(READ, SUPERBLOCK, Some(target))?;
    tell("writes memory that is not its own", looks(&MAGIC, MAGIC_AT));
    foreign.copy_in(last, &SECRET);
    disk.request(WRITE, FREE, Some(target))?;
    tell("reads memory that is not its own", disk.request(READ, FREE, None)? == Some(SECRET));
    tell("reads into its own memory again", disk.own_magic()?);
    Ok(())
}

fn tell(what: &str, happened: bool) {
    sys::log!("trial: the device {}: {what}", if happened { "did it" } else { "was stopped" });
}

/// DMA memory whose data the device is told to find at another place.
struct Aimed {
    memory: Region,
    target: Option<u64>,
}

impl Memory for Aimed {
    fn bytes(&self) -> usize {
        self.memory.len()
    }
    fn physical(&self, offset: usize) -> u64 {
        match self.target {
            Some(target) if offset >= DATA => target + (offset - DATA) as u64,
            _ => self.memory.physical(offset),
        }
    }
    fn read16(&self, offset: usize) -> u16 {
        self.memory.read(offset)
    }
    fn write16(&self, offset: usize, value: u16) {
        self.memory.write(offset, value);
    }
    fn copy_out(&self, offset: usize, into: &mut [u8]) {
        self.memory.copy_out(offset, into);
    }
    fn copy_in(&self, offset: usize, from: &[u8]) {
        self.memory.copy_in(offset, from);
    }
}

struct Disk {
    /// Absent after a request that failed.
    transport: Option<PciTransport<Window>>,
}

impl Disk {
    fn own_magic(&mut self) -> Result<bool> {
        let sector = self.request(READ, SUPERBLOCK, None)?;
        Ok(sector.is_some_and(|sector| sector[MAGIC_AT..MAGIC_AT + MAGIC.len()] == MAGIC))
    }

    /// Resets the device and has it do one request. Returns the data in the driver's own memory; `None`: the device gave no answer in time.
    fn request(&mut self, kind: u32, sector: u64, target: Option<u64>) -> Result<Option<[u8; SECTOR]>> {
        let mut dma = Dma::new(Aimed { memory: pci::dma(MEMORY_BYTES)?, target });
        let mut setup = Setup::begin(self.transport.take().ok_or(Errno::ENODEV)?, 0)?;
        let mut queue: Queue<Aimed, ()> = setup.queue(0, QUEUE_SIZE, &mut dma)?;
        let transport = self.transport.insert(setup.start());
        if queue.offer(chain(&mut dma, kind, sector)?, ()).map_err(|_| Errno::EIO)? {
            transport.notify(queue.number());
        }
        Ok(answer(&mut queue).map(|data| {
            let mut sector = [0; SECTOR];
            data.read(0, &mut sector);
            sector
        }))
    }
}

fn chain(dma: &mut Dma<Aimed>, kind: u32, sector: u64) -> Result<Chain<Aimed>> {
    let (mut header, status) = (dma.take(HEADER_BYTES, HEADER_BYTES)?, dma.take(1, 1)?);
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&kind.to_le_bytes());
    bytes[8..].copy_from_slice(&sector.to_le_bytes());
    header.write(0, &bytes);
    let data = dma.take(SECTOR, DATA)?;
    let chain = Chain::new().readable(header);
    Ok(if kind == READ { chain.writable(data) } else { chain.readable(data) }.writable(status))
}

fn answer(queue: &mut Queue<Aimed, ()>) -> Option<Buffer<Aimed>> {
    let deadline_ns = time::now_ns() + PATIENCE_NS;
    while time::now_ns() < deadline_ns {
        if let Some(done) = queue.completed().ok()? {
            return done.chain.into_buffers().map(|[_, data, _]| data);
        }
    }
    None
}
