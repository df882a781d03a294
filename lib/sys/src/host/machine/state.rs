//! Waiting services and message delivery of the simulated machine.

use super::notification;
use crate::Result;
use abi::endpoint::SERVICE_SLOTS;
use abi::{Endpoint, Errno, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::string::String;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar};
use std::vec::Vec;

/// Result of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Done,
    /// The destination is not waiting for it.
    Busy,
    /// No such destination.
    Nobody,
}

/// What follows a blocking send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Return,
    /// The reply of the destination, without notifications before it.
    Answer,
    /// The next message from here.
    Receive(Endpoint),
}

/// What a service waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Nothing,
    /// Its message is queued at the destination.
    Send(Endpoint, Then),
    Answer(Endpoint),
    Receive(Endpoint),
}

pub(super) struct Service {
    endpoint: Endpoint,
    /// Where its thread waits.
    turn: Arc<Condvar>,
    wait: Wait,
    /// Result of its wait.
    outcome: Result<Message>,
    /// How many messages it has received.
    messages: u64,
    /// With this many it dies.
    last_message: Option<u64>,
    /// Messages of others that it has not received.
    line: VecDeque<Message>,
    notifications: BTreeMap<Endpoint, u64>,
    /// Services to notify when it receives from anybody next.
    promised: BTreeSet<Endpoint>,
    alarm_ns: Option<u64>,
    /// Address and entries of its grant table.
    pub(super) grants: Option<(u64, u64)>,
}

/// A program or service that the test simulates.
struct Played {
    endpoint: Endpoint,
    start: u64,
    memory: Vec<u8>,
    /// Whether it waits for a reply.
    asks: bool,
    mail: VecDeque<Message>,
}

/// See the head of the file.
#[derive(Default)]
pub(super) struct State {
    /// The slot of the service that has the processor.
    running: Option<usize>,
    ready: VecDeque<usize>,
    pub(super) services: BTreeMap<usize, Service>,
    played: BTreeMap<usize, Played>,
    generations: BTreeMap<usize, u32>,
    preserved: BTreeMap<usize, &'static [AtomicU64]>,
    /// Memory of a service that is not mapped.
    pub(super) unmapped: Range<u64>,
    pub(super) now_ns: u64,
    pub(super) log: String,
    pub(super) failure: Option<String>,
}

fn matches(filter: Endpoint, who: Endpoint) -> bool {
    filter == Endpoint::ANY || filter == who || filter == Endpoint::current(who.slot())
}

impl Service {
    fn new(endpoint: Endpoint, turn: Arc<Condvar>) -> Service {
        Service {
            endpoint,
            turn,
            wait: Wait::Nothing,
            outcome: Ok(Message::default()),
            messages: 0,
            last_message: None,
            line: VecDeque::new(),
            notifications: BTreeMap::new(),
            promised: BTreeSet::new(),
            alarm_ns: None,
            grants: None,
        }
    }

    fn accepts_message(&self, from: Endpoint) -> bool {
        matches!(self.wait, Wait::Receive(filter) | Wait::Answer(filter) if matches(filter, from))
    }

    fn accepts_notification(&self, from: Endpoint) -> bool {
        matches!(self.wait, Wait::Receive(filter) if matches(filter, from))
    }

    /// Returns whether it waits for this endpoint only.
    fn depends_on(&self, other: Endpoint) -> bool {
        let (Wait::Send(on, _) | Wait::Answer(on) | Wait::Receive(on)) = self.wait else { return false };
        on != Endpoint::ANY && matches(on, other)
    }
}

impl State {
    pub(super) fn add_service(&mut self, slot: usize, turn: Arc<Condvar>) -> Endpoint {
        let generation = self.generations.entry(slot).or_default();
        *generation += 1;
        let endpoint = Endpoint::new(slot, *generation);
        assert!(self.services.insert(slot, Service::new(endpoint, turn)).is_none(), "slot {slot} is taken");
        self.ready.push_back(slot);
        endpoint
    }

    pub(super) fn remove_service(&mut self, dead: Endpoint) {
        if let Some(service) = self.services.remove(&dead.slot()) {
            service.turn.notify_all();
        }
        self.ready.retain(|slot| *slot != dead.slot());
        self.services.values_mut().for_each(|service| service.line.retain(|message| message.source != dead));
        let waiters = self.services.values().filter(|service| service.depends_on(dead));
        let waiters: Vec<usize> = waiters.map(|service| service.endpoint.slot()).collect();
        waiters.into_iter().for_each(|slot| self.wake(slot, Err(Errno::EDEADSRCDST)));
    }

    /// Ends all services.
    pub(super) fn end(&mut self) {
        self.services.values().for_each(|service| service.turn.notify_all());
        self.services.clear();
        self.ready.clear();
        self.running = None;
    }

    pub(super) fn add_played(&mut self, endpoint: Endpoint, memory: Range<u64>) {
        let bytes = std::vec![0; (memory.end - memory.start) as usize];
        let played = Played { endpoint, start: memory.start, memory: bytes, asks: false, mail: VecDeque::new() };
        self.played.insert(endpoint.slot(), played);
    }

