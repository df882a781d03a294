//! Requests that have been sent and not answered: what a service works on, and what an answer belongs to.

use std::collections::HashMap;

/// So many of one sender are remembered. The kernel has no such limit, but whoever sends more without an answer loses them.
const OF_ONE: usize = 256;

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its label.
    pub label: u32,
    /// The receiver's slot; `None`: a route of the kernel decides.
    pub to: Option<u32>,
    /// The context in which it is worked on.
    pub context: u32,
    /// What its sender works on itself.
    pub base: u32,
    /// The span that it takes.
    pub span: Option<u32>,
    /// Whether its receiver has it.
    pub is_received: bool,
}

impl Request {
    fn is_to(&self, slot: Option<u32>) -> bool {
        self.to.is_none() || slot.is_none() || self.to == slot
    }
}

/// All of them, by the slot of their sender.
#[derive(Debug, Default)]
pub struct Requests {
    by_sender: HashMap<u32, Vec<Request>>,
}

impl Requests {
    /// Adds one.
    pub fn add(&mut self, sender: u32, request: Request) {
        let own = self.by_sender.entry(sender).or_default();
        if own.len() == OF_ONE {
            own.remove(0);
        }
        own.push(request);
    }

    /// The oldest with this label that the thread in slot `to` has not received; now it has.
    pub fn receive(&mut self, sender: u32, label: u32, to: Option<u32>) -> Option<Request> {
        let own = self.by_sender.get_mut(&sender)?;
        let found =
            own.iter_mut().find(|request| request.label == label && request.is_to(to) && !request.is_received)?;
        found.is_received = true;
        Some(*found)
    }

    /// Takes the oldest with this label, which the thread in slot `from` has answered.
    pub fn answer(&mut self, sender: u32, label: u32, from: Option<u32>) -> Option<Request> {
        let own = self.by_sender.get_mut(&sender)?;
        let at = own.iter().position(|request| request.label == label && request.is_to(from))?;
        Some(own.remove(at))
    }

    /// Forgets the newest: it could not be sent.
    pub fn withdraw(&mut self, sender: u32) {
        self.by_sender.get_mut(&sender).and_then(Vec::pop);
    }

    /// Forgets those of a thread that is gone.
    pub fn forget(&mut self, sender: u32) {
        self.by_sender.remove(&sender);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(label: u32, context: u32) -> Request {
        Request { label, to: Some(11), context, base: 0, span: None, is_received: false }
    }

    #[test]
    fn equal_requests_are_received_and_answered_in_order() {
        let mut requests = Requests::default();
        requests.add(8, request(5, 1));
        requests.add(8, request(5, 2));
        let received = [(); 3].map(|()| requests.receive(8, 5, Some(11)).map(|request| request.context));
        assert_eq!(received, [Some(1), Some(2), None]);
        let answered = [(); 3].map(|()| requests.answer(8, 5, Some(11)).map(|request| request.context));
        assert_eq!(answered, [Some(1), Some(2), None]);
    }

    #[test]
    fn what_could_not_be_sent_is_forgotten() {
        let mut requests = Requests::default();
        requests.add(8, request(5, 1));
        requests.withdraw(8);
        assert_eq!(requests.receive(8, 5, Some(11)), None);
    }
}
