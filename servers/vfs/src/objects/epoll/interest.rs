//! One registration of an epoll: for which events of which open file, and what is known of a device that it is about.

use super::{Epoll, Key, epoll_of};
use crate::{
    events::{Watch, poll::POLLERR},
    keep::{
        Kept,
        records::{InterestRecord, Terms, Told},
    },
    objects::{Asking, End, OpenFile, Wanted, signalfd::SignalFile, socket::SocketFile, timer::TimerFile},
};
use abi::{Errno, Message, chardev};
use alloc::{
    boxed::Box,
    rc::{Rc, Weak},
};
use core::cell::{Cell, RefCell};
use server::quota::Share;

/// Bits of `struct epoll_event` that say how to report, not what.
pub mod flag {
    /// Of the epolls in which a handler waits, one is woken.
    pub const EXCLUSIVE: u32 = 1 << 28;
    /// Accepted: this system does not sleep.
    pub const WAKEUP: u32 = 1 << 29;
    /// Report once, until it is modified.
    pub const ONESHOT: u32 = 1 << 30;
    /// Report changes.
    pub const EDGE: u32 = 1 << 31;
    /// All of them.
    pub const ALL: u32 = EXCLUSIVE | WAKEUP | ONESHOT | EDGE;
}

/// Bytes of a `struct epoll_event`, which is packed.
pub const EVENT_BYTES: usize = 12;

/// A `struct epoll_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// EPOLL*, which are POLL* and the bits of [`flag`].
    pub events: u32,
    /// The program's own.
    pub data: u64,
}

impl Event {
    /// As it lies in a program's memory.
    pub fn to_bytes(self) -> [u8; EVENT_BYTES] {
        let mut bytes = [0; EVENT_BYTES];
        bytes[..4].copy_from_slice(&self.events.to_le_bytes());
        bytes[4..].copy_from_slice(&self.data.to_le_bytes());
        bytes
    }

    /// From a program's memory.
    pub fn from_bytes(bytes: &[u8; EVENT_BYTES]) -> Event {
        let (events, data) = bytes.split_at(4);
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Event { events: word(events), data: u64::from(word(data)) | u64::from(word(&data[4..])) << 32 }
    }
}

/// What is known of a device.
enum Question {
    /// Nothing: it has to be asked.
    Open,
    /// It is asked, for now or (`stays`) until it is ready. The number tells its answer from those to questions that were taken back.
    Asked { number: u32, stays: bool, end: Option<End> },
    /// It was ready for these events, when so much had arrived; 0: it does not count.
    Answered { events: u32, arrivals: u32 },
}

/// One registration.
pub struct Interest {
    record: Kept<InterestRecord>,
    /// As they are preserved.
    terms: Cell<Terms>,
    target: Weak<OpenFile>,
    epoll: Weak<Epoll>,
    /// Its target is an epoll.
    nested: bool,
    /// Its target may become ready by itself.
    expires: bool,
    /// Only a device knows what its target is ready for.
    device: bool,
    /// What its user is charged for a device.
    _charge: Option<Share>,
    linked: Cell<bool>,
    ended: Cell<bool>,
    /// The time by which the epoll finds it among those that expire; 0: it is not among them.
    expires_at: Cell<u64>,
    question: RefCell<Question>,
    /// Questions so far.
    questions: Cell<u32>,
}

impl core::fmt::Debug for Interest {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.record.fmt(formatter)
    }
}

impl Interest {
    /// A registration that nothing knows yet. `ENOSPC`: the user has registered too many devices.
    pub(super) fn new(
        record: Kept<InterestRecord>,
        terms: Terms,
        target: &Rc<OpenFile>,
        epoll: &Rc<Epoll>,
    ) -> Result<Rc<Interest>, Errno> {
        let nested = epoll_of(target).is_some();
        let device = !nested && target.any().has_device();
        // A question about signals is no request of its own.
        let is_charged = device && target.object::<SignalFile>().is_none();
        let charge = is_charged.then(|| record.store().charge_device_interest(record.get().user)).transpose()?;
        Ok(Rc::new(Interest {
            record,
            terms: Cell::new(terms),
            target: Rc::downgrade(target),
            epoll: Rc::downgrade(epoll),
            nested,
            expires: nested || target.object::<TimerFile>().is_some(),
            device,
            _charge: charge,
            linked: Cell::new(false),
            ended: Cell::new(false),
            expires_at: Cell::new(0),
            question: RefCell::new(Question::Open),
            questions: Cell::new(0),
        }))
    }

    /// Has its target tell of changes. `ENOMEM`.
    pub(super) fn watch(self: &Rc<Self>, target: &OpenFile) -> Result<(), Errno> {
        for (watchers, events) in target.any().watchers().into_iter().flatten() {
            let watch: Rc<dyn Watch> = self.clone();
            watchers.add_watch(&watch, events & self.heard(target))?;
        }
        Ok(())
    }

