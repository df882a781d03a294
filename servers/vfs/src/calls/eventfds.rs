//! The calls that make counters: eventfd, eventfd2.

use super::{Entry, allow, call, done};
use crate::{
    base::closing::Closing,
    objects::{
        O_CLOEXEC, O_NONBLOCK, O_RDWR, OpenFile,
        eventfd::{EventCounter, Taking},
    },
    processes::Process,
};
use abi::{Errno, linux::nr};
use alloc::rc::Rc;
use sys::fallible::copied;

pub(super) const CALLS: &[Entry] = &[
    call(nr::EVENTFD, |c| done(create(c.closing(), c.process, c.flags(0), 0))),
    call(nr::EVENTFD2, |c| done(create(c.closing(), c.process, c.flags(0), c.flags(1)))),
];

/// eventfd2: a counter that begins at `count`. `EINVAL`: unknown flags.
fn create(closing: &Rc<Closing>, process: &Process, count: u32, flags: u32) -> Result<u64, Errno> {
    const SEMAPHORE: u32 = 1;
    allow(flags, SEMAPHORE | O_CLOEXEC | O_NONBLOCK)?;
    let taking = if flags & SEMAPHORE != 0 { Taking::One } else { Taking::All };
    let (counter, path) = (EventCounter::new(count.into(), taking), copied(b"anon_inode:[eventfd]")?);
    let file = OpenFile::new(closing, process.caller.user(), counter, flags & O_NONBLOCK | O_RDWR, path)?;
    process.insert(file, flags & O_CLOEXEC != 0)
}
