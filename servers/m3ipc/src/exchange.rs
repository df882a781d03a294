//! The calls that move messages through m3ipc, and what ends them from outside.

use crate::container::{Member, Unfinished};
use crate::server::{Caller, Handled, M3ipc, Step, identify};
use crate::system::{Native, System};
use crate::threads::{Doing, Place, Wait};
use abi::Endpoint;
use m3ipc::call::Call;
use m3ipc::endpoint::{Endpoint as Name, Number};
use m3ipc::error::Error;
use m3ipc::limits::TASKS;
use m3ipc::message::Message as Packet;
use m3ipc::rendezvous::{Turn, Wait as MayWait};
use m3ipc::rights::Trap;

/// Slot in whose name interrupts are told.
const HARDWARE: i32 = -1;
/// How long to try again after the deadline of a primitive that its thread has not come to yet.
const TRY_AGAIN_NS: u64 = 1_000_000;
/// The most bytes of a copy in one turn: more would take longer than a container is charged for a call (docs/adr/0119-messages-of-those-who-may-copy.md).
const COPY_PIECE: u64 = 1 << 20;

const _: () = assert!(-HARDWARE <= TASKS as i32);

fn may_wait(limit_ms: i64) -> MayWait {
    if limit_ms == 0 { MayWait::No } else { MayWait::Yes }
}

impl<S: System> M3ipc<S> {
    /// `send`, `sendrec`.
    pub fn send(&mut self, caller: &Caller, call: Call, to: i32, address: u64, limit_ms: i64) -> Handled {
        let place = self.begin_exchange(caller)?;
        let packet = self.read_packet(caller, address)?;
        let (name, may_wait) = (Name::from_raw(to), may_wait(limit_ms));
        if call == Call::Send && self.hand_over(caller, place, name, packet) {
            return Ok(Step::Done(0));
        }
        let turn = self.with(place.container, |machine, finish| match call {
            Call::Send => machine.send(place.number, name, packet, may_wait, finish),
            _ => machine.send_receive(place.number, name, packet, may_wait, finish),
        })?;
        let is_sent = !matches!(turn, Turn::Ended(m3ipc::rendezvous::End::Failed(_)));
        let step = self.settle(caller, turn, address, limit_ms)?;
        if is_sent {
            self.count_sent(place);
            self.note(caller.thread, step);
            self.tell_direct(place.container, name);
        }
        Ok(step)
    }

    /// `receive`.
    pub fn receive(&mut self, caller: &Caller, from: i32, address: u64, limit_ms: i64) -> Handled {
        let place = self.begin_exchange(caller)?;
        let (name, may_wait) = (Name::from_raw(from), may_wait(limit_ms));
        if let Some(step) = self.undelivered(caller, place, name, address)? {
            return Ok(step);
        }
        let turn =
            self.with(place.container, |machine, finish| machine.receive(place.number, name, may_wait, finish))?;
        self.settle(caller, turn, address, limit_ms)
    }

    /// `rcvrqst`.
    pub fn receive_request(&mut self, caller: &Caller, address: u64, limit_ms: i64) -> Handled {
        let place = self.begin_exchange(caller)?;
        if let Some(step) = self.undelivered(caller, place, Name::ANY, address)? {
            return Ok(step);
        }
        let may_wait = may_wait(limit_ms);
        let turn =
            self.with(place.container, |machine, finish| machine.receive_request(place.number, may_wait, finish))?;
        self.settle(caller, turn, address, limit_ms)
    }

    /// What a member was to receive when its call had ended already, if it is of `from`.
    pub fn undelivered(
        &mut self,
        caller: &Caller,
        place: Place,
        from: Name,
        address: u64,
    ) -> Result<Option<Step>, Error> {
        use m3ipc::rendezvous::{End, Received};
        let is_meant = |packet: &mut Packet| from == Name::ANY || packet.source == from.raw();
        let Some(packet) = self.member(place)?.undelivered.take_if(is_meant) else { return Ok(None) };
        let source = Name::from_raw(packet.source);
        let turn = Turn::Ended(End::Received(Received::Message(source, packet)));
        self.settle(caller, turn, address, 0).map(Some)
    }

    /// `reply`.
    pub fn reply(&mut self, caller: &Caller, to: i32, address: u64) -> Handled {
        let place = self.begin_exchange(caller)?;
        let packet = self.read_packet(caller, address)?;
        let name = Name::from_raw(to);
        if !self.hand_over(caller, place, name, packet) {
            self.with(place.container, |machine, finish| machine.reply(place.number, name, packet, finish))??;
            self.count_sent(place);
        }
        Ok(Step::Done(0))
    }

    /// Gives a message to a member that receives by a primitive, and will fetch it. Returns whether it did: rights are as the rendezvous has them.
    fn hand_over(&mut self, caller: &Caller, from: Place, to: Name, packet: Packet) -> bool {
        if !self.receives_elsewhere(from, to) {
            return false;
        }
        let source = self.name_of(from).raw();
        let Ok(container) = self.container_of(from) else { return false };
        let Ok(number) = container.machine.may_send(from.number, to) else { return false };
        let Some(receiver) = container.members.get_mut(number).filter(|member| member.undelivered.is_none()) else {
            return false;
        };
        receiver.undelivered = Some(Packet { source, ..packet });
        let thread = receiver.thread;
        self.count_sent(from);
        self.note(caller.thread, Step::Done(0));
        self.system.notify(thread);
        true
    }

