//! Who waits for whom in one container, and what ends the wait.
//!
//! One state machine of all slots. A call is a method: it ends at once, or its caller waits, and then a later call of another process ends
//! it; whose calls ended in between is told to [`Ended`]. Messages are generic: a server keeps the bytes here, a model a number.
//!
//! Rules, after those of MINIX 3:
//! * A message goes from sender to receiver when both are there; until then the first waits. Nothing is buffered but notifications, of
//!   which each source has one.
//! * A receiver takes a pending notification first, the one of the lowest slot, then the message that waits longest.
//! * A `sendrec` that has sent takes only a message of the same peer, no notification.
//! * A wait that would close a circle of processes that wait for each other fails with `Locked`.
//! * When a process ends, whoever waits for it is told, and its notifications are forgotten.
//!
//! Invariants, which [`Rendezvous::check`] tests: nobody waits for a free slot, for itself, or in a circle; no receiver waits with
//! something there that it would take.
//!
//! A process on another node is bound here too ([`Place::There`]). What is sent to it is a matter of proxies, which do not exist yet: such
//! calls fail with `NoProxy`.
//!
//! Neighbours: `exchange` has the calls that move messages, `circles` the search for circles.

mod circles;
mod exchange;
#[cfg(test)]
mod search;
#[cfg(test)]
mod tests;

use crate::{
    endpoint::{Endpoint, Number, next_generation},
    error::Error,
    limits::{PROCESSES, SLOTS},
    rights::{Rights, SlotSet},
};

/// Whom a process receives from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    Any,
    One(Number),
}

/// What a waiting receiver takes besides messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Takes {
    Messages,
    Notifications,
}

/// What a sender does when its message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Then {
    Return,
    ReceiveAnswer,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Doing<M> {
    Running,
    Sending {
        to: Number,
        message: M,
        ticket: u64,
        then: Then,
    },
    Receiving {
        from: Source,
        takes: Takes,
    },
    /// The second half of a `sendrec`.
    AwaitingAnswer {
        from: Number,
    },
}

/// Where a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On this node.
    Here,
    /// On the node with this number.
    There(u8),
}

/// A process that is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process<M> {
    place: Place,
    /// Slot of its group leader; its own for a leader.
    leader: Number,
    rights: Rights,
    doing: Doing<M>,
    /// Sources of pending notifications.
    pending: SlotSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Slot<M> {
    /// Of the occupant, or of the last one.
    generation: u32,
    occupant: Option<Process<M>>,
}

/// Whether a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// As long as it takes.
    Yes,
    /// It fails with `Again` where it would wait.
    No,
}

/// What a receiver gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Received<M> {
    /// A message of this process.
    Message(Endpoint, M),
    /// A notification of this process.
    Notification(Endpoint),
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End<M> {
    /// The message was taken.
    Sent,
    /// Something was received.
    Received(Received<M>),
    /// It failed.
    Failed(Error),
}

/// What becomes of the caller of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn<M> {
    /// The call has ended.
    Ended(End<M>),
    /// The caller waits.
    Waits,
}

/// What a process does, as descriptors tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It does not wait.
    Running,
    /// It waits until this process receives.
    Sending(Endpoint),
    /// It waits for a message of this process, or of anybody.
    Receiving(Endpoint),
}

/// Learns whose waits end.
pub trait Ended<M> {
    /// The call that this process waited in has ended.
    fn ended(&mut self, who: Number, end: End<M>);
}

impl<M, F: FnMut(Number, End<M>)> Ended<M> for F {
    fn ended(&mut self, who: Number, end: End<M>) {
        self(who, end);
    }
}

/// The processes of one container, and what they wait for. `N`: it has the slots with the `N` highest numbers; searches keep it small.
#[derive(Clone, Debug)]
pub struct Rendezvous<M, const N: usize = SLOTS> {
    slots: [Slot<M>; N],
    /// The slots that have an occupant: searches look at these alone.
    bound: SlotSet,
    /// Number of the next sender that waits.
    next_ticket: u64,
    /// How many wait to send: without any, no receiver has to look for one.
    senders: usize,
}

impl<M: Copy, const N: usize> Rendezvous<M, N> {
    /// Returns a container in which nobody is bound.
    pub const fn new() -> Rendezvous<M, N> {
        Rendezvous {
            slots: [Slot { generation: 0, occupant: None }; N],
            bound: SlotSet::NONE,
            next_ticket: 0,
            senders: 0,
        }
    }

    /// Binds a process of one thread, or the leader of a group of threads. Returns its endpoint.
    ///
    /// # Errors
    /// `SlotUsed`; `Range`: the container has no such slot.
    pub fn bind(&mut self, number: Number, place: Place) -> Result<Endpoint, Error> {
        self.occupy(number, place, number)
    }

    /// Binds a thread of the process that is bound as `leader`. Returns its endpoint.
    ///
    /// # Errors
    /// `SlotUsed`; `GroupLeader`: nobody is bound there, or it is a thread itself.
    pub fn bind_thread(&mut self, number: Number, leader: Number) -> Result<Endpoint, Error> {
        match self.process(leader) {
            Some(process) if process.leader == leader && process.place == Place::Here => {
                self.occupy(number, Place::Here, leader)
            }
            _ => Err(Error::GroupLeader),
        }
    }

