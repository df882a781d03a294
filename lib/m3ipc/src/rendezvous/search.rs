//! Every state that three and four processes in two containers can reach, with deaths and successors at every step: the state machine agrees
//! with a model of plain rules in each, and its invariants hold.

use super::*;
use crate::limits::SLOTS;
use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    vec::Vec,
};

/// A slot has at most so many occupants.
const LIVES: u32 = 2;
/// Slots of a container here.
const N: usize = 4;

/// A process of the model.
type Id = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    Send(Id, Wait),
    SendReceive(Id),
    SendToFormer(Id),
    Receive(Option<Id>, Wait),
    ReceiveRequest,
    Notify(Id),
    Reply(Id),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Call(Id, Call),
    Bind(Id),
    Unbind(Id),
    WakeUp(Id),
    TimeOut(Id),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Absent,
    Running,
    Sending { to: Id, answer: bool },
    Receiving { from: Option<Id>, notifications: bool, answer: bool },
}

/// How a call has ended, with processes in place of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Outcome {
    Sent,
    Message(Id),
    Notification(Id),
    Failed(Error),
    Done,
}

/// The rules, as plainly as they can be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Model {
    states: Vec<State>,
    lives: Vec<u32>,
    /// Those who wait to send, in order of arrival.
    arrivals: Vec<Id>,
    /// Pairs of receiver and source.
    pending: BTreeSet<(Id, Id)>,
}

impl Model {
    fn is_bound(&self, id: Id) -> bool {
        self.states[id] != State::Absent
    }

    fn waits_for(&self, id: Id) -> Option<Id> {
        match self.states[id] {
            State::Sending { to, .. } => Some(to),
            State::Receiving { from, .. } => from,
            State::Absent | State::Running => None,
        }
    }

    fn leads_to(&self, first: Id, goal: Id) -> bool {
        let mut at = Some(first);
        while let Some(id) = at {
            if id == goal {
                return true;
            }
            at = self.waits_for(id);
        }
        false
    }

    fn takes(&self, receiver: Id, sender: Id) -> bool {
        matches!(self.states[receiver], State::Receiving { from, .. } if from.is_none_or(|from| from == sender))
    }

    fn act(&mut self, action: Action) -> Vec<(Id, Outcome)> {
        let mut outcomes = Vec::new();
        match action {
            Action::Call(who, call) => {
                if let Err(error) = self.call(who, call, &mut outcomes) {
                    outcomes.push((who, Outcome::Failed(error)));
                }
                self.settle(&mut outcomes);
            }
            Action::Bind(id) => {
                self.lives[id] += 1;
                self.states[id] = State::Running;
            }
            Action::Unbind(id) => self.unbind(id, &mut outcomes),
            Action::WakeUp(id) => self.end(id, Outcome::Failed(Error::WokenUp), &mut outcomes),
            Action::TimeOut(id) => self.end(id, Outcome::Failed(Error::TimedOut), &mut outcomes),
        }
        outcomes
    }

