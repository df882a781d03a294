//! Asynchronous requests to other services without tasks, for a server with a receive loop of its own
//! ([`run_from`](crate::run_from)).
//!
//! The server passes replies and notifications to [`Peers`], and checks its [`Request`]s when [`Peers::take_reply`] or
//! [`Peers::notified`] report that one may have completed. Where it cannot continue without a reply it [`waits`](Peers::wait):
//! heartbeats are answered, other requests are queued in the inbox.

use crate::runtime::Runtime;
use crate::{Inbox, Peer, Request, service};
use abi::endpoint::slot;
use abi::kernel::Notify;
use abi::{Endpoint, Message, Name};
use alloc::rc::Rc;
use core::cell::Cell;
use sys::Result;

/// The peers of a server. Clones share them.
#[derive(Clone)]
pub struct Peers {
    runtime: Runtime,
    inbox: Inbox,
    /// Whether requests may have completed since [`Peers::take_news`].
    news: Rc<Cell<bool>>,
}

impl Peers {
    /// Makes an empty set of peers; `inbox` is the one that the server receives from.
    pub fn new(inbox: &Inbox) -> Peers {
        Peers { runtime: Runtime::new(), inbox: inbox.clone(), news: Rc::default() }
    }

    /// Connects as [`Peer::connect`] does. Requests are sent by [`Peers::send`].
    ///
    /// # Errors
    /// As [`Peer::connect`].
    pub fn connect(&self, name: Name, window: usize) -> Result<Peer> {
        Peer::connect(&self.runtime, name, window)
    }

    /// Handles a reply. The reply to a dropped request is ignored.
    pub fn take_reply(&self, reply: &Message) {
        self.news.set(self.news.get() | self.runtime.answered(reply));
    }

    /// Handles a notification of ds or of a peer that accepts requests.
    pub fn notified(&self, from: Endpoint) {
        if from.slot() != slot::RS {
            self.runtime.peer_notified(from);
            self.news.set(true);
        }
    }

    /// Returns whether requests may have completed since the last call.
    pub fn take_news(&self) -> bool {
        self.news.take()
    }

    /// Sends the requests that peers accept.
    pub fn send(&self) {
        self.runtime.send_requests();
    }

    /// Waits for the reply to `request`.
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
