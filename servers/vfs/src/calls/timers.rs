//! The calls on timers: timerfd_create, timerfd_settime, timerfd_gettime.

use super::{Entry, call, done};
use crate::{
    base::closing::Closing,
    memory as user,
    objects::{
        O_CLOEXEC, O_NONBLOCK, O_RDWR, OpenFile,
        timer::{NS_PER_S, Timer, TimerFile},
    },
    processes::Process,
};
use abi::{Errno, linux::nr};
use alloc::rc::Rc;
use sys::fallible::copied;

pub(super) const CALLS: &[Entry] = &[
    call(nr::TIMERFD_CREATE, |c| done(timer_create(c.closing(), c.process, c.flags(0), c.flags(1)))),
    call(nr::TIMERFD_SETTIME, |c| done(timer_set(c.process, c.first()))),
    call(nr::TIMERFD_GETTIME, |c| done(timer_get(c.process, c.int(0), c.words[1]))),
];

/// timerfd_create.
fn timer_create(closing: &Rc<Closing>, process: &Process, clock: u32, flags: u32) -> Result<u64, Errno> {
    const REALTIME: u32 = 0;
    const MONOTONIC: u32 = 1;
    const BOOTTIME: u32 = 7;
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 || !matches!(clock, REALTIME | MONOTONIC | BOOTTIME) {
        return Err(Errno::EINVAL);
    }
    let user = process.caller.user();
    let timer = Timer::new(closing.store(), user, clock == REALTIME)?;
    let path = copied(b"anon_inode:[timerfd]")?;
    let file = OpenFile::new(closing, user, TimerFile(timer), flags & O_NONBLOCK | O_RDWR, path)?;
    process.insert(file, flags & O_CLOEXEC != 0)
}

/// timerfd_settime.
fn timer_set(process: &Process, [descriptor, flags, new, old]: [u64; 4]) -> Result<u64, Errno> {
    const ABSOLUTE: u32 = 1;
    const CANCEL_ON_SET: u32 = 2;
    let spec = user::fetch_words::<4>(process.caller.endpoint, new)?;
    let flags = flags as u32;
    let wrong = spec[0] as i64 <= -1 || spec[2] as i64 <= -1 || spec[1] >= NS_PER_S || spec[3] >= NS_PER_S;
    if wrong || flags & !(ABSOLUTE | CANCEL_ON_SET) != 0 {
        return Err(Errno::EINVAL);
    }
    let timer = timer_of(process, descriptor as i32)?;
    let before = timer.show();
    let [interval_ns, value_ns] =
        [[spec[0], spec[1]], [spec[2], spec[3]]].map(|[s, ns]| s.saturating_mul(NS_PER_S).saturating_add(ns));
    timer.arm(flags & ABSOLUTE != 0, value_ns, interval_ns);
    if old != 0 {
        user::store(process.caller.endpoint, old, &before)?;
    }
    Ok(0)
}

/// timerfd_gettime.
fn timer_get(process: &Process, descriptor: i32, address: u64) -> Result<u64, Errno> {
    user::store(process.caller.endpoint, address, &timer_of(process, descriptor)?.show())?;
    Ok(0)
}

fn timer_of(process: &Process, descriptor: i32) -> Result<Rc<Timer>, Errno> {
    let file = process.file(descriptor)?;
    file.object::<TimerFile>().map(|timer| timer.0.clone()).ok_or(Errno::EINVAL)
}
