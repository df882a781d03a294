//! The executor of servers with many requests in progress: one thread, and tasks that wait without blocking the others.
//!
//! A request is handled at once, or becomes a task in a slot of [`tasks::Tasks`]: see [`Step`]. A request that is completed in its
//! own turn is answered by the `REPLYREC` that receives the next message. Replies to asynchronous clients that are not waiting
//! are kept in the [`outbox`], since such a server never waits for any process but vm, ds and rs; and for vfs, to take a reply: vfs
//! itself waits for none of its servers.
//!
//! The time from one message to the next is a *turn*. Replies and requests to peers are sent at its end, after
//! [`Handlers::before_sending`]: a server with preserved state commits the changes of the turn there, so that no process sees a
//! result that a crash could undo. Most turns leave one reply and nothing else to do: they take the fast path ([`Server::turn`]).

mod agenda;
pub mod channel;
pub mod lock;
pub mod oneshot;
mod outbox;
pub mod peer;
pub mod progress;
mod ready;
mod tasks;
pub mod timers;
pub mod wait;

use crate::step::Step;
use crate::{admission, names, recent, service, update};
use abi::endpoint::slot;
use abi::kernel::Notify;
use abi::{Endpoint, Errno, Message, message::LINUX_LABELS};
use agenda::{Agenda, Waiting};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::Future;
use outbox::Outbox;
use peer::PeerCore;
use sys::{ipc, time};
use tasks::Tasks;
use timers::{Sleep, Timers};

/// What a server with a runtime does for each message. None of it may wait but the tasks.
pub trait Handlers {
    /// Outcome of a request.
    type Outcome;

    /// Handles a request.
    fn request(&self, message: &Message) -> Step<Self::Outcome>;

    /// Handles a call of a program: a request whose label is below `LINUX_LABELS`.
    #[inline]
    fn call(&self, message: &Message) -> Step<Self::Outcome> {
        self.request(message)
    }

    /// Makes the reply to a request of its outcome.
    fn reply(&self, outcome: Self::Outcome) -> Message;

    /// Handles a notification of another service, or, with its hooks, of HARDWARE.
    fn notified(&self, from: Endpoint, notify: Notify) {
        let _ = (from, notify);
    }

    /// Ends a turn: replies with these results, each their first word, are about to be sent.
    fn before_sending(&self, results: impl Iterator<Item = (Endpoint, u64)>) {
        let _ = results;
    }
}

struct Inner {
    timers: RefCell<Timers>,
    outbox: RefCell<Outbox>,
    peers: RefCell<Vec<Rc<PeerCore>>>,
    agenda: Rc<Agenda>,
}

/// The executor. Clones share it.
#[derive(Clone)]
pub struct Runtime {
    inner: Rc<Inner>,
}

impl Default for Runtime {
    fn default() -> Self {
        Runtime::new()
    }
}

impl Runtime {
    /// Makes an executor without tasks.
    pub fn new() -> Runtime {
        let inner = Inner {
            timers: RefCell::default(),
            outbox: RefCell::default(),
            peers: RefCell::default(),
            agenda: Rc::default(),
        };
        Runtime { inner: Rc::new(inner) }
    }

