//! From a message to its handler, and the calls that are made again after a death.

use crate::container::{Container, Finish, Kind, give, outcome};
use crate::system::{Identity, System};
use crate::threads::{Doing, Outcome, Place, Threads, Wait};
use ::server::SyncStep;
use abi::endpoint::slot;
use abi::m3ipc::Ends;
use abi::message::REPEATED;
use abi::{Endpoint, Errno, Message};
use alloc::vec::Vec;
use m3ipc::call::Call;
use m3ipc::descriptor::ContainerInfo;
use m3ipc::endpoint::{Endpoint as Name, Number};
use m3ipc::error::Error;
use m3ipc::message::Message as Packet;
use m3ipc::rendezvous::Turn;
use zerocopy::{FromBytes, IntoBytes};

/// How a call goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It has ended with this result.
    Done(i64),
    /// It waits.
    Waits,
}

pub type Handled = Result<Step, Error>;

/// A call of a program.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The thread.
    pub thread: Endpoint,
    /// Where it, or the thread whose endpoint it shares, is bound.
    pub place: Option<Place>,
}

impl Caller {
    /// Where the caller is bound.
    ///
    /// # Errors
    /// `NotBound`.
    pub fn bound(&self) -> Result<Place, Error> {
        self.place.ok_or(Error::NotBound)
    }
}

/// The server.
pub struct M3ipc<S> {
    pub system: S,
    pub node: crate::node::Node,
    pub threads: Threads,
    pub containers: Vec<Container>,
    /// How often something was bound.
    pub bindings: u64,
    /// Who may join containers that do not say it themselves.
    pub defaults: ContainerInfo,
    /// When a refusal may be logged again.
    pub next_log_ns: u64,
}

impl<S: System> M3ipc<S> {
    /// A node that has not been initialised.
    pub fn new(system: S) -> M3ipc<S> {
        M3ipc {
            system,
            node: crate::node::Node::new(),
            threads: Threads::new(),
            containers: Vec::new(),
            bindings: 0,
            defaults: ContainerInfo::default(),
            next_log_ns: 0,
        }
    }

    /// Handles a message. Programs can send Linux calls only.
    pub fn handle(&mut self, message: &Message) -> SyncStep<Message> {
        if !message.source.is_application() {
            return self.service_message(message);
        }
        if message.label != abi::m3ipc::SYSTEM_CALL {
            return SyncStep::Done(message.reply(Err(Errno::ENOSYS)));
        }
        if self.threads.predecessor(message.source).is_some() {
            self.look_for_ends();
        }
        let step = match self.repeated(message) {
            Some(step) => step,
            None => self.begin(message),
        };
        self.keep_alarm();
        match step {
            Step::Waits => SyncStep::Later,
            Step::Done(result) => SyncStep::Done(message.reply(Ok(result as u64))),
        }
    }

    fn service_message(&mut self, message: &Message) -> SyncStep<Message> {
        if message.label == Ends::LABEL && message.source.slot() == slot::PM {
            self.ends(Ends::from_message(message).thread);
            return SyncStep::Later;
        }
        SyncStep::Done(self.tell_files(message))
    }

    /// A call that a predecessor had received: it waits on, or has its result.
    fn repeated(&mut self, message: &Message) -> Option<Step> {
        if message.words[6] & REPEATED == 0 {
            return None;
        }
        let serial = message.words[6] & !REPEATED;
        let thread = self.threads.get(message.source).filter(|thread| thread.serial == serial)?;
        match thread.doing {
            Doing::Nothing => None,
            Doing::Waiting(_) => Some(Step::Waits),
            Doing::Ended(outcome) => {
                give(&mut self.system, message.source, outcome);
                Some(Step::Waits)
            }
        }
    }

    fn begin(&mut self, message: &Message) -> Step {
        let Some(thread) = self.threads.enter(message.source) else {
            return Step::Done(Error::Invalid.to_result().into());
        };
        thread.serial = message.words[6] & !REPEATED;
        thread.doing = Doing::Nothing;
        let result =
            self.call(message.source, &message.words).unwrap_or_else(|error| Step::Done(error.to_result().into()));
        self.note(message.source, result);
        self.give_results();
        result
    }

    /// Notes the result of a thread's call, if that is not done yet: before anything is told to others that must not be told twice.
    pub fn note(&mut self, thread: Endpoint, step: Step) {
        if let (Step::Done(result), Some(thread)) = (step, self.threads.get_mut(thread))
            && thread.doing == Doing::Nothing
        {
            thread.doing = Doing::Ended(Outcome { result, received: None });
        }
    }

