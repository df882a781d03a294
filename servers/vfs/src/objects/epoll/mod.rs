//! Sets of registered descriptors whose readiness is collected (epoll(7)).
//!
//! Each registration is an [`Interest`], known by its descriptor and open file, with a record of its own. The objects it is about put it
//! on the ready list when they change (`events::Watchers`), so collecting looks at that list alone, never at idle registrations. Timers
//! expire without a change: they are in an order of their own, by time. Devices are asked, one request for each registration.
//!
//! Invariants: the ready list has room for all interests; an epoll is at most [`LEVELS`] levels deep and in no circle. The ready list is not
//! preserved: a successor looks at all interests, but at none by edge that was told and has not changed since.
//! Neighbours: `interest` (one registration), `collect` (the ready list), `calls::epoll`.

mod collect;
mod interest;

use super::{Asking, Done, End, Inheritance, Kind, Object, OpenFile, Seek, Wanted};
use crate::{
    events::{
        Watchers,
        poll::{ANY, POLLIN, POLLRDNORM},
    },
    files::{stat::Summary, vnode::NodeRef},
    keep::{
        Kept, Store,
        records::{InterestRecord, ObjectRecord, Terms, Told},
    },
};
use abi::{Errno, Message};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    vec::Vec,
};
use core::{
    cell::{Cell, RefCell},
    fmt::{self, Write},
};
pub use interest::{EVENT_BYTES, Event, Interest, flag};
use sys::{
    fallible::{TryQueue, TryVec},
    text::Text,
};

/// Levels of epolls that contain each other.
const LEVELS: usize = 5;
/// Epolls that one epoll may be registered in: a change goes through all of them, and those above.
const PARENTS: usize = 4;
/// Registrations of files that have been closed are looked for when at least so many have been added.
const SWEEP_MIN: usize = 64;

/// Registrations that /proc/PID/fdinfo shows: the first ones, so that a read is short.
const MAX_DESCRIBED: usize = 128;

/// The descriptor of a registration and the number of its open file.
type Key = (i32, u64);

/// One set.
#[derive(Debug, Default)]
pub struct Epoll {
    interests: RefCell<BTreeMap<Key, Rc<Interest>>>,
    /// Those that may be ready, and ones that have ended since.
    ready: RefCell<VecDeque<Rc<Interest>>>,
    /// Those that become ready at a time, by time and place.
    expiries: RefCell<BTreeMap<(u64, u32), Rc<Interest>>>,
    /// Those of devices, and of epolls, which may have devices.
    asking: RefCell<Vec<Rc<Interest>>>,
    /// Whether there are any: most waits look no further.
    asks: Cell<bool>,
    /// So many interests make the next one look for those whose files are closed.
    sweep_at: Cell<usize>,
    watchers: Watchers,
}

impl Epoll {
    /// Who is told when an interest becomes ready.
    pub fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    /// Registers a descriptor of an open file. `EEXIST`: it is registered; `ENOSPC`: the user's share; `ENOMEM`.
    pub fn add(
        self: &Rc<Self>,
        own: u64,
        target: &Rc<OpenFile>,
        fd: i32,
        event: Event,
        by: Owner,
    ) -> Result<(), Errno> {
        let key = (fd, target.number());
        if self.interests.borrow().contains_key(&key) {
            return Err(Errno::EEXIST);
        }
        if self.interests.borrow().len() >= self.sweep_at.get().max(SWEEP_MIN) {
            self.sweep();
        }
        let Event { events, data } = event;
        let record = InterestRecord { epoll: own, target: key.1, descriptor: fd, data, user: by.user };
        let terms = Terms { events, told: Told::NOTHING };
        let record = by.store.new_interest(record, terms)?;
        let place = record.place();
        let interest = self.enter(record, terms, target).inspect_err(|_| by.store.clear_interest(place))?;
        self.examine(&interest);
        Ok(())
    }

    /// The number of the open file of the registration that is the `nth` with this descriptor.
    pub fn nth_target(&self, descriptor: i32, nth: u64) -> Option<u64> {
        let interests = self.interests.borrow();
        let of_descriptor = interests.range((descriptor, 0)..=(descriptor, u64::MAX));
        let mut open = of_descriptor.filter(|(_, interest)| interest.target().is_some());
        open.nth(usize::try_from(nth).ok()?).map(|((_, target), _)| *target)
    }

