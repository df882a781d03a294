//! What the primitives mean, written as plainly as possible: a few processes, sets, and rules applied until none
//! applies.
//!
//! Nothing here is fast, linked or clever; it follows the documentation of `abi::call` and `abi::endpoint`, not the
//! kernel. All processes are services of one queue, so arrival is the only order.

use std::collections::BTreeSet;

use abi::Errno;

/// Which process.
pub type Id = usize;

/// Whom a call names: a process, of one generation or whoever is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub id: Id,
    pub generation: Option<u32>,
}

/// Whom a process receives from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    Any,
    From(Target),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Send(Target),
    SendRec(Target),
    SendWait(Target, Filter),
    SendNb(Target),
    ReplyRec(Target, Filter),
    /// `REPLYREC` of a request.
    AskRec(Target, Filter),
    Receive(Filter),
    Notify(Target),
}

/// What follows when a message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Continuation {
    Return,
    Answer,
    Receive(Filter),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Ready,
    Sending { to: Target, then: Continuation },
    Receiving { from: Filter, answer: bool },
}

/// How a call has ended. `message`: the number under which it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Done,
    Failed(Errno),
    Message { from: Id, generation: u32, message: u64 },
    Notification { from: Id },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    alive: bool,
    generation: u32,
    expected: bool,
    state: State,
    /// Who has notified it.
    pending: BTreeSet<Id>,
    /// Whose `SENDNB` it has refused.
    refused: BTreeSet<Id>,
}

#[derive(Clone, Debug)]
pub struct Model {
    processes: Vec<Process>,
    /// Processes that wait to send, in order of arrival.
    arrivals: Vec<Id>,
    /// Number of the last message of each process.
    messages: Vec<u64>,
    /// Calls that have ended since the last look.
    pub outcomes: Vec<(Id, Outcome)>,
}

/// All of a model that matters for what can happen next.
#[derive(PartialEq, Eq, Hash)]
pub struct Key(Vec<Process>, Vec<Id>);

impl Model {
    pub fn new(count: usize) -> Model {
        let process = Process {
            alive: true,
            generation: 1,
            expected: false,
            state: State::Ready,
            pending: BTreeSet::new(),
            refused: BTreeSet::new(),
        };
        Model { processes: vec![process; count], arrivals: vec![], messages: vec![0; count], outcomes: vec![] }
    }

    pub fn key(&self) -> Key {
        Key(self.processes.clone(), self.arrivals.clone())
    }

    pub fn is_alive(&self, id: Id) -> bool {
        self.processes[id].alive
    }

    pub fn is_ready(&self, id: Id) -> bool {
        self.processes[id].alive && self.processes[id].state == State::Ready
    }

    pub fn generation(&self, id: Id) -> u32 {
        self.processes[id].generation
    }

    /// A ready process makes a call; its message, if any, has this number.
    pub fn call(&mut self, caller: Id, call: Call, message: u64) {
        self.messages[caller] = message;
        match call {
            Call::Send(to) => self.send(caller, to, Continuation::Return),
            Call::SendRec(to) => self.send(caller, to, Continuation::Answer),
            Call::SendWait(to, from) => self.send(caller, to, Continuation::Receive(from)),
            Call::SendNb(to) => self.send_now(caller, to),
            Call::ReplyRec(to, from) => {
                if self.is_holder(to) && self.accepts(to.id, caller) {
                    self.hand_over(caller, to.id);
                }
                self.begin_receive(caller, from);
            }
            Call::AskRec(to, from) => self.ask(caller, to, from),
            Call::Receive(from) => self.begin_receive(caller, from),
            Call::Notify(to) if self.is_holder(to) => {
                self.processes[to.id].pending.insert(caller);
                self.end(caller, Outcome::Done);
                self.settle();
            }
            Call::Notify(_) => self.end(caller, Outcome::Failed(Errno::EDEADSRCDST)),
        }
    }