    /// Has its target tell of changes that concern what it is for now.
    fn watch_anew(self: &Rc<Self>, target: &OpenFile) {
        for (watchers, events) in target.any().watchers().into_iter().flatten() {
            let watch: Rc<dyn Watch> = self.clone();
            watchers.change_watch(&watch, events & self.heard(target));
        }
    }

    /// Whether nothing but the events asked for matters to it.
    fn is_plain(&self) -> bool {
        !self.expires && !self.asks()
    }

    /// Events that it has to be told of: those asked for, unless changes of any kind matter to it, or its target's watchers, those of a socket,
    /// become others.
    fn heard(&self, target: &OpenFile) -> u32 {
        if self.is_plain() && target.object::<SocketFile>().is_none() { self.wanted() } else { u32::MAX }
    }

    /// Its open file; `None`: it is closed.
    pub(super) fn target(&self) -> Option<Rc<OpenFile>> {
        self.target.upgrade()
    }

    /// Its place in preserved memory.
    pub(super) fn place(&self) -> u32 {
        self.record.place()
    }

    /// What is preserved of it.
    pub(super) fn record(&self) -> InterestRecord {
        self.record.get()
    }

    /// Its place among those that expire.
    pub(super) fn expiry(&self) -> (u64, u32) {
        (self.expires_at.get(), self.place())
    }

    /// Sets the time by which it is found; 0: it is not.
    pub(super) fn set_expiry(&self, at_ns: u64) {
        self.expires_at.set(at_ns);
    }

    /// What the epoll knows it by.
    pub(super) fn key(&self) -> Key {
        (self.record.get().descriptor, self.record.get().target)
    }

    /// Whether its target is an epoll.
    pub(super) fn is_nested(&self) -> bool {
        self.nested
    }

    /// Whether its target may become ready by itself.
    pub(super) fn expires(&self) -> bool {
        self.expires
    }

    /// The time at which its target becomes ready by itself.
    pub(super) fn wakes_at(&self) -> Option<u64> {
        self.target()?.any().wakes_at()
    }

    /// Whether a device may have to be asked for it.
    pub(super) fn asks(&self) -> bool {
        self.nested || self.device
    }

    /// Whether it is on the ready list.
    pub(super) fn is_linked(&self) -> bool {
        self.linked.get()
    }

    /// Marks it as on the ready list, or not.
    pub(super) fn set_linked(&self, linked: bool) {
        self.linked.set(linked);
    }