    /// Starts a task without a client. It runs when the present one waits, and a slot is free.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.inner.agenda.spawn(Box::pin(task));
    }

    /// Waits until this monotonic time.
    pub fn sleep_until(&self, deadline_ns: u64) -> Sleep {
        Sleep { runtime: self.clone(), deadline_ns, key: None }
    }

    /// Waits for this duration.
    pub fn sleep_ns(&self, duration_ns: u64) -> Sleep {
        self.sleep_until(time::now_ns().saturating_add(duration_ns))
    }

    /// Replies to `request` without blocking, for handlers that reply before they end, or to several requests.
    pub fn reply(&self, request: &Message, reply: &Message) {
        self.answer(request.source, *reply);
    }

    /// Sends a reply at the end of the turn.
    #[inline(always)]
    pub fn answer(&self, to: Endpoint, message: Message) {
        self.inner.agenda.answer(to, message);
    }

    /// Ends a turn: sends everything but one message, which goes with the call that receives the next one: the last reply, or a request if
    /// there is none.
    fn send_all(&self, handlers: &impl Handlers) {
        let inner = &*self.inner;
        handlers.before_sending(inner.agenda.answers().iter().map(|(to, reply)| (*to, reply.words[0])));
        let mut answers = inner.agenda.answers();
        if !answers.is_empty() && inner.agenda.waiting() != Waiting::None {
            inner.reply_to_peers(&mut answers);
            self.send_requests();
        }
        if answers.len() > 1 || answers.last().is_some_and(|(to, message)| !goes_last(*to, message)) {
            inner.send_early(&mut answers);
        }
    }

    /// Sends the remaining message and receives the next one into `incoming`. False: there is none yet, and the turn has to be ended again.
    #[inline(always)]
    fn next_message(&self, incoming: &mut Message) -> bool {
        let mut answers = self.inner.agenda.answers();
        let Some((to, reply)) = answers.last() else {
            return self.ask_and_receive(incoming) || take_in(incoming, ipc::receive(Endpoint::ANY));
        };
        let is_received = match is_tagged(*to, reply) {
            true => take_in(incoming, ipc::send_receive(*to, reply, Endpoint::ANY)),
            false => take_in(incoming, ipc::reply_receive(*to, reply, Endpoint::ANY)),
        };
        answers.clear();
        is_received
    }

    /// Reports to rs that the server is ready, then serves forever.
    pub fn serve(&self, handlers: impl Handlers) -> ! {
        crate::ready();
        let mut server = Server::new(self, handlers);
        let mut incoming = Message::default();
        server.end_turn(&mut incoming);
        loop {
            server.turn(&mut incoming);
        }
    }

    /// Handles a notification.
    fn notified(&self, from: Endpoint, notify: Notify) {
        match from {
            Endpoint::CLOCK => self.inner.timers.borrow_mut().fire(notify.time_ns),
            Endpoint::HARDWARE => {}
            _ => {
                service::answer_heartbeat(from);
                self.inner.outbox.borrow_mut().flush(from);
                self.peer_notified(from);
            }
        }
    }

    /// Handles a notification of ds (services came up or went down) or of a peer that accepts requests.
    pub(crate) fn peer_notified(&self, from: Endpoint) {
        if from.slot() == slot::DS {
            while let Some(event) = names::next_event() {
                self.service_changed(&event);
            }
        } else if let Some(peer) = self.peer_at(from) {
            peer.is_ready(from);
        }
    }

    /// Sends the requests that peers accept.
    #[inline]
    pub(crate) fn send_requests(&self) {
        let peers = self.inner.peers.borrow();
        match self.inner.agenda.take_waiting() {
            Waiting::None => {}
            Waiting::One(index) => peers[index].pump_if_it_waits(),
            Waiting::Several => peers.iter().for_each(|peer| peer.pump_if_it_waits()),
        }
    }

    /// Sends the requests that peers accept, the last one with a call that receives the next message into `incoming`. Returns whether there
    /// is one.
    #[inline]
    fn ask_and_receive(&self, incoming: &mut Message) -> bool {
        if let Waiting::One(index) = self.inner.agenda.waiting() {
            self.inner.agenda.take_waiting();
            return self.inner.peers.borrow()[index].pump_and_receive(incoming);
        }
        self.send_requests();
        false
    }

    /// Handles the event that a service came up or went down.
    fn service_changed(&self, event: &names::Event) {
        let peer = self.inner.peers.borrow().iter().find(|peer| peer.name() == event.name).cloned();
        if let Some(peer) = peer {
            peer.changed(event);
        }
    }

    /// Handles a reply of a peer. Returns false if the sender is none.
    pub(crate) fn answered(&self, reply: &Message) -> bool {
        self.peer_at(reply.source).is_some_and(|peer| peer.answered(reply))
    }

    fn peer_at(&self, endpoint: Endpoint) -> Option<Rc<PeerCore>> {
        self.inner.peers.borrow().iter().find(|peer| peer.slot() == Some(endpoint.slot())).cloned()
    }

    /// Ends the end of a turn.
    fn settle(&self) {
        self.inner.agenda.settle(self.inner.timers.borrow().is_stale());
    }

    /// Sets the kernel's alarm to the first deadline, unless it is set so.
    fn arm(&self) {
        let change = self.inner.timers.borrow_mut().alarm_to_set();
        if let Some(deadline_ns) = change {
            time::set_alarm(deadline_ns).expect("a server with timers needs the kernel call SetAlarm");
        }
    }
}

