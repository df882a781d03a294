//! Answers for asynchronous askers that do not wait just now: sent when they do.

use abi::{Endpoint, Errno, Message};
use alloc::collections::VecDeque;
use sys::ipc;

/// Answers in the order of their making.
#[derive(Default)]
pub struct Outbox {
    kept: VecDeque<(Endpoint, Message)>,
}

impl Outbox {
    /// Sends, or keeps what cannot be sent yet. Answers to one asker keep their order. Only services are notified and try again: a program
    /// that does not wait for its answer has given it up.
    pub fn send(&mut self, to: Endpoint, message: &Message) {
        let behind_others = self.kept.iter().any(|(other, _)| *other == to);
        if (behind_others || !try_send(to, message)) && to.is_service() {
            self.kept.push_back((to, *message));
        }
    }

    /// `asker` waits now: it gets what was kept for it.
    pub fn flush(&mut self, asker: Endpoint) {
        let mut blocked = false;
        self.kept.retain(|(to, message)| {
            if to.slot() != asker.slot() {
                return true;
            }
            blocked = blocked || !try_send(*to, message);
            blocked
        });
    }
}

/// False when it has to be tried again. An asker that is dead or may not be sent to needs no answer.
fn try_send(to: Endpoint, message: &Message) -> bool {
    ipc::send_nonblocking(to, message) != Err(Errno::ENOTREADY)
}
