//! The calls that move messages, by the rules of [`m3ipc::rendezvous`].
//!
//! While both processes run, or take turns on one processor, they need their box alone ([`crate::pair`]): the receiver announces there that it
//! waits for this one, the sender puts its message there, and both calls have ended. Who has looked again for some microseconds in vain
//! announces on its desk what it waits for, and sleeps. Then others find it there: a sender claims a receiver by one compare-and-exchange of
//! its word, and who closes a circle of waits finds the circle.
//!
//! Everybody who announces on a desk says first that it looks, looks, and only if nothing came meanwhile that it waits: so nobody is seen
//! waiting for what has come already.
//!
//! Neighbours: `receive` has the calls that receive, `take` what a receiver finds in its boxes, `circles` finds waits that would never end.

use crate::desk::{Doing, From, Takes, Word};
use crate::member::{Ends, Member, Peers};
use crate::pair::{Asks, Offered};
use crate::wait::{Limit, Outcome, coarse_now_ns, look_again, now_ns, ring, sleep_until};
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use m3ipc::message::Message;
use m3ipc::rights::Trap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a notification waits for a receiver that waits but has not mapped the box yet.
const ATTACH_NS: u64 = 100_000_000;
/// Pause between two looks at a process that is about to do something.
const PAUSE: Duration = Duration::from_micros(20);
/// Looks at a receiver on another processor before its sender says that it waits: a few hundred nanoseconds.
const MOMENT_LOOKS: u32 = 20;
/// Looks at a process that awaits an answer and is just about to sleep, before its reply fails: a second.
const REPLY_LOOKS: u32 = 50_000;

/// A process that a call goes to.
#[derive(Clone, Copy)]
struct Target {
    number: Number,
    incarnation: u32,
}

