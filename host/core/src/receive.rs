//! The calls that receive. See `exchange` for the protocol.

use crate::desk::{Doing, From, Takes, Word};
use crate::member::{Member, Peers};
use crate::pair::Put;
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
    #[inline]
    pub fn receive(&self, from: Endpoint, limit: Limit, message: &mut Message) -> Result<(), Error> {
        self.receive_what(from, Takes::All, limit, message)
    }

    /// `rcvrqst`.
    ///
    /// # Errors
    /// As [`Member::receive`].
    pub fn receive_request(&self, limit: Limit, message: &mut Message) -> Result<(), Error> {
        self.receive_what(Endpoint::ANY, Takes::Messages, limit, message)
    }

    fn receive_what(&self, from: Endpoint, takes: Takes, limit: Limit, message: &mut Message) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let source = match peers.checked(self, from) {
            Some(known) => Some(known),
            None => self.check_source(from)?,
        };
        let from = source.map_or(From::Any, |(one, _)| From::One(one));
        let wanted = Wanted { from, takes, source };
        if self.take_at_once(&mut peers, wanted, message) {
            return Ok(());
        }
        if self.is_source_gone(wanted) {
            return Err(Error::SourceDied);
        }
        if limit == Limit::NoWait {
            return Err(Error::Again);
        }
        self.desk().set_status(peers.next_call(Doing::Receiving(from, takes)));
        let result = match self.expect(&mut peers, wanted, message) {
            true => Ok(()),
            false => self.wait_to_receive(&mut peers, wanted, limit, message),
        };
        self.finish(&mut peers);
        result
    }

    /// Checks that one may receive from this process. Returns it and its incarnation, or `None` for anybody.
    fn check_source(&self, from: Endpoint) -> Result<Option<(Number, u32)>, Error> {
        if !self.board.may_call(self.number, Trap::Receive) {
            return Err(Error::CallDenied);
        }
        if from == Endpoint::ANY {
            return Ok(None);
        }
        let (one, incarnation) = self.board.locate(from).map_err(source_died)?;
        match one {
            own if own == self.number => Err(Error::BadPeer),
            one if !self.board.may_receive(one, self.number) => Err(Error::CallDenied),
            one => Ok(Some((one, incarnation))),
        }
    }

    fn take_at_once(&self, peers: &mut Peers, wanted: Wanted, message: &mut Message) -> bool {
        if let (Some((one, incarnation)), Takes::All) = (wanted.source, wanted.takes)
            && peers.mapped(one, incarnation).is_some()
            && !self.is_posted(one)
        {
            // What one process has put in this order is notifications first: it does not notify while it sends.
            return self.take_in_order(peers, one, message);
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
        self.take_next(peers, wanted.from, wanted.takes, message)
    }

    /// Looks again for some microseconds for what is expected to come soon, before anybody but the sender is told that this process waits.
    fn expect(&self, peers: &mut Peers, wanted: Wanted, message: &mut Message) -> bool {
        match (wanted.source, wanted.takes) {
            (Some((one, incarnation)), Takes::All) if peers.mapped(one, incarnation).is_some() => {
                self.expect_one(peers, one, wanted, message)
            }
            (None, _) => {
                let Some(last) = peers.last.map(|last| self.desks.desk(last)) else { return false };
                let has_come = || self.next(peers, wanted.from, wanted.takes).is_some();
                look_again(self.desk(), last, has_come, || !peers.is_current(self) || !self.is_bound());
                self.take_next(peers, wanted.from, wanted.takes, message)
            }
            _ => false,
        }
    }

    /// Waits for one process's message or notification. From the announcement on that one takes it for certain that its message ends the wait.
    fn expect_one(&self, peers: &mut Peers, one: Number, wanted: Wanted, message: &mut Message) -> bool {
        let Some(link) = peers.last_link_mut(one) else { return false };
        link.announce();
        let mut promised = None;
        let lies_there = || link.first().is_some() || link.first_note().is_some();
        // What lies there already may be a message whose sender had looked before.
        if !lies_there() {
            let promise = link.promise();
            let is_over = || self.is_posted(one) || self.is_source_gone(wanted) || !self.is_bound();
            look_again(self.desk(), self.desks.desk(one), lies_there, is_over);
            promised = promise.kept();
        }
        if let Some(found) = promised {
            link.take_promised(found, message);
            self.is_from(peers, one, message);
            self.tell_sender_of_promised(one, found);
            return true;
        }
        if self.take_in_order(peers, one, message) {
            return true;
        }
        if let Some(link) = peers.last_link(one) {
            link.retract();
        }
        // What was promised meanwhile is taken, whatever else has happened.
        self.take_in_order(peers, one, message)
    }

    /// Takes what a process has put first: for one that waits notifications do not come before messages, but whatever came first.
    fn take_in_order(&self, peers: &mut Peers, one: Number, message: &mut Message) -> bool {
        let Some(link) = peers.last_link(one) else { return false };
        match link.first_put() {
            Some(Put::Message(found)) => self.take_message(peers, one, found, message),
            Some(Put::Note(_)) => self.take_note(peers, one, message),
            None => false,
        }
    }

    fn wait_to_receive(
        &self,
        peers: &mut Peers,
        wanted: Wanted,
        limit: Limit,
        message: &mut Message,
    ) -> Result<(), Error> {
        let desk = self.desk();
        loop {
            let looking = peers.next_call(Doing::Looking);
            desk.set(looking);
            if !peers.is_current(self) {
                peers.refresh(self);
            }
            if self.take_next(peers, wanted.from, wanted.takes, message) {
                return Ok(());
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
            let is_taken = match desk.word().doing() {
                Doing::WokenUp => return Err(Error::WokenUp),
                Doing::GotMessage(sender) => self.take_claimed(peers, sender, message),
                Doing::GotNote(source) => self.take_note(peers, source, message) || self.take_posted(source, message),
                // Something lies in a box, or a scribble: look again.
                _ => false,
            };
            if is_taken {
                return Ok(());
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
