//! `sendrec`: a request and its answer. See `exchange` for the protocol.
//!
//! The answer ends the call of who sends it, without a look at what this one does; so from the request on it is promised ([`crate::pair`]), until this process
//! says in the box that it does not look there any more, and sleeps at its desk.

use crate::desk::{Doing, Word};
use crate::exchange::Target;
use crate::member::{Ends, Member, Peers};
use crate::memory::InUse;
use crate::pair::{Asks, Offered};
use crate::wait::{Limit, Outcome, look_again, look_for_a_moment, now_ns, sleep_until};
use m3ipc::endpoint::Endpoint;
use m3ipc::error::Error;
use m3ipc::message::Message;
use m3ipc::rights::Trap;

impl Member {
    /// `sendrec` without a limit with a process that was called before; `None`: [`Member::send_receive`] must do it.
    #[inline(always)]
    pub fn send_receive_at_once(&self, to: Endpoint, message: &mut Message) -> Option<Result<(), Error>> {
        let (peers, (number, incarnation)) = self.begin_at_once(to)?;
        Some(self.ask(peers, Target { number, incarnation }, message, Limit::Forever))
    }

    /// `sendrec`. The answer comes in the place of the message.
    ///
    /// # Errors
    /// As `Rendezvous::send_receive`, and `TimedOut`, `Interrupted`, `NotBound`.
    pub fn send_receive(&self, to: Endpoint, message: &mut Message, limit: Limit) -> Result<(), Error> {
        let mut peers = self.begin()?;
        let died = |error| if error == Error::DestinationDied { Error::PeerDied } else { error };
        let (target, _) = self.reach(&mut peers, to, Trap::SendReceive).map_err(died)?;
        self.ask(peers, target, message, limit)
    }

    #[inline(always)]
    fn ask(&self, mut peers: InUse<Peers>, to: Target, message: &mut Message, limit: Limit) -> Result<(), Error> {
        let link = peers.last_link_mut(to.number).ok_or(Error::PeerDied)?;
        let request = link.offer(message, Asks::Answer);
        self.count_sent();
        let desk = self.desk();
        desk.set_status(Word::new(Doing::SendingForAnswer(to.number), request.number().into()));
        let peer = self.desks.desk(to.number);
        // One that does not sleep finds the request. Whether it has announced that it waits is not asked: it would have to fetch that line again for its next
        // announcement.
        if limit != Limit::Forever || !peer.word().is_quiet() || link.is_doubtful() {
            return self.ask_busy(peers, to, request, limit, message);
        }
        let source = self.board.last_endpoint(to.number).raw();
        let promise = link.promised_answer();
        // By value: what is referred to would be kept in memory.
        let Some(found) = look_for_a_moment(desk, peer, move || promise.kept()) else {
            return self.ask_busy(peers, to, request, limit, message);
        };
        promise.read(message);
        link.settle(request);
        link.took_promised(found);
        message.source = source;
        self.tell_sender_of_promised(to.number, found);
        desk.set_status(Word::new(Doing::Running, 0));
        peers.last = to.number;
        Ok(())
    }

    /// Goes on with `sendrec` if no answer has come at once.
    #[cold]
    #[inline(never)]
    fn ask_busy(
        &self,
        mut peers: InUse<Peers>,
        to: Target,
        request: Offered,
        limit: Limit,
        message: &mut Message,
    ) -> Result<(), Error> {
        let link = peers.last_link_mut(to.number).ok_or(Error::PeerDied)?;
        let limit = match (self.is_certain(link, to.number, request), limit) {
            (false, Limit::NoWait) if link.withdraw(request) => {
                self.finish(&mut peers);
                peers.last = to.number;
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
        look_again(self.desk(), self.desks.desk(to.number), || link.answer(request), is_over);
        let result = self.wait_for_answer(link, to, request, limit, message);
        link.set_began(request, 0);
        self.finish(&mut peers);
        peers.last = to.number;
        if result.is_ok() {
            message.source = self.board.last_endpoint(to.number).raw();
        }
        result
    }

    /// Takes the answer to a request if it has come, or waits for it at the desk.
    fn wait_for_answer(
        &self,
        link: &mut Ends,
        to: Target,
        request: Offered,
        limit: Limit,
        message: &mut Message,
    ) -> Result<(), Error> {
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
}
