//! A look at the ring for some time, with the names of who is seen.

use crate::device::Device;
use crate::names::{Names, Who};
use abi::rs::service_call;
use abi::trace::{Record, TraceSettings};
use abi::{Endpoint, Errno, Name, info, info::KernelInfo};
use alloc::vec::Vec;
use core::fmt::Write;
use sys::linux::{self, open};
use sys::linux_output::{Output, STANDARD_ERROR};
use sys::linux_processes::sleep_ms;
use sys::{Result, linux_heap, time};

/// Bytes of the heap. Memory is taken as it is used.
const HEAP_BYTES: usize = 64 << 20;
/// Between two looks at the ring: it has gone round, with the shortest of calls, after three times as long.
const LOOK_MS: u32 = 2;
/// Names are asked for no more often: each time costs as much as hundreds of calls.
const LEARN_NS: u64 = 20_000_000;
/// Bytes that /proc/skink/threads grows by.
const TEXT_STEP: usize = 1 << 16;
/// Bytes of the name of a function.
const FUNCTION_BYTES: usize = 200;
const NS_PER_S: u64 = 1_000_000_000;

/// The observer.
pub struct Observer {
    device: Device,
    /// Who the threads are.
    pub names: Names,
    tsc_hz: u64,
}

impl Observer {
    /// Makes the program ready to look: gives it a heap. Once.
    ///
    /// # Errors
    /// As mmap(2).
    pub fn prepare() -> Result<()> {
        linux_heap::make(HEAP_BYTES)
    }

    /// Begins to record these events, and samples `hertz` times a second if that is not 0.
    ///
    /// # Errors
    /// Those of [`Device::open`].
    pub fn new(events: u64, hertz: u32) -> Result<Observer> {
        let period_ns = NS_PER_S.checked_div(hertz.into()).unwrap_or(0);
        let KernelInfo { tsc_hz, .. } = sys::info::get(info::KERNEL, 0)?;
        let device = Device::open(TraceSettings { events, period_ns })?;
        let mut observer = Observer { device, names: Names::new(), tsc_hz };
        observer.learn();
        Ok(observer)
    }

    /// Passes on what is recorded until `end_ns`, in batches: the records, and afterwards the names of who is in them, are known.
    /// `lost`: some were lost before the batch.
    ///
    /// # Errors
    /// Those of [`Device::poll`].
    pub fn watch(&mut self, end_ns: u64, mut batch: impl FnMut(&Names, &[Record], Batch)) -> Result<()> {
        let mut records = Vec::new();
        let (mut lost, mut learnt_ns) = (self.device.lost(), 0);
        while time::now_ns() < end_ns {
            sleep_ms(LOOK_MS);
            records.clear();
            let now_lost = self.device.poll(|record| records.push(*record))?;
            records.iter().for_each(|record| self.names.take(record));
            let now_ns = time::now_ns();
            if self.names.has_unknown() && now_ns > learnt_ns + LEARN_NS {
                learnt_ns = now_ns;
                self.learn();
            }
            batch(&self.names, &records, Batch { lost: now_lost != core::mem::replace(&mut lost, now_lost) });
        }
        Ok(())
    }

    /// Ticks a second.
    pub fn tsc_hz(&self) -> u64 {
        self.tsc_hz
    }

    /// Says on standard error what is missing.
    pub fn warn(&self, program: &str) {
        let mut error = Output::new(STANDARD_ERROR);
        if self.device.lost() > 0 {
            let _ = writeln!(
                error,
                "{program}: {} events were lost: they came faster than they could be read",
                self.device.lost()
            );
        }
        if self.device.interruptions() > 0 {
            let _ = writeln!(
                error,
                "{program}: tracing was interrupted {} times: its driver died",
                self.device.interruptions()
            );
        }
    }

    /// Events that were lost.
    pub fn lost(&self) -> u64 {
        self.device.lost()
    }

    fn learn(&mut self) {
        // While procfs is restarted there are no names.
        let text = read_threads().unwrap_or_default();
        self.names.learn(&text, service_name);
    }
}

/// Whether a process is one that looks, or the driver of the ring.
pub fn is_own(who: Who) -> bool {
    [Who::new("service"), Who::new("probe"), Who::new("trace")].contains(&who)
}

/// What else is known of a batch.
#[derive(Clone, Copy)]
pub struct Batch {
    /// Records before it were lost.
    pub lost: bool,
}

/// A number of ticks in nanoseconds.
pub fn ns(ticks: u64, tsc_hz: u64) -> u64 {
    u64::try_from(u128::from(ticks) * u128::from(NS_PER_S) / u128::from(tsc_hz.max(1))).unwrap_or(u64::MAX)
}

/// The time when `seconds` will have passed.
pub fn after(seconds: u32) -> u64 {
    time::now_ns() + u64::from(seconds) * NS_PER_S
}

/// The name of the function of a service at an address.
pub fn function(service: Who, address: u64) -> Option<alloc::string::String> {
    let mut text = [0; FUNCTION_BYTES];
    let name = Name::new(service.as_str())?;
    let length = linux::service(service_call::FUNCTION, name, &mut text, address).ok()?;
    core::str::from_utf8(text.get(..length as usize)?).ok().map(Into::into)
}

fn service_name(thread: Endpoint) -> Option<Who> {
    let known = sys::info::thread(thread.slot()).ok().filter(|known| known.endpoint == thread)?;
    Some(Who::new(known.name.as_str()))
}

fn read_threads() -> Result<Vec<u8>> {
    let file = linux::open(c"/proc/skink/threads", open::READ, 0)?;
    let mut text = Vec::new();
    let result = loop {
        let start = text.len();
        text.resize(start + TEXT_STEP, 0);
        match linux::read(file, &mut text[start..]) {
            Ok(0) => break Ok(start),
            Ok(read) => text.truncate(start + read),
            Err(Errno::EINTR) => text.truncate(start),
            Err(error) => break Err(error),
        }
    };
    linux::close(file)?;
    text.truncate(result?);
    Ok(text)
}
