//! What each call does. What binds and unbinds is in `bindings`.

use crate::admission::Caller;
use crate::broker::{Answer, Broker, Node, Turn, Waits};
use crate::container::{Container, Fate, numbers};
use crate::store::{self, Key};
use m3core::board::Writer;
use m3core::memory::{self, Block};
use m3core::process;
use m3core::wire::{Request, internal};
use m3ipc::call::Call;
use m3ipc::descriptor::{ContainerInfo, DrvsInfo, NodeInfo, Privileges, node};
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;
use m3ipc::limits::MAX_COPY;
use m3ipc::rights::Rights;
use m3ipc::settings::OWN_NODE;
use rustix::process::{Pid, PidfdFlags, Signal};
use zerocopy::{FromBytes, IntoBytes};

/// The slot in whose name hardware notifies.
const HARDWARE: i32 = -1;

/// A call has ended with this value.
pub fn ended(value: impl Into<i64>) -> Result<Turn, Error> {
    Ok(Turn::Ended(Answer { value: value.into(), ..Answer::default() }))
}

/// A call has ended with this value and descriptor.
pub fn told(value: impl Into<i64>, descriptor: &(impl IntoBytes + zerocopy::Immutable)) -> Result<Turn, Error> {
    Ok(Turn::Ended(Answer { value: value.into(), bytes: descriptor.as_bytes().to_vec(), ..Answer::default() }))
}

/// Reads an argument of type `int`.
pub fn int(argument: i64) -> Result<i32, Error> {
    i32::try_from(argument).map_err(|_| Error::Range)
}

fn endpoint(argument: i64) -> Result<Endpoint, Error> {
    int(argument).map(Endpoint::from_raw)
}

impl Broker {
    /// Does a call.
    ///
    /// # Errors
    /// Those of the call.
    pub fn call(&mut self, caller: &Caller, request: &Request) -> Result<Turn, Error> {
        let [first, second, third, fourth, ..] = request.arguments;
        // A child that kept the connection of a process that has ended must not ask for another one with its pid.
        if process::started(caller.pid) != Some(caller.started) {
            return Err(Error::BadPid);
        }
        match request.call {
            internal::JOIN => return self.join(caller, first, second),
            internal::BOX => return self.box_of(caller, int(first)?, second, third),
            internal::CONTAINERS => return self.list(),
            internal::ALLOCATE => return self.allocate(caller, request.arguments, request.is_repeated != 0),
            internal::FREE => return self.free(caller, first),
            internal::BUFFER => return self.buffer(caller, request.arguments),
            _ => {}
        }
        let call = Call::from_number(request.call).ok_or(Error::NotImplemented)?;
        if is_for_root(call) && !self.is_admin(caller) {
            return Err(Error::NotPermitted);
        }
        let is_repeated = request.is_repeated != 0;
        match call {
            Call::DrvsInit => self.init_node(int(first)?, &request.bytes, is_repeated),
            Call::DrvsEnd => self.end_node(caller, is_repeated),
            Call::DrvsInfo => {
                let node = self.node.as_ref().ok_or(Error::NotInitialised)?;
                told(node.number, &node.limits)
            }
            Call::VmInit => self.init_container(&request.bytes, is_repeated),
            Call::VmEnd => self.end_container(caller, int(first)?, is_repeated),
            Call::VmInfo => told(0, &self.container(first)?.info()),
            Call::VmDump => self.dump_container(first),
            Call::Bind => {
                self.check_joins(caller, first)?;
                self.bind(first, second, caller.pid, is_repeated)
            }
            Call::LocalBind => self.bind_other(caller, first, int(second)?, third, is_repeated),
            Call::ThreadBind => self.bind_thread(caller, first, second, int(third)?, is_repeated),
            Call::RemoteBind => self.bind_remote(first, endpoint(second)?, int(third)?, &request.bytes),
            Call::BackupBind => self.bind_backup(first, int(second)?, endpoint(third)?, int(fourth)?),
            Call::ReplicaBind => self.bind_replica(first, int(second)?, endpoint(third)?),
            Call::WaitForBind => self.wait(caller, Waits::OwnBinding { thread: int(second)? }, first),
            Call::WaitForBindOf => {
                let container = self.own_container(caller)?;
                let endpoint = endpoint(first)?;
                endpoint.number()?;
                self.wait(caller, Waits::EndpointBound { container, endpoint }, second)
            }
            Call::WaitForUnbind => {
                let container = self.own_container(caller)?;
                let endpoint = endpoint(first)?;
                endpoint.number()?;
                self.wait(caller, Waits::EndpointUnbound { container, endpoint }, second)
            }
            Call::Unbind => self.unbind(caller, first, endpoint(second)?, is_repeated),
            Call::GetEndpoint => self.endpoint_of(int(first)?),
            Call::ProcessInfo => {
                let container = self.container(first)?;
                told(0, &container.describe(container.slot(second)?))
            }
            Call::ProcessDump => self.dump_processes(first),
            Call::SetPrivileges => self.set_rights(first, endpoint(second)?, &request.bytes),
            Call::GetPrivileges => self.get_rights(first, endpoint(second)?),
            Call::NotifyAs => self.notify_as(caller, int(first)?, endpoint(second)?),
            Call::NotifyHardware => self.notify_hardware(first, endpoint(second)?),
            Call::Copy => self.copy(caller, request.arguments),
            Call::WakeUp => self.wake_up(caller, first, endpoint(second)?),
            Call::NodeUp => {
                self.known_node(first)?;
                Err(Error::NoProxy)
            }
            Call::NodeDown => {
                self.known_node(first)?;
                Err(Error::NodeFree)
            }
            Call::NodeInfo => self.node_info(first),
            Call::AddNode => self.add_node(first, second),
            Call::DelNode => self.del_node(first, second),
            // Messages do not pass the broker; proxies and moves do not exist yet.
            Call::Send
            | Call::Receive
            | Call::SendReceive
            | Call::ReceiveRequest
            | Call::Reply
            | Call::Notify
            | Call::NotifyValue
            | Call::Relay
            | Call::MigrateStart
            | Call::MigrateRollback
            | Call::MigrateCommit
            | Call::ProxiesBind
            | Call::ProxiesUnbind
            | Call::ProxyConnection
            | Call::ProxyInfo
            | Call::GetToRemote
            | Call::PutToLocal => Err(Error::NotImplemented),
        }
    }