    fn call(&mut self, who: Id, call: Call, outcomes: &mut Vec<(Id, Outcome)>) -> Result<(), Error> {
        match call {
            Call::SendToFormer(to) if self.is_bound(to) || self.lives[to] > 1 => Err(Error::StaleEndpoint),
            Call::SendToFormer(_) => Err(Error::DestinationDied),
            Call::Send(to, _) | Call::Notify(to) | Call::Reply(to) if !self.is_bound(to) => Err(Error::DestinationDied),
            Call::SendReceive(to) if !self.is_bound(to) => Err(Error::PeerDied),
            Call::Receive(Some(from), _) if !self.is_bound(from) => Err(Error::SourceDied),
            Call::Send(to, Wait::No) if !self.takes(to, who) => Err(Error::Again),
            Call::Send(to, _) | Call::SendReceive(to) => {
                if !self.takes(to, who) && self.leads_to(to, who) {
                    return Err(Error::Locked);
                }
                self.states[who] = State::Sending { to, answer: matches!(call, Call::SendReceive(_)) };
                self.arrivals.push(who);
                Ok(())
            }
            Call::Receive(from, wait) => {
                self.states[who] = State::Receiving { from, notifications: true, answer: false };
                self.settle(outcomes);
                let still_waits = self.states[who] != State::Running;
                let error = match from {
                    _ if !still_waits => return Ok(()),
                    _ if wait == Wait::No => Error::Again,
                    Some(from) if self.leads_to(from, who) => Error::Locked,
                    _ => return Ok(()),
                };
                self.states[who] = State::Running;
                Err(error)
            }
            Call::ReceiveRequest => {
                self.states[who] = State::Receiving { from: None, notifications: false, answer: false };
                Ok(())
            }
            Call::Notify(to) if self.pending.contains(&(to, who)) => Err(Error::Overrun),
            Call::Notify(to) => {
                self.pending.insert((to, who));
                outcomes.push((who, Outcome::Done));
                Ok(())
            }
            Call::Reply(to) if self.takes(to, who) => {
                self.end(to, Outcome::Message(who), outcomes);
                outcomes.push((who, Outcome::Done));
                Ok(())
            }
            Call::Reply(_) => Err(Error::BadState),
        }
    }

    fn unbind(&mut self, id: Id, outcomes: &mut Vec<(Id, Outcome)>) {
        self.states[id] = State::Absent;
        self.arrivals.retain(|sender| *sender != id);
        self.pending.retain(|(receiver, source)| *receiver != id && *source != id);
        for other in 0..self.states.len() {
            let error = match self.states[other] {
                _ if self.waits_for(other) != Some(id) => continue,
                State::Sending { answer: false, .. } => Error::DestinationDied,
                State::Receiving { answer: false, .. } => Error::SourceDied,
                _ => Error::PeerDied,
            };
            self.end(other, Outcome::Failed(error), outcomes);
        }
    }

    fn end(&mut self, id: Id, outcome: Outcome, outcomes: &mut Vec<(Id, Outcome)>) {
        self.arrivals.retain(|sender| *sender != id);
        self.states[id] = State::Running;
        outcomes.push((id, outcome));
    }

    /// Lets everything happen that can: notifications first, then messages in the order of their arrival.
    fn settle(&mut self, outcomes: &mut Vec<(Id, Outcome)>) {
        loop {
            let notified = self.pending.iter().copied().find(|&(receiver, source)| {
                let wants = matches!(self.states[receiver], State::Receiving { notifications: true, .. });
                wants && self.takes(receiver, source)
            });
            let sent =
                self.arrivals.iter().copied().find(|sender| self.takes(self.waits_for(*sender).unwrap(), *sender));
            if let Some((receiver, source)) = notified {
                self.pending.remove(&(receiver, source));
                self.end(receiver, Outcome::Notification(source), outcomes);
            } else if let Some(sender) = sent {
                let State::Sending { to, answer } = self.states[sender] else { unreachable!() };
                self.end(to, Outcome::Message(sender), outcomes);
                if answer {
                    self.arrivals.retain(|other| *other != sender);
                    self.states[sender] = State::Receiving { from: Some(to), notifications: false, answer: true };
                } else {
                    self.end(sender, Outcome::Sent, outcomes);
                }
            } else {
                return;
            }
        }
    }
}

/// The state machines of two containers, and where the processes of the model are in them.
#[derive(Clone)]
struct Node {
    containers: [Rendezvous<Id, N>; 2],
    /// Processes of the first container; the others are in the second one.
    first: usize,
}

impl Node {
    fn place(&self, id: Id) -> (usize, Number) {
        let (container, index) = if id < self.first { (0, id) } else { (1, id - self.first) };
        (container, Number::at(SLOTS - N + index))
    }

    fn id(&self, container: usize, number: Number) -> Id {
        number.index() - (SLOTS - N) + container * self.first
    }

    fn name(&self, id: Id, lives: u32) -> Endpoint {
        Endpoint::new(self.place(id).1, lives)
    }

