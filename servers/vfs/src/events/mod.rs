//! Events that handlers wait for: data in a pipe, a released lock, a signal.
//!
//! An event stays fired until a wait takes it, so that none is lost between a check and the wait.

pub mod notices;
pub mod poll;

use abi::Errno;
use alloc::{
    rc::{Rc, Weak},
    vec::Vec,
};
use core::{
    cell::{Cell, RefCell},
    fmt::Debug,
    future::{Future, poll_fn},
    task::{Poll, Waker},
};
use sys::fallible::TryVec;

/// See the head of the file. One handler waits for it at a time.
#[derive(Debug, Default)]
pub struct Event {
    fired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Event {
    /// Wakes the handler that waits, or the next one that will. False: it was woken already, and has not run since.
    pub fn fire(&self) -> bool {
        let is_first = !self.fired.replace(true);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        is_first
    }

    /// Waits until it has fired, and resets it.
    pub fn wait(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|context| {
            if self.fired.take() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
    }
}

/// Learns of changes besides the handlers that wait: a registration in an epoll.
pub trait Watch: Debug {
    /// Some of these events (Linux POLL*) may have come or gone.
    fn changed(self: Rc<Self>, events: u32);

    /// Whether one that wakes a handler is enough (`EPOLLEXCLUSIVE`), for as long as it exists: [`Watch::woke`] is called instead, until it is
    /// true of one.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// [`Watch::changed`]; returns whether a handler that waits is woken.
    fn woke(self: Rc<Self>, events: u32) -> bool {
        self.changed(events);
        false
    }

    /// Levels of watchers above it.
    fn height(&self) -> usize;
}

#[derive(Debug)]
enum Watcher {
    Handler(Rc<Event>),
    /// With the events that it is told of, and whether it is exclusive.
    Other {
        watch: Weak<dyn Watch>,
        events: u32,
        is_exclusive: bool,
    },
}

impl Watcher {
    fn is_alive(&self) -> bool {
        match self {
            Watcher::Handler(_) => true,
            Watcher::Other { watch, .. } => watch.strong_count() > 0,
        }
    }

    /// Events that it is told of.
    fn events(&self) -> u32 {
        match self {
            Watcher::Handler(_) => u32::MAX,
            Watcher::Other { events, .. } => *events,
        }
    }

    fn other(&self) -> Option<Rc<dyn Watch>> {
        match self {
            Watcher::Handler(_) => None,
            Watcher::Other { watch, .. } => watch.upgrade(),
        }
    }
}

/// Who is told when something changes: handlers that wait, and registrations.
#[derive(Debug, Default)]
pub struct Watchers {
    list: RefCell<Vec<Watcher>>,
    /// Events that somebody is told of: most changes look no further.
    heard: Cell<u32>,
}

impl Watchers {
    /// `event` fires at each change from now on.
    #[expect(clippy::disallowed_methods, reason = "small, of a call in progress: from the heap's reserve")]
    pub fn add(&self, event: &Rc<Event>) {
        self.list.borrow_mut().push(Watcher::Handler(event.clone()));
        self.heard.set(u32::MAX);
    }

    /// Removes every entry of this event.
    pub fn remove(&self, event: &Rc<Event>) {
        let mut list = self.list.borrow_mut();
        list.retain(|known| !matches!(known, Watcher::Handler(known) if Rc::ptr_eq(known, event)));
        self.hear(&list);
    }

    /// `watch` is told of each change that concerns one of these events, as long as it exists. `ENOMEM`.
    pub fn add_watch(&self, watch: &Rc<dyn Watch>, events: u32) -> Result<(), Errno> {
        let mut list = self.list.borrow_mut();
        if list.len() == list.capacity() {
            list.retain(Watcher::is_alive);
        }
        let (is_exclusive, watch) = (watch.is_exclusive(), Rc::downgrade(watch));
        list.try_push(Watcher::Other { watch, events, is_exclusive })?;
        self.heard.set(self.heard.get() | events);
        Ok(())
    }

    /// `watch` is told of each change that concerns one of these other events.
    pub fn change_watch(&self, watch: &Rc<dyn Watch>, events: u32) {
        let this = Rc::as_ptr(watch);
        let mut list = self.list.borrow_mut();
        for watcher in list.iter_mut() {
            if let Watcher::Other { watch, events: known, .. } = watcher
                && core::ptr::addr_eq(watch.as_ptr(), this)
            {
                *known = events;
            }
        }
        self.hear(&list);
    }

    /// `watch` is told no more.
    pub fn remove_watch(&self, watch: &Rc<dyn Watch>) {
        let mut list = self.list.borrow_mut();
        list.retain(|known| !known.other().is_some_and(|known| Rc::ptr_eq(&known, watch)));
        self.hear(&list);
    }

    /// Notes which events those in the list are told of.
    fn hear(&self, list: &[Watcher]) {
        self.heard.set(list.iter().fold(0, |heard, watcher| heard | watcher.events()));
    }

    /// Tells all of them of a change of whatever kind.
    #[inline]
    pub fn fire(&self) {
        self.fire_for(poll::ANY);
    }

    /// Tells all of them that some of these events (Linux POLL*) may have come or gone; without any, that devices have to be asked or have
    /// answered. Handlers are woken by each change.
    /// Returns whether a handler that waits is woken.
    #[inline]
    pub fn fire_for(&self, events: u32) -> bool {
        let heard = self.heard.get();
        let concerns = heard != 0 && (events == 0 || events & heard != 0);
        concerns && fire_all(&self.list.borrow(), events)
    }

    /// Those that do not wait.
    pub fn others(&self) -> usize {
        self.list.borrow().iter().filter_map(Watcher::other).count()
    }

    /// Levels of those that do not wait.
    pub fn height(&self) -> usize {
        self.list.borrow().iter().filter_map(Watcher::other).map(|watch| watch.height()).max().unwrap_or(0)
    }
}

#[inline(never)]
fn fire_all(list: &[Watcher], events: u32) -> bool {
    let (mut is_woken, mut is_taken) = (false, false);
    for watcher in list {
        match watcher {
            Watcher::Handler(event) => is_woken |= event.fire(),
            Watcher::Other { events: of, .. } if events & of == 0 && events != 0 => {}
            Watcher::Other { is_exclusive: true, .. } if is_taken => {}
            Watcher::Other { watch, events: of, is_exclusive } => match watch.upgrade() {
                Some(watch) if *is_exclusive => is_taken = watch.woke(events & of),
                Some(watch) => watch.changed(events & of),
                None => {}
            },
        }
    }
    is_woken
}

/// A state that is reached once, and that handlers wait for.
#[derive(Debug, Default)]
pub struct Milestone {
    reached: Cell<bool>,
    watchers: Watchers,
}

impl Milestone {
    /// Whether it is reached.
    pub fn is_reached(&self) -> bool {
        self.reached.get()
    }

    /// Makes it unreached again.
    pub fn postpone(&self) {
        self.reached.set(false);
    }

    /// Reaches it, and wakes the waiting handlers.
    pub fn reach(&self) {
        self.reached.set(true);
        self.watchers.fire();
    }

    /// Waits until it is reached.
    pub async fn wait(&self) {
        if self.reached.get() {
            return;
        }
        let event = Rc::new(Event::default());
        self.watchers.add(&event);
        while !self.reached.get() {
            event.wait().await;
        }
        self.watchers.remove(&event);
    }
}

/// How far the start of an incarnation has come.
#[derive(Debug)]
pub struct Startup {
    takers: Milestone,
    recovered: Milestone,
    mounted: Milestone,
}

impl Default for Startup {
    /// Without a predecessor, nothing has to be recovered.
    fn default() -> Self {
        let startup =
            Startup { takers: Milestone::default(), recovered: Milestone::default(), mounted: Milestone::default() };
        startup.takers.reach();
        startup.recovered.reach();
        startup
    }
}

impl Startup {
    /// Calls of programs wait until [`Startup::recover`].
    pub fn postpone(&self) {
        self.takers.postpone();
        self.recovered.postpone();
    }

    /// Lets calls of programs go on: first those that wait for what others give, which have their turn before the rest is woken.
    pub async fn recover(&self) {
        self.takers.reach();
        let mut is_second = false;
        poll_fn(|context| {
            if core::mem::replace(&mut is_second, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.recovered.reach();
    }

    /// Reached right before [`Startup::recovered`]: calls that wait for what others give are begun before the calls of those who give it.
    pub fn takers(&self) -> &Milestone {
        &self.takers
    }

    /// The predecessor's state is restored: calls of programs wait for that.
    #[inline]
    pub fn recovered(&self) -> &Milestone {
        &self.recovered
    }

    /// Everything that the arguments name is mounted: the first programs wait for that.
    pub fn mounted(&self) -> &Milestone {
        &self.mounted
    }

    /// Waits for both.
    pub async fn wait(&self) {
        self.mounted.wait().await;
        self.recovered.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::{pin::pin, task::Context};

    #[test]
    fn an_event_that_fired_before_the_wait_is_not_lost() {
        let event = Event::default();
        let mut context = Context::from_waker(Waker::noop());
        event.fire();
        assert!(pin!(event.wait()).poll(&mut context).is_ready());
        let mut wait = pin!(event.wait());
        assert!(wait.as_mut().poll(&mut context).is_pending());
        event.fire();
        assert!(wait.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn watchers_are_told_until_they_leave() {
        let (event, watchers) = (Rc::new(Event::default()), Watchers::default());
        watchers.add(&event);
        watchers.fire();
        assert!(event.fired.take());
        watchers.remove(&event);
        watchers.fire();
        assert!(!event.fired.take());
    }
}
