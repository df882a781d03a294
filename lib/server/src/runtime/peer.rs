//! Peers: file systems and drivers to which a server sends asynchronous requests. The file is long because the states of a request and
//! what changes them belong together.
//!
//! Requests are queued, sent by `SENDNB` at the end of the turn as far as the window allows, and completed in any order by their tag. A
//! task awaits its reply, or a [`Continuation`] takes it ([ADR 83](../../../../docs/adr/0083-requests-without-a-task.md)).
//! A peer that is not waiting notifies the server when it is. When it dies, each request in flight is repeated to the successor or
//! fails with `EDEADSRCDST`, as the request says; queued requests wait for the successor. When rs gives the service up, all
//! requests fail.

use super::Runtime;
use super::progress::Progress;
use crate::names::{self, Event};
use crate::runtime::agenda::Agenda;
use abi::{Endpoint, Errno, Message, Name};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use sys::{Result, ipc};

/// Bit of tags chosen by callers. All other tags consist of generation, sequence and entry.
pub const OWN_TAG: u64 = 1 << 63;
/// Incarnations that may stall over one request.
const MAX_STALLS: u8 = 2;
/// Bits of a tag that hold the entry. A process that ends may drop as many nodes at once as there are open files.
const ENTRY_BITS: u32 = 18;
/// Bits that hold the sequence.
const SEQUENCE_BITS: u32 = 29;

/// Tag of a request.
#[derive(Clone, Copy)]
enum Tag {
    /// No tag: the message has no reply.
    None,
    /// A tag that no other request has, of this incarnation or another.
    Any,
    /// This tag.
    Given(u64),
}

/// Treatment of a request in flight when its server dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It is repeated to the successor: for idempotent requests.
    Yes,
    /// It fails with `EDEADSRCDST`.
    No,
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Awaited,
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Queued,
    Sent,
    Done(Result<Message>),
}

/// What goes on when a request has its reply, without a task that waits for it.
pub trait Continuation {
    /// Takes the reply (whose result it checks), `EDEADSRCDST`, or the kernel's error. It is called between the messages of a turn, or from
    /// a task.
    fn replied(self: Box<Self>, reply: Result<Message>);
}

/// Who is told that a request is done.
enum Next {
    Nobody,
    Task(Waker),
    Continuation(Box<dyn Continuation>),
}

struct Entry {
    /// With its tag in word 6.
    message: Message,
    state: State,
    repeat: Repeat,
    next: Next,
    /// Its reply is ignored, and it is not repeated.
    abandoned: bool,
    reply: Reply,
    /// The message has no reply.
    one_way: bool,
    /// Sent after each transmission of the request, which has been cancelled. In a box, because few are, and entries are written whole.
    cancellation: Option<Box<Message>>,
    /// Incarnations that have stalled over it.
    stalls: u8,
}

/// State of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// It accepts requests.
    Open,
    /// It is busy and will notify.
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
    /// No entry before this one is free.
    first_free: usize,
    /// Queued entries.
    queue: VecDeque<usize>,
    /// Sequence number, which makes tags differ from those of earlier requests.
    sequence: u32,
    progress: Progress,
    /// Tasks that are about to begin: what follows a request that fails at the end of a turn goes on in one.
    agenda: Rc<Agenda>,
}

/// The runtime's record of a peer.
pub struct PeerCore {
    name: Name,
    window: usize,
    table: RefCell<Table>,
    /// The slot of all incarnations; `None` before the first. Every reply is looked up by it.
    slot: Cell<Option<usize>>,
    /// Its place among the runtime's peers.
    index: usize,
    /// Whether it has messages to send at the end of the turn.
    waits: Cell<bool>,
    agenda: Rc<Agenda>,
}

/// A peer. Clones share it.
#[derive(Clone)]
pub struct Peer {
    core: Rc<PeerCore>,
}

impl Peer {
    /// Connects to the service `name`, with at most `window` requests in flight.
    /// The service need not be up yet.
    ///
    /// # Errors
    /// `ENOENT`: no such service in the system; others of ds.
    pub fn connect(runtime: &Runtime, name: Name, window: usize) -> Result<Peer> {
        names::subscribe(name)?;
        let found = match names::lookup(name) {
            Err(Errno::EAGAIN) => None,
            found => Some(found?),
        };
        Ok(Peer { core: PeerCore::new(runtime, name, window, found) })
    }

