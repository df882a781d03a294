//! Replies to asynchronous clients that are not waiting yet.

use abi::{Endpoint, Errno, Message};
use alloc::collections::VecDeque;
use sys::ipc;

/// Replies in the order of their creation.
#[derive(Default)]
pub struct Outbox {
    kept: VecDeque<(Endpoint, Message)>,
}

impl Outbox {
    /// Sends a reply, or keeps it until it can be sent. Replies to one client keep their order. Only for services, which notify when
    /// they wait: a program that is not waiting for its reply never will.
    #[expect(clippy::disallowed_methods, reason = "bounded by the tasks: from the heap's reserve")]
    pub fn send(&mut self, to: Endpoint, message: &Message) {
        let behind_others = self.kept.iter().any(|(other, _)| *other == to);
        if (behind_others || !try_send(to, message)) && to.is_service() {
            self.kept.push_back((to, *message));
        }
    }

    /// Sends the kept replies of `requester`, which is waiting.
    pub fn flush(&mut self, requester: Endpoint) {
        let mut blocked = false;
        self.kept.retain(|(to, message)| {
            if to.slot() != requester.slot() {
                return true;
            }
            blocked = blocked || !try_send(*to, message);
            blocked
        });
    }
}

/// Tries to send a reply. Returns false if it has to be retried. A client that has died or may not be sent to gets none.
fn try_send(to: Endpoint, message: &Message) -> bool {
    ipc::send_nonblocking(to, message) != Err(Errno::ENOTREADY)
}
