//! The calls that bind and unbind, and those that hand out what members map.

use crate::admission::Caller;
use crate::boxes::ends;
use crate::broker::{Answer, Broker, Turn};
use crate::calls::{ended, int};
use crate::container::{Container, Fate};
use m3core::process;
use m3ipc::descriptor::misc;
use m3ipc::endpoint::{Endpoint, Number};
use m3ipc::error::Error;

/// In the value of [`internal::JOIN`]: the thread was bound itself.
const IS_OWN: i64 = 1 << 16;
impl Broker {
    /// Tells where the caller is bound. `program` tells the one that it is from others that its process has executed before.
    pub fn join(&mut self, caller: &Caller, thread: i64, program: i64) -> Result<Turn, Error> {
        let (container, number) = self.place_of(caller.pid, int(thread)?).ok_or(Error::NotBound)?;
        if let Some((_, leader)) = self.place_of(caller.pid, caller.pid) {
            self.forget_program(container, leader, program.cast_unsigned());
        }
        let container = &self.containers[&container];
        let bound = container.board().occupant(number).ok_or(Error::NotBound)?;
        let own = if bound.leader == number { 0 } else { IS_OWN };
        let files = container.files()?;
        Ok(Turn::Ended(Answer { value: number.index() as i64 | own, files, ..Answer::default() }))
    }

    /// Hands out the box of two processes.
    pub fn box_of(&mut self, caller: &Caller, container: i32, own: i64, peer: i64) -> Result<Turn, Error> {
        let tables = self.container(container.into())?;
        let (own, peer) = (Number::new(int(own)?)?, Number::new(int(peer)?)?);
        if tables.board().occupant(own).is_none_or(|bound| bound.pid != caller.pid) || own == peer {
            return Err(Error::NotBound);
        }
        let incarnation = tables.board().occupant(peer).ok_or(Error::DestinationDied)?.incarnation;
        if tables.boxes().get(ends(own, peer)).is_none() {
            let used = self.used_by(caller.uid);
            self.admission.check_box(caller, used)?;
        }
        let supervisor = self.supervisor();
        let file = self.container_mut(container.into())?.box_of(own, peer, caller.uid, &supervisor)?;
        Ok(Turn::Ended(Answer { value: incarnation.into(), files: vec![file], ..Answer::default() }))
    }

    /// The call of this name.
    pub fn bind(&mut self, vm: i64, number: i64, pid: i32, is_repeated: bool) -> Result<Turn, Error> {
        let container = self.container(vm)?;
        let number = container.slot(number)?;
        let bound = container.board().occupant(number);
        if let Some(bound) = bound.filter(|bound| is_repeated && bound.pid == pid) {
            return ended(bound.endpoint.raw());
        }
        if bound.is_some() {
            return Err(Error::SlotUsed);
        }
        if !self.bindings_of(pid).is_empty() {
            return Err(Error::BindType);
        }
        let endpoint = self.container_mut(vm)?.bind(number, pid, pid, number, 0)?;
        self.watch_process(pid);
        self.finish_waiters();
        ended(endpoint.raw())
    }

    /// Checks that the container admits the caller, if it says whom: others could not have connected.
    pub fn check_joins(&self, caller: &Caller, vm: i64) -> Result<(), Error> {
        let info = self.container(vm)?.info();
        let capabilities = if info.capabilities == 0 { 0 } else { caller.capabilities() };
        let may = info.admits(caller.uid, caller.gid, capabilities);
        if may == Some(false) && !self.is_admin(caller) { Err(Error::NotPermitted) } else { Ok(()) }
    }

    /// Checks that the caller may bind a process that is another one.
    fn check_pid(&self, caller: &Caller, pid: i32) -> Result<(), Error> {
        if pid <= 0 || process::has_ended(pid) {
            return Err(Error::BadPid);
        }
        let owner = process::owner(pid).ok_or(Error::BadPid)?;
        if self.is_admin(caller) || owner == caller.uid { Ok(()) } else { Err(Error::NotPermitted) }
    }

    /// The call of this name.
    pub fn bind_other(
        &mut self,
        caller: &Caller,
        vm: i64,
        pid: i32,
        number: i64,
        is_repeated: bool,
    ) -> Result<Turn, Error> {
        self.container(vm)?.slot(number)?;
        self.check_pid(caller, pid)?;
        self.check_joins(caller, vm)?;
        self.bind(vm, number, pid, is_repeated)
    }