    /// Binds a process under the name that it has elsewhere: one of another node, or a replica.
    ///
    /// # Errors
    /// As [`Rendezvous::bind`]; as [`Endpoint::number`].
    pub fn bind_as(&mut self, endpoint: Endpoint, place: Place) -> Result<Endpoint, Error> {
        let number = endpoint.number()?;
        self.occupy_as(number, endpoint.generation(), place, number)
    }

    fn occupy(&mut self, number: Number, place: Place, leader: Number) -> Result<Endpoint, Error> {
        let slot = &self.slots[Self::index(number).ok_or(Error::Range)?];
        self.occupy_as(number, next_generation(number, slot.generation), place, leader)
    }

    fn occupy_as(&mut self, number: Number, generation: u32, place: Place, leader: Number) -> Result<Endpoint, Error> {
        let slot = &mut self.slots[Self::index(number).ok_or(Error::Range)?];
        if slot.occupant.is_some() {
            return Err(Error::SlotUsed);
        }
        slot.generation = generation;
        self.bound.insert(number);
        slot.occupant = Some(Process {
            place,
            leader,
            rights: Rights::of_new(number),
            doing: Doing::Running,
            pending: SlotSet::NONE,
        });
        Ok(Endpoint::new(number, slot.generation))
    }

    /// A process ends or is unbound, a leader with its threads. Whoever waits for one of them is told.
    ///
    /// # Errors
    /// `NotBound`.
    pub fn unbind(&mut self, number: Number, ended: &mut impl Ended<M>) -> Result<(), Error> {
        let process = self.process(number).ok_or(Error::NotBound)?;
        if process.leader == number {
            for other in self.bound.iter().filter(|other| *other != number) {
                if self.process(other).is_some_and(|thread| thread.leader == number) {
                    self.vacate(other, ended);
                }
            }
        }
        self.vacate(number, ended);
        Ok(())
    }

    fn vacate(&mut self, number: Number, ended: &mut impl Ended<M>) {
        self.set_doing(number, Doing::Running);
        if let Some(index) = Self::index(number) {
            self.slots[index].occupant = None;
            self.bound.remove(number);
        }
        for other in self.bound.iter() {
            let Some(process) = self.process_mut(other) else { continue };
            process.pending.remove(number);
            let error = match process.doing {
                Doing::Sending { to, then: Then::Return, .. } if to == number => Error::DestinationDied,
                Doing::Sending { to, then: Then::ReceiveAnswer, .. } if to == number => Error::PeerDied,
                Doing::Receiving { from: Source::One(from), .. } if from == number => Error::SourceDied,
                Doing::AwaitingAnswer { from } if from == number => Error::PeerDied,
                _ => continue,
            };
            self.set_doing(other, Doing::Running);
            ended.ended(other, End::Failed(error));
        }
    }

    /// Ends the wait of a process, because its time limit has passed, a signal has come, or another process wants it to go on.
    ///
    /// # Errors
    /// `NotBound`; `Running`: it does not wait.
    pub fn end_wait(&mut self, number: Number, error: Error, ended: &mut impl Ended<M>) -> Result<(), Error> {
        let process = self.process(number).ok_or(Error::NotBound)?;
        if matches!(process.doing, Doing::Running) {
            return Err(Error::Running);
        }
        self.set_doing(number, Doing::Running);
        ended.ended(number, End::Failed(error));
        Ok(())
    }

    /// `wakeup`: ends the wait of a process that receives from anybody.
    ///
    /// # Errors
    /// As [`Rendezvous::locate`]; `Running`: it does not wait so.
    pub fn wake_up(&mut self, whom: Endpoint, ended: &mut impl Ended<M>) -> Result<(), Error> {
        let number = self.locate(whom)?;
        match self.process(number).map(|process| process.doing) {
            Some(Doing::Receiving { from: Source::Any, .. }) => self.end_wait(number, Error::WokenUp, ended),
            _ => Err(Error::Running),
        }
    }

    /// Checks that a block may be copied between two processes for a third, or one of them: who does not call must wait for a message, so
    /// that its memory does not change meanwhile, here or `elsewhere`.
    ///
    /// # Errors
    /// As [`Rendezvous::locate`]; `BadState`: a party does not wait; `NotPermitted`: both are of one group, which shares its memory;
    /// `NoProxy`: a party is on another node.
    pub fn check_copy(
        &self,
        caller: Number,
        from: Endpoint,
        to: Endpoint,
        mut elsewhere: impl FnMut(Number) -> bool,
    ) -> Result<(Number, Number), Error> {
        let (from, to) = (self.locate_or_self(caller, from)?, self.locate_or_self(caller, to)?);
        for party in [from, to] {
            let process = self.process(party).ok_or(Error::StaleEndpoint)?;
            if process.place != Place::Here {
                return Err(Error::NoProxy);
            }
            let waits = matches!(process.doing, Doing::Receiving { .. } | Doing::AwaitingAnswer { .. });
            if party != caller && !waits && !elsewhere(party) {
                return Err(Error::BadState);
            }
        }
        let leader = |number| self.process(number).map(|process| process.leader);
        if leader(from) == leader(to) { Err(Error::NotPermitted) } else { Ok((from, to)) }
    }

