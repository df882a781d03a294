//! Requests to other services for a server with a loop of its own ([`run_from`](crate::run_from)): they are in flight while the
//! server goes on, without tasks.
//!
//! The server hands replies and notifications on to [`Peers`], and looks at its [`Request`]s when [`Peers::take_reply`] or
//! [`Peers::notified`] say that one may have ended. Where it cannot go on without an answer it [`waits`](Peers::wait): heartbeats are answered,
//! other requests are held in the inbox.

use crate::runtime::Runtime;
use crate::{Inbox, Peer, Request, service};
use abi::endpoint::slot;
use abi::kernel::Notify;
use abi::{Endpoint, Message, Name};
use alloc::rc::Rc;
use core::cell::Cell;
use sys::Result;

/// The services that a server asks. Clones are the same.
#[derive(Clone)]
pub struct Peers {
    runtime: Runtime,
    inbox: Inbox,
    /// Requests may have ended since [`Peers::take_news`].
    news: Rc<Cell<bool>>,
}

impl Peers {
    /// None; `inbox` is the one that the server receives from.
    pub fn new(inbox: &Inbox) -> Peers {
        Peers { runtime: Runtime::new(), inbox: inbox.clone(), news: Rc::default() }
    }

    /// As [`Peer::connect`]. Requests leave at [`Peers::send`].
    ///
    /// # Errors
    /// As [`Peer::connect`].
    pub fn connect(&self, name: Name, window: usize) -> Result<Peer> {
        Peer::connect(&self.runtime, name, window)
    }

    /// Takes an answer. One to a request that nobody remembers is dropped.
    pub fn take_reply(&self, reply: &Message) {
        self.news.set(self.news.get() | self.runtime.answered(reply));
    }

    /// Takes a notification, of ds or of a service that waits for requests now.
    pub fn notified(&self, from: Endpoint) {
        if from.slot() != slot::RS {
            self.runtime.peer_notified(from);
            self.news.set(true);
        }
    }

    /// Whether requests may have ended since this was asked last.
    pub fn take_news(&self) -> bool {
        self.news.take()
    }

    /// Sends the requests that can be sent.
    pub fn send(&self) {
        self.runtime.send_requests();
    }

    /// Waits for the answer to `request`.
    ///
    /// # Errors
    /// As awaiting it.
    pub fn wait(&self, mut request: Request) -> Result<Message> {
        loop {
            self.send();
            if let Some(result) = request.result() {
                return result;
            }
            let message = self.inbox.receive_new();
            if message.label != Notify::LABEL {
                if message.is_reply() {
                    self.take_reply(&message);
                } else {
                    self.inbox.hold(message);
                }
                continue;
            }
            service::answer_heartbeat(message.source);
            match message.source {
                Endpoint::CLOCK | Endpoint::HARDWARE => self.inbox.hold(message),
                from => self.notified(from),
            }
        }
    }
}