impl Member {
    /// `send`.
    ///
    /// # Errors
    /// As `Rendezvous::send`, and `TimedOut`, `Interrupted`, `NotBound`.
    pub fn send(&self, to: Endpoint, message: &Message, limit: Limit) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let (target, link) = self.reach(&mut peers, to, Trap::Send)?;
        let offered = link.offer(message, Asks::No);
        self.count_sent();
        let is_certain = self.is_certain(link, target.number, offered)
            || limit != Limit::NoWait && self.is_soon_certain(link, target.number, offered);
        let result = if is_certain {
            link.settle(offered);
            Ok(())
        } else {
            let result = self.wait_until_taken(link, target, offered, limit);
            self.finish(&mut peers);
            result
        };
        peers.last = Some(target.number);
        result
    }

    /// `sendrec`. The answer comes in the place of the message.
    ///
    /// # Errors
    /// As `Rendezvous::send_receive`, and `TimedOut`, `Interrupted`, `NotBound`.
    pub fn send_receive(&self, to: Endpoint, message: &mut Message, limit: Limit) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let died = |error| if error == Error::DestinationDied { Error::PeerDied } else { error };
        let (target, link) = self.reach(&mut peers, to, Trap::SendReceive).map_err(died)?;
        let offered = link.offer(message, Asks::Answer);
        self.count_sent();
        self.desk().set_status(Word::new(Doing::SendingForAnswer(target.number), offered.number().into()));
        let result = self.wait_for_answer(link, target, offered, limit, message);
        self.finish(&mut peers);
        peers.last = Some(target.number);
        if result.is_ok() {
            message.source = self.board.last_endpoint(target.number).raw();
        }
        result
    }

    /// `reply`.
    ///
    /// # Errors
    /// As `Rendezvous::reply`, and `NotBound`.
    pub fn reply(&self, to: Endpoint, message: &Message) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let (target, link) = self.reach(&mut peers, to, Trap::Reply)?;
        let status = self.desks.desk(target.number).status();
        let offered = link.offer(message, Asks::No);
        let mut is_done = self.is_certain(link, target.number, offered);
        // Between looking again and sleeping, whoever awaits this answer announces nothing.
        let awaits = |link: &Ends| {
            let desk = self.desks.desk(target.number);
            status == desk.status()
                && status.doing() == Doing::SendingForAnswer(self.number)
                && link.owes_answer(status.call())
                && self.board.incarnation(target.number) == target.incarnation
        };
        for _ in 0..REPLY_LOOKS {
            if is_done || !awaits(link) {
                break;
            }
            std::thread::sleep(PAUSE);
            is_done = link.is_taken(offered) || self.is_certain(link, target.number, offered);
        }
        if is_done {
            link.settle(offered);
        } else if link.withdraw(offered) {
            return Err(Error::BadState);
        }
        peers.last = Some(target.number);
        Ok(())
    }

    /// `notify`, `ntfy_value`.
    ///
    /// # Errors
    /// As `Rendezvous::notify`, and `NotBound`.
    pub fn notify(&self, to: Endpoint, value: u64) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let (target, link) = self.reach(&mut peers, to, Trap::Notify)?;
        if !self.rights().is_system() {
            return Err(Error::Privileges);
        }
        let desk = self.desks.desk(target.number);
        let waits = |doing| matches!(doing, Doing::Receiving(from, Takes::All) if self.is_meant(from));
        let is_waiting = |link: &Ends| waits(desk.status().doing()) || link.waits();
        if !self.board.rights(target.number).is_system() && !is_waiting(link) {
            return Err(Error::Privileges);
        }
        // One that the receiver was claimed for is not pending any more.
        let is_claimed = desk.word().doing() == Doing::GotNote(self.number);
        if !link.note(coarse_now_ns(), value, is_claimed) {
            return Err(Error::Overrun);
        }
        loop {
            let word = desk.word();
            let next = match word.doing() {
                doing if waits(doing) && link.is_attached() => Doing::GotNote(self.number),
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

    /// Checks that this call may be made towards a process. Returns it and the box in common.
    #[inline]
    fn reach<'a>(&self, peers: &'a mut Peers, to: Endpoint, trap: Trap) -> Result<(Target, &'a mut Ends), Error> {
        let (number, incarnation) = match peers.checked(self, to) {
            Some(known) => known,
            None => self.reach_anew(peers, to, trap)?,
        };
        let link = peers.last_link_mut(number).ok_or(Error::DestinationDied)?;
        Ok((Target { number, incarnation }, link))
    }

    /// Checks everything, and maps the box if it is not mapped yet.
    #[cold]
    fn reach_anew(&self, peers: &mut Peers, to: Endpoint, trap: Trap) -> Result<(Number, u32), Error> {
        let changes = self.board.changes();
        let (number, incarnation) = self.check_destination(to, trap)?;
        let link = peers.get(self, number, incarnation)?;
        if !link.is_attached() {
            self.wait_for_attachment(link, Target { number, incarnation });
        }
        if link.is_attached() {
            peers.keep_checked(self, to, (number, incarnation), changes);
        }
        Ok((number, incarnation))
    }

    /// Whether the receiver is certain to take what was offered, because it waits for it. A sleeping one is woken.
    #[inline(always)]
    fn is_certain(&self, link: &mut Ends, to: Number, offered: Offered) -> bool {
        link.is_awaited(offered) || self.claim(link, to)
    }

    /// Whether a receiver on another processor takes what was offered, or announces that it will, within a moment: it may be on its way from its last
    /// call to this one.
    #[inline]
    fn is_soon_certain(&self, link: &Ends, to: Number, offered: Offered) -> bool {
        let is_beside = self.desk().cpu.load(Relaxed) != self.desks.desk(to).cpu.load(Relaxed);
        is_beside
            && (0..MOMENT_LOOKS).any(|_| {
                std::hint::spin_loop();
                link.is_awaited(offered) || link.is_taken(offered)
            })
    }

    /// Waits until a message was taken that nobody waited for.
    fn wait_until_taken(&self, link: &mut Ends, to: Target, offered: Offered, limit: Limit) -> Result<(), Error> {
        if limit == Limit::NoWait {
            return take_back(link, offered, Error::Again);
        }
        link.set_began(offered, now_ns());
        let waiting = Word::new(Doing::Sending(to.number), offered.number().into());
        let desk = self.desk();
        desk.set_status(waiting);
        let is_taken = || link.is_taken(offered);
        let is_over = || self.is_gone(to) || !self.is_bound();
        let mut outcome = Outcome::Done;
        look_again(desk, self.desks.desk(to.number), is_taken, is_over);
        if !is_taken() {
            let is_late = self.announce(waiting, || is_taken().then_some(Doing::Running));
            if !is_late && self.closes_circle(waiting) {
                return take_back(link, offered, Error::Locked);
            }
            outcome = sleep_until(desk, limit, || is_taken() || is_over());
        }
        if link.is_taken(offered) {
            link.settle(offered);
            return Ok(());
        }
        take_back(link, offered, self.why_ended(outcome, Error::DestinationDied))
    }

    /// Waits until a request was taken and answered.
    fn wait_for_answer(
        &self,
        link: &mut Ends,
        to: Target,
        request: Offered,
        limit: Limit,
        message: &mut Message,
    ) -> Result<(), Error> {
        let limit = match (self.is_certain(link, to.number, request), limit) {
            (false, Limit::NoWait) if link.withdraw(request) => {
                return Err(Error::Again);
            }
            (_, Limit::NoWait) => Limit::Forever,
            (true, limit) => limit,
            (false, limit) => {
                link.set_began(request, now_ns());
                limit
            }
        };
        let is_over = || self.is_gone(to) || !self.is_bound();
        look_again(self.desk(), self.desks.desk(to.number), || link.answer(request).is_some(), is_over);
        if let Some(found) = link.answer(request)
            && link.take_answer(request, found, true, message)
        {
            self.tell_sender_of_promised(to.number, found);
            return Ok(());
        }
        link.retract_request(request);
        if self.take_answer(link, to, request, message) {
            return Ok(());
        }
        self.sleep_until_answer(link, to, request, limit, message)
    }

    /// Takes the answer to a request that was retracted, if it has come.
    fn take_answer(&self, link: &mut Ends, from: Target, request: Offered, message: &mut Message) -> bool {
        let Some(found) = link.answer(request) else { return false };
        let is_taken = link.take_answer(request, found, false, message);
        if is_taken {
            self.tell_sender(from.number, found.number());
        }
        is_taken
    }

    fn sleep_until_answer(
        &self,
        link: &mut Ends,
        to: Target,
        request: Offered,
        limit: Limit,
        message: &mut Message,
    ) -> Result<(), Error> {
        let desk = self.desk();
        let sending = Word::new(Doing::SendingForAnswer(to.number), request.number().into());
        let awaiting = sending.with(Doing::AwaitingAnswer(to.number));
        let after = || link.is_taken(request).then_some(Doing::AwaitingAnswer(to.number));
        if !self.announce(sending, after) && self.closes_circle(sending) {
            if link.withdraw(request) {
                return Err(Error::Locked);
            }
            desk.set(awaiting);
        }
        loop {
            let outcome = sleep_until(desk, limit, || {
                let word = desk.word();
                let is_told = word != sending && word != awaiting;
                is_told || link.answer(request).is_some() || self.is_gone(to) || !self.is_bound()
            });
            if self.take_answer(link, to, request, message) {
                return Ok(());
            }
            let word = desk.word();
            if ![sending, awaiting].contains(&word) {
                // A scribble: what it says did not happen.
                desk.replace(word, awaiting);
            }
            let has_ended = outcome != Outcome::Done || self.is_gone(to) || !self.is_bound();
            let running = sending.with(Doing::Running);
            if has_ended && (desk.replace(sending, running) || desk.replace(awaiting, running)) {
                let error = self.why_ended(outcome, Error::PeerDied);
                return self.give_up(link, to, request, error, message);
            }
        }
    }

    /// Ends a wait for an answer, unless it has just come.
    fn give_up(
        &self,
        link: &mut Ends,
        to: Target,
        request: Offered,
        error: Error,
        message: &mut Message,
    ) -> Result<(), Error> {
        if self.take_answer(link, to, request, message) {
            return Ok(());
        }
        if link.is_taken(request) {
            link.settle(request);
        } else {
            link.withdraw(request);
        }
        link.give_up();
        Err(error)
    }

    /// Announces a wait on this process's desk, unless something has come: then what `after` says. Returns whether that is the case.
    fn announce(&self, waiting: Word, after: impl Fn() -> Option<Doing>) -> bool {
        let looking = waiting.with(Doing::Looking);
        loop {
            self.desk().set(looking);
            let ended = after();
            if self.desk().replace(looking, ended.map_or(waiting, |doing| waiting.with(doing))) {
                return ended.is_some();
            }
        }
    }

    fn is_gone(&self, target: Target) -> bool {
        self.board.incarnation(target.number) != target.incarnation
    }

    pub(crate) fn why_ended(&self, outcome: Outcome, died: Error) -> Error {
        match outcome {
            _ if !self.is_bound() => Error::NotBound,
            Outcome::Done => died,
            Outcome::TimedOut => Error::TimedOut,
            Outcome::Interrupted => Error::Interrupted,
        }
    }

    /// Ends the wait of a process that sleeps and would take a message of this one. Returns whether it did.
    #[inline(never)]
    fn claim(&self, link: &mut Ends, to: Number) -> bool {
        let desk = self.desks.desk(to);
        loop {
            let word = desk.word();
            let (next, is_claim) = match word.doing() {
                Doing::Looking => (Doing::LookingAgain, false),
                Doing::Running => return false,
                _ if self.would_accept(link, word) => (Doing::GotMessage(self.number), true),
                _ => return false,
            };
            if desk.replace(word, word.with(next)) {
                if is_claim {
                    ring(desk);
                }
                return is_claim;
            }
        }
    }

    /// Whether a process whose desk says this takes a message of this one.
    fn would_accept(&self, link: &mut Ends, word: Word) -> bool {
        let waits = match word.doing() {
            Doing::Receiving(from, _) => self.is_meant(from),
            Doing::AwaitingAnswer(whom) | Doing::SendingForAnswer(whom) => {
                whom == self.number && link.owes_answer(word.call())
            }
            _ => false,
        };
        waits && link.is_attached()
    }

    fn is_meant(&self, from: From) -> bool {
        from == From::Any || from == From::One(self.number)
    }

    /// Waits a moment for a process that waits to map the box it was just given: then it can be told at once.
    #[cold]
    fn wait_for_attachment(&self, link: &mut Ends, to: Target) {
        let desk = self.desks.desk(to.number);
        let waits = || matches!(desk.status().doing(), Doing::Receiving(from, _) if self.is_meant(from));
        let end = now_ns() + ATTACH_NS;
        while !link.is_attached() && waits() && !self.is_gone(to) && now_ns() < end {
            ring(desk);
            std::thread::sleep(PAUSE);
        }
    }

    fn count_sent(&self) {
        let sent = &self.desk().sent;
        sent.store(sent.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Announces that a call has ended, unless the desk says so.
    #[inline(always)]
    pub(crate) fn finish(&self, peers: &mut Peers) {
        let desk = self.desk();
        desk.set_status(Word::new(Doing::Running, 0));
        if !desk.word().is_quiet() {
            desk.set(peers.next_call(Doing::Running));
        }
    }
}

fn take_back(link: &mut Ends, offered: Offered, error: Error) -> Result<(), Error> {
    if link.withdraw(offered) { Err(error) } else { Ok(()) }
}