    /// `notify`, `ntfy_value`.
    pub fn notify(&mut self, caller: &Caller, to: i32, value: i32) -> Handled {
        let place = caller.bound()?;
        self.notify_in_name(caller, place, Name::from_raw(to), value)
    }

    /// `src_notify`.
    pub fn notify_as(&mut self, caller: &Caller, source: i32, to: i32) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        let place = Place { number: Number::new(source)?, ..caller.bound()? };
        if self.container_of(place)?.members.get(place.number).is_none() {
            return Err(Error::BadProcess);
        }
        self.notify_in_name(caller, place, Name::from_raw(to), 0)
    }

    /// `hdw_notify`: in the name of HARDWARE, a task that need not be bound.
    pub fn notify_hardware(&mut self, caller: &Caller, container: i32, to: i32) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        let place = Place { container: self.container(container)?.number, number: Number::new(HARDWARE)? };
        let to = Name::from_raw(to);
        let is_open = self.receives_elsewhere(place, to);
        self.with(place.container, |machine, finish| machine.notify_of(place.number, to, is_open, finish))??;
        self.note(caller.thread, Step::Done(0));
        self.tell_direct(place.container, to);
        Ok(Step::Done(0))
    }

    fn notify_in_name(&mut self, caller: &Caller, source: Place, to: Name, value: i32) -> Handled {
        let is_open = self.receives_elsewhere(source, to);
        self.member(source)?.value = value;
        self.with(source.container, |machine, finish| machine.notify(source.number, to, is_open, finish))??;
        self.note(caller.thread, Step::Done(0));
        self.tell_direct(source.container, to);
        Ok(Step::Done(0))
    }

    /// Whether a member receives by a primitive, and would take a notification of `source`.
    fn receives_elsewhere(&mut self, source: Place, to: Name) -> bool {
        let thread = self.member(source).map_or(Endpoint::NONE, |member| member.thread);
        let Ok(container) = self.container_of(source) else { return false };
        let to = container.machine.locate(to).ok().and_then(|number| container.members.get(number));
        let Some(to) = to.filter(|to| to.is_direct).map(|to| to.thread) else { return false };
        matches!(self.system.state(to), Some(Native::Receiving(from)) if from == Endpoint::ANY || from == thread)
    }

    /// A member that uses primitives is to look what is there for it.
    pub fn tell_direct(&mut self, container: u8, to: Name) {
        let Some(owner) = self.containers.iter().find(|owner| owner.number == container) else { return };
        let number = owner.machine.locate(to).ok();
        if let Some(member) = number.and_then(|number| owner.members.get(number)).filter(|member| member.is_direct) {
            self.system.notify(member.thread);
        }
    }

    /// `vcopy`: copies the first [`COPY_PIECE`] bytes at most, and returns how many. The caller asks for the rest.
    pub fn copy(&mut self, caller: &Caller, from: (i32, u64), to: (i32, u64), bytes: i32) -> Handled {
        let place = caller.bound()?;
        let (source, target) = (Name::from_raw(from.0), Name::from_raw(to.0));
        let M3ipc { system, threads, containers, node, .. } = self;
        let container = containers.iter_mut().find(|one| one.number == place.container).ok_or(Error::NotBound)?;
        let waits = |number| {
            let thread = container.members.get(number).filter(|member| member.is_direct).map(|member| member.thread);
            thread
                .is_some_and(|thread| matches!(system.state(thread), Some(Native::Receiving(_) | Native::Answering(_))))
        };
        let rights = container.machine.rights(place.number).ok_or(Error::NotBound)?;
        rights.check_trap(Trap::Copy)?;
        if bytes < 0 || bytes > node.max_copy() {
            return Err(Error::Range);
        }
        let (from_slot, to_slot) = container.machine.check_copy(place.number, source, target, waits)?;
        let thread = |number| container.members.get(number).map(|member: &Member| member.thread).ok_or(Error::NotBound);
        let (source, target) = (thread(from_slot)?, thread(to_slot)?);
        if place.number != from_slot && place.number != to_slot {
            identify(system, threads, caller.thread)?.check_root()?;
        }
        let piece = (bytes as u64).min(COPY_PIECE);
        if piece > 0 {
            system.copy((source, from.1), (target, to.1), piece).map_err(|_| Error::AddressNotAvailable)?;
        }
        let is_last = i64::from(bytes) == piece as i64;
        container.members.get_mut(place.number).ok_or(Error::NotBound)?.copies += u64::from(is_last);
        Ok(Step::Done(piece as i64))
    }

    /// `wakeup`. Who is not in the container must be root's.
    pub fn wake_up(&mut self, caller: &Caller, container: i32, name: i32) -> Handled {
        let asking = self.identity(caller.thread)?;
        if caller.place.is_none_or(|place| i32::from(place.container) != container) {
            asking.check_root()?;
        }
        let name = Name::from_raw(name);
        let container = self.container(container)?;
        let (number, slot) = (container.number, container.machine.locate(name)?);
        let place = Place { container: number, number: slot };
        let member = *self.member(place)?;
        if member.is_direct && self.system.state(member.thread) == Some(Native::Receiving(Endpoint::ANY)) {
            self.member(place)?.unfinished = Some(Unfinished::Waking { by: caller.thread });
            self.finish(place);
            return Ok(Step::Done(0));
        }
        self.with(number, |machine, finish| machine.wake_up(name, finish))??;
        Ok(Step::Done(0))
    }

    /// Ends the primitive by which a member receives from anybody.
    pub fn finish_waking(&mut self, place: Place, member: &Member, by: Endpoint) {
        self.note(by, Step::Done(0));
        let Ok(row) = self.container_of(place).map(|container| container.row()) else { return };
        if self.system.state(member.thread) == Some(Native::Receiving(Endpoint::ANY)) {
            self.system.fail(member.thread, row, Endpoint::NONE, Error::WokenUp);
        }
    }

    /// Prepares for a call of the rendezvous by a member. One endpoint makes one call at a time.
    fn begin_exchange(&mut self, caller: &Caller) -> Result<Place, Error> {
        let place = caller.bound()?;
        if self.container_of(place)?.machine.waits(place.number) {
            return Err(Error::BadState);
        }
        let M3ipc { system, containers, .. } = self;
        let container = containers.iter_mut().find(|one| one.number == place.container).ok_or(Error::NotBound)?;
        let member = container.members.get_mut(place.number).ok_or(Error::NotBound)?;
        member.caller = caller.thread;
        if member.thread != caller.thread {
            // What is sent to the endpoint must find whichever thread receives.
            container.mediate(place.number, system);
        }
        Ok(place)
    }

    /// The member in a place.
    ///
    /// # Errors
    /// `NotBound`.
    pub fn member(&mut self, place: Place) -> Result<&mut Member, Error> {
        self.container_of(place)?.members.get_mut(place.number).ok_or(Error::NotBound)
    }

    fn count_sent(&mut self, place: Place) {
        if let Ok(member) = self.member(place) {
            member.sent += 1;
        }
    }

    /// Sets the alarm for the next deadline.
    pub fn keep_alarm(&mut self) {
        let next = self.threads.next_deadline_ns();
        if self.node.alarm_ns != next {
            self.node.alarm_ns = next;
            self.system.set_alarm(next);
        }
    }

    /// Ends the waits whose time limit has passed.
    pub fn end_late_waits(&mut self, now_ns: u64) {
        self.node.alarm_ns = 0;
        let is_late = |deadline: u64| deadline != 0 && deadline <= now_ns;
        while let Some(late) = self.threads.find(|known| is_late(known.deadline_ns)) {
            let mut again_ns = 0;
            match (late.doing, late.place) {
                (Doing::Waiting(Wait::Message { .. }), Some(place)) => self.fail(place, Error::TimedOut),
                (Doing::Waiting(_), _) => self.end_wait(late.endpoint, Error::TimedOut.to_result().into()),
                (_, Some(place)) if !self.end_primitive(late.endpoint, place) => again_ns = now_ns + TRY_AGAIN_NS,
                _ => {}
            }
            // A successor does once more what this process dies of.
            self.threads.set_deadline(late.endpoint, again_ns);
        }
        self.threads.deadlines_passed();
        self.keep_alarm();
    }

    /// Ends a wait in the rendezvous.
    fn fail(&mut self, place: Place, error: Error) {
        // It waits.
        let _ = self.with(place.container, |machine, finish| machine.end_wait(place.number, error, finish));
        self.give_results();
    }

    /// Ends the primitive of a thread whose time limit has passed. Returns false when it has not begun yet.
    fn end_primitive(&mut self, thread: Endpoint, place: Place) -> bool {
        let Ok(row) = self.container_of(place).map(|container| container.row()) else { return true };
        match self.system.state(thread) {
            Some(Native::Elsewhere) => return false,
            Some(_) => self.system.fail(thread, row, Endpoint::NONE, Error::TimedOut),
            None => {}
        }
        true
    }

    /// A thread whose call waits here, while pm has ended that because of a signal.
    pub fn next_interrupted(&mut self) -> Option<Endpoint> {
        let M3ipc { system, threads, .. } = self;
        let mut waiting = threads.iter().filter(|known| matches!(known.doing, Doing::Waiting(_)));
        waiting.find(|known| !system.is_calling(known.endpoint)).map(|known| known.endpoint)
    }

    /// Nobody waits for this call any more.
    pub fn interrupted(&mut self, thread: Endpoint) {
        let Some(known) = self.threads.get_mut(thread) else { return };
        let (doing, place) = (known.doing, known.place);
        known.doing = Doing::Nothing;
        known.deadline_ns = 0;
        if let (Doing::Waiting(Wait::Message { .. }), Some(place)) = (doing, place) {
            self.fail(place, Error::Interrupted);
        }
    }
}
