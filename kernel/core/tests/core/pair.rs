//! The kernel and the model side by side: every action is done by both, and everything that can be seen must agree.

use std::collections::BTreeMap;

use abi::{Endpoint, Errno, call, call::KernelCall, kernel::Notify, message};
use kernel_core::Next;

use crate::{
    model::{Call, Filter, Id, Model, Outcome, Target},
    world::{A, RS, VM, World, all_rights},
};

/// A label like those of protocols.
const LABEL: u64 = 0x20_0001;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Call(Id, Call),
    Destroy(Id, bool),
    Create(Id),
}

pub struct Pair {
    pub world: World,
    pub state: Side,
    /// Queue of the processes (rs has queue 4).
    queue: u64,
}

/// What belongs to the comparison and not to the kernel.
#[derive(Clone, Debug)]
pub struct Side {
    pub model: Model,
    /// The call that each process has made last.
    last: Vec<Option<Call>>,
    /// The message that each process has sent and nobody has received.
    in_flight: Vec<Option<(u64, Target)>>,
    /// Number of the last message.
    sent: u64,
}

pub fn slot(id: Id) -> usize {
    A + id
}

impl Pair {
    /// `count` services with all rights, rs as the one who destroys and creates, vm asleep; all in one queue, so that
    /// each may be next.
    pub fn new(count: usize) -> Pair {
        Pair::in_queue(count, 4)
    }

    /// The same with the services in another queue: a better one than that of rs lets them run by themselves, rs when
    /// all of them wait.
    pub fn in_queue(count: usize, queue: u64) -> Pair {
        let mut world = World::new();
        world.receive(VM, Endpoint::ANY);
        let rs = Endpoint::SELF.0 as u64;
        world.kernel_call(RS, KernelCall::Schedule, &[rs, 0, 0]).expect("nobody preempts rs");
        for id in 0..count {
            let endpoint = world.service(slot(id)).0 as u64;
            world.kernel_call(RS, KernelCall::Schedule, &[endpoint, queue, 0]).expect("scheduled");
        }
        world.kernel_call(RS, KernelCall::Schedule, &[rs, 4, 0]).expect("as before");
        let model = Model::new(count);
        Pair { queue, world, state: Side { model, last: vec![None; count], in_flight: vec![None; count], sent: 0 } }
    }

    fn endpoint(&self, target: Target) -> Endpoint {
        Endpoint::new(slot(target.id), target.generation.unwrap_or(0))
    }

    /// Does an action and compares.
    pub fn act(&mut self, action: Action) {
        match action {
            Action::Call(id, call) => {
                self.world.make_current(slot(id));
                self.call(id, call);
            }
            Action::Destroy(id, keep) => {
                let endpoint = self.world.endpoint(slot(id)).0 as u64;
                self.world.kernel_call(RS, KernelCall::Destroy, &[endpoint, keep as u64]).expect("destroyed");
                self.state.model.destroy(id, keep);
                self.state.in_flight[id] = None;
            }
            Action::Create(id) => {
                self.create(id);
                self.state.model.create(id);
            }
        }
        self.compare(action);
    }

    fn create(&mut self, id: Id) {
        let endpoint = self.world.kernel_call(RS, KernelCall::Create, &[slot(id) as u64]).expect("created");
        // One space serves all: nobody touches memory.
        let space = self.world.space(RS) as u64;
        self.world.kernel_call(RS, KernelCall::SpaceSet, &[endpoint, space]).expect("space set");
        self.world.set_privileges(Endpoint(endpoint as u32), &all_rights());
        self.world.kernel_call(RS, KernelCall::Schedule, &[endpoint, self.queue, 0]).expect("scheduled");
        self.world.kernel_call(RS, KernelCall::Start, &[endpoint]).expect("started");
    }

