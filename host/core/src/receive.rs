//! The calls that receive. See `exchange` for the protocol.

use crate::desk::{Doing, From, Takes, Word};
use crate::member::{Ends, Member, Peers};
use crate::memory::InUse;
use crate::pair::{Come, Found, Put};
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

    /// `receive` without a limit from a process that was called before; `None`: [`Member::receive`] must do it.
    #[inline(always)]
    pub fn receive_at_once(&self, from: Endpoint, message: &mut Message) -> Option<Result<(), Error>> {
        let (mut peers, (one, incarnation)) = self.begin_at_once(from)?;
        let wanted = Wanted { from: From::One(one), takes: Takes::All, source: Some((one, incarnation)) };
        let link = peers.last_link(one)?;
        if link.first().is_some() || link.first_note().is_some() || self.is_posted(one) {
            return Some(self.receive_wanted(peers, wanted, Limit::Forever, message));
        }
        self.count_call();
        let desk = self.desk();
        desk.set_status(peers.next_call(Doing::Receiving(wanted.from, wanted.takes)));
        let link = peers.last_link_mut(one)?;
        let Some(found) = self.look_for_promised(link, one, wanted, message) else {
            return Some(self.receive_longer(peers, one, wanted, message));
        };
        link.took_promised(found);
        message.source = from.raw();
        self.tell_sender_of_promised(one, found);
        desk.set_status(Word::new(Doing::Running, 0));
        peers.last = one;
        Some(Ok(()))
    }

    /// Announces in the box that one process is waited for, looks for its message, and reads it. From the announcement on that one takes it for certain that its message, or
    /// notification, ends the wait. `None`: something else has come, or nothing.
    #[inline(always)]
    fn look_for_promised(&self, link: &Ends, one: Number, wanted: Wanted, message: &mut Message) -> Option<Found> {
        link.announce();
        let lies_there = move || link.first().is_some() || link.first_note().is_some();
        if lies_there() {
            // Its sender may have looked before the announcement.
            return None;
        }
        let promise = link.promise();
        // Something else than what is expected is found later.
        let is_over = || lies_there() || self.is_posted(one) || self.is_source_gone(wanted) || !self.is_bound();
        match look_again(self.desk(), self.desks.desk(one), move || promise.look(), is_over) {
            Some(Come::Promised(found)) => {
                promise.read(message);
                Some(found)
            }
            Some(Come::Noted) | None => None,
        }
    }

    /// Goes on with `receive` without a limit, after it has announced in the box that it waits, and has looked.
    #[cold]
    #[inline(never)]
    fn receive_longer(
        &self,
        mut peers: InUse<Peers>,
        one: Number,
        wanted: Wanted,
        message: &mut Message,
    ) -> Result<(), Error> {
        let result = match self.take_what_came(&mut peers, one, message) {
            true => Ok(()),
            false => self.wait_to_receive(&mut peers, wanted, Limit::Forever, message),
        };
        self.finish(&mut peers);
        result
    }

    /// `rcvrqst`.
    ///
    /// # Errors
    /// As [`Member::receive`].
    pub fn receive_request(&self, limit: Limit, message: &mut Message) -> Result<(), Error> {
        self.receive_what(Endpoint::ANY, Takes::Messages, limit, message)
    }

    fn receive_what(&self, from: Endpoint, takes: Takes, limit: Limit, message: &mut Message) -> Result<(), Error> {
        let peers = self.begin()?;
        let source = match peers.checked(self, from) {
            Some(known) => Some(known),
            None => self.check_source(from)?,
        };
        let from = source.map_or(From::Any, |(one, _)| From::One(one));
        self.receive_wanted(peers, Wanted { from, takes, source }, limit, message)
    }

    #[inline(never)]
    fn receive_wanted(
        &self,
        mut peers: InUse<Peers>,
        wanted: Wanted,
        limit: Limit,
        message: &mut Message,
    ) -> Result<(), Error> {
        self.count_call();
        if self.take_at_once(&mut peers, wanted, message) {
            return Ok(());
        }
        if self.is_source_gone(wanted) {
            return Err(Error::SourceDied);
        }
        if limit == Limit::NoWait {
            return Err(Error::Again);
        }
        self.desk().set_status(peers.next_call(Doing::Receiving(wanted.from, wanted.takes)));
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
                if peers.last == self.number {
                    return false;
                }
                let last = self.desks.desk(peers.last);
                look_again(
                    self.desk(),
                    last,
                    || self.next(peers, wanted.from, wanted.takes),
                    || !peers.is_current(self) || !self.is_bound(),
                );
                self.take_next(peers, wanted.from, wanted.takes, message)
            }
            _ => false,
        }
    }

    /// Waits for one process's message or notification.
    fn expect_one(&self, peers: &mut Peers, one: Number, wanted: Wanted, message: &mut Message) -> bool {
        let Some(link) = peers.last_link_mut(one) else { return false };
        if let Some(found) = self.look_for_promised(link, one, wanted, message) {
            link.took_promised(found);
            self.is_from(peers, one, message);
            self.tell_sender_of_promised(one, found);
            return true;
        }
        self.take_what_came(peers, one, message)
    }

    /// Takes what has come from a process that was told that it is waited for, or says that it is not.
    fn take_what_came(&self, peers: &mut Peers, one: Number, message: &mut Message) -> bool {
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
