//! Requests that a driver holds, and its answers to them: at once or later, in any order.

use abi::{Endpoint, Message};
use alloc::vec::Vec;
use sys::{Result, ipc};

/// A request that has not been answered yet.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    message: Message,
}

impl Held {
    pub(crate) fn new(message: &Message) -> Held {
        Held { message: *message }
    }

    /// The process that asks.
    pub fn asker(&self) -> Endpoint {
        self.message.source
    }

    /// Its tag, which `chardev::Cancel` names.
    pub fn tag(&self) -> u64 {
        self.message.tag()
    }
}

/// Answers that a driver gives while it handles a message.
#[derive(Debug, Default)]
pub struct Answers {
    given: Vec<(Endpoint, Message)>,
}

impl Answers {
    /// Answers a request, which ends it.
    pub fn give(&mut self, held: Held, result: Result<u64>) {
        self.give_message(&held, held.message.reply(result));
    }

    /// Answers a request with results of its own.
    pub(crate) fn give_message(&mut self, held: &Held, answer: Message) {
        self.given.push((held.asker(), answer));
    }

    /// Sends all answers but the one to `request`, which is returned: it travels with the wait for the next message.
    pub(crate) fn send_around(&mut self, request: &Message) -> Option<Message> {
        let is_own = |(to, answer): &(Endpoint, Message)| *to == request.source && answer.tag() == request.tag();
        let own = self.given.iter().position(is_own).map(|at| self.given.swap_remove(at).1);
        self.send();
        own
    }

    /// Sends all answers. Askers with a tag take theirs when they receive next, which they do soon; the others wait for them. One that has
    /// died needs none.
    pub(crate) fn send(&mut self) {
        for (to, answer) in self.given.drain(..) {
            let _ = server::denied::note(to, ipc::send(to, &answer));
        }
    }

    /// The answers not sent yet.
    #[cfg(test)]
    pub(crate) fn given(&self) -> Vec<Message> {
        self.given.iter().map(|(_, answer)| *answer).collect()
    }
}
