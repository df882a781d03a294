//! The calls that receive. See `exchange` for the protocol.

use crate::desk::{Doing, From, Takes, Word};
use crate::member::{Member, Peers};
use crate::wait::{Limit, Outcome, look_again, sleep_until};
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use m3ipc::message::Message;
use m3ipc::rights::Trap;

/// What a call receives.
#[derive(Clone, Copy)]
struct Wanted {
    from: From,
    takes: Takes,
    /// The one process and its incarnation.
    source: Option<(Number, u32)>,
}

impl Member {
    /// `receive` from one process or from [`Endpoint::ANY`].
    ///
    /// # Errors
    /// As `Rendezvous::receive`, and `TimedOut`, `Interrupted`, `WokenUp`, `NotBound`.
    pub fn receive(&self, from: Endpoint, limit: Limit) -> Result<Message, Error> {
        self.receive_what(from, Takes::All, limit)
    }

    /// `rcvrqst`.
    ///
    /// # Errors
    /// As [`Member::receive`].
    pub fn receive_request(&self, limit: Limit) -> Result<Message, Error> {
        self.receive_what(Endpoint::ANY, Takes::Messages, limit)
    }

    fn receive_what(&self, from: Endpoint, takes: Takes, limit: Limit) -> Result<Message, Error> {
        let mut peers = self.begin()?;
        if !self.board.may_call(self.number, Trap::Receive) {
            return Err(Error::CallDenied);
        }
        let source = match from {
            Endpoint::ANY => None,
            one => Some(self.board.locate(one).map_err(source_died)?),
        };
        let from = match source {
            None => From::Any,
            Some((one, _)) if one == self.number => return Err(Error::BadPeer),
            Some((one, _)) if !self.board.may_receive(one, self.number) => return Err(Error::CallDenied),
            Some((one, _)) => From::One(one),
        };
        let wanted = Wanted { from, takes, source };
        if let Some(message) = self.take_at_once(&mut peers, wanted) {
            return Ok(message);
        }
        if self.is_source_gone(wanted) {
            return Err(Error::SourceDied);
        }
        if limit == Limit::NoWait {
            return Err(Error::Again);
        }
        self.desk().set_status(peers.next_call(Doing::Receiving(from, takes)));
        let result = match self.expect(&mut peers, wanted) {
            Some(message) => Ok(message),
            None => self.wait_to_receive(&mut peers, wanted, limit),
        };
        self.finish(&mut peers);
        result
    }

    fn take_at_once(&self, peers: &mut Peers, wanted: Wanted) -> Option<Message> {
        if let (Some((one, incarnation)), Takes::All) = (wanted.source, wanted.takes)
            && peers.mapped(one, incarnation).is_some()
            && !self.is_posted(one)
        {
            // What one process has put in this order is notifications first: it does not notify while it sends.
            return self.take_in_order(peers, one);
        }
        let is_known = match wanted.source {
            Some((one, incarnation)) => {
                peers.mapped(one, incarnation).is_some() || !self.board.boxes(self.number).contains(one)
            }
            None => peers.is_current(self),
        };
        if !is_known {
            peers.refresh(self);
        }
        self.take_next(peers, wanted.from, wanted.takes)
    }

    /// Looks again for some microseconds for what is expected to come soon, before anybody but the sender is told that this process waits.
    fn expect(&self, peers: &mut Peers, wanted: Wanted) -> Option<Message> {
        match (wanted.source, wanted.takes) {
            (Some((one, incarnation)), Takes::All) if peers.mapped(one, incarnation).is_some() => {
                self.expect_one(peers, one, wanted)
            }
            (None, _) => {
                let last = self.desks.desk(peers.last?);
                let has_come = || self.next(peers, wanted.from, wanted.takes).is_some();
                look_again(self.desk(), last, has_come, || !peers.is_current(self) || !self.is_bound());
                self.take_next(peers, wanted.from, wanted.takes)
            }
            _ => None,
        }
    }