    pub(super) fn is_played(&self, endpoint: Endpoint) -> bool {
        self.played.contains_key(&endpoint.slot())
    }

    pub(super) fn is_alive(&self, endpoint: Endpoint) -> bool {
        self.services.get(&endpoint.slot()).is_some_and(|service| service.endpoint == endpoint)
    }

    pub(super) fn has_turn(&self, endpoint: Endpoint) -> bool {
        self.running == Some(endpoint.slot())
    }

    /// Where the thread of the service waits that has the processor.
    pub(super) fn turn(&self) -> Option<&Condvar> {
        self.services.get(&self.running?).map(|service| &*service.turn)
    }

    /// Returns whether a service is running or ready.
    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some() || !self.ready.is_empty()
    }

    /// Dispatches the first ready service if the processor is free. One that has its last message dies instead.
    pub(super) fn dispatch(&mut self) {
        while self.running.is_none()
            && let Some(slot) = self.ready.pop_front()
        {
            match self.services.get(&slot) {
                Some(service) if service.last_message == Some(service.messages) => {
                    self.remove_service(service.endpoint)
                }
                _ => self.running = Some(slot),
            }
        }
    }

    /// Makes the running service yield the processor.
    pub(super) fn leave(&mut self) {
        self.running = None;
        self.dispatch();
    }

    pub(super) fn take_outcome(&mut self, endpoint: Endpoint) -> Result<Message> {
        self.service(endpoint).outcome
    }

    fn service(&mut self, endpoint: Endpoint) -> &mut Service {
        self.services.get_mut(&endpoint.slot()).expect("a service that acts lives")
    }

    fn wake(&mut self, slot: usize, outcome: Result<Message>) {
        if let Some(service) = self.services.get_mut(&slot) {
            service.wait = Wait::Nothing;
            service.outcome = outcome;
            self.ready.push_back(slot);
        }
    }

    /// Returns the endpoint that holds a slot.
    pub(super) fn holder(&self, slot: usize) -> Result<Endpoint> {
        let service = self.services.get(&slot).map(|service| service.endpoint);
        service.or_else(|| self.played.get(&slot).map(|played| played.endpoint)).ok_or(Errno::EDEADSRCDST)
    }

    /// Delivers a message if its destination is waiting for it.
    pub(super) fn send(&mut self, from: Endpoint, to: Endpoint, message: &Message) -> Sent {
        let message = Message { source: from, ..*message };
        if !self.holder(to.slot()).is_ok_and(|holder| matches(to, holder)) {
            return Sent::Nobody;
        }
        if let Some(service) = self.services.get(&to.slot()) {
            if !service.accepts_message(from) {
                return Sent::Busy;
            }
            self.received(to.slot(), message);
            return Sent::Done;
        }
        let Some(played) = self.played.get_mut(&to.slot()) else { return Sent::Nobody };
        if to.slot() >= SERVICE_SLOTS && !played.asks {
            return Sent::Busy;
        }
        played.asks = false;
        played.mail.push_back(message);
        Sent::Done
    }

    /// A service goes on with a message that it has waited for.
    fn received(&mut self, slot: usize, message: Message) {
        if let Some(service) = self.services.get_mut(&slot) {
            service.messages += 1;
        }
        self.wake(slot, Ok(message));
    }

    /// How many messages a service has received.
    pub(super) fn messages(&self, service: Endpoint) -> u64 {
        self.services.get(&service.slot()).map_or(0, |service| service.messages)
    }

    /// A service dies when it has received that many messages more, before it acts on the last of them; or it lives on.
    pub(super) fn set_last_message(&mut self, service: Endpoint, more: Option<u64>) {
        let service = self.service(service);
        service.last_message = more.map(|more| service.messages + more);
    }

    /// Queues the message until it is received.
    pub(super) fn wait_in_send(&mut self, from: Endpoint, to: Endpoint, message: &Message, then: Then) {
        self.service(from).wait = Wait::Send(to, then);
        self.post(from, to, message);
    }

    /// Continues after a completed send.
    pub(super) fn go_on(&mut self, sender: Endpoint, to: Endpoint, then: Then) {
        match then {
            Then::Return => self.wake(sender.slot(), Ok(Message::default())),
            Then::Answer => self.receive_as(sender, Wait::Answer(to)),
            Then::Receive(filter) => self.receive_as(sender, Wait::Receive(filter)),
        }
    }

    /// Delivers or queues a message.
    pub(super) fn post(&mut self, from: Endpoint, to: Endpoint, message: &Message) {
        if self.send(from, to, message) == Sent::Busy {
            let message = Message { source: from, ..*message };
            self.service(to).line.push_back(message);
        }
    }

    /// Sends a request of a program or simulated service.
    pub(super) fn ask(&mut self, from: Endpoint, to: Endpoint, request: &Message) {
        let played = self.played.get_mut(&from.slot()).expect("the test plays who asks");
        assert!(!played.asks, "{from:?} asks while it waits for an answer");
        played.asks = true;
        self.post(from, to, request);
    }

    /// The service that has not received yet what this program asks it. `ECALLDENIED`: of other waits nothing is known.
    pub(super) fn asked_service(&self, program: Endpoint) -> Result<Endpoint> {
        let has_in_line = |service: &&Service| service.line.iter().any(|message| message.source == program);
        self.services.values().find(has_in_line).map(|service| service.endpoint).ok_or(Errno::ECALLDENIED)
    }

    pub(super) fn forget_request(&mut self, program: Endpoint) {
        if let Some(played) = self.played.get_mut(&program.slot()) {
            played.asks = false;
        }
    }

    pub(super) fn take_mail(&mut self, by: Endpoint) -> Option<Message> {
        self.played.get_mut(&by.slot()).and_then(|played| played.mail.pop_front())
    }

    /// Receives for a service: a notification, the first matching queued message, or a later one.
    pub(super) fn receive(&mut self, endpoint: Endpoint, filter: Endpoint) {
        self.receive_as(endpoint, Wait::Receive(filter));
    }

    fn receive_as(&mut self, endpoint: Endpoint, wait: Wait) {
        let now_ns = self.now_ns;
        let service = self.service(endpoint);
        service.wait = wait;
        let notified = service.notifications.keys().copied().find(|source| service.accepts_notification(*source));
        if let Some(source) = notified {
            let bits = service.notifications.remove(&source).unwrap_or(0);
            return self.wake(endpoint.slot(), Ok(notification(source, now_ns, bits)));
        }
        if let Some(at) = service.line.iter().position(|message| service.accepts_message(message.source)) {
            let message = service.line.remove(at).expect("was found there");
            self.received(endpoint.slot(), message);
            return self.left_line(message.source, endpoint);
        }
        if wait == Wait::Receive(Endpoint::ANY) {
            let promised = std::mem::take(&mut service.promised);
            promised.into_iter().for_each(|waiter| self.notify(endpoint, waiter.slot(), 0));
        }
    }

    /// Completes the send of this sender, whose message has been received.
    fn left_line(&mut self, sender: Endpoint, by: Endpoint) {
        if !self.is_alive(sender) {
            return;
        }
        if let Wait::Send(to, then) = self.service(sender).wait
            && matches(to, by)
        {
            self.go_on(sender, to, then);
        }
    }

    pub(super) fn promise_notification(&mut self, to: Endpoint, by: Endpoint) {
        if let Some(service) = self.services.get_mut(&by.slot()) {
            service.promised.insert(to);
        }
    }

    pub(super) fn notify(&mut self, source: Endpoint, slot: usize, bits: u64) {
        let now_ns = self.now_ns;
        if let Some(played) = self.played.get_mut(&slot) {
            return played.mail.push_back(notification(source, now_ns, bits));
        }
        let Some(service) = self.services.get_mut(&slot) else { return };
        if service.accepts_notification(source) {
            self.wake(slot, Ok(notification(source, now_ns, bits)));
        } else {
            *service.notifications.entry(source).or_default() |= bits;
        }
    }

    pub(super) fn set_alarm(&mut self, endpoint: Endpoint, deadline_ns: u64) {
        self.service(endpoint).alarm_ns = (deadline_ns != 0).then_some(deadline_ns);
    }

    /// Advances the time to the first alarm up to `end_ns`, or to `end_ns`. Returns whether there was an alarm.
    pub(super) fn ring_next_alarm(&mut self, end_ns: u64) -> bool {
        let alarms = self.services.values().filter_map(|service| Some((service.alarm_ns?, service.endpoint)));
        let Some((time_ns, endpoint)) = alarms.min().filter(|(time_ns, _)| *time_ns <= end_ns) else {
            self.now_ns = end_ns;
            return false;
        };
        self.now_ns = self.now_ns.max(time_ns);
        self.service(endpoint).alarm_ns = None;
        self.notify(Endpoint::CLOCK, endpoint.slot(), 0);
        true
    }

    pub(super) fn set_grants(&mut self, endpoint: Endpoint, address: u64, entries: u64) {
        self.service(endpoint).grants = Some((address, entries));
    }

    /// Takes the preserved memory of all slots.
    pub(super) fn take_preserved(&mut self) -> BTreeMap<usize, &'static [AtomicU64]> {
        std::mem::take(&mut self.preserved)
    }

    /// Returns the preserved memory of a slot. A dead service's values may still refer to it.
    pub(super) fn preserved(&mut self, slot: usize, bytes: usize) -> &'static [AtomicU64] {
        self.preserved.entry(slot).or_insert_with(|| crate::host::zeroed(bytes))
    }

    /// Returns a program's memory, and the offset of this range in it.
    pub(super) fn program(
        &mut self,
        program: Endpoint,
        address: u64,
        bytes: usize,
    ) -> Result<(&mut [u8], Range<usize>)> {
        let played = self.played.get_mut(&program.slot()).filter(|played| matches(program, played.endpoint));
        let played = played.ok_or(Errno::EDEADSRCDST)?;
        let start = address.checked_sub(played.start).ok_or(Errno::EFAULT)? as usize;
        let end = start.checked_add(bytes).filter(|end| *end <= played.memory.len()).ok_or(Errno::EFAULT)?;
        Ok((&mut played.memory, start..end))
    }
}