    /// Queues a request, whose result is awaited. If it is dropped earlier, its reply is ignored.
    ///
    /// Awaiting returns the reply (the caller checks its result), `EDEADSRCDST`, or the kernel's error.
    pub fn request(&self, message: Message, repeat: Repeat) -> Request {
        let at = self.core.add(message, repeat, Tag::Any, Reply::Awaited);
        Request { core: self.core.clone(), at, finished: false }
    }

    /// Queues a request with the caller's tag, by which the peer recognises a request that it has executed already.
    /// Bit 63 is set in such tags only.
    pub fn request_tagged(&self, message: Message, repeat: Repeat, tag: u64) -> Request {
        debug_assert!(tag & OWN_TAG != 0, "the tag {tag:#x} lacks the bit of callers' tags");
        let at = self.core.add(message, repeat, Tag::Given(tag), Reply::Awaited);
        Request { core: self.core.clone(), at, finished: false }
    }

    /// Queues a request, with the caller's tag if there is one, as [`Peer::request_tagged`] does; `next` gets what awaiting it would return.
    pub fn request_then(&self, message: Message, repeat: Repeat, tag: Option<u64>, next: Box<dyn Continuation>) {
        debug_assert!(tag.is_none_or(|tag| tag & OWN_TAG != 0), "the tag {tag:x?} lacks the bit of callers' tags");
        let tag = tag.map_or(Tag::Any, Tag::Given);
        self.core.add_with(message, repeat, tag, Reply::Awaited, Next::Continuation(next));
    }

    /// Queues a message without reply. It is lost if the peer dies.
    pub fn cast(&self, message: Message) {
        self.core.add(message, Repeat::No, Tag::None, Reply::Ignored);
    }

    /// Queues a request whose reply is ignored; it takes no task. It is repeated to a successor.
    pub fn tell(&self, message: Message) {
        self.core.add(message, Repeat::Yes, Tag::Any, Reply::Ignored);
    }

    /// Sends `message` (`chardev::Cancel`) behind the request with this tag, and again behind it when the request is repeated to a successor.
    pub fn cancel(&self, tag: u64, message: Message) {
        self.core.cancel(tag, message);
    }

    /// Returns the peer's name.
    pub fn name(&self) -> Name {
        self.core.name
    }

    /// Returns the present incarnation (the last one while it is down; `NONE` before the first), for grants. A grant to
    /// `Endpoint::current(endpoint.slot())` also serves its successor.
    pub fn endpoint(&self) -> Endpoint {
        self.core.table.borrow().endpoint
    }

    /// Looks whether the peer makes progress, once a period: one that has answered none of its requests for [`crate::STALL_PERIODS`] calls
    /// has stalled, and is returned. A request over which two incarnations have stalled is not repeated.
    pub fn check_progress(&self) -> Option<Endpoint> {
        self.core.check_progress()
    }

    /// Returns whether the peer is up.
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
    /// Returns the request's tag, for `chardev::Cancel`.
    pub fn tag(&self) -> u64 {
        self.core.table.borrow().entries[self.at].as_ref().map_or(0, |entry| entry.message.tag())
    }

    /// Takes the reply of a completed request without awaiting it. Returns it once.
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
        let entry = table.entries[request.at].as_mut().expect("a completed request was polled again");
        let State::Done(result) = entry.state else {
            entry.next = Next::Task(context.waker().clone());
            return Poll::Pending;
        };
        table.free(request.at);
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
    #[expect(clippy::disallowed_methods, reason = "one of each peer: from the heap's reserve")]
    fn new(runtime: &Runtime, name: Name, window: usize, found: Option<Endpoint>) -> Rc<PeerCore> {
        let table = Table {
            endpoint: found.unwrap_or(Endpoint::NONE),
            link: if found.is_some() { Link::Open } else { Link::Down },
            in_flight: 0,
            entries: Vec::new(),
            first_free: 0,
            queue: VecDeque::new(),
            sequence: 0,
            progress: Progress::default(),
            agenda: runtime.inner.agenda.clone(),
        };
        let (waits, agenda) = (Cell::new(false), runtime.inner.agenda.clone());
        let slot = Cell::new(found.map(Endpoint::slot));
        let mut peers = runtime.inner.peers.borrow_mut();
        let index = peers.len();
        let core = Rc::new(PeerCore { name, window, table: RefCell::new(table), slot, index, waits, agenda });
        peers.push(core.clone());
        core
    }

    pub(super) fn name(&self) -> Name {
        self.name
    }

    /// Returns the peer's slot, if known.
    pub(super) fn slot(&self) -> Option<usize> {
        self.slot.get()
    }

