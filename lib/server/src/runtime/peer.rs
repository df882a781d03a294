//! A file system or driver that is asked asynchronously.
//!
//! Requests queue up, go out by `SENDNB` at the end of the turn as far as the window allows, and are answered in any order by their tag. When the
//! peer does not wait just now, its notification tells when to try again. When it dies, the requests in flight are repeated to its
//! successor or fails with `EDEADSRCDST`, as each request says; what was not sent yet waits for the successor. When rs has given it up,
//! everything fails.

use super::Runtime;
use crate::names::{self, Event};
use abi::{Endpoint, Errno, Message, Name};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use sys::{Result, ipc};

/// Bit of the tags that callers make. Below it, others hold generation, sequence and entry.
pub const OWN_TAG: u64 = 1 << 63;
/// Bits of a tag that hold the entry.
const ENTRY_BITS: u32 = 16;
/// Bits that hold the sequence.
const SEQUENCE_BITS: u32 = 31;

/// The tag that a request is to have.
#[derive(Clone, Copy)]
enum Tag {
    /// None: it has no answer.
    None,
    /// One that no other request has, of this incarnation or another.
    Any,
    /// This one.
    Given(u64),
}

/// What happens to a request in flight when its server dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The successor gets it again: for requests that may be done twice.
    Yes,
    /// It fails with `EDEADSRCDST`.
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Queued,
    Sent,
    Done(Result<Message>),
}

struct Entry {
    /// With its tag in word 6.
    message: Message,
    state: State,
    repeat: Repeat,
    waker: Option<Waker>,
    /// Nobody waits for the answer (any more).
    abandoned: bool,
    /// The message has no answer.
    one_way: bool,
    /// Follows each time that the request is sent: it has been cancelled.
    cancellation: Option<Message>,
}

/// Whether requests can go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// It takes requests.
    Open,
    /// It does not wait now and will notify.
    Busy,
    /// It is dead; a successor is expected.
    Down,
    /// It is dead for good.
    GivenUp,
}

struct Table {
    /// The present incarnation, or the last one; `NONE` before the first.
    endpoint: Endpoint,
    link: Link,
    in_flight: usize,
    entries: Vec<Option<Entry>>,
    /// Entries that wait to be sent.
    queue: VecDeque<usize>,
    /// Makes tags differ from those of earlier requests.
    sequence: u32,
}

/// What the runtime knows of a peer.
pub struct PeerCore {
    name: Name,
    window: usize,
    table: RefCell<Table>,
    /// There is something to send at the end of the turn: here, and among all peers.
    waits: Cell<bool>,
    any_waits: Rc<Cell<bool>>,
}

/// A peer. Clones are the same peer.
#[derive(Clone)]
pub struct Peer {
    core: Rc<PeerCore>,
}

impl Peer {
    /// The service `name`, which gets at most `window` requests at a time: 1 for file systems, more for drivers that hold many.
    /// It need not be up yet.
    ///
    /// # Errors
    /// `ENOENT`: the system has no such service. Others of ds.
    pub fn connect(runtime: &Runtime, name: Name, window: usize) -> Result<Peer> {
        names::subscribe(name)?;
        let found = match names::lookup(name) {
            Err(Errno::EAGAIN) => None,
            found => Some(found?),
        };
        Ok(Peer { core: PeerCore::new(runtime, name, window, found) })
    }

    /// Asks. The request is in line when this returns; the result is awaited. When the request is dropped earlier, its answer is ignored.
    ///
    /// Awaiting gives the answer (whose own result is the caller's to look at), or `EDEADSRCDST`, or what the kernel refuses with.
    pub fn request(&self, message: Message, repeat: Repeat) -> Request {
        let at = self.core.add(message, repeat, Tag::Any);
        Request { core: self.core.clone(), at, finished: false }
    }

    /// [`Peer::request`] with a tag of the caller's making, by which the peer knows a request that it has carried out already.
    /// Bit 63 of such a tag is set, others never have it.
    pub fn request_tagged(&self, message: Message, repeat: Repeat, tag: u64) -> Request {
        debug_assert!(tag & OWN_TAG != 0, "the tag {tag:#x} may be that of another request");
        let at = self.core.add(message, repeat, Tag::Given(tag));
        Request { core: self.core.clone(), at, finished: false }
    }

    /// Sends a message that has no answer, behind those in line. It is lost when the peer dies.
    pub fn cast(&self, message: Message) {
        self.core.add(message, Repeat::No, Tag::None);
    }

    /// Sends `message` (`chardev::Cancel`) behind the request with this tag, and again behind it when the request is repeated to a successor.
    pub fn cancel(&self, tag: u64, message: Message) {
        self.core.cancel(tag, message);
    }

    /// Its name.
    pub fn name(&self) -> Name {
        self.core.name
    }

