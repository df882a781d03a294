//! The calls that move messages, by the rules of [`m3ipc::rendezvous`].
//!
//! A message that is sent lies in the box of the two, whatever happens next. If the receiver's desk says that it would take it, the sender
//! claims it there, and both calls have ended: the receiver finds the message when it runs. Otherwise the sender waits until the message has
//! been taken. A receiver says that it looks, looks, and only if nothing came meanwhile that it waits: so nobody can be claimed while
//! something else is there that comes first.
//!
//! Neighbours: `take` is what a receiver finds in its boxes, `circles` finds waits that would never end.

use crate::desk::{Doing, From, Takes, Word};
use crate::member::{Member, Peers};
use crate::pair::{Channel, Found};
use crate::wait::{Limit, Outcome, now_ns, ring, wait};
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use m3ipc::message::Message;
use m3ipc::rights::Trap;
use std::sync::atomic::Ordering::Relaxed;

/// How long a notification waits for a receiver that waits but has not mapped the box yet.
const ATTACH_NS: u64 = 100_000_000;

/// What a sender does when its message was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Continuation {
    Return,
    ReceiveAnswer,
}

/// A sender whose message lies in a box.
struct Offer {
    to: Number,
    incarnation: u32,
    found: Found,
    word: Word,
}

impl Member {
    /// `send`.
    ///
    /// # Errors
    /// As `Rendezvous::send`, and `TimedOut`, `Interrupted`, `NotBound`.
    pub fn send(&self, to: Endpoint, message: &Message, limit: Limit) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let result = self.offer_and_wait(&mut peers, to, message, limit, Continuation::Return).map(|_| ());
        self.finish(&mut peers);
        result
    }

    /// `sendrec`. Returns the answer.
    ///
    /// # Errors
    /// As `Rendezvous::send_receive`, and `TimedOut`, `Interrupted`, `NotBound`.
    pub fn send_receive(&self, to: Endpoint, message: &Message, limit: Limit) -> Result<Message, Error> {
        let mut peers = self.begin()?;
        let result = self.send_and_receive(&mut peers, to, message, limit).map_err(|error| match error {
            Error::DestinationDied => Error::PeerDied,
            other => other,
        });
        self.finish(&mut peers);
        result
    }

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

    /// `reply`.
    ///
    /// # Errors
    /// As `Rendezvous::reply`, and `NotBound`.
    pub fn reply(&self, to: Endpoint, message: &Message) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let (to, incarnation) = self.check_destination(to, Trap::Reply)?;
        let number = peers.next_put();
        peers.get(self, to, incarnation)?;
        self.wait_for_attachment(&peers, to, incarnation);
        if !self.accepts(&peers, to) {
            return Err(Error::BadState);
        }
        let channel = peers.get(self, to, incarnation)?.channel(self.number, to);
        let found = channel.offer(number, now_ns(), message).ok_or(Error::BadState)?;
        if self.claim(&peers, to) {
            peers.last = Some(to);
            return Ok(());
        }
        // It has stopped waiting; or it has looked meanwhile, and taken the message.
        let channel = peers.get(self, to, incarnation)?.channel(self.number, to);
        if channel.withdraw(found) { Err(Error::BadState) } else { Ok(()) }
    }

    /// `notify`, `ntfy_value`.
    ///
    /// # Errors
    /// As `Rendezvous::notify`, and `NotBound`.
    pub fn notify(&self, to: Endpoint, value: u64) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let (to, incarnation) = self.check_destination(to, Trap::Notify)?;
        if !self.rights().is_system() {
            return Err(Error::Privileges);
        }
        peers.get(self, to, incarnation)?;
        self.wait_for_attachment(&peers, to, incarnation);
        let number = peers.next_put();
        let channel = peers.get(self, to, incarnation)?.channel(self.number, to);
        let desk = self.desks.desk(to);
        let waits = |doing| matches!(doing, Doing::Receiving(from, Takes::All) if self.is_meant(from));
        if !waits(desk.word().doing()) && !self.board.rights(to).is_system() {
            return Err(Error::Privileges);
        }
        // One that the receiver was claimed for is not pending any more.
        let is_claimed = desk.word().doing() == Doing::GotNote(self.number);
        if channel.notes() > usize::from(is_claimed) || !channel.note(number, now_ns(), value) {
            return Err(Error::Overrun);
        }
        loop {
            let word = desk.word();
            let next = match word.doing() {
                doing if waits(doing) && channel.is_attached() => Doing::GotNote(self.number),
                Doing::Looking => Doing::LookingAgain,
                _ => break,
            };
            if desk.replace(word, word.with(next)) {
                break;
            }
        }
        ring(desk);
        self.count_sent();
        Ok(())
    }

    fn receive_what(&self, from: Endpoint, takes: Takes, limit: Limit) -> Result<Message, Error> {
        let mut peers = self.begin()?;
        self.rights().check_trap(Trap::Receive)?;
        let source = match from {
            Endpoint::ANY => None,
            one => Some(self.board.locate(one).map_err(source_died)?),
        };
        let from = match source {
            None => From::Any,
            Some((one, _)) if one == self.number => return Err(Error::BadPeer),
            Some((one, _)) if !self.rights().receives_from.contains(one) => return Err(Error::CallDenied),
            Some((one, _)) => From::One(one),
        };
        let result = self.wait_to_receive(&mut peers, from, takes, source, limit);
        self.finish(&mut peers);
        result
    }

    fn wait_to_receive(
        &self,
        peers: &mut Peers,
        from: From,
        takes: Takes,
        source: Option<(Number, u32)>,
        limit: Limit,
    ) -> Result<Message, Error> {
        let desk = self.desk();
        let is_gone = || source.is_some_and(|(number, incarnation)| self.board.incarnation(number) != incarnation);
        loop {
            let looking = peers.next_call(Doing::Looking);
            desk.set(looking);
            if !peers.is_current(self) {
                peers.refresh(self);
            }
            if let Some(message) = self.take_next(peers, from, takes) {
                return Ok(message);
            }
            if is_gone() {
                return Err(Error::SourceDied);
            }
            if limit == Limit::NoWait {
                return Err(Error::Again);
            }
            let waiting = looking.with(Doing::Receiving(from, takes));
            if !desk.replace(looking, waiting) {
                continue;
            }
            if self.closes_circle(waiting) {
                return Err(Error::Locked);
            }
            let outcome = self.wait_for_claim(peers, waiting, source, limit);
            let is_over = outcome != Outcome::Done || is_gone() || !self.is_bound();
            if is_over && desk.replace(waiting, waiting.with(Doing::Running)) {
                return Err(match outcome {
                    _ if !self.is_bound() => Error::NotBound,
                    Outcome::Done => Error::SourceDied,
                    Outcome::TimedOut => Error::TimedOut,
                    Outcome::Interrupted => Error::Interrupted,
                });
            }
            desk.replace(waiting, waiting.with(Doing::Looking));
            match desk.word().doing() {
                Doing::WokenUp => return Err(Error::WokenUp),
                Doing::GotMessage(sender) => {
                    if let Some(message) = self.take_claimed(peers, sender) {
                        return Ok(message);
                    }
                }
                Doing::GotNote(source) => {
                    if let Some(message) = self.take_note(peers, source).or_else(|| self.take_posted(source)) {
                        return Ok(message);
                    }
                }
                // Something lies in a box, or a scribble: look again.
                _ => {}
            }
        }
    }

    /// Waits until the desk says something else, the source has ended, or something lies in a box that was new. New boxes are mapped
    /// meanwhile, and leave the desk as it is: whoever looks for circles must not see this process stop waiting.
    fn wait_for_claim(&self, peers: &mut Peers, waiting: Word, source: Option<(Number, u32)>, limit: Limit) -> Outcome {
        let Doing::Receiving(from, takes) = waiting.doing() else { return Outcome::Done };
        let desk = self.desk();
        let is_gone = || source.is_some_and(|(number, incarnation)| self.board.incarnation(number) != incarnation);
        loop {
            let peer = source.map(|(number, _)| number).or(peers.last);
            let outcome = wait(desk, peer.map(|peer| self.desks.desk(peer)), limit, || {
                desk.word() != waiting || is_gone() || !self.is_bound() || !peers.is_current(self)
            });
            if outcome != Outcome::Done || desk.word() != waiting || peers.is_current(self) {
                return outcome;
            }
            peers.refresh(self);
            if desk.word() != waiting || self.next(peers, from, takes).is_some() {
                return Outcome::Done;
            }
        }
    }

    fn send_and_receive(
        &self,
        peers: &mut Peers,
        to: Endpoint,
        message: &Message,
        limit: Limit,
    ) -> Result<Message, Error> {
        let offer = self.offer_and_wait(peers, to, message, limit, Continuation::ReceiveAnswer)?;
        let limit = if limit == Limit::NoWait { Limit::Forever } else { limit };
        let desk = self.desk();
        let is_over = || self.board.incarnation(offer.to) != offer.incarnation || !self.is_bound();
        let awaiting = offer.word.with(Doing::AwaitingAnswer(offer.to));
        loop {
            let outcome = wait(desk, Some(self.desks.desk(offer.to)), limit, || {
                let word = desk.word();
                (word != offer.word && word != awaiting) || is_over()
            });
            let word = desk.word();
            if word.doing() == Doing::GotMessage(offer.to)
                && let Some(answer) = self.take_claimed(peers, offer.to)
            {
                return Ok(answer);
            }
            if ![offer.word, awaiting].contains(&word) {
                // A scribble: what it says did not happen.
                desk.replace(word, awaiting);
            }
            let has_ended = outcome != Outcome::Done || is_over();
            let running = offer.word.with(Doing::Running);
            if has_ended && (desk.replace(offer.word, running) || desk.replace(awaiting, running)) {
                return Err(match outcome {
                    _ if !self.is_bound() => Error::NotBound,
                    Outcome::Done => Error::PeerDied,
                    Outcome::TimedOut => Error::TimedOut,
                    Outcome::Interrupted => Error::Interrupted,
                });
            }
        }
    }

    /// Offers a message, and waits until it was taken, or is certain to be.
    fn offer_and_wait(
        &self,
        peers: &mut Peers,
        to: Endpoint,
        message: &Message,
        limit: Limit,
        then: Continuation,
    ) -> Result<Offer, Error> {
        let trap = if then == Continuation::Return { Trap::Send } else { Trap::SendReceive };
        let (to, incarnation) = self.check_destination(to, trap)?;
        peers.get(self, to, incarnation)?;
        self.wait_for_attachment(peers, to, incarnation);
        let doing = if then == Continuation::Return { Doing::Sending(to) } else { Doing::SendingForAnswer(to) };
        let word = peers.next_call(doing);
        let desk = self.desk();
        // Before the offer: whoever takes it says on this desk that the wait is over, before it does anything else. Otherwise it could find
        // this process still sending when it sends in turn, and take that for a circle.
        desk.set(word);
        let channel = peers.get(self, to, incarnation)?.channel(self.number, to);
        let Some(found) = channel.offer(word.call(), now_ns(), message) else {
            // Only a scribble fills both places: the other end has broken its own box.
            return Err(Error::Busy);
        };
        let offer = Offer { to, incarnation, found, word };
        self.count_sent();
        if !self.claim(peers, to) {
            let channel = peers.get(self, to, incarnation)?.channel(self.number, to);
            self.wait_until_taken(channel, &offer, limit)?;
        }
        peers.last = Some(to);
        Ok(offer)
    }

    fn wait_until_taken(&self, channel: &Channel, offer: &Offer, limit: Limit) -> Result<(), Error> {
        let failed = |error| if channel.withdraw(offer.found) { Err(error) } else { Ok(()) };
        if limit == Limit::NoWait {
            return failed(Error::Again);
        }
        if self.closes_circle(offer.word) {
            return failed(Error::Locked);
        }
        let is_gone = || self.board.incarnation(offer.to) != offer.incarnation;
        let outcome = wait(self.desk(), Some(self.desks.desk(offer.to)), limit, || {
            !channel.is_offered(offer.found) || is_gone() || !self.is_bound()
        });
        match outcome {
            _ if !channel.is_offered(offer.found) => Ok(()),
            _ if !self.is_bound() => failed(Error::NotBound),
            Outcome::Done => failed(Error::DestinationDied),
            Outcome::TimedOut => failed(Error::TimedOut),
            Outcome::Interrupted => failed(Error::Interrupted),
        }
    }

    /// Ends the wait of a process that would take a message of this one. Returns whether it did.
    fn claim(&self, peers: &Peers, to: Number) -> bool {
        let desk = self.desks.desk(to);
        let mut word = desk.word_to_replace();
        loop {
            let (next, is_claim) = match word.doing() {
                Doing::Looking => (Doing::LookingAgain, false),
                doing if self.would_accept(peers, to, doing) => (Doing::GotMessage(self.number), true),
                _ => return false,
            };
            if desk.replace(word, word.with(next)) {
                if is_claim {
                    ring(desk);
                }
                return is_claim;
            }
            word = desk.word();
        }
    }

    fn accepts(&self, peers: &Peers, to: Number) -> bool {
        self.would_accept(peers, to, self.desks.desk(to).word().doing())
    }

    /// Whether a process that does this takes a message of this one.
    fn would_accept(&self, peers: &Peers, to: Number, doing: Doing) -> bool {
        let waits = match doing {
            Doing::Receiving(from, _) => self.is_meant(from),
            Doing::AwaitingAnswer(whom) => whom == self.number,
            _ => false,
        };
        waits && peers.live(self, to).is_some_and(|own| own.channel(self.number, to).is_attached())
    }

    fn is_meant(&self, from: From) -> bool {
        from == From::Any || from == From::One(self.number)
    }

    /// Waits a moment for a process that waits to map the box it was just given: then it can be told at once.
    fn wait_for_attachment(&self, peers: &Peers, to: Number, incarnation: u32) {
        let waits = || matches!(self.desks.desk(to).word().doing(), Doing::Receiving(from, _) if self.is_meant(from));
        let attached = || peers.mapped(to, incarnation).is_none_or(|own| own.channel(self.number, to).is_attached());
        if attached() {
            return;
        }
        let end = now_ns() + ATTACH_NS;
        while !attached() && waits() && self.board.incarnation(to) == incarnation && now_ns() < end {
            ring(self.desks.desk(to));
            std::thread::sleep(std::time::Duration::from_micros(20));
        }
    }

    fn count_sent(&self) {
        let sent = &self.desk().sent;
        sent.store(sent.load(Relaxed) + 1, Relaxed);
    }

    /// Announces that a call has ended, unless the desk says so.
    fn finish(&self, peers: &mut Peers) {
        if !matches!(self.desk().word().doing(), Doing::Running | Doing::GotMessage(_)) {
            self.desk().set(peers.next_call(Doing::Running));
        }
    }
}

fn source_died(error: Error) -> Error {
    if error == Error::DestinationDied { Error::SourceDied } else { error }
}