impl Inner {
    /// Sends the replies to services that wait for them, before requests to the same ones: a service that waits for a reply takes whatever
    /// comes from its server.
    fn reply_to_peers(&self, answers: &mut Vec<(Endpoint, Message)>) {
        answers.retain(|(to, message)| {
            let waits = to.is_service() && !is_tagged(*to, message);
            if waits {
                // An error means that the client has died.
                let _ = ipc::send_nonblocking(*to, message);
            }
            !waits
        });
    }

    /// Sends the replies that do not go with the call that receives the next message.
    #[cold]
    #[expect(clippy::disallowed_methods, reason = "the room is there")]
    fn send_early(&self, answers: &mut Vec<(Endpoint, Message)>) {
        let last = answers.pop_if(|(to, message)| goes_last(*to, message));
        for (to, message) in answers.drain(..) {
            if is_tagged(to, &message) {
                self.outbox.borrow_mut().send(to, &message);
            } else {
                // An error means that the client has died.
                let _ = ipc::send_nonblocking(to, &message);
            }
        }
        answers.extend(last);
    }
}

/// Takes in what a call has received, if it has. Word by word from the registers: a result that is looked at later would have each stored
/// twice.
#[inline(always)]
fn take_in(incoming: &mut Message, received: sys::Result<Message>) -> bool {
    received.map(|message| *incoming = message).is_ok()
}

/// Returns whether `REPLYREC` may send the reply: a client with a tag may not be waiting and would lose it.
#[inline]
fn is_tagged(to: Endpoint, message: &Message) -> bool {
    message.tag() != 0 && to.is_service()
}

/// Returns whether a reply may go with the call that receives the next message: by `REPLYREC`, or by `SENDWAIT` to vfs.
#[inline]
fn goes_last(to: Endpoint, message: &Message) -> bool {
    !is_tagged(to, message) || to.slot() == slot::VFS
}

/// The loop of [`Runtime::serve`], one turn at a time.
struct Server<'a, H: Handlers> {
    runtime: &'a Runtime,
    /// The runtime's, two references nearer: each turn looks at it.
    agenda: &'a Agenda,
    handlers: H,
    tasks: Tasks<H::Outcome>,
}

impl<'a, H: Handlers> Server<'a, H> {
    fn new(runtime: &'a Runtime, handlers: H) -> Self {
        Server { runtime, agenda: &runtime.inner.agenda, handlers, tasks: Tasks::new() }
    }

    /// Handles a message and receives the next one into its place. If a reply is all that the turn has left to do, it is sent at once.
    #[inline(always)]
    fn turn(&mut self, message: &mut Message) {
        let to = message.source;
        let reply = self.take_in(message).map(|outcome| self.handlers.reply(outcome));
        match reply {
            Some(reply) if !self.tasks.is_any_ready() && !self.agenda.has_items() && !is_tagged(to, &reply) => {
                self.handlers.before_sending(core::iter::once((to, reply.words[0])));
                if !take_in(message, ipc::reply_receive(to, &reply, Endpoint::ANY)) {
                    self.end_turn(message);
                }
            }
            Some(reply) => self.end_turn_with(to, &reply, message),
            None => self.end_turn(message),
        }
    }

