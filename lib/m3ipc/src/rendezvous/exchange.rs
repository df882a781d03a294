//! The calls that move messages.

use super::{Doing, End, Ended, Place, Received, Rendezvous, Source, Takes, Then, Turn, Wait};
use crate::{
    endpoint::{Endpoint, Number},
    error::Error,
    rights::Trap,
};

/// What a receiver takes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    NotificationOf(Number),
    MessageOf(Number),
}

impl<M: Copy, const N: usize> Rendezvous<M, N> {
    /// `send`: ends when the message was taken.
    ///
    /// Fails with `CallDenied`, `Again`, `Locked`, `NoProxy`; `DestinationDied`, `StaleEndpoint` and `BadPeer` as [`Rendezvous::locate`];
    /// `BadPeer` also for the caller itself.
    pub fn send(&mut self, who: Number, to: Endpoint, message: M, wait: Wait, ended: &mut impl Ended<M>) -> Turn<M> {
        self.begin_send(who, to, message, wait, Then::Return, ended).unwrap_or_else(fail)
    }

    /// `sendrec`: sends, then receives from the same process. Fails as `send` does, with `PeerDied` for a process that has ended.
    pub fn send_receive(
        &mut self,
        who: Number,
        to: Endpoint,
        message: M,
        wait: Wait,
        ended: &mut impl Ended<M>,
    ) -> Turn<M> {
        self.begin_send(who, to, message, wait, Then::ReceiveAnswer, ended)
            .unwrap_or_else(|error| fail(if error == Error::DestinationDied { Error::PeerDied } else { error }))
    }

    fn begin_send(
        &mut self,
        who: Number,
        to: Endpoint,
        message: M,
        wait: Wait,
        then: Then,
        ended: &mut impl Ended<M>,
    ) -> Result<Turn<M>, Error> {
        let trap = if then == Then::Return { Trap::Send } else { Trap::SendReceive };
        let to = self.check_destination(who, to, trap)?;
        if self.accepts(to, who) {
            self.deliver(who, to, message, ended);
            return Ok(self.after_sending(who, to, then));
        }
        if wait == Wait::No {
            return Err(Error::Again);
        }
        self.check_circle(who, to)?;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.set_doing(who, Doing::Sending { to, message, ticket, then });
        Ok(Turn::Waits)
    }

    /// `receive` from one process, or from [`Endpoint::ANY`].
    ///
    /// Fails with `CallDenied`, `Again`, `Locked`; `SourceDied`, `StaleEndpoint` and `BadPeer` as [`Rendezvous::locate`].
    pub fn receive(&mut self, who: Number, from: Endpoint, wait: Wait, ended: &mut impl Ended<M>) -> Turn<M> {
        self.begin_receive(who, from, Takes::Notifications, wait, ended).unwrap_or_else(fail)
    }

    /// `rcvrqst`: receives a message of anybody, and no notification. Fails as `receive` does.
    pub fn receive_request(&mut self, who: Number, wait: Wait, ended: &mut impl Ended<M>) -> Turn<M> {
        self.begin_receive(who, Endpoint::ANY, Takes::Messages, wait, ended).unwrap_or_else(fail)
    }

    fn begin_receive(
        &mut self,
        who: Number,
        from: Endpoint,
        takes: Takes,
        wait: Wait,
        ended: &mut impl Ended<M>,
    ) -> Result<Turn<M>, Error> {
        self.process(who).ok_or(Error::NotBound)?.rights.check_trap(Trap::Receive)?;
        let from = match from {
            Endpoint::ANY => Source::Any,
            one => Source::One(self.locate(one).map_err(|error| match error {
                Error::DestinationDied => Error::SourceDied,
                other => other,
            })?),
        };
        match from {
            Source::One(one) if one == who => return Err(Error::BadPeer),
            Source::One(one) if !self.may_receive(who, one) => return Err(Error::CallDenied),
            Source::One(_) | Source::Any => {}
        }
        self.set_doing(who, Doing::Receiving { from, takes });
        if let Some(received) = self.take_next(who, ended) {
            return Ok(Turn::Ended(End::Received(received)));
        }
        let allowed = match (wait, from) {
            (Wait::No, _) => Err(Error::Again),
            (Wait::Yes, Source::One(one)) => self.check_circle(who, one),
            (Wait::Yes, Source::Any) => Ok(()),
        };
        if allowed.is_err() {
            self.set_doing(who, Doing::Running);
        }
        allowed.map(|()| Turn::Waits)
    }