    fn wait(&self, caller: &Caller, waits: Waits, ms: i64) -> Result<Turn, Error> {
        match self.condition(caller, waits) {
            Some(value) => ended(value?),
            None => Ok(Turn::Waits(waits, ms)),
        }
    }

    /// Returns a container.
    pub fn container(&self, number: i64) -> Result<&Container, Error> {
        let node = self.node.as_ref().ok_or(Error::NotInitialised)?;
        let number = int(number)?;
        if !(0..node.limits.containers).contains(&number) {
            return Err(Error::BadContainer);
        }
        self.containers.get(&number).ok_or(Error::ContainerNotRunning)
    }

    /// Returns a container, to change it.
    pub fn container_mut(&mut self, number: i64) -> Result<&mut Container, Error> {
        self.container(number)?;
        self.containers.get_mut(&int(number)?).ok_or(Error::ContainerNotRunning)
    }

    /// Returns the container that the caller's process is bound in.
    ///
    /// # Errors
    /// `NotBound`.
    pub fn own_container(&self, caller: &Caller) -> Result<i32, Error> {
        self.bindings_of(caller.pid).first().map(|(container, _)| *container).ok_or(Error::NotBound)
    }

    fn list(&self) -> Result<Turn, Error> {
        self.node.as_ref().ok_or(Error::NotInitialised)?;
        let bytes = self.containers.values().flat_map(|container| container.info().as_bytes().to_vec()).collect();
        Ok(Turn::Ended(Answer { value: self.containers.len() as i64, bytes, ..Answer::default() }))
    }

    fn init_node(&mut self, number: i32, bytes: &[u8], is_repeated: bool) -> Result<Turn, Error> {
        match &self.node {
            Some(node) if is_repeated && node.number == number => return ended(number),
            Some(_) => return Err(Error::AlreadyInitialised),
            None => {}
        }
        let asked = match bytes {
            [] => DrvsInfo::LARGEST,
            bytes => DrvsInfo::read_from_bytes(bytes).map_err(|_| Error::Invalid)?,
        };
        let limits = asked.accepted(number)?;
        let none = Endpoint::NONE.raw();
        let nodes = (0..limits.nodes).map(|other| {
            let is_own = other == number;
            let name = if is_own { OWN_NODE } else { [0; 16] };
            let flags = if is_own { node::ATTACHED } else { 0 };
            NodeInfo { number: other, flags, proxies: none, name, ..NodeInfo::default() }
        });
        self.node = Some(Node { number, limits, nodes: nodes.collect() });
        self.keep_node()?;
        ended(number)
    }

