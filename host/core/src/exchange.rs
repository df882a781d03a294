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
//! Neighbours: `ask` has `sendrec`, `receive` the calls that receive, `take` what a receiver finds in its boxes, `circles` finds waits that would never end.

use crate::desk::{Doing, From, Takes, Word};
use crate::member::{Ends, Member, Peers};
use crate::memory::InUse;
use crate::pair::{Asks, Offered};
use crate::wait::{Limit, Outcome, coarse_now_ns, look_again, look_for_a_moment, now_ns, ring, sleep_until};
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
/// Looks at a process that awaits an answer and is just about to sleep, before its reply fails: a second.
const REPLY_LOOKS: u32 = 50_000;

/// A process that a call goes to.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) number: Number,
    pub(crate) incarnation: u32,
}

impl Member {
    /// `send` without a limit to a process that was called before; `None`: [`Member::send`] must do it.
    #[inline(always)]
    pub fn send_at_once(&self, to: Endpoint, message: &Message) -> Option<Result<(), Error>> {
        let (peers, (number, incarnation)) = self.begin_at_once(to)?;
        Some(self.send_to(peers, Target { number, incarnation }, message, Limit::Forever))
    }

    /// `send`.
    ///
    /// # Errors
    /// As `Rendezvous::send`, and `TimedOut`, `Interrupted`, `NotBound`.
    pub fn send(&self, to: Endpoint, message: &Message, limit: Limit) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let (target, _) = self.reach(&mut peers, to, Trap::Send)?;
        self.send_to(peers, target, message, limit)
    }

    #[inline(always)]
    fn send_to(&self, mut peers: InUse<Peers>, to: Target, message: &Message, limit: Limit) -> Result<(), Error> {
        let link = peers.last_link_mut(to.number).ok_or(Error::DestinationDied)?;
        let offered = link.offer(message, Asks::No);
        self.count_sent();
        if !link.is_awaited(offered) {
            return self.send_to_busy(peers, to, offered, limit);
        }
        link.settle(offered);
        peers.last = to.number;
        Ok(())
    }

    /// Goes on with `send` to a process that has not said in the box that it waits.
    #[cold]
    #[inline(never)]
    fn send_to_busy(&self, mut peers: InUse<Peers>, to: Target, offered: Offered, limit: Limit) -> Result<(), Error> {
        let link = peers.last_link_mut(to.number).ok_or(Error::DestinationDied)?;
        let is_certain =
            self.claim(link, to.number) || limit != Limit::NoWait && self.is_soon_certain(link, to.number, offered);
        let result = if is_certain {
            link.settle(offered);
            Ok(())
        } else {
            let result = self.wait_until_taken(link, to, offered, limit);
            link.set_began(offered, 0);
            self.finish(&mut peers);
            result
        };
        peers.last = to.number;
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
        self.count_call();
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
        peers.last = target.number;
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
    pub(crate) fn reach<'a>(
        &self,
        peers: &'a mut Peers,
        to: Endpoint,
        trap: Trap,
    ) -> Result<(Target, &'a mut Ends), Error> {
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
    pub(crate) fn is_certain(&self, link: &mut Ends, to: Number, offered: Offered) -> bool {
        link.is_awaited(offered) || self.claim(link, to)
    }

    /// Whether a receiver on another processor takes what was offered, or announces that it will, within a moment: it may be on its way from its last
    /// call to this one.
    #[inline]
    fn is_soon_certain(&self, link: &Ends, to: Number, offered: Offered) -> bool {
        let look = || (link.is_awaited(offered) || link.is_taken(offered)).then_some(());
        look_for_a_moment(self.desk(), self.desks.desk(to), look).is_some()
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
        look_again(desk, self.desks.desk(to.number), || is_taken().then_some(()), is_over);
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

    /// Announces a wait on this process's desk, unless something has come: then what `after` says. Returns whether that is the case.
    pub(crate) fn announce(&self, waiting: Word, after: impl Fn() -> Option<Doing>) -> bool {
        let looking = waiting.with(Doing::Looking);
        loop {
            self.desk().set(looking);
            let ended = after();
            if self.desk().replace(looking, ended.map_or(waiting, |doing| waiting.with(doing))) {
                return ended.is_some();
            }
        }
    }

    pub(crate) fn is_gone(&self, target: Target) -> bool {
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
    pub(crate) fn claim(&self, link: &mut Ends, to: Number) -> bool {
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

    #[inline(always)]
    pub(crate) fn count_sent(&self) {
        self.count_call();
        let sent = &self.desk().sent;
        sent.store(sent.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Announces that a call has ended, unless the desk says so.
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