    /// Enters an interest. `ENOMEM`: then nothing has changed.
    fn enter(
        self: &Rc<Self>,
        record: Kept<InterestRecord>,
        terms: Terms,
        target: &Rc<OpenFile>,
    ) -> Result<Rc<Interest>, Errno> {
        self.drop_ended();
        let further = self.interests.borrow().len() + 1;
        self.ready.borrow_mut().try_make_room(further)?;
        let key = (record.get().descriptor, record.get().target);
        let interest = Interest::new(record, terms, target, self)?;
        if interest.asks() {
            self.asking.borrow_mut().try_push(interest.clone())?;
            self.asks.set(true);
        }
        interest.watch(target).inspect_err(|_| self.ask_no_more(&interest))?;
        self.interests.borrow_mut().insert(key, interest.clone());
        Ok(interest)
    }

    /// Enters an interest of a predecessor: it may be ready, unless that was told and nothing has changed since.
    ///
    /// What is in an epoll may not have been entered yet; and its timers, which expire without a change, tell of themselves.
    pub fn restore(
        self: &Rc<Self>,
        record: Kept<InterestRecord>,
        terms: Terms,
        target: &Rc<OpenFile>,
    ) -> Result<(), Errno> {
        let interest = self.enter(record, terms, target)?;
        if interest.is_nested() || !interest.is_told() {
            self.expect(&interest);
        }
        if !interest.is_told() && (interest.is_nested() || interest.ready().is_some()) {
            self.link(&interest);
        }
        self.tell(false);
        Ok(())
    }

    /// Looks at an interest that is new or has been changed. Idle ones do not get onto the ready list.
    fn examine(&self, interest: &Rc<Interest>) {
        self.expect(interest);
        let is_ready = interest.ready().is_some();
        if is_ready {
            self.link(interest);
        }
        self.tell(is_ready);
    }

    /// Wakes handlers that wait and tells epolls above: something may be ready, or (`false`) a device has to be asked or has answered, or a
    /// time is another. Returns whether a handler that waits is woken.
    fn tell(&self, is_ready: bool) -> bool {
        self.watchers.fire_for(if is_ready { POLLIN | POLLRDNORM } else { 0 })
    }

    /// Changes what a registration is for. `ENOENT`: there is none; `EINVAL`: it is exclusive.
    pub fn modify(&self, target: &OpenFile, fd: i32, event: Event) -> Result<(), Errno> {
        let interest = self.interests.borrow().get(&(fd, target.number())).cloned().ok_or(Errno::ENOENT)?;
        interest.modify(target, event)?;
        self.examine(&interest);
        Ok(())
    }

    /// Ends a registration. `ENOENT`: there is none.
    pub fn remove(&self, store: &Store, target: &OpenFile, fd: i32) -> Result<(), Errno> {
        let interest = self.interests.borrow_mut().remove(&(fd, target.number())).ok_or(Errno::ENOENT)?;
        store.clear_interest(interest.place());
        self.leave(&interest);
        Ok(())
    }

    /// Takes an interest that has ended off the other lists; the ready list drops it when it meets it.
    fn leave(&self, interest: &Rc<Interest>) {
        interest.end();
        self.expiries.borrow_mut().remove(&interest.expiry());
        self.ask_no_more(interest);
    }

    fn ask_no_more(&self, interest: &Rc<Interest>) {
        if interest.asks() {
            let mut asking = self.asking.borrow_mut();
            asking.retain(|other| !Rc::ptr_eq(other, interest));
            self.asks.set(!asking.is_empty());
        }
    }

    /// Ends the registrations of files that are closed.
    fn sweep(&self) {
        let mut interests = self.interests.borrow_mut();
        interests.retain(|_, interest| {
            let is_open = interest.target().is_some();
            if !is_open {
                self.leave(interest);
            }
            is_open
        });
        self.sweep_at.set(2 * interests.len());
    }

    /// Whether its devices, or those of epolls in it, have to be asked.
    #[inline]
    pub fn has_devices(&self) -> bool {
        self.asks.get() && self.asks_devices()
    }

    fn asks_devices(&self) -> bool {
        self.asking.borrow().iter().filter_map(|interest| interest.target()).any(|target| target.any().has_device())
    }

    /// Before events are collected for a new wait: devices that count what arrives are asked once more for what is reported by edge.
    #[inline]
    pub fn look_again(&self) {
        if self.asks.get() {
            self.asking.borrow().iter().for_each(|interest| interest.look_again());
        }
    }

    /// Asks each device that has no request outstanding: for now, or with `stay` when it is ready.
    #[inline]
    pub fn ask(&self, by: &Asking, stay: bool) {
        if self.asks.get() {
            self.ask_devices(by, stay);
        }
    }

