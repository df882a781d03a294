//! This node and its containers: started, described, ended.

use crate::container::Container;
use crate::server::{Caller, Handled, M3ipc, Step};
use crate::system::System;
use crate::threads::Place;
use abi::Endpoint;
use m3ipc::descriptor::{ContainerInfo, DrvsInfo, NodeInfo, node};
use m3ipc::endpoint::Endpoint as Name;
use m3ipc::error::Error;
use m3ipc::limits::{CONTAINERS, NODES};
use m3ipc::rendezvous::Place as Where;
use m3ipc::settings::OWN_NODE;
use sys::fallible::TryVec;
use zerocopy::IntoBytes;

/// SIGPIPE, which ends the processes of a container.
const END_SIGNAL: u64 = 13;

/// This node.
pub struct Node {
    /// Its number, once it has been initialised.
    id: Option<u8>,
    limits: DrvsInfo,
    /// When the alarm comes; 0: it is not set.
    pub alarm_ns: u64,
}

impl Node {
    /// A node that has not been initialised.
    pub const fn new() -> Node {
        Node { id: None, limits: DrvsInfo::LARGEST, alarm_ns: 0 }
    }

    /// # Errors
    /// `NotInitialised`.
    pub fn id(&self) -> Result<u8, Error> {
        self.id.ok_or(Error::NotInitialised)
    }

    /// What it was initialised with.
    pub fn limits(&self) -> &DrvsInfo {
        &self.limits
    }

    /// The most bytes of a copy.
    pub fn max_copy(&self) -> i32 {
        self.limits.max_copy
    }
}

/// # Errors
/// `BadContainer`.
pub fn container_number(number: i32) -> Result<u8, Error> {
    u8::try_from(number).ok().filter(|&number| usize::from(number) < CONTAINERS).ok_or(Error::BadContainer)
}

pub fn node_number(number: i32) -> Result<u8, Error> {
    u8::try_from(number).ok().filter(|&number| usize::from(number) < NODES).ok_or(Error::BadNode)
}

