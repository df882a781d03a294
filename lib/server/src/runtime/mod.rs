//! The executor of servers with many requests in hand: one thread, tasks that wait without keeping the others.
//!
//! A request becomes a task in a slot of [`tasks::Tasks`], which is used again without new memory. A task that finishes at its first
//! poll is answered by the `REPLYREC` that receives the next message. Answers to asynchronous askers who do not wait just now
//! are kept in the [`outbox`], since a server of this kind never waits for anybody but vm, ds and rs.
//!
//! The time from one message to the next is a *turn*. Answers and requests to peers leave at its end, after the hook of
//! [`Runtime::before_sending`]: a server that preserves its state makes what the turn has changed last there, so that nobody hears of
//! anything that a death could undo.

pub mod channel;
pub mod lock;
pub mod oneshot;
mod outbox;
pub mod peer;
mod ready;
mod tasks;
pub mod timers;
pub mod wait;

use crate::{names, recent, service, update};
use abi::endpoint::slot;
use abi::kernel::Notify;
use abi::{Endpoint, Errno, Message};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use outbox::Outbox;
use peer::PeerCore;
use sys::{ipc, time};
use tasks::Tasks;
use timers::{Sleep, Timers};

/// A task that answers nobody.
type Background = Pin<Box<dyn Future<Output = ()>>>;

/// What happens at the end of a turn, before its answers leave.
type BeforeSending = Box<dyn Fn(&[(Endpoint, Message)])>;

struct Inner {
    timers: RefCell<Timers>,
    spawned: RefCell<Vec<Background>>,
    outbox: RefCell<Outbox>,
    peers: RefCell<Vec<Rc<PeerCore>>>,
    /// A peer has something to send.
    peers_wait: Rc<Cell<bool>>,
    /// Answers of this turn.
    answers: RefCell<Vec<(Endpoint, Message)>>,
    before_sending: RefCell<Option<BeforeSending>>,
}

/// The executor. Clones are the same executor.
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
    /// An executor with nothing to do.
    pub fn new() -> Runtime {
        let inner = Inner {
            timers: RefCell::default(),
            spawned: RefCell::default(),
            outbox: RefCell::default(),
            peers: RefCell::default(),
            peers_wait: Rc::default(),
            answers: RefCell::default(),
            before_sending: RefCell::default(),
        };
        Runtime { inner: Rc::new(inner) }
    }

    /// Starts a task that answers nobody. It runs when the present one waits.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.inner.spawned.borrow_mut().push(Box::pin(task));
    }

    /// Waits until this monotonic time.
    pub fn sleep_until(&self, deadline_ns: u64) -> Sleep {
        Sleep { runtime: self.clone(), deadline_ns, key: None }
    }

    /// Waits this long.
    pub fn sleep_ns(&self, duration_ns: u64) -> Sleep {
        self.sleep_until(time::now_ns().saturating_add(duration_ns))
    }

    /// Answers the sender of `request`, for handlers that answer before they end or answer several. Nobody is waited for.
    pub fn reply(&self, request: &Message, reply: &Message) {
        self.answer(request.source, *reply);
    }

    /// Has `hook` called at the end of each turn with the answers that are about to leave. There is one hook; it must not wait.
    pub fn before_sending(&self, hook: impl Fn(&[(Endpoint, Message)]) + 'static) {
        self.inner.before_sending.replace(Some(Box::new(hook)));
    }

    /// Sends this at the end of the turn to somebody who waits for an answer.
    pub fn answer(&self, to: Endpoint, message: Message) {
        self.inner.answers.borrow_mut().push((to, message));
    }

    /// Ends a turn: sends everything but an answer that may go with the `REPLYREC` that receives the next message.
    fn send_all(&self) {
        let inner = &*self.inner;
        if let Some(hook) = &*inner.before_sending.borrow() {
            hook(&inner.answers.borrow());
        }
        if inner.peers_wait.take() {
            inner.peers.borrow().iter().for_each(|peer| peer.pump_if_it_waits());
        }
        let mut answers = inner.answers.borrow_mut();
        if answers.len() > 1 || answers.last().is_some_and(|(to, message)| is_tagged(*to, message)) {
            inner.send_early(&mut answers);
        }
    }

    /// Receives the next message, and gives the answer that is left.
    fn next_message(&self) -> Option<Message> {
        let mut answers = self.inner.answers.borrow_mut();
        let Some((to, reply)) = answers.last() else { return ipc::receive(Endpoint::ANY).ok() };
        let received = ipc::reply_receive(*to, reply, Endpoint::ANY).ok();
        answers.clear();
        received
    }

    /// Reports to rs that the server is ready, then serves for ever: `handle` makes a task of each request, whose output is the answer
    /// (`None`: nobody waits for one, or it has been sent by [`Runtime::reply`]). `notified` hears of notifications of other services and,
    /// with its hooks, of HARDWARE; it must not wait.
    pub fn serve<F>(&self, handle: impl Fn(Message) -> F, notified: impl Fn(Endpoint, Notify)) -> !
    where
        F: Future<Output = Option<Message>>,
    {
        crate::ready();
        let mut server = Server::new(self, handle, notified);
        let mut incoming = None;
        loop {
            server.turn(incoming);
            incoming = self.next_message();
        }
    }

    /// A notification has come.
    fn notified(&self, from: Endpoint, notify: Notify) {
        match from {
            Endpoint::CLOCK => self.inner.timers.borrow_mut().fire(notify.time_ns),
            Endpoint::HARDWARE => {}
            _ if from.slot() == slot::DS => {
                while let Some(event) = names::next_event() {
                    self.service_changed(&event);
                }
            }
            _ => {
                service::answer_heartbeat(from);
                self.inner.outbox.borrow_mut().flush(from);
                if let Some(peer) = self.peer_at(from) {
                    peer.is_ready(from);
                }
            }
        }
    }

    /// A service has come up or gone down.
    fn service_changed(&self, event: &names::Event) {
        let peer = self.inner.peers.borrow().iter().find(|peer| peer.name() == event.name).cloned();
        if let Some(peer) = peer {
            peer.changed(event);
        }
    }

    /// An answer to a request of one of our peers. False: it is of nobody we asked.
    fn answered(&self, reply: &Message) -> bool {
        self.peer_at(reply.source).is_some_and(|peer| peer.answered(reply))
    }

    fn peer_at(&self, endpoint: Endpoint) -> Option<Rc<PeerCore>> {
        self.inner.peers.borrow().iter().find(|peer| peer.slot() == Some(endpoint.slot())).cloned()
    }

    /// Sets the kernel's alarm to the first deadline, if it is not.
    fn arm(&self) {
        let change = self.inner.timers.borrow_mut().alarm_to_set();
        if let Some(deadline_ns) = change {
            time::set_alarm(deadline_ns).expect("a server with timers needs the kernel call SetAlarm");
        }
    }
}