    /// Tells those whose calls have ended.
    pub fn give_results(&mut self) {
        let M3ipc { system, threads, containers, .. } = self;
        containers.iter_mut().for_each(|container| container.give_results(system, threads));
    }

    fn call(&mut self, thread: Endpoint, words: &[u64; 7]) -> Handled {
        let [number, a, b, c, d, e, _] = *words;
        let Some(call) = u32::try_from(number).ok().and_then(Call::from_number) else {
            return self.own_call(thread, words);
        };
        // Arguments of type `int` come in the lower half of a word.
        let (one, two, three) = (a as i32, b as i32, c as i32);
        let caller = self.caller(thread)?;
        match call {
            Call::DrvsInit => self.init_node(&caller, one, b),
            Call::DrvsEnd => self.end_node(&caller),
            Call::DrvsInfo => self.tell_node(&caller, a),
            Call::VmInit => self.init_container(&caller, a),
            Call::VmEnd => self.end_container(&caller, one),
            Call::VmInfo => self.tell_container(&caller, one, b),
            Call::VmDump => self.log_container(one),
            Call::NodeInfo => self.tell_other_node(&caller, one, b),
            Call::AddNode => self.add_node(&caller, one, two),
            Call::DelNode => self.delete_node(&caller, one, two),
            Call::NodeUp => self.node_up(&caller, one),
            Call::NodeDown => self.node_down(&caller, one),

            Call::Bind => self.bind_caller(&caller, one, two, Kind::Process),
            Call::ThreadBind => self.bind_caller(&caller, one, two, Kind::Thread),
            Call::LocalBind => self.bind_other(&caller, one, two, three),
            Call::RemoteBind => self.bind_remote(&caller, one, two, three, d),
            Call::BackupBind => self.bind_backup(&caller, one, two, three, d as i32),
            Call::ReplicaBind => self.bind_replica(&caller, one, two, three),
            Call::WaitForBind => self.wait_for_bind(&caller, a as i64),
            Call::WaitForBindOf => self.wait_for_bind_of(&caller, one, b as i64),
            Call::WaitForUnbind => self.wait_for_unbind(&caller, one, b as i64),
            Call::Unbind => self.unbind(&caller, one, two),
            Call::GetEndpoint => self.endpoint_of(&caller, one),
            Call::ProcessInfo => self.tell_process(&caller, one, two, c),
            Call::ProcessDump => self.log_processes(one),
            Call::SetPrivileges => self.set_rights(&caller, one, two, c),
            Call::GetPrivileges => self.tell_rights(&caller, one, two, c),

            Call::Send | Call::SendReceive => self.send(&caller, call, one, b, c as i64),
            Call::Receive => self.receive(&caller, one, b, c as i64),
            Call::ReceiveRequest => self.receive_request(&caller, a, b as i64),
            Call::Reply => self.reply(&caller, one, b),
            Call::Notify => self.notify(&caller, one, 0),
            Call::NotifyValue => self.notify(&caller, one, two),
            Call::NotifyAs => self.notify_as(&caller, one, two),
            Call::NotifyHardware => self.notify_hardware(&caller, one, two),
            Call::Copy => self.copy(&caller, (one, b), (three, d), e as i32),
            Call::WakeUp => self.wake_up(&caller, one, two),

            // What connects nodes comes with the network.
            Call::MigrateStart
            | Call::MigrateRollback
            | Call::MigrateCommit
            | Call::Relay
            | Call::ProxiesBind
            | Call::ProxiesUnbind
            | Call::ProxyConnection
            | Call::ProxyInfo
            | Call::GetToRemote
            | Call::PutToLocal => Err(Error::NotImplemented),
        }
    }

    /// Who calls. A thread of a process whose endpoint it shares, and that has not called yet, is found by its process.
    pub fn caller(&mut self, thread: Endpoint) -> Result<Caller, Error> {
        if let Some(place) = self.threads.get(thread).and_then(|known| known.place) {
            return Ok(Caller { thread, place: Some(place) });
        }
        let process = self.identity(thread)?;
        let place =
            self.threads.get(process.thread).and_then(|leader| leader.place).filter(|_| process.thread != thread);
        if let Some(known) = self.threads.get_mut(thread) {
            known.place = place;
        }
        Ok(Caller { thread, place })
    }

    /// Which process a thread belongs to.
    ///
    /// # Errors
    /// `BadPid`: it has ended.
    pub fn identity(&mut self, thread: Endpoint) -> Result<Identity, Error> {
        identify(&mut self.system, &mut self.threads, thread)
    }