    fn end_node(&mut self, caller: &Caller, is_repeated: bool) -> Result<Turn, Error> {
        if self.node.is_none() {
            return if is_repeated { ended(0) } else { Err(Error::NotInitialised) };
        }
        let all: Vec<i32> = self.containers.keys().copied().collect();
        for container in all {
            self.end_container(caller, container, true)?;
        }
        self.node = None;
        self.keep_node()?;
        ended(0)
    }

    fn init_container(&mut self, bytes: &[u8], is_repeated: bool) -> Result<Turn, Error> {
        let node = self.node.as_ref().ok_or(Error::NotInitialised)?;
        let asked = ContainerInfo::read_from_bytes(bytes).map_err(|_| Error::Invalid)?;
        let info = asked.accepted(&node.limits, node.number as u8)?;
        if self.containers.contains_key(&info.number) {
            return if is_repeated { ended(0) } else { Err(Error::ContainerRunning) };
        }
        let container = Container::new(info, node.number, &self.supervisor())?;
        self.containers.insert(info.number, container);
        ended(0)
    }

    fn end_container(&mut self, caller: &Caller, number: i32, is_repeated: bool) -> Result<Turn, Error> {
        if let Err(error) = self.container(number.into()) {
            return if is_repeated && error == Error::ContainerNotRunning { ended(0) } else { Err(error) };
        }
        let supervisor = self.supervisor();
        let container = self.container_mut(number.into())?;
        for slot in numbers() {
            let Some(bound) = container.board().occupant(slot) else { continue };
            container.unbind(slot, Fate::Lives, &supervisor);
            if bound.pid != 0 && bound.pid != caller.pid && process::started(bound.pid) == Some(bound.started) {
                end_process(bound.pid);
            }
        }
        let boxes = store::drop(&supervisor, Key::Container(number));
        boxes.map_err(|_| Error::NoMemory)?;
        self.containers.remove(&number);
        self.finish_waiters();
        ended(0)
    }

    fn set_rights(&mut self, vm: i64, endpoint: Endpoint, bytes: &[u8]) -> Result<Turn, Error> {
        let asked = Privileges::read_from_bytes(bytes).map_err(|_| Error::Invalid)?;
        let container = self.container(vm)?;
        let (number, _) = container.board().locate(endpoint)?;
        let rights = Rights::try_from(asked)?;
        Writer(container.board()).set_rights(number, rights, (asked.warn, asked.calls, asked.alarm));
        ended(0)
    }

    fn get_rights(&self, vm: i64, endpoint: Endpoint) -> Result<Turn, Error> {
        let board = self.container(vm)?.board();
        let (number, _) = board.locate(endpoint)?;
        let (warn, calls, alarm) = board.extra_rights(number);
        told(0, &Privileges { warn, calls, alarm, ..Privileges::from(board.rights(number)) })
    }

    fn notify_as(&self, caller: &Caller, source: i32, to: Endpoint) -> Result<Turn, Error> {
        let container = self.container(self.own_container(caller)?.into())?;
        let source = container.slot(source.into())?;
        container.board().occupant(source).ok_or(Error::BadProcess)?;
        self.post(container, source, to)
    }

    /// Ends a wait for anybody. Who is not in the container must be an administrator.
    fn wake_up(&self, caller: &Caller, vm: i64, endpoint: Endpoint) -> Result<Turn, Error> {
        let is_member = self.own_container(caller).is_ok_and(|own| i64::from(own) == vm);
        if !is_member && !self.is_admin(caller) {
            return Err(Error::NotPermitted);
        }
        let container = self.container(vm)?;
        let (number, _) = container.board().locate(endpoint)?;
        container.wake_up(number)?;
        ended(0)
    }

    fn notify_hardware(&self, vm: i64, to: Endpoint) -> Result<Turn, Error> {
        self.post(self.container(vm)?, Number::new(HARDWARE)?, to)
    }

    fn post(&self, container: &Container, source: Number, to: Endpoint) -> Result<Turn, Error> {
        let (number, _) = container.board().locate(to)?;
        if number == source {
            return Err(Error::BadPeer);
        }
        container.post(number, source)?;
        ended(0)
    }