    /// The current thread, which is `id`, makes a call.
    pub fn call(&mut self, id: Id, call: Call) -> Next {
        assert_eq!(self.world.node.current(), slot(id));
        self.state.sent += 1;
        let text = self.state.sent;
        let from = |pair: &Pair, filter: Filter| match filter {
            Filter::Any => Endpoint::ANY,
            Filter::From(target) => pair.endpoint(target),
        };
        let (number, peer, second) = match call {
            Call::Send(to) => (call::SEND, self.endpoint(to), Endpoint::NONE),
            Call::SendRec(to) => (call::SENDREC, self.endpoint(to), Endpoint::NONE),
            Call::SendWait(to, filter) => (call::SENDWAIT, self.endpoint(to), from(self, filter)),
            Call::SendNb(to) => (call::SENDNB, self.endpoint(to), Endpoint::NONE),
            Call::ReplyRec(to, filter) | Call::AskRec(to, filter) => {
                (call::REPLYREC, self.endpoint(to), from(self, filter))
            }
            Call::Receive(filter) => (call::RECEIVE, from(self, filter), Endpoint::NONE),
            Call::Notify(to) => (call::NOTIFY, self.endpoint(to), Endpoint::NONE),
        };
        self.state.last[id] = Some(call);
        self.state.in_flight[id] = match call {
            Call::Send(to) | Call::SendRec(to) | Call::SendNb(to) => Some((text, to)),
            Call::SendWait(to, _) | Call::ReplyRec(to, _) | Call::AskRec(to, _) => Some((text, to)),
            Call::Receive(_) | Call::Notify(_) => None,
        };
        let frame = self.world.node.frame_mut(slot(id));
        (frame.rax, frame.rdi) = (number, text);
        let reply = if matches!(call, Call::ReplyRec(..)) { message::REPLY } else { 0 };
        frame.r13 = peer.0 as u64 | (LABEL | reply as u64) << 32;
        frame.r14 = second.0 as u64;
        let next = self.world.enter();
        self.state.model.call(id, call, text);
        next
    }

    /// Everything that can be seen of the kernel agrees with the model, and with what was sent.
    pub fn compare(&mut self, action: impl std::fmt::Debug) {
        let outcomes = std::mem::take(&mut self.state.model.outcomes);
        let by_process: BTreeMap<Id, Outcome> = outcomes.iter().copied().collect();
        assert_eq!(by_process.len(), outcomes.len(), "{action:?}: one end for each call");
        for (id, expected) in outcomes {
            let seen = self.outcome(id);
            assert_eq!(seen, expected, "process {id} after {action:?}: {:#?}", self.state);
            self.check_flight(id, seen);
        }
        for id in 0..self.state.last.len() {
            let thread = self.world.node.thread(slot(id));
            let model = &self.state.model;
            assert_eq!(thread.endpoint() != Endpoint(0), model.is_alive(id), "life of {id} after {action:?}");
            assert_eq!(thread.is_ready(), model.is_ready(id), "readiness of {id} after {action:?}: {:#?}", self.state);
            assert!(!model.is_alive(id) || thread.endpoint().generation() == model.generation(id));
        }
        self.state.model.check_invariants();
    }

    /// How the call of a process has ended in the kernel.
    fn outcome(&mut self, id: Id) -> Outcome {
        let receives = matches!(
            self.state.last[id],
            Some(Call::SendRec(_) | Call::SendWait(..) | Call::ReplyRec(..) | Call::AskRec(..) | Call::Receive(_))
        );
        if let Err(error) = self.world.result(slot(id)) {
            return Outcome::Failed(error);
        }
        if !receives {
            assert_eq!(self.world.result(slot(id)), Ok(0));
            return Outcome::Done;
        }
        let received = self.world.message(slot(id));
        let from = received.source.slot() - A;
        match received.label {
            Notify::LABEL => Outcome::Notification { from },
            label => {
                assert_eq!((label & !message::REPLY) as u64, LABEL);
                Outcome::Message { from, generation: received.source.generation(), message: received.words[0] }
            }
        }
    }

    /// A message that arrives was sent to the one who got it, and arrives once.
    fn check_flight(&mut self, id: Id, seen: Outcome) {
        match seen {
            Outcome::Message { from, message, .. } => {
                let (sent, to) = self.state.in_flight[from].take().expect("it is on its way");
                assert_eq!(sent, message);
                let generation = self.world.endpoint(slot(id)).generation();
                assert!(
                    to.id == id && to.generation.is_none_or(|meant| meant == generation),
                    "it was meant for {to:?}"
                );
            }
            Outcome::Failed(Errno::ELOCKED) if self.state.in_flight[id].is_none() => {}
            Outcome::Failed(_) => self.state.in_flight[id] = None,
            Outcome::Done | Outcome::Notification { .. } => {}
        }
    }
}