    /// Returns the slot of a process by its name.
    ///
    /// # Errors
    /// `BadPeer`: the name stands for nobody in particular. `DestinationDied`: the last process of this name has ended, or none has been
    /// bound yet. `StaleEndpoint`: the slot has, or had last, an occupant of another name.
    pub fn locate(&self, endpoint: Endpoint) -> Result<Number, Error> {
        let number = endpoint.number()?;
        let slot = &self.slots[Self::index(number).ok_or(Error::StaleEndpoint)?];
        if Endpoint::new(number, slot.generation) != endpoint {
            return Err(Error::StaleEndpoint);
        }
        if slot.occupant.is_none() { Err(Error::DestinationDied) } else { Ok(number) }
    }

    fn locate_or_self(&self, caller: Number, endpoint: Endpoint) -> Result<Number, Error> {
        if endpoint == Endpoint::SELF { Ok(caller) } else { self.locate(endpoint) }
    }

    /// Returns the name of the occupant of a slot.
    pub fn endpoint(&self, number: Number) -> Option<Endpoint> {
        let slot = &self.slots[Self::index(number)?];
        slot.occupant.is_some().then(|| Endpoint::new(number, slot.generation))
    }

    /// Returns the name of a slot's occupant, or of the last one.
    pub fn last_name(&self, number: Number) -> Endpoint {
        Endpoint::new(number, Self::index(number).map_or(0, |index| self.slots[index].generation))
    }

    /// Returns where a process runs.
    pub fn place(&self, number: Number) -> Option<Place> {
        self.process(number).map(|process| process.place)
    }

    /// Returns the rights of a process.
    pub fn rights(&self, number: Number) -> Option<Rights> {
        self.process(number).map(|process| process.rights)
    }

    /// Sets the rights of a process.
    ///
    /// # Errors
    /// `NotBound`.
    pub fn set_rights(&mut self, number: Number, rights: Rights) -> Result<(), Error> {
        self.process_mut(number).ok_or(Error::NotBound)?.rights = rights;
        Ok(())
    }

    /// A process that has sent a request by other means than this machine waits for its answer here.
    ///
    /// # Errors
    /// `NotBound`.
    pub fn await_answer(&mut self, who: Number, from: Number) -> Result<(), Error> {
        self.process(who).ok_or(Error::NotBound)?;
        self.set_doing(who, Doing::AwaitingAnswer { from });
        Ok(())
    }

    /// Returns what a process does.
    pub fn activity(&self, number: Number) -> Activity {
        let name = |other| self.endpoint(other).unwrap_or(Endpoint::NONE);
        match self.process(number).map(|process| process.doing) {
            Some(Doing::Running) | None => Activity::Running,
            Some(Doing::Sending { to, .. }) => Activity::Sending(name(to)),
            Some(Doing::Receiving { from: Source::Any, .. }) => Activity::Receiving(Endpoint::ANY),
            Some(Doing::Receiving { from: Source::One(from), .. } | Doing::AwaitingAnswer { from }) => {
                Activity::Receiving(name(from))
            }
        }
    }

    /// Returns the leader of a process's group; itself for a leader.
    pub fn leader(&self, number: Number) -> Option<Number> {
        self.process(number).map(|process| process.leader)
    }

    /// Whether notifications are pending for a process.
    pub fn is_notified(&self, number: Number) -> bool {
        self.process(number).is_some_and(|process| process.pending != SlotSet::NONE)
    }

    /// Whether something may be there that a process has not received.
    pub fn may_have_more(&self, number: Number) -> bool {
        self.senders > 0 || self.is_notified(number)
    }

    /// Whether a process waits, and so its call may be ended by [`Rendezvous::end_wait`].
    pub fn waits(&self, number: Number) -> bool {
        self.process(number).is_some_and(|process| !matches!(process.doing, Doing::Running))
    }

    /// All slots.
    fn numbers() -> impl Iterator<Item = Number> {
        (SLOTS - N..SLOTS).map(Number::at)
    }

    fn index(number: Number) -> Option<usize> {
        usize::try_from(number.get() + N as i32 - PROCESSES as i32).ok()
    }

    fn process(&self, number: Number) -> Option<&Process<M>> {
        self.slots[Self::index(number)?].occupant.as_ref()
    }

    fn process_mut(&mut self, number: Number) -> Option<&mut Process<M>> {
        self.slots[Self::index(number)?].occupant.as_mut()
    }

    fn set_doing(&mut self, number: Number, doing: Doing<M>) {
        let is_sending = |doing: &Doing<M>| matches!(doing, Doing::Sending { .. }) as usize;
        let now = is_sending(&doing);
        let Some(process) = self.process_mut(number) else { return };
        let before = is_sending(&core::mem::replace(&mut process.doing, doing));
        self.senders = self.senders + now - before;
    }
}