    /// Copies for a process that the kernel does not let copy itself, though it might: same user, another branch of the process tree.
    fn copy(&self, caller: &Caller, arguments: [i64; 6]) -> Result<Turn, Error> {
        let [from, source, to, target, bytes, _] = arguments;
        let container = self.container(self.own_container(caller)?.into())?;
        let pid = |name: Endpoint| match name {
            Endpoint::SELF => Ok(caller.pid),
            other => {
                let (number, _) = container.board().locate(other)?;
                container.board().occupant(number).map(|bound| bound.pid).ok_or(Error::DestinationDied)
            }
        };
        let (from, to) = (pid(endpoint(from)?)?, pid(endpoint(to)?)?);
        let length = u64::try_from(bytes).ok().filter(|length| *length <= MAX_COPY).ok_or(Error::Range)?;
        if !self.may_copy(caller, from) || !self.may_copy(caller, to) {
            return Err(Error::NotPermitted);
        }
        let block = |pid, address: i64| Block { pid, address: address.cast_unsigned() as usize };
        memory::copy_between_others(block(from, source), block(to, target), length as usize).map_err(|error| {
            match error {
                rustix::io::Errno::PERM => Error::NotPermitted,
                rustix::io::Errno::SRCH => Error::DestinationDied,
                _ => Error::AddressNotAvailable,
            }
        })?;
        ended(bytes)
    }

    /// Returns what is known of a node.
    pub fn known_node(&self, number: i64) -> Result<&NodeInfo, Error> {
        let node = self.node.as_ref().ok_or(Error::NotInitialised)?;
        usize::try_from(number).ok().and_then(|number| node.nodes.get(number)).ok_or(Error::BadNode)
    }

    fn node_info(&self, number: i64) -> Result<Turn, Error> {
        let known = self.known_node(number)?;
        let extends = |container: &&Container| container.info().nodes & 1 << known.number != 0;
        let containers =
            self.containers.values().filter(extends).fold(0, |bits, container| bits | 1 << container.info().number);
        told(0, &NodeInfo { containers, ..*known })
    }

    fn add_node(&mut self, vm: i64, number: i64) -> Result<Turn, Error> {
        self.container(vm)?;
        let bit = 1 << self.known_node(number)?.number;
        let supervisor = self.supervisor();
        let container = self.container_mut(vm)?;
        let mut info = container.info();
        if info.nodes & bit != 0 {
            return Err(Error::NodeOfContainer);
        }
        info.nodes |= bit;
        info.node_count += 1;
        container.set_info(info, &supervisor)?;
        ended(0)
    }

    fn del_node(&mut self, vm: i64, number: i64) -> Result<Turn, Error> {
        self.container(vm)?;
        let known = self.known_node(number)?.number;
        let supervisor = self.supervisor();
        let container = self.container_mut(vm)?;
        let mut info = container.info();
        if info.nodes & 1 << known == 0 {
            return Err(Error::NodeNotOfContainer);
        }
        let runs_there = |slot| container.board().occupant(slot).is_some_and(|bound| bound.node == known);
        if known == container.board().node() || numbers().any(runs_there) {
            return Err(Error::NodeBusy);
        }
        info.nodes &= !(1 << known);
        info.node_count -= 1;
        container.set_info(info, &supervisor)?;
        ended(0)
    }

    fn dump_container(&self, vm: i64) -> Result<Turn, Error> {
        eprintln!("m3ipcd: {:?}", self.container(vm)?.info());
        ended(0)
    }

    fn dump_processes(&self, vm: i64) -> Result<Turn, Error> {
        let container = self.container(vm)?;
        for number in numbers().filter(|number| container.board().occupant(*number).is_some()) {
            eprintln!("m3ipcd: {:?}", container.describe(number));
        }
        ended(0)
    }
}

/// Whether a call is for root and the broker's own user.
fn is_for_root(call: Call) -> bool {
    matches!(
        call,
        Call::DrvsInit
            | Call::DrvsEnd
            | Call::VmInit
            | Call::VmEnd
            | Call::RemoteBind
            | Call::BackupBind
            | Call::ReplicaBind
            | Call::SetPrivileges
            | Call::NotifyAs
            | Call::NotifyHardware
            | Call::NodeUp
            | Call::NodeDown
            | Call::AddNode
            | Call::DelNode
    )
}

/// Ends a process of a container that ends, as the paper has it.
fn end_process(pid: i32) {
    let open = Pid::from_raw(pid).map(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()));
    if let Some(Ok(open)) = open {
        // It may have ended by itself.
        let _ = rustix::process::pidfd_send_signal(&open, Signal::PIPE);
    }
}
