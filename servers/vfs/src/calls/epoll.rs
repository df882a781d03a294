//! The calls on epolls: epoll_create, epoll_ctl, epoll_wait and their relatives.
//!
//! A wait that finds something, or must not wait, is answered at once, unless a device has to be asked first. Another one becomes a task
//! that is woken by the epoll's watchers, and collects again.

use super::{
    Entry, allow, call,
    call::Call,
    done,
    poll::{no_restart, signal_mask, with_mask},
};
use crate::{
    base::{Base, Flow, closing::Closing},
    callers::Caller,
    events::poll::{POLLERR, POLLHUP, POLLIN, POLLOUT},
    keep::records::{Note, Terms},
    memory as user,
    objects::{
        Asking, O_CLOEXEC, O_RDWR, OpenFile,
        epoll::{EVENT_BYTES, Epoll, EpollFile, Event, Owner, epoll_of, flag},
    },
    processes::Process,
};
use abi::{Endpoint, Errno, linux::nr};
use alloc::rc::Rc;
use sys::fallible::copied;

pub(super) const CALLS: &[Entry] = &[
    call(nr::EPOLL_CREATE, |c| if c.int(0) > 0 { done(create(c.closing(), c.process, 0)) } else { Err(Errno::EINVAL) }),
    call(nr::EPOLL_CREATE1, |c| done(create(c.closing(), c.process, c.flags(0)))),
    call(nr::EPOLL_CTL, |c| done(control(c.closing(), c.process, c.first()))),
    call(nr::EPOLL_WAIT, |c| wait(c, c.milliseconds(3), None)),
    call(nr::EPOLL_PWAIT, |c| wait(c, c.milliseconds(3), signal_mask(c, c.words[4], c.words[5])?)),
    call(nr::EPOLL_PWAIT2, |c| wait(c, c.timespec(3)?, signal_mask(c, c.words[4], c.words[5])?)),
];

/// Reported whether asked for or not.
const ALWAYS: u32 = POLLERR | POLLHUP;
/// The most events that a wait may ask for (Linux's EP_MAX_EVENTS).
const MAX_EVENTS: usize = i32::MAX as usize / EVENT_BYTES;

/// epoll_create1. `EINVAL`: unknown flags.
fn create(closing: &Rc<Closing>, process: &Process, flags: u32) -> Result<u64, Errno> {
    allow(flags, O_CLOEXEC)?;
    let path = copied(b"anon_inode:[eventpoll]")?;
    let file = OpenFile::new(closing, process.caller.user(), EpollFile::default(), O_RDWR, path)?;
    process.insert(file, flags & O_CLOEXEC != 0)
}