impl<S: System> M3ipc<S> {
    /// `drvs_init`.
    pub fn init_node(&mut self, caller: &Caller, id: i32, address: u64) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        if self.node.id.is_some() {
            return Err(Error::AlreadyInitialised);
        }
        let asked = if address == 0 { DrvsInfo::LARGEST } else { self.read(caller, address)? };
        let limits = asked.accepted(id)?;
        if address != 0 {
            self.system.write(caller.thread, address, limits.as_bytes())?;
        }
        self.node.limits = limits;
        self.node.id = Some(id as u8);
        Ok(Step::Done(id.into()))
    }

    /// `drvs_end`.
    pub fn end_node(&mut self, caller: &Caller) -> Handled {
        let process = self.identity(caller.thread)?;
        process.check_root()?;
        self.node.id()?;
        let own = process.pid;
        while let Some(number) = self.containers.last().map(|container| container.number) {
            self.end_members(number, own);
        }
        self.node = Node::new();
        Ok(Step::Done(0))
    }

    /// `getdrvsinfo`.
    pub fn tell_node(&mut self, caller: &Caller, address: u64) -> Handled {
        let id = self.node.id()?;
        self.system.write(caller.thread, address, self.node.limits.as_bytes())?;
        Ok(Step::Done(id.into()))
    }

    /// `vm_init`.
    pub fn init_container(&mut self, caller: &Caller, address: u64) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        let id = self.node.id()?;
        let asked: ContainerInfo = self.read(caller, address)?;
        let info = asked.accepted(&self.node.limits, id)?;
        let number = container_number(info.number)?;
        if self.containers.iter().any(|container| container.number == number) {
            return Err(Error::ContainerRunning);
        }
        self.containers.try_push(Container::new(number, info)?).map_err(|_| Error::NoMemory)?;
        Ok(Step::Done(0))
    }

    /// `vm_end`.
    pub fn end_container(&mut self, caller: &Caller, number: i32) -> Handled {
        let process = self.identity(caller.thread)?;
        process.check_root()?;
        let number = self.container(number)?.number;
        self.end_members(number, process.pid);
        Ok(Step::Done(0))
    }

    /// Ends a container, and with it the processes that are bound there, but for the one that has asked.
    fn end_members(&mut self, number: u8, asking: i32) {
        while let Some((slot, pid)) = self
            .container(number.into())
            .ok()
            .and_then(|container| container.members.iter().next().map(|(slot, member)| (slot, member.pid)))
        {
            let signal = if pid > 0 && pid != asking { END_SIGNAL } else { 0 };
            self.vacate(Place { container: number, number: slot }, Endpoint::NONE, signal);
        }
        self.containers.retain(|container| container.number != number);
    }

    /// `getvminfo`.
    pub fn tell_container(&mut self, caller: &Caller, number: i32, address: u64) -> Handled {
        let info = self.container(number)?.describe();
        self.system.write(caller.thread, address, info.as_bytes())?;
        Ok(Step::Done(0))
    }

    /// `vm_dump`.
    pub fn log_container(&mut self, number: i32) -> Handled {
        let container = self.container(number)?;
        let (info, bound) = (container.info, container.members.iter().count());
        let name = core::str::from_utf8(&info.name).unwrap_or("?").trim_end_matches('\0');
        self.system.log(format_args!(
            "container {} {name}: {} processes, {} tasks, {} of them system; nodes {:#x}, {bound} bound",
            info.number, info.processes, info.tasks, info.system_processes, info.nodes
        ));
        Ok(Step::Done(0))
    }

    /// `getnodeinfo`.
    pub fn tell_other_node(&mut self, caller: &Caller, id: i32, address: u64) -> Handled {
        let own = self.node.id()?;
        let info = self.describe_node(own, node_number(id)?);
        self.system.write(caller.thread, address, info.as_bytes())?;
        Ok(Step::Done(0))
    }

    /// What is known of a node. `own`: this one's number.
    pub fn describe_node(&self, own: u8, id: u8) -> NodeInfo {
        let is_in = |container: &&Container| container.info.nodes & 1 << id != 0;
        let containers = self.containers.iter().filter(is_in).fold(0, |bits, container| bits | 1 << container.number);
        NodeInfo {
            number: id.into(),
            flags: if id == own { node::ATTACHED } else { 0 },
            proxies: Name::NONE.raw(),
            containers,
            name: if id == own { OWN_NODE } else { [0; 16] },
            ..NodeInfo::default()
        }
    }

    /// `add_node`.
    pub fn add_node(&mut self, caller: &Caller, number: i32, id: i32) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        self.node.id()?;
        let id = node_number(id)?;
        let info = &mut self.container(number)?.info;
        if info.nodes & 1 << id != 0 {
            return Err(Error::NodeOfContainer);
        }
        info.nodes |= 1 << id;
        info.node_count += 1;
        Ok(Step::Done(0))
    }

    /// `del_node`.
    pub fn delete_node(&mut self, caller: &Caller, number: i32, id: i32) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        let own = self.node.id()?;
        let id = node_number(id)?;
        let container = self.container(number)?;
        let mut bound = container.members.iter().map(|(slot, _)| container.machine.place(slot));
        let is_used = bound.any(|place| place == Some(Where::There(id)));
        let info = &mut container.info;
        if info.nodes & 1 << id == 0 {
            return Err(Error::NodeNotOfContainer);
        }
        if id == own || is_used {
            return Err(Error::NodeBusy);
        }
        info.nodes &= !(1 << id);
        info.node_count -= 1;
        Ok(Step::Done(0))
    }

    /// `node_up`: there are no proxies that could serve the node yet.
    pub fn node_up(&mut self, caller: &Caller, id: i32) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        let own = self.node.id()?;
        Err(if node_number(id)? == own { Error::NodeBusy } else { Error::NoProxy })
    }

    /// `node_down`.
    pub fn node_down(&mut self, caller: &Caller, id: i32) -> Handled {
        self.identity(caller.thread)?.check_root()?;
        let own = self.node.id()?;
        Err(if node_number(id)? == own { Error::NodeBusy } else { Error::NodeFree })
    }
}