    #[inline(never)]
    fn ask_devices(&self, by: &Asking, stay: bool) {
        let asking = self.asking.borrow();
        for interest in asking.iter() {
            interest.ask(by, stay);
        }
    }

    /// Whether a device has not answered what it is ready for now.
    pub fn is_asking(&self) -> bool {
        self.asking.borrow().iter().any(|interest| interest.is_asking())
    }

    /// Levels of epolls below and including it.
    fn depth(&self) -> usize {
        let asking = self.asking.borrow();
        let targets = asking.iter().filter_map(|interest| interest.target());
        1 + targets.filter_map(|target| epoll_of(&target).map(|epoll| epoll.depth())).max().unwrap_or(0)
    }

    fn contains(&self, other: &Rc<Epoll>) -> bool {
        self.asking
            .borrow()
            .iter()
            .filter_map(|interest| interest.target())
            .any(|target| epoll_of(&target).is_some_and(|epoll| Rc::ptr_eq(epoll, other) || epoll.contains(other)))
    }

    /// Whether another epoll may be registered in it. `ELOOP`: a circle, or too many levels; `EINVAL`: it is in too many.
    pub fn check_nesting(self: &Rc<Self>, other: &Rc<Epoll>) -> Result<(), Errno> {
        if other.contains(self) || self.watchers.height() + 1 + other.depth() > LEVELS {
            return Err(Errno::ELOOP);
        }
        if other.watchers.others() < PARENTS { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

#[cfg(test)]
impl Epoll {
    /// What is registered of open files that exist.
    pub fn records(&self) -> Vec<(InterestRecord, Terms)> {
        let interests = self.interests.borrow();
        interests
            .values()
            .filter(|interest| interest.target().is_some())
            .map(|interest| (interest.record(), interest.terms()))
            .collect()
    }
}

/// To whom a registration is charged, and where it is preserved.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    /// Preserved memory.
    pub store: &'a Rc<Store>,
    /// Real uid.
    pub user: u32,
}

/// The epoll of an open file, if it is one.
pub fn epoll_of(file: &OpenFile) -> Option<&Rc<Epoll>> {
    file.object::<EpollFile>().map(|file| &file.0)
}

/// An epoll as an open file.
#[derive(Debug, Default)]
pub struct EpollFile(Rc<Epoll>);

impl Object for EpollFile {
    fn record(&self) -> ObjectRecord {
        ObjectRecord::of(Self::NUMBER)
    }

    fn summary(&self) -> Result<Summary, Errno> {
        Ok(Summary { inode: 1, mode: 0o600, ..Summary::default() })
    }

    fn describe(&self, text: &mut Text) -> fmt::Result {
        let interests = self.0.interests.borrow();
        interests.values().take(MAX_DESCRIBED).try_for_each(|interest| {
            let Some(target) = interest.target() else { return Ok(()) };
            let InterestRecord { descriptor, data, .. } = interest.record();
            let events = interest.terms().events;
            let inode = match (target.node(), target.any().summary()) {
                (Some(node), _) => node.number(),
                (None, summary) => summary.map_or(0, |summary| summary.inode),
            };
            let position = target.position();
            writeln!(
                text,
                "tfd: {descriptor:8} events: {events:8x} data: {data:16x}  pos:{position} ino:{inode:x} sdev:0"
            )
        })
    }

    /// Accepted and without effect, as on Linux.
    fn seek(&self, _: &Seek) -> Result<u64, Errno> {
        Ok(0)
    }

    fn poll(&self) -> u32 {
        if self.0.has_ready() { POLLIN | POLLRDNORM } else { 0 }
    }

    fn has_device(&self) -> bool {
        self.0.has_devices()
    }

    /// The answers come as changes of the epoll.
    fn ask_ready(&self, by: &Asking, _: Wanted, stay: bool, done: Done) -> Result<End, Errno> {
        self.0.ask(by, stay);
        done(Ok(Message::default()));
        Ok(Box::new(|| ()))
    }

    fn ask_again(&self, by: &Asking) {
        self.0.ask(by, true);
    }

    fn is_asking(&self) -> bool {
        self.0.is_asking()
    }

    fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((&self.0.watchers, ANY)), None]
    }

    fn wakes_at(&self) -> Option<u64> {
        self.0.wakes_at()
    }
}

impl Kind for EpollFile {
    const NUMBER: u8 = 11;

    /// Without its interests, which have records of their own.
    fn restore(_: &ObjectRecord, _: Option<NodeRef>, _: &mut dyn Inheritance) -> Option<Self> {
        Some(EpollFile::default())
    }
}
