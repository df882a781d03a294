//! Outstanding requests: which request a service has received, and to which request a reply belongs.

use std::collections::HashMap;

/// Outstanding requests that are kept for each sender; the oldest are dropped.
const OF_ONE: usize = 256;

/// An outstanding request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its label.
    pub label: u32,
    /// The receiver's slot; `None`: decided by the kernel's route.
    pub to: Option<u32>,
    /// The context in which it is handled.
    pub context: u32,
    /// The base context of its sender when it was sent.
    pub base: u32,
    /// Its span, if one is kept.
    pub span: Option<u32>,
    /// Whether it has been received.
    pub is_received: bool,
}

impl Request {
    fn is_to(&self, slot: Option<u32>) -> bool {
        self.to.is_none() || slot.is_none() || self.to == slot
    }
}

/// All outstanding requests, by the sender's slot.
#[derive(Debug, Default)]
pub struct Requests {
    by_sender: HashMap<u32, Vec<Request>>,
}

impl Requests {
    /// Adds a request.
    pub fn add(&mut self, sender: u32, request: Request) {
        let own = self.by_sender.entry(sender).or_default();
        if own.len() == OF_ONE {
            own.remove(0);
        }
        own.push(request);
    }

    /// Marks the oldest request with this label to slot `to` as received, and returns it.
    pub fn receive(&mut self, sender: u32, label: u32, to: Option<u32>) -> Option<Request> {
        let own = self.by_sender.get_mut(&sender)?;
        let found =
            own.iter_mut().find(|request| request.label == label && request.is_to(to) && !request.is_received)?;
        found.is_received = true;
        Some(*found)
    }

    /// Removes the oldest request with this label to slot `from`, which has replied.
    pub fn answer(&mut self, sender: u32, label: u32, from: Option<u32>) -> Option<Request> {
        let own = self.by_sender.get_mut(&sender)?;
        let at = own.iter().position(|request| request.label == label && request.is_to(from))?;
        Some(own.remove(at))
    }

    /// Removes the newest request: sending it failed.
    pub fn withdraw(&mut self, sender: u32) {
        self.by_sender.get_mut(&sender).and_then(Vec::pop);
    }

    /// Removes all requests of a sender.
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