/// epoll_ctl. `EPERM`: what is always ready cannot be registered.
fn control(closing: &Closing, process: &Process, [own, operation, descriptor, event]: [u64; 4]) -> Result<u64, Errno> {
    const ADD: i32 = 1;
    const DEL: i32 = 2;
    const MOD: i32 = 3;
    let (operation, descriptor) = (operation as i32, descriptor as i32);
    let mut bytes = [0; EVENT_BYTES];
    if operation != DEL {
        user::fetch(process.caller.endpoint, event, &mut bytes)?;
    }
    let mut event = Event::from_bytes(&bytes);
    let (file, target) = (usable(process, own as i32)?, usable(process, descriptor)?);
    if target.any().watchers()[0].is_none() && !target.any().has_device() {
        return Err(Errno::EPERM);
    }
    let epoll = epoll_of(&file).filter(|_| file.number() != target.number()).ok_or(Errno::EINVAL)?;
    if operation != DEL && event.events & flag::EXCLUSIVE != 0 {
        check_exclusive(operation == ADD, &target, event.events)?;
    }
    event.events = event.events & Terms::EVENTS | ALWAYS;
    match operation {
        ADD => {
            if let Some(other) = epoll_of(&target) {
                epoll.check_nesting(other)?;
            }
            let by = Owner { store: closing.store(), user: process.caller.user() };
            epoll.add(file.number(), &target, descriptor, event, by)?;
        }
        DEL => epoll.remove(closing.store(), &target, descriptor)?,
        MOD => epoll.modify(&target, descriptor, event)?,
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

fn usable(process: &Process, descriptor: i32) -> Result<Rc<OpenFile>, Errno> {
    let file = process.file(descriptor)?;
    file.usable()?;
    Ok(file)
}

/// `EINVAL` for a registration that cannot be exclusive.
fn check_exclusive(adds: bool, target: &OpenFile, events: u32) -> Result<(), Errno> {
    let known = POLLIN | POLLOUT | ALWAYS | flag::WAKEUP | flag::EDGE | flag::EXCLUSIVE;
    if adds && epoll_of(target).is_none() { allow(events, known) } else { Err(Errno::EINVAL) }
}

/// Where events go.
struct Report {
    who: Endpoint,
    address: u64,
    /// How many there may be.
    most: usize,
}

impl Report {
    /// As the arguments of a call say. `EINVAL`: too many events, or none.
    fn of(call: &Call) -> Result<Report, Errno> {
        let most = usize::try_from(call.int(2)).ok().filter(|most| (1..=MAX_EVENTS).contains(most));
        Ok(Report { who: call.process.caller.endpoint, address: call.words[1], most: most.ok_or(Errno::EINVAL)? })
    }

    /// Reports events of an epoll. Returns how many.
    #[inline]
    fn collect(&self, epoll: &Epoll) -> Result<u64, Errno> {
        let store = |first: usize, bytes: &[u8]| {
            let address = self.address.wrapping_add((first * EVENT_BYTES) as u64);
            user::store(self.who, address, bytes)
        };
        epoll.collect(self.most, store).map(|count| count as u64)
    }
}

/// A wait in progress.
struct Wait {
    base: &'static Base,
    caller: Rc<Caller>,
    /// Keeps the epoll open.
    file: Rc<OpenFile>,
    epoll: Rc<Epoll>,
    report: Report,
    /// `None` for ever, 0 not at all.
    deadline_ns: Option<u64>,
}

/// epoll_wait, epoll_pwait, epoll_pwait2.
#[inline(always)]
fn wait(call: &Call, deadline_ns: Option<u64>, mask: Option<u64>) -> Result<Flow, Errno> {
    match collect_now(call, deadline_ns == Some(0))? {
        Some(count) => done(Ok(count)),
        None => wait_longer(call, deadline_ns, mask),
    }
}

/// Reports the events that there are. `None`: there are none, and the call has to wait or to ask a device.
fn collect_now(call: &Call, is_over: bool) -> Result<Option<u64>, Errno> {
    let report = Report::of(call)?;
    call.process.look_at_file(call.int(0), |file, _| {
        let epoll = epoll_of(file).ok_or(Errno::EINVAL)?;
        epoll.look_again();
        // Also with a mask: a call that does not wait leaves a signal pending that the mask lets through.
        let count = report.collect(epoll)?;
        if count > 0 {
            // For the next wait: a device is not to wait for a time at which nothing else is ready.
            epoll.ask(&Asking { peers: call.base().peers(), caller: &call.process.caller }, true);
        }
        Ok((count > 0 || is_over && !epoll.has_devices()).then_some(count))
    })?
}

/// Waits for events.
#[inline(never)]
fn wait_longer(call: &Call, deadline_ns: Option<u64>, mask: Option<u64>) -> Result<Flow, Errno> {
    let file = call.process.file(call.int(0))?;
    let epoll = epoll_of(&file).ok_or(Errno::EINVAL)?.clone();
    let (base, caller, report) = (call.base(), call.process.caller.clone(), Report::of(call)?);
    with_mask(call, mask, Wait { base, caller, file, epoll, report, deadline_ns }.run())
}

impl Wait {
    fn asking(&self) -> Asking<'_> {
        Asking { peers: self.base.peers(), caller: &self.caller }
    }

    fn collect(&self) -> Result<u64, Errno> {
        self.report.collect(&self.epoll)
    }

    /// Waits for events and reports them.
    async fn run(self) -> Result<u64, Errno> {
        if let Some(deadline_ns @ 1..) = self.deadline_ns {
            self.caller.note(Note::Deadline(deadline_ns));
        }
        self.epoll.watchers().add(self.caller.event());
        let result = self.look_until_ready().await;
        self.epoll.watchers().remove(self.caller.event());
        drop(self.file);
        result
    }

    async fn look_until_ready(&self) -> Result<u64, Errno> {
        let blocking = self.deadline_ns != Some(0);
        self.epoll.ask(&self.asking(), blocking);
        loop {
            let count = self.collect()?;
            if count > 0 || !blocking && !self.epoll.is_asking() {
                return Ok(count);
            }
            let wakes_at = self.epoll.wakes_at().into_iter().chain(self.deadline_ns.filter(|_| blocking)).min();
            let mut sleep = wakes_at.map(|at_ns| self.base.runtime().sleep_until(at_ns));
            let over = self.caller.wait_or_sleep(sleep.as_mut()).await.map_err(no_restart)?;
            if over && wakes_at == self.deadline_ns {
                return self.collect();
            }
            if blocking {
                self.epoll.ask(&self.asking(), true);
            }
        }
    }
}