    /// `notify`: tells a process that something has happened, now or when it receives next. Never waits. `elsewhere`: the process waits for
    /// notifications by other means than this machine, and will take it from here.
    ///
    /// # Errors
    /// `CallDenied`, `NoProxy`, and as [`Rendezvous::locate`]; `Overrun`: a notification of the same source is pending already;
    /// `Privileges`: the caller may not notify, or the other does not wait and may not be notified.
    pub fn notify(
        &mut self,
        who: Number,
        to: Endpoint,
        elsewhere: bool,
        ended: &mut impl Ended<M>,
    ) -> Result<(), Error> {
        let to = self.check_destination(who, to, Trap::Notify)?;
        if !self.process(who).is_some_and(|process| process.rights.is_system()) {
            return Err(Error::Privileges);
        }
        self.post(who, to, elsewhere, ended)
    }

    /// The same in the name of a slot, whoever is in it, if anybody: of HARDWARE, when an interrupt has come.
    ///
    /// # Errors
    /// As [`Rendezvous::notify`], but for those of the caller's rights.
    pub fn notify_of(
        &mut self,
        source: Number,
        to: Endpoint,
        elsewhere: bool,
        ended: &mut impl Ended<M>,
    ) -> Result<(), Error> {
        let to = self.locate(to)?;
        match self.place(to) {
            _ if to == source => Err(Error::BadPeer),
            Some(Place::Here) => self.post(source, to, elsewhere, ended),
            _ => Err(Error::NoProxy),
        }
    }

    fn post(&mut self, source: Number, to: Number, elsewhere: bool, ended: &mut impl Ended<M>) -> Result<(), Error> {
        if self.accepts(to, source) && self.takes_notifications(to) {
            let name = self.last_name(source);
            self.set_doing(to, Doing::Running);
            ended.ended(to, End::Received(Received::Notification(name)));
            return Ok(());
        }
        let may_be_kept = elsewhere || self.process(to).is_some_and(|process| process.rights.is_system());
        if !may_be_kept {
            return Err(Error::Privileges);
        }
        let is_new = self.process_mut(to).is_some_and(|process| process.pending.insert(source));
        if is_new { Ok(()) } else { Err(Error::Overrun) }
    }

    /// `reply`: sends to a process that waits for the caller. Never waits.
    ///
    /// # Errors
    /// `CallDenied`, `NoProxy`, and as [`Rendezvous::locate`]; `BadState`: the process does not wait for the caller.
    pub fn reply(&mut self, who: Number, to: Endpoint, message: M, ended: &mut impl Ended<M>) -> Result<(), Error> {
        let to = self.check_destination(who, to, Trap::Reply)?;
        if !self.accepts(to, who) {
            return Err(Error::BadState);
        }
        self.deliver(who, to, message, ended);
        Ok(())
    }

    /// Checks that a process may send to another, and returns whose slot that is.
    ///
    /// # Errors
    /// As [`Rendezvous::send`], but for those of waiting.
    pub fn may_send(&self, who: Number, to: Endpoint) -> Result<Number, Error> {
        self.check_destination(who, to, Trap::Send)
    }

