//! Rights of processes, and what they do, as descriptors tell it.

use crate::container::{Container, Kind, Member};
use crate::server::{Caller, Handled, M3ipc, Step};
use crate::system::{Native, System};
use abi::Endpoint;
use m3ipc::descriptor::{Privileges, ProcessInfo, misc, rts};
use m3ipc::endpoint::{Endpoint as Name, Number};
use m3ipc::error::Error;
use m3ipc::rendezvous::{Activity, Place};
use m3ipc::rights::Rights;
use zerocopy::IntoBytes;

impl<S: System> M3ipc<S> {
    /// `setpriv`. Messages of a process whose rights are restricted go through m3ipc from then on.
    pub fn set_rights(&mut self, caller: &Caller, container: i32, name: i32, address: u64) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        let wanted: Privileges = self.read(caller, address)?;
        let number = self.container(container)?.number;
        let M3ipc { system, containers, .. } = self;
        let container = containers.iter_mut().find(|one| one.number == number).ok_or(Error::ContainerNotRunning)?;
        let slot = container.machine.locate(Name::from_raw(name))?;
        let rights = Rights::try_from(wanted)?;
        container.machine.set_rights(slot, rights)?;
        if let Some(member) = container.members.get_mut(slot) {
            (member.kept, member.warn) = ((wanted.calls, wanted.alarm), wanted.warn);
        }
        if !rights.are_full() {
            container.mediate(slot, system);
        }
        Ok(Step::Done(0))
    }

    /// `getpriv`.
    pub fn tell_rights(&mut self, caller: &Caller, container: i32, name: i32, address: u64) -> Handled {
        let container = self.container(container)?;
        let slot = container.machine.locate(Name::from_raw(name))?;
        let rights = container.machine.rights(slot).ok_or(Error::NotBound)?;
        let member = container.members.get(slot).ok_or(Error::NotBound)?;
        let (calls, alarm) = member.kept;
        let told = Privileges { calls, alarm, warn: member.warn, ..rights.into() };
        self.system.write(caller.thread, address, told.as_bytes())?;
        Ok(Step::Done(0))
    }

    /// `getprocinfo`.
    pub fn tell_process(&mut self, caller: &Caller, container: i32, number: i32, address: u64) -> Handled {
        let slot = self.slot(container, number)?;
        let node = self.node.id()?;
        let container = self.container(container)?.number;
        let info = self.describe(container, slot, node).unwrap_or(ProcessInfo {
            number,
            endpoint: Name::NONE.raw(),
            container: container.into(),
            state: rts::SLOT_FREE,
            pid: -1,
            node: -1,
            receives_from: Name::NONE.raw(),
            sends_to: Name::NONE.raw(),
            ..nobody()
        });
        self.system.write(caller.thread, address, info.as_bytes())?;
        Ok(Step::Done(0))
    }

    /// `proc_dump`.
    pub fn log_processes(&mut self, container: i32) -> Handled {
        let number = self.container(container)?.number;
        let node = self.node.id()?;
        for slot in (0..m3ipc::limits::SLOTS).map(Number::at) {
            let Some(info) = self.describe(number, slot, node) else { continue };
            self.system.log(format_args!(
                "container {container}: {} is {}, pid {}, state {:#x}, flags {:#x}, receives from {}, sends to {}",
                info.number, info.endpoint, info.pid, info.state, info.flags, info.receives_from, info.sends_to
            ));
        }
        Ok(Step::Done(0))
    }

    /// Describes the process in a slot.
    pub fn describe(&mut self, container: u8, slot: Number, node: u8) -> Option<ProcessInfo> {
        let M3ipc { system, containers, .. } = self;
        let container = containers.iter().find(|one| one.number == container)?;
        let member = container.members.get(slot)?;
        let name = |number| container.machine.endpoint(number).unwrap_or(Name::NONE).raw();
        let activity = match container.machine.activity(slot) {
            Activity::Running if member.is_direct => by_primitives(container, system.state(member.thread)),
            activity => activity,
        };
        let on_node = match container.machine.place(slot) {
            Some(Place::There(other)) => other,
            _ => node,
        };
        let (state, receives_from, sends_to) = match activity {
            Activity::Running => (0, Name::NONE, Name::NONE),
            Activity::Sending(to) => (rts::SENDING, Name::NONE, to),
            Activity::Receiving(from) => (rts::RECEIVING, from, Name::NONE),
        };
        let mut counted = 0u64;
        if member.counter != 0 && system.read(member.thread, member.counter, counted.as_mut_bytes()).is_err() {
            counted = 0;
        }
        let leads = if member.kind == Kind::Process { misc::GRPLEADER } else { 0 };
        let notified = if container.machine.is_notified(slot) { misc::NOTIFY } else { 0 };
        Some(ProcessInfo {
            number: slot.get(),
            endpoint: name(slot),
            container: container.number.into(),
            state: if on_node == node { state } else { state | rts::REMOTE },
            pid: member.pid,
            node: on_node.into(),
            nodes: 1 << on_node,
            flags: leads | notified | member.flags,
            name: current_name(system, member),
            receives_from: receives_from.raw(),
            sends_to: sends_to.raw(),
            leader: container.machine.leader(slot).map_or(Name::NONE.raw(), name),
            local_sent: member.sent.wrapping_add(counted),
            local_copies: member.copies,
            ..nobody()
        })
    }
}

/// The name of a process, which may change, as pm tells it; that of a process of another node, as it was bound.
fn current_name(system: &mut impl System, member: &Member) -> m3ipc::descriptor::Name {
    if member.pid <= 0 {
        return member.name;
    }
    // One that has just ended has none.
    system.enroll(member.thread, 0).map_or([0; 16], |process| process.name)
}

/// The fields that only processes of other nodes have.
fn nobody() -> ProcessInfo {
    let none = Name::NONE.raw();
    ProcessInfo { waits_for_move: none, waits_for_end: none, proxy: none, leader: none, ..ProcessInfo::default() }
}

/// What a member does by primitives.
fn by_primitives(container: &Container, state: Option<Native>) -> Activity {
    let name = |thread: Endpoint| match container.members.of_thread(thread) {
        Some(number) => container.machine.endpoint(number).unwrap_or(Name::NONE),
        None => Name::ANY,
    };
    match state {
        Some(Native::Sending(to)) => Activity::Sending(name(to)),
        Some(Native::Receiving(from) | Native::Answering(from)) => Activity::Receiving(name(from)),
        Some(Native::Elsewhere) | None => Activity::Running,
    }
}