    /// Handles the peer's notification: it accepts requests again.
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

    /// Handles the event that the peer came up or went down.
    pub(super) fn changed(&self, event: &Event) {
        {
            let mut table = self.table.borrow_mut();
            if event.up {
                if table.endpoint != event.endpoint {
                    table.lose_what_was_sent();
                }
                table.endpoint = event.endpoint;
                table.link = Link::Open;
                self.slot.set(Some(event.endpoint.slot()));
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

    /// Handles a reply. Returns false if no request has its tag.
    pub(super) fn answered(&self, reply: &Message) -> bool {
        let next = {
            let mut table = self.table.borrow_mut();
            if reply.source != table.endpoint {
                return false;
            }
            let Some(at) = table.find(reply.tag()) else { return false };
            table.in_flight -= 1;
            table.progress.answered();
            let next = table.finish(at, Ok(*reply));
            if !table.queue.is_empty() {
                self.wait_for_turn_end();
            }
            next
        };
        if let Some(next) = next {
            next.replied(Ok(*reply));
        }
        true
    }

    pub(super) fn check_progress(&self) -> Option<Endpoint> {
        let table = &mut *self.table.borrow_mut();
        let is_asked = table.in_flight > 0 && matches!(table.link, Link::Open | Link::Busy);
        if !table.progress.has_stalled(is_asked) {
            return None;
        }
        let in_flight = table.entries.iter_mut().flatten().filter(|entry| entry.state == State::Sent);
        in_flight.for_each(|entry| entry.stalls = entry.stalls.saturating_add(1));
        Some(table.endpoint)
    }

    fn add(&self, message: Message, repeat: Repeat, tag: Tag, reply: Reply) -> usize {
        self.add_with(message, repeat, tag, reply, Next::Nobody)
    }

    #[expect(clippy::disallowed_methods, reason = "bounded by the calls in progress: from the heap's reserve")]
    fn add_with(&self, mut message: Message, repeat: Repeat, tag: Tag, reply: Reply, next: Next) -> usize {
        let mut table = self.table.borrow_mut();
        let at = table.free_entry();
        message.words[6] = match tag {
            Tag::None => message.words[6],
            Tag::Any => table.next_tag(at),
            Tag::Given(tag) => tag,
        };
        let one_way = matches!(tag, Tag::None);
        table.entries[at] = Some(Entry { reply, next, ..Entry::new(message, repeat, one_way) });
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
        entry.cancellation = Some(Box::new(message));
        if entry.state == State::Sent {
            table.put_first(message);
        }
        self.wait_for_turn_end();
    }

    fn abandon(&self, at: usize) {
        let mut table = self.table.borrow_mut();
        let Some(entry) = &mut table.entries[at] else { return };
        match entry.state {
            // The peer still holds the request: the entry is freed when it replies or dies.
            State::Sent => entry.abandoned = true,
            State::Queued => {
                table.queue.retain(|other| *other != at);
                table.free(at);
            }
            State::Done(_) => table.free(at),
        }
    }

    fn wait_for_turn_end(&self) {
        self.waits.set(true);
        self.agenda.add_peer(self.index);
    }

    /// Ends a turn.
    #[inline]
    pub(super) fn pump_if_it_waits(&self) {
        if self.waits.take() {
            self.pump();
        }
    }

    /// Sends queued requests while the peer accepts them.
    fn pump(&self) {
        let mut table = self.table.borrow_mut();
        while table.link == Link::Open && table.in_flight < self.window {
            let Some(&at) = table.queue.front() else { return };
            table.send(at);
        }
    }

    /// Ends a turn in which only this peer has messages to send: the last of them goes in the call that receives the next message into
    /// `incoming`. Returns whether there is one.
    #[inline]
    pub(super) fn pump_and_receive(&self, incoming: &mut Message) -> bool {
        self.waits.set(false);
        let mut table = self.table.borrow_mut();
        while table.link == Link::Open && table.in_flight < self.window {
            let Some(&at) = table.queue.front() else { return false };
            match &table.entries[at] {
                Some(entry) if table.queue.len() == 1 && entry.cancellation.is_none() => {
                    let received = ipc::request_receive(table.endpoint, &entry.message, Endpoint::ANY);
                    let sent = received.map(|message| *incoming = message);
                    table.sent(at, sent);
                    if sent.is_ok() {
                        return true;
                    }
                }
                _ => table.send(at),
            }
        }
        false
    }
}

impl Entry {
    fn new(message: Message, repeat: Repeat, one_way: bool) -> Entry {
        Entry {
            message,
            state: State::Queued,
            repeat,
            next: Next::Nobody,
            abandoned: one_way,
            reply: Reply::Awaited,
            one_way,
            cancellation: None,
            stalls: 0,
        }
    }
}

impl Table {
    /// Sends a message without reply, ahead of all queued ones.
    #[expect(clippy::disallowed_methods, reason = "bounded by the tasks: from the heap's reserve")]
    fn put_first(&mut self, message: Message) {
        let at = self.free_entry();
        self.entries[at] = Some(Entry::new(message, Repeat::No, true));
        self.queue.push_front(at);
    }

    #[expect(clippy::disallowed_methods, reason = "bounded by the tasks: from the heap's reserve")]
    fn free_entry(&mut self) -> usize {
        let free = self.entries[self.first_free..].iter().position(Option::is_none);
        self.first_free += free.unwrap_or(self.entries.len() - self.first_free);
        if free.is_none() {
            self.entries.push(None);
        }
        self.first_free
    }

    fn free(&mut self, at: usize) {
        self.entries[at] = None;
        self.first_free = self.first_free.min(at);
    }

    fn next_tag(&mut self, at: usize) -> u64 {
        self.sequence = (self.sequence + 1) % (1 << SEQUENCE_BITS);
        let generation = u64::from(sys::endpoint().generation()) % (1 << (63 - ENTRY_BITS - SEQUENCE_BITS));
        at as u64 | u64::from(self.sequence.max(1)) << ENTRY_BITS | generation << (ENTRY_BITS + SEQUENCE_BITS)
    }

    /// Returns the entry of a request in flight.
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

    /// Tries to send the first queued request.
    fn send(&mut self, at: usize) {
        if let Some(entry) = &self.entries[at] {
            let result = ipc::send_nonblocking(self.endpoint, &entry.message);
            self.sent(at, result);
        }
    }

    /// The first queued request has been sent, or refused.
    fn sent(&mut self, at: usize, result: Result<()>) {
        let Some(entry) = &mut self.entries[at] else { return };
        match result {
            Ok(()) => {
                self.queue.pop_front();
                if entry.one_way {
                    self.free(at);
                } else {
                    entry.state = State::Sent;
                    self.in_flight += 1;
                    if let Some(cancellation) = entry.cancellation.as_deref().copied() {
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
                self.fail(at, error);
            }
        }
    }

    /// Looks for a successor, which may be up before ds's event of it has arrived.
    fn find_successor(&mut self) {
        match sys::thread::who_is(self.endpoint.slot()) {
            Ok(successor) if successor != self.endpoint => self.endpoint = successor,
            _ => self.link = Link::Down,
        }
    }

    /// Handles the peer's death: requests in flight are repeated before the queued ones, or fail.
    #[expect(clippy::disallowed_methods, reason = "bounded by the tasks: from the heap's reserve")]
    fn lose_what_was_sent(&mut self) {
        self.in_flight = 0;
        for at in (0..self.entries.len()).rev() {
            let Some(entry) = &mut self.entries[at] else { continue };
            if entry.state != State::Sent {
                continue;
            }
            if entry.repeat == Repeat::Yes && !entry.abandoned && entry.stalls < MAX_STALLS {
                entry.state = State::Queued;
                self.queue.push_front(at);
            } else {
                self.fail(at, Errno::EDEADSRCDST);
            }
        }
    }

    /// Fails all queued requests.
    fn fail_all(&mut self) {
        while let Some(at) = self.queue.pop_front() {
            self.fail(at, Errno::EDEADSRCDST);
        }
    }

    /// A request has failed: what follows goes on later in this turn or, if it has ended, in the next one.
    #[cold]
    fn fail(&mut self, at: usize, error: Errno) {
        if let Some(next) = self.finish(at, Err(error)) {
            self.agenda.spawn(Box::pin(async move { next.replied(Err(error)) }));
        }
    }

    /// A request is done. Returns the continuation that gets the result.
    fn finish(&mut self, at: usize, result: Result<Message>) -> Option<Box<dyn Continuation>> {
        let entry = self.entries[at].as_mut()?;
        if entry.abandoned || entry.reply == Reply::Ignored {
            self.free(at);
            return None;
        }
        let next = mem::replace(&mut entry.next, Next::Nobody);
        if let Next::Continuation(next) = next {
            self.free(at);
            return Some(next);
        }
        entry.state = State::Done(result);
        if let Next::Task(waker) = next {
            waker.wake();
        }
        None
    }
}