    /// The call of this name.
    pub fn bind_thread(
        &mut self,
        caller: &Caller,
        vm: i64,
        number: i64,
        thread: i32,
        is_repeated: bool,
    ) -> Result<Turn, Error> {
        let container = self.container(vm)?;
        let number = container.slot(number)?;
        if !process::has_thread(caller.pid, thread) {
            return Err(Error::BadPid);
        }
        self.check_joins(caller, vm)?;
        let bindings = self.bindings_of(caller.pid);
        let of_thread = |(other, slot): &&(i32, Number)| {
            self.containers[other].board().occupant(*slot).is_some_and(|bound| bound.thread == thread)
        };
        if let Some((other, slot)) = bindings.iter().find(of_thread) {
            let is_this = i64::from(*other) == vm && *slot == number;
            return match is_repeated && is_this {
                true => ended(container.board().last_endpoint(number).raw()),
                false => Err(Error::BindType),
            };
        }
        let is_leader = |(other, slot): &&(i32, Number)| {
            let bound = self.containers[other].board().occupant(*slot);
            i64::from(*other) == vm && bound.is_some_and(|bound| bound.leader == *slot)
        };
        let leader = bindings.iter().find(is_leader).ok_or(Error::GroupLeader)?.1;
        let endpoint = self.container_mut(vm)?.bind(number, caller.pid, thread, leader, 0)?;
        self.finish_waiters();
        ended(endpoint.raw())
    }

    /// Checks that a container extends to a node that is another one.
    fn remote_node(&self, container: &Container, number: i32) -> Result<(), Error> {
        self.known_node(number.into())?;
        if number == container.board().node() {
            return Err(Error::LocalProcess);
        }
        if container.info().nodes & 1 << number == 0 { Err(Error::NodeNotOfContainer) } else { Ok(()) }
    }

    /// The call of this name.
    pub fn bind_remote(&mut self, vm: i64, endpoint: Endpoint, node: i32, name: &[u8]) -> Result<Turn, Error> {
        let container = self.container(vm)?;
        container.slot(endpoint.number()?.get().into())?;
        self.remote_node(container, node)?;
        let name = name.try_into().map_err(|_| Error::Invalid)?;
        let endpoint = self.container_mut(vm)?.bind_remote(endpoint, node, 0, 0, name)?;
        self.finish_waiters();
        ended(endpoint.raw())
    }

    /// The call of this name.
    pub fn bind_backup(&mut self, vm: i64, pid: i32, endpoint: Endpoint, node: i32) -> Result<Turn, Error> {
        let container = self.container(vm)?;
        container.slot(endpoint.number()?.get().into())?;
        self.remote_node(container, node)?;
        if pid <= 0 || process::started(pid).is_none() {
            return Err(Error::BadPid);
        }
        if !self.bindings_of(pid).is_empty() {
            return Err(Error::BindType);
        }
        let name = process::name(pid);
        let endpoint = self.container_mut(vm)?.bind_remote(endpoint, node, pid, misc::RMTBACKUP, name)?;
        self.watch_process(pid);
        self.finish_waiters();
        ended(endpoint.raw())
    }

    /// The call of this name.
    pub fn bind_replica(&mut self, vm: i64, pid: i32, endpoint: Endpoint) -> Result<Turn, Error> {
        let container = self.container(vm)?;
        container.slot(endpoint.number()?.get().into())?;
        if pid <= 0 || process::started(pid).is_none() {
            return Err(Error::BadPid);
        }
        if !self.bindings_of(pid).is_empty() {
            return Err(Error::BindType);
        }
        let node = container.board().node();
        let flags = misc::REPLICATED | misc::GRPLEADER;
        let name = process::name(pid);
        let endpoint = self.container_mut(vm)?.bind_remote(endpoint, node, pid, flags, name)?;
        self.watch_process(pid);
        self.finish_waiters();
        ended(endpoint.raw())
    }

    /// The call of this name.
    pub fn unbind(&mut self, caller: &Caller, vm: i64, endpoint: Endpoint, is_repeated: bool) -> Result<Turn, Error> {
        let supervisor = self.supervisor();
        let is_admin = self.is_admin(caller);
        let container = self.container_mut(vm)?;
        let number = match endpoint {
            Endpoint::SELF => self.place_of(caller.pid, caller.pid).ok_or(Error::NotBound)?.1,
            other => match container.board().locate(other) {
                Ok((number, _)) => number,
                Err(Error::DestinationDied) if is_repeated => return ended(0),
                Err(Error::DestinationDied) => return Err(Error::NotBound),
                Err(error) => return Err(error),
            },
        };
        let container = self.container_mut(vm)?;
        let bound = container.board().occupant(number).ok_or(Error::NotBound)?;
        let is_own = bound.pid == caller.pid || process::owner(bound.pid) == Some(caller.uid);
        if !is_admin && !is_own {
            return Err(Error::NotPermitted);
        }
        container.unbind(number, Fate::Lives, &supervisor);
        self.finish_waiters();
        ended(0)
    }

    /// The call of this name.
    pub fn endpoint_of(&self, pid: i32) -> Result<Turn, Error> {
        if pid <= 0 {
            return Err(Error::Range);
        }
        if process::started(pid).is_none() {
            return Err(Error::BadPid);
        }
        let (container, number) = self.place_of(pid, pid).ok_or(Error::NotBound)?;
        ended(self.containers[&container].board().last_endpoint(number).raw())
    }
}