    /// The present incarnation (or the last one while it is down; `NONE` before the first): for grants. A grant to
    /// `Endpoint::current(endpoint.slot())` also serves its successor.
    pub fn endpoint(&self) -> Endpoint {
        self.core.table.borrow().endpoint
    }

    /// True while it is up.
    pub fn is_up(&self) -> bool {
        matches!(self.core.table.borrow().link, Link::Open | Link::Busy)
    }
}

/// A request that is queued or in flight. See [`Peer::request`].
pub struct Request {
    core: Rc<PeerCore>,
    at: usize,
    finished: bool,
}

impl Request {
    /// Its tag, for `chardev::Cancel`.
    pub fn tag(&self) -> u64 {
        self.core.table.borrow().entries[self.at].as_ref().map_or(0, |entry| entry.message.tag())
    }

    /// The answer, if the request has ended, for those who do not await it. Once.
    pub fn result(&mut self) -> Option<Result<Message>> {
        match Pin::new(self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

impl Future for Request {
    type Output = Result<Message>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Message>> {
        let request = &mut *self;
        let mut table = request.core.table.borrow_mut();
        let place = &mut table.entries[request.at];
        let entry = place.as_mut().expect("a request is polled again after its end");
        let State::Done(result) = entry.state else {
            entry.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        *place = None;
        request.finished = true;
        Poll::Ready(result)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.finished {
            self.core.abandon(self.at);
        }
    }
}

impl PeerCore {
    fn new(runtime: &Runtime, name: Name, window: usize, found: Option<Endpoint>) -> Rc<PeerCore> {
        let table = Table {
            endpoint: found.unwrap_or(Endpoint::NONE),
            link: if found.is_some() { Link::Open } else { Link::Down },
            in_flight: 0,
            entries: Vec::new(),
            queue: VecDeque::new(),
            sequence: 0,
        };
        let any_waits = runtime.inner.peers_wait.clone();
        let core = Rc::new(PeerCore { name, window, table: RefCell::new(table), waits: Cell::new(false), any_waits });
        runtime.inner.peers.borrow_mut().push(core.clone());
        core
    }

    pub(super) fn name(&self) -> Name {
        self.name
    }

    /// Its slot, as far as it is known.
    pub(super) fn slot(&self) -> Option<usize> {
        let endpoint = self.table.borrow().endpoint;
        (endpoint != Endpoint::NONE).then_some(endpoint.slot())
    }

    /// It has notified: it waits now.
    pub(super) fn is_ready(&self, from: Endpoint) {
        {
            let mut table = self.table.borrow_mut();
            if table.link != Link::Busy || table.endpoint != from {
                return;
            }
            table.link = Link::Open;
        }
        self.wait_for_turn_end();
    }

    /// It has come up or gone down.
    pub(super) fn changed(&self, event: &Event) {
        {
            let mut table = self.table.borrow_mut();
            if event.up {
                if table.endpoint != event.endpoint {
                    table.lose_what_was_sent();
                }
                table.endpoint = event.endpoint;
                table.link = Link::Open;
            } else {
                table.lose_what_was_sent();
                table.link = Link::Down;
                if event.endpoint == Endpoint::NONE {
                    table.link = Link::GivenUp;
                    table.fail_all();
                }
            }
        }
        self.wait_for_turn_end();
    }

    /// It has answered. False: the answer is to nothing that it was asked.
    pub(super) fn answered(&self, reply: &Message) -> bool {
        {
            let mut table = self.table.borrow_mut();
            if reply.source != table.endpoint {
                return false;
            }
            let Some(at) = table.find(reply.tag()) else { return false };
            table.in_flight -= 1;
            table.finish(at, Ok(*reply));
        }
        self.wait_for_turn_end();
        true
    }

    fn add(&self, mut message: Message, repeat: Repeat, tag: Tag) -> usize {
        let mut table = self.table.borrow_mut();
        let at = table.free_entry();
        message.words[6] = match tag {
            Tag::None => message.words[6],
            Tag::Any => table.next_tag(at),
            Tag::Given(tag) => tag,
        };
        let one_way = matches!(tag, Tag::None);
        table.entries[at] = Some(Entry::new(message, repeat, one_way));
        table.queue.push_back(at);
        if table.link == Link::GivenUp {
            table.fail_all();
        }
        self.wait_for_turn_end();
        at
    }

    fn cancel(&self, tag: u64, message: Message) {
        let mut table = self.table.borrow_mut();
        let is_it =
            |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.message.tag() == tag && !entry.one_way);
        let Some(at) = table.entries.iter().position(is_it) else { return };
        let Some(entry) = &mut table.entries[at] else { return };
        entry.cancellation = Some(message);
        if entry.state == State::Sent {
            table.put_first(message);
        }
        self.wait_for_turn_end();
    }

    fn abandon(&self, at: usize) {
        let mut table = self.table.borrow_mut();
        let Some(entry) = &mut table.entries[at] else { return };
        match entry.state {
            // The peer still has it: the entry is free when it answers or dies.
            State::Sent => entry.abandoned = true,
            State::Queued => {
                table.queue.retain(|other| *other != at);
                table.entries[at] = None;
            }
            State::Done(_) => table.entries[at] = None,
        }
    }

    fn wait_for_turn_end(&self) {
        self.waits.set(true);
        self.any_waits.set(true);
    }

    /// The end of a turn.
    #[inline]
    pub(super) fn pump_if_it_waits(&self) {
        if self.waits.take() {
            self.pump();
        }
    }

    /// Sends as much as can be sent.
    fn pump(&self) {
        let mut table = self.table.borrow_mut();
        while table.link == Link::Open && table.in_flight < self.window {
            let Some(&at) = table.queue.front() else { return };
            table.send(at);
        }
    }
}

impl Entry {
    fn new(message: Message, repeat: Repeat, one_way: bool) -> Entry {
        Entry { message, state: State::Queued, repeat, waker: None, abandoned: one_way, one_way, cancellation: None }
    }
}

impl Table {
    /// A message without answer, ahead of all in line.
    fn put_first(&mut self, message: Message) {
        let at = self.free_entry();
        self.entries[at] = Some(Entry::new(message, Repeat::No, true));
        self.queue.push_front(at);
    }

    fn free_entry(&mut self) -> usize {
        let free = self.entries.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        })
    }

    fn next_tag(&mut self, at: usize) -> u64 {
        self.sequence = (self.sequence + 1) % (1 << SEQUENCE_BITS);
        let generation = u64::from(sys::endpoint().generation()) % (1 << (63 - ENTRY_BITS - SEQUENCE_BITS));
        at as u64 | u64::from(self.sequence.max(1)) << ENTRY_BITS | generation << (ENTRY_BITS + SEQUENCE_BITS)
    }

    /// The entry of a request in flight.
    fn find(&self, tag: u64) -> Option<usize> {
        let is_it = |entry: &Option<Entry>| {
            entry.as_ref().is_some_and(|entry| entry.message.tag() == tag && entry.state == State::Sent)
        };
        if tag & OWN_TAG != 0 {
            return self.entries.iter().position(is_it);
        }
        let at = tag as usize % (1 << ENTRY_BITS);
        self.entries.get(at).filter(|entry| is_it(entry)).map(|_| at)
    }

    /// Tries to send the first of the queue.
    fn send(&mut self, at: usize) {
        let Some(entry) = &mut self.entries[at] else { return };
        match ipc::send_nonblocking(self.endpoint, &entry.message) {
            Ok(()) => {
                self.queue.pop_front();
                if entry.one_way {
                    self.entries[at] = None;
                } else {
                    entry.state = State::Sent;
                    self.in_flight += 1;
                    if let Some(cancellation) = entry.cancellation {
                        self.put_first(cancellation);
                    }
                }
            }
            Err(Errno::ENOTREADY) => self.link = Link::Busy,
            Err(Errno::EDEADSRCDST) => {
                self.lose_what_was_sent();
                self.find_successor();
            }
            Err(error) => {
                self.queue.pop_front();
                self.finish(at, Err(error));
            }
        }
    }

    /// The successor may be there before the event that tells of it; else the event comes.
    fn find_successor(&mut self) {
        match sys::thread::who_is(self.endpoint.slot()) {
            Ok(successor) if successor != self.endpoint => self.endpoint = successor,
            _ => self.link = Link::Down,
        }
    }

    /// The peer has died: requests in flight are repeated before the queued ones, or fail.
    fn lose_what_was_sent(&mut self) {
        self.in_flight = 0;
        for at in (0..self.entries.len()).rev() {
            let Some(entry) = &mut self.entries[at] else { continue };
            if entry.state != State::Sent {
                continue;
            }
            if entry.repeat == Repeat::Yes && !entry.abandoned {
                entry.state = State::Queued;
                self.queue.push_front(at);
            } else {
                self.finish(at, Err(Errno::EDEADSRCDST));
            }
        }
    }

    /// Nothing in line will ever be sent.
    fn fail_all(&mut self) {
        while let Some(at) = self.queue.pop_front() {
            self.finish(at, Err(Errno::EDEADSRCDST));
        }
    }

    fn finish(&mut self, at: usize, result: Result<Message>) {
        let Some(entry) = &mut self.entries[at] else { return };
        if entry.abandoned {
            self.entries[at] = None;
            return;
        }
        entry.state = State::Done(result);
        if let Some(waker) = entry.waker.take() {
            waker.wake();
        }
    }
}
