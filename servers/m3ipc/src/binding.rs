//! Who is bound: `bind` and its relatives, the waits for it, and how a binding ends.

use crate::container::{Kind, Member, Unfinished};
use crate::server::{Caller, Handled, M3ipc, Step};
use crate::system::{Identity, System};
use crate::threads::{Doing, Place, Wait};
use abi::Endpoint;
use abi::endpoint::APPLICATIONS_BIT;
use m3ipc::descriptor::{ContainerInfo, misc};
use m3ipc::endpoint::{Endpoint as Name, Number};
use m3ipc::error::Error;
use m3ipc::rendezvous::Place as Where;

/// How often refusals are logged.
const LOG_INTERVAL_NS: u64 = 1_000_000_000;

/// Root, or this user, may bind a process of the user.
fn may_bind(caller: &Identity, other: &Identity) -> bool {
    caller.user == 0 || caller.user == other.user
}

impl<S: System> M3ipc<S> {
    /// `bind`, `tbind`.
    pub fn bind_caller(&mut self, caller: &Caller, container: i32, number: i32, kind: Kind) -> Handled {
        let process = self.identity(caller.thread)?;
        self.node.id()?;
        let number = self.slot(container, number)?;
        match (kind, caller.place) {
            (Kind::Process, Some(_)) => return Err(Error::BindType),
            // Its group leader is: so it will be, too.
            (Kind::Thread, Some(_)) if self.is_bound_itself(caller) => return Err(Error::BindType),
            _ => {}
        }
        let thread = if kind == Kind::Thread { caller.thread } else { process.thread };
        self.check_joins(container, &process, &process)?;
        self.bind(caller, container as u8, number, Member::of(thread, &process, kind), process.thread)
    }

    fn is_bound_itself(&mut self, caller: &Caller) -> bool {
        let Some(place) = caller.place else { return false };
        self.container_of(place).is_ok_and(|container| {
            container.members.get(place.number).is_some_and(|member| member.thread == caller.thread)
        })
    }

    /// `lclbind`.
    pub fn bind_other(&mut self, caller: &Caller, container: i32, pid: i32, number: i32) -> Handled {
        self.node.id()?;
        let number = self.slot(container, number)?;
        let process = self.process_to_bind(caller, container, pid)?;
        let member = Member::of(process.thread, &process, Kind::Process);
        self.bind(caller, container as u8, number, member, process.thread)
    }

    /// Checks that `asking` may let a process join a container: root may let everybody, other users whom the container, or else the system file,
    /// names, as long as they do not fill it.
    fn check_joins(&mut self, container: i32, asking: &Identity, process: &Identity) -> Result<(), Error> {
        if asking.user == 0 {
            return Ok(());
        }
        let Identity { user, group, capabilities, pid, .. } = *process;
        let admits = |info: &ContainerInfo| info.admits(user, group, capabilities);
        let by_default = admits(&self.defaults).unwrap_or(false);
        let owner = self.container(container)?;
        let of_user = owner.members.iter().filter(|(_, member)| member.user == user).count();
        let error = match admits(&owner.info).unwrap_or(by_default) {
            false => Error::NotPermitted,
            true if of_user >= owner.user_slots() => Error::ResourceBusy,
            true => return Ok(()),
        };
        self.log_refusal(format_args!(
            "binding of pid {pid}, user {user}, in container {container} refused: {error:?}"
        ));
        Err(error)
    }

    /// Logs, at most once a second.
    fn log_refusal(&mut self, line: core::fmt::Arguments) {
        let now_ns = self.system.now_ns();
        if now_ns >= self.next_log_ns {
            self.next_log_ns = now_ns + LOG_INTERVAL_NS;
            self.system.log(line);
        }
    }

    /// The process with this pid, which is not bound yet and which the caller may bind in a container.
    fn process_to_bind(&mut self, caller: &Caller, container: i32, pid: i32) -> Result<Identity, Error> {
        let asking = self.identity(caller.thread)?;
        let process = if pid > 0 { self.system.enroll(caller.thread, pid)? } else { return Err(Error::BadPid) };
        if !may_bind(&asking, &process) {
            return Err(Error::NotPermitted);
        }
        if self.threads.get(process.thread).is_some_and(|thread| thread.place.is_some()) {
            return Err(Error::BindType);
        }
        self.check_joins(container, &asking, &process)?;
        Ok(process)
    }