    /// Waits for one process's message or notification. From the announcement on that one takes it for certain that its message ends the wait.
    fn expect_one(&self, peers: &mut Peers, one: Number, wanted: Wanted) -> Option<Message> {
        let link = peers.last_link(one)?;
        link.announce();
        let has_come = || link.first().is_some() || link.first_note().is_some();
        let is_over = || self.is_posted(one) || self.is_source_gone(wanted) || !self.is_bound();
        look_again(self.desk(), self.desks.desk(one), has_come, is_over);
        if let Some(message) = self.take_in_order(peers, one) {
            return Some(message);
        }
        peers.last_link(one)?.retract();
        // What was promised meanwhile is taken, whatever else has happened.
        self.take_in_order(peers, one)
    }

    /// Takes what a process has put first: for one that waits notifications do not come before messages, but whatever came first.
    fn take_in_order(&self, peers: &mut Peers, one: Number) -> Option<Message> {
        let link = peers.last_link(one)?;
        match (link.first_note(), link.first()) {
            (Some(note), Some(message)) if message.is_before(note) => self.take_message(peers, one, message),
            (None, Some(message)) => self.take_message(peers, one, message),
            (Some(_), _) => self.take_note(peers, one),
            (None, None) => None,
        }
    }

    fn wait_to_receive(&self, peers: &mut Peers, wanted: Wanted, limit: Limit) -> Result<Message, Error> {
        let desk = self.desk();
        loop {
            let looking = peers.next_call(Doing::Looking);
            desk.set(looking);
            if !peers.is_current(self) {
                peers.refresh(self);
            }
            if let Some(message) = self.take_next(peers, wanted.from, wanted.takes) {
                return Ok(message);
            }
            if self.is_source_gone(wanted) {
                return Err(Error::SourceDied);
            }
            let waiting = looking.with(Doing::Receiving(wanted.from, wanted.takes));
            if !desk.replace(looking, waiting) {
                continue;
            }
            if self.closes_circle(waiting) {
                return Err(Error::Locked);
            }
            let outcome = self.wait_for_claim(peers, waiting, wanted, limit);
            let is_over = outcome != Outcome::Done || self.is_source_gone(wanted) || !self.is_bound();
            if is_over && desk.replace(waiting, waiting.with(Doing::Running)) {
                return Err(self.why_ended(outcome, Error::SourceDied));
            }
            desk.replace(waiting, waiting.with(Doing::Looking));
            let claimed = match desk.word().doing() {
                Doing::WokenUp => return Err(Error::WokenUp),
                Doing::GotMessage(sender) => self.take_claimed(peers, sender),
                Doing::GotNote(source) => self.take_note(peers, source).or_else(|| self.take_posted(source)),
                // Something lies in a box, or a scribble: look again.
                _ => None,
            };
            if let Some(message) = claimed {
                return Ok(message);
            }
        }
    }

    /// Waits until the desk says something else, the source has ended, or something lies in a box that was new. New boxes are mapped
    /// meanwhile, and leave the desk as it is: whoever looks for circles must not see this process stop waiting.
    fn wait_for_claim(&self, peers: &mut Peers, waiting: Word, wanted: Wanted, limit: Limit) -> Outcome {
        let desk = self.desk();
        loop {
            let outcome = sleep_until(desk, limit, || {
                desk.word() != waiting || self.is_source_gone(wanted) || !self.is_bound() || !peers.is_current(self)
            });
            if outcome != Outcome::Done || desk.word() != waiting || peers.is_current(self) {
                return outcome;
            }
            peers.refresh(self);
            if desk.word() != waiting || self.next(peers, wanted.from, wanted.takes).is_some() {
                return Outcome::Done;
            }
        }
    }

    fn is_source_gone(&self, wanted: Wanted) -> bool {
        wanted.source.is_some_and(|(number, incarnation)| self.board.incarnation(number) != incarnation)
    }
}

fn source_died(error: Error) -> Error {
    if error == Error::DestinationDied { Error::SourceDied } else { error }
}