    /// Ends a turn that leaves a reply and more. A function of its own: so the fast path has the registers.
    #[inline(never)]
    fn end_turn_with(&mut self, to: Endpoint, reply: &Message, incoming: &mut Message) {
        self.runtime.answer(to, *reply);
        self.end_turn(incoming);
    }

    /// Runs all ready tasks, sends what has come of the turn, and receives the next message into `incoming`.
    #[inline(never)]
    fn end_turn(&mut self, incoming: &mut Message) {
        loop {
            self.leave();
            if self.runtime.next_message(incoming) {
                break;
            }
        }
        self.runtime.settle();
    }

    /// Runs all ready tasks, and sends what has come of the turn but for one message.
    fn leave(&mut self) {
        self.run_ready();
        self.runtime.arm();
        self.runtime.send_all(&self.handlers);
    }

    /// Handles a message. Returns the outcome of a request that is done. Inlined: a call costs every request 10 ticks.
    #[inline(always)]
    fn take_in(&mut self, message: &Message) -> Option<H::Outcome> {
        if message.label < LINUX_LABELS {
            // Nothing that `is_for_handlers` looks for.
            self.begin(message, H::call)
        } else if self.is_for_handlers(message) {
            self.begin(message, H::request)
        } else {
            None
        }
    }

    /// Handles a notification, a reply that a task waits for, and what rs asks of every server. Returns true for everything else.
    #[inline(always)]
    fn is_for_handlers(&mut self, message: &Message) -> bool {
        if message.label == Notify::LABEL {
            let notify = Notify::from_message(message);
            self.runtime.notified(message.source, notify);
            self.handlers.notified(message.source, notify);
            return false;
        }
        if message.is_reply() && self.runtime.answered(message) {
            return false;
        }
        if update::is_announced(message) {
            update::wait_for_successor(message);
        }
        match admission::obey(message) {
            Some(reply) => self.runtime.reply(message, &reply),
            None => return true,
        }
        false
    }

    /// Begins a request that `handle` handles, if there is memory for it.
    #[inline(always)]
    fn begin(
        &mut self,
        message: &Message,
        handle: impl FnOnce(&H, &Message) -> Step<H::Outcome>,
    ) -> Option<H::Outcome> {
        recent::note(message);
        if let Some(reply) = admission::refuse(message, admission::is_exempt) {
            self.runtime.reply(message, &reply);
            return None;
        }
        match handle(&self.handlers, message) {
            Step::Done(outcome) => Some(outcome),
            Step::Later => None,
            Step::Task(task) => self.tasks.begin(message.source, task).unwrap_or_else(|tasks::Full| {
                self.runtime.reply(message, &message.reply(Err(Errno::EAGAIN)));
                None
            }),
        }
    }

    fn run_ready(&mut self) {
        let inner = &*self.runtime.inner;
        loop {
            if !inner.agenda.spawned().is_empty() {
                self.begin_spawned();
            }
            match self.tasks.run_next() {
                Some(tasks::Ran::Finished(to, outcome)) => self.runtime.answer(to, self.handlers.reply(outcome)),
                Some(tasks::Ran::Waits) => {}
                None if inner.agenda.spawned().is_empty() || self.tasks.room() == 0 => return,
                None => {}
            }
        }
    }

    /// Begins tasks without a client, oldest first, as long as slots are free. The others wait for one: so programs, each of which may be the
    /// cause of several, cannot bring the server down.
    fn begin_spawned(&mut self) {
        let mut spawned = self.runtime.inner.agenda.spawned();
        let count = spawned.len().min(self.tasks.room());
        spawned.drain(..count).for_each(|task| self.tasks.begin_background(task));
    }
}

#[cfg(test)]
mod tests;