    fn check_destination(&self, who: Number, to: Endpoint, trap: Trap) -> Result<Number, Error> {
        let rights = self.process(who).ok_or(Error::NotBound)?.rights;
        rights.check_trap(trap)?;
        let to = self.locate(to)?;
        match self.process(to).map(|process| process.place) {
            _ if to == who => Err(Error::BadPeer),
            Some(Place::There(_)) | None => Err(Error::NoProxy),
            Some(Place::Here) if rights.sends_to.contains(to) && self.may_receive(to, who) => Ok(to),
            Some(Place::Here) => Err(Error::CallDenied),
        }
    }

    fn may_receive(&self, receiver: Number, sender: Number) -> bool {
        self.process(receiver).is_some_and(|process| process.rights.receives_from.contains(sender))
    }

    /// Whether a process waits and would take a message of `sender`.
    fn accepts(&self, receiver: Number, sender: Number) -> bool {
        match self.process(receiver).map(|process| process.doing) {
            Some(Doing::Receiving { from: Source::Any, .. }) => true,
            Some(Doing::Receiving { from: Source::One(from), .. } | Doing::AwaitingAnswer { from }) => from == sender,
            Some(Doing::Sending { .. } | Doing::Running) | None => false,
        }
    }

    fn takes_notifications(&self, receiver: Number) -> bool {
        let doing = self.process(receiver).map(|process| process.doing);
        matches!(doing, Some(Doing::Receiving { takes: Takes::Notifications, .. }))
    }

    /// Ends the wait of a receiver with a message.
    fn deliver(&mut self, from: Number, to: Number, message: M, ended: &mut impl Ended<M>) {
        let Some(source) = self.endpoint(from) else { return };
        self.set_doing(to, Doing::Running);
        ended.ended(to, End::Received(Received::Message(source, message)));
    }

    /// What becomes of a sender whose message was taken. No circle can be closed by waiting for the answer: the receiver runs.
    fn after_sending(&mut self, who: Number, to: Number, then: Then) -> Turn<M> {
        match then {
            Then::Return => {
                self.set_doing(who, Doing::Running);
                Turn::Ended(End::Sent)
            }
            Then::ReceiveAnswer => {
                self.set_doing(who, Doing::AwaitingAnswer { from: to });
                Turn::Waits
            }
        }
    }

    /// Takes what a receiver that has just begun to wait would take.
    fn take_next(&mut self, who: Number, ended: &mut impl Ended<M>) -> Option<Received<M>> {
        let next = self.next_for(who)?;
        self.set_doing(who, Doing::Running);
        match next {
            Next::NotificationOf(source) => {
                self.process_mut(who)?.pending.remove(source);
                Some(Received::Notification(self.last_name(source)))
            }
            Next::MessageOf(sender) => {
                let Doing::Sending { message, then, .. } = self.process(sender)?.doing else { return None };
                if let Turn::Ended(end) = self.after_sending(sender, who, then) {
                    ended.ended(sender, end);
                }
                Some(Received::Message(self.endpoint(sender)?, message))
            }
        }
    }

    /// What a waiting receiver would take next; `None`: it does not wait, or nothing is there.
    pub(super) fn next_for(&self, who: Number) -> Option<Next> {
        let process = self.process(who)?;
        let notification = match process.doing {
            _ if !self.takes_notifications(who) => None,
            Doing::Receiving { from: Source::One(from), .. } => process.pending.contains(from).then_some(from),
            _ => process.pending.first(),
        };
        notification.map(Next::NotificationOf).or_else(|| self.first_sender(who).map(Next::MessageOf))
    }

    /// The process that has waited longest to send what `who` takes.
    fn first_sender(&self, who: Number) -> Option<Number> {
        if self.senders == 0 {
            return None;
        }
        let ticket = |sender: &Number| match self.process(*sender)?.doing {
            Doing::Sending { to, ticket, .. } if to == who && self.accepts(who, *sender) => Some(ticket),
            _ => None,
        };
        let senders = self.bound.iter().filter_map(|sender| Some((ticket(&sender)?, sender)));
        senders.min().map(|(_, sender)| sender)
    }
}

fn fail<M>(error: Error) -> Turn<M> {
    Turn::Ended(End::Failed(error))
}