    fn act(&mut self, action: Action, model: &Model) -> Vec<(Id, Outcome)> {
        let (Action::Call(who, _)
        | Action::Bind(who)
        | Action::Unbind(who)
        | Action::WakeUp(who)
        | Action::TimeOut(who)) = action;
        let (at, number) = self.place(who);
        let name = |id: Id| self.name(id, model.lives[id].max(1));
        let named = match action {
            Action::Call(_, Call::SendToFormer(other)) => self.name(other, 1),
            Action::Call(
                _,
                Call::Send(other, _) | Call::SendReceive(other) | Call::Notify(other) | Call::Reply(other),
            ) => name(other),
            Action::Call(_, Call::Receive(Some(other), _)) => name(other),
            Action::Call(_, Call::Receive(None, _) | Call::ReceiveRequest) => Endpoint::ANY,
            _ => name(who),
        };
        let mut ends = Vec::new();
        let mut sink = |who: Number, end: End<Id>| ends.push((who, end));
        let container = &mut self.containers[at];
        let call = match action {
            Action::Call(_, call) => call,
            Action::Bind(_) => {
                container.bind(number, Place::Here).unwrap();
                return Vec::new();
            }
            Action::Unbind(_) => {
                container.unbind(number, &mut sink).unwrap();
                return self.outcomes(at, ends);
            }
            Action::WakeUp(_) => {
                container.wake_up(named, &mut sink).unwrap();
                return self.outcomes(at, ends);
            }
            Action::TimeOut(_) => {
                container.end_wait(number, Error::TimedOut, &mut sink).unwrap();
                return self.outcomes(at, ends);
            }
        };
        let at_once = |result: Result<(), Error>| result.map_or_else(Outcome::Failed, |()| Outcome::Done);
        let turn = match call {
            Call::Send(_, wait) => Ok(container.send(number, named, who, wait, &mut sink)),
            Call::SendToFormer(_) => Ok(container.send(number, named, who, Wait::Yes, &mut sink)),
            Call::SendReceive(_) => Ok(container.send_receive(number, named, who, Wait::Yes, &mut sink)),
            Call::Receive(_, wait) => Ok(container.receive(number, named, wait, &mut sink)),
            Call::ReceiveRequest => Ok(container.receive_request(number, Wait::Yes, &mut sink)),
            Call::Notify(_) => Err(at_once(container.notify(number, named, false, &mut sink))),
            Call::Reply(_) => Err(at_once(container.reply(number, named, who, &mut sink))),
        };
        let mut outcomes = match turn {
            Err(outcome) => Vec::from([(who, outcome)]),
            Ok(Turn::Waits) => Vec::new(),
            Ok(Turn::Ended(end)) => self.outcomes(at, Vec::from([(number, end)])),
        };
        outcomes.extend(self.outcomes(at, ends));
        outcomes
    }

    fn outcomes(&self, container: usize, ends: Vec<(Number, End<Id>)>) -> Vec<(Id, Outcome)> {
        let source = |endpoint: Endpoint| self.id(container, endpoint.number().unwrap());
        let outcome = |end| match end {
            End::Sent => Outcome::Sent,
            End::Failed(error) => Outcome::Failed(error),
            End::Received(Received::Notification(from)) => Outcome::Notification(source(from)),
            End::Received(Received::Message(from, message)) => {
                assert_eq!(source(from), message, "a message arrives under the name of its sender");
                Outcome::Message(message)
            }
        };
        ends.into_iter().map(|(who, end)| (self.id(container, who), outcome(end))).collect()
    }
}

/// What a search tries besides the calls that wait.
#[derive(Clone, Copy)]
struct Scope {
    deaths: bool,
    notifications: bool,
    limits: bool,
}

