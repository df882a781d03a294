//! A driver's requests in progress, and its replies to them: at once or later, in any order.

use abi::{Endpoint, Message};
use alloc::vec::Vec;
use sys::{Result, ipc};

/// A request without a reply so far.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    message: Message,
}

impl Held {
    pub(crate) fn new(message: &Message) -> Held {
        Held { message: *message }
    }

    /// Returns the client's endpoint.
    pub fn requester(&self) -> Endpoint {
        self.message.source
    }

    /// Returns the request's tag, by which `chardev::Cancel` identifies it.
    pub fn tag(&self) -> u64 {
        self.message.tag()
    }
}

/// The replies that a driver makes while it handles a message.
#[derive(Debug, Default)]
pub struct Answers {
    given: Vec<(Endpoint, Message)>,
}

impl Answers {
    /// Completes a request with this result.
    pub fn give(&mut self, held: Held, result: Result<u64>) {
        self.give_message(&held, held.message.reply(result));
    }

    /// Asks for further memory of the program for an ioctl, which goes on with `CharDriver::control_further`. Control and Continue have
    /// the same reply.
    pub fn ask_further(&mut self, held: Held, address: u64, bytes: u64) {
        let mut answer = held.message.reply(Ok(0));
        (answer.words[1], answer.words[2]) = (address, bytes);
        self.give_message(&held, answer);
    }

    /// Completes a request with a reply that carries further results.
    pub fn give_message(&mut self, held: &Held, answer: Message) {
        self.given.push((held.requester(), answer));
    }

    /// Sends all replies but the one to `request`, which is returned: `REPLYREC` sends it and receives the next message.
    pub(crate) fn send_around(&mut self, request: &Message) -> Option<Message> {
        let is_own = |(to, answer): &(Endpoint, Message)| *to == request.source && answer.tag() == request.tag();
        let own = self.given.iter().position(is_own).map(|at| self.given.swap_remove(at).1);
        self.send();
        own
    }

    /// Sends all replies. Asynchronous clients receive theirs soon, the others are waiting. A client that has died needs none; a reply
    /// that is denied is logged by the kernel.
    pub(crate) fn send(&mut self) {
        for (to, answer) in self.given.drain(..) {
            let _ = ipc::send(to, &answer);
        }
    }

    /// Returns the replies that are not sent yet.
    #[cfg(test)]
    pub(crate) fn given(&self) -> Vec<Message> {
        self.given.iter().map(|(_, answer)| *answer).collect()
    }
}