    /// `first`: the first thread of the member's process.
    fn bind(&mut self, caller: &Caller, container: u8, number: Number, member: Member, first: Endpoint) -> Handled {
        let leader = self.threads.get(first).and_then(|leader| leader.place);
        let name = self.with(container, |machine, _| match (member.kind, leader) {
            (Kind::Process, _) => machine.bind(number, Where::Here),
            (Kind::Thread, Some(leader)) if leader.container == container => machine.bind_thread(number, leader.number),
            (Kind::Thread, _) => Err(Error::GroupLeader),
        })??;
        self.admit(caller, Place { container, number }, name, member)
    }

    /// A slot of the rendezvous is occupied: by this member.
    fn admit(&mut self, caller: &Caller, place: Place, name: Name, mut member: Member) -> Handled {
        if let Some(known) = self.threads.enter(member.thread) {
            // What is sent to a thread directly must not reach it under another name: so it is direct once in each container.
            member.is_direct = known.was_in & 1 << place.container == 0 && member.flags & misc::RMTBACKUP == 0;
        }
        self.bindings += 1;
        member.binding = self.bindings;
        member.unfinished = Some(Unfinished::Binding { by: caller.thread });
        self.container_of(place)?.members.set(place.number, Some(member));
        self.finish(place);
        Ok(Step::Done(name.raw().into()))
    }

    /// Does what has been decided about a member.
    pub fn finish(&mut self, place: Place) {
        let Ok(member) = self.member(place).copied() else { return };
        match member.unfinished {
            Some(Unfinished::Binding { by }) => self.finish_binding(place, &member, by),
            Some(Unfinished::Waking { by }) => self.finish_waking(place, &member, by),
            Some(Unfinished::Unbinding { by, signal }) => return self.finish_unbinding(place, &member, by, signal),
            None => {}
        }
        if let Ok(member) = self.member(place) {
            member.unfinished = None;
        }
    }

    fn finish_binding(&mut self, place: Place, member: &Member, by: Endpoint) {
        if let Some(known) = self.threads.get_mut(member.thread) {
            known.was_in |= 1 << place.container;
            known.place = Some(place);
        }
        let name = self.name_of(place);
        self.note(by, Step::Done(name.raw().into()));
        if let Some(row) = self.container_of(place).ok().map(|owner| owner.row()).filter(|_| member.is_direct) {
            self.system.join(member.thread, row);
        }
        self.wake_waits_for(place, name, member.thread);
    }

    /// Ends the waits for a binding.
    fn wake_waits_for(&mut self, place: Place, name: Name, thread: Endpoint) {
        let is_awaited = |known: &crate::threads::Thread| match known.doing {
            Doing::Waiting(Wait::Bound) => known.endpoint == thread,
            Doing::Waiting(Wait::BoundOf(container, awaited)) => container == place.container && awaited == name,
            _ => false,
        };
        while let Some(waiter) = self.threads.find(is_awaited) {
            self.end_wait(waiter.endpoint, name.raw().into());
        }
    }