fn actions(model: &Model, first: usize, scope: Scope) -> Vec<Action> {
    let mut actions = Vec::new();
    for (id, state) in model.states.iter().enumerate() {
        match state {
            State::Absent if model.lives[id] < LIVES => actions.push(Action::Bind(id)),
            State::Absent => {}
            State::Running => calls(model, first, scope, id, &mut actions),
            State::Receiving { from: None, .. } if scope.limits => {
                actions.extend([Action::WakeUp(id), Action::TimeOut(id)])
            }
            _ if scope.limits => actions.push(Action::TimeOut(id)),
            _ => {}
        }
        if scope.deaths && model.is_bound(id) {
            actions.push(Action::Unbind(id));
        }
    }
    actions
}

fn calls(model: &Model, first: usize, scope: Scope, id: Id, actions: &mut Vec<Action>) {
    let mut push = |call| actions.push(Action::Call(id, call));
    push(Call::Receive(None, Wait::Yes));
    if scope.notifications {
        push(Call::ReceiveRequest);
    }
    if scope.limits {
        push(Call::Receive(None, Wait::No));
    }
    let mates = (0..model.states.len()).filter(|other| *other != id && (*other < first) == (id < first));
    for other in mates.filter(|other| model.lives[*other] > 0) {
        push(Call::Send(other, Wait::Yes));
        push(Call::SendReceive(other));
        push(Call::Receive(Some(other), Wait::Yes));
        push(Call::Reply(other));
        if scope.limits {
            push(Call::Send(other, Wait::No));
        }
        if scope.notifications {
            push(Call::Notify(other));
        }
        if scope.deaths {
            push(Call::SendToFormer(other));
        }
    }
}

/// Everybody may notify: rights are not what is searched.
fn may_notify(container: &mut Rendezvous<Id, N>) {
    for number in Rendezvous::<Id, N>::numbers() {
        if let Some(rights) = container.rights(number) {
            container.set_rights(number, Rights { id: 0, ..rights }).unwrap();
        }
    }
}

/// Searches from a state in which everybody is absent. `first`: processes of the first container, of `count`.
fn search(count: usize, first: usize, scope: Scope) {
    let model = Model {
        states: std::vec![State::Absent; count],
        lives: std::vec![0; count],
        arrivals: Vec::new(),
        pending: BTreeSet::new(),
    };
    let node = Node { containers: [Rendezvous::new(), Rendezvous::new()], first };
    let mut seen = HashSet::from([model.clone()]);
    let mut open = VecDeque::from([(model, node)]);
    while let Some((model, node)) = open.pop_front() {
        for action in actions(&model, first, scope) {
            // The oldest name of a process that has not ended is its own.
            if matches!(action, Action::Call(_, Call::SendToFormer(other)) if model.lives[other] < 2) {
                continue;
            }
            let (mut next, mut its_node) = (model.clone(), node.clone());
            let mut expected = next.act(action);
            let mut outcomes = its_node.act(action, &model);
            its_node.containers.iter_mut().for_each(may_notify);
            expected.sort();
            outcomes.sort();
            assert_eq!(outcomes, expected, "{action:?} in {model:?}");
            for (id, state) in next.states.iter().enumerate() {
                let (at, number) = its_node.place(id);
                let container = &its_node.containers[at];
                assert_eq!(container.endpoint(number).is_some(), *state != State::Absent);
                assert_eq!(container.waits(number), !matches!(state, State::Absent | State::Running), "{id}: {next:?}");
                assert_eq!(container.check(), Ok(()), "{action:?} in {model:?}");
            }
            if seen.insert(next.clone()) {
                open.push_back((next, its_node));
            }
        }
    }
}

#[test]
fn three_processes_with_everything() {
    search(3, 3, Scope { deaths: true, notifications: true, limits: true });
    search(3, 2, Scope { deaths: true, notifications: true, limits: true });
}

#[test]
fn four_processes_with_deaths() {
    search(4, 4, Scope { deaths: true, notifications: false, limits: false });
}

#[test]
fn four_processes_with_notifications() {
    search(4, 3, Scope { deaths: false, notifications: true, limits: true });
}

#[test]
fn four_processes_in_two_containers() {
    search(4, 2, Scope { deaths: true, notifications: true, limits: true });
}
