//! Counters behind descriptors (eventfd(2)).
//!
//! A counter is the object of one open file. The low bits of its value are preserved in place of a position, the others, which hardly ever
//! change, in its record. A write and a read each change it in one turn, with their result
//! noted; so a call that comes again after a death of vfs does not count twice. A read waits while it is 0, a write while the sum would
//! reach 2^64 - 1.

use super::{Inheritance, Kind, Object, OpenFile, Operation, Seek, done, no_position};
use crate::{
    base::Flow,
    callers::Caller,
    events::{
        Watchers,
        poll::{ANY, POLLERR, POLLIN, POLLOUT},
    },
    files::{stat::Summary, vnode::NodeRef},
    keep::{VALUE_BITS, records::ObjectRecord},
    memory as user,
    memory::buffer::UserBuffer,
};
use abi::Errno;
use alloc::rc::Rc;
use core::{
    cell::Cell,
    fmt::{self, Write},
    mem::take,
};
use sys::text::Text;

/// The low bits of a value.
const LOW: u64 = (1 << VALUE_BITS) - 1;

/// Bytes that a read gives and a write takes.
const COUNT_BYTES: u64 = 8;

/// What a read takes of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// All of it.
    All,
    /// One (`EFD_SEMAPHORE`).
    One,
}

/// A counter.
#[derive(Debug)]
pub struct EventCounter {
    count: Cell<u64>,
    taking: Taking,
    watchers: Watchers,
}

impl EventCounter {
    /// A counter with this value.
    pub fn new(count: u64, taking: Taking) -> EventCounter {
        EventCounter { count: Cell::new(count), taking, watchers: Watchers::default() }
    }

    /// What a read gives now; 0: it waits.
    fn available(&self) -> u64 {
        match self.taking {
            Taking::All => self.count.get(),
            Taking::One => self.count.get().min(1),
        }
    }

    /// Whether the sum stays below 2^64 - 1.
    fn has_room(&self, further: u64) -> bool {
        u64::MAX - self.count.get() > further
    }

    /// Changes the counter of an open file, and wakes those who wait for these events. A write of 0 wakes too, as on Linux.
    #[inline(always)]
    fn set(&self, file: &OpenFile, count: u64, events: u32) {
        let before = self.count.replace(count);
        if (before ^ count) & !LOW != 0 {
            file.save_object();
        }
        file.set_value(count & LOW);
        self.watchers.fire_for(events);
    }

    /// Gives the buffer what is available, and takes it off the counter. `EFAULT`: then it is still there.
    #[inline(always)]
    fn give(&self, file: &OpenFile, buffer: &mut UserBuffer) -> Result<u64, Errno> {
        let value = self.available();
        user::store_all(buffer, &value.to_le_bytes())?;
        self.set(file, self.count.get() - value, POLLOUT);
        Ok(COUNT_BYTES)
    }

    /// write, of a value that is known. `EINVAL`: one that no counter reaches.
    #[inline(always)]
    pub fn write_value(&self, on: &Operation, value: u64) -> Result<Flow, Errno> {
        if value == u64::MAX {
            return Err(Errno::EINVAL);
        }
        if self.has_room(value) {
            return self.add(on.file, value).and_then(done);
        }
        write_later(on, value)
    }

    /// Adds 1 to the counter of an open file without waiting, as far as it goes.
    pub fn signal(&self, file: &OpenFile) {
        self.set(file, self.count.get().saturating_add(1), POLLIN);
    }

    #[inline(always)]
    fn add(&self, file: &OpenFile, value: u64) -> Result<u64, Errno> {
        self.set(file, self.count.get() + value, POLLIN);
        Ok(COUNT_BYTES)
    }
}

/// The counter of an open file that is known to be one.
fn counter(file: &OpenFile) -> Result<&EventCounter, Errno> {
    file.object().ok_or(Errno::EINVAL)
}

/// Reads when there is something. `EAGAIN`: without waiting, there is nothing.
#[inline(never)]
fn read_later(on: &Operation, buffer: &mut UserBuffer) -> Result<Flow, Errno> {
    if on.file.nonblocking() {
        return Err(Errno::EAGAIN);
    }
    Ok(Flow::task(wait_and_give(on.caller.clone(), on.file.clone(), take(buffer))))
}

/// Writes when there is room. `EAGAIN`: without waiting, there is none.
#[inline(never)]
fn write_later(on: &Operation, value: u64) -> Result<Flow, Errno> {
    if on.file.nonblocking() {
        return Err(Errno::EAGAIN);
    }
    Ok(Flow::task(wait_and_add(on.caller.clone(), on.file.clone(), value)))
}

async fn wait_and_give(caller: Rc<Caller>, file: Rc<OpenFile>, mut buffer: UserBuffer) -> Result<u64, Errno> {
    let counter = counter(&file)?;
    caller.wait_until(&counter.watchers, || counter.available() > 0).await?;
    counter.give(&file, &mut buffer)
}

async fn wait_and_add(caller: Rc<Caller>, file: Rc<OpenFile>, value: u64) -> Result<u64, Errno> {
    let counter = counter(&file)?;
    caller.wait_until(&counter.watchers, || counter.has_room(value)).await?;
    counter.add(&file, value)
}

impl Object for EventCounter {
    fn record(&self) -> ObjectRecord {
        let minor = (self.taking == Taking::One) as u32;
        ObjectRecord { minor, more: self.count.get() & !LOW, ..ObjectRecord::of(Self::NUMBER) }
    }

    fn value(&self) -> u64 {
        self.count.get() & LOW
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: 1, mode: 0o600, ..Summary::default() })
    }

    fn describe(&self, text: &mut Text) -> fmt::Result {
        writeln!(text, "eventfd-count: {:16x}", self.count.get())
    }

    fn read(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        if buffer.left() < COUNT_BYTES {
            return Err(Errno::EINVAL);
        }
        if self.available() > 0 {
            return self.give(on.file, buffer).and_then(done);
        }
        read_later(on, buffer)
    }

    fn write(&self, on: &Operation, buffer: &mut UserBuffer, at: Option<u64>) -> Result<Flow, Errno> {
        no_position(at)?;
        let piece = buffer.piece();
        if piece.bytes < COUNT_BYTES {
            return Err(Errno::EINVAL);
        }
        let [value] = user::fetch_words(buffer.owner, piece.address)?;
        self.write_value(on, value)
    }

    /// Accepted and without effect, as on Linux.
    fn seek(&self, _: &Seek) -> Result<u64, Errno> {
        Ok(0)
    }

    fn poll(&self) -> u32 {
        let count = self.count.get();
        let readable = if count > 0 { POLLIN } else { 0 };
        let overflown = if count == u64::MAX { POLLERR } else { 0 };
        let writable = if self.has_room(1) { POLLOUT } else { 0 };
        readable | overflown | writable
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((&self.watchers, ANY)), None]
    }
}

impl Kind for EventCounter {
    const NUMBER: u8 = 10;

    fn restore(record: &ObjectRecord, _: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        let taking = if record.minor == 0 { Taking::All } else { Taking::One };
        Some(EventCounter::new(record.more & !LOW, taking))
    }

    fn position_in(&self, value: u64) -> u64 {
        self.count.set(self.count.get() | value);
        0
    }
}