    /// `rmtbind`: a process of another node gets the name that it has there. Without proxies nothing reaches it.
    pub fn bind_remote(&mut self, caller: &Caller, container: i32, name: i32, node: i32, text: u64) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        let text = self.read(caller, text)?;
        let place = self.other_node(container, node)?;
        let member = Member { name: text, ..Member::of(Endpoint::NONE, &Identity::NOBODY, Kind::Process) };
        self.bind_as(caller, container as u8, Name::from_raw(name), place, member)
    }

    /// `bkupbind`: a process of this node stands by for one of another.
    pub fn bind_backup(&mut self, caller: &Caller, container: i32, pid: i32, name: i32, node: i32) -> Handled {
        let place = self.other_node(container, node)?;
        let process = self.process_to_bind(caller, container, pid)?;
        let member = Member { flags: misc::RMTBACKUP, ..Member::of(process.thread, &process, Kind::Process) };
        self.bind_as(caller, container as u8, Name::from_raw(name), place, member)
    }

    /// `replbind`: a process of this node has the name of one of another, which it replicates.
    pub fn bind_replica(&mut self, caller: &Caller, container: i32, pid: i32, name: i32) -> Handled {
        self.node.id()?;
        self.container(container)?;
        let process = self.process_to_bind(caller, container, pid)?;
        let member = Member { flags: misc::REPLICATED, ..Member::of(process.thread, &process, Kind::Process) };
        self.bind_as(caller, container as u8, Name::from_raw(name), Where::Here, member)
    }

    /// A node of a container that is not this one.
    fn other_node(&mut self, container: i32, node: i32) -> Result<Where, Error> {
        let own = self.node.id()?;
        let bits = self.container(container)?.info.nodes;
        let node = crate::node::node_number(node)?;
        if node == own {
            return Err(Error::LocalProcess);
        }
        if bits & 1 << node == 0 { Err(Error::NodeNotOfContainer) } else { Ok(Where::There(node)) }
    }

    fn bind_as(&mut self, caller: &Caller, container: u8, name: Name, place: Where, member: Member) -> Handled {
        let number = name.number()?;
        self.slot(container.into(), number.get())?;
        self.with(container, |machine, _| machine.bind_as(name, place))??;
        self.admit(caller, Place { container, number }, name, member)
    }

    /// `wait4bind`.
    pub fn wait_for_bind(&mut self, caller: &Caller, limit_ms: i64) -> Handled {
        if let Some(place) = caller.place {
            return Ok(Step::Done(self.name_of(place).raw().into()));
        }
        self.node.id()?;
        if limit_ms == 0 { Err(Error::Again) } else { self.wait(caller, Wait::Bound, limit_ms) }
    }

    /// `wait4bindep`.
    pub fn wait_for_bind_of(&mut self, caller: &Caller, name: i32, limit_ms: i64) -> Handled {
        let (place, name) = (caller.bound()?, Name::from_raw(name));
        name.number()?;
        if self.container_of(place)?.machine.locate(name).is_ok() {
            return Ok(Step::Done(name.raw().into()));
        }
        if limit_ms == 0 {
            Err(Error::Again)
        } else {
            self.wait(caller, Wait::BoundOf(place.container, name), limit_ms)
        }
    }

    /// `wait4unbind`.
    pub fn wait_for_unbind(&mut self, caller: &Caller, name: i32, limit_ms: i64) -> Handled {
        let (place, name) = (caller.bound()?, Name::from_raw(name));
        name.number()?;
        match self.container_of(place)?.machine.locate(name) {
            Ok(_) if limit_ms == 0 => Err(Error::Again),
            Ok(_) => self.wait(caller, Wait::UnboundOf(place.container, name), limit_ms),
            Err(_) => Ok(Step::Done(name.raw().into())),
        }
    }

    /// `unbind`.
    pub fn unbind(&mut self, caller: &Caller, container: i32, name: i32) -> Handled {
        let asking = self.identity(caller.thread)?;
        let container = self.container(container)?;
        let number = container.number;
        let slot = match Name::from_raw(name) {
            Name::SELF => caller.bound()?.number,
            other => container.machine.locate(other).map_err(|error| match error {
                Error::DestinationDied => Error::NotBound,
                other => other,
            })?,
        };
        let Some(pid) = container.members.get(slot).map(|member| member.pid) else { return Err(Error::NotBound) };
        if pid <= 0 {
            asking.check_root()?;
        } else if pid != asking.pid {
            let owner = self.system.enroll(caller.thread, pid)?;
            if !may_bind(&asking, &owner) {
                return Err(Error::NotPermitted);
            }
        }
        self.vacate(Place { container: number, number: slot }, caller.thread, 0);
        Ok(Step::Done(0))
    }

    /// Ends a binding, and those of the threads that it leads. Whoever waits for one of them is told. `by`: whose call it is; `signal`: goes to its
    /// process, if it is not 0.
    pub fn vacate(&mut self, place: Place, by: Endpoint, signal: u64) {
        if let Ok(member) = self.member(place) {
            member.unfinished = Some(Unfinished::Unbinding { by, signal });
            self.finish(place);
        }
    }

    /// A thread whose group leader is in this slot.
    fn led_by(&mut self, place: Place) -> Option<Place> {
        let owner = self.container_of(place).ok()?;
        let mut others = owner.members.iter().map(|(number, _)| number).filter(|number| *number != place.number);
        others.find(|number| owner.machine.leader(*number) == Some(place.number)).map(|number| owner.place(number))
    }

    fn finish_unbinding(&mut self, place: Place, member: &Member, by: Endpoint, signal: u64) {
        while let Some(led) = self.led_by(place) {
            self.vacate(led, Endpoint::NONE, 0);
        }
        let Place { container, number } = place;
        let Ok(name) = self.container_of(place).map(|owner| owner.machine.last_name(number)) else { return };
        self.leave_rendezvous(place, Name::from_raw(member.warn));
        self.threads.for_each(|known| known.place = known.place.filter(|of| *of != place));
        self.note(by, Step::Done(0));
        self.give_results();
        if member.is_direct {
            self.system.join(member.thread, APPLICATIONS_BIT);
            self.system.notify(member.thread);
        }
        self.tell_direct(container, Name::from_raw(member.warn));
        let is_awaited = |known: &crate::threads::Thread| match known.doing {
            Doing::Waiting(Wait::UnboundOf(of, awaited)) => of == container && awaited == name,
            _ => false,
        };
        while let Some(waiter) = self.threads.find(is_awaited) {
            self.end_wait(waiter.endpoint, name.raw().into());
        }
        if signal != 0 {
            self.system.signal(member.pid, signal);
        }
        if let Ok(owner) = self.container_of(place) {
            owner.members.set(number, None);
        }
    }

    /// Ends the waits for a member in the rendezvous, and its own, and notifies whom `priv_warn` of it names, in its name.
    fn leave_rendezvous(&mut self, place: Place, warn: Name) {
        let number = place.number;
        let _ = self.with(place.container, |machine, finish| {
            if machine.waits(number) {
                let _ = machine.end_wait(number, Error::NotBound, finish);
            }
            let is_first = machine.unbind(number, finish).is_ok();
            if is_first && warn != Name::NONE {
                // It may be nobody, or know already.
                let _ = machine.notify_of(number, warn, true, finish);
            }
        });
    }

    /// Some thread has ended, its call was ended by a signal, or its process is another user's now: looks which ones.
    pub fn look_for_ends(&mut self) {
        self.threads.for_each(|known| known.process = None);
        while let Some(thread) = self.next_ended() {
            self.forget(thread);
        }
        while let Some(thread) = self.next_interrupted() {
            self.interrupted(thread);
        }
        self.keep_alarm();
    }

    /// A thread is about to end, and runs no more: whoever waits for it is told. Until pm ends it, the kernel does not.
    pub fn ends(&mut self, thread: Endpoint) {
        let place = self.threads.get(thread).and_then(|known| known.place);
        if let Some(place) = place {
            self.release_peers(thread, place);
        }
        self.forget(thread);
        self.keep_alarm();
    }

    /// Ends the primitives of members that wait for this thread. Its own are none of m3ipc's business any more.
    fn release_peers(&mut self, thread: Endpoint, place: Place) {
        let M3ipc { system, containers, .. } = self;
        let Some(owner) = containers.iter_mut().find(|one| one.number == place.container) else { return };
        let row = owner.row();
        let Some(dying) = owner.members.get_mut(place.number).filter(|member| member.thread == thread) else { return };
        dying.is_direct = false;
        let known_to = dying.known_to;
        let direct = |number| owner.members.get(number).filter(|member| member.is_direct);
        for member in known_to.iter().filter_map(direct) {
            system.fail(member.thread, row, thread, Error::DestinationDied);
        }
    }

    fn next_ended(&mut self) -> Option<Endpoint> {
        let M3ipc { system, threads, .. } = self;
        threads.iter().map(|known| known.endpoint).find(|thread| system.state(*thread).is_none())
    }

    fn forget(&mut self, thread: Endpoint) {
        let place = self.threads.get(thread).and_then(|known| known.place);
        if let Some(place) = place
            && self.container_of(place).is_ok_and(|container| container.members.of_thread(thread) == Some(place.number))
        {
            self.vacate(place, Endpoint::NONE, 0);
        }
        self.threads.remove(thread);
    }

    /// `getep`.
    pub fn endpoint_of(&mut self, caller: &Caller, pid: i32) -> Handled {
        if pid <= 0 {
            return Err(Error::Range);
        }
        let process = self.system.enroll(caller.thread, pid)?;
        let place = self.threads.get(process.thread).and_then(|known| known.place).ok_or(Error::NotBound)?;
        Ok(Step::Done(self.name_of(place).raw().into()))
    }
}