    pub fn destroy(&mut self, id: Id, keep: bool) {
        let victim = &mut self.processes[id];
        (victim.alive, victim.expected, victim.state) = (false, keep, State::Ready);
        victim.pending.clear();
        self.arrivals.retain(|&sender| sender != id);
        for other in 0..self.processes.len() {
            let process = &mut self.processes[other];
            process.pending.remove(&id);
            process.refused.remove(&id);
            let waits_for = match process.state {
                State::Sending { to, .. } => Some(to),
                State::Receiving { from: Filter::From(from), .. } => Some(from),
                _ => None,
            };
            if waits_for.is_some_and(|target| target.id == id && (target.generation.is_some() || !keep)) {
                self.end(other, Outcome::Failed(Errno::EDEADSRCDST));
            }
        }
        if !keep {
            self.notify_refused(id);
        }
    }

    pub fn create(&mut self, id: Id) {
        let process = &mut self.processes[id];
        (process.alive, process.expected) = (true, false);
        process.generation += 1;
        process.state = State::Ready;
    }

    fn is_holder(&self, target: Target) -> bool {
        let process = &self.processes[target.id];
        process.alive && target.generation.is_none_or(|generation| generation == process.generation)
    }

    /// True when the target is there or will be.
    fn is_known(&self, target: Target) -> bool {
        self.is_holder(target) || target.generation.is_none() && self.processes[target.id].expected
    }

    fn matches(&self, filter: Filter, source: Id) -> bool {
        match filter {
            Filter::Any => true,
            Filter::From(target) => target.id == source && self.is_holder(target),
        }
    }

    /// True when `receiver` waits and a message of `sender` would be taken.
    fn accepts(&self, receiver: Id, sender: Id) -> bool {
        match self.processes[receiver].state {
            State::Receiving { from, .. } => self.matches(from, sender),
            _ => false,
        }
    }

    fn send(&mut self, caller: Id, to: Target, then: Continuation) {
        if !self.is_known(to) {
            return self.end(caller, Outcome::Failed(Errno::EDEADSRCDST));
        }
        let waits = !(self.is_holder(to) && self.accepts(to.id, caller));
        if waits && self.leads_to(to, caller) {
            return self.end(caller, Outcome::Failed(Errno::ELOCKED));
        }
        self.processes[caller].state = State::Sending { to, then };
        self.arrivals.push(caller);
        self.settle();
    }

    fn send_now(&mut self, caller: Id, to: Target) {
        if !self.is_known(to) {
            return self.end(caller, Outcome::Failed(Errno::EDEADSRCDST));
        }
        if self.is_holder(to) && self.accepts(to.id, caller) {
            self.end(caller, Outcome::Done);
            self.hand_over(caller, to.id);
            self.settle();
        } else {
            self.processes[to.id].refused.insert(caller);
            self.end(caller, Outcome::Failed(Errno::ENOTREADY));
        }
    }

    fn ask(&mut self, caller: Id, to: Target, from: Filter) {
        if self.is_holder(to) && self.accepts(to.id, caller) {
            self.hand_over(caller, to.id);
            self.begin_receive(caller, from);
        } else {
            self.send_now(caller, to);
        }
    }

    fn begin_receive(&mut self, receiver: Id, from: Filter) {
        if let Filter::From(target) = from
            && !self.is_known(target)
        {
            return self.end(receiver, Outcome::Failed(Errno::EDEADSRCDST));
        }
        self.processes[receiver].state = State::Receiving { from, answer: false };
        self.settle();
        if self.processes[receiver].state != (State::Receiving { from, answer: false }) {
            return;
        }
        match from {
            Filter::Any => self.notify_refused(receiver),
            Filter::From(target) if self.leads_to(target, receiver) => {
                self.end(receiver, Outcome::Failed(Errno::ELOCKED));
            }
            Filter::From(_) => {}
        }
    }

    fn notify_refused(&mut self, id: Id) {
        for requester in std::mem::take(&mut self.processes[id].refused) {
            self.processes[requester].pending.insert(id);
        }
        self.settle();
    }