    /// The container with this number.
    ///
    /// # Errors
    /// `NotInitialised`, `BadContainer`, `ContainerNotRunning`.
    pub fn container(&mut self, number: i32) -> Result<&mut Container, Error> {
        self.node.id()?;
        let number = crate::node::container_number(number)?;
        self.containers.iter_mut().find(|container| container.number == number).ok_or(Error::ContainerNotRunning)
    }

    /// The container of a place.
    ///
    /// # Errors
    /// `NotBound`: it has ended.
    pub fn container_of(&mut self, place: Place) -> Result<&mut Container, Error> {
        self.containers.iter_mut().find(|container| container.number == place.container).ok_or(Error::NotBound)
    }

    /// Lets `act` change a container, and notes the ends of the calls that its rendezvous says have ended: [`M3ipc::give_results`] tells them.
    pub fn with<T>(
        &mut self,
        container: u8,
        act: impl FnOnce(&mut m3ipc::rendezvous::Rendezvous<Packet>, &mut Finish<S>) -> T,
    ) -> Result<T, Error> {
        let M3ipc { system, threads, containers, .. } = self;
        let container = containers.iter_mut().find(|one| one.number == container).ok_or(Error::NotBound)?;
        let Container { machine, members, ended, .. } = container;
        Ok(act(machine, &mut Finish { system, threads, members, ended }))
    }

    /// A call of the rendezvous has ended or waits. A message goes to `address`.
    pub fn settle(&mut self, caller: &Caller, turn: Turn<Packet>, address: u64, limit_ms: i64) -> Handled {
        let place = caller.bound()?;
        let end = match turn {
            Turn::Waits => return self.wait(caller, Wait::Message { address }, limit_ms),
            Turn::Ended(end) => end,
        };
        let now_ns = self.system.now_ns();
        let members = &self.container_of(place)?.members;
        let (result, received) = outcome(end, |source| members.get(source).map_or(0, |member| member.value), now_ns);
        let Some(message) = received else { return Ok(Step::Done(result)) };
        if let Some(thread) = self.threads.get_mut(caller.thread) {
            thread.doing = Doing::Ended(Outcome { result, received: Some((address, message)) });
        }
        self.system.write(caller.thread, address, message.as_bytes())?;
        Ok(Step::Done(result))
    }

    /// The caller waits, at most so many milliseconds; a negative number: as long as it takes.
    pub fn wait(&mut self, caller: &Caller, wait: Wait, limit_ms: i64) -> Handled {
        let deadline_ns = match limit_ms {
            ..0 => 0,
            limit => self.system.now_ns().saturating_add((limit as u64).saturating_mul(1_000_000)),
        };
        self.threads.set_deadline(caller.thread, deadline_ns);
        let Some(thread) = self.threads.get_mut(caller.thread) else { return Err(Error::BadPid) };
        thread.doing = Doing::Waiting(wait);
        Ok(Step::Waits)
    }

    /// The wait of a thread for something else than a message has ended.
    pub fn end_wait(&mut self, thread: Endpoint, result: i64) {
        let Some(known) = self.threads.get_mut(thread) else { return };
        known.doing = Doing::Ended(Outcome { result, received: None });
        known.deadline_ns = 0;
        self.system.reply(thread, result);
    }

    /// Reads a structure of a caller. `Fault`.
    pub fn read<T: FromBytes + IntoBytes>(&mut self, caller: &Caller, address: u64) -> Result<T, Error> {
        let mut value = T::new_zeroed();
        self.system.read(caller.thread, address, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Reads a message.
    pub fn read_packet(&mut self, caller: &Caller, address: u64) -> Result<Packet, Error> {
        self.read(caller, address)
    }

    /// Reads the endpoint of a slot's occupant.
    pub fn name_of(&mut self, place: Place) -> Name {
        self.container_of(place)
            .ok()
            .and_then(|container| container.machine.endpoint(place.number))
            .unwrap_or(Name::NONE)
    }

    /// Checks a slot's number.
    ///
    /// # Errors
    /// `Range`.
    pub fn slot(&mut self, container: i32, number: i32) -> Result<Number, Error> {
        let number = Number::new(number)?;
        if self.container(container)?.has(number) { Ok(number) } else { Err(Error::Range) }
    }
}

/// Which process a thread belongs to, as [`M3ipc::identity`].
#[inline]
pub fn identify(system: &mut impl System, threads: &mut Threads, thread: Endpoint) -> Result<Identity, Error> {
    if let Some(process) = threads.get(thread).and_then(|known| known.process) {
        return Ok(process);
    }
    let process = system.enroll(thread, 0)?;
    if let Some(known) = threads.get_mut(thread) {
        known.process = Some(process);
    }
    Ok(process)
}