    /// It is registered no more.
    pub(super) fn end(&self) {
        self.ended.set(true);
        self.take_back();
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// What it is to report.
    pub(super) fn terms(&self) -> Terms {
        self.terms.get()
    }

    fn set_terms(&self, terms: Terms) {
        self.terms.set(terms);
        self.record.store().set_terms(self.place(), terms);
    }

    /// Whether an edge was reported since which nothing has changed.
    pub(super) fn is_told(&self) -> bool {
        !self.terms.get().told.is_nothing()
    }

    /// Something has changed since what was told.
    #[cold]
    fn forget_told(&self) {
        self.set_terms(Terms { told: Told::NOTHING, ..self.terms.get() });
    }

    /// Events of a device that were not told.
    fn untold(&self) -> u32 {
        !self.terms.get().told.events()
    }

    /// Events that are asked for; none from the one report (`ONESHOT`) until it is modified.
    fn wanted(&self) -> u32 {
        self.terms.get().events & !flag::ALL
    }

    /// Changes what it is for. `EINVAL`: it is exclusive.
    pub(super) fn modify(self: &Rc<Self>, target: &OpenFile, event: Event) -> Result<(), Errno> {
        if self.terms.get().events & flag::EXCLUSIVE != 0 {
            return Err(Errno::EINVAL);
        }
        self.take_back();
        self.set_terms(Terms { events: event.events, told: Told::NOTHING });
        self.record.update(|record| record.data = event.data);
        self.watch_anew(target);
        Ok(())
    }

    /// The event to report now; `None`: there is none.
    #[inline(always)]
    pub(super) fn ready(&self) -> Option<Event> {
        let target = self.target().filter(|_| !self.has_ended())?;
        let found = if self.device { self.answered_events() } else { target.any().poll() };
        let events = found & self.wanted();
        (events != 0).then_some(Event { events, data: self.record.get().data })
    }

    /// Events that its device was ready for, and that were not told.
    fn answered_events(&self) -> u32 {
        match *self.question.borrow() {
            Question::Answered { events, .. } => events & self.untold(),
            _ => 0,
        }
    }

    /// It has been reported. Returns whether it stays on the ready list, because it is to be reported as long as it is ready; a device is
    /// asked once more instead.
    pub(super) fn set_reported(&self, events: u32) -> bool {
        let is_lasting = self.terms.get().events & (flag::ONESHOT | flag::EDGE) == 0;
        if !is_lasting {
            self.set_told(events);
        }
        if !self.device {
            return is_lasting;
        }
        self.question.replace(Question::Open);
        false
    }

    /// It has been reported, and is not to be reported as long as it is ready.
    #[cold]
    fn set_told(&self, reported: u32) {
        let Terms { events, told } = self.terms.get();
        let is_once = events & flag::ONESHOT != 0;
        let told = match *self.question.borrow() {
            _ if events & flag::EDGE == 0 => told,
            Question::Answered { arrivals: arrivals @ 1.., .. } => Told::up_to(arrivals),
            _ => told.and(reported),
        };
        self.set_terms(Terms { events: if is_once { events & flag::ALL } else { events }, told });
    }

    /// Asks its device, or those of its epoll, unless they are asked.
    pub(super) fn ask(self: &Rc<Self>, by: &Asking, stay: bool) {
        let Some(target) = self.target() else { return };
        if let Some(epoll) = epoll_of(&target) {
            return epoll.ask(by, stay);
        }
        let (events, since) = (self.wanted() & self.untold(), self.terms.get().told.arrivals());
        if events == 0 || !matches!(*self.question.borrow(), Question::Open) {
            return;
        }
        let number = self.questions.get().wrapping_add(1);
        self.questions.set(number);
        let this = Rc::downgrade(self);
        let done = move |reply: Result<Message, Errno>| {
            if let Some(this) = this.upgrade() {
                let word = reply.map_or(u64::from(POLLERR), |reply| reply.words[0]);
                this.answered(number, word as u32, (word >> chardev::ARRIVALS_SHIFT) as u32);
            }
        };
        // The answer may come at once.
        self.question.replace(Question::Asked { number, stays: stay, end: None });
        match target.any().ask_ready(by, Wanted { events, since }, stay, Box::new(done)) {
            Ok(begun) => {
                if let Question::Asked { number: asked, end, .. } = &mut *self.question.borrow_mut()
                    && *asked == number
                {
                    *end = Some(begun);
                }
            }
            Err(_) => self.answered(number, POLLERR, 0),
        }
    }

    /// Its device has answered the question with this number.
    fn answered(self: &Rc<Self>, to: u32, events: u32, arrivals: u32) {
        if !matches!(*self.question.borrow(), Question::Asked { number, .. } if number == to) {
            return;
        }
        self.question.replace(if events == 0 { Question::Open } else { Question::Answered { events, arrivals } });
        self.tell(events);
    }

    /// Takes a request to its device back.
    fn take_back(&self) {
        if let Question::Asked { end: Some(end), .. } = self.question.replace(Question::Open) {
            end();
        }
    }

    /// Forgets that a device was ready, if it counts arrivals: what has come since then is reported by the same edge.
    pub(super) fn look_again(&self) {
        let is_edge = self.terms.get().events & flag::EDGE != 0;
        self.question.replace_with(|question| match question {
            Question::Answered { arrivals: 1.., .. } if is_edge => Question::Open,
            other => core::mem::replace(other, Question::Open),
        });
    }

    /// Whether a device has not answered what it is ready for now.
    pub(super) fn is_asking(&self) -> bool {
        let asked = matches!(*self.question.borrow(), Question::Asked { stays: false, .. });
        asked || self.nested && self.target().is_some_and(|target| target.any().is_asking())
    }

    /// Something has happened to its device.
    #[cold]
    fn device_changed(self: &Rc<Self>, events: u32) {
        // A transfer: what was known is used up, and what was reported is asked for again, unless the device counts what arrives. Or the
        // device is ready for other reasons, and these are its events.
        let was_told = self.is_told() && (events != 0 || self.terms.get().told.arrivals() == 0);
        if was_told {
            self.forget_told();
        }
        if was_told || matches!(*self.question.borrow(), Question::Answered { .. }) {
            self.take_back();
        }
        self.tell(0);
    }

    /// Tells its epoll that these events may have come; without any, that a device has to be asked or has answered. Returns whether a
    /// handler that waits for these events is woken. Inlined: a call would cost each change 15 ticks.
    #[inline(always)]
    fn tell(self: &Rc<Self>, events: u32) -> bool {
        let relevant = events & self.wanted() != 0;
        if !relevant && self.is_plain() {
            return false;
        }
        let Some(epoll) = self.epoll.upgrade().filter(|_| !self.has_ended()) else { return false };
        epoll.expect(self);
        if relevant {
            if self.is_told() && !self.device {
                self.forget_told();
            }
            epoll.link(self);
        }
        let is_woken = (relevant || self.asks()) && epoll.tell(relevant);
        is_woken && relevant
    }
}

impl Watch for Interest {
    fn changed(self: Rc<Self>, events: u32) {
        if self.device {
            return self.device_changed(events);
        }
        self.tell(events);
    }

    fn is_exclusive(&self) -> bool {
        self.terms.get().events & flag::EXCLUSIVE != 0
    }

    /// Devices are asked for each registration by itself.
    fn woke(self: Rc<Self>, events: u32) -> bool {
        if self.device {
            self.changed(events);
            return false;
        }
        self.tell(events)
    }

    fn height(&self) -> usize {
        self.epoll.upgrade().map_or(0, |epoll| 1 + epoll.watchers().height())
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.take_back();
    }
}
