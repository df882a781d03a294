//! /dev/trace, as a stream of records. Only root has it.

use crate::ring::Position;
use abi::Errno;
use abi::trace::{Record, TraceSettings};
use alloc::boxed::Box;
use alloc::vec;
use sys::linux::{self, open};
use sys::linux_processes::sleep_ms;
use sys::{Result, linux_processes};
use zerocopy::{FromZeros, IntoBytes};

/// Records read at once.
const CHUNK: usize = 512;
/// The reader has to come before the ring has gone round, whoever else runs: before ordinary processes, behind real-time programs that say
/// more.
const PRIORITY: u32 = 10;
/// How often, and how far apart, a driver that has died is looked for.
const TRIES: u32 = 200;
const TRY_MS: u32 = 10;

/// The open device.
pub struct Device {
    descriptor: i32,
    settings: TraceSettings,
    position: Position,
    buffer: Box<[Record]>,
    interruptions: u64,
}

impl Device {
    /// Opens the device, makes the kernel record what `settings` say, and the program one of real time, so that little is lost.
    ///
    /// # Errors
    /// `ENOENT`: the system has no such device; `EACCES`, `EPERM`: not root; `EMFILE`: too many programs trace; those of the driver.
    pub fn open(settings: TraceSettings) -> Result<Device> {
        let descriptor = linux::open(c"/dev/trace", open::READ_WRITE, 0)?;
        let buffer = vec![Record::default(); CHUNK].into_boxed_slice();
        let mut device = Device { descriptor, settings, position: Position::default(), buffer, interruptions: 0 };
        let [written, _] = device.header()?;
        device.position = Position::at_end(written);
        device.set()?;
        // Without the right to it more is lost, which is counted.
        let _ = linux_processes::set_real_time(PRIORITY);
        Ok(device)
    }

    /// Records that were overwritten before they could be read.
    pub fn lost(&self) -> u64 {
        self.position.lost()
    }

    /// How often tracing was interrupted because its driver died. What happened meanwhile was not recorded.
    pub fn interruptions(&self) -> u64 {
        self.interruptions
    }

    /// Passes on what has been recorded since the last time. Returns how many records were lost in between, counted since the beginning.
    ///
    /// # Errors
    /// Those of the driver, if it does not come back.
    pub fn poll(&mut self, mut take: impl FnMut(&Record)) -> Result<u64> {
        let [end, events] = self.header()?;
        if events & self.settings.events != self.settings.events {
            self.interruptions += 1;
            self.set()?;
        }
        while let Some(stretch) = self.position.next(end, CHUNK) {
            let bytes = self.buffer[..stretch.count].as_mut_bytes();
            let wanted = bytes.len();
            if again(|| linux::read_at(self.descriptor, bytes, stretch.offset()))? != wanted {
                return Err(Errno::EPROTO);
            }
            let [written, _] = self.header()?;
            let invalid = self.position.finish(stretch, written);
            self.buffer[invalid..stretch.count].iter().for_each(&mut take);
        }
        Ok(self.position.lost())
    }

    fn header(&self) -> Result<[u64; 2]> {
        let mut header = <[u64; 2]>::new_zeroed();
        match again(|| linux::read_at(self.descriptor, header.as_mut_bytes(), 0))? {
            16 => Ok(header),
            _ => Err(Errno::EPROTO),
        }
    }

    fn set(&self) -> Result<()> {
        again(|| linux::write(self.descriptor, self.settings.as_bytes())).map(drop)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = linux::close(self.descriptor);
    }
}

/// Calls the driver, again if it has died of it or before it.
fn again(mut call: impl FnMut() -> Result<usize>) -> Result<usize> {
    for _ in 0..TRIES {
        match call() {
            Err(Errno::EIO | Errno::ENXIO | Errno::ENODEV | Errno::EINTR) => sleep_ms(TRY_MS),
            result => return result,
        }
    }
    call()
}