    /// Whom a process waits for.
    pub fn waits_for(&self, id: Id) -> Option<Target> {
        match self.processes[id].state {
            State::Sending { to, .. } => Some(to),
            State::Receiving { from: Filter::From(from), .. } => Some(from),
            _ => None,
        }
    }

    /// True when waiting for `first` means waiting for `goal`.
    fn leads_to(&self, first: Target, goal: Id) -> bool {
        let mut at = Some(first);
        for _ in 0..=self.processes.len() {
            match at {
                Some(target) if !self.is_holder(target) => return false,
                Some(target) if target.id == goal => return true,
                Some(target) => at = self.waits_for(target.id),
                None => return false,
            }
        }
        false
    }

    /// Applies the rules until none applies: a waiting receiver takes a notification first, then the first message that
    /// it accepts.
    fn settle(&mut self) {
        while self.take_notification() || self.take_message() {}
    }

    fn take_notification(&mut self) -> bool {
        for receiver in 0..self.processes.len() {
            let process = &self.processes[receiver];
            let State::Receiving { from, answer: false } = process.state else { continue };
            let source = process.pending.iter().copied().find(|&source| match from {
                Filter::Any => true,
                Filter::From(target) => target.id == source,
            });
            if let Some(source) = source {
                self.processes[receiver].pending.remove(&source);
                self.end(receiver, Outcome::Notification { from: source });
                return true;
            }
        }
        false
    }

    fn take_message(&mut self) -> bool {
        for index in 0..self.arrivals.len() {
            let sender = self.arrivals[index];
            let State::Sending { to, then } = self.processes[sender].state else {
                panic!("arrived, but does not send")
            };
            if !(self.is_holder(to) && self.accepts(to.id, sender)) {
                continue;
            }
            self.arrivals.remove(index);
            self.hand_over(sender, to.id);
            match then {
                Continuation::Return => self.end(sender, Outcome::Done),
                Continuation::Answer => {
                    let from = Filter::From(Target { id: to.id, generation: Some(self.processes[to.id].generation) });
                    self.processes[sender].state = State::Receiving { from, answer: true };
                }
                Continuation::Receive(from) => {
                    self.processes[sender].state = State::Ready;
                    self.begin_receive(sender, from);
                }
            }
            return true;
        }
        false
    }

    /// The message of `sender` ends the wait of `receiver`.
    fn hand_over(&mut self, sender: Id, receiver: Id) {
        let generation = self.processes[sender].generation;
        self.end(receiver, Outcome::Message { from: sender, generation, message: self.messages[sender] });
    }

    fn end(&mut self, id: Id, outcome: Outcome) {
        self.arrivals.retain(|&sender| sender != id);
        self.processes[id].state = State::Ready;
        self.outcomes.push((id, outcome));
    }

    /// What must hold whenever no rule applies, whatever happened before.
    pub fn check_invariants(&self) {
        for (id, process) in self.processes.iter().enumerate() {
            if let Some(target) = self.waits_for(id) {
                assert!(process.alive, "the dead wait for nobody");
                assert!(self.is_known(target), "{id} waits for somebody dead: {target:?}");
                assert!(!self.leads_to(target, id), "{id} waits for itself");
            }
            if let State::Sending { to, .. } = process.state {
                assert!(
                    !(self.is_holder(to) && self.accepts(to.id, id)),
                    "{id} and {} wait for each other's move",
                    to.id
                );
            }
            if let State::Receiving { from, answer } = process.state {
                let ignored = |source: Id| matches!(from, Filter::From(target) if target.id != source);
                assert!(
                    answer || process.pending.iter().all(|&source| ignored(source)),
                    "{id} sleeps over a notification"
                );
                assert!(
                    from != Filter::Any || process.refused.is_empty(),
                    "{id} waits, but those it refused do not know"
                );
            }
        }
    }
}
