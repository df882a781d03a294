//! A disk in memory that records what reaches it, for tests that cut its power.

use std::cell::RefCell;
use std::rc::Rc;

use ext2::{Ext2, Options};
use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::FileSystem;

use super::{Random, Scratch, memory, options};

/// What reaches a disk.
#[derive(Clone)]
pub enum Request {
    /// Bytes at an offset.
    Write(usize, Vec<u8>),
    /// Everything before is durable.
    Flush,
}

#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    log: Vec<Request>,
    /// The request that fails, counted from now on.
    fails_after: Option<usize>,
}

impl Content {
    fn fail_if_it_is_time(&mut self) -> Result<(), Errno> {
        match self.fails_after {
            Some(0) => {
                self.fails_after = None;
                Err(Errno::EIO)
            }
            left => {
                self.fails_after = left.map(|left| left - 1);
                Ok(())
            }
        }
    }
}

/// A disk in memory that records what reaches it. Clones are the same disk.
#[derive(Clone, Default)]
pub struct Disk(Rc<RefCell<Content>>);

impl Disk {
    pub fn new(arguments: &[&str]) -> Disk {
        Disk::with_kib(2048, arguments)
    }

    pub fn with_kib(kib: u32, arguments: &[&str]) -> Disk {
        let scratch = Scratch::new();
        Disk::of(std::fs::read(scratch.image(kib, arguments)).unwrap())
    }

    pub fn of(bytes: Vec<u8>) -> Disk {
        Disk(Rc::new(RefCell::new(Content { bytes, log: Vec::new(), fails_after: None })))
    }

    pub fn mount(&self) -> Ext2<Disk> {
        let mut volume = Ext2::mount(self.clone(), options(), memory()).unwrap();
        volume.sync().unwrap();
        volume
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.borrow().bytes.clone()
    }

    pub fn log(&self) -> Vec<Request> {
        self.0.borrow().log.clone()
    }

    /// Changes a byte behind everybody's back.
    pub fn set(&self, at: usize, value: u8) {
        let content = &mut *self.0.borrow_mut();
        content.bytes[at] = value;
        content.log.push(Request::Write(at, vec![value]));
    }

    /// Makes the disk what it was before everything in the log.
    pub fn restore(&self, base: &[u8]) {
        let content = &mut *self.0.borrow_mut();
        for request in content.log.drain(..) {
            if let Request::Write(at, data) = request {
                content.bytes[at..at + data.len()].copy_from_slice(&base[at..at + data.len()]);
            }
        }
    }

    /// Lets one write or flush fail, after so many others.
    pub fn fail_after(&self, requests: usize) {
        self.0.borrow_mut().fails_after = Some(requests);
    }

    /// Whether the failure is still to come.
    pub fn is_failure_pending(&self) -> bool {
        self.0.borrow().fails_after.is_some()
    }

    pub fn forget_log(&self) {
        self.0.borrow_mut().log.clear();
    }

    /// Calls `act` with the file system on the disk as it is at each cut: see `at_each_state`.
    pub fn at_each_cut(&self, before: Vec<u8>, mut act: impl FnMut(Ext2<Disk>)) {
        let options = Options { read_only: true, ..options() };
        self.at_each_state(before, |_, bytes| {
            act(Ext2::mount(Disk::of(bytes.to_vec()), options, memory()).expect("the disk can be mounted"));
        });
    }

    /// Calls `act` with what is on the disk after each write since `before`, and with some of the writes since the last flush; and with
    /// how many requests there were until then.
    pub fn at_each_state(&self, before: Vec<u8>, mut act: impl FnMut(usize, &[u8])) {
        let mut random = Random::new(1);
        let (mut now, mut flushed, mut since) = (before.clone(), before, Vec::new());
        for (number, request) in self.0.borrow().log.iter().enumerate() {
            match request {
                Request::Flush => {
                    flushed.clone_from(&now);
                    since.clear();
                }
                Request::Write(at, data) => {
                    now[*at..*at + data.len()].copy_from_slice(data);
                    since.push((*at, data));
                    act(number + 1, &now);
                    act(number + 1, &some_of(&flushed, &since, &mut random));
                }
            }
        }
    }
}

/// Sectors of `writes`, chosen at random.
pub fn some_of(disk: &[u8], writes: &[(usize, &Vec<u8>)], random: &mut Random) -> Vec<u8> {
    let mut disk = disk.to_vec();
    for (at, data) in writes {
        for (number, sector) in data.chunks(SECTOR_SIZE).enumerate() {
            if random.below(2) == 0 {
                disk[at + number * SECTOR_SIZE..][..SECTOR_SIZE].copy_from_slice(sector);
            }
        }
    }
    disk
}

impl BlockDevice for Disk {
    fn sector_count(&self) -> u64 {
        (self.0.borrow().bytes.len() / SECTOR_SIZE) as u64
    }

    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let at = first_sector as usize * SECTOR_SIZE;
        buffer.copy_from_slice(&self.0.borrow().bytes[at..at + buffer.len()]);
        Ok(())
    }

    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        let at = first_sector as usize * SECTOR_SIZE;
        let content = &mut *self.0.borrow_mut();
        content.fail_if_it_is_time()?;
        content.bytes[at..at + data.len()].copy_from_slice(data);
        content.log.push(Request::Write(at, data.to_vec()));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Errno> {
        let content = &mut *self.0.borrow_mut();
        content.fail_if_it_is_time()?;
        content.log.push(Request::Flush);
        Ok(())
    }
}