impl Inner {
    /// Sends answers that do not go with `REPLYREC`.
    #[cold]
    fn send_early(&self, answers: &mut Vec<(Endpoint, Message)>) {
        let last = answers.pop_if(|(to, message)| !is_tagged(*to, message));
        for (to, message) in answers.drain(..) {
            if is_tagged(to, &message) {
                self.outbox.borrow_mut().send(to, &message);
            } else {
                // Nobody to tell when the asker has died.
                let _ = ipc::send_nonblocking(to, &message);
            }
        }
        answers.extend(last);
    }
}

/// An asker with a tag may not be waiting, and REPLYREC would lose its answer.
#[inline]
fn is_tagged(to: Endpoint, message: &Message) -> bool {
    message.tag() != 0 && to.is_service()
}

/// The loop of [`Runtime::serve`], one turn at a time.
struct Server<'a, H, N, F> {
    runtime: &'a Runtime,
    handle: H,
    notified: N,
    tasks: Tasks<F>,
}

impl<'a, H, N, F> Server<'a, H, N, F>
where
    H: Fn(Message) -> F,
    N: Fn(Endpoint, Notify),
    F: Future<Output = Option<Message>>,
{
    fn new(runtime: &'a Runtime, handle: H, notified: N) -> Self {
        Server { runtime, handle, notified, tasks: Tasks::new() }
    }

    /// Takes in a message, runs every task that can go on, and sends what is to be sent.
    #[inline]
    fn turn(&mut self, incoming: Option<Message>) {
        if let Some(message) = incoming {
            self.take_in(message);
        }
        self.run_ready();
        self.runtime.arm();
        self.runtime.send_all();
    }

    fn take_in(&mut self, message: Message) {
        if message.label == Notify::LABEL {
            let notify = Notify::from_message(&message);
            self.runtime.notified(message.source, notify);
            (self.notified)(message.source, notify);
        } else if !(message.is_reply() && self.runtime.answered(&message)) {
            recent::note(&message);
            if update::is_announced(&message) {
                update::wait_for_successor(&message);
            }
            self.begin(message);
        }
    }

    fn begin(&mut self, message: Message) {
        match self.tasks.begin(message.source, (self.handle)(message)) {
            Ok(Some(answer)) => self.answer(message.source, answer),
            Ok(None) => {}
            Err(tasks::Full) => self.answer(message.source, Some(message.reply(Err(Errno::EAGAIN)))),
        }
    }

    fn run_ready(&mut self) {
        loop {
            let spawned = core::mem::take(&mut *self.runtime.inner.spawned.borrow_mut());
            for task in spawned {
                self.tasks.begin_background(task);
            }
            match self.tasks.run_next() {
                Some(tasks::Ran::Finished(to, answer)) => self.answer(to, answer),
                Some(tasks::Ran::Waits) => {}
                None if self.runtime.inner.spawned.borrow().is_empty() => return,
                None => {}
            }
        }
    }

    fn answer(&mut self, to: Endpoint, answer: Option<Message>) {
        if let Some(answer) = answer {
            self.runtime.answer(to, answer);
        }
    }
}

#[cfg(test)]
mod tests;
